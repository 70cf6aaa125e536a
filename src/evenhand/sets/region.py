"""Unions of convex sets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.costs import Norm
from evenhand.sets.affine import Affine, table
from evenhand.sets.convex import DEFAULT_TOLERANCE, ConvexSet, Measure


@dataclass(frozen=True, eq=False)
class Region:
    """A union of convex sets.

    Parameters
    ----------
    pieces : sequence of ConvexSet
        Its members; they may overlap.
    dim : int, optional
        Needed only for the empty region, which has no piece to tell it.
    """

    pieces: tuple[ConvexSet, ...]
    dim: int = 0

    def __post_init__(self) -> None:
        pieces = tuple(self.pieces)
        dims = {piece.dim for piece in pieces} | ({self.dim} if self.dim else set())
        if len(dims) != 1:
            got = sorted(dims) if dims else "no piece and no dim"
            raise ValueError(f"The pieces of a region share one dimension; got {got}.")
        object.__setattr__(self, "pieces", pieces)
        object.__setattr__(self, "dim", dims.pop())

    def __len__(self) -> int:
        return len(self.pieces)

    def __repr__(self) -> str:
        return f"Region({len(self.pieces)} pieces in {self.dim} dimensions)"

    def contains(self, X: npt.ArrayLike, tol: float = DEFAULT_TOLERANCE) -> npt.NDArray[np.bool_]:
        """Which rows of `X` lie in at least one piece, up to a distance of `tol`."""
        points = table(X, self.dim)
        inside = np.zeros(len(points), dtype=np.bool_)
        for piece in self.pieces:
            inside |= piece.contains(points, tol)
        return inside

    def pullback(self, affine: Affine) -> Region:
        """The points that `affine` maps into this region."""
        return self._each((piece.pullback(affine) for piece in self.pieces), affine.matrix.shape[1])

    def shrink(self, margin: float, cost: Norm | Measure | str = "l2") -> Region:
        """Every piece shrunk by a distance of `margin` in units of `cost`."""
        return self._each((piece.shrink(margin, cost) for piece in self.pieces), self.dim)

    def __and__(self, other: Region | ConvexSet) -> Region:
        others = (other,) if isinstance(other, ConvexSet) else other.pieces
        if self.dim != other.dim:
            raise ValueError(f"Regions of dimension {self.dim} and {other.dim} do not intersect.")
        return self._each((a & b for a in self.pieces for b in others), self.dim)

    def __rand__(self, other: ConvexSet) -> Region:
        return self & other

    def __or__(self, other: Region | ConvexSet) -> Region:
        others = (other,) if isinstance(other, ConvexSet) else other.pieces
        if self.dim != other.dim:
            raise ValueError(f"Regions of dimension {self.dim} and {other.dim} do not unite.")
        return self._each((*self.pieces, *others), self.dim)

    @staticmethod
    def _each(pieces: Iterable[ConvexSet], dim: int) -> Region:
        return Region(tuple(pieces), dim)
