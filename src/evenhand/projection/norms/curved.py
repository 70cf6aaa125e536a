"""One piece with an ellipsoid and one query: its memory, its right-hand sides, the solve and its certificate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.projection._numba import copy, kernel
from evenhand.projection.memory import Room
from evenhand.projection.norms.arrays import Curves, Rows
from evenhand.projection.norms.homotopy import l1_ellipsoid
from evenhand.projection.norms.pivot import l2_ellipsoid
from evenhand.projection.norms.proof import (
    bound_of,
    cancels,
    holding,
    judge,
    moving,
    weigh_columns,
    weigh_rows,
    without_guard,
)
from evenhand.projection.norms.query import LAST_BITS, ROUNDING, TIE, Query, dual_norm, most_rows, norm, query_memory
from evenhand.projection.norms.simplex import ABANDONED, FAILED, INFEASIBLE, OPTIMAL, l1_halfspaces
from evenhand.projection.norms.sweep import PathWork, path_work
from evenhand.types import FloatArray

SLOP = 1e-13  # a point on an ellipsoid is inside of it, whatever the last digits say
WRITTEN = LAST_BITS / SLOP  # the part of that which is rounding of what meets there
ALL_ROWS = 48  # polyhedra with more rows enter the path with the rows that matter


class CurvedQuery(NamedTuple):
    """What a query with ellipsoids needs on top of its polyhedra."""

    rows: Query
    g: FloatArray
    rho: FloatArray
    slop: FloatArray  # rounding level of each ellipsoid
    bound_ell: FloatArray
    vertex: FloatArray  # answer without the ellipsoid, per polyhedron
    vertex_lam: FloatArray
    solved_poly: npt.NDArray[np.int64]  # -1 not yet, else status
    solved_ell: npt.NDArray[np.int64]
    bound: FloatArray  # per piece
    away: FloatArray
    path: PathWork  # l1 only
    chosen: npt.NDArray[np.int64]  # rows on the path
    z: FloatArray
    turned: FloatArray  # l2 only: rows in an ellipsoid's axes


def curved_memory(room: Room, t: Rows, c: Curves, solver: Any) -> CurvedQuery:
    """Memory for one thread; `solver` makes that of the solver of polyhedra."""
    f, most, n_poly, n_ell = t.A.shape[1], most_rows(t), len(t.start) - 1, len(c.radius)
    on_path = (f, min(most, max(ALL_ROWS, f + 64))) if t.order == 1 else (1, 0)
    turned = most if t.order == 2 and not len(c.rotated) else 0
    return CurvedQuery(
        query_memory(room, t, len(c.polyhedron), solver),
        room(len(c.centre)),
        room(n_ell),
        room(n_ell),
        room(n_ell),
        room((n_poly, f)),
        room(len(t.b)),
        room(n_poly, np.int64),
        room(n_ell, np.int64),
        room(len(c.polyhedron)),
        room(int(np.diff(c.start).max(initial=1))),
        path_work(room, *on_path),
        room(most, np.int64),
        room(f),
        room((turned, f)),
    )


@kernel
def load_curves(t: Rows, c: Curves, x: FloatArray, guard: float, prunes: bool, w: CurvedQuery) -> None:
    """Right-hand sides of the ellipsoids for the query `x`, and first bounds, if they can save a solve."""
    for e in range(len(w.rho)):
        top = 0.0
        for i in range(c.start[e], c.start[e + 1]):
            total = 0.0
            magnitude = abs(c.centre[i])
            for j in range(len(x)):
                product = c.on_x[i, j] * x[j]
                total += product
                magnitude += abs(product)
            w.g[i] = c.centre[i] - total
            top = max(top, magnitude)
        w.rho[e] = max(c.radius[e] * (1.0 - 100.0 * guard) - guard * top, 0.5 * c.radius[e])
        w.slop[e] = SLOP * top
        w.bound_ell[e] = _tangent_bound(t, c, e, w) if prunes else 0.0
        w.solved_ell[e] = -1


@kernel
def _tangent_bound(t: Rows, c: Curves, e: int, w: CurvedQuery) -> float:
    """Distance to the ellipsoid at least that to its supporting halfspace across the centre."""
    start, stop = c.start[e], c.start[e + 1]
    length = 0.0
    for i in range(start, stop):
        length += w.g[i] * w.g[i]
    length = np.sqrt(length)
    if length <= c.radius[e] + w.slop[e]:
        return 0.0
    w.rows.dual[:] = 0.0
    for i in range(start, stop):
        for j in range(len(w.rows.dual)):
            w.rows.dual[j] += c.R[i, j] * w.g[i]
    size = dual_norm(t.order, w.rows.dual)
    return (length - c.radius[e]) * length / size if size > 0.0 else np.inf


@kernel
def _weigh_curve(c: Curves, e: int, w: CurvedQuery, xi: FloatArray, weight: float, reach: float) -> tuple[
    float, float, float, float, float
]:  # fmt: skip
    """What the ellipsoid adds to the bound, as :func:`weigh_rows` says it of rows."""
    value = 0.0
    start = c.start[e]
    count = c.start[e + 1] - start
    length = 0.0
    for i in range(count):
        total = -w.g[start + i]
        for j in range(len(xi)):
            total += c.R[start + i, j] * xi[j]
        w.away[i] = total
        length += total * total
    length = np.sqrt(length)
    violation = 0.1 * (length - w.rho[e]) / (w.slop[e] + 0.1 * (reach + ROUNDING * w.rho[e]))
    if not weight > 0.0:
        return 0.0, 0.0, violation, 0.0, 0.0
    value -= w.rho[e] * weight * length
    for i in range(count):
        y = weight * w.away[i]
        value -= y * w.g[start + i]
        for j in range(len(xi)):
            w.rows.dual[j] += y * c.R[start + i, j]
    mass = weight * length
    return value, mass * w.slop[e], violation, mass, mass * (c.radius[e] - w.rho[e] + WRITTEN * w.slop[e])


@kernel
def _rests(q: Query, xi: FloatArray) -> bool:
    """Whether a coordinate that may move stays at zero."""
    size = dual_norm(1, q.dual)
    rests = False
    for j in range(len(xi)):
        if size > 0.0 and xi[j] == 0.0 and abs(q.dual[j]) >= (1.0 - TIE) * size:
            rests = True
    return rests


@kernel
def l1_curved(
    t: Rows,
    c: Curves,
    piece: int,  # noqa: ARG001 - one signature
    p: int,
    e: int,
    w: CurvedQuery,
    cutoff: float,
) -> tuple[int, float]:
    """Status and the ellipsoid's multiplier; rows that turn out to matter are added until none is missing."""
    q = w.rows
    xi, lam = q.xi, q.lam
    start = t.start[p] if p >= 0 else 0
    m = t.start[p + 1] - start if p >= 0 else 0
    A, h = t.A[start : start + m], q.h[start : start + m]
    if e < 0:
        return l1_halfspaces(A, A[:0], h, q.tol[start : start + m], q.solver, xi, lam), 0.0
    first, last = c.start[e], c.start[e + 1]
    n_rows = 0
    for i in range(m):
        if m <= ALL_ROWS or w.vertex_lam[start + i] > 0.0:
            w.chosen[n_rows] = i
            n_rows += 1
    room = w.path.swept.shape[0] - t.A.shape[1]
    while n_rows <= room:
        xi[:] = 0.0
        lam[:] = 0.0
        if p >= 0:
            copy(w.vertex[p], xi)
            copy(w.vertex_lam[start : start + m], lam[:m])
        status, kappa, _ = l1_ellipsoid(
            c.gram[e], c.R[first:last], w.g[first:last], w.rho[e], A, h, w.chosen, n_rows, cutoff, w.path, xi, lam
        )
        weight = 1.0 / kappa if kappa > 0.0 else 0.0
        if status != OPTIMAL or n_rows == m:
            return status, weight
        known = n_rows
        reach = ROUNDING * norm(t.order, xi)
        for i in range(m):
            excess = -h[i]
            for j in range(A.shape[1]):
                excess += A[i, j] * xi[j]
            if excess > q.tol[start + i] + reach:
                present = False
                for a in range(known):
                    present = present or w.chosen[a] == i
                if not present:
                    w.chosen[n_rows] = i
                    n_rows += 1
        if n_rows == known:
            return status, weight
    return FAILED, 0.0


@kernel
def _turn_rows(t: Rows, c: Curves, start: int, m: int, e: int, w: CurvedQuery) -> None:
    """Rows in an ellipsoid's axes, for regions with too many of them to keep."""
    for i in range(m):
        w.turned[i] = 0.0
        for j in range(t.A.shape[1]):
            for k in range(t.A.shape[1]):
                w.turned[i, k] += t.A[start + i, j] * c.axes[e, j, k]


@kernel
def l2_curved(t: Rows, c: Curves, piece: int, p: int, e: int, w: CurvedQuery, cutoff: float) -> tuple[int, float]:
    """Status and the ellipsoid's multiplier, by way of the ellipsoid's axes."""
    q = w.rows
    f = t.A.shape[1]
    start = t.start[p] if p >= 0 else 0
    m = t.start[p + 1] - start if p >= 0 else 0
    A = t.A[start : start + m]
    some = max(e, 0)
    first, last, rho = c.start[some], c.start[some], np.inf
    if e >= 0:
        last, rho = c.start[e + 1], w.rho[e]
        A = c.rotated[c.rotated_start[piece] : c.rotated_start[piece] + m]
        if m > 0 and len(c.rotated) == 0:
            _turn_rows(t, c, start, m, e, w)
            A = w.turned[:m]
    status, tau, _ = l2_ellipsoid(
        A, q.h[start : start + m], c.stretch[some], w.g[first:last], rho, w.slop[some],
        q.tol[start : start + m], cutoff, q.solver, q.dual, w.z, q.lam,
    )  # fmt: skip
    if e < 0:
        copy(w.z, q.xi)
        return status, 0.0
    for j in range(f):
        total = 0.0
        for k in range(f):
            total += c.axes[e, j, k] * w.z[k]
        q.xi[j] = total
    return status, tau


@kernel
def solve_curved(
    solve: Any, t: Rows, c: Curves, piece: int, p: int, e: int, w: CurvedQuery, cutoff: float
) -> tuple[int, float, float, bool, float, float]:
    """Project onto ellipsoid e and polyhedron p (-1: none; one of them there is), into ``xi`` and ``lam`` of the query.

    Returns status, cost, proven bound, whether ties are possible, the ellipsoid's multiplier, and what the cost owes to
    the guard, at most.
    """
    if e >= 0 and w.rho[e] <= 0.0:
        return FAILED, np.inf, 0.0, False, 0.0, 0.0
    status, weight = solve(t, c, piece, p, e, w, cutoff)
    if status == FAILED:
        return FAILED, np.inf, 0.0, False, 0.0, 0.0
    q = w.rows
    cost = norm(t.order, q.xi)
    reach = ROUNDING * cost
    q.dual[:] = 0.0
    value, noise, violation, mass, owed = 0.0, 0.0, 0.0, 0.0, 0.0
    if p >= 0:
        value, noise, violation, mass, owed = weigh_rows(t, p, q, q.xi, q.lam)
    if e >= 0:
        more, its_noise, outside, its_mass, its_owed = _weigh_curve(c, e, w, q.xi, weight, reach)
        value, noise, violation, mass = value + more, noise + its_noise, max(violation, outside), mass + its_mass
        owed += its_owed
    bound, noise, cancelled = bound_of(t.order, q, value, noise, mass)
    proven = without_guard(t.order, q, value, owed)
    if status == ABANDONED:  # on the word of a running bound, which rounding may have spoilt
        return (ABANDONED if bound > cutoff else FAILED), np.inf, proven, False, 0.0, 0.0
    ties = False
    if t.order == 1:
        held = holding(q.lam, t.start[p + 1] - t.start[p] if p >= 0 else 0)
        if weight > 0.0:
            held += c.start[e + 1] - c.start[e]
        ties = moving(q) > held or (weight > 0.0 and _rests(q, q.xi))
    status = judge(t.order, status, cost, bound, noise, violation, cancelled, proven)
    if status == INFEASIBLE and not _is_ray(t, c, p, e, w, weight):
        return FAILED, np.inf, 0.0, False, 0.0, 0.0
    return status, cost, proven, ties, weight, bound - proven


@kernel
def _is_ray(t: Rows, c: Curves, p: int, e: int, w: CurvedQuery, weight: float) -> bool:
    """Whether the multipliers of rows and the ellipsoid cancel in every column."""
    q = w.rows
    q.xi[:] = 0.0
    q.dual[:] = 0.0
    if p >= 0:
        weigh_columns(t, p, q)
    if e >= 0 and weight > 0.0:
        start, count = c.start[e], c.start[e + 1] - c.start[e]
        length = 0.0
        for i in range(count):
            length += w.away[i] * w.away[i]
        length = weight * np.sqrt(length)
        for j in range(len(q.xi)):  # as much as its multipliers could add there: they may be nothing but noise
            size = 0.0
            for i in range(count):
                size += c.R[start + i, j] * c.R[start + i, j]
                q.dual[j] += weight * w.away[i] * c.R[start + i, j]
            q.xi[j] += length * np.sqrt(size)
    return cancels(q)


@kernel
def inside_rows(t: Rows, p: int, q: Query, xi: FloatArray) -> bool:
    """Whether the point lies in polyhedron p."""
    reach = ROUNDING * norm(t.order, xi)
    for i in range(t.start[p], t.start[p + 1]):
        excess = -q.h[i]
        for j in range(len(xi)):
            excess += t.A[i, j] * xi[j]
        if excess > q.tol[i] + reach:
            return False
    return True


@kernel
def inside_ellipsoid(c: Curves, e: int, w: CurvedQuery, xi: FloatArray) -> bool:
    """Whether the point lies in ellipsoid e."""
    total = 0.0
    for i in range(c.start[e], c.start[e + 1]):
        away = -w.g[i]
        for j in range(len(xi)):
            away += c.R[i, j] * xi[j]
        total += away * away
    return bool(np.sqrt(total) <= w.rho[e] + w.slop[e])
