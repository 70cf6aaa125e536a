"""Counterfactuals as projections onto the region of a label: exact, and with a certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from evenhand.costs import Cost
from evenhand.explaining.explainer import Answers, Explainer, unanswered
from evenhand.models import View
from evenhand.projection import Projector
from evenhand.sets import Region
from evenhand.status import Status
from evenhand.table.limits import FREE, Limits
from evenhand.types import FloatArray

# How far from every constraint an answer stays, relative to the numbers that meet there: first just enough for
# rounding, then more for the few rows where the model's own arithmetic is coarser.
GUARD = 1e-11
# The last two keep an absolute distance, for people at the very origin, where all numbers that meet are zero.
ATTEMPTS = ((GUARD, 0.0), (1e-9, 0.0), (1e-7, 0.0), (1e-5, 0.0), (GUARD, 1e-9), (GUARD, 1e-6))


@dataclass(frozen=True, eq=False, repr=False)
class RegionExplainer(Explainer):
    """Projects people onto a region per label.

    Attributes
    ----------
    view : View
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
    whole : bool
        Whether the region is all that the model gives the label, not a part of it.
    stays : bool
        Whether a person whom the model already gives the target stays as it is.
    """

    view: View
    cost: Cost
    region: Callable[[int], Region]
    limits: Limits
    check: Callable[[FloatArray, int], npt.NDArray[np.bool_]] | None = None
    whole: bool = False
    stays: bool = True
    _projectors: dict[tuple[int, float], Projector] = field(default_factory=dict, init=False, repr=False)

    def _prepare(self, k: int) -> None:
        self._projector(k)

    def _toward(self, X: FloatArray, k: int, cutoff: FloatArray) -> Answers:
        """Counterfactuals towards one label, confirmed by the model itself."""
        answers = unanswered(X, np.full(len(X), k))
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

    def _confirmed(self, points: FloatArray, k: int) -> npt.NDArray[np.bool_]:
        confirmed = super()._confirmed(points, k)
        return confirmed if self.check is None or not len(points) else confirmed & self.check(points, k)

    def _projector(self, k: int, margin: float = 0.0) -> Projector:
        if (k, margin) not in self._projectors:
            region = self.region(k).shrink(margin, self.cost) if margin > 0 else self.region(k)
            self._projectors[k, margin] = Projector(region, self.cost, self.limits)
        return self._projectors[k, margin]

    def free_projector(self, k: int) -> Projector:
        """Projector onto all that the model gives the k-th label, whatever may change."""
        if self.whole and not self.limits.any:
            return self._projector(k)
        if (k, -1.0) not in self._projectors:
            self._projectors[k, -1.0] = Projector(self.view.region(self.view.classes[k]), self.cost)
        return self._projectors[k, -1.0]

    def pieces(self, region: Region, X: FloatArray) -> Iterator[tuple[int, Projector]]:
        """Projectors onto the pieces of a region, one by one, without those that are proven to be empty.

        A leaf and an ellipsoid often do not meet.  To prove that is slow, and the same for everybody, as long as
        everybody may change the same columns to the same values.
        """
        limits = self.limits
        same_for_all = (limits.directions == FREE).all()
        for i, piece in enumerate(region.pieces):
            projector = Projector(Region((piece,)), self.cost, limits)
            if same_for_all and len(X) > 1 and projector.project(X[:1]).status[0] == Status.UNREACHABLE:
                continue
            yield i, projector
