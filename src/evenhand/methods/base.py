"""What methods share: their names, and what they make of a model, a table, a cost and limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
import pandas as pd

from evenhand.costs import Cost, Gower, cost_for
from evenhand.density import ClassDensities, HighDensity
from evenhand.explaining.exact import ExactExplainer, measure
from evenhand.explaining.targets import followed
from evenhand.models import View, view_of
from evenhand.registering import check_free
from evenhand.sets import Region
from evenhand.table.actionable import Actionable
from evenhand.table.limits import Limits
from evenhand.table.people import is_frame, people_of
from evenhand.table.schema import Schema

M = TypeVar("M", bound=type)
METHODS: dict[str, type] = {}


def method(name: str) -> Callable[[M], M]:
    """Make a method known by its name, wherever one can be named: in study files and audit files.

    A method is a frozen dataclass with ``fit(model, X, y)`` that returns an :class:`Explainer`; what it can be told is
    its fields.
    """

    def register(kind: M) -> M:
        instead = 'choose another name with @method("..."), or remove that one from METHODS first.'
        check_free("method", name, kind, METHODS.get(name), instead)
        METHODS[name] = kind
        return kind

    return register


class Exact(Protocol):
    """What the methods that project onto regions have in common."""

    @property
    def cost(self) -> Cost | str:
        """Of a change."""

    @property
    def margin(self) -> float:
        """Kept from the boundary."""

    @property
    def actionable(self) -> Actionable | None:
        """What may change."""

    @property
    def schema(self) -> Schema | None:
        """What the columns are."""


def settled(seen: View, X: Any, cost: Cost | str, actionable: Actionable | None) -> tuple[View, Any, Limits]:
    """The view with the units of a cost, that cost, and what may change in its table."""
    named = seen.reader.named or is_frame(X)
    price = cost_for(cost, seen.schema, seen.schema.names if named else None)
    if isinstance(price, Gower):
        seen = replace(seen, reader=replace(seen.reader, schema=price.schema))
    limits = (Actionable() if actionable is None else actionable).over(seen.schema, named)
    if seen.reader.unfilled:
        limits = replace(limits, gone=seen.reader.fill)
    return seen, price, limits


def exact_explainer(
    recipe: Exact,
    model: Any,
    X: Any,
    y: Any = None,
    density: HighDensity | None = None,
    max_nodes: int = 10_000,
    seen: View | None = None,
) -> ExactExplainer:
    """The explainer of a method, once everything that a user can get wrong has been checked.

    Its region is where the model says a label, with the method's margin, and where that label is dense, if `density`
    says so. Who has made the view of the model already passes it as `seen`: to make one may take many predictions.
    """
    if not (np.isfinite(recipe.margin) and recipe.margin >= 0):
        raise ValueError(f"margin must be a number >= 0, got {recipe.margin}.")
    if max_nodes < 1:
        raise ValueError(f"max_nodes must be at least 1, got {max_nodes}.")
    seen = view_of(model, X, recipe.schema) if seen is None else seen
    if len(seen.classes) < 2:
        raise ValueError(f"The model knows one label only ({seen.classes[0]!r}): there is nothing to change to.")
    seen, cost, limits = settled(seen, X, recipe.cost, recipe.actionable)
    _check_bins(seen, limits)
    densities = None if density is None else fitted_densities(density, seen, X, y)

    region = partial(_target, seen, recipe.margin, cost, densities)
    actionable = Actionable() if recipe.actionable is None else recipe.actionable
    whole = recipe.margin == 0 and density is None
    return ExactExplainer(seen, cost, region, limits, actionable, densities, whole, max_nodes=max_nodes)


def _target(seen: View, margin: float, cost: Any, densities: ClassDensities | None, k: int) -> Region:
    """Where answers towards a label may lie."""
    decision = seen.region(seen.classes[k])
    if margin > 0:
        decision = decision.shrink(margin, measure(cost, seen))
    if densities is None:
        return decision
    if not hasattr(decision, "__and__"):
        raise TypeError(
            f"The regions of {type(seen.model).__name__} do not meet densities: {type(decision).__name__} has no &. "
            "Use Closest, or write its __and__ and a solver that takes the result."
        )
    return decision & _dense(densities, seen, k)


def fitted_densities(density: HighDensity, seen: View, X: Any, y: Any) -> ClassDensities:
    """Where each label is dense: in the space of the model's last step, or over raw columns if there are levels."""
    codes = seen.read(X)
    if isinstance(y, pd.Series) and len(y) == len(codes):
        y = followed(y, people_of(X), "y")
    if seen.reader.plain:
        labels = seen.predict(codes) if y is None else np.asarray(y)
        return density.fit(seen.image(codes), labels, seen.classes)
    fine = np.isfinite(codes).all(axis=1)
    labels = seen.predict(codes[fine]) if y is None else np.asarray(y)[fine]
    return density.fit(codes[fine], labels, seen.classes, seen.columns)


def _dense(densities: ClassDensities, seen: View, k: int) -> Region:
    """Where the k-th label is dense, in expanded rows."""
    where = densities.region(seen.classes[k])
    if densities.layout is not None:
        return where
    assert seen.encode is not None
    return where.pullback(seen.encode)


def _check_bins(seen: View, limits: Limits) -> None:
    """Of a binned number only the bin is known to the search, so that it cannot say by how much it rises."""
    binned = {int(seen.columns.categories[b]) for b in seen.columns.bins}
    for tie in limits.ties:
        for j in (tie.column, tie.driver):
            if j in binned:
                raise ValueError(f"{seen.schema.names[j]!r} is binned, so it cannot rise with another column.")
