"""Resamples of people: how often each is drawn, and quantiles of what they bring along."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import stats as scipy_stats

from evenhand.stats.checks import IntArray
from evenhand.types import FloatArray

# Resamples times the length of one; beyond it fewer are drawn, but never fewer than _ENOUGH.
_WORK = 400_000_000
_ENOUGH = 400
_BLOCK = 100_000  # numbers at a time: they stay in the cache
_KEPT = 5_000_000  # weights that are worth 10 MB of memory


def weights_of(people: int, resamples: int, seed: int, size: int) -> Iterator[FloatArray]:
    """How often each person is drawn, one row per resample, in blocks: all at once they may not fit into memory.

    `size` is the length of what is computed per resample. It sets the size of a block, not what is drawn.
    """
    block = max(_BLOCK // size, 1)
    if people * resamples <= _KEPT:
        kept_weights = _kept(people, resamples, seed)
        for first in range(0, resamples, block):
            yield kept_weights[first : first + block].astype(np.float64)
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
    """How often each person is drawn in each of some resamples."""
    drawn = rng.integers(people, size=(rows, people)) + people * np.arange(rows)[:, np.newaxis]
    return np.bincount(drawn.ravel(), minlength=rows * people).reshape(rows, people)


def affordable(resamples: int, size: int) -> int:
    """How many resamples to draw if each takes work in proportion to `size`."""
    return min(resamples, max(_WORK // size, _ENOUGH))


def ends(confidence: float) -> tuple[float, float]:
    """The shares of resamples below the two ends of an interval."""
    return (1 - confidence) / 2, (1 + confidence) / 2


def stretch(people: int, confidence: float) -> float:
    """What a resample of few people lacks in spread."""
    top = (1 + confidence) / 2
    return float(scipy_stats.t.ppf(top, people - 1) / scipy_stats.norm.ppf(top)) * math.sqrt(people / (people - 1))


def count_below(values: FloatArray, person: IntArray, value: float, level: float) -> FloatArray:
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


class Resampled:
    """A quantile of any resample, from one sort of the values."""

    def __init__(self, values: FloatArray, person: IntArray, level: float) -> None:
        order = np.argsort(values, kind="stable")
        self.level = level
        self.values, self.person = values[order], person[order]
        self.sizes = np.bincount(person).astype(np.float64)
        # Nearly every resample has its quantile within six standard errors; only this part is looked through.
        excess = count_below(values, person, float(np.quantile(values, level)), level) - level * self.sizes
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
        interpolated: FloatArray = low + (position - rank) * (high - low)
        return interpolated
