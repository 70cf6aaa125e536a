"""Where the columns of a table are in the space in which regions lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from evenhand.table.schema import Schema
from evenhand.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Layout:
    """From rows of codes to expanded rows: numbers as they are, then one 0/1 column per level.

    What an encoder does is affine on expanded rows, so that the regions of a model with encoders are convex sets there
    as they are for a model of numbers, whose expanded rows are the codes themselves.

    Attributes
    ----------
    numbers, categories : arrays of int
        Positions in the table of the plain numbers, and of the columns with levels; a binned number is one of these.
    start : array of int
        Where the levels of each category begin among all levels, and where the last ones end.
    known : array of bool, shape (levels,)
        Whether the model accepts the level at all.
    bins : mapping from category to edges
        For a number of which only the bin matters.
    """

    numbers: npt.NDArray[np.intp]
    categories: npt.NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    start: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    known: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    bins: Mapping[int, FloatArray] = field(default_factory=dict)

    @classmethod
    def of_numbers(cls, n_columns: int) -> Layout:
        """A table of numbers only: expanded rows are the rows themselves."""
        return cls(np.arange(n_columns))

    @property
    def n_columns(self) -> int:
        """Columns of the table."""
        return len(self.numbers) + len(self.categories)

    @property
    def width(self) -> int:
        """Columns of an expanded row."""
        return len(self.numbers) + int(self.start[-1])

    def block(self, b: int) -> slice:
        """Where the levels of the b-th category are in an expanded row."""
        first = len(self.numbers)
        return slice(first + int(self.start[b]), first + int(self.start[b + 1]))

    def position(self, b: int, values: FloatArray) -> IntArray:
        """Levels of the b-th category: codes as they are, numbers by their bin."""
        if b not in self.bins:
            return values.astype(np.int64)
        return np.searchsorted(self.bins[b][1:-1], values, side="right").astype(np.int64)

    def levels(self, codes: FloatArray) -> IntArray:
        """Positions of the levels of people, one column per category."""
        positions = np.empty((len(codes), len(self.categories)), dtype=np.int64)
        for b, j in enumerate(self.categories):
            positions[:, b] = self.position(b, codes[:, j])
        return positions

    def expand(self, codes: FloatArray) -> FloatArray:
        """Codes as expanded rows."""
        if not len(self.categories):
            return codes
        expanded = np.zeros((len(codes), self.width))
        expanded[:, : len(self.numbers)] = codes[:, self.numbers]
        at = len(self.numbers) + self.start[:-1] + self.levels(codes)
        np.put_along_axis(expanded, at, 1.0, axis=1)
        return expanded

    def refused(self, schema: Schema) -> dict[str, BoolArray]:
        """Per column which levels the model accepts, where that is not all of them."""
        levels = {schema.names[j]: self.known[self.start[b] : self.start[b + 1]] for b, j in enumerate(self.categories)}
        return {name: known for name, known in levels.items() if not (schema[name].is_number or known.all())}
