"""Whole tables of people with numbers and levels, onto pieces: closed form where a piece asks for nothing jointly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenhand.projection._numba import entry, kernel, part
from evenhand.projection.levels.branch import (
    DENSE,
    EARLY,
    LIMIT,
    PROVEN,
    ROUNDS,
    SOLVED,
    STUCK,
    TROUBLE,
    WHOLE,
    Change,
    Stack,
    _add_tangent,
    _branch_on_tie,
    _copy_node,
    _drop_loose_tangents,
    _excess,
    _fractional,
    _narrow,
    _point,
    _relax,
    _shift,
    _start,
    make_change,
    make_stack,
)
from evenhand.types import BoolArray, FloatArray, IntArray

DEPTH = 160
TANGENTS = 80
TIE = 1e-9  # costs that differ by less, relative to one plus themselves, are the same
TIES = 64  # branches that are spent on equally cheap answers, per person and piece


class Columns(NamedTuple):
    """What is the same for everybody: what a change of each column costs, and which changes there are."""

    weight: FloatArray  # (numbers,) cost per unit
    step: FloatArray  # (numbers,) 0 for continuous ones
    up: BoolArray
    down: BoolArray
    start: IntArray  # (categories + 1,) where the levels of each category begin
    move: FloatArray  # (levels, most) from a level to the l-th of its category; infinite if that is not possible
    tied: FloatArray  # (rules, numbers) what is added up over changes must not be negative
    tied_levels: FloatArray  # (rules, levels)
    order: IntArray  # raw columns in order: a number j as j, a category b as -1 - b
    held: BoolArray  # (variants, numbers) that stay in a variant
    held_levels: BoolArray  # (variants, categories)


class Pieces(NamedTuple):
    """The pieces of one label: intervals, levels and joint rows ``A x + sum of E[level] >= b``."""

    lower: FloatArray  # (pieces, numbers)
    upper: FloatArray
    allowed: BoolArray  # (pieces, levels)
    rows: IntArray  # (pieces + 1,)
    A: FloatArray
    E: FloatArray  # (rows, levels)
    b: FloatArray
    nearest: FloatArray  # (pieces, levels) from a level to the nearest that the piece allows
    asked_numbers: IntArray  # (pieces + 1,) where the numbers begin that a piece asks something of
    asked_number: IntArray
    asked_levels: IntArray
    asked_level: IntArray


class Density(NamedTuple):
    """Where a label is dense: ``1/2 |R x - m|^2 - sum of log frequencies <= room`` for one of the components."""

    R: FloatArray  # (components, k, numbers)
    m: FloatArray
    room: FloatArray
    frequency: FloatArray  # (levels,) logarithms
    meet: BoolArray  # (pieces, components) which of them meet


@kernel
def _cut(best: float, quadratic: bool) -> float:
    """Above this cost nothing is of interest.

    Equally cheap answers are, so that the first of them can be told; not for plausible ones, where the same point often
    is in several pieces, and would have to be proven again in each.
    """
    if best == np.inf:
        return np.inf
    return best * (1.0 - TIE) if quadratic else best + TIE * (1.0 + best)


@kernel
def _steps(missing: float, step: float, slack: float) -> float:
    """How far a number has to go to make up for what is missing, in whole steps if it moves in steps."""
    if missing <= 0.0:
        return 0.0
    return missing if step == 0.0 else step * np.ceil(missing / step - slack)


@kernel
def _may_stay(p: Pieces, k: int, own: FloatArray, first: int, present: int) -> bool:
    """Whether a person may keep a level: the piece allows it, and a binned number is not out of bounds with it."""
    return bool(p.allowed[k, first + present] and not (len(own) and own[first + present] == np.inf))


@kernel
def _apart(
    c: Columns, p: Pieces, k: int, v: int, x: FloatArray, level: IntArray, own: FloatArray, limit: float
) -> float:  # fmt: skip
    """What it costs at least to get into the intervals and levels of a piece; exact if it has no rows."""
    total = 0.0
    # Without bins only the categories that the piece says something about can be in the wrong place.
    begin, end = (0, len(level)) if len(own) else (p.asked_levels[k], p.asked_levels[k + 1])
    for at in range(begin, end):
        b = at if len(own) else p.asked_level[at]
        first = c.start[b]
        if _may_stay(p, k, own, first, level[b]):
            continue
        if c.held_levels[v, b]:
            return np.inf
        if len(own):
            least = np.inf
            for to in range(c.start[b + 1] - first):
                if p.allowed[k, first + to]:
                    least = min(least, _price(c, own, first, level[b], to))
            total += least
        else:
            total += p.nearest[k, first + level[b]]
        if total > limit:
            return np.inf
    for at in range(p.asked_numbers[k], p.asked_numbers[k + 1]):
        j = p.asked_number[at]
        low, high = p.lower[k, j] - x[j], x[j] - p.upper[k, j]
        if low > 0.0 or high > 0.0:
            way = c.up[j] if low > 0.0 else c.down[j]
            if not way or c.held[v, j]:
                return np.inf
            missing = max(low, high)
            distance = _steps(missing, c.step[j], 1e-9)
            if distance - missing > p.upper[k, j] - p.lower[k, j] + 1e-9 * c.step[j]:
                return np.inf  # the steps pass over the interval
            total += c.weight[j] * distance
            if total > limit:
                return np.inf
    return total


@kernel
def _price(c: Columns, own: FloatArray, first: int, present: int, to: int) -> float:
    """Cost of a level, which for a binned number depends on the person."""
    if len(own) and own[first + to] >= 0.0:
        return float(c.move[first + present, to] + own[first + to])
    return float(c.move[first + present, to])


@part
def _nearest(
    c: Columns, p: Pieces, k: int, x: FloatArray, level: IntArray, own: FloatArray, to_x: FloatArray, to_level: IntArray
) -> None:  # fmt: skip
    """The answer to :func:`_apart`; of equally cheap levels the first."""
    for b in range(len(level)):
        first = c.start[b]
        to_level[b] = level[b]
        if not _may_stay(p, k, own, first, level[b]):
            least = np.inf
            for to in range(c.start[b + 1] - first):
                if p.allowed[k, first + to] and _price(c, own, first, level[b], to) < least - 1e-12:
                    least, to_level[b] = _price(c, own, first, level[b], to), to
    for j in range(len(x)):
        low, high = p.lower[k, j] - x[j], x[j] - p.upper[k, j]
        to_x[j] = x[j]
        if low > 0.0:
            to_x[j] = p.lower[k, j] if c.step[j] == 0.0 else x[j] + _steps(low, c.step[j], 1e-9)
        elif high > 0.0:
            to_x[j] = p.upper[k, j] if c.step[j] == 0.0 else x[j] - _steps(high, c.step[j], 1e-9)


@part
def _number_columns(
    c: Columns, p: Pieces, k: int, v: int, x: FloatArray, d: Density, e: int, quadratic: bool, to: Change
) -> int:
    """Columns of the numbers; -1 if a number cannot get where it must."""
    n, rows, rules = 0, p.rows[k + 1] - p.rows[k], len(c.tied)
    for j in range(len(x)):
        scale = c.step[j] if c.step[j] > 0.0 else 1.0 / c.weight[j]
        if c.held[v, j] or not (c.up[j] or c.down[j]):
            if x[j] < p.lower[k, j] or x[j] > p.upper[k, j]:
                return -1
            continue
        for way in range(2):
            sign = 1.0 - 2.0 * way
            room = (p.upper[k, j] - x[j] if way == 0 else x[j] - p.lower[k, j]) / scale
            must = (p.lower[k, j] - x[j] if way == 0 else x[j] - p.upper[k, j]) / scale
            if c.step[j] > 0.0:
                room, must = np.floor(room + 1e-9), np.ceil(must - 1e-9)
            must = max(must, 0.0)
            if not (c.up[j] if way == 0 else c.down[j]):
                if must > 0.0:
                    return -1
                continue
            if must > room:
                if must > 0.0:
                    return -1
                continue
            if room <= 0.0:
                continue
            useful = quadratic or must > 0.0
            for i in range(rules):
                useful = useful or c.tied[i, j] * sign > 0.0
            for i in range(p.rows[k], p.rows[k + 1]):
                useful = useful or p.A[i, j] * sign > 0.0
            if not useful:  # it helps nothing, so the cheapest answer leaves it alone
                continue
            to.cost[n], to.whole[n], to.lower[n], to.upper[n] = c.weight[j] * scale, c.step[j] > 0.0, must, room
            to.block[n], to.of[n], to.kind[n], to.a[n] = -1, j, way, 0.0
            for i in range(rows):
                to.A[i, n] = p.A[p.rows[k] + i, j] * scale * sign
            for i in range(rules):
                to.A[rows + i, n] = c.tied[i, j] * scale * sign
            if quadratic:
                for i in range(len(to.g)):
                    to.R[i, n] = d.R[e, i, j] * scale * sign
            n += 1
    return n


@part
def _worse_level(
    c: Columns,
    p: Pieces,
    k: int,
    d: Density,
    quadratic: bool,
    own: FloatArray,
    first: int,
    count: int,
    present: int,
    to: int,
) -> bool:
    """Whether another level costs no more and is at least as good for every row, rule and the density."""
    price = _price(c, own, first, present, to)
    for other in range(count):
        if other == to or not p.allowed[k, first + other]:
            continue
        if other == present and not _may_stay(p, k, own, first, present):
            continue
        rival = 0.0 if other == present else _price(c, own, first, present, other)
        if rival > price:
            continue
        as_good, better = True, rival < price
        for i in range(p.rows[k], p.rows[k + 1]):
            if p.E[i, first + other] < p.E[i, first + to]:
                as_good = False
                break
            better = better or p.E[i, first + other] > p.E[i, first + to]
        for i in range(len(c.tied)):
            if c.tied_levels[i, first + other] < c.tied_levels[i, first + to]:
                as_good = False
        if as_good and quadratic:
            if d.frequency[first + other] < d.frequency[first + to]:
                as_good = False
            better = better or d.frequency[first + other] > d.frequency[first + to]
        if as_good and (better or other < to):
            return True
    return False


@part
def _level_columns(
    c: Columns,
    p: Pieces,
    k: int,
    v: int,
    level: IntArray,
    d: Density,
    quadratic: bool,
    own: FloatArray,
    to: Change,
    n: int,
) -> int:
    """Columns of the levels, without those that are never needed; -1 if a category has no level left."""
    rows, rules = p.rows[k + 1] - p.rows[k], len(c.tied)
    for b in range(len(level)):
        first, count, present = c.start[b], c.start[b + 1] - c.start[b], level[b]
        to.forced[b] = not _may_stay(p, k, own, first, present)
        begin = n
        if not c.held_levels[v, b]:
            for other in range(count):
                if other == present or not p.allowed[k, first + other]:
                    continue
                price = _price(c, own, first, present, other)
                if not price < np.inf:
                    continue
                if _worse_level(c, p, k, d, quadratic, own, first, count, present, other):
                    continue
                to.cost[n], to.whole[n], to.lower[n], to.upper[n] = price, True, 0.0, 1.0
                to.block[n], to.of[n], to.kind[n] = b, b, 2 + other
                to.a[n] = d.frequency[first + other] - d.frequency[first + present] if quadratic else 0.0
                for i in range(rows):
                    to.A[i, n] = p.E[p.rows[k] + i, first + other] - p.E[p.rows[k] + i, first + present]
                for i in range(rules):
                    to.A[rows + i, n] = c.tied_levels[i, first + other] - c.tied_levels[i, first + present]
                for i in range(len(to.g)):
                    to.R[i, n] = 0.0
                n += 1
        if to.forced[b] and n == begin:
            return -1
    return n


@part
def _right_sides(
    c: Columns,
    p: Pieces,
    k: int,
    x: FloatArray,
    level: IntArray,
    d: Density,
    e: int,
    quadratic: bool,
    guard: float,
    to: Change,
    n: int,
) -> float:
    """What is missing in every row, in rows whose entries go up to one; returns the room of the quadratic."""
    rows = p.rows[k + 1] - p.rows[k]
    for i in range(rows + len(c.tied)):
        missing, size = 0.0, 0.0
        if i < rows:
            missing = p.b[p.rows[k] + i]
            size = abs(missing)
            for j in range(len(x)):
                value = p.A[p.rows[k] + i, j] * x[j]
                missing -= value
                size = max(size, abs(value))
            for b in range(len(level)):
                missing -= p.E[p.rows[k] + i, c.start[b] + level[b]]
            missing += guard * max(size, 1e-3)
        largest = 0.0
        for j in range(n):
            largest = max(largest, abs(to.A[i, j]))
        if largest > 0.0:
            for j in range(n):
                to.A[i, j] /= largest
            missing /= largest
        to.h[i] = missing
    room = 0.0
    if quadratic:
        room = d.room[e] - DENSE
        for b in range(len(level)):
            room += d.frequency[c.start[b] + level[b]]
        for i in range(len(to.g)):
            value = d.m[e, i]
            for j in range(len(x)):
                value -= d.R[e, i, j] * x[j]
            to.g[i] = value
    return room


@part
def _write(
    c: Columns, to: Change, n: int, t: FloatArray, x: FloatArray, level: IntArray, to_x: FloatArray, to_level: IntArray
) -> None:
    """The person after a change."""
    for j in range(len(x)):
        to_x[j] = x[j]
    for b in range(len(level)):
        to_level[b] = level[b]
    for j in range(n):
        if to.kind[j] >= 2:
            if t[j] > 0.5:
                to_level[to.of[j]] = to.kind[j] - 2
        elif t[j] != 0.0:
            v = to.of[j]
            scale = c.step[v] if c.step[v] > 0.0 else 1.0 / c.weight[v]
            amount = np.round(t[j]) if to.whole[j] else t[j]
            to_x[v] += amount * scale if to.kind[j] == 0 else -amount * scale


@part
def _settle(to: Change, n: int, m: int, categories: int, quadratic: bool, room: float, t: FloatArray, r: Stack) -> bool:
    """The numbers that go with levels and steps, solved for anew; False if that fails.

    A search arrives at the same levels and steps along different paths, which a cutoff, for example, makes shorter, and
    every path rounds in its own way.  From here on only what was found counts: the columns that are whole keep their
    values in `t`, all others start from the root.  The answer is in ``r.t``.
    """
    base = _start(to, n, m, categories, quadratic, room, r)
    objective = r.objective[0]
    for j in range(n):  # in the root every column is nonbasic, in its own place
        if to.whole[j]:
            value = np.round(t[j])
            step = value - r.value[0, j]
            r.lower[0, j] = r.upper[0, j] = r.value[0, j] = value
            if step != 0.0:
                objective += r.price[0, j] * step
                for i in range(r.n_rows[0]):
                    r.basic[0, i] -= r.T[0, i, j] * step
    for _ in range(ROUNDS + 1):
        ended, objective = _relax(r, 0, objective, np.inf)
        if ended != SOLVED:
            return False
        _point(r, 0, n)
        if not quadratic:
            return True
        excess, left = _excess(to, n, room, r)
        if excess <= 0.5 * DENSE:
            return True
        if r.n_rows[0] >= r.T.shape[1]:
            _drop_loose_tangents(r, 0, n + base)
            if r.n_rows[0] >= r.T.shape[1]:
                return False
        _add_tangent(to, n, room, left, r, 0)
    return False


@part
def _write_settled(
    c: Columns, to: Change, n: int, m: int, quadratic: bool, room: float, t: FloatArray, r: Stack, x: FloatArray,
    level: IntArray, to_x: FloatArray, to_level: IntArray,
) -> None:  # fmt: skip
    """The person after a change, the same to the last bit for the same levels and steps."""
    if _settle(to, n, m, len(level), quadratic, room, t, r):
        _write(c, to, n, r.t, x, level, to_x, to_level)
    else:
        _write(c, to, n, t, x, level, to_x, to_level)


@part
def _comes_first(
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


@part
def _search(
    c: Columns, x: FloatArray, level: IntArray, to: Change, n: int, m: int, quadratic: bool, room: float, s: Stack,
    r: Stack, kept: FloatArray, limit: float, nodes_left: int, best_x: FloatArray, best_level: IntArray,
    new_x: FloatArray, new_level: IntArray, tally: IntArray,
) -> tuple[float, float, int]:  # fmt: skip
    """Branch and bound over one piece; returns the best cost so far, a lower bound on this piece, and how it ended."""
    base = _start(to, n, m, len(level), quadratic, room, s)
    capacity = s.T.shape[1]
    depth, best, bound, outcome, ties = 0, limit, np.inf, PROVEN, 0
    pending = False  # whether the best change is in `kept`, and not yet settled
    while depth >= 0:
        if tally[0] >= nodes_left:
            outcome = LIMIT
            break
        cut = _cut(best, quadratic)
        objective = s.objective[depth]
        closed = False
        tally[0] += 1
        for turn in range(ROUNDS + 1):
            ended, objective = _relax(s, depth, objective, cut + 1e-6 * (1.0 + cut) if quadratic else cut)
            s.objective[depth] = objective
            if ended != SOLVED:
                if ended == STUCK:
                    outcome = TROUBLE
                    bound = min(bound, objective)
                closed = True
                break
            if objective - (_shift(s, depth, n) if quadratic else 0.0) > cut:
                closed = True
                break
            _point(s, depth, n)
            if not quadratic:
                break
            excess, left = _excess(to, n, room, s)
            if excess <= 0.5 * DENSE:
                break
            if turn >= EARLY and _fractional(to, n, s, depth, 1e-3) >= 0:
                break
            if s.n_rows[depth] >= capacity:
                _drop_loose_tangents(s, depth, n + base)
            if s.n_rows[depth] >= capacity or turn == ROUNDS:
                outcome = TROUBLE
                bound = min(bound, objective - _shift(s, depth, n))
                closed = True
                break
            _add_tangent(to, n, room, left, s, depth)
        if closed:
            depth -= 1
            continue
        row = _fractional(to, n, s, depth, WHOLE)
        if row < 0:
            shift = _shift(s, depth, n) if quadratic else 0.0
            bound = min(bound, objective - shift)
            tie = abs(objective - best) <= TIE * (1.0 + best) if best < np.inf else False
            if tie and tally[1] == 1:
                if pending:
                    _write_settled(c, to, n, m, quadratic, room, kept, r, x, level, best_x, best_level)
                    pending = False
                _write_settled(c, to, n, m, quadratic, room, s.t, r, x, level, new_x, new_level)
                best = min(objective, best)
                if _comes_first(c, x, level, new_x, new_level, best_x, best_level):
                    for j in range(len(x)):
                        best_x[j] = new_x[j]
                    for b in range(len(level)):
                        best_level[b] = new_level[b]
            elif not tie and objective < best:
                best, pending = objective, True
                for j in range(n):
                    kept[j] = s.t[j]
                tally[1] = 1
            cut = _cut(best, quadratic)
            # An equally cheap answer may hide behind a column that moves for nothing.
            room_above = ties < TIES and depth + 1 < len(s.objective) and not quadratic
            if room_above and _branch_on_tie(to, n, s, depth, objective, cut):
                ties += 1
                depth += 1
            else:
                depth -= 1
            continue
        _narrow(to, n, s, depth, objective - (_shift(s, depth, n) if quadratic else 0.0), cut)
        if depth + 1 >= len(s.objective):
            outcome = TROUBLE
            bound = min(bound, objective)
            depth -= 1
            continue
        if quadratic and s.n_rows[depth] > base + 12:
            _drop_loose_tangents(s, depth, n + base)
            row = _fractional(to, n, s, depth, WHOLE)
        v, value = s.row_of[depth, row], s.basic[depth, row]
        _copy_node(s, depth, n)
        down = np.floor(value)
        if value - down > 0.5:  # the nearer child on top, to be looked at first
            s.lower[depth + 1, v], s.upper[depth, v] = down + 1.0, down
        else:
            s.upper[depth + 1, v], s.lower[depth, v] = down, down + 1.0
        depth += 1
    if outcome == LIMIT:
        for open_node in range(depth + 1):
            bound = min(bound, s.objective[open_node])
    if pending:
        _write_settled(c, to, n, m, quadratic, room, kept, r, x, level, best_x, best_level)
    return best, bound, outcome


@entry
def search_mixed(
    c: Columns, p: Pieces, d: Density, X: FloatArray, L: IntArray, own: FloatArray, guard: float, max_nodes: int,
    cutoff: FloatArray, points: FloatArray, levels: IntArray, cost: FloatArray, bound: FloatArray, outcome: IntArray,
    nodes: IntArray,
) -> None:  # fmt: skip
    """The cheapest change of every person into one of the pieces."""
    people, numbers, categories = len(X), X.shape[1], L.shape[1]
    n_pieces, variants, components = len(p.lower), len(c.held), len(d.room)
    quadratic = components > 0
    most = 0
    for k in range(n_pieces):
        most = max(most, p.rows[k + 1] - p.rows[k])
    m_most = most + len(c.tied)
    width = 2 * numbers + len(c.move) + 1
    dim = d.R.shape[1] if quadratic else 0
    to = make_change(width, m_most + 1, dim, categories)
    high = m_most + categories + 2 + (TANGENTS if quadratic else 0)
    s, r = make_stack(DEPTH, high, width, dim), make_stack(1, high, width, dim)
    kept = np.empty(width)
    apart, distance = np.empty(n_pieces), np.empty(max(components, 1))
    new_x, new_level = np.empty(numbers), np.empty(categories, np.int64)
    tally = np.zeros(2, np.int64)
    for q in range(people):
        x, level = X[q], L[q]
        mine = own[q] if len(own) else own[:0].ravel()
        # Somewhat more than the cutoff: an answer that costs as much as one that is known has to be found.
        best, least, ended, spent = cutoff[q] + 4.0 * TIE * (1.0 + cutoff[q]), np.inf, PROVEN, 0
        tally[1] = 0
        for v in range(variants):
            if most + len(c.tied) == 0 and not quadratic:  # every piece has a closed form
                for k in range(n_pieces):
                    cut = _cut(best, quadratic)
                    floor = _apart(c, p, k, v, x, level, mine, cut)
                    if not floor <= cut or floor == np.inf:
                        continue
                    tie = best < np.inf and abs(floor - best) <= TIE * (1.0 + best)
                    if tie and tally[1] == 0:
                        continue
                    _nearest(c, p, k, x, level, mine, new_x, new_level)
                    if tie and not _comes_first(c, x, level, new_x, new_level, points[q], levels[q]):
                        best = min(best, floor)
                        continue
                    points[q], levels[q], best = new_x, new_level, min(best, floor)
                    tally[1] = 1
                least = min(least, best)
                continue
            for k in range(n_pieces):
                apart[k] = _apart(c, p, k, v, x, level, mine, _cut(best, quadratic))
            while True:
                k = int(np.argmin(apart))
                cut = _cut(best, quadratic)
                if not apart[k] < np.inf or apart[k] > cut:
                    break
                apart[k] = np.inf
                rows = p.rows[k + 1] - p.rows[k]
                for e in range(max(components, 1)):
                    distance[e] = 0.0
                    if quadratic:
                        for i in range(dim):
                            value = d.m[e, i]
                            for j in range(numbers):
                                value -= d.R[e, i, j] * x[j]
                            distance[e] += 0.5 * value * value
                        distance[e] -= d.room[e]
                        if not d.meet[k, e]:
                            distance[e] = np.inf
                for _ in range(max(components, 1)):
                    e = int(np.argmin(distance))
                    if distance[e] == np.inf:
                        break
                    distance[e] = np.inf
                    n = _number_columns(c, p, k, v, x, d, e, quadratic, to)
                    if n >= 0:
                        n = _level_columns(c, p, k, v, level, d, quadratic, mine, to, n)
                    if n < 0:
                        continue
                    room = _right_sides(c, p, k, x, level, d, e, quadratic, guard, to, n)
                    tally[0] = 0
                    best, here, how = _search(
                        c, x, level, to, n, rows + len(c.tied), quadratic, room, s, r, kept, best,
                        max_nodes - spent, points[q], levels[q], new_x, new_level, tally,
                    )  # fmt: skip
                    spent += tally[0]
                    least = min(least, here)
                    ended = max(ended, how)
        found = tally[1] == 1
        nodes[q], outcome[q] = spent, ended
        cost[q] = best if found else np.inf
        bound[q] = min(least, min(best, _cut(best, quadratic))) if found else least


def make_pieces(
    columns: Columns,
    lower: FloatArray,
    upper: FloatArray,
    allowed: BoolArray,
    rows: IntArray,
    A: FloatArray,
    E: FloatArray,
    b: FloatArray,
) -> Pieces:
    """Pieces with what is looked up for everybody: which columns each asks something of, and the nearest levels."""
    start = columns.start
    nearest = np.zeros(allowed.shape)
    asked = np.zeros((len(lower), len(start) - 1), dtype=bool)
    for q in range(len(start) - 1):
        part = slice(start[q], start[q + 1])
        cost = columns.move[part, : start[q + 1] - start[q]]
        nearest[:, part] = np.where(allowed[:, None, part], cost[None], np.inf).min(axis=2, initial=np.inf)
        asked[:, q] = ~allowed[:, part].all(axis=1)
    bounded = np.isfinite(lower) | np.isfinite(upper)

    def listed(mask: BoolArray) -> tuple[IntArray, IntArray]:
        begins = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int64)
        return begins, np.nonzero(mask)[1].astype(np.int64)

    return Pieces(lower, upper, allowed, rows, A, E, b, nearest, *listed(bounded), *listed(asked))
