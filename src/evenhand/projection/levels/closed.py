"""Pieces that ask for nothing jointly: the cheapest change into intervals and levels has a closed form."""

from __future__ import annotations

import numpy as np

from evenhand.projection._numba import entry, kernel, part
from evenhand.projection.levels.arrays import BoxMemory, Columns, Pieces
from evenhand.types import BoolArray, FloatArray, IntArray

LEAST = 1e-3  # the numbers that meet in a row count as this large at least
TIE = 1e-9  # costs that differ by less, relative to one plus themselves, are the same


@kernel
def nearest_whole(value: float) -> float:
    """The nearest whole number; numpy's own, which knows of decimals, takes half a second to compile."""
    return float(np.floor(value + 0.5))


@kernel
def ceiling(best: float, quadratic: bool) -> float:
    """Above this cost nothing is of interest.

    Equally cheap answers are, so that the first of them can be told; not for plausible ones, where the same point often
    is in several pieces, and would have to be proven again in each.
    """
    if best == np.inf:
        return np.inf
    return best * (1.0 - TIE) if quadratic else best + TIE * (1.0 + best)


@kernel
def first_limit(cutoff: float) -> float:
    """Somewhat more than the cutoff: an answer that costs as much as one that is known has to be found."""
    return cutoff + 4.0 * TIE * (1.0 + cutoff)


@kernel
def missing_in_row(c: Columns, p: Pieces, i: int, x: FloatArray, level: IntArray) -> tuple[float, float]:
    """What a person misses in a row, and the sizes of all that is added up there."""
    missing = p.b[i]
    size = abs(missing) + p.mass[i]
    for j in range(len(x)):
        value = p.A[i, j] * x[j]
        missing -= value
        size += abs(value)
    for b in range(len(level)):
        value = p.E[i, c.start[b] + level[b]]
        missing -= value
        size += abs(value)
    return missing, size


@kernel
def _steps(missing: float, step: float, slack: float) -> float:
    """How far a number has to go to make up for what is missing, in whole steps if it moves in steps."""
    if missing <= 0.0:
        return 0.0
    return missing if step == 0.0 else step * np.ceil(missing / step - slack)


@kernel
def may_stay(p: Pieces, k: int, own: FloatArray, first: int, present: int) -> bool:
    """Whether a person may keep a level: the piece allows it, and a binned number is not out of bounds with it."""
    return bool(p.allowed[k, first + present] and not (len(own) and own[first + present] == np.inf))


@kernel
def level_price(c: Columns, own: FloatArray, first: int, present: int, to: int) -> float:
    """Cost of a level, which for a binned number depends on the person."""
    if len(own) and own[first + to] >= 0.0:
        return float(c.move[first + present, to] + own[first + to])
    return float(c.move[first + present, to])


@kernel
def _nearest_bin(c: Columns, p: Pieces, k: int, own: FloatArray, first: int, count: int, present: int) -> float:
    """What the cheapest bin costs that a piece allows; nothing if a person may stay in its own."""
    if may_stay(p, k, own, first, present):
        return 0.0
    least = np.inf
    for to in range(count):
        if p.allowed[k, first + to]:
            least = min(least, level_price(c, own, first, present, to))
    return least


@kernel
def distances(
    c: Columns, p: Pieces, v: int, x: FloatArray, level: IntArray, own: FloatArray, apart: FloatArray
) -> None:  # fmt: skip
    """What it costs at least to get into the intervals and levels of each piece; exact for pieces without rows.

    Column by column over all pieces: without branches, several pieces at a time.
    """
    for k in range(len(apart)):
        apart[k] = 0.0
    for b in range(len(level)):
        first = c.start[b]
        held = c.held_levels[v, b]
        binned = len(own) > 0 and own[first + level[b]] >= 0.0
        nearest = p.nearest[first + level[b]]
        for k in range(len(apart)):
            cost = nearest[k]
            if binned:
                cost = _nearest_bin(c, p, k, own, first, c.start[b + 1] - first, level[b])
            apart[k] += np.inf if held and cost > 0.0 else cost
    for j in range(len(x)):
        if not p.asks[j]:
            continue
        low, high, here, weight, step = p.low[j], p.high[j], x[j], c.weight[j], c.step[j]
        up, down = c.up[j] and not c.held[v, j], c.down[j] and not c.held[v, j]
        for k in range(len(apart)):
            below, above = low[k] - here, here - high[k]
            missing = max(max(below, above), 0.0)
            if step > 0.0:
                distance = step * max(np.ceil(missing / step - 1e-9), 0.0)
                missing = np.inf if distance - missing > high[k] - low[k] + 1e-9 * step else distance
            barred = (below > 0.0 and not up) or (above > 0.0 and not down)
            apart[k] += np.inf if barred else weight * missing


@part
def nearest_point(
    c: Columns, p: Pieces, k: int, x: FloatArray, level: IntArray, own: FloatArray, to_x: FloatArray, to_level: IntArray
) -> None:  # fmt: skip
    """The answer to :func:`distances` for one piece; of equally cheap levels the first."""
    for b in range(len(level)):
        first = c.start[b]
        to_level[b] = level[b]
        if not may_stay(p, k, own, first, level[b]):
            least = np.inf
            for to in range(c.start[b + 1] - first):
                if p.allowed[k, first + to] and level_price(c, own, first, level[b], to) < least - 1e-12:
                    least, to_level[b] = level_price(c, own, first, level[b], to), to
    for j in range(len(x)):
        low, high = p.lower[k, j] - x[j], x[j] - p.upper[k, j]
        to_x[j] = x[j]
        if low > 0.0:
            to_x[j] = p.lower[k, j] if c.step[j] == 0.0 else x[j] + _steps(low, c.step[j], 1e-9)
        elif high > 0.0:
            to_x[j] = p.upper[k, j] if c.step[j] == 0.0 else x[j] - _steps(high, c.step[j], 1e-9)


@kernel
def _price(c: Columns, x: FloatArray, level: IntArray, own: FloatArray, to_x: FloatArray, to_level: IntArray) -> float:
    """What a change costs."""
    total = 0.0
    for j in range(len(x)):
        total += c.weight[j] * abs(to_x[j] - x[j])
    for b in range(len(level)):
        if to_level[b] != level[b]:
            total += level_price(c, own, c.start[b], level[b], to_level[b])
    return total


@part
def comes_first(
    c: Columns, x: FloatArray, level: IntArray, a: FloatArray, al: IntArray, b: FloatArray, bl: IntArray
) -> bool:
    """Which of two equally costly answers is told: fewer changed columns, then the first column that differs."""
    changed_a, changed_b = 0, 0
    for j in range(len(x)):
        changed_a += abs(a[j] - x[j]) > 1e-9 * (1.0 + abs(x[j]))
        changed_b += abs(b[j] - x[j]) > 1e-9 * (1.0 + abs(x[j]))
    for q in range(len(level)):
        changed_a += al[q] != level[q]
        changed_b += bl[q] != level[q]
    if changed_a != changed_b:
        return changed_a < changed_b
    for code in c.order:
        if code >= 0:
            if abs(a[code] - b[code]) > 1e-9 * (1.0 + abs(x[code])):
                return bool(abs(a[code] - x[code]) < abs(b[code] - x[code]))
        elif al[-1 - code] != bl[-1 - code]:
            q = -1 - code
            if (al[q] == level[q]) != (bl[q] == level[q]):
                return bool(al[q] == level[q])
            return bool(al[q] < bl[q])
    return False


@entry
def nearest_boxes(
    c: Columns, p: Pieces, inner: Pieces, X: FloatArray, L: IntArray, own: FloatArray, cutoff: FloatArray,
    points: FloatArray, levels: IntArray, cost: FloatArray, bound: FloatArray, w: BoxMemory,
) -> None:  # fmt: skip
    """The cheapest change of every person into one of the pieces, none of which has rows.

    Which piece is nearest, and the bound, are those of `p`; the point is in the same piece of `inner`, which keeps a
    distance from its sides.
    """
    apart, new_x, new_level = w.apart, w.x, w.level
    for q in range(len(X)):
        x, level, mine = X[q], L[q], own[q]
        best, nearest, written = first_limit(cutoff[q]), -1, False
        for v in range(len(c.held)):
            distances(c, p, v, x, level, mine, apart)
            for k in range(len(apart)):
                if apart[k] == np.inf or apart[k] > ceiling(best, False):
                    continue
                if best < np.inf and abs(apart[k] - best) <= TIE * (1.0 + best):
                    if nearest < 0:
                        continue
                    if not written:
                        nearest_point(c, inner, nearest, x, level, mine, points[q], levels[q])
                        written = True
                    nearest_point(c, inner, k, x, level, mine, new_x, new_level)
                    best = min(best, apart[k])
                    if comes_first(c, x, level, new_x, new_level, points[q], levels[q]):
                        nearest, written = k, False
                else:
                    best, nearest, written = apart[k], k, False
        if nearest >= 0 and not written:
            nearest_point(c, inner, nearest, x, level, mine, points[q], levels[q])
        cost[q], bound[q] = np.inf, best
        if nearest >= 0:
            cost[q] = max(_price(c, x, level, mine, points[q], levels[q]), best)


@kernel
def _in_box(c: Columns, p: Pieces, k: int, x: FloatArray, level: IntArray) -> bool:
    """Whether a person is in the intervals and levels of a piece; most are not, which the first columns tell."""
    for j in range(len(x)):
        if not p.lower[k, j] <= x[j] <= p.upper[k, j]:
            return False
    for b in range(len(level)):  # noqa: SIM110 - kernels have no generators
        if not p.allowed[k, c.start[b] + level[b]]:
            return False
    return True


@entry
def within_pieces(c: Columns, p: Pieces, X: FloatArray, L: IntArray, guard: float, within: BoolArray) -> None:
    """Who is in one of the pieces, with room to every row of it; their intervals have the guard in them."""
    for q in range(len(X)):
        for k in range(len(p.lower)):
            inside = _in_box(c, p, k, X[q], L[q])
            for i in range(p.rows[k], p.rows[k + 1] if inside else p.rows[k]):
                missing, size = missing_in_row(c, p, i, X[q], L[q])
                inside = inside and missing + guard * max(size, LEAST) <= 0.0
            if inside:
                within[q] = True
                break
