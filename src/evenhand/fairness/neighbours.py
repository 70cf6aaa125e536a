"""The nearest people of every person: exact, in blocks, without a table of all distances.

Trees of boxes hardly cut anything off in twenty columns (a k-d tree takes minutes for 50,000 people), but a block of
people against a block costs little per pair if it is done in whole arrays. So people are sorted into small leaves,
leaf meets leaf, nearest first, until the next leaf is too far for everybody; a cheap lower bound of the distance says
who may be near, and only those are measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.costs import Distance, Gower
from evenhand.fairness.bounds import Bounds, Boxes, Measure, Space, Squares, Sums, embed
from evenhand.stats import IntArray
from evenhand.types import FloatArray

LEAF = 256  # people
CROWD = 2048  # people with whom a few of a leaf are compared at once: long rows are fast
ROWS = 64  # the few; two tables of them against a crowd stay in the cache
MANY = 500_000  # pairs who may be near and are measured together
NEAR = 1 + 1e-9  # room for rounding


def nearest(X: npt.ArrayLike, distance: Measure, k: int) -> tuple[IntArray, FloatArray]:
    """The k nearest other people of everybody, and how far they are.

    Equally far people come in the order of their rows; distances are the same if they agree to twelve digits.

    Parameters
    ----------
    X : array of shape (n, d)
        People as rows of finite numbers; levels as positions if the distance is Gower's.
    distance : L1, L2 or Gower
        How far people are apart.
    k : int
        How many; with fewer other people there are fewer columns.

    Returns
    -------
    positions : array of int, shape (n, min(k, n - 1))
    distances : array of shape (n, min(k, n - 1))

    Examples
    --------
    >>> from evenhand.costs import L1
    >>> positions, distances = nearest([[0.0], [5.0], [1.0]], L1(), 1)
    >>> positions.ravel().tolist(), distances.ravel().tolist()
    ([2, 2, 0], [1.0, 4.0, 1.0])
    """
    people = np.asarray(X, dtype=np.float64) + 0.0  # no two zeros
    n = len(people)
    width = min(k, max(n - 1, 0))
    if not width:
        return np.zeros((n, 0), dtype=np.int64), np.zeros((n, 0))
    # People who are alike in everything have the same neighbours. Without this step, a table of few different rows
    # would have far too many people at the same distance.
    rows, first, inverse, sizes = np.unique(people, axis=0, return_index=True, return_inverse=True, return_counts=True)
    group = inverse.reshape(-1).astype(np.int64)
    twins = _Twins(np.argsort(group, kind="stable"), np.cumsum(sizes) - sizes, sizes, width + 1)
    positions, distances = _search(rows, first.astype(np.int64), distance, twins)
    positions, distances = positions[group], distances[group]
    # Everybody is nearest to themselves, which is the only neighbour that does not count.
    others = np.argsort(positions == np.arange(n)[:, np.newaxis], axis=1, kind="stable")[:, :width]
    return np.take_along_axis(positions, others, axis=1), np.take_along_axis(distances, others, axis=1)


@dataclass(frozen=True, eq=False)
class _Twins:
    """Who the people behind each row are: ``members[start : start + size]``, of whom `wanted` are enough."""

    members: IntArray
    start: IntArray
    sizes: IntArray
    wanted: int

    def expand(self, rows: IntArray, distances: FloatArray) -> tuple[IntArray, FloatArray]:
        """Neighbouring people instead of neighbouring rows."""
        copies = np.arange(min(self.wanted, int(self.sizes.max())))
        there = copies < self.sizes[rows][:, :, np.newaxis]
        people = self.members[np.where(there, self.start[rows][:, :, np.newaxis] + copies, 0)].reshape(len(rows), -1)
        far = np.where(there, distances[:, :, np.newaxis], np.inf).reshape(len(rows), -1)
        order = np.lexsort((people, _rounded(far)))[:, : self.wanted]
        return np.take_along_axis(people, order, axis=1), np.take_along_axis(far, order, axis=1)


def _search(rows: FloatArray, first: IntArray, distance: Measure, twins: _Twins) -> tuple[IntArray, FloatArray]:
    space, measure = embed(rows, distance), _ready(distance)
    leaves = _leaves(space, np.arange(len(rows)))
    order = np.concatenate(leaves)
    space = Space(space.order, space.points[order], space.size[order], space.codes[order], space.tables)
    stops = np.cumsum([len(leaf) for leaf in leaves])
    spans = [slice(int(stop) - len(leaf), int(stop)) for leaf, stop in zip(leaves, stops, strict=True)]
    boxes, bound = Boxes(space, spans), Sums(space) if space.order == 1 else Squares(space)
    starts = np.array([span.start for span in spans])
    best = _Best(rows[order], first[order], measure, min(twins.wanted, len(rows)), 1e-13 * space.size)
    for leaf, span in enumerate(spans):
        _, others = next(_crowds(boxes.gaps(leaf), spans, np.arange(len(spans))))
        columns = bound.gather(others)
        for few in _parts(np.arange(span.start, span.stop)):
            best.begin(few, bound.table(few, columns), others)
    for leaf, span in enumerate(spans):
        gaps = boxes.gaps(leaf)
        reach = np.maximum.reduceat(best.reach, starts)
        near = np.flatnonzero(gaps <= np.maximum(reach, reach[leaf]))
        for gap, others in _crowds(gaps, spans, near[near >= leaf]):  # who meets whom is a matter of both
            reach = best.reach
            rest = np.arange(span.start, span.stop)
            if reach[others].max() < gap:
                rest = rest[reach[rest] >= gap]
            columns, limits = bound.gather(others), bound.limits(others, reach[others])
            for few in _parts(rest):
                most = np.maximum(bound.limits(few, reach[few])[:, np.newaxis], limits)
                row, column = _true(bound.table(few, columns) <= most)
                best.offer(few[row], others[column])
    best.settle()
    positions = np.empty((len(rows), twins.wanted), dtype=np.int64)
    distances = np.empty((len(rows), twins.wanted))
    for few in np.array_split(np.arange(len(rows)), -(-len(rows) // LEAF)):
        positions[order[few]], distances[order[few]] = twins.expand(order[best.who[few]], best.far[few])
    return positions, distances


def _parts(rows: IntArray) -> list[IntArray]:
    return np.array_split(rows, -(-len(rows) // ROWS)) if len(rows) else []


def _crowds(gaps: FloatArray, spans: list[slice], leaves: IntArray) -> Iterator[tuple[float, IntArray]]:
    """People of the next leaves, as many as are worth a step, and how far the nearest of these leaves is."""
    order = leaves[np.argsort(gaps[leaves], kind="stable")]
    total = np.cumsum([spans[leaf].stop - spans[leaf].start for leaf in order])
    for part in np.split(order, np.flatnonzero(np.diff(total // CROWD)) + 1):
        yield float(gaps[part[0]]), np.concatenate([np.arange(spans[leaf].start, spans[leaf].stop) for leaf in part])


def _true(mask: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Where a table with few true entries has them, eight entries at a time."""
    flat = np.zeros(-(-mask.size // 8) * 8, dtype=bool)
    flat[: mask.size] = mask.reshape(-1)
    eights = np.flatnonzero(flat.view(np.uint64))
    row, column = np.nonzero(flat.reshape(-1, 8)[eights])
    found = eights[row] * 8 + column
    return found // mask.shape[1], found % mask.shape[1]


def _ready(distance: Measure) -> Distance:
    """The same distance, made to be asked often: a Gower distance builds its tables anew each time."""
    if not isinstance(distance, Gower):
        return distance
    columns = list(distance.schema.columns.values())
    number = distance.schema.number
    weights = np.array([column.weight for column in columns])[number]
    tables = [(j, column.distances) for j, column in enumerate(columns) if not column.is_number]

    def measure(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
        left, right = np.asarray(a), np.asarray(b)
        # No product: its sums, and so ties, would depend on who is measured with whom.
        total: FloatArray = (np.abs(left[:, number] - right[:, number]) * weights).sum(axis=1)
        for j, table in tables:
            total += table[left[:, j].astype(np.intp), right[:, j].astype(np.intp)]
        return total

    return measure


class _Best:
    """The nearest rows of everybody so far, and pairs that may be nearer but are not measured yet."""

    def __init__(self, rows: FloatArray, first: IntArray, measure: Distance, wanted: int, room: FloatArray) -> None:
        self.rows, self.first, self.measure, self.wanted, self.room = rows, first, measure, wanted, room
        self.who = np.zeros((len(rows), wanted), dtype=np.int64)
        self.far = np.full((len(rows), wanted), np.inf)
        self.ceiling = np.full(len(rows), np.inf)
        self.waiting: list[tuple[IntArray, IntArray]] = []
        self.count = 0

    @property
    def reach(self) -> FloatArray:
        """Nobody farther than this is among the nearest."""
        most: FloatArray = np.minimum(self.ceiling, self.far[:, -1]) * NEAR + self.room
        return most

    def begin(self, rows: IntArray, table: Bounds, others: IntArray) -> None:
        """Measure a few who seem near: then the others need not all be measured."""
        few = 2 * self.wanted
        if len(others) <= few:
            return
        seem = others[np.argpartition(table, few, axis=1)[:, :few].ravel()]
        far = self.measure(self.rows[np.repeat(rows, few)], self.rows[seem]).reshape(-1, few)
        self.ceiling[rows] = np.partition(far, self.wanted - 1, axis=1)[:, self.wanted - 1]

    def offer(self, rows: IntArray, others: IntArray) -> None:
        """Note pairs that may be near."""
        once = rows <= others  # the people of a leaf meet twice
        self.waiting.append((rows[once], others[once]))
        self.count += int(once.sum())
        if self.count > MANY:
            self.settle()

    def settle(self) -> None:
        """Measure the pairs that wait, and keep the nearest of both sides."""
        left, right = (np.concatenate(side) for side in zip(*self.waiting, strict=True))
        self.waiting, self.count = [(left[:0], right[:0])], 0
        parts = [slice(k, k + LEAF * ROWS) for k in range(0, len(left), LEAF * ROWS)]
        far = np.concatenate([np.zeros(0), *(self.measure(self.rows[left[p]], self.rows[right[p]]) for p in parts)])
        reach = self.reach
        mine, theirs = far <= reach[left], (far <= reach[right]) & (left != right)
        rows = np.concatenate([left[mine], right[theirs]])
        others = np.concatenate([right[mine], left[theirs]])
        touched, local = np.unique(rows, return_inverse=True)
        local = np.concatenate([np.repeat(np.arange(len(touched)), self.wanted), local])
        others = np.concatenate([self.who[touched].ravel(), others])
        far = np.concatenate([self.far[touched].ravel(), far[mine], far[theirs]])
        order = np.lexsort((self.first[others], _rounded(far), local))
        counts = np.bincount(local, minlength=len(touched))
        chosen = order[(np.cumsum(counts) - counts)[:, np.newaxis] + np.arange(self.wanted)]
        self.who[touched], self.far[touched] = others[chosen], far[chosen]


def _leaves(space: Space, rows: IntArray) -> list[IntArray]:
    """Halve the people, across the column in which they differ most, until few are left."""
    if len(rows) <= LEAF:
        return [rows]
    points = np.hstack([space.points[rows], space.axes[rows]])
    spread = [1.4 * np.abs(points - np.median(points, axis=0)).mean(axis=0)]  # as a mean distance of two people
    cuts = []
    for codes, table in zip(space.codes[rows].T, space.tables, strict=True):
        counts = np.bincount(codes, minlength=len(table))
        below = np.cumsum(counts)
        cuts.append(int(np.argmin(np.abs(below - len(rows) / 2))))
        share = counts / len(rows)
        balanced = min(below[cuts[-1]], len(rows) - below[cuts[-1]]) > len(rows) / 8
        spread.append(np.array([share @ table @ share if balanced else -1.0]))
    column = int(np.argmax(np.concatenate(spread)))
    level = column - points.shape[1]
    if level >= 0 and spread[level + 1][0] > 0:
        left = space.codes[rows, level] <= cuts[level]
        return _leaves(space, rows[left]) + _leaves(space, rows[~left])
    values = points[:, column] if level < 0 else space.codes[rows, level]
    rows = rows[np.argsort(values, kind="stable")]
    return _leaves(space, rows[: len(rows) // 2]) + _leaves(space, rows[len(rows) // 2 :])


def _rounded(distances: FloatArray) -> FloatArray:
    """To forty bits: sums in another order, and the same sums in another block, are ties."""
    mantissa, exponent = np.frexp(distances)
    near: FloatArray = np.ldexp(np.rint(np.ldexp(mantissa, 40)), exponent - 40)
    return near
