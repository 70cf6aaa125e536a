"""The l2 answer of an interior-point method, made exact: the same active set, solved by orthogonal factors.

A proof of 1e-11 of a cost leaves 1e-6 of it open to where the point lies: near by, everything costs nearly the same.
What similar people are told would differ by that.  So the rows and the ellipsoid that hold the point are read off the
multipliers, and the point is computed from those as equations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import lstsq, qr, solve_triangular
from scipy.optimize import brentq

from evenhand.types import FloatArray

HELD = 1e-7  # multipliers that are negative, but by a smaller part of the largest, are none
DEPENDENT = 1e-12  # rows of which nothing more is left without those before are no equations of their own
ROUNDS = 8  # sets of rows that are tried
STEPS = 20  # per row and column, of an active set
FLAT = 1e-13  # what is left of a row beside those that hold already, if it adds nothing
WIDEST = 1e6  # how far from the library's multiplier of an ellipsoid the exact one is looked for, as a factor


class Held(NamedTuple):
    """A point and the multipliers that hold it."""

    xi: FloatArray
    mult: FloatArray
    push: FloatArray  # of the ellipsoid, along R xi - g


Ball = tuple[FloatArray, FloatArray, float]


class Projected(NamedTuple):
    """The shortest point that keeps all rows, with its multipliers; without a point, a ray of multipliers."""

    xi: FloatArray | None
    mult: FloatArray


def shortest(A: FloatArray, h: FloatArray, room: FloatArray) -> Projected | None:
    """The l2 projection of zero onto ``A xi <= h``, rows of length one; None if it comes to no end.

    A dual active set, as the kernels' own, but with orthogonal factors of the rows instead of the inverse of their
    products, in which columns that are eight orders apart are lost.
    """
    mult, active = np.zeros(len(h)), np.zeros(0, dtype=np.intp)
    xi = np.zeros(A.shape[1])
    for _ in range(STEPS * (min(A.shape) + 5)):
        excess = A @ xi - h - room
        excess[active] = -np.inf
        row = int(excess.argmax()) if len(excess) else -1
        if row < 0 or not excess[row] > 0.0:
            found = _on(A[active], h[active], None, 0.0)  # once more from the rows alone: steps add up
            if found is None or (found[2] < 0.0).any():
                return Projected(xi, mult)
            mult[:] = 0.0
            mult[active] = found[2]
            return Projected(found[0], mult)
        push = 0.0
        while True:
            left, turn = _beside(A, active, row)
            curvature = float(left @ left)
            step = np.inf
            if curvature > FLAT**2:
                step = max((float(A[row] @ xi) - float(h[row])) / curvature, 0.0)
            falling = turn > FLAT
            steps = np.where(falling, mult[active] / np.where(falling, turn, 1.0), np.inf)
            blocking = int(steps.argmin()) if len(steps) else -1
            if blocking >= 0 and steps[blocking] < step:
                step = float(steps[blocking])
            else:
                blocking = -1
            if step == np.inf:
                ray = np.zeros(len(h))
                ray[active], ray[row] = np.maximum(-turn, 0.0), 1.0
                return Projected(None, ray)
            push += step
            mult[active] -= step * turn
            xi = xi - step * left
            if blocking < 0:
                mult[row] = push
                active = np.append(active, row)
                break
            mult[active[blocking]] = 0.0
            active = np.delete(active, blocking)
    return None


class Split(NamedTuple):
    """Rows that hold, taken apart: those about one column say what it is, exactly, and leave the others to the rest."""

    sides: npt.NDArray[np.intp]
    fixed: npt.NDArray[np.intp]  # the column of each side
    rest: npt.NDArray[np.intp]
    free: npt.NDArray[np.intp]


def _split(A: FloatArray) -> Split:
    single = np.count_nonzero(A, axis=1) == 1
    sides = np.flatnonzero(single)
    fixed = np.abs(A[sides]).argmax(axis=1) if len(sides) else np.zeros(0, dtype=np.intp)
    return Split(sides, fixed, np.flatnonzero(~single), np.setdiff1d(np.arange(A.shape[1]), fixed))


def _beside(A: FloatArray, active: npt.NDArray[np.intp], row: int) -> tuple[FloatArray, FloatArray]:
    """What is left of a row beside the active ones, and how their multipliers answer one of its own."""
    held, left, turn = A[active], np.zeros(A.shape[1]), np.zeros(len(active))
    sides, fixed, rest, free = _split(held)
    own = A[row, free]
    if len(rest):
        Q, T = qr(held[rest][:, free].T, mode="economic")
        along = Q.T @ own
        own = own - Q @ along
        again = Q.T @ own  # what rounding has left in their span
        own = own - Q @ again
        turn[rest] = solve_triangular(T, along + again) if len(T) == len(rest) else np.inf
    left[free] = own
    turn[sides] = (A[row, fixed] - held[rest][:, fixed].T @ turn[rest]) / held[sides, fixed]
    return left, turn


def held_point(
    A: FloatArray, h: FloatArray, ball: Ball | None, xi: FloatArray, mult: FloatArray, weight: float, room: FloatArray
) -> Held | None:
    """The l2 projection of zero onto ``A xi <= h`` and a ball ``||R xi - g|| <= rho``; None if rows do not settle.

    Parameters
    ----------
    A, h : arrays of shape (rows, columns) and (rows,)
    ball : (R, g, rho), optional
    xi, mult : arrays of shape (columns,) and (rows,)
        The point and the multipliers of rows, as good as they are known.
    weight : float
        The same of the ball; 0 if it does not hold the point.
    room : array of shape (rows,)
        By what a row may be missed: its rounding.
    """
    length = np.linalg.norm(A, axis=1)
    # How much a row pushes and how far off it is are both lengths: of a row that holds the point the first is larger.
    force, away = mult * length, np.maximum(h - A @ xi, 0.0) / np.maximum(length, 1e-300)
    rows = np.flatnonzero(force > away)
    for _ in range(ROUNDS):
        rows = _independent(A, rows)
        point = _on(A[rows], h[rows], ball if weight > 0 else None, weight)
        if point is None:
            if not len(rows):
                return None
            rows = np.delete(rows, (force[rows] - away[rows]).argmin())
            continue
        xi, weight, pushes = point
        wrong = pushes * length[rows] < -HELD * max(float(np.abs(pushes * length[rows]).max(initial=0.0)), 1e-300)
        if wrong.any():
            rows = rows[~wrong]
            continue
        excess = A @ xi - h
        excess[rows] = 0.0
        missed = excess > room
        if (missed & (length == 0.0)).any():  # what no column is in, no point can mend
            return None
        if not missed.any():
            found = np.zeros(len(h))
            found[rows] = np.maximum(pushes, 0.0)
            return Held(xi, found, _push(xi + A.T @ found, ball, weight, xi))
        worst = int(np.where(missed, excess / np.maximum(length, 1e-300), -np.inf).argmax())
        rows = np.append(rows, worst)
    return None


def _push(pull: FloatArray, ball: Ball | None, weight: float, xi: FloatArray) -> FloatArray:
    """The multipliers of a ball that balance what rows and the point itself pull.

    They are a weight times R xi - g, but that is next to nothing for a needle, and rounding is not next to that.
    """
    if ball is None or not weight > 0:
        return np.zeros(0 if ball is None else len(ball[1]))
    R, g, _ = ball
    push = weight * (R @ xi - g)
    balanced: FloatArray = push - lstsq(R.T, pull + R.T @ push, cond=0.0, lapack_driver="gelsd")[0]
    return balanced


def _independent(A: FloatArray, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Rows without those that depend on others."""
    if not len(rows):
        return rows
    unit = A[rows] / np.linalg.norm(A[rows], axis=1)[:, None]
    _, R, order = qr(unit.T, mode="economic", pivoting=True)
    left = np.abs(np.diagonal(R))
    kept: npt.NDArray[np.intp] = np.sort(rows[order[: len(left)][left > DEPENDENT * left[0]]])
    return kept


def _on(A: FloatArray, h: FloatArray, ball: Ball | None, weight: float) -> tuple[FloatArray, float, FloatArray] | None:
    """The shortest point with ``A xi = h``, on the sphere if there is a ball; its weight, and multipliers of rows."""
    xi, pushes = np.zeros(A.shape[1]), np.zeros(len(h))
    sides, fixed, rest, free = _split(A)
    xi[fixed] = h[sides] / A[sides, fixed]
    inner = A[rest][:, free]
    if len(rest) > len(free):
        return None
    Q, T = qr(inner.T)
    n = len(rest)
    if n and not (np.abs(np.diagonal(T)[:n]) > 0).all():
        return None
    span, beside = np.asarray(Q[:, :n], dtype=np.float64), np.asarray(Q[:, n:], dtype=np.float64)
    start = span @ solve_triangular(T[:n], h[rest] - A[rest][:, fixed] @ xi[fixed], trans="T") if n else xi[free]
    if ball is None:
        xi[free] = start
        pull = xi.copy()
    else:
        found = _on_sphere(start, beside, (ball[0][:, free], ball[1] - ball[0][:, fixed] @ xi[fixed], ball[2]), weight)
        if found is None:
            return None
        xi[free], weight = found
        pull = xi + weight * (ball[0].T @ (ball[0] @ xi - ball[1]))
    if n:
        pushes[rest] = -solve_triangular(T[:n], span.T @ pull[free])
    pushes[sides] = -(pull[fixed] + A[rest][:, fixed].T @ pushes[rest]) / A[sides, fixed]
    return xi, weight, pushes


def _on_sphere(start: FloatArray, beside: FloatArray, ball: Ball, weight: float) -> tuple[FloatArray, float] | None:
    """The shortest point on a sphere among ``start + beside y``, and the sphere's weight, roughly known before."""
    R, g, rho = ball
    if not beside.shape[1]:
        return start, weight

    def point(weight: float) -> FloatArray:
        # The lengths of xi and of its distance from the centre, as one sum of squares: nothing is squared here.
        root = np.sqrt(weight)
        whole = np.vstack([root * (R @ beside), beside])
        right = np.concatenate([root * (g - R @ start), -start])
        found: FloatArray = start + beside @ lstsq(whole, right, lapack_driver="gelsy")[0]
        return found

    def excess(exponent: float) -> float:
        return float(np.linalg.norm(R @ point(np.exp(exponent)) - g)) / rho - 1.0

    low, high = np.log(weight) - np.log(WIDEST), np.log(weight) + np.log(WIDEST)
    if not excess(low) >= 0.0 >= excess(high):
        return None
    weight = float(np.exp(brentq(excess, low, high, xtol=1e-15, rtol=1e-15)))
    return point(weight), weight
