"""Statistics of values that come in groups, with intervals from resampled people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evenhand.stats.checks import IntArray, check_options, check_statistics, finite, person_codes
from evenhand.stats.interval import Interval, around, mean_interval
from evenhand.stats.resampling import Resampled, affordable, count_below, ends, stretch, weights_of
from evenhand.types import FloatArray

_LEVELS = {"median": 0.5, "p95": 0.95}


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
    check_statistics(names, ("median", "mean", "p95"))
    check_options(confidence, resamples)
    sample = finite(values, "values")
    person = person_codes(cluster, len(sample))

    levels = [_LEVELS[name] for name in names if name in _LEVELS]
    quantiles = _quantiles(sample, person, levels, confidence, resamples, seed)
    return {
        name: quantiles[_LEVELS[name]] if name in _LEVELS else mean_interval(sample, person, confidence)
        for name in names
    }


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
    check_statistics((statistic,), ("median", "mean"))
    check_options(confidence, resamples)
    before, after = finite(a, "a"), finite(b, "b")
    if len(before) != len(after):
        raise ValueError(f"a has {len(before)} values, b has {len(after)}; pairs need one of each per row.")
    person = person_codes(cluster, len(before))
    if statistic == "mean":
        return mean_interval(after - before, person, confidence)
    if len(before) == 0:
        return Interval.unknown()

    value = float(np.median(after) - np.median(before))
    people = int(person.max()) + 1
    if people < 2:
        return Interval.unknown(value)
    old, new = Resampled(before, person, 0.5), Resampled(after, person, 0.5)
    draws = weights_of(people, affordable(resamples, len(before)), seed, size=len(before))
    moved = np.concatenate([new.quantiles(weights) - old.quantiles(weights) for weights in draws]) - value
    low, high = value + stretch(people, confidence) * np.quantile(moved, ends(confidence))
    return around(value, low, high)


def _quantiles(
    values: FloatArray, person: IntArray, levels: list[float], confidence: float, resamples: int, seed: int
) -> dict[float, Interval]:
    """Quantiles of all values, each with the quantiles at the shares that resamples have below it."""
    if not levels or len(values) == 0:
        return dict.fromkeys(levels, Interval.unknown())
    estimates = np.quantile(values, levels)
    sizes = np.bincount(person).astype(np.float64)
    people = len(sizes)
    if people < 2:
        return {level: Interval.unknown(float(value)) for level, value in zip(levels, estimates, strict=True)}

    below = np.column_stack([count_below(values, person, *pair) for pair in zip(estimates, levels, strict=True)])
    draws = weights_of(people, affordable(resamples, people), seed, size=people)
    shares = np.concatenate([weights @ below / (weights @ sizes)[:, np.newaxis] for weights in draws])
    moved = stretch(people, confidence) * (
        np.quantile(shares, ends(confidence), axis=0) - below.sum(axis=0) / len(values)
    )
    low, high = (np.quantile(values, np.clip(levels + step, 0.0, 1.0)) for step in moved)
    return {level: around(estimates[k], low[k], high[k]) for k, level in enumerate(levels)}
