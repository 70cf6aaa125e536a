"""What multipliers prove about the cost of a piece, and what that is worth.

The multipliers are those of the rows, and a weight times (R xi - g) for the ellipsoid; scaled to dual feasibility they
prove  ||xi|| >= (-l.h - y.g - rho ||y||) / ||A'l + R'y||_*.
"""

from __future__ import annotations

import numpy as np

from evenhand.projection._numba import kernel
from evenhand.projection.norms.arrays import Rows
from evenhand.projection.norms.query import LAST_BITS, TIE, Query, dual_norm
from evenhand.projection.norms.simplex import FAILED, INFEASIBLE, OPTIMAL
from evenhand.types import FloatArray

GAP = 1e-8  # relative gap above which an answer is handed to the library,
SHARP = 1e-12  # and in l2, where a gap says how far off a point may be: by the root of that, times its cost
MISSED = 2.0  # how many times its rounding level a row may be missed: less than the first guard
FAR = 1e6  # farther than this many times the data's own magnitude is out of reach
RAY = 1e-10  # multipliers that cancel to this part of themselves prove that there is no point,
COLUMN_RAY = 1e-6  # and in each column to this part of what is in that column


@kernel
def weigh_rows(t: Rows, p: int, q: Query, xi: FloatArray, lam: FloatArray) -> tuple[float, float, float, float, float]:
    """What the rows of a polyhedron add to the bound: its value, rounding error, and mass of multipliers.

    Also the worst violation, if it matters, relative to the row's own rounding level, which is that of the numbers that
    meet there (a dear column is nothing next to a cheap one), and what the value owes to the guard; A'l is added to
    ``q.dual``.
    """
    value = 0.0
    owed = 0.0
    noise = 0.0
    mass = 0.0
    violation = 0.0
    start = t.start[p]
    for i in range(start, t.start[p + 1]):
        excess = -q.h[i]
        for j in range(len(xi)):
            excess += t.A[i, j] * xi[j]
        if excess > MISSED * q.room[i]:
            size = 0.0
            for j in range(len(xi)):
                size += abs(t.A[i, j] * xi[j])
            violation = max(violation, excess / (q.room[i] + LAST_BITS * size))
        if lam[i - start] > 0.0:
            value -= lam[i - start] * q.h[i]
            owed += lam[i - start] * q.inset[i]
            noise += lam[i - start] * q.tol[i]
            mass += lam[i - start]
            for j in range(len(xi)):
                q.dual[j] += lam[i - start] * t.A[i, j]
    return value, noise, violation, mass, owed


@kernel
def bound_of(order: int, q: Query, value: float, noise: float, mass: float) -> tuple[float, float, float]:
    """The bound with the guard, its rounding error, and how far the multipliers cancel (a ray cancels to nothing)."""
    size = dual_norm(order, q.dual)
    if not (0.0 < value < np.inf and size < np.inf):  # also for numbers that have overflowed
        return 0.0, 0.0, 1.0
    if size == 0.0:
        return np.inf, 0.0, 0.0
    return value / size, noise / size, size / mass


@kernel
def without_guard(order: int, q: Query, value: float, owed: float) -> float:
    """What the same multipliers prove about the region as it is, of whose value some is owed to the guard."""
    size = dual_norm(order, q.dual)
    if not (0.0 < value - owed < np.inf and size < np.inf):
        return 0.0
    return (value - owed) / size if size > 0.0 else np.inf


@kernel
def moving(q: Query) -> int:
    """How many coordinates an l1 optimum may move, for the multipliers behind ``q.dual``; 0 if they prove nothing."""
    size = dual_norm(1, q.dual)
    count = 0
    for j in range(len(q.dual)):
        if size > 0.0 and abs(q.dual[j]) >= (1.0 - TIE) * size:
            count += 1
    return count


@kernel
def holding(lam: FloatArray, m: int) -> int:
    """How many of the first `m` rows hold the point."""
    largest = 0.0
    for i in range(m):
        largest = max(largest, lam[i])
    count = 0
    for i in range(m):
        if lam[i] > TIE * largest:
            count += 1
    return count


@kernel
def weigh_columns(t: Rows, p: int, q: Query) -> None:
    """What multipliers of rows add up to in each column, into ``q.dual``, and if nothing cancels, into ``q.xi``.

    What rounding has left of a multiplier that is zero does not count.
    """
    q.xi[:] = 0.0
    q.dual[:] = 0.0
    start, m = t.start[p], t.start[p + 1] - t.start[p]
    largest = 0.0
    for i in range(m):
        largest = max(largest, q.lam[i])
    for i in range(m):
        if q.lam[i] > RAY * largest:
            for j in range(len(q.xi)):
                q.dual[j] += q.lam[i] * t.A[start + i, j]
                q.xi[j] += q.lam[i] * abs(t.A[start + i, j])


@kernel
def cancels(q: Query) -> bool:
    """Whether the multipliers behind ``q.dual`` cancel in every column, compared with what is in ``q.xi``.

    A column that is dear to change has small entries, and next to the others it seems to be nothing.
    """
    for j in range(len(q.xi)):  # noqa: SIM110 - kernels have no generators
        if abs(q.dual[j]) > COLUMN_RAY * q.xi[j]:
            return False
    return True


@kernel
def judge(
    order: int, status: int, cost: float, bound: float, noise: float, violation: float, cancelled: float, proven: float
) -> int:
    """Keep a status only where the numbers prove it; anything else has FAILED.

    That there is no point has to be `proven` without the guard as well: a piece may be thinner than that.
    """
    if status == OPTIMAL:
        exact = cost - bound <= (GAP if order == 1 else SHARP) * cost + noise
        return OPTIMAL if exact and violation <= MISSED else FAILED
    if status == INFEASIBLE:
        return INFEASIBLE if bound > 0.0 and proven > 0.0 and cancelled <= RAY else FAILED
    return status
