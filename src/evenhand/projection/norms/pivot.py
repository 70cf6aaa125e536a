r"""l2 projection onto halfspaces and, if there is one, an ellipsoid.

    min ||z||_2   subject to   A z <= h,   ||S z - g|| <= rho

in coordinates where the ellipsoid's matrix S is diagonal.  For a fixed multiplier
tau of the ellipsoid the problem is a projection in the metric D^-1 = I + tau S'S onto
halfspaces, solved by a dual active-set method that adds the most violated row, one at a time,
and drops rows whose multiplier reaches zero (Goldfarb and Idnani).  tau itself is the
root of a monotone function, found by a safeguarded Newton iteration.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.projection._numba import kernel
from evenhand.projection.memory import Room
from evenhand.projection.norms.simplex import ABANDONED, FAILED, INFEASIBLE, OPTIMAL
from evenhand.types import FloatArray

CURVATURE = 1e-13


class PivotWork(NamedTuple):
    """Memory of one active-set run, reused from query to query."""

    gram: FloatArray  # gram[a] = A D A_a for the a-th active row
    inverse: FloatArray  # inverse of the active rows' Gram matrix
    slack: FloatArray
    mult: FloatArray
    turn: FloatArray  # how the active multipliers answer the new one
    active: npt.NDArray[np.int64]
    metric: FloatArray  # diagonal of D
    pull: FloatArray
    push: FloatArray


def pivot_work(room: Room, f: int, m: int) -> PivotWork:
    """Memory for problems with `f` coordinates and at most `m` rows."""
    cap = min(m, f) + 1
    return PivotWork(
        room((cap, max(m, 1))),
        room((cap, cap)),
        room(max(m, 1)),
        room(cap),
        room(cap),
        room(cap, np.int64),
        room(f),
        room(f),
        room(cap),
    )


@kernel
def _most_violated(w: PivotWork, m: int, n: int, tol: FloatArray) -> int:
    row = -1
    worst = 0.0
    for i in range(m):
        if w.slack[i] < worst and w.slack[i] < -tol[i]:
            taken = False
            for a in range(n):
                taken = taken or w.active[a] == i
            if not taken:
                worst = w.slack[i]
                row = i
    return row


@kernel
def _drop(w: PivotWork, m: int, n: int, a: int) -> None:
    """Take the a-th active row out; the last one (and the candidate's Gram row) move up."""
    K = w.inverse
    scale = 1.0 / K[a, a]
    for i in range(n):
        if i != a:
            factor = K[i, a] * scale
            for j in range(n):
                if j != a:
                    K[i, j] -= factor * K[a, j]
    last = n - 1
    if a != last:
        for i in range(n):
            K[i, a] = K[i, last]
        for j in range(n):
            K[a, j] = K[last, j]
        w.active[a] = w.active[last]
        w.mult[a] = w.mult[last]
        for i in range(m):
            w.gram[a, i] = w.gram[last, i]
    for i in range(m):
        w.gram[last, i] = w.gram[n, i]


@kernel
def _add(w: PivotWork, n: int, row: int, curvature: float, mult: float) -> None:
    """Border the inverse with the candidate, which sits in slot n."""
    K = w.inverse
    scale = 1.0 / curvature
    for i in range(n):
        for j in range(n):
            K[i, j] += w.turn[i] * w.turn[j] * scale
        K[i, n] = -w.turn[i] * scale
        K[n, i] = -w.turn[i] * scale
    K[n, n] = scale
    w.active[n] = row
    w.mult[n] = mult


@kernel
def _active_set(A: FloatArray, gram: FloatArray, w: PivotWork, tol: FloatArray) -> tuple[int, int, int]:
    """Project in the metric `w.metric`, given the slacks at the unconstrained point.

    `gram` are the rows' products in that metric, or nothing if they are to be computed when they are needed.
    Returns status, number of active rows, and the row that proved infeasibility (or -1).
    """
    m, f = A.shape
    n = 0
    for _ in range(20 * (min(m, f) + 5)):
        row = _most_violated(w, m, n, tol)
        if row < 0:
            return OPTIMAL, n, -1
        for i in range(m):
            if len(gram):
                w.gram[n, i] = gram[row, i]
                continue
            total = 0.0
            for j in range(f):
                total += A[i, j] * w.metric[j] * A[row, j]
            w.gram[n, i] = total
        mult = 0.0
        while True:
            curvature = w.gram[n, row]
            for a in range(n):
                total = 0.0
                for b in range(n):
                    total += w.inverse[a, b] * w.gram[n, w.active[b]]
                w.turn[a] = total
            for a in range(n):
                curvature -= w.turn[a] * w.gram[n, w.active[a]]
            step = np.inf
            blocking = -1
            if curvature > CURVATURE * w.gram[n, row] and n < f:
                step = max(-w.slack[row] / curvature, 0.0)
            for a in range(n):
                if w.turn[a] > CURVATURE and w.mult[a] < step * w.turn[a]:
                    step = max(w.mult[a] / w.turn[a], 0.0)
                    blocking = a
            if step == np.inf:
                return INFEASIBLE, n, row
            mult += step
            for a in range(n):
                w.mult[a] -= step * w.turn[a]
            for i in range(m):
                rate = w.gram[n, i]
                for a in range(n):
                    rate -= w.turn[a] * w.gram[a, i]
                w.slack[i] += step * rate
            if blocking < 0:
                _add(w, n, row, curvature, mult)
                n += 1
                break
            _drop(w, m, n, blocking)
            n -= 1
    return FAILED, n, -1


@kernel
def _point(A: FloatArray, w: PivotWork, n: int, z: FloatArray) -> None:
    """z = D (pull - A'l) for the present multipliers."""
    for j in range(A.shape[1]):
        z[j] = w.pull[j]
    for a in range(n):
        for j in range(A.shape[1]):
            z[j] -= A[w.active[a], j] * w.mult[a]
    for j in range(A.shape[1]):
        z[j] *= w.metric[j]


@kernel
def _write_multipliers(w: PivotWork, n: int, row: int, lam: FloatArray) -> None:
    """The multipliers, or (with a row) the ray that proves that no point exists."""
    lam[:] = 0.0
    for a in range(n):
        lam[w.active[a]] = max(w.mult[a] if row < 0 else -w.turn[a], 0.0)
    if row >= 0:
        lam[row] = 1.0


@kernel
def _slope(A: FloatArray, w: PivotWork, n: int, pulled: FloatArray, k: int) -> float:
    """d/dtau of half the squared distance, given its gradient in z."""
    slope = 0.0
    for j in range(k):
        slope -= pulled[j] * pulled[j] * w.metric[j]
    for a in range(n):
        total = 0.0
        for j in range(k):
            total += A[w.active[a], j] * w.metric[j] * pulled[j]
        w.push[a] = total
    for a in range(n):
        for b in range(n):
            slope += w.push[a] * w.inverse[a, b] * w.push[b]
    return slope


@kernel
def l2_halfspaces(
    A: FloatArray, gram: FloatArray, h: FloatArray, tol: FloatArray, w: PivotWork, xi: FloatArray, lam: FloatArray
) -> int:
    """Solve without an ellipsoid, into `xi` and `lam` (the multipliers); return a status.

    On INFEASIBLE `lam` is a Farkas ray: A'lam = 0 up to rounding and lam.h < 0.
    """
    for j in range(A.shape[1]):
        w.metric[j] = 1.0
        w.pull[j] = 0.0
    for i in range(A.shape[0]):
        w.slack[i] = h[i]
    status, n, row = _active_set(A, gram, w, tol)
    _write_multipliers(w, n, row, lam)
    if status == OPTIMAL:
        _point(A, w, n, xi)
    return status


@kernel
def l2_ellipsoid(
    A: FloatArray,
    h: FloatArray,
    stretch: FloatArray,
    g: FloatArray,
    rho: float,
    slop: float,
    tol: FloatArray,
    cutoff: float,
    w: PivotWork,
    gradient: FloatArray,
    z: FloatArray,
    lam: FloatArray,
) -> tuple[int, float, float]:
    """Solve into `z` and `lam`; return status, tau and the best lower bound on the way.

    `stretch` is the diagonal of S (entry j acts on coordinate j) and `g` its centre; `g` may be
    longer than z, and is empty, with rho infinite, where there is no ellipsoid.  A point that is outside by no more
    than `slop` counts as inside.  `gradient` is scratch memory.
    """
    m, f = A.shape
    shared = min(len(g), f)
    tau = 0.0
    low = 0.0
    high = np.inf
    bound = 0.0
    for _ in range(100):
        for j in range(f):
            w.metric[j] = 1.0
            w.pull[j] = 0.0
        for j in range(shared):
            w.metric[j] = 1.0 / (1.0 + tau * stretch[j] * stretch[j])
            w.pull[j] = tau * stretch[j] * g[j]
        for i in range(m):
            slack = h[i]
            if tau > 0.0:
                for j in range(shared):
                    slack -= A[i, j] * w.metric[j] * w.pull[j]
            w.slack[i] = slack
        status, n, row = _active_set(A, A[:0], w, tol)
        if status != OPTIMAL:
            _write_multipliers(w, n, row, lam)
            return status, 0.0, bound
        _point(A, w, n, z)
        if rho == np.inf:
            break
        q = 0.0
        for j in range(len(g)):
            away = -g[j]
            if j < shared:
                away += stretch[j] * z[j]
                gradient[j] = stretch[j] * away
            q += away * away
        distance = np.sqrt(q)
        if tau == 0.0 and distance <= rho + slop:
            break
        length = 0.0
        for j in range(f):
            length += z[j] * z[j]
        if distance > rho:
            bound = max(bound, np.sqrt(length + tau * (q - rho * rho)))
            if bound > cutoff:
                _write_multipliers(w, n, -1, lam)
                return ABANDONED, tau, bound
        if abs(distance - rho) <= 1e-13 * rho or (high < np.inf and high - low <= 4e-16 * high):
            break
        if distance > rho:
            low = tau
        else:
            high = tau
        slope = _slope(A, w, n, gradient, shared)
        following = np.inf
        if slope < 0.0:
            following = tau - q / slope * (distance - rho) / rho
        if not (low < following < high):
            following = 0.5 * (low + high) if high < np.inf else 10.0 * low + 1e-3
        if following > 1e18:
            _write_multipliers(w, n, -1, lam)
            return INFEASIBLE, tau, bound
        tau = following
    _write_multipliers(w, n, -1, lam)
    return OPTIMAL, tau, bound
