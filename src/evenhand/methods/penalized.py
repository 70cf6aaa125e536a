"""Counterfactuals of any model, by minimising a loss plus the cost of the change: good, but never proven best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from evenhand.costs import Cost
from evenhand.methods.base import method, settled
from evenhand.methods.losses import LOSSES, Loss, check_shapes, reacts, scores_of
from evenhand.methods.losses import hinge_loss as hinge_loss  # pickles name them here
from evenhand.methods.losses import log_loss as log_loss
from evenhand.methods.losses import zero_one_loss as zero_one_loss
from evenhand.methods.penalized_explainer import PenalizedExplainer
from evenhand.models import View, blackbox, with_codes
from evenhand.table.actionable import Actionable
from evenhand.table.limits import Limits
from evenhand.table.schema import Schema
from evenhand.types import FloatArray


@method("penalized")
@dataclass(frozen=True)
class Penalized:
    """Counterfactuals of any model: minimise loss(model(x'), target) + strength * cost(x, x').

    Where the library has no region for a model (forests, boosting, neural networks, kernel machines), this finds
    counterfactuals by local search, on tables of numbers and on raw tables with levels, whole numbers and missing
    values, through the user's own pipeline.  They are valid, but a cheaper one may exist: their status is "local".
    None is dearer than the nearest person of the training data who has the target and whom the limits admit.  The
    search asks the model one to three thousand times for each person and label, many people at a time.

    Parameters
    ----------
    loss : {"auto", "log", "hinge", "zero-one"} or callable
        How far a prediction is from the target.  "auto" is "log" for models with ``predict_proba``, "hinge" for those
        with ``decision_function``, and "zero-one" for those with ``predict`` only.  A function ``loss(scores, k)``
        gets scores of shape (n, n_classes), logs of probabilities or decision values, and returns one number per row.
    cost : {"l1", "l2"}, L1 or L2
        The cost of a change.
    strength : float or "auto"
        Weight of the cost; "auto" looks for the largest that still yields the target, by bisection.
    optimizer : {"auto", "bfgs", "nelder-mead", "descent"}
        "descent" uses no loss: it walks from training points of the target towards the person, column by column, and
        exchanges columns, for all people at once.  "bfgs" and "nelder-mead" minimise the loss as well, person by
        person, in tables of numbers; the cheaper answer counts.  "auto" is BFGS where the loss reacts to small changes
        of numbers, and "descent" everywhere else.
    restarts : int
        Training points of the target class, nearest first, that "bfgs" and "nelder-mead" start from, besides the person
        itself; with 0 nothing is taken from the data.
    gradient : callable, optional
        ``gradient(X, k)`` of the loss, of shape (n, n_features); by differences if left out.
    actionable : Actionable, optional
        What a person can change, in all its parts.
    schema : Schema, optional
        What the columns are.  Inferred from a DataFrame that holds anything but plain numbers: levels stay levels,
        whole numbers stay whole, and the cost is Gower's.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RandomForestClassifier(n_estimators=5, random_state=0).fit(X, y)
    >>> Penalized(restarts=1).fit(model, X).explain(X[:1], target=1).status.tolist()
    ['local']
    """

    loss: Literal["auto", "log", "hinge", "zero-one"] | Loss = "auto"
    cost: Cost | str = "l1"
    strength: float | Literal["auto"] = "auto"
    optimizer: Literal["auto", "bfgs", "nelder-mead", "descent"] = "auto"
    restarts: int = 3
    gradient: Callable[[FloatArray, int], FloatArray] | None = None
    actionable: Actionable | None = None
    schema: Schema | None = None

    def __post_init__(self) -> None:
        if not callable(self.loss) and self.loss not in ("auto", *LOSSES):
            raise ValueError(f"loss must be auto, {', '.join(LOSSES)} or a function, got {self.loss!r}.")
        if self.optimizer not in ("auto", "bfgs", "nelder-mead", "descent"):
            raise ValueError(f'optimizer must be "auto", "bfgs", "nelder-mead" or "descent", got {self.optimizer!r}.')
        automatic = isinstance(self.strength, str) and self.strength == "auto"
        if not automatic and not (isinstance(self.strength, Real) and 0 < self.strength < np.inf):
            raise ValueError(f'strength must be a number > 0 or "auto", got {self.strength!r}.')
        if not isinstance(self.restarts, Integral) or self.restarts < 0:
            raise ValueError(f"restarts must be a whole number >= 0, got {self.restarts!r}.")
        if self.gradient is not None and not callable(self.gradient):
            raise TypeError(f"gradient must be a function (X, k) -> (n, n_features), got {self.gradient!r}.")

    def fit(self, model: Any, X: Any = None, y: Any = None) -> PenalizedExplainer:  # noqa: ARG002 - one interface
        """Prepare explanations of a fitted model; `X` (n, n_features) is training data to start from."""
        if X is None:
            raise ValueError("Penalized needs training data to start its searches from: fit(model, X).")
        seen, cost, limits = searched(model, X, self.schema, self.cost, self.actionable)
        if len(seen.classes) < 2:
            raise ValueError(f"The model knows one label only ({seen.classes[0]!r}): there is nothing to change to.")
        table = seen.read(X)
        table = table[np.isfinite(table).all(axis=1)]
        if not len(table):
            raise ValueError("Penalized needs at least one row of training data without missing values.")
        spread = table.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        smooth = seen.reader.plain and self.optimizer != "descent"
        scores, kind = scores_of(seen, table)
        loss = self.loss if callable(self.loss) else LOSSES[kind if self.loss == "auto" else self.loss]
        optimizer: str = self.optimizer
        if smooth:
            check_shapes(scores(table[:2]), loss, self.gradient, table[:2])
            if optimizer == "auto":
                steep = self.gradient is not None or reacts(scores, loss, table, spread)
                optimizer = "bfgs" if steep else "descent"
        elif optimizer in ("bfgs", "nelder-mead"):
            raise ValueError(
                f'optimizer="{optimizer}" follows numbers, and this table has levels or whole numbers: use "descent", '
                "or schema=Schema.numbers(X) if all columns may take any value."
            )
        return PenalizedExplainer(
            seen,
            cost,
            limits,
            scores,
            loss,
            None if self.strength == "auto" else float(self.strength),
            optimizer if smooth else "descent",
            int(self.restarts),
            self.gradient,
            table,
            seen.decide(table),
            spread,
        )


def searched(
    model: Any, X: Any, schema: Schema | None, cost: Cost | str, actionable: Actionable | None
) -> tuple[View, Any, Limits]:
    """A model that is only asked, with the cost and the limits of its table."""
    return settled(blackbox(model, X, with_codes(model, X, schema)), X, cost, actionable)
