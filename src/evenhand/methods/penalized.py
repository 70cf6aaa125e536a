"""Counterfactuals of any model, by minimising a loss plus the cost of the change: good, but never proven best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from scipy import optimize

from evenhand.costs import Cost
from evenhand.explaining.explainer import Answers, Explainer, unanswered
from evenhand.explaining.local import Search, worth_trying
from evenhand.methods.base import method, settled
from evenhand.models import View, blackbox
from evenhand.status import Status
from evenhand.table.limits import FIXED, Actionable, Limits
from evenhand.table.schema import Schema
from evenhand.types import FloatArray

Loss = Callable[[FloatArray, int], FloatArray]
HALVINGS = 40  # of the line from a counterfactual to the person: to one part in 10^12
FEW = 3  # steps of it where every one takes hundreds of predictions
STRENGTHS = 5  # steps of the bisection for the strength
DIFFERENCE = 1e-5  # of a feature's spread, for numeric gradients
_scipy: Any = optimize.minimize  # its types are stricter than its documentation
SMOOTH = 0.01  # of a feature's spread: below it the l1 cost is rounded off
LEAST = 1e-12  # a probability whose logarithm is still of use


def log_loss(scores: FloatArray, k: int) -> FloatArray:
    """Minus the log of the probability that scores give to the k-th label."""
    top = scores.max(axis=1, keepdims=True)
    total: FloatArray = np.log(np.exp(scores - top).sum(axis=1)) + top[:, 0] - scores[:, k]
    return total


def hinge_loss(scores: FloatArray, k: int) -> FloatArray:
    """By how much the k-th label's score fails to lead by one."""
    lead = scores[:, k] - np.delete(scores, k, axis=1).max(axis=1)
    short: FloatArray = np.maximum(0.0, 1.0 - lead)
    return short


def zero_one_loss(scores: FloatArray, k: int) -> FloatArray:
    """One where another label has the largest score."""
    wrong: FloatArray = (scores.argmax(axis=1) != k).astype(np.float64)
    return wrong


LOSSES: dict[str, Loss] = {"log": log_loss, "hinge": hinge_loss, "zero-one": zero_one_loss}


@dataclass(frozen=True, eq=False, repr=False)
class PenalizedExplainer(Explainer):
    """A fitted :class:`Penalized`."""

    view: View
    cost: Any  # Cost or Gower
    limits: Limits
    scores: Callable[[FloatArray], FloatArray]
    loss: Loss
    strength: float | None
    optimizer: str
    restarts: int
    gradient: Callable[[FloatArray, int], FloatArray] | None
    people: FloatArray = field(repr=False)
    own_labels: npt.NDArray[np.int64] = field(repr=False)
    spread: FloatArray = field(repr=False)
    _searches: dict[int, Search] = field(default_factory=dict, init=False, repr=False)
    threads: ClassVar[bool] = False  # scipy hides warnings of its own in a way that threads undo
    quick: ClassVar[bool] = False  # a model is asked about many people as fast as about one

    def _toward(self, X: FloatArray, k: int, cutoff: FloatArray) -> Answers:  # noqa: ARG002 - nothing to prune with
        answers = unanswered(X, np.full(len(X), k))
        answers.floor[:] = 0.0  # a local search proves nothing
        points = self._proposer(k).best(X)
        if self.optimizer != "descent":
            points = np.array([self._better(x, k, point) for x, point in zip(X, points, strict=True)])
        there = ~np.isnan(points[:, 0])
        answers.points[:] = points
        answers.cost[there] = self.cost.price(X[there], points[there])
        answers.status[:] = np.where(there, Status.LOCAL, Status.MISSING)
        return answers

    def _proposer(self, k: int) -> Search:
        """The search that asks for predictions only, for all people at once."""
        if k not in self._searches:
            schema = self.view.schema
            known = self.people[(self.own_labels == k) & (self.restarts > 0)]
            values = worth_trying(known, schema.number, [len(c.levels) for c in schema.columns.values()])
            if self.limits.gone is not None:
                values = [some[some != gone] for some, gone in zip(values, self.limits.gone, strict=True)]
            self._searches[k] = Search(
                partial(self._confirmed, k=k), self.cost.price, self.limits, schema.number, known, values
            )
        return self._searches[k]

    def _better(self, x: FloatArray, k: int, known: FloatArray) -> FloatArray:
        """The cheaper of a known point and what the optimizer finds for one person; NaN without either."""
        found = self._search(x, k)
        if found is None:
            return known
        return known if self.cost(known[None], x[None])[0] <= self.cost(found[None], x[None])[0] else found

    def _search(self, x: FloatArray, k: int) -> FloatArray | None:
        """The cheapest valid point that was found for one person."""
        starts = self._starts(x, k)
        found = list(starts)
        # The person itself is a start as well: the nearest boundary may be where nobody of the data is.
        for start in (x, *starts[:1]):
            if self.strength is None:
                found += self._bisected(x, k, start, found)
            else:
                found.append(self._minimised(x, k, start, self.strength))
        for start in starts[1:]:
            strength = self._first_strength(x, k, found) if self.strength is None else self.strength
            found.append(self._minimised(x, k, start, strength))
        points = np.array(found).reshape(-1, len(x))
        points = points[self._confirmed(points, k) & self.limits.admits(points, x[None])]
        if not len(points):
            return None
        pulled = self._pulled(x, points, k)
        pulled = np.where(self.limits.admits(pulled, x[None])[:, None], pulled, points)
        cheapest: FloatArray = pulled[int(np.argmin(self.cost(pulled, x[None])))]
        return cheapest

    def _bisected(self, x: FloatArray, k: int, start: FloatArray, known: list[FloatArray]) -> list[FloatArray]:
        """Try strengths: stronger while the answer has the target, weaker while it has not."""
        strength = self._first_strength(x, k, known)
        low, high = 0.0, np.inf
        point, answers = start, []
        for _ in range(STRENGTHS if self.optimizer == "bfgs" else FEW):
            found = self._minimised(x, k, point, strength)
            if self._confirmed(found[None], k)[0]:
                answers.append(found)
                low, point = strength, found
            else:
                high = strength
            strength = strength * 4 if high == np.inf else strength / 4 if low == 0.0 else float(np.sqrt(low * high))
        return answers

    def _first_strength(self, x: FloatArray, k: int, known: list[FloatArray]) -> float:
        """Loss and cost of the same size."""
        loss = float(self.loss(self.scores(x[None]), k)[0])
        cost = float(self.cost(np.array(known), x[None]).min()) if known else 1.0
        return max(loss, 1e-3) / max(cost, 1e-12)

    def _starts(self, x: FloatArray, k: int) -> FloatArray:
        """The nearest training points that the model gives the label, within what may change."""
        known = self.people[self.own_labels == k]
        if not len(known) or not self.restarts:
            return np.zeros((0, len(x)))
        allowed = self.limits.snap(known, np.broadcast_to(x, known.shape)) if self.limits.any else known
        near = np.argsort(self.cost(allowed, x[None]), kind="stable")[: self.restarts]
        return allowed[near]

    def _pulled(self, x: FloatArray, points: FloatArray, k: int) -> FloatArray:
        """The points nearest to the person on the lines to it that still have the target, by halving."""
        near, far = np.zeros(len(points)), np.ones(len(points))
        for _ in range(HALVINGS):
            middle = (near + far) / 2
            inside = self._confirmed(self._between(x, points, middle), k)
            far, near = np.where(inside, middle, far), np.where(inside, near, middle)
        return self._between(x, points, far)

    def _between(self, x: FloatArray, points: FloatArray, share: FloatArray) -> FloatArray:
        at = np.where(share[:, None] == 1.0, points, x + share[:, None] * (points - x))
        return self.limits.snap(at, np.broadcast_to(x, at.shape)) if self.limits.any else at

    def _minimised(self, x: FloatArray, k: int, start: FloatArray, strength: float) -> FloatArray:
        """A local minimum of loss + strength * cost."""
        free = np.flatnonzero(self.limits.directions != FIXED)
        if not len(free):
            return x
        unit = self.spread[free]

        def at(U: FloatArray) -> FloatArray:
            points = np.repeat(x[None], len(U), axis=0)
            points[:, free] += U * unit
            return self.limits.snap(points, np.broadcast_to(x, points.shape)) if self.limits.any else points

        def price(points: FloatArray) -> FloatArray:
            """The cost; an l1 cost without its kinks, at which a line search would get stuck."""
            norm = self.cost
            if norm.order == 2 or self.optimizer != "bfgs":
                return np.asarray(norm(points, x[None]))
            weights = 1.0 / norm.frame(len(x), np.arange(len(x)))
            total: FloatArray = np.sqrt((points - x) ** 2 + (SMOOTH * self.spread) ** 2) @ weights
            return total

        def value(U: FloatArray) -> FloatArray:
            points = at(U)
            total: FloatArray = self.loss(self.scores(points), k) + strength * price(points)
            return total

        def with_slope(u: FloatArray) -> tuple[float, FloatArray]:
            """Value and slope from one call of the model."""
            steps = DIFFERENCE * np.eye(len(u))
            if self.gradient is None:
                around = value(np.vstack([u, u + steps, u - steps]))
                return float(around[0]), (around[1 : len(u) + 1] - around[len(u) + 1 :]) / (2 * DIFFERENCE)
            points = at(np.vstack([u, u + steps, u - steps]))
            cost = strength * price(points)
            by_loss = np.asarray(self.gradient(points[:1], k))[0][free] * unit
            here = float(self.loss(self.scores(points[:1]), k)[0]) + float(cost[0])
            return here, by_loss + (cost[1 : len(u) + 1] - cost[len(u) + 1 :]) / (2 * DIFFERENCE)

        u0 = (start[free] - x[free]) / unit
        if self.optimizer == "bfgs":
            found = _scipy(with_slope, u0, jac=True, method="BFGS", options={"maxiter": 40, "gtol": 1e-4})
        else:
            size = max(0.5, float(np.abs(u0).max(initial=0.0)) / 2)
            simplex = np.vstack([u0, u0 + size * np.eye(len(u0))])
            options = {"maxfev": 40 * (len(u0) + 1), "initial_simplex": simplex, "adaptive": len(u0) > 4}
            found = _scipy(lambda u: float(value(u[None])[0]), u0, method="Nelder-Mead", options=options)
        point: FloatArray = at(np.asarray(found.x)[None])[0]
        return point


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
        scores, kind = _scores(seen, table)
        loss = self.loss if callable(self.loss) else LOSSES[kind if self.loss == "auto" else self.loss]
        optimizer: str = self.optimizer
        if smooth:
            _check_shapes(scores(table[:2]), loss, self.gradient, table[:2])
            if optimizer == "auto":
                steep = self.gradient is not None or _reacts(scores, loss, table, spread)
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
    return settled(blackbox(model, X, schema), X, cost, actionable)


def _scores(seen: View, people: FloatArray) -> tuple[Callable[[FloatArray], FloatArray], str]:
    """What the model says of each label, and the loss that goes with it."""
    model, n_classes = seen.model, len(seen.classes)
    if hasattr(model, "predict_proba"):
        return lambda X: np.log(np.maximum(np.asarray(model.predict_proba(seen.reader.show(X))), LEAST)), "log"
    if hasattr(model, "decision_function"):

        def decide(X: FloatArray) -> FloatArray:
            values = np.asarray(model.decision_function(seen.reader.show(X)), dtype=np.float64)
            return np.column_stack([-values, values]) / 2 if values.ndim == 1 else values

        values = decide(people)  # one against one has a value per pair of labels, which says nothing of a label
        if (
            values.shape[1] == n_classes
            and (values.argmax(axis=1) == seen.positions(seen.predict(people))).mean() > 0.5
        ):
            return decide, "hinge"
    return lambda X: (seen.positions(seen.predict(X))[:, None] == np.arange(n_classes)).astype(np.float64), "zero-one"


def _check_shapes(scores: FloatArray, loss: Loss, gradient: Any, people: FloatArray) -> None:
    found = np.shape(loss(scores, 0))
    if found != (len(people),):
        raise ValueError(
            f"loss(scores, k) returned shape {found} for scores of shape {scores.shape}: one number per row."
        )
    slope = people.shape if gradient is None else np.shape(gradient(people, 0))
    if slope != people.shape:
        raise ValueError(f"gradient(X, k) returned shape {slope} for X of shape {people.shape}: they have to agree.")


def _reacts(
    scores: Callable[[FloatArray], FloatArray], loss: Loss, people: FloatArray, spread: FloatArray, most: int = 50
) -> bool:
    """Whether small changes of a person change the loss, for most people."""
    some = people[np.linspace(0, len(people) - 1, min(most, len(people))).astype(np.intp)]
    nudge = 1e-3 * spread * np.where(np.arange(some.shape[1]) % 2, 1.0, -1.0)
    before, after = scores(some), scores(some + nudge)
    changed = [loss(before, k) != loss(after, k) for k in range(before.shape[1])]
    return bool(np.mean(changed) > 0.5)
