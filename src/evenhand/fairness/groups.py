"""Whether explanations cost one group more than another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.fairness.intervals import RESAMPLES, Sample, absolute, adjusted_difference, difference, welch
from evenhand.stats import Interval, cluster_bootstrap
from evenhand.types import FloatArray

MISSING, OTHERS, REST = "missing", "other groups", "everybody else"
MOST_GROUPS = 20
MOST_VALUES = 10  # of a number; with more it is cut into ranges
ALL = ("median", "p95", "mean")


@dataclass(frozen=True)
class Group:
    """What explanations cost the people of a group.

    `people` have a cost; `few` says that they are too few to be compared. `cost_difference` is the median minus that
    of everybody else, `adjusted_difference` the mean minus that of everybody else at the same distance to the
    boundary, for the share `matched` of the group that has somebody to be compared with. `boundary` is the median
    distance to it.
    """

    name: str
    people: int
    few: bool
    median: Interval
    p95: Interval
    mean: Interval
    amplification_median: Interval
    amplification_p95: Interval
    cost_difference: Interval
    adjusted_difference: Interval
    matched: float
    boundary: float


@dataclass(frozen=True)
class Gap:
    """How far two groups are apart, in absolute value."""

    first: str
    second: str
    gap: Interval


@dataclass(frozen=True)
class Gaps:
    """All pairs of groups with enough people, the widest first."""

    pairs: tuple[Gap, ...]

    @property
    def widest(self) -> Gap | None:
        """The pair that is farthest apart; None if there is none."""
        return self.pairs[0] if self.pairs else None

    @property
    def high(self) -> float:
        """What the gap of every pair is below, each at the confidence of its interval; NaN if that cannot be told."""
        return max((pair.gap.high for pair in self.pairs), default=math.nan, key=lambda x: math.inf if x != x else x)


@dataclass(frozen=True)
class Groups:
    """The groups of a column, and the gaps between them.

    `cost_gap` and `amplification_gap` are between medians. `recourse_gap` is between means: recourse is equal if the
    people with the unfavourable decision are equally far from the other one on average (Gupta et al. 2019).
    `adjusted_gap` is between a group and everybody else at the same distance to the boundary.
    """

    groups: tuple[Group, ...]
    cost_gap: Gaps
    amplification_gap: Gaps
    recourse_gap: Gaps
    adjusted_gap: Gaps

    @property
    def table(self) -> pd.DataFrame:
        """One row per group; an interval has three columns, such as median, median_low and median_high."""
        rows = []
        for group in self.groups:
            row: dict[str, Any] = {}
            for item in fields(group):
                value = getattr(group, item.name)
                if isinstance(value, Interval):
                    row |= {item.name: value.value, f"{item.name}_low": value.low, f"{item.name}_high": value.high}
                else:
                    row[item.name] = value
            rows.append(row)
        return pd.DataFrame(rows)


def grouped(values: pd.Series[Any]) -> pd.Series[Any]:
    """Names of groups, as a categorical column: a number of many values becomes four ranges.

    Examples
    --------
    >>> grouped(pd.Series(["f", "m", None])).tolist()
    ['f', 'm', 'missing']
    >>> grouped(pd.Series(range(18, 66))).cat.categories.tolist()
    ['18 to 29', '30 to 41', '42 to 53', '54 to 65']
    """
    plain = values.infer_objects() if values.dtype == object else values
    gone = plain.isna().to_numpy()
    there = plain[~gone]
    if isinstance(plain.dtype, pd.CategoricalDtype):
        named, order = there.astype(str).astype(object), [str(level) for level in plain.cat.categories]
    elif pd.api.types.is_numeric_dtype(plain.dtype) and not pd.api.types.is_bool_dtype(plain.dtype):
        numbers = there.to_numpy(dtype=np.float64) + 0.0  # there is no group "-0"
        codes = np.unique(numbers, return_inverse=True)[1]
        if len(np.unique(numbers)) > MOST_VALUES:
            codes = np.searchsorted(np.quantile(numbers[np.isfinite(numbers)], [0.25, 0.5, 0.75]), numbers, side="left")
        order = _ranges([numbers[codes == code] for code in np.unique(codes)])
        names = np.array(order, dtype=object)[np.unique(codes, return_inverse=True)[1]]
        named = pd.Series(names, index=there.index, dtype=object)
    else:
        named = there.astype(str).astype(object)
        order = sorted(set(named))
    result = pd.Series(MISSING, index=values.index, dtype=object, name=values.name)
    result[~gone] = named.to_numpy()
    sizes = result.value_counts()
    order = [name for name in dict.fromkeys([*order, MISSING]) if name in sizes.index]
    if len(order) > MOST_GROUPS:
        large = sorted(order, key=lambda name: (-sizes[name], order.index(name)))[: MOST_GROUPS - 1]
        result[~result.isin(large)] = OTHERS
        order = [name for name in order if name in large and name != OTHERS] + [OTHERS]
    return result.astype(pd.CategoricalDtype(order))


def _ranges(parts: list[FloatArray]) -> list[str]:
    """Names with as many digits as tell them apart."""
    for digits in range(4, 18):
        ends = [(f"{part.min():.{digits}g}", f"{part.max():.{digits}g}") for part in parts]
        if len({end for pair in ends for end in set(pair)}) == sum(1 + (part.min() < part.max()) for part in parts):
            break
    return [low if low == high else f"{low} to {high}" for low, high in ends]


def group_gaps(
    group: Any,
    cost: npt.ArrayLike,
    boundary: npt.ArrayLike,
    amplification: npt.ArrayLike | None = None,
    person: npt.ArrayLike | None = None,
    *,
    confidence: float = 0.95,
    seed: int = 0,
    few: int = 30,
) -> Groups:
    """Compare what explanations cost, and how far they move, between the groups of one column.

    Parameters
    ----------
    group : array or Series of shape (n,)
        The group of everybody, named as :func:`grouped` does.
    cost : array of shape (n,)
        NaN for those without an explanation, or without need of one.
    boundary : array of shape (n,)
        Distance to the decision boundary if every column could change; NaN where it is not known.
    amplification, person : arrays of shape (m,), optional
        How far explanations moved for a move of the person, and that person's position; what is not finite is left out.
    confidence : float
        How often each interval holds the truth.
    seed : int
        The same seed gives the same intervals.
    few : int
        Groups with fewer people are described but not compared.

    Examples
    --------
    >>> cost = np.concatenate([np.linspace(1, 2, 40), np.linspace(2, 3, 40)])
    >>> found = group_gaps(["f"] * 40 + ["m"] * 40, cost, cost)
    >>> found.cost_gap.widest.first, found.cost_gap.widest.second, found.cost_gap.widest.gap.value
    ('f', 'm', 1.0)
    """
    names = grouped(group if isinstance(group, pd.Series) else pd.Series(np.asarray(group, dtype=object)))
    codes, levels = names.cat.codes.to_numpy().astype(np.int64), list(names.cat.categories)
    price, edge = np.asarray(cost, dtype=np.float64), np.asarray(boundary, dtype=np.float64)
    if not len(codes) == len(price) == len(edge):
        raise ValueError(
            f"group has {len(codes)} people, cost {len(price)} and boundary {len(edge)}: one of each, please."
        )
    if (amplification is None) != (person is None):
        raise ValueError("amplification and person belong together: one position per value.")
    moved = np.asarray([] if amplification is None else amplification, dtype=np.float64)
    mover = np.asarray([] if person is None else person, dtype=np.int64)
    if len(moved) != len(mover):
        raise ValueError(
            f"amplification has {len(moved)} values, person {len(mover)}; one position per value is needed."
        )
    moved, mover = moved[np.isfinite(moved)], mover[np.isfinite(moved)]
    has = np.isfinite(price)
    everyone = Sample(price[has], np.flatnonzero(has)), Sample(moved, mover)
    rows, costs, moves, adjusted = [], {}, {}, []
    rng = np.random.default_rng(seed)
    for code, name in enumerate(levels):
        mine, rest = (everyone[0].where(codes, code, same) for same in (True, False))
        steps = everyone[1].where(codes, code, True)
        found, shaken = (
            cluster_bootstrap(sample.values, sample.person, ALL, confidence=confidence, resamples=RESAMPLES, seed=seed)
            for sample in (mine, steps)
        )
        drawn = mine.medians(rng)
        against, matched = adjusted_difference(price, edge, codes == code, confidence)
        row = Group(
            name, len(mine.values), len(mine.values) < few, found["median"], found["p95"], found["mean"],
            shaken["median"], shaken["p95"], difference(drawn, rest.medians(rng), confidence), against, matched,
            float(np.median(edge[mine.person][there])) if (there := np.isfinite(edge[mine.person])).any() else math.nan,
        )  # fmt: skip
        rows.append(row)
        if not row.few:
            costs[name] = mine, drawn
            adjusted.append(Gap(name, REST, absolute(against)))
        if len(np.unique(steps.person)) >= few:
            moves[name] = steps.medians(rng)
    medians = {name: drawn for name, (_, drawn) in costs.items()}
    means = [
        Gap(a, b, absolute(welch(costs[a][0].values, costs[b][0].values, confidence)))
        for a, b in combinations(costs, 2)
    ]
    return Groups(
        tuple(rows),
        _sorted(
            [Gap(a, b, absolute(difference(medians[a], medians[b], confidence))) for a, b in combinations(medians, 2)]
        ),
        _sorted([Gap(a, b, absolute(difference(moves[a], moves[b], confidence))) for a, b in combinations(moves, 2)]),
        _sorted(means),
        _sorted([gap for gap in adjusted if math.isfinite(gap.gap.value)]),
    )


def _sorted(gaps: Sequence[Gap]) -> Gaps:
    return Gaps(tuple(sorted(gaps, key=lambda gap: -gap.gap.value)))
