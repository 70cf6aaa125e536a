r"""l1 projection onto halfspaces: a dual simplex that adds rows when they are needed.

    min ||xi||_1   subject to   A xi <= h

Dual:  max -l.h  subject to  l >= 0, |A'l|_j <= 1.  The start l = 0 is always dual
feasible, so there is no first phase.  The tableau holds only the rows that were
violated on the way, usually one to three of them; the others are checked against
the few coordinates that moved.  A coordinate may carry either sign, so a basic
coordinate that changes sign is not infeasible but passes a kink of its cost, where
its price moves from one end of [-1, 1] to the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.projection._numba import kernel
from evenhand.projection.memory import Room
from evenhand.types import FloatArray

OPTIMAL, INFEASIBLE, FAILED, ABANDONED = 0, 1, 2, 3

PIVOT = 1e-11
RATIO_TIE = 1e-13


class SimplexWork(NamedTuple):
    """Memory of one simplex run, reused from query to query.

    Columns 0..f-1 of the tableau are coordinates, column f + i is the slack of its row i.
    """

    tableau: FloatArray
    value: FloatArray  # value of the basic variable of each row
    price: FloatArray  # reduced cost of each column; (A'l)_j for a coordinate, l_i for a slack
    sign: FloatArray  # assumed sign of each row's basic variable
    basic: npt.NDArray[np.int64]  # column that is basic in each row
    is_basic: npt.NDArray[np.bool_]
    source: npt.NDArray[np.int64]  # row of A that each tableau row came from
    used: npt.NDArray[np.bool_]  # which rows of A are in the tableau
    ratio: FloatArray  # how far each column's price may move


def simplex_work(room: Room, f: int, m: int) -> SimplexWork:
    """Memory for problems with `f` coordinates and at most `m` rows."""
    cap = min(m, 2 * f + 64)
    return SimplexWork(
        room((cap, f + cap)),
        room(cap),
        room(f + cap),
        room(cap),
        room(cap, np.int64),
        room(f + cap, np.bool_),
        room(cap, np.int64),
        room(max(m, 1), np.bool_),
        room(f + cap),
    )


@kernel
def _leaving_row(w: SimplexWork, k: int, f: int, tol: FloatArray) -> int:
    """The row whose basic variable has the wrong sign, by squared violation per squared row norm."""
    row = -1
    best = 0.0
    for i in range(k):
        violation = -w.sign[i] * w.value[i]
        if violation > tol[w.source[i]]:
            norm = 0.0
            for j in range(f, f + k):
                norm += w.tableau[i, j] * w.tableau[i, j]
            score = violation * violation / norm
            if score > best:
                best = score
                row = i
    return row


@kernel
def _violated_row(A: FloatArray, h: FloatArray, w: SimplexWork, k: int, tol: FloatArray) -> int:
    """The row outside the tableau that the present point violates most."""
    f = A.shape[1]
    row = -1
    worst = 0.0
    for i in range(A.shape[0]):
        if not w.used[i]:
            excess = -h[i]
            for r in range(k):
                if w.basic[r] < f:
                    excess += A[i, w.basic[r]] * w.value[r]
            if excess > tol[i] and excess > worst:
                worst = excess
                row = i
    return row


@kernel
def _append(A: FloatArray, h: FloatArray, w: SimplexWork, k: int, row: int) -> None:
    """Write a row of A into the tableau, expressed in the non-basic variables."""
    f = A.shape[1]
    T = w.tableau
    for j in range(f):
        T[k, j] = A[row, j]
    for j in range(f, f + k):
        T[k, j] = 0.0
    for i in range(k):
        T[i, f + k] = 0.0
    T[k, f + k] = 1.0
    value = h[row]
    for i in range(k):
        factor = T[k, w.basic[i]]
        if factor != 0.0:
            for j in range(f + k):
                T[k, j] -= factor * T[i, j]
            value -= factor * w.value[i]
    w.value[k] = value
    w.basic[k] = f + k
    w.is_basic[f + k] = True
    w.price[f + k] = 0.0
    w.sign[k] = 1.0
    w.source[k] = row
    w.used[row] = True


@kernel
def _ratios(w: SimplexWork, r: int, k: int, f: int) -> None:
    """How far each price may move until it reaches its limit, without a branch that depends on a sign."""
    sign = w.sign[r]
    for j in range(f):
        rate = sign * w.tableau[r, j]
        end = 1.0 if rate > 0.0 else -1.0
        ratio = (end - w.price[j]) / rate
        w.ratio[j] = np.inf if abs(rate) <= PIVOT or w.is_basic[j] else ratio
    for j in range(f, f + k):
        rate = sign * w.tableau[r, j]
        w.ratio[j] = np.inf if rate >= -PIVOT or w.is_basic[j] else -w.price[j] / rate


@kernel
def _least(ratio: FloatArray, n: int) -> float:
    """The smallest of `n` ratios, four at a time, so that comparisons do not wait for each other."""
    a, b, c, d = np.inf, np.inf, np.inf, np.inf
    even = n - n % 4
    for j in range(0, even, 4):
        a = min(a, ratio[j])
        b = min(b, ratio[j + 1])
        c = min(c, ratio[j + 2])
        d = min(d, ratio[j + 3])
    for j in range(even, n):
        a = min(a, ratio[j])
    return min(min(a, b), min(c, d))


@kernel
def _entering(w: SimplexWork, r: int, k: int, f: int) -> tuple[int, float]:
    """Ratio test: the column whose price reaches its limit first; -1 if none does."""
    _ratios(w, r, k, f)
    kink = w.basic[r] < f  # the kink: the price crosses from one end to the other
    step = min(2.0 if kink else np.inf, _least(w.ratio, f + k))
    column = -1
    size = 0.0
    if kink and step + RATIO_TIE > 2.0:
        column, size = w.basic[r], 1.0
    for j in range(f + k):
        # Among equal ratios the largest pivot is the most accurate one.
        if w.ratio[j] <= step + RATIO_TIE and w.ratio[j] < np.inf and abs(w.tableau[r, j]) > size:
            column = j
            size = abs(w.tableau[r, j])
    return column, max(step, 0.0)


@kernel
def _pivot(w: SimplexWork, k: int, width: int, r: int, column: int) -> None:
    T = w.tableau
    inverse = 1.0 / T[r, column]
    for j in range(width):
        T[r, j] *= inverse
    w.value[r] *= inverse
    for i in range(k):
        factor = T[i, column]
        if i != r and factor != 0.0:
            for j in range(width):
                T[i, j] -= factor * T[r, j]
            w.value[i] -= factor * w.value[r]


@kernel
def _exchange(w: SimplexWork, k: int, f: int, r: int, column: int, step: float) -> None:
    """Move the prices by `step` along row r and let `column` take its place in the basis."""
    leaving = w.basic[r]
    sign = w.sign[r]
    signed = step * sign
    for j in range(f + k):
        if not w.is_basic[j]:
            w.price[j] += signed * w.tableau[r, j]
    if column == leaving:
        w.sign[r] = -sign
        return
    w.price[leaving] = signed - sign if leaving < f else step
    w.is_basic[leaving] = False
    w.is_basic[column] = True
    if column < f:
        w.sign[r] = -1.0 if sign * w.tableau[r, column] > 0.0 else 1.0
    else:
        w.sign[r] = 1.0
    _pivot(w, k, f + k, r, column)
    w.basic[r] = column
    w.price[column] = 0.0


@kernel
def l1_halfspaces(
    A: FloatArray,
    gram: FloatArray,  # noqa: ARG001 - one signature
    h: FloatArray,
    tol: FloatArray,
    w: SimplexWork,
    xi: FloatArray,
    lam: FloatArray,
) -> int:
    """Solve into `xi` and `lam` (the multipliers); return a status.

    On INFEASIBLE `lam` is a Farkas ray: A'lam = 0 up to rounding and lam.h < 0.
    """
    m, f = A.shape
    k = 0
    xi[:] = 0.0
    lam[:] = 0.0
    w.used[:] = False
    for j in range(f):
        w.price[j] = 0.0
        w.is_basic[j] = False
    for _ in range(50 * (min(m, f) + 10)):
        r = _leaving_row(w, k, f, tol)
        if r < 0:
            row = _violated_row(A, h, w, k, tol)
            if row < 0:
                for i in range(k):
                    if w.basic[i] < f:
                        xi[w.basic[i]] = w.value[i]
                    if not w.is_basic[f + i]:
                        lam[w.source[i]] = max(w.price[f + i], 0.0)
                return OPTIMAL
            if k == w.tableau.shape[0]:
                return FAILED
            _append(A, h, w, k, row)
            r = k
            k += 1
        column, step = _entering(w, r, k, f)
        if column < 0:
            for i in range(k):
                lam[w.source[i]] = max(w.tableau[r, f + i], 0.0)
            return INFEASIBLE
        _exchange(w, k, f, r, column, step)
    return FAILED
