"""The search behind Penalized: a descent for all people at once, and a minimiser for one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import optimize

from evenhand.explaining.answers import Answers, unanswered
from evenhand.explaining.explainer import Explainer
from evenhand.explaining.local import Search, worth_trying
from evenhand.methods.losses import Loss
from evenhand.models import View
from evenhand.status import Status
from evenhand.table.limits import FIXED, Limits
from evenhand.types import FloatArray

HALVINGS = 40  # of the line from a counterfactual to the person: to one part in 10^12
FEW = 3  # steps of it where every one takes hundreds of predictions
STRENGTHS = 5  # steps of the bisection for the strength
DIFFERENCE = 1e-5  # of a feature's spread, for numeric gradients
SMOOTH = 0.01  # of a feature's spread: below it the l1 cost is rounded off
_scipy: Any = optimize.minimize  # its types are stricter than its documentation


@dataclass(frozen=True, eq=False, repr=False)
class PenalizedExplainer(Explainer):
    """A fitted :class:`~evenhand.methods.Penalized`."""

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

    def _allows(self, person: FloatArray, point: FloatArray) -> bool:
        return self.limits.admit(person, point)

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
