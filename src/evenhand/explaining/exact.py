"""Counterfactuals as projections onto the region of a label: exact, and with a certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.costs import L1, Gower
from evenhand.density import ClassDensities
from evenhand.explaining.answers import Answers, blocks, unanswered
from evenhand.explaining.blockers import Blockers
from evenhand.explaining.explainer import Explainer
from evenhand.models import View
from evenhand.projection import Problem, Projector, solver
from evenhand.projection.solver import kind_of
from evenhand.status import Status
from evenhand.table.limits import Actionable, Limits
from evenhand.table.schema import Schema
from evenhand.types import BoolArray, FloatArray, IntArray

DENIED = 32  # lattice points that a person is denied before guards are widened instead
CLEAR = 1e-5  # who is further from every boundary, relative to the numbers that meet there, is not on its other side


@dataclass(frozen=True, eq=False, repr=False)
class ExactExplainer(Explainer):
    """Projects people onto a region per label.

    Attributes
    ----------
    view : View
        The model, as a function from labels to regions.
    cost : L1, L2 or Gower
        The cost of a change.
    region : callable
        ``region(k)`` is where counterfactuals for the k-th label may lie, in expanded rows and apart from the limits.
    limits : Limits
        What may change.
    actionable : Actionable
        The same as it was said, to tell what blocks people.
    densities : ClassDensities, optional
        Where labels are dense, if answers have to be: every answer is checked against the density itself.
    whole : bool
        Whether the region is all that the model gives the label, not a part of it.
    stays : bool
        Whether a person whom the model already gives the target stays as it is.
    max_nodes : int
        Where a search over levels and steps stops for one person: then the answer carries its gap.
    """

    view: View
    cost: Any
    region: Callable[[int], Any]
    limits: Limits
    actionable: Actionable = field(default_factory=Actionable)
    densities: ClassDensities | None = None
    whole: bool = False
    stays: bool = True
    max_nodes: int = 10_000
    _projectors: dict[tuple[int, float], Projector] = field(default_factory=dict, init=False, repr=False)

    def _prepare(self, k: int) -> None:
        self.projector(k)

    def projector(self, k: int, margin: float = 0.0) -> Projector:
        """Projector onto the region of the k-th label, with a further distance kept from its boundaries."""
        if (k, margin) not in self._projectors:
            self._projectors[k, margin] = solver(self._problem(k, margin))
        return self._projectors[k, margin]

    def _problem(self, k: int, margin: float = 0.0) -> Problem:
        region = self.region(k)
        if margin > 0:
            region = region.shrink(margin, measure(self.cost, self.view))
        return Problem(region, self.cost, self.limits, self.view.columns, self.max_nodes)

    @property
    def exact(self) -> ExactExplainer:
        """Itself: its answers are projections."""
        return self

    @property
    def certifiable(self) -> bool:
        """Whether the solver projects onto convex pieces in a norm, which is what theorems are about."""
        convex = []
        for k in range(len(self.view.classes)):
            try:
                convex.append(kind_of(self._problem(k)).convex)
            except ValueError:  # a class without a density is no target
                continue
        return bool(convex) and all(convex)

    def free_projector(self, k: int) -> Projector:
        """Projector onto all that the model gives the k-th label, whatever may change."""
        if self.whole and not self.limits.any:
            return self.projector(k)
        if (k, -1.0) not in self._projectors:
            region = self.view.region(self.view.classes[k])
            limits = Actionable().over(self.view.schema)
            self._projectors[k, -1.0] = solver(Problem(region, self.cost, limits, self.view.columns, self.max_nodes))
        return self._projectors[k, -1.0]

    def _present(self, X: FloatArray, goal: IntArray) -> IntArray:
        """Labels of people who are clear of every boundary are read from the regions, which saves a prediction.

        All others are asked for, and so are those who seem to be there already: that is said by the model itself.
        """
        label = np.full(len(X), -1, dtype=np.int64)
        if not self.view.reader.plain:  # of plain numbers a prediction costs next to nothing
            for k in range(len(self.view.classes)):
                left = np.flatnonzero(label < 0)
                clear = self.free_projector(k).within(X[left] if len(left) < len(X) else X, CLEAR)
                if clear is None:
                    break
                label[left[clear]] = k
        asked = (label < 0) | (label == goal)
        if asked.any():
            label[asked] = self.view.decide(X[_all_or(asked)])
        return label

    def _finds_out(self, goal: IntArray) -> bool:
        """Whoever has the target already is proven to be next to nothing away, unless bounds are in between."""
        if (goal < 0).any():
            return False
        return not self.stays or (self.whole and self.view.reader.plain and not self.limits.bounded)

    def _toward(self, X: FloatArray, k: int, cutoff: FloatArray) -> Answers:
        """Counterfactuals towards one label, confirmed by the model itself."""
        answers = unanswered(X, np.full(len(X), k))
        self._project(X, answers, np.arange(len(X)), cutoff)
        return answers

    def _toward_own(
        self,
        X: FloatArray,
        aim: IntArray,  # noqa: ARG002 - the answers know it
        rows: npt.NDArray[np.intp],
        unasked: bool,
        answers: Answers,
    ) -> None:
        """Of all labels at once, because a prediction takes a while to begin with."""
        nearby = None
        if unasked and self.stays:  # people at the very origin have no size, and all of them are asked
            nearby = CLEAR * self._size(X if len(rows) == len(X) else X[rows]) or np.inf
        self._project(X, answers, rows, nearby=nearby)

    def _project(
        self,
        X: FloatArray,
        answers: Answers,
        rows: npt.NDArray[np.intp],
        cutoff: FloatArray | None = None,
        nearby: float | None = None,
    ) -> None:
        """The people at `rows` onto the regions of their labels; whom the model does not confirm again, further inside.

        With `nearby`, whoever is not proven to be further away than that is asked first whether it is there already.
        """
        left, attempt = rows, 0
        reached, confirmed = np.zeros((2, len(X)), dtype=bool)
        while len(left) and self._reach(X, answers, left, attempt, cutoff, reached):
            if attempt == 0:
                if nearby is not None:
                    there = self._stay(X, answers, left[~(answers.floor[left] > nearby)])
                    confirmed[there], reached[there] = True, False
                left = left[reached[left]]  # who cannot be reached at all is no nearer with a wider guard
            self._confirm(answers, left[reached[left]], confirmed)
            left = left[~confirmed[left]]
            if attempt == 0 and len(left):
                left = self._next(X, answers, left, cutoff, confirmed)
            answers.status[left] = Status.REJECTED  # unless the model confirms it further inside
            attempt += 1
        lost = rows[~confirmed[rows]]
        answers.points[lost] = np.nan
        answers.cost[lost] = np.nan
        if not self.stays:  # who has the target may have to move all the same; who does not is there already
            there = rows[(answers.cost[rows] == 0.0) & (answers.points[rows] == X[rows]).all(axis=1)]
            answers.status[there] = Status.ALREADY

    def _next(
        self,
        X: FloatArray,
        answers: Answers,
        left: npt.NDArray[np.intp],
        cutoff: FloatArray | None,
        confirmed: BoolArray,
    ) -> npt.NDArray[np.intp]:
        """Of people who were denied a lattice point the next ones, and who is left after some of these.

        On a boundary of labels, where scores tie, no guard says what the model says: it is asked, point by point, so
        that the one that it confirms is proven to be the cheapest.
        """
        denied: dict[int, list[FloatArray]] = {int(i): [] for i in left}
        others, open_rows = [], left
        for _ in range(DENIED):
            asked = []
            for k in np.unique(answers.label[open_rows]).tolist():
                rows = open_rows[answers.label[open_rows] == k]
                projector = self.projector(k)
                single = projector.single(X[rows])
                others.append(rows[~single])
                for i in (rows := rows[single]):
                    denied[int(i)].append(answers.points[i].copy())
                if not len(rows):
                    continue
                limit = np.full(len(rows), np.inf) if cutoff is None else cutoff[rows]
                projection = projector.apart(X[rows], np.stack([denied[int(i)] for i in rows]), limit)
                found = ~np.isnan(projection.cost)
                answers.points[rows[found]] = projection.points[found]
                answers.cost[rows] = projection.cost
                answers.floor[rows] = np.fmin(np.minimum(projection.bound, limit), projection.cost)
                answers.status[rows] = projection.status
                asked.append(rows[found])
                # Of all others it is proven that there is nothing, unless the search has come to no end.
                others.append(rows[projection.status == Status.FAILED])
            open_rows = np.concatenate([*asked, np.zeros(0, dtype=np.intp)])
            self._confirm(answers, np.sort(open_rows), confirmed)
            open_rows = open_rows[~confirmed[open_rows]]
            if not len(open_rows):
                break
        return np.sort(np.concatenate([*others, open_rows]))

    def _stay(self, X: FloatArray, answers: Answers, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Of the people at `rows` those whom the model gives their label as they are: they stay."""
        there: npt.NDArray[np.intp] = rows[self.view.decide(X[rows]) == answers.label[rows]]
        answers.points[there] = X[there]
        answers.status[there] = Status.ALREADY
        answers.cost[there] = answers.floor[there] = 0.0
        return there

    def _reach(
        self,
        X: FloatArray,
        answers: Answers,
        left: npt.NDArray[np.intp],
        attempt: int,
        cutoff: FloatArray | None,
        reached: BoolArray,
    ) -> bool:
        """Project people with the guards of an attempt, and note who was reached; whether there are guards left."""
        asked = False
        reached[left] = False
        aim = answers.label[left]
        for k in np.unique(aim).tolist():
            guards = self.projector(k).guards
            if attempt >= len(guards):
                continue
            asked = True
            guard, margin = guards[attempt]
            projector = self.projector(k, margin)
            for rows in blocks(left[aim == k], X.shape[1]):
                people = X[rows] if isinstance(rows, slice) else X.take(rows, axis=0)
                limit = None if cutoff is None else cutoff[rows]
                projection = projector.project(people, guard, limit)
                found = ~np.isnan(projection.cost)
                answers.points[rows], answers.cost[rows], reached[rows] = projection.points, projection.cost, found
                answers.status[rows] = projection.status
                if attempt == 0:  # a wider guard cuts the region further and proves less
                    bound = projection.bound if limit is None else np.minimum(projection.bound, limit)
                    answers.floor[rows] = np.where(found, np.minimum(projection.bound, projection.cost), bound)
        return asked

    def _confirm(self, answers: Answers, rows: npt.NDArray[np.intp], confirmed: BoolArray) -> None:
        """Ask the model whether it gives the labels to the points at `rows`."""
        if len(rows):
            some = slice(None) if len(rows) == len(confirmed) else rows  # rows are in order
            confirmed[rows] = self._confirmed(answers.points[some], answers.label[some])

    def _allows(self, person: FloatArray, point: FloatArray) -> bool:
        return self.limits.admit(person, point)

    def _size(self, X: FloatArray) -> float:
        """At least what it costs to move any of some people to zero."""
        unit = np.eye(X.shape[1])
        return float(np.maximum(X.max(axis=0), -X.min(axis=0)) @ self.cost(unit, np.zeros(unit.shape)))

    def _confirmed(self, points: FloatArray, k: int | IntArray) -> BoolArray:
        confirmed = super()._confirmed(points, k)
        if self.densities is None or not len(points):
            return confirmed
        where = points if self.densities.layout is not None else self.view.image(points)
        for label in np.unique(k):
            rows = np.flatnonzero(confirmed & (k == label))
            name = self.view.classes[label]
            if len(rows):
                confirmed[rows] = self.densities.score(where[rows], name) >= self.densities.log_threshold(name)
        return confirmed

    def _before(self, a: FloatArray, b: FloatArray, k: int) -> bool:
        return self.projector(k).before(a, b)

    def _blockers(self, codes: FloatArray, goal: IntArray) -> Blockers:
        return Blockers(self.freed, self.actionable, self.view.schema, codes, goal)

    def freed(self, actionable: Actionable, schema: Schema | None = None) -> ExactExplainer:
        """The same explainer with other limits."""
        limits = actionable.over(self.view.schema if schema is None else schema)
        return replace(self, actionable=actionable, limits=limits)


def _all_or(chosen: BoolArray) -> BoolArray | slice:
    """The rows that are chosen, as a slice if all of them are, which copies nothing."""
    return slice(None) if chosen.all() else chosen


def measure(cost: Any, view: View) -> Any:
    """What a margin knows of a cost: in expanded rows it is kept for changes of numbers only."""
    if not isinstance(cost, Gower) and not len(view.columns.categories):
        return cost
    layout = view.columns
    return _OnNumbers(L1(weights=cost.rates(layout.n_columns)[layout.numbers]), len(layout.numbers))


@dataclass(frozen=True, eq=False)
class _OnNumbers:
    """A cost of the numbers in front of an expanded row; levels do not count."""

    cost: L1
    n: int

    def dual(self, rows: FloatArray) -> npt.NDArray[np.float64]:
        return self.cost.dual(rows[:, : self.n])

    def reach(self, matrix: FloatArray) -> float:
        return self.cost.reach(matrix[:, : self.n])
