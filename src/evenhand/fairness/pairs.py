"""Whether people who are alike are told alike."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.costs import L1, L2, Gower
from evenhand.fairness.intervals import pair_share
from evenhand.fairness.neighbours import nearest
from evenhand.models import View
from evenhand.stats import IntArray, Interval
from evenhand.types import FloatArray


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
        return pair_share(hit, alike["first"].to_numpy(), alike["second"].to_numpy(), confidence)

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
    view: View,
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
    view : View
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
    if not view.schema.number.all() and not isinstance(distance, Gower):
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
    table = _compared(people, explained, price, edges, distance, view)
    table["alike"] = table["distance"] <= within * (1 + 1e-12)  # nobody is told apart by rounding
    table["broken"] = table["alike"] & (table["explanation_distance"] > apart)
    count = int(usable.sum())
    return Pairs(table, count, len(people) - count, float(within), float(apart), neighbours, closest)


def _compared(
    X: FloatArray,
    told: FloatArray,
    cost: FloatArray,
    edges: IntArray,
    distance: Any,
    view: View,
) -> pd.DataFrame:
    first, second = edges.T
    far, explanations = distance(X[first], X[second]), distance(told[first], told[second])
    (change, changed), (other, also) = view.change(X[first], told[first]), view.change(X[second], told[second])
    both, either = changed & also, changed | also
    opposed = both & np.where(view.schema.number, np.sign(change) != np.sign(other), change != other)
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
