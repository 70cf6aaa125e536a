"""The linear relaxation of a node: a dual simplex on a condensed tableau, and what branching does to it."""

from __future__ import annotations

import numpy as np

from evenhand.projection._numba import part
from evenhand.projection.levels.arrays import Change, Density, Stack
from evenhand.projection.levels.closed import nearest_whole
from evenhand.types import FloatArray

FEASIBLE = 1e-11  # of a basic variable; columns are in units of cost, rows have entries up to one
PIVOT = 1e-10
RATIO_TIE = 1e-12  # prices that end within this are equal: then the largest pivot is the most accurate one
CHEAP = 1e4  # where a column costs less than this part of the unit, even smaller differences of prices count
SOLVED, WORSE, EMPTY, STUCK = 0, 1, 2, 3


@part
def _exchange(T: FloatArray, r: int, q: int, rows: int, columns: int) -> None:
    """Swap the basic variable of row r with the nonbasic one of column q."""
    inverse = 1.0 / T[r, q]
    for j in range(columns):
        T[r, j] *= inverse
    T[r, q] = inverse
    for i in range(rows):
        factor = T[i, q]
        if i != r and factor != 0.0:
            T[i, q] = 0.0
            for j in range(columns):
                T[i, j] -= factor * T[r, j]


@part
def relax(s: Stack, depth: int, objective: float, limit: float) -> tuple[int, float]:
    """Dual simplex with bound flips, from a dual feasible tableau; stops as soon as the objective reaches the limit."""
    T, basic, price, value = s.T[depth], s.basic[depth], s.price[depth], s.value[depth]
    row_of, column_of, lower, upper = s.row_of[depth], s.column_of[depth], s.lower[depth], s.upper[depth]
    rows, columns = s.n_rows[depth], s.n_columns[depth]
    for _ in range(1000):
        r, worst, rising = -1, FEASIBLE, True
        for i in range(rows):
            v = row_of[i]
            short, over = lower[v] - basic[i], basic[i] - upper[v]
            if short > worst:
                r, worst, rising = i, short, True
            if over > worst:
                r, worst, rising = i, over, False
        if r < 0:
            return SOLVED, objective
        # Columns that can move the basic variable towards its bound, and the price of letting them in.
        for j in range(columns):
            v = column_of[j]
            toward = -T[r, j] if rising else T[r, j]
            s.done[j] = True
            if upper[v] - lower[v] > 0.0:
                if toward > PIVOT and value[j] <= lower[v]:
                    s.done[j], s.ratio[j] = False, max(price[j], 0.0) / toward
                elif toward < -PIVOT and value[j] > lower[v]:
                    s.done[j], s.ratio[j] = False, max(-price[j], 0.0) / -toward
        missing = worst
        while True:
            q, least, size = -1, np.inf, 0.0
            for j in range(columns):
                if not s.done[j]:
                    entry = abs(T[r, j])
                    if s.ratio[j] < least - s.tie[0] or (s.ratio[j] < least + s.tie[0] and entry > size):
                        q, least, size = j, s.ratio[j], entry
            if q < 0:
                return EMPTY, objective
            v = column_of[q]
            span = size * (upper[v] - lower[v])
            if not missing - span > 1e-12:
                break
            missing -= span  # all of this column is not enough: it goes to its other bound
            s.done[q] = True
            step = upper[v] - lower[v] if value[q] <= lower[v] else lower[v] - upper[v]
            value[q] = upper[v] if step > 0 else lower[v]
            objective += price[q] * step
            for i in range(rows):
                basic[i] -= T[i, q] * step
        leaving = row_of[r]
        goal = lower[leaving] if rising else upper[leaving]
        step = (basic[r] - goal) / T[r, q]
        objective += price[q] * step
        for i in range(rows):
            basic[i] -= T[i, q] * step
        entering, entered, factor = column_of[q], value[q] + step, price[q]
        _exchange(T, r, q, rows, columns)
        price[q] = 0.0
        for j in range(columns):
            price[j] -= factor * T[r, j]
        basic[r], row_of[r], column_of[q], value[q] = entered, entering, leaving, goal
        if objective >= limit:
            return WORSE, objective
    return STUCK, objective


@part
def start_tableau(c: Change, n: int, m: int, categories: int, d: Density | None, room: float, s: Stack) -> int:
    """The tableau of the root, and how many rows it has."""
    T, basic, lower, upper = s.T[0], s.basic[0], s.lower[0], s.upper[0]
    objective, cheapest = 0.0, 1.0
    for j in range(n):
        if c.cost[j] > 0.0:
            cheapest = min(cheapest, CHEAP * c.cost[j])
        s.price[0, j], s.value[0, j], s.column_of[0, j] = c.cost[j], c.lower[j], j
        lower[j], upper[j] = c.lower[j], c.upper[j]
        objective += c.cost[j] * c.lower[j]
    s.tie[0] = RATIO_TIE * cheapest
    for i in range(len(basic)):
        lower[n + i], upper[n + i], s.cut_scale[0, i] = 0.0, np.inf, 0.0
    row = 0
    for i in range(m):
        basic[row] = -c.h[i]
        for j in range(n):
            T[row, j] = -c.A[i, j]
            basic[row] += c.A[i, j] * c.lower[j]
        s.row_of[0, row] = n + row
        row += 1
    for b in range(categories):
        levels = 0
        for j in range(n):
            T[row, j] = 1.0 if c.block[j] == b else 0.0
            levels += c.block[j] == b
        if levels == 0 or (levels == 1 and not c.forced[b]):  # its upper bound says the same
            continue
        basic[row], s.row_of[0, row] = 1.0, n + row
        if c.forced[b]:
            upper[n + row] = 0.0
        row += 1
    if d is not None:  # a square is not negative
        basic[row] = room
        for j in range(n):
            T[row, j] = -c.a[j]
            basic[row] += c.a[j] * c.lower[j]
        s.row_of[0, row] = n + row
        row += 1
    s.n_rows[0], s.n_columns[0], s.objective[0] = row, n, objective
    return row


@part
def read_point(s: Stack, depth: int, n: int) -> None:
    """The columns' values in the present node, into ``s.t``."""
    for j in range(n):
        s.t[j] = s.fixed[depth, j]
    for j in range(s.n_columns[depth]):
        if s.column_of[depth, j] < n:
            s.t[s.column_of[depth, j]] = s.value[depth, j]
    for i in range(s.n_rows[depth]):
        if s.row_of[depth, i] < n:
            s.t[s.row_of[depth, i]] = s.basic[depth, i]


@part
def fractional(c: Change, n: int, s: Stack, least: float) -> int:
    """The column that is furthest from whole in ``s.t``, in units of cost; -1 if all are whole."""
    found, most = -1, 0.0
    for v in range(n):
        if c.whole[v]:
            away = abs(s.t[v] - nearest_whole(s.t[v]))
            if away > least and away * c.cost[v] > most:
                found, most = v, away * c.cost[v]
    return found


@part
def narrow(c: Change, n: int, s: Stack, depth: int, objective: float, limit: float, kept: int) -> None:
    """Drop columns that cannot move below the limit, their reduced cost says so; `kept` is about to be branched on."""
    T, price, value = s.T[depth], s.price[depth], s.value[depth]
    column_of, lower, upper = s.column_of[depth], s.lower[depth], s.upper[depth]
    columns, j = s.n_columns[depth], 0
    while j < columns:
        v = column_of[j]
        useless = False
        if v < n:
            if upper[v] <= lower[v]:
                useless = True
            elif c.whole[v]:
                useless = v != kept and objective + abs(price[j]) > limit
        if useless:
            s.fixed[depth, v] = lower[v] = upper[v] = value[j]
            columns -= 1
            if j < columns:
                column_of[j], value[j], price[j] = column_of[columns], value[columns], price[columns]
                for i in range(s.n_rows[depth]):
                    T[i, j] = T[i, columns]
        else:
            j += 1
    s.n_columns[depth] = columns


@part
def copy_node(s: Stack, depth: int, n: int) -> None:
    """A second copy of the present node, on top of it."""
    copy_to(s, depth, n, s, depth + 1)


@part
def copy_to(s: Stack, depth: int, n: int, r: Stack, place: int) -> None:
    """A copy of a node, at a place of this or of another stack."""
    rows, columns = s.n_rows[depth], s.n_columns[depth]
    for i in range(rows):
        r.basic[place, i], r.row_of[place, i] = s.basic[depth, i], s.row_of[depth, i]
        for j in range(columns):
            r.T[place, i, j] = s.T[depth, i, j]
    for j in range(columns):
        r.price[place, j], r.value[place, j] = s.price[depth, j], s.value[depth, j]
        r.column_of[place, j] = s.column_of[depth, j]
    for j in range(n):
        r.fixed[place, j] = s.fixed[depth, j]
    for j in range(len(s.used)):
        r.lower[place, j], r.upper[place, j] = s.lower[depth, j], s.upper[depth, j]
    for i in range(s.cut_scale.shape[1]):
        r.cut_scale[place, i] = s.cut_scale[depth, i]
    r.tie[0] = s.tie[0]
    r.n_rows[place], r.n_columns[place], r.objective[place] = rows, columns, s.objective[depth]


@part
def into_bounds(s: Stack, depth: int, v: int) -> None:
    """Move a nonbasic column to its bounds, after these have changed."""
    for j in range(s.n_columns[depth]):
        if s.column_of[depth, j] == v:
            step = min(max(s.value[depth, j], s.lower[depth, v]), s.upper[depth, v]) - s.value[depth, j]
            if step != 0.0:
                s.value[depth, j] += step
                s.objective[depth] += s.price[depth, j] * step
                for i in range(s.n_rows[depth]):
                    s.basic[depth, i] -= s.T[depth, i, j] * step


@part
def branch_on_tie(c: Change, n: int, s: Stack, depth: int, objective: float, limit: float) -> bool:
    """Put a node above where a column moves that could as well move for the same cost; here it may not any more."""
    for j in range(s.n_columns[depth]):
        v = s.column_of[depth, j]
        if v >= n or not c.whole[v] or s.upper[depth, v] <= s.lower[depth, v]:
            continue
        if objective + abs(s.price[depth, j]) > limit:
            s.upper[depth, v] = s.lower[depth, v] = s.value[depth, j]
            continue
        step = 1.0 if s.value[depth, j] <= s.lower[depth, v] else -1.0
        copy_node(s, depth, n)
        above = depth + 1
        s.value[above, j] += step
        if step > 0:
            s.lower[above, v] = s.value[above, j]
        else:
            s.upper[above, v] = s.value[above, j]
        for i in range(s.n_rows[above]):
            s.basic[above, i] -= s.T[above, i, j] * step
        s.objective[above] = objective + s.price[depth, j] * step
        s.upper[depth, v] = s.lower[depth, v] = s.value[depth, j]
        return True
    return False
