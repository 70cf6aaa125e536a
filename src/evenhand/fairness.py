"""Whether people who are alike are told alike, and whether it costs one group more than another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats as scipy_stats

from evenhand.distances import L1, L2, FloatArray
from evenhand.models.base import Predictor
from evenhand.models.encoders import MixedView
from evenhand.neighbours import nearest
from evenhand.schema import Gower
from evenhand.stats import Interval, cluster_bootstrap

BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.int64]

MISSING, OTHERS, REST = "missing", "other groups", "everybody else"
MOST_GROUPS = 20
MOST_VALUES = 10  # of a number; with more it is cut into ranges
STRATA, ENOUGH = 10, 5
RESAMPLES = 2000
ALL = ("median", "p95", "mean")
UNKNOWN = Interval(math.nan, math.nan, math.nan)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Neighbours with the same decision, and how far what they are told is apart.

    Attributes
    ----------
    table : DataFrame
        One row per pair. `first` and `second` are positions of people, `distance`, `explanation_distance` and
        `change_distance` how far they, their counterfactuals and their changes are apart, `cost_gap` the difference of
        their costs, `jaccard` how far the same columns change, `amplification` explanation distance over distance.
        `alike`: not farther apart than `within`. `different`: no changed column in common, or one that changes in
        opposite directions or to different levels. `broken`: alike, but explanations farther apart than `apart`.
    people, left_out : int
        People who were compared, and those without a counterfactual or with a value that is not finite.
    within, apart : float
        Who is alike, and how far explanations may then be apart.
    neighbours : int
        How many nearest people were looked at.
    nearest : array of shape (n,)
        Distance to the nearest person; NaN if there is none.
    """

    table: pd.DataFrame
    people: int
    left_out: int
    within: float
    apart: float
    neighbours: int
    nearest: FloatArray

    @property
    def broken_share(self) -> Interval:
        """Share of the alike pairs that are broken, with its 95 % interval."""
        return self.share("broken")

    @property
    def different_share(self) -> Interval:
        """Share of the alike pairs that are told something different, with its 95 % interval."""
        return self.share("different")

    def share(self, column: str, confidence: float = 0.95) -> Interval:
        """Share of the alike pairs for which `column` is true, for another sample of people; NaN without such pairs."""
        alike = self.table[self.table["alike"]]
        hit = alike[column].to_numpy(dtype=np.float64)
        return _pair_share(hit, alike["first"].to_numpy(), alike["second"].to_numpy(), confidence)

    def worst(self, n: int = 10) -> pd.DataFrame:
        """The worst of the alike pairs, nobody in more than one of them.

        Broken ones come first, then those told something different; within these, where explanations are farther apart
        than people by the most.
        """
        alike = self.table[self.table["alike"]]
        excess = alike["explanation_distance"] - alike["distance"]
        keys = (alike["second"], alike["first"], -excess, ~alike["different"], ~alike["broken"])
        shown: set[int] = set()
        chosen: list[int] = []
        first, second = alike["first"].to_numpy(), alike["second"].to_numpy()
        for row in np.lexsort([np.asarray(key) for key in keys]):
            if len(chosen) >= n:
                break
            if first[row] not in shown and second[row] not in shown:
                shown |= {first[row], second[row]}
                chosen.append(int(row))
        return alike.iloc[chosen]


def alike_pairs(
    X: npt.ArrayLike,
    told: npt.ArrayLike,
    cost: npt.ArrayLike,
    decision: npt.ArrayLike,
    distance: L1 | L2 | Gower,
    view: Predictor,
    *,
    neighbours: int = 5,
    within: float | None = None,
    apart: float | None = None,
) -> Pairs:
    """Compare what people are told to what their nearest neighbours are told.

    Parameters
    ----------
    X, told : arrays of shape (n, d)
        People and their counterfactuals as encoded rows; a person without one has NaN there.
    cost : array of shape (n,)
        What the counterfactuals cost.
    decision : array of int, shape (n,)
        Only people with the same decision are compared.
    distance : L1, L2 or Gower
        How far people, and explanations, are apart.
    view : Predictor
        Says what people are told to change.
    neighbours : int
        Each person meets as many of the nearest others; each pair is there once.
    within : float, optional
        People farther apart are not alike; the median distance to the nearest neighbour if left out.
    apart : float, optional
        How far the explanations of alike people may be apart; twice `within` if left out.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from evenhand.models import view
    >>> model = view(LogisticRegression().fit([[0.0, 0.0], [2.0, 2.0]], [0, 1]))
    >>> X = np.array([[0.0, 0.0], [0.1, 0.0], [0.9, 0.0]])
    >>> told = np.array([[2.0, 0.0], [0.1, 2.0], [2.1, 0.0]])
    >>> pairs = alike_pairs(X, told, [2.0, 2.0, 1.2], [0, 0, 0], L1(), model, neighbours=1, within=0.5)
    >>> pairs.table[["first", "second", "explanation_distance", "different", "broken"]].values.tolist()
    [[0, 1, 3.9, True, True], [1, 2, 4.0, True, False]]
    """
    if not isinstance(distance, L1 | L2 | Gower):
        raise TypeError(f"Neighbours cannot be found with {distance!r}; use L1(...), L2(...) or Gower(schema).")
    if isinstance(view, MixedView) and not isinstance(distance, Gower):
        raise ValueError(f"People with levels have no distance {distance!r}; use Gower(schema).")
    if neighbours < 1:
        raise ValueError(f"neighbours must be at least 1, got {neighbours}.")
    people, explained = np.asarray(X, dtype=np.float64), np.asarray(told, dtype=np.float64)
    labels, price = np.asarray(decision), np.asarray(cost, dtype=np.float64)
    if people.shape != explained.shape or people.ndim != 2 or not len(people) == len(labels) == len(price):
        raise ValueError(
            f"X {people.shape}, told {explained.shape}, cost {price.shape} and decision {labels.shape} must have a row "
            "per person, and told the columns of X."
        )
    usable = np.isfinite(people).all(axis=1) & np.isfinite(explained).all(axis=1)
    closest = np.full(len(people), np.nan)
    found = [np.zeros((0, 2), dtype=np.int64)]
    for label in np.unique(labels[usable]):
        group = np.flatnonzero(usable & (labels == label))
        others, far = nearest(people[group], distance, neighbours)
        if far.shape[1]:
            closest[group] = far[:, 0]
        found.append(np.sort(np.column_stack([np.repeat(group, far.shape[1]), group[others.ravel()]]), axis=1))
    edges = np.unique(np.concatenate(found), axis=0)
    if within is None:
        within = float(np.median(closest[np.isfinite(closest)])) if np.isfinite(closest).any() else math.nan
    apart = 2 * within if apart is None else apart
    number = distance.schema.number if isinstance(distance, Gower) else np.ones(people.shape[1], dtype=bool)
    table = _compared(people, explained, price, edges, distance, view, number)
    table["alike"] = table["distance"] <= within * (1 + 1e-12)  # the median of distances is one of them, up to rounding
    table["broken"] = table["alike"] & (table["explanation_distance"] > apart)
    count = int(usable.sum())
    return Pairs(table, count, len(people) - count, float(within), float(apart), neighbours, closest)


def _compared(
    X: FloatArray,
    told: FloatArray,
    cost: FloatArray,
    edges: IntArray,
    distance: Any,
    view: Predictor,
    number: BoolArray,
) -> pd.DataFrame:
    first, second = edges.T
    far, explanations = distance(X[first], X[second]), distance(told[first], told[second])
    (change, changed), (other, also) = view.change(X[first], told[first]), view.change(X[second], told[second])
    both, either = changed & also, changed | also
    opposed = both & np.where(number, np.sign(change) != np.sign(other), change != other)
    shared, total = both.sum(axis=1), either.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        amplification = explanations / far
    return pd.DataFrame(
        {
            "first": first,
            "second": second,
            "distance": far,
            "explanation_distance": explanations,
            "change_distance": distance(change, other),
            "cost_gap": np.abs(cost[first] - cost[second]),
            "jaccard": np.where(total > 0, shared / np.maximum(total, 1), 1.0),
            "amplification": amplification,
            "different": (total > 0) & ((shared == 0) | opposed.any(axis=1)),
        }
    )


def _pair_share(hit: FloatArray, first: IntArray, second: IntArray, confidence: float) -> Interval:
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
        numbers = there.to_numpy(dtype=np.float64)
        codes = np.unique(numbers, return_inverse=True)[1]
        if len(np.unique(numbers)) > MOST_VALUES:
            codes = np.searchsorted(np.quantile(numbers, [0.25, 0.5, 0.75]), numbers, side="left")
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
    everyone = _Sample(price[has], np.flatnonzero(has)), _Sample(moved, mover)
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
        against, matched = _adjusted(price, edge, codes == code, confidence)
        row = Group(
            name, len(mine.values), len(mine.values) < few, found["median"], found["p95"], found["mean"],
            shaken["median"], shaken["p95"], _difference(drawn, rest.medians(rng), confidence), against, matched,
            float(np.median(edge[mine.person][there])) if (there := np.isfinite(edge[mine.person])).any() else math.nan,
        )  # fmt: skip
        rows.append(row)
        if not row.few:
            costs[name] = mine, drawn
            adjusted.append(Gap(name, REST, _absolute(against)))
        if len(np.unique(steps.person)) >= few:
            moves[name] = steps.medians(rng)
    medians = {name: drawn for name, (_, drawn) in costs.items()}
    means = [
        Gap(a, b, _absolute(_welch(costs[a][0].values, costs[b][0].values, confidence)))
        for a, b in combinations(costs, 2)
    ]
    return Groups(
        tuple(rows),
        _sorted(
            [Gap(a, b, _absolute(_difference(medians[a], medians[b], confidence))) for a, b in combinations(medians, 2)]
        ),
        _sorted([Gap(a, b, _absolute(_difference(moves[a], moves[b], confidence))) for a, b in combinations(moves, 2)]),
        _sorted(means),
        _sorted([gap for gap in adjusted if math.isfinite(gap.gap.value)]),
    )


@dataclass(frozen=True, eq=False)
class _Sample:
    """Values and whose they are."""

    values: FloatArray
    person: IntArray

    def where(self, codes: IntArray, code: int, same: bool) -> _Sample:
        chosen = (codes[self.person] == code) == same
        return _Sample(self.values[chosen], self.person[chosen])

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


def _difference(a: FloatArray, b: FloatArray, confidence: float) -> Interval:
    """Of two statistics, each with its resamples after it."""
    value, moved = float(a[0] - b[0]), a[1:] - b[1:]
    if np.isnan(moved).any():
        return Interval(value, math.nan, math.nan)
    low, high = np.quantile(moved, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(value, float(min(low, value)), float(max(high, value)))


def _welch(a: FloatArray, b: FloatArray, confidence: float) -> Interval:
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


def _adjusted(cost: FloatArray, edge: FloatArray, mine: BoolArray, confidence: float) -> tuple[Interval, float]:
    """Mean difference to everybody else at the same distance to the boundary, and whom of the group it is about."""
    known = np.isfinite(cost) & np.isfinite(edge)
    total = int((mine & np.isfinite(cost)).sum())
    if not known.any() or not total:
        return UNKNOWN, 0.0 if total else math.nan
    cuts = np.unique(np.quantile(edge[known], np.arange(1, STRATA) / STRATA))
    stratum = np.searchsorted(cuts, edge[known], side="left")
    ours = mine[known]
    counts, means, errors = [], [], []
    for side in (ours, ~ours):
        count = np.bincount(stratum[side], minlength=STRATA)
        mean = np.bincount(stratum[side], cost[known][side], minlength=STRATA) / np.maximum(count, 1)
        squares = np.bincount(stratum[side], (cost[known][side] - mean[stratum[side]]) ** 2, minlength=STRATA)
        counts.append(count)
        means.append(mean)
        errors.append(squares / np.maximum(count - 1, 1) / np.maximum(count, 1))
    both = np.minimum(*counts) >= ENOUGH
    if not both.any():
        return UNKNOWN, 0.0
    weights = counts[0] * both / counts[0][both].sum()
    value = float(weights @ (means[0] - means[1]))
    reach = float(scipy_stats.norm.ppf((1 + confidence) / 2)) * math.sqrt(float(weights**2 @ (errors[0] + errors[1])))
    return Interval(value, value - reach, value + reach), float(counts[0][both].sum() / total)


def _absolute(signed: Interval) -> Interval:
    """Of an absolute value; zero is inside if the signed interval has both signs."""
    ends = sorted((abs(signed.low), abs(signed.high)))
    return Interval(abs(signed.value), 0.0 if signed.low <= 0 <= signed.high else ends[0], ends[1])


def _sorted(gaps: Sequence[Gap]) -> Gaps:
    return Gaps(tuple(sorted(gaps, key=lambda gap: -gap.gap.value)))
