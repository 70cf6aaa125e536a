"""Which of two methods is more stable: the same people, the same draws, a paired test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from evenhand.markup import framed
from evenhand.stability.draws import MEASURES
from evenhand.stability.instability import Instability
from evenhand.stats import Interval, cluster_bootstrap, hodges_lehmann, paired_bootstrap, share_interval, signed_rank
from evenhand.types import FloatArray

SAME = 1e-9  # a relative difference that counts as none
KEYS = ("fold", "person", "draw")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Two measurements of the same people; :func:`compare` makes it.

    Everything but the counts is of the pairs: draws that have a value in both measurements.

    Attributes
    ----------
    names : pair of str
        Of the two methods, a and b.
    measure : str
        What is compared; smaller is better, but for "jaccard", of which more is better.
    people, pairs : int
        Number of people and of draws that are in both.
    only_a, only_b, neither : int
        Draws that have a value in one measurement only, or in none; they are not in the test.
    median_a, median_b : Interval
        Median of each, with a bootstrap interval.
    difference : Interval
        Median of b minus median of a, people resampled jointly.
    shift : float
        Hodges-Lehmann estimate of how much larger b is for a person.
    better, worse : Interval
        Share of people who are better and worse off with b, with Wilson intervals.
    p_value : float
        Of Wilcoxon's signed-rank test on the people's mean differences.
    differences : array of shape (people,)
        b minus a, per person.
    confidence : float
        Of the intervals.
    unit : str
        What was paired: "draws", or "people" if the draws were not kept.
    """

    names: tuple[str, str]
    measure: str
    people: int
    pairs: int
    only_a: int
    only_b: int
    neither: int
    median_a: Interval
    median_b: Interval
    difference: Interval
    shift: float
    better: Interval
    worse: Interval
    p_value: float
    differences: FloatArray = field(repr=False)
    confidence: float = 0.95
    unit: str = "draws"

    @property
    def sentence(self) -> str:
        """The result in words that can be quoted."""
        a, b = self.names
        if not self.pairs:
            return f"{a} and {b} have no draw in common that both could measure, so nothing can be said."
        level = f"{self.confidence:.0%}".replace("%", " %")
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.2g}"
        unmatched = self.only_a + self.only_b + self.neither
        left_out = f" Left out: {unmatched:,} {self.unit} without a value in both." if unmatched else ""
        numbers = (
            f"median {_number(self.median_b.value)} against {_number(self.median_a.value)}, "
            f"difference {_number(self.difference.value)} {self._interval(level)}; "
            f"typical shift per person {_number(self.shift)}; Wilcoxon {p}"
        )
        if not self.p_value <= 1 - self.confidence:
            over = f"over {self.people:,} people"
            return f"Between {b} and {a} no difference in {self.measure} is shown {over} ({numbers}).{left_out}"
        # Where most people are not affected the typical shift is zero: then those who are decide.
        direction = self.shift or float(self.differences.mean())
        lower = direction < 0
        verb = "lower" if lower else "higher"
        return (
            f"The {self.measure} is {verb} with {b} than with {a}: of {self.people:,} people "
            f"{self.better.value:.0%} are better off with {b}, {self.worse.value:.0%} worse ({numbers}).{left_out}"
        )

    def _interval(self, level: str) -> str:
        if np.isnan(self.difference.low):
            return "without an interval, which takes two people"
        return f"[{_number(self.difference.low)}, {_number(self.difference.high)}] at {level}"

    def __repr__(self) -> str:
        return f"Comparison({self.sentence})"

    def to_frame(self) -> pd.DataFrame:
        """One row per number, with its interval."""
        a, b = self.names
        rows = {
            f"median, {a}": self.median_a,
            f"median, {b}": self.median_b,
            "difference of medians": self.difference,
            "shift per person (Hodges-Lehmann)": Interval(self.shift, np.nan, np.nan),
            f"share better off with {b}": self.better,
            f"share worse off with {b}": self.worse,
            "p (Wilcoxon)": Interval(self.p_value, np.nan, np.nan),
        }
        return pd.DataFrame.from_dict(rows, orient="index", columns=list(Interval._fields))

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        return framed(self.sentence, self.to_frame())


def compare(
    a: Instability,
    b: Instability,
    *,
    measure: str = "distance",
    names: tuple[str, str] = ("a", "b"),
    confidence: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Whether `b` is more stable than `a`, on the same people and draws.

    Parameters
    ----------
    a, b : Instability
        Of the same people with the same draws (same ``random_state``): rows are paired by fold, person and draw.
    measure : str
        A column of the tables.
    names : pair of str
        How to call the two.
    confidence : float
        Of the intervals, and of the sentence.
    seed : int
        Of the bootstrap.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from evenhand import Closest, Gaussian, compare, instability
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X, y)
    >>> l1 = instability(Closest("l1").fit(model), X, Gaussian(0.01), random_state=0)
    >>> l2 = instability(Closest("l2").fit(model), X, Gaussian(0.01), random_state=0)
    >>> compare(l1, l2, names=("l1", "l2")).pairs
    150
    """
    for one in (a, b):
        if not isinstance(one, Instability):
            raise TypeError(f"compare takes two results of instability(), got {type(one).__name__}.")
    if measure not in MEASURES:
        raise ValueError(f"measure must be one of {', '.join(MEASURES)}; got {measure!r}.")
    if isinstance(names, str) or len(names) != 2 or names[0] == names[1]:
        raise ValueError(f"names must be two different names, got {names!r}.")
    if a.seed != b.seed:
        raise ValueError(
            f"The two measurements come from different draws (seeds {a.seed} and {b.seed}), so they cannot be paired. "
            "Call instability() with the same random_state for both."
        )
    joined = _paired(a, b, measure)
    _check_same(joined)
    unit = "people" if a._table is None or b._table is None else "draws"
    in_a, in_b = (np.isfinite(joined[side].to_numpy(dtype=float)) for side in ("a", "b"))
    both = joined[in_a & in_b]
    counts = int((in_a & ~in_b).sum()), int((in_b & ~in_a).sum()), int((~in_a & ~in_b).sum())
    nothing = Interval(np.nan, np.nan, np.nan)
    if both.empty:
        return Comparison(
            names,
            measure,
            0,
            0,
            *counts,
            nothing,
            nothing,
            nothing,
            np.nan,
            nothing,
            nothing,
            np.nan,
            np.zeros(0),
            confidence,
            unit,
        )
    who = [key for key in KEYS[:2] if key in both] + ["again"]
    cluster = both.groupby(who, sort=False, dropna=False).ngroup().to_numpy()
    left, right, moved = (both[name].to_numpy(dtype=float) for name in ("a", "b", "input_a"))
    # An explanation that moves by a billionth of what its person does has not moved: rounding is no measurement.
    scale = {"distance": np.nan_to_num(moved), "amplification": np.ones(len(moved))}.get(measure, np.zeros(len(moved)))
    left, right = (np.where(values <= SAME * scale, 0.0, values) for values in (left, right))
    size = np.bincount(cluster)
    means = [np.bincount(cluster, values) / size for values in (left, right, scale)]
    differences = means[1] - means[0]
    differences[np.abs(differences) <= SAME * np.max(means, axis=0)] = 0.0
    good = differences > 0 if measure == "jaccard" else differences < 0
    n = len(differences)
    medians = [
        cluster_bootstrap(values, cluster, ("median",), confidence=confidence, seed=seed)["median"]
        for values in (left, right)
    ]
    return Comparison(
        names,
        measure,
        n,
        len(both),
        *counts,
        medians[0],
        medians[1],
        paired_bootstrap(left, right, cluster, "median", confidence=confidence, seed=seed),
        hodges_lehmann(differences),
        share_interval(int(good.sum()), n, confidence),
        share_interval(int((~good & (differences != 0)).sum()), n, confidence),
        signed_rank(differences),
        differences,
        confidence,
        unit,
    )


def _paired(a: Instability, b: Instability, measure: str) -> pd.DataFrame:
    """Both measurements side by side, one row per key; people with the same label are told apart by their order."""
    kept = a._table is not None and b._table is not None
    sides = []
    for one, name in ((a, "a"), (b, "b")):
        frame = one.table if kept else one.people
        keys = [key for key in KEYS if key in frame.columns]
        part = frame[keys].copy()
        part["again"] = frame.groupby(keys, sort=False, dropna=False).cumcount()
        part[name] = frame[measure].to_numpy()
        part[f"input_{name}"] = frame["input_distance"].to_numpy()
        sides.append((keys, part))
    if sides[0][0] != sides[1][0]:
        raise ValueError(f"One measurement has folds and the other has none: keys {sides[0][0]} and {sides[1][0]}.")
    joined: pd.DataFrame = sides[0][1].merge(sides[1][1], on=[*sides[0][0], "again"], how="outer", sort=False)
    return joined


def _check_same(joined: pd.DataFrame) -> None:
    """The same people, noise and distance leave the same distances between people and their perturbed selves."""
    a, b = joined["input_a"].to_numpy(dtype=float), joined["input_b"].to_numpy(dtype=float)
    known = np.isfinite(a) & np.isfinite(b)
    if not np.allclose(a[known], b[known], rtol=1e-6, atol=1e-12):
        raise ValueError(
            "The two measurements do not come from the same perturbed people: their input distances differ. "
            "Call instability() with the same X, perturbation, distance and random_state for both."
        )


def _number(value: Any) -> str:
    return f"{value:.4g}"
