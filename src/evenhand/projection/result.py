"""The result of a projection."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.types import FloatArray, IntArray, StatusArray


@dataclass(frozen=True, eq=False)
class Projection:
    """Nearest points of a region, one row per query.

    Attributes
    ----------
    points : array of shape (n, dim)
        The nearest point; NaN where there is none.
    cost : array of shape (n,)
        Its cost.
    gap : array of shape (n,)
        Cost minus a proven lower bound: no point of the region is cheaper than ``cost - gap``.
    piece : array of shape (n,)
        Index of the piece that holds the point; -1 where there is none.
    status : array of shape (n,)
        A :class:`Status` per query.
    """

    points: FloatArray
    cost: FloatArray
    gap: FloatArray
    piece: IntArray
    status: StatusArray

    def __len__(self) -> int:
        return len(self.cost)
