"""The slow path, one query at a time: what the kernels could not certify, and ties.

Clarabel solves what a kernel gave up on; DAQP picks the canonical point of an l1 optimum that is
not unique.  Their answers are certified by the same dual bound as the kernels' own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import clarabel
import daqp
import numpy as np
import numpy.typing as npt
from scipy import sparse

from evenhand.projection.norms.compiled import Compiled
from evenhand.projection.norms.proof import FAR
from evenhand.projection.norms.query import TIE
from evenhand.projection.norms.simplex import FAILED, INFEASIBLE, OPTIMAL
from evenhand.types import FloatArray

LAST_BITS = 1e-15  # of the largest number of a query
LIBRARY_ZERO = 1e-7  # multipliers of a library that are a smaller part of the largest are none
LIBRARY_RAY = 1e-3  # of what is in a column, multipliers of a library that cancel to that leave nothing
RESOLVED = 1e-9  # relative to the numbers that meet there; an interior-point method goes no further


@dataclass(frozen=True, eq=False)
class Instance:
    """One query and one piece: min ||xi|| subject to A xi <= h and ||R xi - g|| <= rho for each ball."""

    order: int
    A: FloatArray
    h: FloatArray
    balls: tuple[tuple[FloatArray, FloatArray, float], ...]
    room: FloatArray  # rounding level of each row
    magnitude: float


@dataclass(frozen=True, eq=False)
class Answer:
    """What a solver found for an instance, with what the multipliers prove."""

    status: int
    xi: FloatArray
    cost: float
    bound: float
    mult: FloatArray
    ball_mult: tuple[FloatArray, ...] = ()
    unique: bool = False  # whether the kernels have shown that no other point costs as little


def instance(problem: Compiled, piece: int, x: FloatArray, guard: float) -> Instance:
    """The problem that the kernels see for one piece and one query."""
    t, rows = problem.rows, problem.polyhedron(piece)
    magnitude = np.abs(t.on_x[rows] * x).sum(axis=1) + np.abs(t.b[rows])
    h = t.b[rows] - t.absolute[rows] * (t.on_x[rows] @ x) - guard * t.guarded[rows] * magnitude
    largest = magnitude.max(initial=0.0)
    balls = []
    for number in problem.ellipsoids(piece):
        c = problem.curves
        assert c is not None
        part = slice(c.start[number], c.start[number + 1])
        size = float((np.abs(c.on_x[part] * x).sum(axis=1) + np.abs(c.centre[part])).max(initial=0.0))
        radius = float(c.radius[number])
        rho = max(radius * (1.0 - 100.0 * guard) - guard * size, 0.5 * radius)
        balls.append((c.R[part], c.centre[part] - c.on_x[part] @ x, rho))
        largest = max(largest, size)
    return Instance(t.order, t.A[rows], h, tuple(balls), magnitude, float(largest))


def inside(problem: Instance) -> bool:
    """Whether the query itself lies in the piece, up to what the library can resolve."""
    return feasible(problem, np.zeros(problem.A.shape[1]))


def feasible(problem: Instance, xi: FloatArray) -> bool:
    """Whether a point lies in the piece, up to what the library can resolve."""
    reach = float(np.abs(xi).sum())
    # A side at zero has no size of its own, but no point of a library is exactly there.
    room = RESOLVED * (problem.room + reach) + LAST_BITS * problem.magnitude
    in_rows = bool((problem.A @ xi - problem.h <= room).all())
    # A thin ellipsoid has a small rho in these units: what is small against the query may be large against it.
    away = [
        (float(np.linalg.norm(R @ xi - g)) - rho, 100 * RESOLVED * rho + 1e-14 * (float(np.abs(g).max()) + reach))
        for R, g, rho in problem.balls
    ]
    return in_rows and all(excess <= room for excess, room in away)


def dual_vector(problem: Instance, mult: FloatArray, ball_mult: tuple[FloatArray, ...]) -> FloatArray:
    """A'l + R'y: the slope of the bound in each coordinate."""
    v: FloatArray = problem.A.T @ mult
    for (R, _, _), y in zip(problem.balls, ball_mult, strict=True):
        v = v + R.T @ y
    return v


def _bound(problem: Instance, mult: FloatArray, ball_mult: tuple[FloatArray, ...]) -> float:
    value = float(-mult @ problem.h)
    for (_, g, rho), y in zip(problem.balls, ball_mult, strict=True):
        value -= float(y @ g) + rho * float(np.linalg.norm(y))
    v = dual_vector(problem, mult, ball_mult)
    size = float(np.abs(v).max(initial=0.0)) if problem.order == 1 else float(np.linalg.norm(v))
    if not (0 < value < np.inf and size < np.inf):
        return 0.0
    return value / size if size > 0 else np.inf


def by_library(problem: Instance, unguarded: Instance) -> Answer:
    """Solve with Clarabel; what is proven is proven about the problem without its guard.

    A piece that is thinner than the guard has no point, but that is no proof that there is none.
    """
    answer = _solved(problem)
    if answer.status == INFEASIBLE:
        bare = _solved(unguarded)
        return answer if bare.status == INFEASIBLE else replace(answer, status=FAILED, bound=bare.bound)
    return replace(answer, bound=_bound(unguarded, answer.mult, answer.ball_mult))


def _solved(problem: Instance) -> Answer:
    f = problem.A.shape[1]
    if inside(problem):
        none = tuple(np.zeros_like(g) for _, g, _ in problem.balls)
        return Answer(OPTIMAL, np.zeros(f), 0.0, 0.0, np.zeros_like(problem.h), none)
    scale = _scale(problem)
    origin, spread = _coordinates(problem, scale)
    nothing = np.zeros((f, 1))
    if problem.order == 1:  # a ceiling for every |xi_j|, their sum to be small
        ceiling, norm_cone = np.eye(f), clarabel.NonnegativeConeT(2 * f)
        norm_rows = np.vstack([np.hstack([spread, -ceiling]), np.hstack([-spread, -ceiling])])
        norm_rhs = np.concatenate([-origin, origin])
    else:  # (length, xi) in the second-order cone, length to be small
        ceiling, norm_cone = nothing, clarabel.SecondOrderConeT(f + 1)
        norm_rows = -np.vstack([np.append(np.zeros(f), 1.0), np.hstack([spread, nothing])])
        norm_rhs = np.append(0.0, origin)
    linear = np.append(np.zeros(f), np.ones(ceiling.shape[1]))
    rows = [np.hstack([problem.A @ spread, np.zeros((len(problem.h), ceiling.shape[1]))]), norm_rows]
    rhs = [problem.h / scale - problem.A @ origin, norm_rhs]
    cones: list[Any] = [clarabel.NonnegativeConeT(len(problem.h)), norm_cone]
    for R, g, rho in problem.balls:
        unit = rho / scale if rho > 0 else 1.0
        rows += [np.zeros((1, len(linear))), np.hstack([-R @ spread / unit, np.zeros((len(g), ceiling.shape[1]))])]
        rhs += [np.array([rho / scale / unit]), (R @ origin - g / scale) / unit]
        cones.append(clarabel.SecondOrderConeT(len(g) + 1))
    for tol in (1e-11, 1e-8):
        solution = _clarabel(linear, np.vstack(rows), np.concatenate(rhs), cones, tol)
        xi = (origin + spread @ np.array(solution.x)[:f]) * scale
        answer = _answer(problem, solution, xi, len(norm_rows), scale)
        if answer.status != FAILED:
            break
    return answer


def _coordinates(problem: Instance, scale: float) -> tuple[FloatArray, FloatArray]:
    """Coordinates w to solve in, xi = (origin + spread w) * scale: those in which the thinnest ball is round.

    A needle that is far away has a width next to which all other numbers are huge; as (R xi - g) / rho it is
    a ball of radius one around zero, and the solver's tolerance means a part of its width.
    """
    f = problem.A.shape[1]
    round_balls = [ball for ball in problem.balls if ball[2] > 0]
    if not round_balls:
        return np.zeros(f), np.eye(f)
    R, g, rho = min(round_balls, key=lambda ball: ball[2])
    left, values, axes = np.linalg.svd(R, full_matrices=True)
    # An axis along which the ball is as long as everything else keeps the common scale.
    kept = np.flatnonzero(values > max(rho / scale, 1e-14 * values.max(initial=0.0)))
    centre, width = np.zeros(f), np.ones(f)
    centre[kept] = (left.T @ g)[kept] / values[kept]
    width[kept] = rho / scale / values[kept]
    return axes.T @ centre / scale, axes.T * width


def _answer(problem: Instance, solution: Any, xi: FloatArray, n_norm: int, scale: float) -> Answer:
    z = np.array(solution.z)
    mult = np.maximum(z[: len(problem.h)], 0.0)
    at = len(problem.h) + n_norm
    ball_mult = []
    for _, g, rho in problem.balls:
        ball_mult.append(-z[at + 1 : at + 1 + len(g)] / (rho / scale if rho > 0 else 1.0))
        at += len(g) + 1
    bound = _bound(problem, mult, tuple(ball_mult))
    if str(solution.status) in ("Solved", "AlmostSolved"):
        cost = float(np.abs(xi).sum() if problem.order == 1 else np.linalg.norm(xi))
        return Answer(OPTIMAL if feasible(problem, xi) else FAILED, xi, cost, bound, mult, tuple(ball_mult))
    ray = bound > FAR * problem.magnitude and _cancels(problem, mult, tuple(ball_mult))
    empty = ray or _proven_empty(problem, scale)
    return Answer(INFEASIBLE if empty else FAILED, np.full_like(xi, np.nan), np.inf, bound, mult, tuple(ball_mult))


def _clarabel(linear: FloatArray, rows: FloatArray, rhs: FloatArray, cones: list[Any], tol: float) -> Any:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    n = len(linear)
    quadratic = sparse.csc_matrix((n, n))
    return clarabel.DefaultSolver(quadratic, linear, sparse.csc_matrix(rows), rhs, cones, settings).solve()


def _proven_empty(problem: Instance, scale: float) -> bool:
    """Whether every point breaks some constraint: min t subject to A xi <= h + t, ||R xi - g|| <= rho + t.

    Unlike the projection this problem always has a solution, so the solver is not asked to guess.
    """
    f = problem.A.shape[1]
    rows = [np.hstack([problem.A, -np.ones((len(problem.h), 1))]), np.append(np.zeros(f), -1.0)[None]]
    rhs = [problem.h / scale, np.ones(1)]  # t >= -1 keeps the problem bounded
    cones: list[Any] = [clarabel.NonnegativeConeT(len(problem.h) + 1)]
    for R, g, rho in problem.balls:
        rows += [np.append(np.zeros(f), -1.0)[None], np.hstack([-R, np.zeros((len(g), 1))])]
        rhs += [np.array([rho / scale]), -g / scale]
        cones.append(clarabel.SecondOrderConeT(len(g) + 1))
    solution = _clarabel(np.append(np.zeros(f), 1.0), np.vstack(rows), np.concatenate(rhs), cones, 1e-9)
    if str(solution.status) not in ("Solved", "AlmostSolved") or not float(solution.obj_val_dual) > 1e-7:
        return False
    z, at = np.array(solution.z), len(problem.h) + 1
    ball_mult = []
    for _, g, _ in problem.balls:
        ball_mult.append(-z[at + 1 : at + 1 + len(g)])
        at += len(g) + 1
    return _cancels(problem, np.maximum(z[: len(problem.h)], 0.0), tuple(ball_mult))


def _cancels(problem: Instance, mult: FloatArray, ball_mult: tuple[FloatArray, ...]) -> bool:
    """Whether multipliers cancel in every column, compared with what is in that column.

    What an interior-point method leaves of a multiplier that is zero is no part of the proof.
    """
    mult = np.where(mult > LIBRARY_ZERO * mult.max(initial=0.0), mult, 0.0)
    if not _bound(problem, mult, ball_mult) > 0.0:
        return False
    whole = np.abs(problem.A).T @ mult
    for (R, _, _), y in zip(problem.balls, ball_mult, strict=True):
        whole = whole + np.linalg.norm(R, axis=0) * np.linalg.norm(y)
    return bool((np.abs(dual_vector(problem, mult, ball_mult)) <= LIBRARY_RAY * whole).all())


def _scale(problem: Instance) -> float:
    """A length of the size of the answer, so that the library's absolute tolerances mean something."""
    longest = float(-problem.h.min(initial=0.0))
    for _, g, rho in problem.balls:
        longest = max(longest, float(np.linalg.norm(g)) - rho)
    return max(longest, 1e-4 * problem.magnitude, 1e-300)


def canonical(problem: Instance, answer: Answer) -> FloatArray:
    """Of all l1 optima the one with the least l2 length.

    The optima form a face: coordinates with |v_j| < ||v|| stay at zero, the others keep the sign
    of -v_j, rows with a multiplier stay tight, and so does R xi, since an ellipsoid is curved.
    """
    v = dual_vector(problem, answer.mult, answer.ball_mult)
    size = np.abs(v).max(initial=0.0)
    if problem.order == 2 or size == 0:
        return answer.xi
    face = np.flatnonzero(np.abs(v) >= (1 - TIE) * size)
    sign = -np.sign(v[face])
    A = problem.A[:, face] * sign
    tight = answer.mult > TIE * answer.mult.max(initial=0.0)
    lower = np.where(tight, problem.h, -1e30)
    fixed = [R for (R, _, _), y in zip(problem.balls, answer.ball_mult, strict=True) if np.linalg.norm(y) > TIE * size]
    if fixed:
        kept, target = _independent(np.vstack(fixed)[:, face] * sign, sign * answer.xi[face])
        A = np.vstack([A, kept])
        lower = np.concatenate([lower, target])
        upper = np.concatenate([problem.h, target])
        tight = np.concatenate([tight, np.ones(len(target), dtype=bool)])
    else:
        upper = problem.h
    sense = np.concatenate([np.zeros(len(face)), np.where(tight, 5, 0)]).astype(np.int32)
    scale = max(float(np.abs(answer.xi).max(initial=0.0)), 1e-300)
    solution, _, flag, _ = daqp.solve(
        np.eye(len(face)),
        np.zeros(len(face)),
        np.ascontiguousarray(A),
        np.concatenate([np.full(len(face), 1e30), upper / scale]),
        np.concatenate([np.zeros(len(face)), np.maximum(lower / scale, -1e30)]),
        sense,
        primal_tol=1e-10,
    )
    xi = np.zeros_like(answer.xi)
    xi[face] = sign * np.maximum(solution, 0.0) * scale
    return xi if flag > 0 and _as_good(problem, answer, xi) else answer.xi


def _independent(rows: FloatArray, point: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows with the same row space and full rank, and their values at a point."""
    _, values, basis = np.linalg.svd(rows, full_matrices=False)
    kept = basis[values > 1e-11 * values.max(initial=0.0)]
    return kept, kept @ point


def _as_good(problem: Instance, answer: Answer, xi: FloatArray) -> bool:
    return feasible(problem, xi) and float(np.abs(xi).sum()) <= answer.cost * (1 + TIE)


def first(problem: Compiled, candidates: list[tuple[int, FloatArray, float]]) -> tuple[int, FloatArray, float]:
    """The canonical one among candidates (piece, xi, cost): cost, then length, then the point itself."""
    cheapest = min(cost for _, _, cost in candidates)
    tied = [c for c in candidates if c[2] <= cheapest * (1 + TIE)]
    lengths = [float(np.linalg.norm(xi)) for _, xi, _ in tied]
    tied = [c for c, length in zip(tied, lengths, strict=True) if length <= min(lengths) * (1 + TIE)]
    changes = [problem.changes(xi[None])[0] for _, xi, _ in tied]
    room = TIE * max(float(np.abs(change).max(initial=0.0)) for change in changes)
    order: npt.NDArray[np.bool_] = np.ones(len(tied), dtype=bool)
    for column in np.array(changes).T:
        order &= column <= column[order].min() + room
    return tied[int(np.flatnonzero(order)[0])]
