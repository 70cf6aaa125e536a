"""Numbers without steps: a conic program for Clarabel, and what its dual vector proves."""

from __future__ import annotations

from typing import Any

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from evenhand.projection.problem import Problem
from evenhand.projection.verify.opinion import EMPTY, Opinion, units_of, ways
from evenhand.sets import ConvexSet, Paraboloid
from evenhand.table.limits import FIXED
from evenhand.types import FloatArray

SOLVED = ("Solved", "AlmostSolved")
FINEST = 1e-7  # of the cost: what moves less is not told apart


def conic_opinion(problem: Problem, piece: ConvexSet, x: FloatArray, start: FloatArray, unit: float) -> Opinion:  # noqa: ARG001
    """The least norm of a change into a piece, in variables none of which is larger than that norm."""
    columns = np.arange(problem.n_columns)
    least, most = ways(problem, x, frozenset())
    least, most = np.maximum(least, piece.box[0] - x), np.minimum(most, piece.box[1] - x)
    still = problem.limits.directions == FIXED
    room = 1e-9 * (1.0 + np.abs(x))
    if (least > most + np.where(still, room, 0.0)).any():
        return Opinion(EMPTY)
    free = columns[~still]
    if not len(free):
        inside = bool(piece.contains(x[None])[0])
        return Opinion(0.0, x) if inside else Opinion(EMPTY)
    units = units_of(problem, free) * unit
    G, h = piece.halfspaces
    A = np.vstack([G[:, free] * units, np.eye(len(free)), -np.eye(len(free))])
    b = np.concatenate([h - G @ x, most[free] / units, -least[free] / units])
    length = np.abs(A).max(axis=1)
    # A row without a free column says yes or no: what it misses by rounding is a yes.
    missed = (length == 0) & (b < -1e-9 * (np.concatenate([np.abs(G) @ np.abs(x), np.zeros(2 * len(free))]) + 1e-9))
    if missed.any() or (b == -np.inf).any():
        return Opinion(EMPTY)
    used = (length > 0) & np.isfinite(b)
    balls = []
    for part in piece.ellipsoids:
        assert not isinstance(part, Paraboloid)  # see where the solver is chosen
        if part.radius < 0:
            return Opinion(EMPTY)
        balls.append((part.matrix[:, free] * units, part.offset - part.matrix @ x, part.radius))
    K = _norm_matrix(problem, free, units / unit)
    bound, v = _least_norm(A[used], b[used], balls, K, np.ones(len(free)))
    if v is not None and np.isfinite(bound):
        # Once more in units of what was found: a column that hardly moves is otherwise lost in the tolerances.
        again, finer = _least_norm(A[used], b[used], balls, K, np.clip(np.abs(v), FINEST, 1.0))
        bound, v = max(bound, again), v if finer is None else finer
    if v is None:
        return Opinion(EMPTY if _contradict(A[used], b[used]) else bound * unit)
    point = x.copy()
    point[free] += units * v
    return Opinion(bound * unit, problem.limits.snap(point[None], x[None])[0])


def _contradict(A: FloatArray, b: FloatArray) -> bool:
    """Whether HiGHS says of the rows alone that no point keeps all of them: a conic solver may come to no end there."""
    length = np.abs(A).max(axis=1)
    found = linprog(np.zeros(A.shape[1]), A / length[:, None], b / length, bounds=(None, None), method="highs")
    return bool(found.status == 2)


def _norm_matrix(problem: Problem, free: Any, units: FloatArray) -> FloatArray | None:
    """K with cost ``||K v||_2``; None where the cost is the sum of ``|v|``."""
    if problem.cost.order == 1:
        return None
    matrix = problem.cost.matrix
    if matrix is None:
        return np.eye(len(free))
    return np.asarray(np.linalg.cholesky(matrix[np.ix_(free, free)]).T * units)


def _least_norm(
    A: FloatArray,
    b: FloatArray,
    balls: list[tuple[FloatArray, FloatArray, float]],
    K: FloatArray | None,
    scale: FloatArray,
) -> tuple[float, FloatArray | None]:
    """Bound and point of: least norm of v with ``A v <= b`` and ``||R v - g|| <= r`` for every ball.

    The program is about ``v / scale``, in rows that have no entry above one.
    """
    n = A.shape[1]
    ceilings = n if K is None else 1
    length = np.abs(A * scale).max(axis=1, initial=0.0)
    flat = np.hstack([A * scale / length[:, None], np.zeros((len(A), ceilings))])
    b = b / length
    if K is None:  # a ceiling over every |v|
        norm = np.vstack([np.hstack([np.eye(n), -np.eye(n)]), np.hstack([-np.eye(n), -np.eye(n)])])
        rows, sides = [flat, norm], [b, np.zeros(2 * n)]
        cones: list[Any] = [clarabel.NonnegativeConeT(len(A) + 2 * n)]
        kinds = [(len(A) + 2 * n, False)]
        reach = np.append(scale, scale)
    else:
        norm = -np.vstack([np.append(np.zeros(n), 1.0), np.hstack([K * scale, np.zeros((n, 1))])])
        rows, sides = [flat, norm], [b, np.zeros(n + 1)]
        cones = [clarabel.NonnegativeConeT(len(A)), clarabel.SecondOrderConeT(n + 1)]
        kinds = [(len(A), False), (n + 1, True)]
        reach = np.append(scale, 1.0)
    for R, g, radius in balls:
        long = float(np.linalg.norm(R * scale, axis=0).max(initial=0.0)) or 1.0
        body = np.hstack([-R * scale / long, np.zeros((len(R), ceilings))])
        rows.append(np.vstack([np.zeros((1, n + ceilings)), body]))
        sides.append(np.append(radius, -g) / long)
        cones.append(clarabel.SecondOrderConeT(len(R) + 1))
        kinds.append((len(R) + 1, True))
    everything, right = np.vstack(rows), np.concatenate(sides)
    linear = np.append(np.zeros(n), reach[n:])
    best, point = 0.0, None
    for accuracy in (1e-10, 1e-8):
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = accuracy
        nothing = sparse.csc_matrix((n + ceilings, n + ceilings))
        solution = clarabel.DefaultSolver(
            nothing, linear, sparse.csc_matrix(everything), right, cones, settings
        ).solve()
        dual = np.array(solution.z)
        for z in (dual, _sharpened(dual, everything, linear)):
            best = max(best, _proven(z, everything, right, linear, kinds, reach))
        if str(solution.status) in SOLVED:
            return best, scale * np.array(solution.x)[:n]
        if np.isinf(best):
            break
    return best, point


def _sharpened(z: FloatArray, A: FloatArray, linear: FloatArray) -> FloatArray:
    """A dual vector without its residual: what is left of one in a column that hardly moves would cost the proof."""
    if not np.isfinite(z).all():
        return z
    large = np.abs(z) > 1e-9 * np.abs(z).max(initial=0.0)
    step = np.linalg.lstsq(A[large].T, A.T @ z + linear, rcond=None)[0]
    sharp = z.copy()
    sharp[large] -= step
    return sharp


def _proven(
    z: FloatArray, A: FloatArray, b: FloatArray, linear: FloatArray, kinds: list[tuple[int, bool]], reach: FloatArray
) -> float:
    """What any dual vector proves, once it is in its cone: no variable times `reach` is more than its point costs.

    With ``A v + s = b`` and s in the cone, ``linear @ v >= -b @ z + (A.T z + linear) @ v``; and without the objective,
    ``0 >= -b @ z + (A.T z) @ v``, so that a v has to be long.
    """
    if not np.isfinite(z).all():
        return 0.0
    z, at = z.copy(), 0
    for length, curved in kinds:
        part = z[at : at + length]
        if curved:
            part[0] = max(part[0], float(np.linalg.norm(part[1:])))
        else:
            np.maximum(part, 0.0, out=part)
        at += length
    value = float(-b @ z)
    if not value > 0:
        return 0.0
    slope = A.T @ z
    residual, drift = float((np.abs(slope + linear) / reach).sum()), float((np.abs(slope) / reach).sum())
    return max(value * (1.0 - residual), value / drift if drift > 0 else np.inf)
