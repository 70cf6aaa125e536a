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

HELD = 1e-7  # multipliers that are a smaller part of the largest hold nothing
DEPENDENT = 1e-12  # rows of which nothing more is left without those before are no equations of their own
ROUNDS = 8  # sets of rows that are tried
WIDEST = 1e6  # how far from the library's multiplier of an ellipsoid the exact one is looked for, as a factor


class Held(NamedTuple):
    """A point and the multipliers that hold it."""

    xi: FloatArray
    mult: FloatArray
    push: FloatArray  # of the ellipsoid, along R xi - g


Ball = tuple[FloatArray, FloatArray, float]


def held_point(
    A: FloatArray, h: FloatArray, ball: Ball | None, mult: FloatArray, weight: float, room: FloatArray
) -> Held | None:
    """The l2 projection of zero onto ``A xi <= h`` and a ball ``||R xi - g|| <= rho``; None if rows do not settle.

    Parameters
    ----------
    A, h : arrays of shape (rows, columns) and (rows,)
    ball : (R, g, rho), optional
    mult : array of shape (rows,)
        Multipliers of rows, as good as they are known.
    weight : float
        The same of the ball; 0 if it does not hold the point.
    room : array of shape (rows,)
        By what a row may be missed: its rounding.
    """
    length = np.linalg.norm(A, axis=1)
    force = mult * length
    rows = np.flatnonzero(force > HELD * max(force.max(initial=0.0), 1e-300))
    for _ in range(ROUNDS):
        rows = _independent(A, rows)
        point = _on(A[rows], h[rows], ball if weight > 0 else None, weight)
        if point is None:
            return None
        xi, weight, pushes = point
        wrong = pushes * length[rows] < -HELD * max(float(np.abs(pushes * length[rows]).max(initial=0.0)), 1e-300)
        if wrong.any():
            rows = rows[~wrong]
            continue
        excess = A @ xi - h
        excess[rows] = 0.0
        missed = excess > room
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
    Q, T = qr(A.T)
    n = len(h)
    if n and not (np.abs(np.diagonal(T)[:n]) > 0).all():
        return None
    fixed, free = Q[:, :n], Q[:, n:]
    start = fixed @ solve_triangular(T[:n], h, trans="T") if n else np.zeros(A.shape[1])
    if ball is None:
        xi, pull = start, start
    else:
        R, g, rho = ball

        def point(weight: float) -> FloatArray:
            # The lengths of xi and of its distance from the centre, as one sum of squares: nothing is squared here.
            if not free.shape[1]:
                return start
            root = np.sqrt(weight)
            whole = np.vstack([root * (R @ free), free])
            right = np.concatenate([root * (g - R @ start), -start])
            found: FloatArray = start + free @ lstsq(whole, right, lapack_driver="gelsy")[0]
            return found

        def excess(exponent: float) -> float:
            return float(np.linalg.norm(R @ point(np.exp(exponent)) - g)) / rho - 1.0

        if free.shape[1]:
            low, high = np.log(weight) - np.log(WIDEST), np.log(weight) + np.log(WIDEST)
            if not excess(low) >= 0.0 >= excess(high):
                return None
            weight = float(np.exp(brentq(excess, low, high, xtol=1e-15, rtol=1e-15)))
        xi = point(weight)
        pull = xi + weight * (R.T @ (R @ xi - g))
    return xi, weight, -solve_triangular(T[:n], fixed.T @ pull) if n else np.zeros(0)
