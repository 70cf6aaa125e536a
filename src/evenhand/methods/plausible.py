"""The plausible counterfactual."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from evenhand.costs import Cost
from evenhand.density import HighDensity
from evenhand.explaining.exact import ExactExplainer
from evenhand.methods.base import exact_explainer, method
from evenhand.table.actionable import Actionable
from evenhand.table.schema import Schema


@method("plausible")
@dataclass(frozen=True)
class Plausible:
    """The plausible counterfactual: the cheapest change that ends where the target's data lives.

    Parameters
    ----------
    density : HighDensity
        What counts as plausible.
    cost, margin, actionable, schema, max_nodes
        As for :class:`Closest`; the margin is kept from the decision boundary. In a table with levels or whole numbers
        the density is that of the numbers, as a mixture, times the frequencies of the levels, all in the target class.

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

    def fit(self, model: Any, X: Any = None, y: Any = None) -> ExactExplainer:
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
        return exact_explainer(self, model, X, y, self.density, self.max_nodes)
