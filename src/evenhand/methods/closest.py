"""The closest counterfactual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenhand.costs import Cost
from evenhand.explaining.exact import ExactExplainer
from evenhand.methods.base import exact_explainer, method
from evenhand.table.actionable import Actionable
from evenhand.table.schema import Schema


@method("closest")
@dataclass(frozen=True)
class Closest:
    """The closest counterfactual: the cheapest change that the model answers with the target.

    Parameters
    ----------
    cost : str, L1, L2 or Gower
        The cost of a change.  "l1", "l2" and others that are known by their names are in the units of the schema: for
        a DataFrame one over each column's standard deviation, for an array 1.  ``L1()`` is as it is given.
    margin : float
        Distance to keep from the decision boundary, in units of the cost.  With 0 the answer
        keeps only the distance that rounding needs for ``predict`` to agree.  Each piece of the region
        (a leaf, a cell) keeps it from its own sides, also where its neighbour has the same label.
    actionable : Actionable, optional
        What a person can change; everything if left out.
    schema : Schema, optional
        What the columns are: levels, steps, numbers; inferred from a DataFrame, whose integers stay whole and whose
        flags are levels. ``Schema.numbers(X)`` lets all columns take any value, in units of 1.
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

    def fit(self, model: Any, X: Any = None, y: Any = None) -> ExactExplainer:  # noqa: ARG002 - one interface
        """Prepare explanations of a fitted model.

        A DataFrame `X` tells what the columns are: names, levels, whole numbers, and the units of the cost.  A model
        that takes raw tables with levels needs one.
        """
        return exact_explainer(self, model, X, max_nodes=self.max_nodes)
