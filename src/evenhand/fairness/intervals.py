"""How far shares of pairs, and differences between groups, can be trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import stats as scipy_stats

from evenhand.stats import IntArray, Interval
from evenhand.types import FloatArray

BoolArray: TypeAlias = npt.NDArray[np.bool_]

STRATA, ENOUGH = 10, 5
NOTHING = 1e-9  # differences of costs that are a smaller part of the largest one are rounding
RESAMPLES = 2000
UNKNOWN = Interval(math.nan, math.nan, math.nan)


def pair_share(hit: FloatArray, first: IntArray, second: IntArray, confidence: float) -> Interval:
    """A share of pairs when people, not pairs, are drawn.

    A person who is told something odd breaks all of their pairs, so two pairs with a person in common are not
    independent. The variance adds up the products of residuals over all such pairs of pairs (the dyadic variance of
    Fafchamps and Gubert 2007; resampling people and weighting a pair with the product of its two weights is the same
    to the first order, but slower and wider). Where odd people live next to odd people it errs on the safe side. The
    share is then as uncertain as that of so many independent pairs, whose Wilson interval has no trouble with rare
    events. Pairs without a common person are at most half as many as people, and no more are ever counted.
    """
    if not len(hit):
        return UNKNOWN
    share = float(hit.mean())
    person = np.unique(np.concatenate([first, second]), return_inverse=True)[1]
    excess = hit - share
    sums = np.bincount(person, np.concatenate([excess, excess]))
    variance = max(float(sums @ sums - excess @ excess), 0.0) / len(hit) ** 2
    most = len(sums) / 2
    pairs = min(most, share * (1 - share) / variance) if variance > 0 else most
    z2 = float(scipy_stats.norm.ppf((1 + confidence) / 2)) ** 2
    middle = (share * pairs + z2 / 2) / (pairs + z2)
    reach = math.sqrt(z2 * (pairs * share * (1 - share) + z2 / 4)) / (pairs + z2)
    return Interval(share, max(min(middle - reach, share), 0.0), min(max(middle + reach, share), 1.0))


@dataclass(frozen=True, eq=False)
class Sample:
    """Values and whose they are."""

    values: FloatArray
    person: IntArray

    def where(self, codes: IntArray, code: int, same: bool) -> Sample:
        """Only the people of a group, or only the others."""
        chosen = (codes[self.person] == code) == same
        return Sample(self.values[chosen], self.person[chosen])

    def medians(self, rng: np.random.Generator) -> FloatArray:
        """The median, and then that of other samples of people.

        In another sample the share of values up to this median is another one. As a mean over people it is t
        distributed to the first order, so it is drawn at once instead of from resampled people; the median of that
        sample is the quantile as far on the other side. Values equal to the median count in part, as they do in
        :func:`cluster_bootstrap`.
        """
        if not len(self.values):
            return np.full(RESAMPLES + 1, np.nan)
        middle = float(np.median(self.values))
        person = np.unique(self.person, return_inverse=True)[1]
        sizes = np.bincount(person)
        if len(sizes) < 2:
            return np.concatenate([[middle], np.full(RESAMPLES, np.nan)])
        less, same = self.values < middle, self.values == middle
        part = (0.5 * len(self.values) - less.sum()) / max(int(same.sum()), 1)
        below = np.bincount(person, less + min(max(part, 0.0), 1.0) * same)
        excess = below - 0.5 * sizes
        error = math.sqrt(float(excess @ excess) * len(sizes) / (len(sizes) - 1)) / len(self.values)
        shares = 0.5 + error * rng.standard_t(len(sizes) - 1, RESAMPLES)
        return np.concatenate([[middle], np.quantile(self.values, np.clip(shares, 0.0, 1.0))])


def difference(a: FloatArray, b: FloatArray, confidence: float) -> Interval:
    """Of two statistics, each with its resamples after it."""
    value, moved = float(a[0] - b[0]), a[1:] - b[1:]
    if np.isnan(moved).any():
        return Interval(value, math.nan, math.nan)
    low, high = np.quantile(moved, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(value, float(min(low, value)), float(max(high, value)))


def welch(a: FloatArray, b: FloatArray, confidence: float) -> Interval:
    """Difference of means."""
    value = float(a.mean() - b.mean()) if len(a) and len(b) else math.nan
    if min(len(a), len(b)) < 2:
        return Interval(value, math.nan, math.nan)
    parts = np.array([a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)])
    if not parts.any():
        return Interval(value, value, value)
    freedom = parts.sum() ** 2 / (parts**2 / [len(a) - 1, len(b) - 1]).sum()
    reach = float(scipy_stats.t.ppf((1 + confidence) / 2, freedom)) * math.sqrt(parts.sum())
    return Interval(value, value - reach, value + reach)


def adjusted_difference(
    cost: FloatArray, edge: FloatArray, mine: BoolArray, confidence: float
) -> tuple[Interval, float]:
    """Mean difference to everybody else at the same distance to the boundary, and whom of the group it is about."""
    known = np.isfinite(cost) & np.isfinite(edge)
    total = int((mine & np.isfinite(cost)).sum())
    if not known.any() or not total:
        return UNKNOWN, 0.0 if total else math.nan
    cuts = np.unique(np.quantile(edge[known], np.arange(1, STRATA) / STRATA))
    stratum = np.searchsorted(cuts, edge[known], side="left")
    ours = mine[known]
    price, far = cost[known], edge[known]
    counts = [np.bincount(stratum[side], minlength=STRATA) for side in (ours, ~ours)]
    both = np.minimum(*counts) >= ENOUGH
    if not both.any():
        return UNKNOWN, 0.0
    weights = counts[0] * both / counts[0][both].sum()
    found = [_within(price[stratum == s], far[stratum == s], ours[stratum == s]) for s in np.flatnonzero(both)]
    value = float(weights[both] @ [one for one, _ in found])
    variances = np.concatenate([w**2 * parts[:, 0] for w, (_, parts) in zip(weights[both], found, strict=True)])
    spread = float(variances.sum())
    if spread > 0:  # of as many degrees of freedom as its parts have together (Satterthwaite 1946)
        freedom = spread**2 / float((variances**2 / np.concatenate([parts[:, 1] for _, parts in found])).sum())
        reach = float(scipy_stats.t.ppf((1 + confidence) / 2, freedom)) * math.sqrt(spread)
    else:
        reach = 0.0
    nothing = NOTHING * float(np.abs(price).max(initial=0.0))
    ends = [0.0 if abs(end) <= nothing else end for end in (value, value - reach, value + reach)]
    return Interval(*ends), float(counts[0][both].sum() / total)


def _within(cost: FloatArray, edge: FloatArray, ours: BoolArray) -> tuple[float, FloatArray]:
    """Difference in one stratum, and the parts of its squared error, each with its degrees of freedom.

    Cost may still rise with the distance, by one slope for both: without it a group that is only further away inside
    of a stratum would seem to be treated worse.
    """
    parts = [(cost[side], edge[side]) for side in (ours, ~ours)]
    inner = [(c - c.mean(), e - e.mean()) for c, e in parts]
    sum_squares = float(sum(e @ e for _, e in inner))
    slope = float(sum(c @ e for c, e in inner)) / sum_squares if sum_squares > 0 else 0.0
    apart = float(parts[0][1].mean() - parts[1][1].mean())
    value = float(parts[0][0].mean() - parts[1][0].mean()) - slope * apart
    left = [c - slope * e for c, e in inner]
    free = len(cost) - 2 - (sum_squares > 0)  # two means, and the slope
    share = free / (len(cost) - 2)  # of its freedom each side gives up that part to the slope
    errors = [(float(one @ one) / (len(one) - 1) / share / len(one), (len(one) - 1) * share) for one in left]
    if sum_squares > 0:
        pooled = sum(float(one @ one) for one in left) / free
        errors.append((pooled * apart**2 / sum_squares, float(free)))
    return value, np.array(errors)


def absolute(signed: Interval) -> Interval:
    """Of an absolute value; zero is inside if the signed interval has both signs."""
    ends = sorted((abs(signed.low), abs(signed.high)))
    return Interval(abs(signed.value), 0.0 if signed.low <= 0 <= signed.high else ends[0], ends[1])
