"""Onto convex sets over numbers, steps and levels: closed form where nothing is asked jointly, else a search."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.projection.levels.arrays import Columns, Density, Pieces, make_box_memory, make_memory
from evenhand.projection.levels.branch import PROVEN
from evenhand.projection.levels.closed import nearest_boxes, within_pieces
from evenhand.projection.levels.compiled import columns_of, kept_from_sides, parts_of, pieces_of, unit_of
from evenhand.projection.levels.table import search_mixed
from evenhand.projection.problem import Problem
from evenhand.projection.result import Projection, judged
from evenhand.projection.solver import Projector, register_solver
from evenhand.sets import Region
from evenhand.table.limits import DOWN, FIXED, UP
from evenhand.types import BoolArray, FloatArray, IntArray

ROWS = 1e-10  # what an answer keeps from a row at least: a search solves no more exactly than that
TIED = 1e-3  # a person who meets a row of smaller numbers exactly is on a boundary


class Guarded(NamedTuple):
    """Pieces that keep a distance from their sides, and the densities that they meet.

    Where nothing is asked jointly they are `boxes`, of which each has a closed form. Then the first pieces are as they
    are, and `inner` keeps the distance.
    """

    pieces: Pieces
    inner: Pieces
    density: Density
    boxes: bool


@register_solver
class LevelProjector(Projector):
    """Searches over levels and steps, with the numbers solved for exactly; the cost is a sum over columns."""

    rank: ClassVar[int] = 9
    guards: ClassVar[tuple[tuple[float, float], ...]] = tuple((g, 0.0) for g in (1e-14, 1e-12, ROWS, 1e-8, 1e-6, 1e-5))

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        columns = columns_of(problem)
        self.unit = unit_of(columns)  # of the search's costs, so that its tolerances mean the same whatever weights are
        columns = columns._replace(weight=columns.weight / self.unit, move=columns.move / self.unit)
        self.columns = Columns(*map(_plain, columns))
        self._parts = parts_of(problem.region.pieces)
        self._tables: dict[tuple[float, float], Guarded] = {}

    @classmethod
    def refusal(cls, problem: Problem) -> str:
        """Why a problem is not for a search over levels."""
        if not isinstance(problem.region, Region):
            return "its regions are unions of convex sets."
        if problem.cost.rates(problem.n_columns) is None:
            return 'its costs are sums over columns: "l1", L1(...) or Gower(schema).'
        n = len(problem.layout.numbers)
        for piece in problem.region.pieces:
            if len(piece.ellipsoids) > 1:
                return "a piece may have one ellipsoid at most."
            if any(part.matrix[:, n:].any() for part in piece.ellipsoids):
                return "an ellipsoid may be about numbers only."
        slopes = [part.slope for piece in problem.region.pieces for part in piece.ellipsoids if hasattr(part, "slope")]
        if any(slope[:n].any() or not np.array_equal(slope, slopes[0]) for slope in slopes):
            return "the slopes of paraboloids are about levels, and the same for all pieces."
        if len({len(piece.ellipsoids) for piece in problem.region.pieces}) > 1:
            return "either all pieces have a curved part, or none."
        return ""

    def _solve(self, X: FloatArray, guard: float, cutoff: FloatArray) -> Projection:
        layout, limits = self.problem.layout, self.problem.limits
        numbers, levels, values, own, anyway = self._split(X, guard)
        room = np.maximum(cutoff - anyway, 0.0) / self.unit
        to, new, cost, bound, proven, nodes = self._search(numbers, levels, own / self.unit, room, guard)
        cost, bound = cost * self.unit, bound * self.unit
        reached = np.isfinite(cost)
        points = X.copy()
        free = (limits.directions != FIXED)[layout.numbers]
        low, high = limits.lower[layout.numbers], limits.upper[layout.numbers]
        points[:, layout.numbers] = np.where(free, np.clip(to, low, high), to)
        for b, j in enumerate(layout.categories):
            points[:, j] = values[b][np.arange(len(X)), new[:, b]] if b in layout.bins else new[:, b]
        points[~reached] = np.nan
        bound = np.where(np.isfinite(bound), np.maximum(bound, 0.0) + anyway, np.inf)
        # Next to nothing compared with the person's own numbers is nothing.
        size = np.abs(numbers) @ (self.unit * self.columns.weight)
        status = judged(np.where(reached, cost + anyway, np.inf), bound, ~reached & ~proven, size)
        return Projection(points, np.where(reached, cost + anyway, np.nan), bound, np.full(len(X), -1), status, nodes)

    def _search(
        self, numbers: FloatArray, levels: IntArray, own: FloatArray, cutoff: FloatArray, guard: float
    ) -> tuple[FloatArray, IntArray, FloatArray, FloatArray, Any, IntArray]:
        """Numbers and levels of the cheapest answers, their costs, bounds, whether the search ended, and its nodes."""
        pieces, inner, density, boxes = self._at(guard)
        n = len(numbers)
        to, new = numbers.copy("C"), levels.copy("C")
        cost, bound = np.full(n, np.inf), np.full(n, np.inf)
        outcome, nodes = np.zeros(n, np.int64), np.zeros(n, np.int64)
        people = _plain(numbers), _plain(levels), _plain(own)
        if not len(pieces.lower) or not n:
            pass  # nobody is there, or nobody can be
        elif boxes:
            nearest_boxes(
                self.columns,
                pieces,
                inner,
                *people,
                _plain(cutoff),
                to,
                new,
                cost,
                bound,
                make_box_memory(self.columns, pieces),
            )
        else:
            curved = density if len(density.room) else None
            search_mixed(
                self.columns, pieces, curved, *people, max(guard, ROWS), int(self.problem.max_nodes), _plain(cutoff),
                to, new, cost, bound, outcome, nodes, make_memory(self.columns, pieces, density),
            )  # fmt: skip
        return to, new, cost, bound, outcome == PROVEN, nodes

    def within(self, X: FloatArray, guard: float) -> BoolArray | None:
        """Who is in the region; not told of numbers in bins, whose edges belong to one side, and of curved parts."""
        layout = self.problem.layout
        if layout.bins or self._parts.curved:
            return None
        pieces = self._at(guard, TIED).pieces
        found = np.zeros(len(X), dtype=bool)
        numbers, levels = _plain(X[:, layout.numbers]), _plain(layout.levels(X))
        within_pieces(self.columns, pieces, numbers, levels, guard, found)
        return found

    def _at(self, guard: float, least: float = 0.0) -> Guarded:
        """What the search reads, for a guard."""
        if (guard, least) not in self._tables:
            pieces, density = pieces_of(self.problem, self.columns, self._parts, max(guard, ROWS), least)
            boxes = not len(pieces.b) and not self._parts.curved and not len(self.columns.tied)
            inner = pieces
            if boxes and guard < ROWS:
                pieces, density = pieces_of(self.problem, self.columns, self._parts, 0.0)
                inner = kept_from_sides(self.problem, self.columns, pieces, guard)
            # One layout for all: for every other one numba would compile everything again.
            pieces, inner = Pieces(*map(_plain, pieces)), Pieces(*map(_plain, inner))
            self._tables[guard, least] = Guarded(pieces, inner, Density(*map(_plain, density)), boxes)
        return self._tables[guard, least]

    def _split(
        self, X: FloatArray, guard: float
    ) -> tuple[FloatArray, IntArray, dict[int, FloatArray], FloatArray, FloatArray]:
        """Numbers, levels, and for binned numbers the nearest value in every bin, and what it costs.

        What it costs to stay in a bin, because its value is out of bounds, has to be paid anyway and comes last.
        """
        layout = self.problem.layout
        numbers = np.ascontiguousarray(X[:, layout.numbers])
        levels = layout.levels(X)
        own = np.full((len(X), layout.start[-1] if layout.bins else 0), -1.0)  # empty rows where there are no bins
        values, anyway = {}, np.zeros(len(X))
        rates = self.problem.cost.rates(layout.n_columns)
        for b, edges in layout.bins.items():
            j = int(layout.categories[b])
            values[b] = self._into_bins(edges, j, X[:, j], guard)
            cost = rates[j] * np.abs(values[b] - X[:, [j]])
            cost = np.where(np.isnan(cost), np.inf, cost)
            stay = cost[np.arange(len(X)), levels[:, b]]
            stay = np.where(np.isfinite(stay), stay, 0.0)
            anyway += stay
            own[:, layout.start[b] : layout.start[b + 1]] = cost - stay[:, None]
        return numbers, levels, values, own, anyway

    def _into_bins(self, edges: FloatArray, j: int, x: FloatArray, guard: float) -> FloatArray:
        """The value in each bin that is nearest to each person; NaN where there is none that may be taken."""
        limits = self.problem.limits
        low, high = edges[:-1].copy(), edges[1:].copy()
        low[0], high[-1] = -np.inf, np.inf  # a discretizer takes what is beyond for the outermost bin
        # A bin begins at its lower edge and ends before the next one: first at the last number there is.
        inner = np.spacing(np.abs(edges[1:])) if guard <= self.guards[0][0] else guard * np.abs(edges[1:])
        step = 0.0 if limits.step is None else limits.step[j]
        low = np.maximum(low, limits.lower[j])
        high = np.minimum(high - np.where(np.isfinite(high), inner, 0.0), limits.upper[j])
        if step:
            up = x[:, None] + step * np.ceil((low[None] - x[:, None]) / step)
            down = x[:, None] - step * np.ceil((x[:, None] - high[None]) / step)
            up, down = up + step * (up < low), down - step * (down > high)  # a quotient is rounded
            value = np.where(x[:, None] < low, up, np.where(x[:, None] > high, down, x[:, None]))
        else:
            value = np.clip(x[:, None], low, high)
        way = limits.directions[j]
        bad = (value < low) | (value > high)
        if way == FIXED:
            value, bad = np.repeat(x[:, None], len(low), axis=1), np.zeros(bad.shape, dtype=bool)
        elif way in (UP, DOWN):
            bad |= value < x[:, None] if way == UP else value > x[:, None]
        return np.where(bad, np.nan, value)


def _plain(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.require(array, requirements=["C", "W"])
