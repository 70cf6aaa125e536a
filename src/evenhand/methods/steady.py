"""Explanations that are stable by construction: everybody is projected onto one convex set per label."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from evenhand.costs import Cost
from evenhand.density import HighDensity
from evenhand.explaining.exact import ExactExplainer
from evenhand.methods.base import exact_explainer, method, settled
from evenhand.models import needs_numbers, view_of
from evenhand.projection import Problem, Projector, solver
from evenhand.projection.solver import GUARD
from evenhand.sets import ConvexSet, Region
from evenhand.table.actionable import Actionable
from evenhand.table.limits import DOWN, UP
from evenhand.table.schema import Schema
from evenhand.types import FloatArray

SOLVES = 200_000  # roughly how many projections the choice of the pieces may take
LEAST, MOST = 50, 2000  # people to choose with
SLACK = 1e-9  # of the people's size: kept from the sides for good, so that rounding never has to move a set


@dataclass(frozen=True, eq=False, repr=False)
class SteadyExplainer(ExactExplainer):
    """A fitted :class:`Steady`.

    Attributes
    ----------
    price : DataFrame
        Per label: of how many pieces the `chosen` one was taken, and what it costs: median, 90th percentile and
        maximum, over training data, of its cost relative to the closest counterfactual.
    """

    price: pd.DataFrame = field(default_factory=pd.DataFrame)

    def price_of(self, X: Any, target: Any = None) -> FloatArray:
        """What stability costs each person: the cost relative to that of the closest counterfactual.

        NaN for people without a counterfactual, and for those who have the target already.
        """
        told = self.explain(X, target)
        nearest = ExactExplainer(
            self.view, self.cost, lambda k: self.view.region(self.view.classes[k]), self.limits, stays=False
        ).explain(X, np.where(told.valid, told.target, self.view.classes[0]))
        needed = nearest.cost > 0  # who has the target already has nothing to pay
        return np.where(needed, told.cost / np.where(needed, nearest.cost, 1.0), np.nan)


@method("steady")
@dataclass(frozen=True)
class Steady:
    """Counterfactuals that move no further than their person, whatever the model.

    For every label one convex piece of its region is chosen, the one that is cheapest for the people of the training
    data on average, and everybody is projected onto it.  Such a projection is nonexpansive: in the norm of the cost
    two people's explanations are at most as far apart as the people are.

    Parameters
    ----------
    density : HighDensity, optional
        If given, the set also lies where the label's data is dense.
    cost : "l2" or L2
        The cost of a change; an l1 cost has no such guarantee.
    margin, actionable, schema
        As for :class:`Closest`.  A table with levels or whole numbers is refused; ``Schema.numbers(X)`` lets all its
        columns take any value.  Columns that may only increase or decrease are refused, because what a person
        may do would move with the person; with immutable columns the guarantee is for people who agree in them.

    Notes
    -----
    A person whom the model already gives the target is projected too, and may be told to change something: if it
    stayed where it is, the explanation would jump when a person crosses the boundary.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> explainer = Steady().fit(DecisionTreeClassifier(random_state=0).fit(X, y), X)
    >>> explainer.explain(X[:2], target=1).valid
    array([ True,  True])
    """

    density: HighDensity | None = None
    cost: Cost | str = "l2"
    margin: float = 0.0
    actionable: Actionable | None = None
    schema: Schema | None = None
    l2_only: ClassVar[bool] = True

    def fit(self, model: Any, X: Any = None, y: Any = None) -> SteadyExplainer:
        """Choose the pieces on training data `X` (n, n_features); `y` are its labels, for the density."""
        if X is None:
            raise ValueError("Steady needs training data to know which piece is cheap for people: fit(model, X, y).")
        seen = view_of(model, X, self.schema)
        if not seen.reader.plain:
            raise needs_numbers("Steady", seen)
        _, cost, _ = settled(seen, X, self.cost, None)
        if cost.order != 2:
            raise ValueError(
                'Steady needs an l2 cost ("l2" or L2(...)): projections in l1 can move further than people.'
            )
        plain = exact_explainer(self, model, X, y, self.density, seen=seen)
        seen, whole = plain.view, plain.region
        if np.isin(plain.limits.directions, (UP, DOWN)).any():
            raise ValueError(
                "Steady cannot promise anything with columns that may only increase or only decrease: what a person "
                "may do then moves with the person. Use bounds or immutable instead."
            )
        table = seen.read(X)
        table = table[np.isfinite(table).all(axis=1)]
        if not len(table):
            raise ValueError("Steady needs at least one row of training data without missing values.")
        regions = [whole(k) for k in range(len(seen.classes))]
        unlisted = [type(region).__name__ for region in regions if not hasattr(region, "pieces")]
        if unlisted:
            raise TypeError(
                f"Steady chooses one convex piece per label, and a {unlisted[0]} cannot be listed as pieces. "
                "Use Closest, and measure how far its answers move with instability()."
            )
        chosen, rows = [], []
        n_pieces = sum(len(region.pieces) for region in regions)
        sample = _spread_out(table, min(max(SOLVES // max(n_pieces, 1), LEAST), MOST))
        present = seen.decide(sample)
        room = SLACK * float(np.abs(plain.cost(sample, np.zeros(sample.shape[1]))).max())
        for k, label in enumerate(seen.classes):
            others = sample[present != k] if (present != k).any() else sample
            piece, row = _cheapest(plain, regions[k], k, others, room)
            chosen.append(Region(() if piece is None else (piece,), seen.n_features))
            rows.append({"label": label, **row})
        given = {f.name: getattr(plain, f.name) for f in fields(ExactExplainer) if f.init}
        steady = SteadyExplainer(**given | {"region": chosen.__getitem__, "stays": False, "whole": False})
        return replace(steady, price=pd.DataFrame(rows).set_index("label"))


def _cheapest(
    plain: ExactExplainer, region: Region, k: int, people: FloatArray, room: float
) -> tuple[ConvexSet | None, dict[str, Any]]:
    """The piece that costs people least on average, and what it costs them relative to the closest answer."""
    closest = _costs(plain, plain.view.region(plain.view.classes[k]), people)
    best, best_cost, best_rank, at = None, np.full(len(people), np.nan), (1.0, np.inf), -1
    inner = region.shrink(room, plain.cost)
    for i, found in projector_of(plain, inner).each(people, GUARD):
        reached = ~np.isnan(found.cost)
        if not reached.any():
            continue
        # First whom it reaches at all (immutable columns may keep people away), then what it costs them.
        rank = (float((~reached).mean()), float(found.cost[reached].mean()))
        if best is None or rank < best_rank:
            best, best_cost, best_rank, at = inner.pieces[i], found.cost, rank, i
    if best is None and not region.pieces:  # a label that the model never predicts
        nothing = dict.fromkeys(("median", "p90", "max"), np.nan)
        return None, {"pieces": 0, "chosen": -1, "people": 0, "reached": 0.0, **nothing}
    if best is None:
        label = plain.view.classes.tolist()[k]
        raise ValueError(
            f"Nobody can reach any piece of the region of {label!r} (of {len(region.pieces)}). "
            "Allow more changes, a smaller margin, or a less demanding density."
        )
    known = ~np.isnan(best_cost) & (closest > 0)
    ratio = best_cost[known] / closest[known]
    price = np.quantile(ratio, [0.5, 0.9, 1.0]) if len(ratio) else np.full(3, np.nan)
    row = {"pieces": len(region.pieces), "chosen": at, "people": len(ratio), "reached": 1.0 - best_rank[0]}
    return best, row | {"median": price[0], "p90": price[1], "max": price[2]}


def _costs(plain: ExactExplainer, region: Region, people: FloatArray) -> FloatArray:
    return projector_of(plain, region).project(people, GUARD).cost


def projector_of(plain: ExactExplainer, region: Region) -> Projector:
    """Projector onto another region, with the cost and the limits of an explainer."""
    return solver(Problem(region, plain.cost, plain.limits, plain.view.columns))


def _spread_out(table: FloatArray, most: int) -> FloatArray:
    """At most so many rows, evenly over the table."""
    if len(table) <= most:
        return table
    return table[np.linspace(0, len(table) - 1, most).astype(np.intp)]
