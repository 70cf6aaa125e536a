r"""l1 projection onto an ellipsoid and halfspaces: follow the path of one parameter.

    min ||xi||_1   subject to   A xi <= h,   ||R xi - g|| <= rho

For every kappa > 0 consider  min kappa ||xi||_1 + 1/2 ||R xi - g||^2,  A xi <= h.  At kappa = inf
its solution is the vertex that the simplex method found; as kappa falls the solution moves
along a piecewise linear path towards the ellipsoid, and where it touches it solves the
problem, with multiplier 1 / (2 kappa) for the squared constraint.  On the way

    ||xi||_1 + (||R xi - g||^2 - rho^2) / (2 kappa)

is a proven lower bound, so a piece that cannot win is abandoned early.

What is inside, what it is worth and how it moves is kept by `sweep`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.projection._numba import kernel
from evenhand.projection.norms.simplex import ABANDONED, FAILED, INFEASIBLE, OPTIMAL
from evenhand.projection.norms.sweep import SHIFT, PathWork, load, start_with, turn
from evenhand.types import FloatArray

RATE = 1e-15


@kernel
def _first_event(w: PathWork, n: int, f: int) -> tuple[float, int]:
    """The largest kappa at which the start basis changes, with values given at kappa = 0."""
    kappa = 0.0
    event = -1
    for j in range(n):
        value, slope = w.value[j], w.slope[j]
        at = 0.0
        if j < f and not w.inside[j]:
            if 1.0 - slope > 1e-14:
                at = value / (1.0 - slope)
            if 1.0 + slope > 1e-14:
                at = max(at, -value / (1.0 + slope))
        elif (w.sign[j] * slope if j < f else slope) > 1e-14:
            at = -value / slope
        if at > kappa:
            kappa = at
            event = j
    return kappa, event


@kernel
def _next_event(w: PathWork, n: int, f: int, kappa: float, last: int) -> tuple[float, int]:
    """How far kappa can fall until something changes, and what; `last` has just changed."""
    step = kappa
    event = -1
    for j in range(f):
        value, slope = w.value[j], w.slope[j]
        if w.inside[j]:
            if w.sign[j] * slope > RATE and j != last and value / slope < step:
                step = value / slope
                event = j
        else:
            up, down = 1.0 - slope, 1.0 + slope
            if up > RATE and kappa - value < step * up and not (j == last and value > 0.0):
                step = (kappa - value) / up
                event = j
            if down > RATE and kappa + value < step * down and not (j == last and value < 0.0):
                step = (kappa + value) / down
                event = j
    for j in range(f, n):
        if w.slope[j] > RATE and j != last and w.value[j] / w.slope[j] < step:
            step = w.value[j] / w.slope[j]
            event = j
    return max(step, 0.0), event


@kernel
def _distance2(R: FloatArray, g: FloatArray, w: PathWork, point: FloatArray, n_members: int) -> float:
    """||R xi - g||^2 for a point given on the member coordinates."""
    total = 0.0
    for i in range(len(g)):
        away = -g[i]
        for a in range(n_members):
            away += R[i, w.members[a]] * point[a]
        total += away * away
    return total


@kernel
def _refine(
    gram: FloatArray, A: FloatArray, rows: npt.NDArray[np.int64], h: FloatArray, w: PathWork, n_members: int, f: int
) -> None:
    """Iterative refinement of ``at_zero + kappa * per_kappa`` against the matrix without the shift."""
    for _ in range(3):
        for a in range(n_members):
            i = w.members[a]
            zero = w.target[i] if i < f else h[rows[i - f]]
            rate = -w.sign[i]
            for b in range(n_members):
                j = w.members[b]
                if i < f and j < f:
                    entry = gram[i, j]
                elif i < f:
                    entry = A[rows[j - f], i]
                elif j < f:
                    entry = A[rows[i - f], j]
                else:
                    continue
                zero -= entry * w.at_zero[b]
                rate -= entry * w.per_kappa[b]
            w.error_zero[a] = zero
            w.error_kappa[a] = rate
        for a in range(n_members):
            i = w.members[a]
            zero = 0.0
            rate = 0.0
            for b in range(n_members):
                j = w.members[b]
                entry = -w.swept[i, j] if j <= i else -w.swept[j, i]
                zero += entry * w.error_zero[b]
                rate += entry * w.error_kappa[b]
            w.at_zero[a] += zero
            w.per_kappa[a] += rate


@kernel
def _touch(R: FloatArray, g: FloatArray, rho: float, w: PathWork, n_moved: int, kappa: float) -> float:
    """The kappa at which the refined line meets the ellipsoid."""
    aa = 0.0
    ab = 0.0
    bb = 0.0
    for i in range(len(g)):
        zero = -g[i]
        rate = 0.0
        for a in range(n_moved):
            zero += R[i, w.members[a]] * w.at_zero[a]
            rate += R[i, w.members[a]] * w.per_kappa[a]
        aa += zero * zero
        ab += zero * rate
        bb += rate * rate
    if bb <= 0.0:
        return kappa
    root = np.sqrt(max(ab * ab - bb * (aa - rho * rho), 0.0))
    return float((root - ab) / bb)


@kernel
def _finish(
    gram: FloatArray,
    A: FloatArray,
    rows: npt.NDArray[np.int64],
    h: FloatArray,
    R: FloatArray,
    g: FloatArray,
    rho: float,
    w: PathWork,
    n: int,
    kappa: float,
    xi: FloatArray,
    lam: FloatArray,
) -> float:
    """Write the refined answer; return its kappa."""
    f = A.shape[1]
    n_members = 0
    n_moved = 0
    for i in range(n):
        if w.inside[i]:
            w.members[n_members] = i
            w.at_zero[n_members] = w.value[i] - kappa * w.slope[i]
            w.per_kappa[n_members] = w.slope[i]
            n_members += 1
            if i < f:
                n_moved = n_members
    _refine(gram, A, rows, h, w, n_members, f)
    kappa = _touch(R, g, rho, w, n_moved, kappa)
    xi[:] = 0.0
    lam[:] = 0.0
    for a in range(n_members):
        i = w.members[a]
        value = w.at_zero[a] + kappa * w.per_kappa[a]
        if i < f:
            xi[i] = value
        else:
            lam[rows[i - f]] = max(value / kappa, 0.0)
    return kappa


@kernel
def _write(
    w: PathWork,
    n: int,
    f: int,
    step: float,
    scale: float,
    rows: npt.NDArray[np.int64],
    xi: FloatArray,
    lam: FloatArray,
) -> None:
    """The point `step` further along the path, and its row multipliers times `scale`."""
    xi[:] = 0.0
    lam[:] = 0.0
    for i in range(n):
        if w.inside[i] and i < f:
            xi[i] = w.value[i] - step * w.slope[i]
        elif w.inside[i]:
            lam[rows[i - f]] = max((w.value[i] - step * w.slope[i]) * scale, 0.0)


@kernel
def l1_ellipsoid(
    gram: FloatArray,
    R: FloatArray,
    g: FloatArray,
    rho: float,
    A: FloatArray,
    h: FloatArray,
    rows: npt.NDArray[np.int64],
    n_rows: int,
    cutoff: float,
    w: PathWork,
    xi: FloatArray,
    lam: FloatArray,
) -> tuple[int, float, float]:
    """Solve with the given rows; return status, kappa and the best lower bound on the way.

    On entry `xi` and `lam` are the solution without the ellipsoid, and ``gram = R'R``.
    On INFEASIBLE `lam` and R xi - g are a dual ray: a proof that no point exists; on ABANDONED they are
    (with 1 / kappa) the multipliers that prove the bound.
    """
    f = A.shape[1]
    n = f + n_rows
    for j in range(f):
        total = 0.0
        for i in range(len(g)):
            total += R[i, j] * g[i]
        w.target[j] = total
    load(gram, A, rows, n_rows, h, w)
    for i in range(n):
        moved = xi[i] if i < f else 0.0
        if moved != 0.0 or (i >= f and lam[rows[i - f]] > 0.0):
            start_with(w, n, i, np.sign(moved))
    kappa, event = _first_event(w, n, f)
    if event < 0:
        return FAILED, 0.0, 0.0
    n_moved = 0
    cost = 0.0
    for i in range(n):
        w.value[i] += kappa * w.slope[i]
        if i < f and w.inside[i]:
            w.members[n_moved] = i
            w.at_zero[n_moved] = w.value[i]
            cost += abs(w.value[i])
            n_moved += 1
    # q + d |inside|^2 obeys the path's quadratic exactly; q alone does not, and would stop it too late.
    tracked = _distance2(R, g, w, w.at_zero, n_moved)
    for i in range(n):
        if w.inside[i]:
            tracked += SHIFT * w.value[i] * w.value[i]
    bound = cost
    for _ in range(20 * n + 200):
        turn(w, n, event, kappa, f)
        step, following = _next_event(w, n, f, kappa, event)
        rate = 0.0
        extra = 0.0
        for i in range(n):
            if w.inside[i]:
                extra += w.value[i] * w.value[i]
                if i < f:
                    rate += w.sign[i] * w.slope[i]
        q = tracked - SHIFT * extra
        lower = kappa - step
        if rate < 0.0 and q + rate * (kappa * kappa - lower * lower) <= rho * rho:
            lower = np.sqrt(max(kappa * kappa + (q - rho * rho) / rate, 0.0))
            step = kappa - lower
            for i in range(n):
                w.value[i] -= step * w.slope[i]
            if lower <= 0.0:
                return FAILED, 0.0, bound
            return OPTIMAL, _finish(gram, A, rows, h, R, g, rho, w, n, lower, xi, lam), bound
        tracked += rate * (kappa * kappa - lower * lower)
        cost -= step * rate
        if lower > 0.0:
            bound = max(bound, cost + (tracked - SHIFT * extra - rho * rho) / (2.0 * lower))
            if bound > cutoff:
                _write(w, n, f, step, 1.0 / lower, rows, xi, lam)
                return ABANDONED, lower, bound
        if following < 0:
            # kappa = 0: the point of the polyhedron nearest to the ellipsoid is still outside of it.
            _write(w, n, f, step, 1.0, rows, xi, lam)
            return INFEASIBLE, 1.0, bound
        for i in range(n):
            w.value[i] -= step * w.slope[i]
        kappa = lower
        event = following
    return FAILED, kappa, bound
