"""What kernels could not certify, one query at a time: orthogonal factors, else Clarabel, by the same dual bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from evenhand.projection.norms.instance import Answer, Instance, dual_vector, feasible, inside, proven_bound
from evenhand.projection.norms.polish import held_point, shortest
from evenhand.projection.norms.proof import COLUMN_RAY, FAR, SHARP
from evenhand.projection.norms.simplex import FAILED, INFEASIBLE, OPTIMAL
from evenhand.types import FloatArray

ROUNDING = 1e-14  # of the numbers that meet in a row, by which it may be missed
LIBRARY_ZERO = 1e-7  # multipliers of a library that are a smaller part of the largest are none
LIBRARY_RAY = 1e-3  # of what is in a column, multipliers of a library that cancel to that leave nothing


def by_library(problem: Instance, unguarded: Instance) -> Answer:
    """Solve what kernels gave up on; what is proven is proven about the problem without its guard, and loose.

    A piece that is thinner than the guard has no point, but that is no proof that there is none.
    """
    answer = _by_factors(problem) or _exact(problem, _solved(problem))
    if answer.status == INFEASIBLE:
        bare = _by_factors(unguarded) or _solved(unguarded)
        return answer if bare.status == INFEASIBLE else replace(answer, status=FAILED, bound=bare.bound)
    return replace(answer, bound=proven_bound(unguarded, answer.mult, answer.ball_mult))


def _by_factors(problem: Instance) -> Answer | None:
    """What orthogonal factors find in l2 without an ellipsoid, if the multipliers prove it."""
    if problem.order == 1 or problem.balls:
        return None
    found = shortest(problem.A, problem.h, ROUNDING * problem.room)
    if found is None:
        return None
    bound = proven_bound(problem, found.mult, ())
    if found.xi is None:
        cancelled = np.abs(problem.A.T @ found.mult) <= COLUMN_RAY * (np.abs(problem.A).T @ found.mult)
        nowhere = np.full(problem.A.shape[1], np.nan)
        return Answer(INFEASIBLE, nowhere, np.inf, bound, found.mult) if bound > 0 and cancelled.all() else None
    cost = float(np.linalg.norm(found.xi))
    sharp = cost - bound <= SHARP * cost + ROUNDING * float(found.mult @ problem.room) / max(cost, 1e-300)
    return Answer(OPTIMAL, found.xi, cost, bound, found.mult) if sharp and feasible(problem, found.xi) else None


def _exact(problem: Instance, answer: Answer) -> Answer:
    """The same answer, where it is the only one, computed from what holds it; as it is where that fails."""
    if problem.order == 1 or answer.status != OPTIMAL or not answer.cost > 0 or len(problem.balls) > 1:
        return answer
    ball = problem.balls[0] if problem.balls else None
    push = float(np.linalg.norm(answer.ball_mult[0])) if ball else 0.0
    pressed = ball is not None and ball[2] > 0 and push > LIBRARY_ZERO * answer.cost
    weight = push / ball[2] if pressed and ball else 0.0
    room = ROUNDING * (problem.room + answer.cost)
    held = held_point(problem.A, problem.h, ball, answer.xi, answer.mult, weight, room)
    if held is None or not feasible(problem, held.xi):
        return answer
    ball_mult = (held.push,) if ball else ()
    cost = float(np.linalg.norm(held.xi))
    bound = proven_bound(problem, held.mult, ball_mult)
    sharp = bound >= answer.bound or cost - bound <= SHARP * cost
    return Answer(OPTIMAL, held.xi, cost, bound, held.mult, ball_mult) if sharp else answer


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
    bound = proven_bound(problem, mult, tuple(ball_mult))
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
    if not proven_bound(problem, mult, ball_mult) > 0.0:
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
