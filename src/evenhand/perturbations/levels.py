"""Perturbations of levels: a neighbouring one, or any other."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Integral
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from evenhand.perturbations.base import check_one_column, check_probability
from evenhand.perturbations.registry import register
from evenhand.table.column import Column
from evenhand.types import FloatArray

Part = TypeVar("Part", bound="OfLevels")


@dataclass(frozen=True, eq=False)
class OfLevels:
    """What perturbations of levels share: a probability, and what they have to know about their column."""

    suits: ClassVar[tuple[str, ...]] = ("ordered", "categorical", "boolean")

    probability: float
    _: KW_ONLY
    levels: int | None = None
    missing: int | None = None

    def __post_init__(self) -> None:
        check_probability(self.probability)
        if self.levels is not None and (not isinstance(self.levels, Integral) or self.levels < 1):
            raise ValueError(f"levels must be how many levels there are, a whole number >= 1; got {self.levels!r}.")

    def for_column(self: Part, column: Column) -> Part:
        """The same perturbation for the levels of a column."""
        missing = [i for i, level in enumerate(column.levels) if level is None]
        return replace(self, levels=len(column.levels), missing=missing[0] if missing else None)

    def _positions(self, X: FloatArray) -> npt.NDArray[np.intp]:
        name = type(self).__name__
        if self.levels is None:
            raise ValueError(
                f"{name} does not know how many levels there are: use it in Mixed({{column: {name}(...)}}) and bind "
                f"that to a schema, or pass levels=...."
            )
        check_one_column(X, name)
        positions = np.clip(X[:, 0], 0, self.levels - 1).astype(np.intp)
        if not np.array_equal(positions, X[:, 0]):
            raise ValueError(f"{name} takes the positions of levels, whole numbers from 0 to {self.levels - 1}.")
        return positions


@register
@dataclass(frozen=True, eq=False)
class Ordered(OfLevels):
    """A neighbouring level, up or down with equal chance.

    Parameters
    ----------
    probability : float
        Of a neighbouring level; the lowest and the highest have one neighbour only, and move there.
    levels : int, optional
        How many there are; :class:`Mixed` knows.
    missing : int, optional
        Position of the level that stands for a missing value: it has no neighbours, and is nobody's;
        :class:`Mixed` knows.

    Examples
    --------
    >>> Ordered(1.0, levels=3)(np.array([[0.0], [1.0], [1.0], [2.0]]), np.random.default_rng(0)).ravel()
    array([1., 0., 2., 1.])
    """

    suits: ClassVar[tuple[str, ...]] = ("ordered",)

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of `X`, or a neighbouring level in its place."""
        current = self._positions(X)
        ladder = np.array([i for i in range(self.levels or 0) if i != self.missing], dtype=np.intp)
        chance = rng.random((len(X), 2))
        if len(ladder) < 2:
            return X.copy()
        rank = np.searchsorted(ladder, current)
        way = np.where(chance[:, 1] < 0.5, -1, 1)
        way = np.where(rank == 0, 1, np.where(rank == len(ladder) - 1, -1, way))
        moves = (chance[:, 0] < self.probability) & (current != (-1 if self.missing is None else self.missing))
        drawn = ladder[np.where(moves, rank + way, 0)]
        return np.where(moves, drawn, current).astype(np.float64)[:, None]


@register
@dataclass(frozen=True, eq=False)
class Categorical(OfLevels):
    """Another level, drawn in proportion to how often the levels occur in the data.

    Parameters
    ----------
    probability : float
        Of another level. Where no other level occurs in the data, the value stays.
    levels : int, optional
        How many there are; :class:`Mixed` knows.
    missing : int, optional
        Position of the level that stands for a missing value, which is never drawn; :class:`Mixed` knows.
    counts : array of shape (levels,), optional
        How often each level occurs; learned from the data if left out.

    Examples
    --------
    >>> codes = np.array([[0.0], [1.0], [1.0], [3.0]])
    >>> Categorical(1.0, levels=4).fit(codes)(np.zeros((6, 1)), np.random.default_rng(0)).ravel()
    array([1., 1., 3., 3., 3., 1.])
    """

    counts: npt.NDArray[np.int64] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.counts is None:
            return
        counts = np.array(self.counts)
        if counts.ndim != 1 or not np.issubdtype(counts.dtype, np.integer) or (counts < 0).any():
            raise ValueError(f"counts must be one whole number >= 0 per level; got {self.counts!r}.")
        if self.levels is not None and len(counts) != self.levels:
            raise ValueError(f"counts are for {len(counts)} levels; there are {self.levels}.")
        counts = counts.astype(np.int64)
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)

    def fit(self, codes: FloatArray) -> Categorical:
        """The same perturbation with the counts of the levels at the positions `codes`, of shape (n, 1)."""
        if self.counts is not None:
            return self
        codes = np.asarray(codes, dtype=np.float64)
        seen = self._positions(codes[np.isfinite(codes).all(axis=-1)])
        return replace(self, counts=np.bincount(seen, minlength=self.levels or 0))

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of `X`, or another level in its place."""
        if self.counts is None:
            raise ValueError("Categorical has not seen how often the levels occur: call its fit(codes) first.")
        current = self._positions(X)
        counts = self.counts.copy()
        if self.missing is not None:
            counts[self.missing] = 0
        ends = np.cumsum(counts)
        others = ends[-1] - counts[current]
        chance = rng.random((len(X), 2))
        # People are counted, not shares: in whole numbers, the own level and one without people are never hit.
        place = np.floor(chance[:, 1] * others).astype(np.int64)
        place += np.where(place >= ends[current] - counts[current], counts[current], 0)
        drawn = np.searchsorted(ends, place, side="right")
        moves = (chance[:, 0] < self.probability) & (others > 0)
        return np.where(moves, drawn, current).astype(np.float64)[:, None]
