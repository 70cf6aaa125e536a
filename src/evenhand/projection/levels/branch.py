"""The cheapest change of one person over numbers, steps and levels: branch and bound with a proof.

A change is a vector t >= 0: every number that may move has a column up and a column down (whole numbers count their
steps), and every level that a person does not have has a column z with 0 <= z <= 1, at most one of them per category.
What is asked for is linear, ``A t >= h``, and for plausible answers one convex quadratic,
``1/2 |R t - g|^2 - a t <= r``, which tangents approach from outside.  A node solves the linear relaxation by a dual
simplex on a condensed tableau; a child changes one bound, so it starts where its parent ended.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenhand.projection._numba import part, workspace
from evenhand.types import BoolArray, FloatArray, IntArray

FEASIBLE = 1e-11  # of a basic variable; columns are in units of cost, rows have entries up to one
PIVOT = 1e-10
WHOLE = 1e-7  # further from a whole number a column is branched on
DENSE = 1e-8  # how far beyond the density's threshold tangents are put, so that what is returned passes it
ROUNDS = 400  # of tangents in a node
EARLY = 16  # rounds of tangents where columns are not whole yet: fewer leave weak bounds, more are lost on branches
PROVEN, LIMIT, TROUBLE = 0, 1, 2
SOLVED, WORSE, EMPTY, STUCK = 0, 1, 2, 3


class Change(NamedTuple):
    """The columns of one person's change towards one piece, `n` of them in use."""

    cost: FloatArray
    whole: BoolArray
    lower: FloatArray
    upper: FloatArray
    block: IntArray  # the category of a level's column, -1 for a number
    of: IntArray  # the number or the category
    kind: IntArray  # 0 up, 1 down, 2 + level
    A: FloatArray  # (rows, n)
    h: FloatArray
    R: FloatArray  # (k, n)
    g: FloatArray
    a: FloatArray
    forced: BoolArray  # categories whose present level is not allowed


class Stack(NamedTuple):
    """Tableaus from the root to the present node."""

    T: FloatArray  # (depth, rows, columns)
    basic: FloatArray  # values of basic variables
    price: FloatArray  # reduced costs
    value: FloatArray  # values of nonbasic variables
    row_of: IntArray  # which variable is basic in a row
    column_of: IntArray
    lower: FloatArray
    upper: FloatArray
    fixed: FloatArray  # values of columns that were dropped
    objective: FloatArray
    n_rows: IntArray
    n_columns: IntArray
    cut_scale: FloatArray  # (depth, rows): what a unit of density is worth in a tangent's row, 0 for other rows
    done: BoolArray
    ratio: FloatArray
    t: FloatArray
    u: FloatArray
    gradient: FloatArray
    used: BoolArray


@workspace
def make_change(columns: int, rows: int, k: int, categories: int) -> Change:
    """Room for a change."""
    f, i = np.zeros((4, columns)), np.zeros((3, columns), np.int64)
    return Change(
        f[0],
        np.zeros(columns, np.bool_),
        f[1],
        f[2],
        i[0],
        i[1],
        i[2],
        np.zeros((rows, columns)),
        np.zeros(rows),
        np.zeros((k, columns)),
        np.zeros(k),
        f[3],
        np.zeros(categories, np.bool_),
    )


@workspace
def make_stack(depth: int, rows: int, columns: int, k: int) -> Stack:
    """Room for a search."""
    both = rows + columns
    return Stack(
        np.zeros((depth, rows, columns)),
        np.zeros((depth, rows)),
        np.zeros((depth, columns)),
        np.zeros((depth, columns)),
        np.zeros((depth, rows), np.int64),
        np.zeros((depth, columns), np.int64),
        np.zeros((depth, both)),
        np.zeros((depth, both)),
        np.zeros((depth, columns)),
        np.zeros(depth),
        np.zeros(depth, np.int64),
        np.zeros(depth, np.int64),
        np.zeros((depth, rows)),
        np.zeros(columns, np.bool_),
        np.zeros(columns),
        np.zeros(columns),
        np.zeros(k),
        np.zeros(columns),
        np.zeros(both, np.bool_),
    )


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
def _relax(s: Stack, depth: int, objective: float, limit: float) -> tuple[int, float]:
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
                    if s.ratio[j] < least - 1e-12 or (s.ratio[j] < least + 1e-12 and entry > size):
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
def _start(c: Change, n: int, m: int, categories: int, quadratic: bool, room: float, s: Stack) -> int:
    """The tableau of the root, and how many rows it has."""
    T, basic, lower, upper = s.T[0], s.basic[0], s.lower[0], s.upper[0]
    objective = 0.0
    for j in range(n):
        s.price[0, j], s.value[0, j], s.column_of[0, j] = c.cost[j], c.lower[j], j
        lower[j], upper[j] = c.lower[j], c.upper[j]
        objective += c.cost[j] * c.lower[j]
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
    if quadratic:  # a square is not negative
        basic[row] = room
        for j in range(n):
            T[row, j] = -c.a[j]
            basic[row] += c.a[j] * c.lower[j]
        s.row_of[0, row] = n + row
        row += 1
    s.n_rows[0], s.n_columns[0], s.objective[0] = row, n, objective
    return row


@part
def _point(s: Stack, depth: int, n: int) -> None:
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
def _excess(c: Change, n: int, room: float, s: Stack) -> tuple[float, float]:
    """How much the quadratic is missed by, and what is left of the room; ``R t - g`` goes into ``s.u``."""
    square, left = 0.0, room
    for j in range(n):
        left += c.a[j] * s.t[j]
    for i in range(len(c.g)):
        value = -c.g[i]
        for j in range(n):
            if s.t[j] != 0.0:
                value += c.R[i, j] * s.t[j]
        s.u[i] = value
        square += value * value
    return 0.5 * square - left, left


@part
def _drop_loose_tangents(s: Stack, depth: int, first: int) -> None:
    """Forget tangents that do not bind: their slack is basic and positive."""
    rows, columns = s.n_rows[depth], s.n_columns[depth]
    T, basic, row_of = s.T[depth], s.basic[depth], s.row_of[depth]
    i = 0
    while i < rows:
        if row_of[i] >= first and basic[i] > 1e-9:
            rows -= 1
            if i < rows:
                basic[i], row_of[i] = basic[rows], row_of[rows]
                for j in range(columns):
                    T[i, j] = T[rows, j]
        else:
            i += 1
    s.n_rows[depth] = rows


@part
def _add_tangent(c: Change, n: int, room: float, left: float, s: Stack, depth: int) -> None:
    """A row that every point of the quadratic's set fulfils and the present point does not."""
    rows, columns = s.n_rows[depth], s.n_columns[depth]
    T, row_of, column_of = s.T[depth], s.row_of[depth], s.column_of[depth]
    square = 0.0
    for value in s.u:
        square += value * value
    # Where the set is about to vanish, its own tangents say next to nothing: then half-way to the point.
    radius = np.sqrt(2.0 * max(left, 0.0))
    if left < 1e-3:
        radius = max(radius, 0.5 * np.sqrt(square))
    factor = radius / np.sqrt(square)
    right, largest = room + 0.5 * radius * radius, 0.0
    for i in range(len(s.u)):
        right += factor * s.u[i] * c.g[i]
    for j in range(n):
        slope = 0.0
        for i in range(len(s.u)):
            slope += c.R[i, j] * s.u[i]
        s.gradient[j] = factor * slope - c.a[j]
        largest = max(largest, abs(s.gradient[j]))
    scale = 1.0 / largest if largest > 0.0 else 1.0
    slack = right * scale
    for j in range(n):
        s.gradient[j] *= scale
        slack -= s.gradient[j] * s.t[j]
    for j in range(len(s.used)):
        s.used[j] = False
    for i in range(rows):
        s.used[row_of[i]] = True
    for j in range(columns):
        s.used[column_of[j]] = True
    name = n
    while s.used[name]:
        name += 1
    s.lower[depth, name], s.upper[depth, name] = 0.0, np.inf
    s.cut_scale[depth, name - n] = scale
    for j in range(columns):
        v = column_of[j]
        T[rows, j] = s.gradient[v] if v < n else 0.0
    for i in range(rows):
        v = row_of[i]
        if v < n and s.gradient[v] != 0.0:
            for j in range(columns):
                T[rows, j] -= s.gradient[v] * T[i, j]
    s.basic[depth, rows], row_of[rows] = slack, name
    s.n_rows[depth] = rows + 1


@part
def _shift(s: Stack, depth: int, n: int) -> float:
    """What the objective loses if every tangent is put back by DENSE: the bound must hold for the true threshold."""
    total = 0.0
    for j in range(s.n_columns[depth]):
        v = s.column_of[depth, j]
        if v >= n:
            total += max(s.price[depth, j], 0.0) * s.cut_scale[depth, v - n]
    return total * DENSE


@part
def _fractional(c: Change, n: int, s: Stack, depth: int, least: float) -> int:
    """The row of the column that is furthest from whole, in units of cost; -1 if all are whole."""
    found, most = -1, 0.0
    for i in range(s.n_rows[depth]):
        v = s.row_of[depth, i]
        if v < n and c.whole[v]:
            value = s.basic[depth, i]
            away = abs(value - np.round(value))
            if away > least and away * c.cost[v] > most:
                found, most = i, away * c.cost[v]
    return found


@part
def _narrow(c: Change, n: int, s: Stack, depth: int, objective: float, limit: float) -> None:
    """Drop columns that cannot move below the limit: their reduced cost says so."""
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
                useless = objective + abs(price[j]) > limit
        if useless:
            s.fixed[depth, v] = value[j]
            columns -= 1
            if j < columns:
                column_of[j], value[j], price[j] = column_of[columns], value[columns], price[columns]
                for i in range(s.n_rows[depth]):
                    T[i, j] = T[i, columns]
        else:
            j += 1
    s.n_columns[depth] = columns


@part
def _copy_node(s: Stack, depth: int, n: int) -> None:
    """A second copy of the present node, on top of it."""
    rows, columns, above = s.n_rows[depth], s.n_columns[depth], depth + 1
    for i in range(rows):
        s.basic[above, i], s.row_of[above, i] = s.basic[depth, i], s.row_of[depth, i]
        for j in range(columns):
            s.T[above, i, j] = s.T[depth, i, j]
    for j in range(columns):
        s.price[above, j], s.value[above, j] = s.price[depth, j], s.value[depth, j]
        s.column_of[above, j] = s.column_of[depth, j]
    for j in range(n):
        s.fixed[above, j] = s.fixed[depth, j]
    for j in range(len(s.used)):
        s.lower[above, j], s.upper[above, j] = s.lower[depth, j], s.upper[depth, j]
    for i in range(s.cut_scale.shape[1]):
        s.cut_scale[above, i] = s.cut_scale[depth, i]
    s.n_rows[above], s.n_columns[above], s.objective[above] = rows, columns, s.objective[depth]


@part
def _branch_on_tie(c: Change, n: int, s: Stack, depth: int, objective: float, limit: float) -> bool:
    """Put a node above where a column moves that could as well move for the same cost; here it may not any more."""
    for j in range(s.n_columns[depth]):
        v = s.column_of[depth, j]
        if v >= n or not c.whole[v] or s.upper[depth, v] <= s.lower[depth, v]:
            continue
        if objective + abs(s.price[depth, j]) > limit:
            s.upper[depth, v] = s.lower[depth, v] = s.value[depth, j]
            continue
        step = 1.0 if s.value[depth, j] <= s.lower[depth, v] else -1.0
        _copy_node(s, depth, n)
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
