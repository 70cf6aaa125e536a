"""A slow second opinion: the same problems, stated in a modelling language and solved by an interior point method.

It shares nothing with the package but the public set classes that state the problem.  `exact_l1` is a third opinion,
by the simplex method, on the problems that are linear programs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import cvxpy as cp
import numpy as np
from scipy.optimize import linprog

from evenhand import L1, L2
from evenhand.sets import ConvexSet, Region

Allowed = Callable[[Any], Iterable[Any]]
ACCURACIES = (1e-10, 1e-9, 1e-8)  # tried in turn


class UndecidedError(RuntimeError):
    """The oracle itself could not solve the problem to its own accuracy."""


def nearest(x, piece: ConvexSet, cost, allowed: Allowed | None = None) -> float:
    """Cost of the nearest point of one piece, infinity if it is empty.

    `allowed` is a function of the cvxpy variable that returns further constraints.
    """
    x, cost = np.asarray(x, dtype=float), as_norm(cost)
    if allowed is None and _inside(x, piece):
        return 0.0
    typical = size = float(np.linalg.norm(np.abs(x) / _lengths(cost, piece.dim))) or 1.0
    for _ in range(3):
        found = _solved(x, piece, cost, allowed, size)
        # The solver's tolerances are absolute below one: measure in units of the answer, and ask again.
        if not np.isfinite(found) or 1e-2 < found / size < 1e2 or found < 1e-7 * typical:
            break
        size = found
    return found


def nearest_of(x, region: Region, cost, allowed: Allowed | None = None) -> float:
    """Cost of the nearest point of a region, infinity if it is empty."""
    x, best = np.asarray(x, dtype=float), np.inf
    bounds = np.array([_bound(x, piece, as_norm(cost)) for piece in region.pieces])
    for k in np.argsort(bounds):
        if bounds[k] > best:
            break
        best = min(best, nearest(x, region.pieces[k], cost, allowed))
    return best


def _bound(x, piece: ConvexSet, cost) -> float:
    """What the most violated single constraint costs at least, so that far pieces need not be solved."""
    if isinstance(cost, L1) or cost.matrix is None:
        root = np.diag(_lengths(cost, piece.dim))
    else:
        root = np.linalg.inv(np.linalg.cholesky(cost.matrix)).T
    order = np.inf if isinstance(cost, L1) else 2
    excess = [0.0]
    if len(piece.h):
        price = np.linalg.norm(piece.G @ root, order, axis=1)
        excess.append(float(((piece.G @ x - piece.h) / np.where(price > 0, price, np.inf)).max()))
    sides = np.maximum(np.maximum(piece.lower - x, x - piece.upper), 0.0)
    excess.append(float((sides / np.linalg.norm(root, order, axis=1)).max()))
    for ellipsoid in piece.ellipsoids:
        reach = ellipsoid.matrix @ root
        longest = np.linalg.norm(reach, axis=0).max() if isinstance(cost, L1) else np.linalg.norm(reach, 2)
        away = np.linalg.norm(ellipsoid.matrix @ x - ellipsoid.offset) - ellipsoid.radius
        excess.append(float(away / longest) if longest > 0 else 0.0)
    return (1 - 1e-9) * max(excess)


def as_norm(cost):
    return {"l1": L1(), "l2": L2()}.get(cost, cost) if isinstance(cost, str) else cost


def _solved(x, piece: ConvexSet, cost, allowed: Allowed | None, size: float) -> float:
    step = cp.Variable(piece.dim)
    scale = _lengths(cost, piece.dim) * size  # per column: what costs `size`
    point = x + cp.multiply(scale, step)
    constraints = [] if allowed is None else list(allowed(point))
    below, above = np.isfinite(piece.lower), np.isfinite(piece.upper)
    if below.any():
        constraints.append(step[below] >= ((piece.lower - x) / scale)[below])
    if above.any():
        constraints.append(step[above] <= ((piece.upper - x) / scale)[above])
    real = piece.h < np.inf
    if real.any():
        G, h = piece.G[real] * scale, (piece.h - piece.G @ x)[real]
        length = np.linalg.norm(G, axis=1)
        length[length == 0] = 1.0
        constraints.append((G / length[:, None]) @ step <= h / length)
    for ellipsoid in piece.ellipsoids:
        F = ellipsoid.matrix * scale
        length = ellipsoid.radius if ellipsoid.radius > 0 else 1.0
        away = (F / length) @ step - (ellipsoid.offset - ellipsoid.matrix @ x) / length
        constraints.append(cp.norm(away) <= ellipsoid.radius / length)
    if isinstance(cost, L1):
        objective = cp.norm1(step)
    elif cost.matrix is None:
        objective = cp.norm(step)
    else:
        root = np.linalg.cholesky(cost.matrix).T * scale / size
        objective = cp.norm(root @ step)
    problem = cp.Problem(cp.Minimize(objective), constraints)
    if not constraints:
        return 0.0
    status = _solve(problem)
    return float(problem.value) * size if status == cp.OPTIMAL else np.inf


def _solve(problem) -> str:
    """Solve; return "optimal" or "infeasible", or raise UndecidedError."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)  # the status says so too
        for tol in ACCURACIES:
            try:
                problem.solve(solver=cp.CLARABEL, tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol, max_iter=500)
            except cp.error.SolverError:
                continue
            if problem.status in (cp.OPTIMAL, cp.INFEASIBLE):
                return problem.status
    raise UndecidedError(problem.status)


def _inside(x, piece: ConvexSet) -> bool:
    balls = (np.linalg.norm(e.matrix @ x - e.offset) <= e.radius for e in piece.ellipsoids)
    return bool((piece.lower <= x).all() and (x <= piece.upper).all() and (piece.G @ x <= piece.h).all() and all(balls))


def _lengths(cost, dim: int) -> np.ndarray:
    """How far each column moves for a cost of one."""
    if isinstance(cost, L1):
        return np.ones(dim) if cost.weights is None else 1.0 / cost.weights
    if cost.matrix is not None:
        return 1.0 / np.sqrt(np.diag(cost.matrix))
    return np.ones(dim) if cost.weights is None else 1.0 / np.sqrt(cost.weights)


def exact_l1(x, piece: ConvexSet, cost) -> float:
    """Cost of the nearest point of a polyhedron under an l1 cost, by HiGHS; infinity if it is empty."""
    assert not piece.ellipsoids
    scale = _lengths(as_norm(cost), piece.dim)
    G, h = piece.G * scale, piece.h - piece.G @ x
    sides = (piece.lower - x) / scale, (piece.upper - x) / scale
    rows = [np.hstack([G, -G])[np.isfinite(h)]]
    right = [h[np.isfinite(h)]]
    eye = np.hstack([np.eye(piece.dim), -np.eye(piece.dim)])
    for sign, side in ((-1.0, sides[0]), (1.0, sides[1])):
        rows.append(sign * eye[np.isfinite(side)])
        right.append(sign * side[np.isfinite(side)])
    found = linprog(np.ones(2 * piece.dim), np.vstack(rows), np.concatenate(right), method="highs-ds")
    if found.status == 2:
        return np.inf
    if found.status != 0:
        raise UndecidedError(found.message)
    return float(found.fun)


def shortest(x, piece: ConvexSet, cost: L1, best: float) -> float:
    """Least l2 length, in units of the cost, of the changes that enter a polyhedron at an l1 cost of `best`."""
    assert not piece.ellipsoids
    scale = _lengths(as_norm(cost), piece.dim) * best
    step = cp.Variable(piece.dim)
    room = 1e-9  # the optimal face has no interior
    below, above = np.isfinite(piece.lower), np.isfinite(piece.upper)
    constraints = [cp.norm1(step) <= 1 + room]
    if below.any():
        constraints.append(step[below] >= ((piece.lower - x) / scale)[below] - room)
    if above.any():
        constraints.append(step[above] <= ((piece.upper - x) / scale)[above] + room)
    if len(piece.h):
        G = piece.G * scale
        length = np.linalg.norm(G, axis=1)
        constraints.append((G / length[:, None]) @ step <= (piece.h - piece.G @ x) / length + room)
    problem = cp.Problem(cp.Minimize(cp.norm(step)), constraints)
    if _solve(problem) != cp.OPTIMAL:
        raise UndecidedError("the face of optima is not empty")
    return float(problem.value) * best
