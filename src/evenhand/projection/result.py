"""The result of a projection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenhand.status import ACCURATE, NOTHING, Status, statuses
from evenhand.types import BoolArray, FloatArray, IntArray, StatusArray

if TYPE_CHECKING:
    from evenhand.projection.problem import Problem
    from evenhand.projection.verify import Verification


@dataclass(frozen=True, eq=False)
class Projection:
    """Cheapest points of a region, one row per query.

    Attributes
    ----------
    points : array of shape (n, n_columns)
        The cheapest point; NaN where there is none.
    cost : array of shape (n,)
        Its cost, as the point is written; NaN where there is none.
    bound : array of shape (n,)
        Proven: no point of the region is cheaper; infinite where there is no point at all below the cutoff.
    piece : array of shape (n,)
        Index of the piece that holds the point; -1 where there is none, or where the solver does not say.
    status : array of shape (n,)
        A :class:`Status` per query.
    nodes : array of shape (n,), optional
        How many nodes a search has looked at.
    owed : array of shape (n,), optional
        How much of the gap is what the guard costs; the rest is what the solver leaves open.
    """

    points: FloatArray
    cost: FloatArray
    bound: FloatArray
    piece: IntArray
    status: StatusArray
    nodes: IntArray | None = None
    owed: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.cost)

    @property
    def gap(self) -> FloatArray:
        """Cost minus the proven bound: no point of the region is cheaper than ``cost - gap``; NaN without a point."""
        reached = ~np.isnan(self.cost)
        gap = np.full(len(self.cost), np.nan)
        gap[reached] = np.maximum(self.cost[reached] - self.bound[reached], 0.0)
        return gap

    def verify(self, problem: Problem, X: FloatArray, *, tol: float = 1e-6) -> Verification:
        """Check every row from outside of the kernels: its point, its cost and its bound.

        It is slow, a program or more per person and piece: meant for samples.

        Parameters
        ----------
        problem : Problem
            What was solved, over a :class:`Region`.
        X : array of shape (n, n_columns)
            The people who were projected, in the same order and without a cutoff.
        tol : float
            How much a claimed bound may be above the one from outside, relative to itself.

        Returns
        -------
        Verification
            For numbers without steps the bound is what Clarabel's dual vector proves, its residual accounted for; with
            steps, levels or rules it is the one of HiGHS, up to its tolerances.  Where a curved part meets steps or
            levels it may be loose: then a row that is right may stay unconfirmed, but it is not refuted.  Rows that
            are "failed" or "invalid" claim nothing, and nothing is asked about them.

        Examples
        --------
        >>> from dataclasses import replace
        >>> from evenhand.projection import project
        >>> from evenhand.sets import ConvexSet, Region
        >>> from evenhand.costs import L1
        >>> from evenhand.projection import Problem
        >>> corner = Region([ConvexSet(2, lower=[1.0, 2.0])])
        >>> people = np.array([[0.0, 0.0], [3.0, 3.0]])
        >>> problem, found = Problem.of_numbers(corner, L1()), project(people, corner)
        >>> found.verify(problem, people).ok
        array([ True,  True])
        >>> replace(found, cost=0.9 * found.cost).verify(problem, people).priced
        array([False,  True])
        """
        from evenhand.projection.verify import Claim, verify  # as few users need it

        return verify(Claim(self.points, self.cost, self.bound, self.status), problem, X, tol)


def judged(cost: FloatArray, bound: FloatArray, failed: BoolArray, size: FloatArray | None = None) -> StatusArray:
    """How queries ended: what was reached is optimal if the gap is next to nothing compared with its cost.

    `size`, if given, is the cost of the person itself: next to nothing compared with that is nothing as well.
    """
    reached = np.isfinite(cost)
    if reached.all() and not failed.any() and (cost - bound <= ACCURATE * cost).all():  # as it nearly always is
        return statuses(len(cost), Status.OPTIMAL)
    status = statuses(len(cost), Status.UNREACHABLE)
    status[failed] = Status.FAILED
    status[reached] = Status.INACCURATE
    with np.errstate(invalid="ignore"):
        gap = np.maximum(cost - bound, 0.0)
        accurate = gap <= ACCURATE * cost
        if size is not None:
            accurate |= gap <= NOTHING * size
    status[reached & accurate] = Status.OPTIMAL
    return status


def scattered(part: Projection, rows: BoolArray) -> Projection:
    """The answers of some rows in a table where all others are invalid."""
    n = len(rows)
    points = np.full((n, part.points.shape[1]), np.nan)
    cost, bound = np.full(n, np.nan), np.zeros(n)
    piece = np.full(n, -1)
    status = statuses(n, Status.INVALID)
    points[rows], cost[rows], bound[rows], piece[rows] = part.points, part.cost, part.bound, part.piece
    status[rows] = part.status
    nodes = None
    if part.nodes is not None:
        nodes = np.zeros(n, dtype=np.int64)
        nodes[rows] = part.nodes
    owed = None
    if part.owed is not None:
        owed = np.zeros(n)
        owed[rows] = part.owed
    return Projection(points, cost, bound, piece, status, nodes, owed)
