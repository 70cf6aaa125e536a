"""Thresholds on columns that count: half-way between two whole numbers, on the side where the pipeline puts them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from evenhand.models.base import View, view
from evenhand.models.pipeline_steps import flat_pipeline
from evenhand.sets import Affine, Region
from evenhand.table.people import Reader
from evenhand.types import FloatArray

NEAR = 1e-3  # a threshold that is nearer to a whole number may fall on it: then the pipeline is asked


@dataclass(frozen=True, eq=False)
class LastStep:
    """What a model's last step is shown of people: the user's own pipeline, up to there."""

    model: Any
    reader: Reader

    def __call__(self, codes: FloatArray) -> FloatArray:
        """Rows of codes as the space in which the last step's regions lie."""
        return self.of(self.reader.show(codes))

    def of(self, people: Any) -> FloatArray:
        """The same for people in the form that the model takes."""
        inside = flat_pipeline(self.model)
        steps = [step for _, step in inside.steps] if isinstance(inside, Pipeline) else [inside]
        values = inside[:-1].transform(people) if len(steps) > 1 else people
        values = values.toarray() if hasattr(values, "toarray") else values
        last = view(steps[-1])
        assert last.encode is not None
        found = np.asarray(last.encode(np.asarray(values, dtype=np.float64)))
        if not np.isfinite(found).all():
            raise ValueError("The pipeline turns a person of the table into NaN or infinity; impute missing values.")
        return found


@dataclass(frozen=True, eq=False)
class OnWholeNumbers:
    """Regions with their sides moved to where no person can be.

    A threshold that was learned between 3 and 5 is 4, and somebody who has 4 is on one side by the rounding of a
    scaler.
    """

    latent: Callable[[int], Region]
    encode: Affine
    column_of: Mapping[int, int]  # of coordinates that one counting column decides: where that is in expanded rows
    ask: Callable[[int, FloatArray], FloatArray]  # a coordinate, and whole numbers of its column -> what it is there

    def __call__(self, k: int) -> Region:
        """The region of a label."""
        region = self.latent(k)
        if not isinstance(region, Region) or not region.pieces:
            return region
        lower, upper = (np.array(sides) for sides in zip(*(piece.box for piece in region.pieces), strict=True))
        for f, column in self.column_of.items():
            slope, offset = float(self.encode.matrix[f, column]), float(self.encode.offset[f])
            self._move(f, lower[:, f], slope, offset, 1.0)
            self._move(f, upper[:, f], slope, offset, -1.0)
        moved = zip(region.pieces, lower, upper, strict=True)
        return Region(tuple(replace(piece, lower=low, upper=high) for piece, low, high in moved), region.dim)

    def _move(self, f: int, sides: FloatArray, slope: float, offset: float, way: float) -> None:
        """Sides of a coordinate, to between whole numbers; `way` is 1 for lower sides and -1 for upper ones."""
        value = (sides - offset) / slope
        nearest = np.round(value)
        near = np.isfinite(sides)
        near[near] = np.abs(value[near] - nearest[near]) < NEAR
        if near.any():
            numbers, which = np.unique(nearest[near], return_inverse=True)
            inside = way * (self.ask(f, numbers)[which] - sides[near]) >= 0.0
            half = np.where((way * slope > 0) != inside, 0.5, -0.5)
            sides[near] = offset + slope * (nearest[near] + half)


def on_whole_numbers(seen: View, home: FloatArray) -> View:
    """A view whose regions have no side where somebody can stand who counts.

    Parameters
    ----------
    seen : View
        Of a model whose regions have sides, such as a tree.
    home : array of shape (n_columns,)
        Codes of anybody.
    """
    assert seen.encode is not None
    assert seen.latent is not None
    schema, layout, fill = seen.schema, seen.columns, seen.reader.fill
    whole = [
        i
        for i, j in enumerate(layout.numbers)
        if schema.whole[j] and (fill is None or np.isnan(fill[j]) or fill[j] == np.round(fill[j]))
    ]
    acts = seen.encode.matrix != 0.0
    alone = np.flatnonzero(acts.sum(axis=1) == 1)
    column_of = {int(f): int(acts[f].argmax()) for f in alone if acts[f].argmax() in whole}
    if not column_of:
        return seen
    ask = _Asked(LastStep(seen.model, seen.reader), home, {f: int(layout.numbers[i]) for f, i in column_of.items()})
    return replace(seen, latent=OnWholeNumbers(seen.latent, seen.encode, column_of, ask))


@dataclass(frozen=True, eq=False)
class _Asked:
    """Somebody with other numbers in one column, as the last step sees them."""

    image: LastStep
    home: FloatArray
    column_of: Mapping[int, int]  # of coordinates: the column of the table

    def __call__(self, f: int, numbers: FloatArray) -> FloatArray:
        rows = np.repeat(self.home[None], len(numbers), axis=0)
        rows[:, self.column_of[f]] = numbers
        return self.image(rows)[:, f]
