"""Methods: which point of the target's region a person is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.actionable import Actionable
from evenhand.density import HighDensity
from evenhand.distances import Cost, FloatArray, as_cost
from evenhand.explainer import Explainer
from evenhand.models import ModelView, view
from evenhand.projection import as_table
from evenhand.sets import Region

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

    def fit(self, model: Any, X: Any = None, y: Any = None) -> Explainer:  # noqa: ARG002 - one interface for all methods
        """Prepare explanations of a fitted model; `X` only serves to know column names."""
        seen = view(model)
        return _explainer(self, seen, X, lambda k: _decision(self, seen, k))


@dataclass(frozen=True)
class Plausible:
    """The plausible counterfactual: the cheapest change that ends where the target's data lives.

    Parameters
    ----------
    density : HighDensity
        What counts as plausible.
    cost, margin, actionable
        As for :class:`Closest`; the margin is kept from the decision boundary.

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

    def fit(self, model: Any, X: Any = None, y: Any = None) -> Explainer:
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
        seen = view(model)
        table = as_table(seen.columns(X), seen.n_features)
        labels = seen.predict(table) if y is None else np.asarray(y)
        fitted = self.density.fit(seen.encode(table), labels, seen.classes)

        def region(k: int) -> Region:
            dense = fitted.region(seen.classes[k]).pullback(seen.encode)
            return _decision(self, seen, k) & dense

        def check(points: FloatArray, k: int) -> npt.NDArray[np.bool_]:
            label = seen.classes[k]
            dense: npt.NDArray[np.bool_] = fitted.score(seen.encode(points), label) >= fitted.log_threshold(label)
            return dense

        return _explainer(self, seen, X, region, check)


def _decision(method: Closest | Plausible, seen: ModelView, k: int) -> Region:
    region = seen.region(seen.classes[k])
    return region.shrink(method.margin, method.cost) if method.margin > 0 else region


def _explainer(
    method: Closest | Plausible, seen: ModelView, X: Any, region: Callable[[int], Region], check: Check | None = None
) -> Explainer:
    if not (np.isfinite(method.margin) and method.margin >= 0):
        raise ValueError(f"margin must be a number >= 0, got {method.margin}.")
    if len(seen.classes) < 2:
        raise ValueError(f"The model knows one label only ({seen.classes[0]!r}): there is nothing to change to.")
    names = seen.feature_names
    if names is None and isinstance(X, pd.DataFrame):
        names = tuple(X.columns)
    actionable = Actionable() if method.actionable is None else method.actionable
    limits = actionable.limits(seen.n_features, names)
    cost = as_cost(method.cost)
    cost.frame(seen.n_features, np.flatnonzero(limits.directions))  # a cost of the wrong size fails here, not later
    return Explainer(seen, cost, region, limits, check)
