"""Shifts and tests that look at ranks, one difference per person."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import stats as scipy_stats

from evenhand.stats.checks import IntArray, finite
from evenhand.types import FloatArray


def hodges_lehmann(differences: npt.ArrayLike) -> float:
    """The Hodges-Lehmann shift: the median of all averages ``(d_i + d_j) / 2`` with ``i <= j``.

    The averages are searched, not stored: memory grows with n. Without differences the shift is NaN.

    Examples
    --------
    >>> hodges_lehmann([1.0, 2.0, 9.0])
    3.5
    """
    halves = np.sort(finite(differences, "differences")) / 2
    pairs = len(halves) * (len(halves) + 1) // 2
    if pairs == 0:
        return math.nan
    upper = _ranked_sum(halves, pairs // 2)
    return upper if pairs % 2 else (_ranked_sum(halves, pairs // 2 - 1) + upper) / 2


def signed_rank(differences: npt.ArrayLike) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test, one difference per person.

    Zeros are ranked with the others and dropped afterwards (Pratt): dropped before, a larger shift could come out as
    weaker evidence. All zero gives 1.0, no differences give NaN.

    Examples
    --------
    >>> signed_rank([1.0, 2.0, 3.0, 4.0, 5.0])
    0.0625
    """
    sample = finite(differences, "differences")
    if len(sample) == 0:
        return math.nan
    if not sample.any():
        return 1.0
    return float(scipy_stats.wilcoxon(sample, zero_method="pratt").pvalue)


def _ranked_sum(halves: FloatArray, rank: int) -> float:
    """The sum ``halves[i] + halves[j]``, ``i <= j``, that has `rank` sums before it in sorted order.

    In row i the sums grow with j, so the candidates are a range of columns per row. A pivot in their middle cuts off a
    quarter of them at least, until the rest is small enough to be written down.
    """
    rows = np.arange(len(halves))
    low, high = rows.copy(), np.full(len(halves), len(halves))
    while (high - low).sum() > 4 * len(halves):
        left = np.flatnonzero(low < high)
        middles = halves[left] + halves[(low[left] + high[left]) // 2]
        order = np.argsort(middles)
        mass = np.cumsum((high - low)[left][order])
        pivot = middles[order][np.searchsorted(mass, mass[-1] / 2)]
        less = _columns(halves, low, high, pivot, np.less)
        upto = _columns(halves, less, high, pivot, np.less_equal)
        if rank < (less - rows).sum():
            high = less
        elif rank >= (upto - rows).sum():
            low = upto
        else:
            return float(pivot)
    width = high - low
    row = np.repeat(rows, width)
    column = np.arange(len(row)) + np.repeat(high - np.cumsum(width), width)
    rest = rank - int((low - rows).sum())
    return float(np.partition(halves[row] + halves[column], rest)[rest])


def _columns(halves: FloatArray, low: IntArray, high: IntArray, pivot: float, before: np.ufunc) -> IntArray:
    """Per row the first column in [low, high] whose sum is not `before` the pivot, by bisection.

    The sums themselves are compared: looking up ``pivot - halves`` would round differently.
    """
    low, high = low.copy(), high.copy()
    while len(row := np.flatnonzero(low < high)):
        middle = (low[row] + high[row]) // 2
        ahead = before(halves[row] + halves[middle], pivot)
        low[row[ahead]] = middle[ahead] + 1
        high[row[~ahead]] = middle[~ahead]
    return low
