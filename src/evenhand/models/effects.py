"""What levels and numbers of raw columns add up to in front of a model's last step, and regions seen through it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.sets import ConvexSet
from evenhand.table.schema import Schema
from evenhand.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Effects:
    """What is added up in front of the model's last step: ``offset + matrix @ numbers + sum of levels[position]``.

    Attributes
    ----------
    numbers, categories : arrays of int
        Positions in the schema of the plain numbers, and of the columns with levels; a binned number is one of these.
    start : array of int
        Where the levels of each category begin, and where the last ones end.
    offset, matrix, levels : arrays of shape (k,), (k, numbers), (levels, k)
        The first level of each category adds nothing.
    seen : array of shape (levels, k)
        A row's whole image with that level: where a coordinate depends on this category only, it is exact.
    known : array of bool, shape (levels,)
        Whether the encoder accepts the level at all.
    bins : mapping from category to edges
        For a binned number.
    """

    numbers: npt.NDArray[np.intp]
    categories: npt.NDArray[np.intp]
    start: IntArray
    offset: FloatArray
    matrix: FloatArray
    levels: FloatArray
    seen: FloatArray
    known: BoolArray
    bins: dict[int, FloatArray]

    def __call__(self, codes: FloatArray) -> FloatArray:
        """The image of encoded people."""
        found = self.offset + codes[:, self.numbers] @ self.matrix.T
        for b, j in enumerate(self.categories):
            found = found + self.levels[self.start[b] + self.position(b, codes[:, j])]
        return np.asarray(found)

    def position(self, b: int, values: FloatArray) -> IntArray:
        """Levels of the b-th category: codes as they are, numbers by their bin."""
        if b not in self.bins:
            return values.astype(np.int64)
        return np.searchsorted(self.bins[b][1:-1], values, side="right").astype(np.int64)

    def refused(self, schema: Schema) -> dict[str, BoolArray]:
        """Per column which levels the encoders accept, where that is not all of them."""
        levels = {schema.names[j]: self.known[self.start[b] : self.start[b + 1]] for b, j in enumerate(self.categories)}
        return {name: known for name, known in levels.items() if not (schema[name].is_number or known.all())}


@dataclass(frozen=True, eq=False)
class Piece:
    """A piece of a label in raw columns: intervals, levels, and rows ``A x + sum of E[level] >= b``."""

    lower: FloatArray
    upper: FloatArray
    allowed: BoolArray
    A: FloatArray
    E: FloatArray
    b: FloatArray


def raw_piece(piece: ConvexSet, effects: Effects) -> Piece | None:
    """What a convex set in the space of the last step asks of raw columns; None if nobody can be there.

    A side of the box that depends on one number is an interval, on one category a set of levels, on more a row.
    """
    k, n = effects.matrix.shape
    lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
    allowed = effects.known.copy()
    G, h = piece.halfspaces
    low, high = piece.box
    moves = np.array([_varies(effects, b) for b in range(len(effects.categories))]).reshape(-1, k)
    joint_low, joint_high = np.isfinite(low), np.isfinite(high)
    if (low == np.inf).any() or (high == -np.inf).any():
        return None
    for i in range(k):
        by_number, by_level = np.flatnonzero(effects.matrix[i]), np.flatnonzero(moves[:, i])
        if len(by_number) + len(by_level) > 1:
            continue
        joint_low[i] = joint_high[i] = False
        if len(by_number):
            j = int(by_number[0])
            slope = effects.matrix[i, j]
            sides = sorted(((low[i] - effects.offset[i]) / slope, (high[i] - effects.offset[i]) / slope))
            lower[j], upper[j] = max(lower[j], sides[0]), min(upper[j], sides[1])
        elif len(by_level):
            part = slice(effects.start[by_level[0]], effects.start[by_level[0] + 1])
            allowed[part] &= (effects.seen[part, i] >= low[i]) & (effects.seen[part, i] <= high[i])
        elif not low[i] <= effects.offset[i] <= high[i]:
            return None
    one = np.eye(k)
    G = np.vstack([G, one[joint_high], -one[joint_low]])
    h = np.concatenate([h, high[joint_high], -low[joint_low]])
    if (lower > upper).any():
        return None
    # G (offset + M x + levels) <= h
    return Piece(lower, upper, allowed, -(G @ effects.matrix), -(G @ effects.levels.T), G @ effects.offset - h)


def _varies(effects: Effects, b: int) -> BoolArray:
    part = slice(effects.start[b], effects.start[b + 1])
    known = effects.levels[part][effects.known[part]]
    return np.asarray((known != known[0]).any(axis=0))
