"""Where a label is dense, by tangents: each cuts off a point that is not, and nothing that is."""

from __future__ import annotations

import numpy as np

from evenhand.projection._numba import part
from evenhand.projection.levels.arrays import Change, Stack
from evenhand.projection.levels.tableau import FEASIBLE

DENSE = 1e-8  # how far beyond the density's threshold tangents are put, so that what is returned passes it
LIFT = 1e-6  # a face that lifts the objective by less, relative to one plus it, is not worth its tangent
INDEPENDENT = 1e-9  # of a tangent's own part, squared, compared with all of it


@part
def excess_of(c: Change, n: int, room: float, s: Stack) -> tuple[float, float]:
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
def drop_loose_tangents(s: Stack, depth: int, first: int) -> None:
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
def _binding(c: Change, n: int, s: Stack, depth: int) -> int:
    """How many tangents bind, -1 if more than can be told apart; what their slacks do goes into ``s.lean``."""
    rows, k, count = s.n_rows[depth], len(s.u), 0
    T, row_of, column_of, price = s.T[depth], s.row_of[depth], s.column_of[depth], s.price[depth]
    ahead, bend = s.slack[1], s.slack[2]
    for j in range(s.n_columns[depth]):
        v = column_of[j]
        if v < n or s.cut_scale[depth, v - n] == 0.0:
            continue
        if count == k:
            return -1
        s.binding[count], ahead[count], bend[count] = j, max(price[j], 0.0), 0.0
        for e in range(k):
            s.lean[e, count] = 0.0
        for i in range(rows):
            w = row_of[i]
            if w < n and T[i, j] != 0.0:
                bend[count] += c.a[w] * T[i, j]
                for e in range(k):
                    s.lean[e, count] += c.R[e, w] * T[i, j]
        count += 1
    return count


@part
def face_point(c: Change, n: int, left: float, objective: float, s: Stack, depth: int) -> tuple[float, float]:
    """Where the next tangent is worth most: what is left of the room there, and what that point costs.

    A vertex beyond the quadratic is where some tangents meet.  Let go of them and keep all else that binds: on that
    face the cheapest point of the quadratic's set has a closed form, and the tangent there lifts the objective to it.
    ``R t - g`` of that point goes into ``s.u``, the point into ``s.face``; its cost is infinite if it breaks a bound.
    Without such a point all stays as it is, and the tangent is the one nearest to the vertex.
    """
    k, count = len(s.u), _binding(c, n, s, depth)
    lean, root, slack, ahead, bend = s.lean, s.root, s.slack[0], s.slack[1], s.slack[2]
    # 1/2 |u - lean z|^2 + bend z - left is least where lean' lean z = lean' u - bend; root is the Cholesky factor.
    lowest, length = -left, 0.0
    for e in range(k):
        lowest += 0.5 * s.u[e] * s.u[e]
    for a in range(count):
        slack[a] = -bend[a]
        for e in range(k):
            slack[a] += lean[e, a] * s.u[e]
        for b in range(a + 1):
            value = 0.0
            for e in range(k):
                value += lean[e, a] * lean[e, b]
            size = value
            for e in range(b):
                value -= root[a, e] * root[b, e]
            if a > b:
                root[a, b] = value / root[b, b]
            elif value > INDEPENDENT * size:
                root[a, a] = np.sqrt(value)
            else:
                return left, np.inf
        for e in range(a):
            slack[a] -= root[a, e] * slack[e]
            ahead[a] -= root[a, e] * ahead[e]
        slack[a] /= root[a, a]
        ahead[a] /= root[a, a]
        lowest -= 0.5 * slack[a] * slack[a]
        length += ahead[a] * ahead[a]
    if count < 1 or not lowest < 0.0 or not length > 0.0:
        return left, np.inf
    reach = np.sqrt(-2.0 * lowest / length)
    for a in range(count):
        slack[a] -= reach * ahead[a]
    for a in range(count - 1, -1, -1):
        for e in range(a + 1, count):
            slack[a] -= root[e, a] * slack[e]
        slack[a] /= root[a, a]
    lift, inside = 0.0, True
    for a in range(count):
        lift += max(s.price[depth, s.binding[a]], 0.0) * slack[a]
    for j in range(n):
        s.face[j] = s.t[j]
    for i in range(s.n_rows[depth]):
        v, value = s.row_of[depth, i], s.basic[depth, i]
        for a in range(count):
            value -= s.T[depth, i, s.binding[a]] * slack[a]
        if v < n:
            s.face[v] = value
        if v < n or s.cut_scale[depth, v - n] == 0.0:
            inside &= s.lower[depth, v] - FEASIBLE <= value <= s.upper[depth, v] + FEASIBLE
    if not inside and lift <= LIFT * (1.0 + objective):
        return left, np.inf
    for a in range(count):
        left -= bend[a] * slack[a]
        for e in range(k):
            s.u[e] -= lean[e, a] * slack[a]
    return left, (objective + lift if inside else np.inf)


@part
def add_tangent(c: Change, n: int, room: float, left: float, s: Stack, depth: int) -> None:
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
def shift_of(s: Stack, depth: int, n: int) -> float:
    """What the objective loses if every tangent is put back by DENSE: the bound must hold for the true threshold."""
    total = 0.0
    for j in range(s.n_columns[depth]):
        v = s.column_of[depth, j]
        if v >= n:
            total += max(s.price[depth, j], 0.0) * s.cut_scale[depth, v - n]
    return total * DENSE
