"""From a fitted method to explanations of whole tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.actionable import Limits
from evenhand.distances import Cost, FloatArray
from evenhand.explanations import Explanations, Table
from evenhand.models import ModelView
from evenhand.projection import ACCURATE, CHUNK, Progress, Projector, Status, as_table, in_chunks
from evenhand.sets import Region
from evenhand.targets import ANY_OTHER, aims, read_targets

# How far from every constraint an answer stays, relative to the numbers that meet there: first just enough for
# rounding, then more for the few rows where the model's own arithmetic is coarser.
GUARD = 1e-11
# The last two keep an absolute distance, for people at the very origin, where all numbers that meet are zero.
ATTEMPTS = ((GUARD, 0.0), (1e-9, 0.0), (1e-7, 0.0), (1e-5, 0.0), (GUARD, 1e-9), (GUARD, 1e-6))
TIE = 1e-9
LARGEST = 1e38  # a model that computes in float32 refuses more, and with it the whole table


class _Answers(NamedTuple):
    """Counterfactuals of some rows towards given labels."""

    points: FloatArray
    cost: FloatArray
    gap: FloatArray
    status: npt.NDArray[np.str_]
    label: npt.NDArray[np.int64]
    floor: FloatArray  # proven: nothing cheaper exists


@dataclass(frozen=True, eq=False)
class Explainer:
    """A method fitted to a model: call :meth:`explain`.

    Attributes
    ----------
    view : ModelView
        The model, as a function from labels to regions.
    cost : L1 or L2
        The cost of a change.
    region : callable
        ``region(k)`` is where counterfactuals for the k-th label may lie, in raw inputs and apart from
        the limits.
    limits : Limits
        What may change.
    check : callable, optional
        ``check(points, k)`` says which points fulfil what the region promises beyond the label.
    """

    view: ModelView
    cost: Cost
    region: Callable[[int], Region]
    limits: Limits
    check: Callable[[FloatArray, int], npt.NDArray[np.bool_]] | None = None
    _projectors: dict[tuple[int, float], Projector] = field(default_factory=dict, repr=False)

    def explain(
        self,
        X: Any,
        target: Any = None,
        *,
        random_state: int | np.random.Generator | None = None,
        n_jobs: int | None = None,
        chunk_size: int = CHUNK,
        progress: Progress | None = None,
    ) -> Explanations:
        """Counterfactuals for every row of a table.

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)
            People, in the model's raw inputs.  A row with NaN or infinity gets the status "invalid".
        target : label, array of labels, "random" or None
            What the model should say instead: one label for all, one per row, a label drawn at random
            among the others, or (None) whichever other label is cheapest.
        random_state : int or numpy Generator, optional
            Seed for ``target="random"``.
        n_jobs : int, optional
            Threads; -1 uses all cores.  The answers do not depend on it.
        chunk_size : int
            Rows at a time; bounds the memory, not the answers.
        progress : callable, optional
            Called as ``progress(done, total)`` after each chunk.

        Returns
        -------
        Explanations
        """
        table = as_table(self.view.columns(X), self.view.n_features)
        n = len(table)
        goal = read_targets(target, self.view, n, random_state)
        for k in np.unique(goal) if (goal >= 0).all() else range(len(self.view.classes)):
            self._projector(int(k))  # before the threads start
        points, cost, gap = np.empty(table.shape), np.empty(n), np.empty(n)
        status, label = np.empty(n, dtype="<U11"), np.empty(n, dtype=np.int64)
        for rows, part in in_chunks(lambda rows: self._chunk(table[rows], goal[rows]), n, n_jobs, chunk_size, progress):
            points[rows], cost[rows], gap[rows], status[rows], label[rows] = part[:5]
        return Explanations(
            factual=self._like(X, table),
            counterfactual=self._like(X, points),
            target=self._labels(label),
            cost=cost,
            gap=gap,
            status=status,
            valid=np.isin(status, (Status.OPTIMAL, Status.INACCURATE, Status.ALREADY)),
        )

    def _chunk(self, X: FloatArray, goal: npt.NDArray[np.int64]) -> _Answers:
        """Explain some rows: who is already there, who is missing values, and the rest label by label."""
        finite: npt.NDArray[np.bool_] = np.asarray((np.abs(X) < LARGEST).all(axis=1))
        present = np.full(len(X), -1)
        if finite.any():
            present[finite] = self.view.positions(self.view.predict(X[finite]))
        aim = aims(goal, present)
        answers = _unanswered(X, aim)
        answers.status[~finite] = Status.INVALID
        there = finite & (aim == present)
        answers.points[there] = X[there]
        answers.cost[there] = answers.gap[there] = 0.0
        answers.status[there] = Status.ALREADY
        for k in range(len(self.view.classes)):
            rows = np.flatnonzero(finite & ~there & ((aim == k) | ((aim == ANY_OTHER) & (present != k))))
            if len(rows):
                self._offer(answers, rows, X[rows], k)
        # Of several labels the one that is least understood decides what is proven.
        answers.gap[:] = np.maximum(answers.cost - np.where(there, 0.0, answers.floor), 0.0)
        loose = (answers.status == Status.OPTIMAL) & (answers.gap > ACCURATE * answers.cost)
        if loose.any():
            loose &= answers.gap > 1e-12 * self.cost(np.where(finite[:, None], X, 0.0), np.zeros(X.shape[1]))
        answers.status[loose] = Status.INACCURATE
        return answers

    def _offer(self, answers: _Answers, rows: npt.NDArray[np.intp], X: FloatArray, k: int) -> None:
        """Take the counterfactuals towards the k-th label where they are better than what is there."""
        known = answers.cost[rows]
        first = np.isnan(known)
        offer = self._toward(X, k, np.where(first, np.inf, known))
        better = first & ((answers.label[rows] == k) | (offer.status != Status.UNREACHABLE))
        tied = np.abs(offer.cost - known) <= TIE * np.fmax(offer.cost, known)
        better |= ~first & ~tied & (offer.cost < known)
        for i in np.flatnonzero(tied):
            better[i] = self._before(offer.points[i] - X[i], answers.points[rows[i]] - X[i])
        floor = np.minimum(answers.floor[rows], offer.floor)
        for kept, new in zip(answers, offer, strict=True):
            kept[rows[better]] = new[better]
        answers.floor[rows] = floor

    def _toward(self, X: FloatArray, k: int, cutoff: FloatArray) -> _Answers:
        """Counterfactuals towards one label, confirmed by the model itself."""
        answers = _unanswered(X, np.full(len(X), k))
        left = np.arange(len(X))
        for guard, margin in ATTEMPTS:
            found = self._projector(k, margin).project(X[left], guard, cutoff[left])
            answers.status[left] = found.status
            if guard == GUARD and margin == 0.0:  # a wider guard cuts the region further and proves less
                answers.floor[:] = np.where(found.status == Status.FAILED, 0.0, cutoff)
                np.copyto(answers.floor, found.cost - found.gap, where=~np.isnan(found.cost))
            reached = np.flatnonzero(~np.isnan(found.cost))
            left = left[reached]
            points = found.points[reached]
            if self.limits.any:
                points = self.limits.snap(points, X[left])
            answers.status[left] = Status.REJECTED  # unless the model confirms it now or further inside
            confirmed = self._confirmed(points, k)
            rows = left[confirmed]
            answers.points[rows] = points[confirmed]
            answers.cost[rows] = self.cost(points[confirmed], X[rows])
            answers.status[rows] = found.status[reached[confirmed]]
            left = left[~confirmed]
            if not len(left):
                break
        return answers

    def _before(self, a: FloatArray, b: FloatArray) -> bool:
        """Which of two equally costly changes comes first: by length in the cost's units, then lexicographically."""
        frame = self.cost.frame(len(a), np.arange(len(a)))
        lengths = [float(np.linalg.norm(change / frame)) for change in (a, b)] if frame.ndim == 1 else [0.0, 0.0]
        if abs(lengths[0] - lengths[1]) > TIE * max(lengths):
            return lengths[0] < lengths[1]
        apart = np.flatnonzero(np.abs(a - b) > TIE * np.abs(a).max())
        return bool(len(apart)) and bool(a[apart[0]] < b[apart[0]])

    def _confirmed(self, points: FloatArray, k: int) -> npt.NDArray[np.bool_]:
        if not len(points):
            return np.zeros(0, dtype=bool)
        confirmed: npt.NDArray[np.bool_] = self.view.positions(self.view.predict(points)) == k
        return confirmed if self.check is None else confirmed & self.check(points, k)

    def _projector(self, k: int, margin: float = 0.0) -> Projector:
        if (k, margin) not in self._projectors:
            region = self.region(k).shrink(margin, self.cost) if margin > 0 else self.region(k)
            self._projectors[k, margin] = Projector(region, self.cost, self.limits.directions, self.limits.box)
        return self._projectors[k, margin]

    def _like(self, X: Any, table: FloatArray) -> Table:
        if not isinstance(X, pd.DataFrame):
            return table
        names = list(X.columns) if self.view.feature_names is None else list(self.view.feature_names)
        frame = pd.DataFrame(table, index=X.index, columns=names, copy=False)
        return frame if names == list(X.columns) else frame[list(X.columns)]

    def _labels(self, label: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        if (label >= 0).all():
            return self.view.classes[label]
        named = np.full(len(label), None, dtype=object)
        named[label >= 0] = self.view.classes[label[label >= 0]]
        return named


def _unanswered(X: FloatArray, label: npt.NDArray[np.int64]) -> _Answers:
    n = len(X)
    nothing = np.full(n, np.nan)
    status = np.full(n, Status.UNREACHABLE.value, dtype="<U11")
    floor = np.full(n, np.inf)
    return _Answers(np.full(X.shape, np.nan), nothing, nothing.copy(), status, label.astype(np.int64), floor)
