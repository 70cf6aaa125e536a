"""Intervals and tests for values that come in groups, one group per person.

Draws of one person are not independent, so what varies between samples is the
*people*: they are resampled, and standard errors are built from sums per person.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import stats

from evenhand.types import FloatArray

IntArray: TypeAlias = npt.NDArray[np.int64]

_LEVELS = {"median": 0.5, "p95": 0.95}
# Resamples times the length of one; beyond it fewer are drawn, but never fewer than _ENOUGH.
_WORK = 400_000_000
_ENOUGH = 400
_BLOCK = 100_000  # numbers at a time: they stay in the cache
_KEPT = 5_000_000  # weights that are worth 10 MB of memory


class Interval(NamedTuple):
    """An estimate and its confidence interval; `low` and `high` are NaN where the data cannot tell."""

    value: float
    low: float
    high: float


def cluster_bootstrap(
    values: npt.ArrayLike,
    cluster: npt.ArrayLike,
    statistics: Sequence[str],
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> dict[str, Interval]:
    """Statistics of all values, with intervals for another sample of people.

    "mean" has a t interval, with the standard error over people and Hall's correction for their skewness; it needs no
    resamples. "median" and "p95" resample the people and look at the share of values up to the estimate: the interval
    holds the quantiles at the shares that occur, widened as t is against the normal. Unlike quantiles of the resampled
    quantiles, these intervals also cover in the tail.

    Parameters
    ----------
    values : array of shape (n,)
        Finite numbers.
    cluster : array of shape (n,)
        The person of each value, as a code from 0; a code may be missing.
    statistics : sequence of str
        Any of "median", "mean" and "p95", the 95 % quantile.
    confidence : float
        How often the intervals hold the truth. For "p95" this takes about 70 people: no interval reaches beyond
        the largest value.
    resamples : int
        How often the people are resampled. Above 200,000 people it is reduced in proportion, down to 400.
    seed : int
        The same seed gives the same intervals.

    Returns
    -------
    dict of Interval
        One per statistic. With fewer than two people `low` and `high` are NaN, and without values `value` is too.

    Examples
    --------
    >>> waits = [1.0, 2.0, 2.0, 3.0, 4.0, 6.0]
    >>> result = cluster_bootstrap(waits, [0, 0, 1, 1, 2, 2], ["mean", "median"])
    >>> result["median"].value, result["median"].low, result["median"].high
    (2.5, 1.0, 6.0)
    """
    names = (statistics,) if isinstance(statistics, str) else tuple(statistics)
    _check_names(names, ("median", "mean", "p95"))
    _check_options(confidence, resamples)
    sample = _finite(values, "values")
    person = _codes(cluster, len(sample))

    levels = [_LEVELS[name] for name in names if name in _LEVELS]
    found = _quantiles(sample, person, levels, confidence, resamples, seed)
    return {name: found[_LEVELS[name]] if name in _LEVELS else _mean(sample, person, confidence) for name in names}


def paired_bootstrap(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    cluster: npt.ArrayLike,
    statistic: str,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Interval of ``statistic(b) - statistic(a)``, for two values measured on the same draws.

    Each resample takes a person with all values in `a` and in `b`. The mean has the same interval as the mean of
    ``b - a`` in :func:`cluster_bootstrap`; the median has the quantiles of the resampled differences, widened as t is
    against the normal. That one errs on the safe side where `a` and `b` are nearly the same up to a shift or a factor.

    Parameters
    ----------
    a, b : arrays of shape (n,)
        Finite numbers; row i of both is the same draw.
    cluster : array of shape (n,)
        The person of each row, as a code from 0.
    statistic : {"median", "mean"}
        What is compared.
    confidence : float
        How often the interval holds the truth.
    resamples : int
        How often the people are resampled. Above 200,000 rows it is reduced in proportion, down to 400.
    seed : int
        The same seed gives the same interval.

    Returns
    -------
    Interval
        With fewer than two people `low` and `high` are NaN, and without rows `value` is too.

    Examples
    --------
    >>> paired_bootstrap([1.0, 2.0, 4.0], [2.0, 3.0, 5.0], [0, 1, 2], "mean")
    Interval(value=1.0, low=1.0, high=1.0)
    """
    _check_names((statistic,), ("median", "mean"))
    _check_options(confidence, resamples)
    before, after = _finite(a, "a"), _finite(b, "b")
    if len(before) != len(after):
        raise ValueError(f"a has {len(before)} values, b has {len(after)}; pairs need one of each per row.")
    person = _codes(cluster, len(before))
    if statistic == "mean":
        return _mean(after - before, person, confidence)
    if len(before) == 0:
        return Interval(math.nan, math.nan, math.nan)

    value = float(np.median(after) - np.median(before))
    people = int(person.max()) + 1
    if people < 2:
        return Interval(value, math.nan, math.nan)
    old, new = _Resampled(before, person, 0.5), _Resampled(after, person, 0.5)
    draws = _weights(people, _affordable(resamples, len(before)), seed, size=len(before))
    moved = np.concatenate([new.quantiles(weights) - old.quantiles(weights) for weights in draws]) - value
    low, high = value + _stretch(people, confidence) * np.quantile(moved, _ends(confidence))
    return _around(value, low, high)


def hodges_lehmann(differences: npt.ArrayLike) -> float:
    """The Hodges-Lehmann shift: the median of all averages ``(d_i + d_j) / 2`` with ``i <= j``.

    The averages are searched, not stored: memory grows with n. Without differences the shift is NaN.

    Examples
    --------
    >>> hodges_lehmann([1.0, 2.0, 9.0])
    3.5
    """
    halves = np.sort(_finite(differences, "differences")) / 2
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
    sample = _finite(differences, "differences")
    if len(sample) == 0:
        return math.nan
    if not sample.any():
        return 1.0
    return float(stats.wilcoxon(sample, zero_method="pratt").pvalue)


def share_interval(successes: int, total: int, confidence: float = 0.95) -> Interval:
    """Wilson interval of a share, for independent trials; NaN without trials.

    For several trials per person, pass zeros and ones to :func:`cluster_bootstrap`.

    Examples
    --------
    >>> share = share_interval(3, 20)
    >>> share.value, round(share.low, 3), round(share.high, 3)
    (0.15, 0.052, 0.36)
    """
    _check_options(confidence)
    if not 0 <= successes <= total:
        raise ValueError(f"successes must lie between 0 and total, got {successes} of {total}.")
    if total == 0:
        return Interval(math.nan, math.nan, math.nan)
    z = float(stats.norm.ppf((1 + confidence) / 2))
    value = successes / total
    middle = (successes + z**2 / 2) / (total + z**2)
    reach = z / (total + z**2) * math.sqrt(successes * (1 - value) + z**2 / 4)
    # At a share of 0 or 1 rounding may put the end on the wrong side of it.
    return Interval(value, max(min(middle - reach, value), 0.0), min(max(middle + reach, value), 1.0))


def _mean(values: FloatArray, person: IntArray, confidence: float) -> Interval:
    if len(values) == 0:
        return Interval(math.nan, math.nan, math.nan)
    base = values[0]  # constant values have no rounding error when seen from one of them
    sizes = np.bincount(person)
    centre = (values - base).mean()
    value = float(base + centre)
    people = len(sizes)
    if people < 2:
        return Interval(value, math.nan, math.nan)
    excess = np.bincount(person, values - base) - centre * sizes
    largest = np.abs(excess).max()
    if largest == 0:
        return Interval(value, value, value)
    excess /= largest
    squares = float(excess @ excess)
    error = largest * math.sqrt(people / (people - 1) * squares) / len(values)
    skew = float((excess**3).sum()) / squares**1.5
    t = float(stats.t.ppf((1 + confidence) / 2, people - 1))
    return _around(value, value - error * _skewed(t, skew), value - error * _skewed(-t, skew))


def _skewed(t: float, skew: float) -> float:
    """Quantile of the t statistic of a skewed sample (Hall 1992); `skew` is the sample's over the root of its size."""
    if abs(skew) < 1e-6:  # the limit, where the formula would divide by nearly zero
        return t
    return float(3 / skew * (np.cbrt(1 + skew * (t - skew / 6)) - 1))


def _quantiles(
    values: FloatArray, person: IntArray, levels: list[float], confidence: float, resamples: int, seed: int
) -> dict[float, Interval]:
    if not levels or len(values) == 0:
        return dict.fromkeys(levels, Interval(math.nan, math.nan, math.nan))
    found = np.quantile(values, levels)
    sizes = np.bincount(person).astype(np.float64)
    people = len(sizes)
    if people < 2:
        return {level: Interval(float(value), math.nan, math.nan) for level, value in zip(levels, found, strict=True)}

    below = np.column_stack([_below(values, person, *pair) for pair in zip(found, levels, strict=True)])
    draws = _weights(people, _affordable(resamples, people), seed, size=people)
    shares = np.concatenate([weights @ below / (weights @ sizes)[:, np.newaxis] for weights in draws])
    moved = _stretch(people, confidence) * (
        np.quantile(shares, _ends(confidence), axis=0) - below.sum(axis=0) / len(values)
    )
    low, high = (np.quantile(values, np.clip(levels + step, 0.0, 1.0)) for step in moved)
    return {level: _around(found[k], low[k], high[k]) for k, level in enumerate(levels)}


def _below(values: FloatArray, person: IntArray, value: float, level: float) -> FloatArray:
    """How many values of each person lie up to `value`, the quantile at `level`.

    Of the values equal to it, such a part counts that the total is right: with many ties the plain share would stay
    the same in every resample, though the quantile does not.
    """
    people = int(person.max()) + 1
    less = np.bincount(person[values < value], minlength=people)
    same = np.bincount(person[values == value], minlength=people)
    part = (level * len(values) - less.sum()) / max(int(same.sum()), 1)
    count: FloatArray = less + min(max(part, 0.0), 1.0) * same
    return count


class _Resampled:
    """A quantile of any resample, from one sort of the values."""

    def __init__(self, values: FloatArray, person: IntArray, level: float) -> None:
        order = np.argsort(values, kind="stable")
        self.level = level
        self.values, self.person = values[order], person[order]
        self.sizes = np.bincount(person).astype(np.float64)
        # Nearly every resample has its quantile within six standard errors; only this part is looked through.
        excess = _below(values, person, float(np.quantile(values, level)), level) - level * self.sizes
        reach = 6 * math.sqrt(float(excess @ excess)) + 2
        self.start = max(int(level * len(values) - reach), 0)
        self.stop = min(int(level * len(values) + reach) + 1, len(values))
        self.skipped = self._sizes(0, self.start)
        self.searched = self._sizes(self.start, self.stop)

    def _sizes(self, start: int, stop: int) -> FloatArray:
        return np.bincount(self.person[start:stop], minlength=len(self.sizes)).astype(np.float64)

    def quantiles(self, weights: FloatArray) -> FloatArray:
        """Per row the quantile when person p is there ``weights[row, p]`` times, as `numpy.quantile` has it."""
        total, skipped = weights @ self.sizes, weights @ self.skipped
        position = self.level * (total - 1)
        rank = np.floor(position)
        start, stop = self.start, self.stop
        if (rank < skipped).any() or (rank + 1 >= skipped + weights @ self.searched).any():
            start, stop, skipped = 0, len(self.values), np.zeros(len(weights))
        count = np.cumsum(weights[:, self.person[start:stop]], axis=1)
        # The k-th value of the resample, from 0, is the first with more than k counted up to it.
        low, high = (
            self.values[start + (count <= (k - skipped)[:, np.newaxis]).sum(axis=1)]
            for k in (rank, np.minimum(rank + 1, total - 1))
        )
        found: FloatArray = low + (position - rank) * (high - low)
        return found


def _weights(people: int, resamples: int, seed: int, size: int) -> Iterator[FloatArray]:
    """How often each person is drawn, one row per resample, in blocks: all at once they may not fit into memory.

    `size` is the length of what is computed per resample. It sets the size of a block, not what is drawn.
    """
    block = max(_BLOCK // size, 1)
    if people * resamples <= _KEPT:
        whole = _kept(people, resamples, seed)
        for first in range(0, resamples, block):
            yield whole[first : first + block].astype(np.float64)
        return
    rng = np.random.default_rng(seed)
    for first in range(0, resamples, block):
        yield _drawn(rng, people, min(block, resamples - first)).astype(np.float64)


@lru_cache(maxsize=2)
def _kept(people: int, resamples: int, seed: int) -> npt.NDArray[np.int16]:
    """All weights, kept for the next statistic of as many people: a study asks for hundreds."""
    rng = np.random.default_rng(seed)
    block = max(_BLOCK // people, 1)
    return np.concatenate(
        [_drawn(rng, people, min(block, resamples - k)).astype(np.int16) for k in range(0, resamples, block)]
    )


def _drawn(rng: np.random.Generator, people: int, rows: int) -> npt.NDArray[np.int64]:
    drawn = rng.integers(people, size=(rows, people)) + people * np.arange(rows)[:, np.newaxis]
    return np.bincount(drawn.ravel(), minlength=rows * people).reshape(rows, people)


def _affordable(resamples: int, size: int) -> int:
    return min(resamples, max(_WORK // size, _ENOUGH))


def _ends(confidence: float) -> tuple[float, float]:
    return (1 - confidence) / 2, (1 + confidence) / 2


def _stretch(people: int, confidence: float) -> float:
    """What a resample of few people lacks in spread."""
    top = (1 + confidence) / 2
    return float(stats.t.ppf(top, people - 1) / stats.norm.ppf(top)) * math.sqrt(people / (people - 1))


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


def _around(value: float, low: float, high: float) -> Interval:
    return Interval(float(value), float(min(low, value)), float(max(high, value)))


def _check_names(names: tuple[str, ...], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"Unknown statistic {name!r}; possible are {', '.join(map(repr, known))}.")


def _check_options(confidence: float, resamples: int = 1) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}; for 95 % pass 0.95.")
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, got {resamples}.")


def _finite(values: npt.ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one number per row, got an array of shape {array.shape}.")
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise ValueError(f"{name} must be finite, got {array[bad[0]]} in row {bad[0]}; drop such rows first.")
    return array


def _codes(cluster: npt.ArrayLike, rows: int) -> IntArray:
    """The codes 0, 1, ... of the people that occur, without gaps."""
    array = np.asarray(cluster)
    if array.shape != (rows,):
        raise ValueError(f"cluster must have one code per value: got shape {array.shape} for {rows} values.")
    if rows == 0:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(
            f"cluster must hold integer codes, got {array.dtype}; numpy.unique(..., return_inverse=True) gives them."
        )
    if array.min() < 0:
        raise ValueError(f"cluster must hold codes from 0, got {array.min()}; drop the rows without a person first.")
    return np.asarray(np.unique(array, return_inverse=True)[1], dtype=np.int64)
