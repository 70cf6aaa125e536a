"""One query and one piece as a program, for solvers that take one at a time, and what multipliers prove about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.projection.norms.compiled import Compiled
from evenhand.projection.norms.query import LAST_BITS
from evenhand.types import FloatArray

PERSON_BITS = 1e-15  # of the largest number of a query
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


def instance(problem: Compiled, piece: int, x: FloatArray, guard: float, *, loose: bool = False) -> Instance:
    """The problem that the kernels see for one piece and one query.

    A `loose` one is as large as rounding allows: what is proven about it holds whatever rounding has done.
    """
    t, rows = problem.rows, problem.polyhedron(piece)
    magnitude = np.abs(t.on_x[rows] * x).sum(axis=1) + np.abs(t.b[rows])
    kept = np.maximum(guard * t.guarded[rows] * magnitude, t.lost[rows] if guard > 0 else 0.0)
    h = t.b[rows] - t.absolute[rows] * (t.on_x[rows] @ x) - kept
    if loose:
        h += LAST_BITS * magnitude + t.lost[rows]
    largest = magnitude.max(initial=0.0)
    balls = []
    for number in problem.ellipsoids(piece):
        c = problem.curves
        assert c is not None
        part = slice(c.start[number], c.start[number + 1])
        size = float((np.abs(c.on_x[part] * x).sum(axis=1) + np.abs(c.centre[part])).max(initial=0.0))
        radius = float(c.radius[number])
        rho = max(radius * (1.0 - 100.0 * guard) - guard * size, 0.5 * radius)
        balls.append((c.R[part], c.centre[part] - c.on_x[part] @ x, rho + loose * LAST_BITS * size))
        largest = max(largest, size)
    return Instance(t.order, t.A[rows], h, tuple(balls), magnitude, float(largest))


def inside(problem: Instance) -> bool:
    """Whether the query itself lies in the piece, up to what the library can resolve."""
    return feasible(problem, np.zeros(problem.A.shape[1]))


def feasible(problem: Instance, xi: FloatArray) -> bool:
    """Whether a point lies in the piece, up to what the library can resolve."""
    reach = float(np.abs(xi).sum())
    # A side at zero has no size of its own, but no point of a library is exactly there.
    room = RESOLVED * (problem.room + reach) + PERSON_BITS * problem.magnitude
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


def proven_bound(problem: Instance, mult: FloatArray, ball_mult: tuple[FloatArray, ...]) -> float:
    """What multipliers prove about the cost of every point of the piece; 0 if that is nothing."""
    value = float(-mult @ problem.h)
    for (_, g, rho), y in zip(problem.balls, ball_mult, strict=True):
        value -= float(y @ g) + rho * float(np.linalg.norm(y))
    v = dual_vector(problem, mult, ball_mult)
    size = float(np.abs(v).max(initial=0.0)) if problem.order == 1 else float(np.linalg.norm(v))
    if not (0 < value < np.inf and size < np.inf):
        return 0.0
    return value / size if size > 0 else np.inf
