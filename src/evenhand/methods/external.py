"""A door for every other counterfactual tool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from evenhand.costs import Cost
from evenhand.explaining.answers import Answers, unanswered
from evenhand.explaining.explainer import LARGEST, Explainer
from evenhand.methods.penalized import searched
from evenhand.models import View
from evenhand.status import Status
from evenhand.table.schema import Schema
from evenhand.types import FloatArray

Generator = Callable[[Any, Any], Any]


@dataclass(frozen=True, eq=False, repr=False)
class ExternalExplainer(Explainer):
    """A fitted :class:`External`."""

    view: View
    cost: Any  # Cost or Gower
    function: Generator
    threads: ClassVar[bool] = False  # other tools seldom expect more than one
    quick: ClassVar[bool] = False

    def _toward(self, X: FloatArray, k: int, cutoff: FloatArray) -> Answers:  # noqa: ARG002 - others know no cutoff
        answers = unanswered(X, np.full(len(X), k))
        answers.floor[:] = 0.0  # another tool proves nothing
        points = self._asked(X, k)
        found = np.flatnonzero((np.abs(points) < LARGEST).all(axis=1))
        answers.status[:] = Status.MISSING
        answers.status[found] = Status.REJECTED
        rows = found[self._confirmed(points[found], k)]
        answers.points[rows] = points[rows]
        answers.cost[rows] = self.cost.price(X[rows], points[rows])
        answers.status[rows] = Status.LOCAL
        return answers

    def _asked(self, X: FloatArray, k: int) -> FloatArray:
        """What the function returns, in the model's columns and as numbers, or an error that says what is wrong."""
        reader = self.view.reader
        table = reader.show(X.copy())  # a generator may work in place
        label = self.view.classes[k]
        try:
            given = self.function(table, label)
        except Exception as error:
            error.add_note(
                f"Raised by the generator that External wraps, for {len(X)} people and the target {label!r}."
            )
            raise
        if isinstance(given, np.ndarray) and given.ndim == 2 and isinstance(table, np.ndarray) and not reader.plain:
            given = pd.DataFrame(given, columns=list(reader.schema.names)[: given.shape[1]])
        if isinstance(given, pd.DataFrame):
            if isinstance(table, pd.DataFrame) and len(given) == len(table):
                if set(given.index) != set(table.index):
                    raise ValueError("The generator's table has another index than the people it was given.")
                given = given.loc[table.index]
            lost = (
                given.isna().all(axis=1).to_numpy()
            )  # a row of nothing is nobody, whatever stands for a missing value
            points: FloatArray = np.where(lost[:, None], np.nan, self.view.read(given))
        elif not reader.plain:
            raise TypeError(
                f"The generator returned a {type(given).__name__}; people with levels or whole numbers come as a "
                "DataFrame, and so do their counterfactuals."
            )
        else:
            try:
                points = np.array(given, dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise ValueError(f"The generator's answer is no table of numbers: {error}") from error
        if points.shape != X.shape:
            raise ValueError(
                f"The generator returned shape {points.shape} for {X.shape[0]} people with {X.shape[1]} features. "
                "It has to return one counterfactual per person, in their order, with NaN for those who have none."
            )
        return points


@dataclass(frozen=True)
class External:
    """Any other generator of counterfactuals, so that it can be measured like the library's own.

    Parameters
    ----------
    function : callable
        ``function(X, target)`` returns a table like `X` with one counterfactual per row, and a row of NaN for people
        who have none.  `X` is a DataFrame if the model was fitted with one, else an array; `target` is one label.
    cost : {"l1", "l2"}, L1 or L2
        What its counterfactuals are said to cost.
    schema : Schema, optional
        What the columns are; inferred from a DataFrame that holds anything but plain numbers, whose cost is Gower's.

    Notes
    -----
    Nothing is trusted: a counterfactual for which the model does not predict the target has the status "rejected" and
    is counted as not found.  A valid one has the status "local".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X, y)
    >>> mean_of_class = External(lambda people, label: X[y == label].mean(axis=0) + 0 * people)
    >>> mean_of_class.fit(model).explain(X[:2], target=1).status.tolist()
    ['local', 'local']
    """

    function: Generator
    cost: Cost | str = "l1"
    schema: Schema | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                f"External wraps a function (X, target) -> counterfactuals, got {type(self.function).__name__}."
            )

    def fit(self, model: Any, X: Any = None, y: Any = None) -> ExternalExplainer:  # noqa: ARG002 - one interface
        """Prepare explanations; `X` tells labels and columns of a model that does not say so itself."""
        seen, cost, _ = searched(model, X, self.schema, self.cost, None)
        return ExternalExplainer(seen, cost, self.function)
