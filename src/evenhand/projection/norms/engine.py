"""A region compiled for a cost: the kernels first, repairs where they are needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.costs import Cost, as_cost
from evenhand.projection.boxes import nearest_box
from evenhand.projection.norms.compiled import Boxes, compile_region
from evenhand.projection.norms.pieces import TIE
from evenhand.projection.norms.repair import Answer, by_library, canonical, first, inside, instance
from evenhand.projection.norms.search import FOUND, TIED, UNRESOLVED, search_table
from evenhand.projection.norms.simplex import FAILED, INFEASIBLE, OPTIMAL
from evenhand.projection.result import Projection
from evenhand.sets import ConvexSet, Region
from evenhand.status import ACCURATE, Status, statuses
from evenhand.table.limits import Limits
from evenhand.types import FloatArray

TOO_LARGE = 1e100  # past this squares overflow; NaN and infinity are not below it either


@dataclass
class _Found:
    """Answers for a chunk of queries, as the kernels write them."""

    points: FloatArray
    cost: FloatArray
    bound: FloatArray
    piece: npt.NDArray[np.int64]
    failed: npt.NDArray[np.bool_]


class Projector:
    """A region compiled for one cost; projects as many tables as you like.

    Parameters
    ----------
    region : Region
        Where to project.
    cost : L1, L2, "l1" or "l2"
        What to minimise.
    limits : Limits, optional
        What may change; everything if left out.
    """

    def __init__(
        self,
        region: Region,
        cost: Cost | str = "l1",
        limits: Limits | None = None,
    ) -> None:
        self.dim = region.dim
        self.cost = as_cost(cost)
        ways = np.ones(region.dim, dtype=np.int64) if limits is None else limits.directions
        within = None if limits is None else ConvexSet(region.dim, limits.lower, limits.upper)
        self.problem = compile_region(region, self.cost, ways, within)

    def project(self, X: FloatArray, guard: float = 0.0, cutoff: FloatArray | None = None) -> Projection:
        """Project one chunk.

        Parameters
        ----------
        X : array of shape (n, dim)
            Queries.
        guard : float
            Relative distance kept from every constraint, so that rounding cannot cross it.
        cutoff : array of shape (n,), optional
            Costs above which an answer is of no use; such rows come back as unreachable.
        """
        X = np.ascontiguousarray(X, dtype=np.float64)
        finite: npt.NDArray[np.bool_] = np.asarray((np.abs(X) < TOO_LARGE).all(axis=1))
        limit = np.full(len(X), np.inf) if cutoff is None else np.asarray(cutoff, dtype=np.float64)
        if not finite.all():
            return _scatter(self.project(X[finite], guard, limit[finite]), finite)
        boxes = self.problem.boxes
        found = self._general(X, guard, limit) if boxes is None else self._boxes(boxes, X, guard, limit)
        reached = np.isfinite(found.cost)
        gap = np.full(len(X), np.nan)
        gap[reached] = np.maximum(found.cost[reached] - found.bound[reached], 0.0)
        status = statuses(len(X), Status.UNREACHABLE)
        status[found.failed] = Status.FAILED
        status[reached] = Status.INACCURATE
        accurate = gap <= ACCURATE * found.cost
        if not accurate[reached].all():  # next to nothing compared with the person's own size is nothing
            accurate |= gap <= 1e-12 * self.cost(X, np.zeros(self.dim))
        status[reached & accurate] = Status.OPTIMAL
        found.points[~reached] = np.nan
        known = self.problem.index
        piece = np.where(reached, known[found.piece] if len(known) else -1, -1)
        return Projection(found.points, np.where(reached, found.cost, np.nan), gap, piece, status)

    def _boxes(self, boxes: Boxes, X: FloatArray, guard: float, cutoff: FloatArray) -> _Found:
        n = len(X)
        points, cost = np.empty_like(X), np.empty(n)
        piece, outcome = np.empty(n, np.int64), np.empty(n, np.int64)
        nearest_box(boxes, X, guard, cutoff, points, cost, piece, outcome)
        return _Found(points, cost, cost, piece, np.zeros(n, dtype=bool))

    def _general(self, X: FloatArray, guard: float, cutoff: FloatArray) -> _Found:
        n, free = len(X), self.problem.free
        if not len(free) or not len(self.problem.index):
            return self._nobody_moves(X)
        xi, _, cost, bound, piece, outcome, _ = self._kernel(X, guard, cutoff)
        failed = np.zeros(n, dtype=bool)
        for q in np.flatnonzero((outcome == TIED) | (outcome == UNRESOLVED)):
            failed[q], xi[q], cost[q], bound[q], piece[q] = self._repair(X[q], guard, cutoff[q])
        change = self.problem.changes(xi)
        if len(free) == self.dim:
            points = X + change
        else:
            points = X.copy()
            points[:, free] += change
        return _Found(points, cost, bound, piece, failed)

    def _nobody_moves(self, X: FloatArray) -> _Found:
        """Nothing may change, or there is no piece: a query is its own answer, or has none."""
        piece = np.full(len(X), -1)
        for q, x in enumerate(X):
            for k in reversed(range(len(self.problem.index))):
                if inside(instance(self.problem, k, x, 0.0)):
                    piece[q] = k
        cost = np.where(piece >= 0, 0.0, np.inf)
        return _Found(X.copy(), cost, cost, piece, np.zeros(len(X), dtype=bool))

    def _kernel(
        self, X: FloatArray, guard: float, cutoff: FloatArray, only: int = -1, rows: int = 0
    ) -> tuple[
        FloatArray, FloatArray, FloatArray, FloatArray, npt.NDArray[np.int64], npt.NDArray[np.int64], FloatArray
    ]:
        n = len(X)
        xi, mult = np.zeros((n, len(self.problem.free))), np.zeros((n, rows))
        weight, cost, bound = np.empty(n), np.empty(n), np.empty(n)
        piece, outcome = np.empty(n, np.int64), np.empty(n, np.int64)
        search_table(self.problem.tables, X, guard, cutoff, only, xi, mult, weight, cost, bound, piece, outcome)
        return xi, weight, cost, bound, piece, outcome, mult

    def solve_piece(self, piece: int, X: FloatArray, guard: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """Cost and proven bound of one compiled piece for every query, by the kernels alone."""
        _, _, cost, bound, _, _, _ = self._kernel(X, guard, np.full(len(X), np.inf), only=piece)
        return cost, bound

    def _one(self, piece: int, x: FloatArray, guard: float) -> Answer:
        """One query and one piece: by the kernels, else by the library."""
        t = self.problem.tables
        p = int(t.piece_poly[piece])
        rows = int(t.row_start[p + 1] - t.row_start[p])
        part = instance(self.problem, piece, x, guard)
        xi, weight, cost, bound, _, outcome, mult = self._kernel(
            x[None], guard, np.full(1, np.inf), only=piece, rows=rows
        )
        if outcome[0] in (FOUND, TIED):
            balls = tuple(weight[0] * (R @ xi[0] - g) for R, g, _ in part.balls)
            return Answer(OPTIMAL, xi[0], float(cost[0]), float(bound[0]), mult[0], balls, outcome[0] == FOUND)
        if outcome[0] == UNRESOLVED:
            return by_library(part)
        return Answer(INFEASIBLE, xi[0], np.inf, np.inf, mult[0])

    def _repair(self, x: FloatArray, guard: float, cutoff: float) -> tuple[bool, FloatArray, float, float, int]:
        """All pieces for one query, the careful way: failed, xi, cost, bound, piece."""
        candidates: list[tuple[int, FloatArray, float]] = []
        bound, missing = np.inf, np.inf
        for piece in range(len(self.problem.index)):
            answer = self._one(piece, x, guard)
            if answer.status == OPTIMAL:
                # A unique point stays as the kernels found it: it is the same, to the last bit, without a repair.
                xi = answer.xi if answer.unique else canonical(instance(self.problem, piece, x, guard), answer)
                candidates.append((piece, xi, answer.cost))
                bound = min(bound, answer.bound)
            elif answer.status == FAILED:
                missing = min(missing, answer.bound)
        usable = [c for c in candidates if c[2] <= cutoff * (1 + TIE)]
        if not usable:
            return (
                bool(missing <= cutoff * (1 + TIE)) and bool(np.isfinite(missing)),
                np.full(len(self.problem.free), np.nan),
                np.inf,
                np.inf,
                -1,
            )
        piece, xi, cost = first(self.problem, usable)
        return False, xi, cost, min(bound, missing, cost), piece


def _scatter(part: Projection, rows: npt.NDArray[np.bool_]) -> Projection:
    """The answers of some rows in a table where all others are invalid."""
    n = len(rows)
    points = np.full((n, part.points.shape[1]), np.nan)
    cost, gap = np.full(n, np.nan), np.full(n, np.nan)
    piece = np.full(n, -1)
    status = statuses(n, Status.INVALID)
    points[rows], cost[rows], gap[rows], piece[rows], status[rows] = (
        part.points,
        part.cost,
        part.gap,
        part.piece,
        part.status,
    )
    return Projection(points, cost, gap, piece, status)
