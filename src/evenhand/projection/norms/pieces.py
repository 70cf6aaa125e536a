"""One piece and one query: the solve and its certificate."""

from __future__ import annotations

import numpy as np

from evenhand.projection._numba import copy, kernel
from evenhand.projection.norms.compiled import Tables
from evenhand.projection.norms.homotopy import l1_ellipsoid
from evenhand.projection.norms.pivot import l2_ellipsoid
from evenhand.projection.norms.query import ALL_ROWS, ROUNDING, Work, dual_norm
from evenhand.projection.norms.simplex import ABANDONED, FAILED, INFEASIBLE, OPTIMAL, l1_halfspaces
from evenhand.types import FloatArray

TIE = 1e-9  # relative difference of costs that counts as none
GAP = 1e-8  # relative gap above which an answer is handed to the library
FAR = 1e6  # farther than this many times the data's own magnitude is out of reach
RAY = 1e-10  # multipliers that cancel to this part of themselves prove that there is no point


@kernel
def norm(order: int, xi: FloatArray) -> float:
    """The l1 or the l2 norm."""
    total = 0.0
    squares = 0.0
    for j in range(len(xi)):
        total += abs(xi[j])
        squares += xi[j] * xi[j]
    return total if order == 1 else np.sqrt(squares)


@kernel
def _certify(
    t: Tables, p: int, e: int, w: Work, xi: FloatArray, lam: FloatArray, weight: float
) -> tuple[float, float, float, float, bool]:
    """What the multipliers prove about the cost, and what they are worth.

    The multipliers are those of the rows, and `weight` times (R xi - g) for the ellipsoid; scaled
    to dual feasibility they prove  ||xi|| >= (-l.h - y.g - rho ||y||) / ||A'l + R'y||_*.

    Returns that bound, its rounding error, the worst violation relative to each constraint's own
    rounding level, how far the multipliers cancel (a ray cancels to nothing), and whether ties are possible.
    """
    f = len(xi)
    v = w.dual
    v[:] = 0.0
    value = 0.0
    noise = 0.0
    mass = 0.0
    violation = 0.0
    reach = ROUNDING * norm(t.order, xi)
    if p >= 0:
        start = t.row_start[p]
        for i in range(start, t.row_start[p + 1]):
            excess = -w.h[i]
            for j in range(f):
                excess += t.A[i, j] * xi[j]
            if excess > 0.0:
                violation = max(violation, excess / (w.tol[i] + reach))
            if lam[i - start] > 0.0:
                value -= lam[i - start] * w.h[i]
                noise += lam[i - start] * w.tol[i]
                mass += lam[i - start]
                for j in range(f):
                    v[j] += lam[i - start] * t.A[i, j]
    if e >= 0:
        start = t.ell_start[e]
        count = t.ell_start[e + 1] - start
        length = 0.0
        for i in range(count):
            total = -w.g[start + i]
            for j in range(f):
                total += t.R[start + i, j] * xi[j]
            w.away[i] = total
            length += total * total
        length = np.sqrt(length)
        violation = max(violation, 0.1 * (length - w.rho[e]) / (w.slop[e] + 0.1 * (reach + ROUNDING * w.rho[e])))
        if weight > 0.0:
            value -= w.rho[e] * weight * length
            noise += weight * length * w.slop[e]
            mass += weight * length
            for i in range(count):
                y = weight * w.away[i]
                value -= y * w.g[start + i]
                for j in range(f):
                    v[j] += y * t.R[start + i, j]
    size = dual_norm(t.order, v)
    ties = t.order == 1 and size > 0.0 and _ties(t, p, e, xi, lam, weight, v, size)
    if not (0.0 < value < np.inf and size < np.inf):  # also for numbers that have overflowed
        return 0.0, 0.0, violation, 1.0, ties
    if size == 0.0:
        return np.inf, 0.0, violation, 0.0, ties
    return value / size, noise / size, violation, size / mass, ties


@kernel
def _ties(
    t: Tables, p: int, e: int, xi: FloatArray, lam: FloatArray, weight: float, v: FloatArray, size: float
) -> bool:
    """Whether other l1 optima may exist: more coordinates may move than constraints hold them."""
    moving = 0
    resting = False
    for j in range(len(xi)):
        if abs(v[j]) >= (1.0 - TIE) * size:
            moving += 1
            resting = resting or xi[j] == 0.0
    largest = 0.0
    holding = 0
    m = t.row_start[p + 1] - t.row_start[p] if p >= 0 else 0
    for i in range(m):
        largest = max(largest, lam[i])
    for i in range(m):
        if lam[i] > TIE * largest:
            holding += 1
    if e >= 0 and weight > 0.0:
        return resting or moving > holding + t.ell_start[e + 1] - t.ell_start[e]
    return moving > holding


@kernel
def _judge(status: int, cost: float, bound: float, noise: float, violation: float, cancelled: float) -> int:
    """Keep a status only where the numbers prove it; anything else has FAILED."""
    if status == OPTIMAL:
        exact = cost - bound <= GAP * cost + noise
        return OPTIMAL if exact and violation <= 10.0 else FAILED
    if status == INFEASIBLE:
        return INFEASIBLE if bound > 0.0 and cancelled <= RAY else FAILED
    return status


@kernel
def _path(
    t: Tables, p: int, e: int, w: Work, cutoff: float, xi: FloatArray, lam: FloatArray
) -> tuple[int, float, float]:
    """l1 with an ellipsoid; rows that turn out to matter are added until none is missing."""
    first, last = t.ell_start[e], t.ell_start[e + 1]
    start = t.row_start[p] if p >= 0 else 0
    m = t.row_start[p + 1] - start if p >= 0 else 0
    A, h = t.A[start : start + m], w.h[start : start + m]
    n_rows = 0
    for i in range(m):
        if m <= ALL_ROWS or w.vertex_mult[start + i] > 0.0:
            w.rows[n_rows] = i
            n_rows += 1
    room = w.path.swept.shape[0] - t.A.shape[1]
    while n_rows <= room:
        xi[:] = 0.0
        lam[:] = 0.0
        if p >= 0:
            copy(w.vertex[p], xi)
            copy(w.vertex_mult[start : start + m], lam[:m])
        status, kappa, bound = l1_ellipsoid(
            t.gram[e], t.R[first:last], w.g[first:last], w.rho[e], A, h, w.rows, n_rows, cutoff, w.path, xi, lam
        )
        if status != OPTIMAL or n_rows == m:
            return status, kappa, bound
        known = n_rows
        reach = ROUNDING * norm(t.order, xi)
        for i in range(m):
            excess = -h[i]
            for j in range(A.shape[1]):
                excess += A[i, j] * xi[j]
            if excess > w.tol[start + i] + reach:
                present = False
                for a in range(known):
                    present = present or w.rows[a] == i
                if not present:
                    w.rows[n_rows] = i
                    n_rows += 1
        if n_rows == known:
            return status, kappa, bound
    return FAILED, 0.0, 0.0


@kernel
def _turn_rows(t: Tables, start: int, m: int, e: int, w: Work) -> None:
    """Rows in an ellipsoid's axes, for regions with too many of them to keep."""
    for i in range(m):
        w.turned[i] = 0.0
        for j in range(t.A.shape[1]):
            for k in range(t.A.shape[1]):
                w.turned[i, k] += t.A[start + i, j] * t.axes[e, j, k]


@kernel
def _secular(
    t: Tables, piece: int, p: int, e: int, w: Work, cutoff: float, xi: FloatArray, lam: FloatArray
) -> tuple[int, float, float]:
    """l2, in the axes of the ellipsoid if there is one (e = -1: none)."""
    f = t.A.shape[1]
    start = t.row_start[p] if p >= 0 else 0
    m = t.row_start[p + 1] - start if p >= 0 else 0
    tol = w.tol[start : start + m]
    h = w.h[start : start + m]
    if e >= 0:
        A = t.rotated[t.rotated_start[piece] : t.rotated_start[piece] + m]
        if m > 0 and len(t.rotated) == 0:
            _turn_rows(t, start, m, e, w)
            A = w.turned[:m]
        stretch = t.stretch[e]
        g = w.g[t.ell_start[e] : t.ell_start[e + 1]]
        rho, slop = w.rho[e], w.slop[e]
    else:
        A, stretch, g, rho, slop = t.A[start : start + m], w.empty, w.empty, 1.0, 0.0
    status, tau, bound = l2_ellipsoid(A, h, stretch, g, rho, slop, tol, cutoff, w.pivot, w.dual, w.z, lam)
    if e < 0:
        copy(w.z, xi)
        return status, tau, bound
    for j in range(f):
        total = 0.0
        for k in range(f):
            total += t.axes[e, j, k] * w.z[k]
        xi[j] = total
    return status, tau, bound


@kernel
def solve_piece(
    t: Tables, piece: int, p: int, e: int, w: Work, cutoff: float, xi: FloatArray, lam: FloatArray
) -> tuple[int, float, float, bool, float]:
    """Project onto polyhedron p (-1: none) and ellipsoid e (-1: none).

    Returns status, cost, proven bound, whether ties are possible, and the ellipsoid's multiplier.
    """
    weight = 0.0
    if e >= 0 and w.rho[e] <= 0.0:
        return FAILED, np.inf, 0.0, False, 0.0
    if t.order == 2:
        status, weight, _ = _secular(t, piece, p, e, w, cutoff, xi, lam)
    elif e >= 0:
        status, kappa, _ = _path(t, p, e, w, cutoff, xi, lam)
        weight = 1.0 / kappa if kappa > 0.0 else 0.0
    else:
        start, stop = t.row_start[p], t.row_start[p + 1]
        status = l1_halfspaces(t.A[start:stop], w.h[start:stop], w.tol[start:stop], w.simplex, xi, lam)
    if status == FAILED:
        return FAILED, np.inf, 0.0, False, 0.0
    cost = norm(t.order, xi)
    proven, noise, violation, cancelled, ties = _certify(t, p, e, w, xi, lam, weight)
    if status == ABANDONED:  # on the word of a running bound, which rounding may have spoilt
        return (ABANDONED if proven > cutoff else FAILED), np.inf, proven, False, 0.0
    return _judge(status, cost, proven, noise, violation, cancelled), cost, proven, ties, weight


@kernel
def inside_rows(t: Tables, p: int, w: Work, xi: FloatArray) -> bool:
    """Whether the point lies in polyhedron p."""
    reach = ROUNDING * norm(t.order, xi)
    for i in range(t.row_start[p], t.row_start[p + 1]):
        excess = -w.h[i]
        for j in range(len(xi)):
            excess += t.A[i, j] * xi[j]
        if excess > w.tol[i] + reach:
            return False
    return True


@kernel
def inside_ellipsoid(t: Tables, e: int, w: Work, xi: FloatArray) -> bool:
    """Whether the point lies in ellipsoid e."""
    total = 0.0
    for i in range(t.ell_start[e], t.ell_start[e + 1]):
        away = -w.g[i]
        for j in range(len(xi)):
            away += t.R[i, j] * xi[j]
        total += away * away
    return bool(np.sqrt(total) <= w.rho[e] + w.slop[e])
