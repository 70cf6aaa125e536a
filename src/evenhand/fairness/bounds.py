"""Lower bounds of distances: of leaves by their boxes, of people by sums in whole steps or by one product."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evenhand.costs import L1, L2, Gower
from evenhand.stats import IntArray
from evenhand.types import FloatArray

Bounds: TypeAlias = npt.NDArray[Any]
Measure: TypeAlias = L1 | L2 | Gower

STEPS = 32_000  # of a number, so that sums over columns fit into 16 bits
LARGE = 512  # levels of all columns together; beyond it a look-up is faster than a product with indicators


@dataclass(frozen=True, eq=False)
class Space:
    """People as points, whose distance is a sum or the root of a sum of squares, plus tables of levels."""

    order: int
    points: FloatArray
    size: FloatArray  # of the numbers that rounding errors are a part of
    codes: npt.NDArray[np.intp]
    tables: tuple[FloatArray, ...]

    @cached_property
    def axes(self) -> FloatArray:
        """Further coordinates in which nobody is farther apart than they are: along the directions of most variance.

        Where columns go together, people differ more in these than in any single column. A sum with signs changes by
        no more than the sum of absolute changes, a rotation keeps Euclidean distances.
        """
        centred = self.points - self.points.mean(axis=0)
        directions = np.linalg.eigh(centred.T @ centred)[1]
        if self.order == 1:
            directions = np.where(directions < 0, -1.0, 1.0)
        found: FloatArray = centred @ directions
        return found


def embed(rows: FloatArray, distance: Measure) -> Space:
    """Place people so that their distance is that of the points and levels."""
    n, dim = rows.shape
    none = np.zeros((n, 0), dtype=np.intp)
    if isinstance(distance, Gower):
        columns = list(distance.schema.columns.values())
        ranked = [c.is_number or (c.kind == "ordered" and c.costs is None and None not in c.levels) for c in columns]
        points = rows[:, ranked] * [c.weight for c, plain in zip(columns, ranked, strict=True) if plain]
        tables = tuple(c.distances[:-1, :-1] for c, plain in zip(columns, ranked, strict=True) if not plain)
        codes = rows[:, ~np.array(ranked)].astype(np.intp)
        return Space(1, points, np.abs(points).sum(axis=1), codes, tables)
    frame = distance.frame(dim, np.arange(dim))
    if isinstance(distance, L1):
        points = rows / frame
        return Space(1, points, np.abs(points).sum(axis=1), none, ())
    inverse = np.diag(1.0 / frame) if frame.ndim == 1 else np.linalg.inv(frame)
    centred = rows - rows.mean(axis=0)
    size = np.linalg.norm(np.abs(centred) @ np.abs(inverse).T, axis=1)
    return Space(2, centred @ inverse.T, size, none, ())


class Boxes:
    """The ranges and the levels of each leaf."""

    def __init__(self, space: Space, spans: list[slice]) -> None:
        self.order, self.tables = space.order, space.tables
        self.width = space.points.shape[1]
        both = np.hstack([space.points, space.axes])
        self.low = np.array([both[span].min(axis=0) for span in spans])
        self.high = np.array([both[span].max(axis=0) for span in spans])
        self.levels = [
            np.array([np.bincount(codes[span], minlength=len(table)) > 0 for span in spans])
            for codes, table in zip(space.codes.T, space.tables, strict=True)
        ]

    def gaps(self, leaf: int) -> FloatArray:
        """How far each leaf is from this one, at least."""
        apart = np.maximum(np.maximum(self.low - self.high[leaf], self.low[leaf] - self.high), 0.0)
        columns, axes = apart[:, : self.width], apart[:, self.width :]
        total: FloatArray = (
            np.maximum(columns.sum(axis=1), axes.max(axis=1, initial=0.0))
            if self.order == 1
            else np.maximum(np.linalg.norm(columns, axis=1), np.linalg.norm(axes, axis=1))
        )
        for table, there in zip(self.tables, self.levels, strict=True):
            total = total + np.where(there, table[there[leaf]].min(axis=0), np.inf).min(axis=1)
        return total


class Sums:
    """Lower bounds of sums of differences, in whole steps.

    Half the distance is ``sum of max(a, b) - (sum of a + sum of b) / 2``: two operations per pair and column instead of
    three, on 16 bits. What depends on levels is a product of their indicators. Cutting off the tails of a column brings
    nobody farther apart, so bounds stay bounds, and the steps are small.
    """

    def __init__(self, space: Space) -> None:
        points = space.points
        low, high = (np.quantile(points, q, axis=0, method="nearest") for q in (0.001, 0.999))
        most = sum(float(table.max()) for table in space.tables)
        room = float((high - low).sum()) + most
        self.width = points.shape[1]
        self.step = room / max(STEPS - self.width, STEPS // 2) or 1.0
        steps = np.rint((np.clip(points, low, high) - low) / self.step).astype(np.int16)
        self.columns = np.ascontiguousarray(steps.T)
        half = steps.sum(axis=1, dtype=np.float64) / 2
        stops = np.cumsum([len(table) for table in space.tables], dtype=np.int64)
        small = int((stops <= LARGE).sum())
        total = int(stops[small - 1]) if small else 0
        self.places = space.codes[:, :small] + np.concatenate([[0], stops])[:small].astype(np.intp)
        self.costs = np.zeros((total, total), dtype=np.float32)
        for table, stop in zip(space.tables[:small], stops, strict=False):
            self.costs[stop - len(table) : stop, stop - len(table) : stop] = table / (2 * self.step)
        self.marks = np.zeros((total + 2, len(points)), dtype=np.float32)
        self.marks[self.places.T, np.arange(len(points))] = 1.0
        self.marks[total], self.marks[total + 1] = 1.0, -half
        self.codes = space.codes[:, small:]
        self.tables = [(table / (2 * self.step)).astype(np.float32) for table in space.tables[small:]]

    def gather(self, others: IntArray) -> tuple[Bounds, ...]:
        """What is needed of people to whom many are compared."""
        # take, because an index would return rows that are not contiguous
        return self.marks.take(others, axis=1), self.columns.take(others, axis=1), *self.codes[others].T

    def table(self, rows: IntArray, columns: tuple[Bounds, ...]) -> Bounds:
        """From each of the rows to each of those gathered."""
        marks, theirs, *codes = columns
        ones = np.ones(len(rows), dtype=np.float32)
        total = np.column_stack([self.costs[self.places[rows]].sum(axis=1), self.marks[-1, rows], ones]) @ marks
        for mine, other, table in zip(self.codes[rows].T, codes, self.tables, strict=True):
            total += table[mine][:, other]
        found = total.astype(np.int16)
        larger = np.empty_like(found)
        for left, right in zip(self.columns[:, rows, np.newaxis], theirs, strict=True):
            np.maximum(left, right, out=larger)
            np.add(found, larger, out=found)
        return found

    def limits(self, _: IntArray, reach: FloatArray) -> Bounds:
        """Whoever is within reach has no larger bound: rounding is half a step per column and side."""
        steps = np.minimum(np.floor(reach / (2 * self.step) + self.width / 2 + 2), np.iinfo(np.int16).max)
        most: Bounds = steps.astype(np.int16)
        return most


class Squares:
    """Squared Euclidean distances, by one product."""

    def __init__(self, space: Space) -> None:
        squares = (space.points**2).sum(axis=1)
        ones = np.ones(len(squares))
        self.room = 1e-12 * space.size**2
        self.rows = np.column_stack([-2 * space.points, squares, ones])
        self.columns = np.ascontiguousarray(np.column_stack([space.points, ones, squares]).T)

    def gather(self, others: IntArray) -> tuple[Bounds, ...]:
        """What is needed of people to whom many are compared."""
        return (self.columns.take(others, axis=1),)

    def table(self, rows: IntArray, columns: tuple[Bounds, ...]) -> Bounds:
        """From each of the rows to each of those gathered."""
        found: Bounds = self.rows[rows] @ columns[0]
        return found

    def limits(self, rows: IntArray, reach: FloatArray) -> Bounds:
        """Whoever is within reach has no larger bound."""
        most: Bounds = reach**2 + self.room[rows]
        return most
