"""Onto convex sets over numbers, steps and levels: closed form where nothing is asked jointly, else a search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.projection.levels.arrays import Columns, Denied, Density, Pieces, make_box_memory, make_memory
from evenhand.projection.levels.branch import PROVEN
from evenhand.projection.levels.closed import nearest_boxes, within_pieces
from evenhand.projection.levels.compiled import columns_of, kept_from_sides, parts_of, pieces_of, scaled, unit_of
from evenhand.projection.levels.table import search_mixed
from evenhand.projection.problem import Problem
from evenhand.projection.result import Projection, judged
from evenhand.projection.solver import Projector, register_solver
from evenhand.sets import Region
from evenhand.status import Status
from evenhand.table.limits import DOWN, FIXED, UP
from evenhand.types import BoolArray, FloatArray, IntArray

TIED = 1e-3  # a person who meets a row of smaller numbers exactly is on a boundary


SMALL = 1e-10  # between sides that keep less, no piece is thinner than rounding
SPOILT = 1e-6  # relative to a cost, a bound that is further above it proves nothing
FIRST = 1e-13  # what is told at first keeps that much from a row, and the search nothing


class Guarded(NamedTuple):
    """Pieces that keep a distance from their sides, and the densities that they meet.

    Where nothing is asked jointly they are `boxes`, of which each has a closed form. Then the first pieces are as they
    are, and `inner` keeps the distance.
    """

    pieces: Pieces
    inner: Pieces
    density: Density
    boxes: bool


class _People(NamedTuple):
    """People as the search reads them."""

    numbers: FloatArray
    levels: IntArray
    own: FloatArray  # what each level of a binned number costs them
    cutoff: FloatArray
    denied: Denied

    def part(self, rows: npt.NDArray[np.intp] | slice) -> _People:
        """Some of them."""
        numbers, levels, own, cutoff, (x, level) = self
        return _People(
            _plain(numbers[rows]),
            _plain(levels[rows]),
            _plain(own[rows]),
            _plain(cutoff[rows]),
            Denied(_plain(x[rows]), _plain(level[rows])),
        )


@register_solver
class LevelProjector(Projector):
    """Searches over levels and steps, with the numbers solved for exactly; the cost is a sum over columns."""

    rank: ClassVar[int] = 9
    guards: ClassVar[tuple[tuple[float, float], ...]] = tuple(
        (g, 0.0) for g in (FIRST, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-6, 1e-5)
    )

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        columns = columns_of(problem)
        self.unit = unit_of(columns)  # of the search's costs, so that its tolerances mean the same whatever weights are
        columns = columns._replace(
            weight=columns.weight / self.unit,
            move=columns.move / self.unit,
            scale=np.where(columns.step > 0, columns.step, self.unit / columns.weight),
        )
        self._parts = parts_of(problem.region.pieces)
        pieces, density = pieces_of(problem, columns, self._parts, 0.0)
        self._joint = len(pieces.b) > 0
        columns = scaled(columns, pieces, density)
        self.columns = Columns(*map(_plain, columns))
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
        return self._found(X, guard, cutoff, np.zeros((len(X), 0, X.shape[1])))

    def single(self, X: FloatArray) -> BoolArray:
        """Which points are alone: where a number may take any value, a little of it leads off a boundary."""
        smooth = (self.columns.step == 0) & (self.columns.up | self.columns.down)
        return np.full(len(X), not smooth.any() and not self._at(FIRST).boxes)

    def apart(self, X: FloatArray, denied: FloatArray, cutoff: FloatArray) -> Projection:
        """The cheapest points other than some that were denied."""
        return self._found(X, FIRST, cutoff, denied)

    def _found(self, X: FloatArray, guard: float, cutoff: FloatArray, denied: FloatArray) -> Projection:
        layout, limits = self.problem.layout, self.problem.limits
        numbers, levels, values, own, anyway = self._split(X, guard)
        room = np.maximum(cutoff - anyway, 0.0) / self.unit
        people = _People(numbers, levels, own / self.unit, room, self._denied(denied))
        to, new = numbers.copy("C"), levels.copy("C")
        cost, bound = np.full(len(X), np.inf), np.full(len(X), np.inf)
        proven, nodes = np.zeros(len(X), dtype=bool), np.zeros(len(X), dtype=np.int64)
        for rows, columns in self._alike(X, levels, values):
            answers = self._search(columns, people.part(rows), guard)
            to[rows], new[rows], cost[rows], bound[rows], proven[rows], nodes[rows] = answers
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
        price = np.full(len(X), np.nan)  # what is returned is rounded: its cost is not quite that of the search
        price[reached] = self.problem.cost.price(X[reached], points[reached])
        spoilt = bound > price * (1.0 + SPOILT)  # a bound above what there is has been lost to rounding
        bound[spoilt], status[spoilt] = 0.0, Status.INACCURATE
        return Projection(points, price, bound, np.full(len(X), -1), status, nodes)

    def _alike(
        self, X: FloatArray, levels: IntArray, values: dict[int, FloatArray]
    ) -> Iterator[tuple[npt.NDArray[np.intp] | slice, Columns]]:
        """People to whom the same columns apply.

        A binned number that is out of its bounds moves although it stays in its bin: whatever has to stay as it is does
        not then, so the variants that hold it are not theirs.
        """
        if not (self.problem.limits.either and values):
            yield slice(None), self.columns
            return
        moved = np.zeros(levels.shape, dtype=bool)
        for b, value in values.items():
            moved[:, b] = value[np.arange(len(X)), levels[:, b]] != X[:, self.problem.layout.categories[b]]
        for pattern in np.unique(moved, axis=0):
            kept = ~self.columns.held_levels[:, pattern].any(axis=1)
            columns = self.columns._replace(
                held=_plain(self.columns.held[kept]), held_levels=_plain(self.columns.held_levels[kept])
            )
            yield np.flatnonzero((moved == pattern).all(axis=1)), columns

    def _search(
        self, columns: Columns, people: _People, guard: float
    ) -> tuple[FloatArray, IntArray, FloatArray, FloatArray, BoolArray, IntArray]:
        """Numbers and levels of the cheapest answers, their costs, bounds, whether the search ended, and its nodes."""
        pieces, inner, density, boxes = self._at(guard)
        numbers, levels, own, cutoff, denied = people
        n = len(numbers)
        to, new = numbers.copy("C"), levels.copy("C")
        cost, bound = np.full(n, np.inf), np.full(n, np.inf)
        outcome, nodes = np.zeros(n, np.int64), np.zeros(n, np.int64)
        if not len(pieces.lower) or not n:
            pass  # nobody is there, or nobody can be
        elif boxes:
            nearest_boxes(
                columns,
                pieces,
                inner,
                numbers,
                levels,
                own,
                cutoff,
                to,
                new,
                cost,
                bound,
                make_box_memory(columns, pieces),
            )
        else:
            curved = density if len(density.room) else None
            kept = 0.0 if guard <= FIRST else guard
            search_mixed(
                columns, pieces, inner, curved, numbers, levels, own, kept, min(guard, FIRST),
                int(self.problem.max_nodes), cutoff, denied, to, new, cost, bound, outcome, nodes,
                make_memory(columns, pieces, density),
            )  # fmt: skip
        return to, new, cost, bound, outcome == PROVEN, nodes

    def _denied(self, points: FloatArray) -> Denied:
        """Points of every person, as numbers and levels."""
        layout = self.problem.layout
        each = points.reshape(-1, points.shape[2])
        numbers = each[:, layout.numbers].reshape(*points.shape[:2], len(layout.numbers))
        return Denied(_plain(numbers), _plain(layout.levels(each).reshape(*points.shape[:2], len(layout.categories))))

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
            boxes = not self._joint and not self._parts.curved and not len(self.columns.tied)
            kept = guard <= FIRST or (boxes and guard < SMALL)
            pieces, density = pieces_of(self.problem, self.columns, self._parts, 0.0 if kept else guard, least)
            inner = kept_from_sides(self.problem, self.columns, pieces, guard) if kept else pieces
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
