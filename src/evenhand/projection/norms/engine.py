"""A region compiled for a cost: the kernels first, repairs where they are needed."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evenhand.costs import L1, L2
from evenhand.projection.boxes import nearest_box
from evenhand.projection.memory import Room
from evenhand.projection.norms.arrays import Boxes
from evenhand.projection.norms.compiled import compile_region
from evenhand.projection.norms.curved import curved_memory
from evenhand.projection.norms.instance import Answer, inside, instance
from evenhand.projection.norms.library import by_library
from evenhand.projection.norms.pivot import pivot_work
from evenhand.projection.norms.polyhedra import nearest_polyhedron_l1, nearest_polyhedron_l2
from evenhand.projection.norms.query import FOUND, TIE, TIED, UNRESOLVED, query_memory
from evenhand.projection.norms.repair import canonical, first
from evenhand.projection.norms.search import nearest_piece_l1, nearest_piece_l2
from evenhand.projection.norms.simplex import FAILED, INFEASIBLE, OPTIMAL, simplex_work
from evenhand.projection.norms.written import write_points
from evenhand.projection.problem import Problem
from evenhand.projection.result import Projection, judged
from evenhand.projection.solver import GUARD, Projector, register_solver
from evenhand.sets import ConvexSet, Paraboloid, Region
from evenhand.status import ACCURATE
from evenhand.types import FloatArray


@dataclass
class _Found:
    """Answers for a chunk of queries, as the kernels write them."""

    points: FloatArray
    cost: FloatArray
    bound: FloatArray
    piece: npt.NDArray[np.int64]
    owed: FloatArray
    failed: npt.NDArray[np.bool_]


@register_solver
class NormProjector(Projector):
    """Onto convex sets over numbers, in a norm: closed form for boxes, kernels for everything else."""

    # The last two keep an absolute distance, for people at the very origin, where all numbers that meet are zero.
    guards: ClassVar[tuple[tuple[float, float], ...]] = (*Projector.guards, (GUARD, 1e-9), (GUARD, 1e-6))
    convex: ClassVar[bool] = True
    rank: ClassVar[int] = 0

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        limits = problem.limits
        self.dim = problem.region.dim
        self.cost = problem.cost
        within = ConvexSet(self.dim, limits.lower, limits.upper)
        self.compiled = compile_region(problem.region, self.cost, limits.directions, within)
        self._kept = threading.local()  # every thread works in memory of its own

    @classmethod
    def refusal(cls, problem: Problem) -> str:
        """Why a problem is not for norms."""
        if not isinstance(problem.region, Region):
            return "its regions are unions of convex sets."
        if not isinstance(problem.cost, L1 | L2):
            return 'its costs are norms, "l1", "l2", L1(...) or L2(...).'
        if len(problem.layout.categories) or problem.limits.stepped:
            return "it takes numbers that may have any value; steps, levels and rules need a cost that is a sum."
        if any(isinstance(part, Paraboloid) for piece in problem.region.pieces for part in piece.ellipsoids):
            return "it takes ellipsoids, and no density over levels."
        return ""

    def _solve(self, X: FloatArray, guard: float, cutoff: FloatArray) -> Projection:
        boxes = self.compiled.boxes
        found = self._general(X, guard, cutoff) if boxes is None else self._boxes(boxes, X, guard, cutoff)
        points, cost, bound = found.points, found.cost, found.bound
        reached = np.isfinite(cost)
        # Next to nothing compared with the person's own size is nothing.
        sure = cost[reached] - bound[reached] <= ACCURATE * cost[reached]
        size = None if sure.all() else self.cost(X, np.zeros(self.dim))
        status = judged(cost, bound, found.failed, size)
        known = self.compiled.index
        if reached.all():
            return Projection(points, cost, bound, known[found.piece], status, owed=found.owed)
        points[~reached] = np.nan
        piece = np.where(reached, known[found.piece] if len(known) else -1, -1)
        bound = np.where(reached, bound, np.where(found.failed, 0.0, np.inf))
        return Projection(points, np.where(reached, cost, np.nan), bound, piece, status, owed=found.owed)

    def before(self, a: FloatArray, b: FloatArray) -> bool:
        """Which of two equally costly changes comes first: as the kernels decide it."""
        return bool(self.cost.before(a, b))

    def _boxes(self, boxes: Boxes, X: FloatArray, guard: float, cutoff: FloatArray) -> _Found:
        n = len(X)
        points, cost = np.empty_like(X), np.empty(n)
        piece, outcome = np.empty(n, np.int64), np.empty(n, np.int64)
        bound = np.empty(n)
        nearest_box(boxes, X, guard, cutoff, points, cost, bound, piece, outcome)
        owed = np.subtract(cost, bound, out=np.zeros(n), where=np.isfinite(cost))
        return _Found(points, cost, bound, piece, owed, np.zeros(n, dtype=bool))

    def _general(self, X: FloatArray, guard: float, cutoff: FloatArray) -> _Found:
        n, free = len(X), self.compiled.free
        if not len(free) or not len(self.compiled.index):
            return self._nobody_moves(X)
        xi, _, cost, bound, piece, outcome, _, owed = self._kernel(X, guard, cutoff)
        failed = np.zeros(n, dtype=bool)
        for q in np.flatnonzero((outcome == TIED) | (outcome == UNRESOLVED)):
            failed[q], xi[q], cost[q], bound[q], piece[q] = self._repair(X[q], guard, cutoff[q])
            owed[q] = 0.0  # not known
        return _Found(self._points(X, xi, cost), cost, bound, piece, owed, failed)

    def _points(self, X: FloatArray, xi: FloatArray, cost: FloatArray) -> FloatArray:
        """The points that changes lead to; what they cost goes into `cost`."""
        scale, free, limits = self.compiled.scale, self.compiled.free, self.problem.limits
        if scale is not None and not limits.any:
            points = np.empty(X.shape)
            write_points(self.cost.order, X, xi, scale, 1.0 / scale, points, cost)
            return points
        points = X.copy()
        points[:, free] += self.compiled.changes(xi, out=xi)
        reached = np.isfinite(cost)
        if limits.any:
            points[reached] = limits.snap(points[reached], X[reached])
        cost[reached] = self.cost.price(X[reached], points[reached])
        return points

    def _nobody_moves(self, X: FloatArray) -> _Found:
        """Nothing may change, or there is no piece: a query is its own answer, or has none."""
        piece = np.full(len(X), -1)
        for q, x in enumerate(X):
            for k in reversed(range(len(self.compiled.index))):
                if inside(instance(self.compiled, k, x, 0.0)):
                    piece[q] = k
        cost = np.where(piece >= 0, 0.0, np.inf)
        return _Found(X.copy(), cost, cost.copy(), piece, np.zeros(len(X)), np.zeros(len(X), dtype=bool))

    def _kernel(
        self, X: FloatArray, guard: float, cutoff: FloatArray, only: int = -1, rows: int = 0
    ) -> tuple[
        FloatArray,
        FloatArray,
        FloatArray,
        FloatArray,
        npt.NDArray[np.int64],
        npt.NDArray[np.int64],
        FloatArray,
        FloatArray,
    ]:
        n, t, c, memory = len(X), self.compiled.rows, self.compiled.curves, self._memory()
        xi, mult = np.zeros((n, len(self.compiled.free))), np.zeros((n, rows))
        weight, cost, bound, owed = np.zeros(n), np.empty(n), np.empty(n), np.empty(n)
        piece, outcome = np.empty(n, np.int64), np.empty(n, np.int64)
        l1 = self.cost.order == 1
        if c is None:
            search = nearest_polyhedron_l1 if l1 else nearest_polyhedron_l2
            search(t, X, guard, cutoff, only, memory, xi, mult, cost, bound, piece, outcome, owed)
        else:
            nearest = nearest_piece_l1 if l1 else nearest_piece_l2
            nearest(t, c, X, guard, cutoff, only, memory, xi, mult, weight, cost, bound, piece, outcome, owed)
        return xi, weight, cost, bound, piece, outcome, mult, owed

    def _memory(self) -> Any:
        """What the kernels work in: of one call a few hundred people long, making it would take a tenth."""
        if not hasattr(self._kept, "memory"):
            t, c = self.compiled.rows, self.compiled.curves
            work = simplex_work if self.cost.order == 1 else pivot_work
            made = (
                query_memory(Room(), t, len(self.compiled.index), work)
                if c is None
                else curved_memory(Room(), t, c, work)
            )
            self._kept.memory = made
        return self._kept.memory

    def solve_piece(self, piece: int, X: FloatArray, guard: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """Cost and proven bound of one compiled piece for every query, by the kernels alone."""
        _, _, cost, bound, _, _, _, _ = self._kernel(X, guard, np.full(len(X), np.inf), only=piece)
        return cost, bound

    def _one(self, piece: int, x: FloatArray, guard: float) -> Answer:
        """One query and one piece: by the kernels, else by the library."""
        own = self.compiled.polyhedron(piece)
        rows = own.stop - own.start
        part = instance(self.compiled, piece, x, guard)
        xi, weight, cost, bound, _, outcome, mult, _ = self._kernel(
            x[None], guard, np.full(1, np.inf), only=piece, rows=rows
        )
        if outcome[0] in (FOUND, TIED):
            balls = tuple(weight[0] * (R @ xi[0] - g) for R, g, _ in part.balls)
            return Answer(OPTIMAL, xi[0], float(cost[0]), float(bound[0]), mult[0], balls, outcome[0] == FOUND)
        if outcome[0] == UNRESOLVED:
            return by_library(part, instance(self.compiled, piece, x, 0.0, loose=True))
        return Answer(INFEASIBLE, xi[0], np.inf, np.inf, mult[0])

    def _repair(self, x: FloatArray, guard: float, cutoff: float) -> tuple[bool, FloatArray, float, float, int]:
        """All pieces for one query, the careful way: failed, xi, cost, bound, piece."""
        candidates: list[tuple[int, FloatArray, float]] = []
        bound, missing = np.inf, np.inf
        for piece in range(len(self.compiled.index)):
            answer = self._one(piece, x, guard)
            if answer.status == OPTIMAL:
                # A unique point stays as the kernels found it: it is the same, to the last bit, without a repair.
                xi = answer.xi if answer.unique else canonical(instance(self.compiled, piece, x, guard), answer)
                candidates.append((piece, xi, answer.cost))
                bound = min(bound, answer.bound)
            elif answer.status == FAILED:
                missing = min(missing, answer.bound)
        usable = [c for c in candidates if c[2] <= cutoff * (1 + TIE)]
        if not usable:
            return (
                bool(missing <= cutoff * (1 + TIE)) and bool(np.isfinite(missing)),
                np.full(len(self.compiled.free), np.nan),
                np.inf,
                np.inf,
                -1,
            )
        piece, xi, cost = first(self.compiled, usable)
        return False, xi, cost, min(bound, missing, cost), piece
