"""Methods: which point of the target's region a person is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.costs import Cost, fitting
from evenhand.density import HighDensity
from evenhand.explaining import mixed
from evenhand.explaining.exact import RegionExplainer
from evenhand.explaining.mixed import MixedExplainer
from evenhand.models import View, has_encoders, view
from evenhand.sets import Region
from evenhand.table.limits import Actionable
from evenhand.table.schema import Schema
from evenhand.types import FloatArray

Check = Callable[[FloatArray, int], npt.NDArray[np.bool_]]


@dataclass(frozen=True)
class Closest:
    """The closest counterfactual: the cheapest change that the model answers with the target.

    Parameters
    ----------
    cost : {"l1", "l2"}, L1 or L2
        The cost of a change.
    margin : float
        Distance to keep from the decision boundary, in units of the cost.  With 0 the answer
        keeps only the distance that rounding needs for ``predict`` to agree.  Each piece of the region
        (a leaf, a cell) keeps it from its own sides, also where its neighbour has the same label.
    actionable : Actionable, optional
        What a person can change; everything if left out.
    schema : Schema, optional
        What the columns of a raw table are: levels, steps, numbers. Inferred from the data if the model has encoders;
        the cost is then Gower's, ``"l1"`` with the weights of the schema.
    max_nodes : int
        For tables with levels or steps: where the search for one person stops, and the answer carries its gap.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X, y)
    >>> Closest().fit(model).explain(X[:2], target=1).valid
    array([ True,  True])
    """

    cost: Cost | str = "l1"
    margin: float = 0.0
    actionable: Actionable | None = None
    schema: Schema | None = None
    max_nodes: int = 10_000

    def fit(self, model: Any, X: Any = None, y: Any = None) -> RegionExplainer | MixedExplainer:
        """Prepare explanations of a fitted model.

        `X` only serves to know column names, unless the model takes raw tables with levels: then a DataFrame is needed,
        to learn what they look like.
        """
        if self.schema is not None or has_encoders(model):
            return _mixed(self, model, X, y)
        seen = view(model)
        return build(self, seen, X, lambda k: decision(self, seen, k), whole=self.margin == 0)


@dataclass(frozen=True)
class Plausible:
    """The plausible counterfactual: the cheapest change that ends where the target's data lives.

    Parameters
    ----------
    density : HighDensity
        What counts as plausible.
    cost, margin, actionable, schema, max_nodes
        As for :class:`Closest`; the margin is kept from the decision boundary. With a schema the density is that of
        the numbers, as a mixture, times the frequencies of the levels, all in the target class.

    Notes
    -----
    A person whom the model already gives the target is returned as is, with status "already" and cost 0,
    plausible or not: nothing has to change.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X, y)
    >>> explainer = Plausible(HighDensity(components=[1, 2])).fit(model, X, y)
    >>> explainer.explain(X[:2], target=1).valid
    array([ True,  True])
    """

    density: HighDensity = field(default_factory=HighDensity)
    cost: Cost | str = "l1"
    margin: float = 0.0
    actionable: Actionable | None = None
    schema: Schema | None = None
    max_nodes: int = 10_000

    def fit(self, model: Any, X: Any = None, y: Any = None) -> RegionExplainer | MixedExplainer:
        """Fit the density of each class.

        Parameters
        ----------
        model : fitted classifier
            Whose decisions to explain.
        X : table of shape (n, n_features)
            Training data, in the model's raw inputs.
        y : array of shape (n,), optional
            Its labels; the model's own predictions if left out.
        """
        if X is None:
            raise ValueError("Plausible needs training data to know where people are: fit(model, X, y).")
        if self.schema is not None or has_encoders(model):
            return _mixed(self, model, X, y, self.density)
        seen = view(model)
        dense, check = plausibility(self.density, seen, X, y)
        return build(self, seen, X, lambda k: decision(self, seen, k) & dense(k), check)


def plausibility(density: HighDensity, seen: View, X: Any, y: Any) -> tuple[Callable[[int], Region], Check]:
    """Where each label is dense, in raw inputs, and a check of single points against the density itself."""
    table = seen.read(X)
    labels = seen.predict(table) if y is None else np.asarray(y)
    fitted = density.fit(seen.encode(table), labels, seen.classes)

    def region(k: int) -> Region:
        return fitted.region(seen.classes[k]).pullback(seen.encode)

    def check(points: FloatArray, k: int) -> npt.NDArray[np.bool_]:
        label = seen.classes[k]
        dense: npt.NDArray[np.bool_] = fitted.score(seen.encode(points), label) >= fitted.log_threshold(label)
        return dense

    return region, check


def _mixed(
    method: Closest | Plausible, model: Any, X: Any, y: Any, density: HighDensity | None = None
) -> MixedExplainer:
    return mixed.explainer(
        model,
        X,
        y,
        cost=method.cost,
        margin=method.margin,
        actionable=method.actionable,
        schema=method.schema,
        max_nodes=method.max_nodes,
        density=density,
    )


class _Method(Protocol):
    """What the methods that project onto regions have in common."""

    @property
    def cost(self) -> Cost | str: ...
    @property
    def margin(self) -> float: ...
    @property
    def actionable(self) -> Actionable | None: ...


def decision(method: _Method, seen: View, k: int) -> Region:
    """Where the model says the k-th label, with the method's margin."""
    region = seen.region(seen.classes[k])
    return region.shrink(method.margin, method.cost) if method.margin > 0 else region


def build(
    method: _Method,
    seen: View,
    X: Any,
    region: Callable[[int], Region],
    check: Check | None = None,
    *,
    whole: bool = False,
) -> RegionExplainer:
    """The explainer of a method, once everything that a user can get wrong has been checked."""
    if not (np.isfinite(method.margin) and method.margin >= 0):
        raise ValueError(f"margin must be a number >= 0, got {method.margin}.")
    if len(seen.classes) < 2:
        raise ValueError(f"The model knows one label only ({seen.classes[0]!r}): there is nothing to change to.")
    names = seen.feature_names
    if names is None and isinstance(X, pd.DataFrame):
        names = tuple(X.columns)
    actionable = Actionable() if method.actionable is None else method.actionable.plain()
    limits = actionable.limits(seen.n_features, names)
    cost = fitting(method.cost, seen.n_features, names)
    return RegionExplainer(seen, cost, region, limits, check, whole)
