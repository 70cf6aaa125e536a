r"""The state of a homotopy path, and the sweeps that change it.

Unknowns are the coordinates and kappa times the row multipliers.  "Inside" means: a coordinate
that has moved, or a row that is tight.  For those ``value`` holds the unknown itself; for the
others its residual: the gradient, which stays within [-kappa, kappa], or the slack of the row.
All of them are linear in kappa with rate ``slope``.  A symmetric sweep of the quasi-definite
matrix [[R'R + d I, A'], [A, -d I]] moves an unknown in or out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.projection._numba import kernel
from evenhand.projection.memory import Room
from evenhand.types import FloatArray

SHIFT = 1e-13  # the d of the matrix above; without it rounding would decide ties
ENTER, LEAVE = 1.0, -1.0


class PathWork(NamedTuple):
    """Memory of one path, reused from query to query."""

    swept: FloatArray  # lower triangle of the swept matrix
    column: FloatArray
    value: FloatArray
    slope: FloatArray
    sign: FloatArray
    inside: npt.NDArray[np.bool_]
    members: npt.NDArray[np.int64]
    at_zero: FloatArray
    per_kappa: FloatArray
    error_zero: FloatArray
    error_kappa: FloatArray
    target: FloatArray  # R'g


def path_work(room: Room, f: int, rows: int) -> PathWork:
    """Memory for `f` coordinates and at most `rows` halfspaces."""
    n = f + rows
    return PathWork(
        room((n, n)),
        room(n),
        room(n),
        room(n),
        room(n),
        room(n, np.bool_),
        room(n, np.int64),
        room(n),
        room(n),
        room(n),
        room(n),
        room(f),
    )


@kernel
def _sweep(w: PathWork, n: int, r: int, direction: float) -> None:
    """Symmetric sweep on r; leaves the old column r in ``w.column``."""
    T = w.swept
    t = w.column
    for j in range(r + 1):
        t[j] = T[r, j]
    for i in range(r + 1, n):
        t[i] = T[i, r]
    inverse = 1.0 / t[r]
    for i in range(n):
        factor = t[i] * inverse
        for j in range(i + 1):
            T[i, j] -= factor * t[j]
    scale = direction * inverse
    for j in range(r):
        T[r, j] = t[j] * scale
    for i in range(r + 1, n):
        T[i, r] = t[i] * scale
    T[r, r] = -inverse


@kernel
def load(gram: FloatArray, A: FloatArray, rows: npt.NDArray[np.int64], n_rows: int, h: FloatArray, w: PathWork) -> None:
    """Write the unswept matrix and the residuals of the point zero."""
    f = A.shape[1]
    T = w.swept
    for i in range(f):
        for j in range(i + 1):
            T[i, j] = gram[i, j]
        T[i, i] += SHIFT
        w.value[i] = w.target[i]
    for a in range(n_rows):
        i = f + a
        for j in range(f):
            T[i, j] = A[rows[a], j]
        for j in range(f, i):
            T[i, j] = 0.0
        T[i, i] = -SHIFT
        w.value[i] = h[rows[a]]
    for i in range(f + n_rows):
        w.slope[i] = 0.0
        w.sign[i] = 0.0
        w.inside[i] = False


@kernel
def start_with(w: PathWork, n: int, r: int, sign: float) -> None:
    """Take r inside before the path starts; values are then those at kappa = 0."""
    _sweep(w, n, r, ENTER)
    rate = (w.slope[r] - sign) / w.column[r]
    constant = w.value[r] / w.column[r]
    for i in range(n):
        w.slope[i] -= w.column[i] * rate
        w.value[i] -= w.column[i] * constant
    w.slope[r] = rate
    w.value[r] = constant
    w.inside[r] = True
    w.sign[r] = sign


@kernel
def turn(w: PathWork, n: int, r: int, kappa: float, f: int) -> None:
    """Move r in or out at an event; the point stays, the direction changes."""
    leaves = w.inside[r]
    sign = w.sign[r]
    if not leaves and r < f:
        sign = 1.0 if w.value[r] > 0.0 else -1.0
    _sweep(w, n, r, LEAVE if leaves else ENTER)
    rate = (w.slope[r] if leaves else w.slope[r] - sign) / w.column[r]
    for i in range(n):
        w.slope[i] -= w.column[i] * rate
    w.slope[r] = sign - rate if leaves else rate
    w.value[r] = sign * kappa if leaves else 0.0
    w.sign[r] = 0.0 if leaves else sign
    w.inside[r] = not leaves
