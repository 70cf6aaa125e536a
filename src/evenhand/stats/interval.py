"""An estimate with its confidence interval, and the intervals that have a formula."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import stats as scipy_stats

from evenhand.stats.checks import IntArray, check_options
from evenhand.types import FloatArray


class Interval(NamedTuple):
    """An estimate and its confidence interval; `low` and `high` are NaN where the data cannot tell."""

    value: float
    low: float
    high: float

    @classmethod
    def unknown(cls, value: float = math.nan) -> Interval:
        """An estimate that the data gives no interval for; without a value there is no data at all.

        Examples
        --------
        >>> Interval.unknown(2.5)
        Interval(value=2.5, low=nan, high=nan)
        """
        return cls(value, math.nan, math.nan)


def share_interval(successes: int, total: int, confidence: float = 0.95) -> Interval:
    """Wilson interval of a share, for independent trials; NaN without trials.

    For several trials per person, pass zeros and ones to :func:`cluster_bootstrap`.

    Examples
    --------
    >>> share = share_interval(3, 20)
    >>> share.value, round(share.low, 3), round(share.high, 3)
    (0.15, 0.052, 0.36)
    """
    check_options(confidence)
    if not 0 <= successes <= total:
        raise ValueError(f"successes must lie between 0 and total, got {successes} of {total}.")
    if total == 0:
        return Interval.unknown()
    z = float(scipy_stats.norm.ppf((1 + confidence) / 2))
    value = successes / total
    middle = (successes + z**2 / 2) / (total + z**2)
    reach = z / (total + z**2) * math.sqrt(successes * (1 - value) + z**2 / 4)
    # At a share of 0 or 1 rounding may put the end on the wrong side of it.
    return Interval(value, max(min(middle - reach, value), 0.0), min(max(middle + reach, value), 1.0))


def mean_interval(values: FloatArray, person: IntArray, confidence: float) -> Interval:
    """The mean of all values with a t interval over people, corrected for their skewness (Hall 1992)."""
    if len(values) == 0:
        return Interval.unknown()
    base = values[0]  # constant values have no rounding error when seen from one of them
    sizes = np.bincount(person)
    centre = (values - base).mean()
    value = float(base + centre)
    people = len(sizes)
    if people < 2:
        return Interval.unknown(value)
    excess = np.bincount(person, values - base) - centre * sizes
    largest = np.abs(excess).max()
    if largest == 0:
        return Interval(value, value, value)
    excess /= largest
    squares = float(excess @ excess)
    error = largest * math.sqrt(people / (people - 1) * squares) / len(values)
    skew = float((excess**3).sum()) / squares**1.5
    t = float(scipy_stats.t.ppf((1 + confidence) / 2, people - 1))
    return around(value, value - error * _skewed(t, skew), value - error * _skewed(-t, skew))


def _skewed(t: float, skew: float) -> float:
    """Quantile of the t statistic of a skewed sample (Hall 1992); `skew` is the sample's over the root of its size."""
    if abs(skew) < 1e-6:  # the limit, where the formula would divide by nearly zero
        return t
    return float(3 / skew * (np.cbrt(1 + skew * (t - skew / 6)) - 1))


def around(value: float, low: float, high: float) -> Interval:
    """The interval from low to high, widened where needed so that it holds the value."""
    return Interval(float(value), float(min(low, value)), float(max(high, value)))
