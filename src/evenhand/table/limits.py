"""What a person can change, as solvers take it: positions, directions and numbers of one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evenhand.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from evenhand.table.actionable import Actionable as Actionable
    from evenhand.table.actionable import IfChanges as IfChanges
    from evenhand.table.actionable import RisesWith as RisesWith

FIXED, FREE, UP, DOWN = 0, 1, 2, 3


class Tie(NamedTuple):
    """A column that rises at least `ratio` times as much as another: positions of both."""

    column: int
    driver: int
    ratio: float


ROUNDING = 8 * np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class Limits:
    """An :class:`~evenhand.table.actionable.Actionable` for one table.

    Attributes
    ----------
    directions, lower, upper : arrays of shape (n_columns,)
        A direction and an interval per column.
    step : array of shape (n_columns,), optional
        A number moves by whole multiples of it; 0 where it may take any value.
    moves : mapping from position to array of shape (n_levels, n_levels)
        What a change of level costs, infinite where it is not allowed.
    ties : tuple of Tie
    either : tuple of (column, stays)
        One of the two stays as it is.
    gone : array of shape (n_columns,), optional
        The code that stands for a missing number, NaN where none does: it may stay, and is nobody's goal.
    """

    directions: IntArray
    lower: FloatArray
    upper: FloatArray
    step: FloatArray | None = None
    moves: Mapping[int, FloatArray] = field(default_factory=dict)
    ties: tuple[Tie, ...] = ()
    either: tuple[tuple[int, int], ...] = ()
    gone: FloatArray | None = None

    @property
    def any(self) -> bool:
        """Whether anything is limited at all."""
        return bool((self.directions != FREE).any() or self.bounded)

    @property
    def bounded(self) -> bool:
        """Whether there is more than directions: then a person may be where it could not get to."""
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any() or self.stepped)

    @property
    def stepped(self) -> bool:
        """Whether what a column may become depends on the person who changes: steps, levels, rules, gaps."""
        steps = self.step is not None and bool(self.step.any())
        return bool(steps or self.moves or self.ties or self.either or self.gone is not None)

    def holding(self, columns: tuple[int, ...]) -> Limits:
        """The same with some columns held as they are."""
        directions = self.directions.copy()
        directions[list(columns)] = FIXED
        moves = dict(self.moves)
        for j in columns:
            if j in moves:
                moves[j] = np.where(np.eye(len(moves[j]), dtype=bool), 0.0, np.inf)
        lower, upper = self.lower.copy(), self.upper.copy()
        lower[list(columns)], upper[list(columns)] = -np.inf, np.inf  # whoever is out of bounds may stay there
        return replace(self, directions=directions, lower=lower, upper=upper, moves=moves)

    def admit(self, factual: FloatArray, points: FloatArray) -> bool:
        """Whether all of some people may be changed to points as they are."""
        return bool((self.snap(points.copy(), factual) == points).all())

    def snap(self, points: FloatArray, factual: FloatArray) -> FloatArray:
        """The nearest that may be to some points: back into what each column may become, whole steps from the person.

        It also undoes rounding: a column that may only grow is not smaller by one part in 10^16 either.
        """
        # What is moved by rounding alone has no reason to move, and stays where it is allowed to be.
        still = np.abs(points - factual) <= ROUNDING * np.abs(factual)
        points = np.where(still & (self.lower <= factual) & (factual <= self.upper), factual, points)
        wanted = points
        points = np.where(self.directions == UP, np.maximum(points, factual), points)
        points = np.where(self.directions == DOWN, np.minimum(points, factual), points)
        points = np.where(self.directions == FIXED, factual, np.clip(points, self.lower, self.upper))
        if self.step is not None and self.step.any():
            points = self._in_steps(points, factual)
        if self.gone is not None:  # what is missing may stay missing, whatever its bounds, and nobody else gets there
            stays = (wanted == self.gone) | (points == self.gone)
            points = np.where(stays, factual, points)
        for j, cost in self.moves.items():
            before, after = factual[..., j].astype(np.intp), points[..., j].astype(np.intp)
            points[..., j] = np.where(np.isfinite(cost[before, after]), after, before)
        for tie in self.ties:
            broken = ~_tied(points, factual, tie)
            for j in (tie.column, tie.driver):
                points[..., j] = np.where(broken, factual[..., j], points[..., j])
        for column, stays in self.either:
            moved = points[..., column] != factual[..., column]
            points[..., stays] = np.where(moved, factual[..., stays], points[..., stays])
        return points

    def _in_steps(self, points: FloatArray, factual: FloatArray) -> FloatArray:
        assert self.step is not None
        unit = np.where(self.step > 0, self.step, 1.0)
        count = np.rint((points - factual) / unit)
        count = np.minimum(count, np.floor((self.upper - factual) / unit + 1e-9))
        count = np.maximum(count, np.ceil((self.lower - factual) / unit - 1e-9))
        stepped = np.clip(factual + count * unit, self.lower, self.upper)  # three times 0.1 is more than 0.3
        return np.where((self.step > 0) & (self.directions != FIXED), stepped, points)

    def admits(self, points: FloatArray, factual: FloatArray, tol: float = 0.0) -> BoolArray:
        """Which points people may become; `tol` is allowed beyond directions and bounds."""
        fixed = self.directions == FIXED
        good = np.where(fixed, points == factual, (points >= self.lower - tol) & (points <= self.upper + tol))
        good &= np.where(self.directions == UP, points >= factual - tol, True)
        good &= np.where(self.directions == DOWN, points <= factual + tol, True)
        if self.step is not None and self.step.any():
            unit = np.where(self.step > 0, self.step, 1.0)
            count = (points - factual) / unit
            good &= (self.step == 0) | (np.abs(count - np.rint(count)) <= 1e-9 * (1.0 + np.abs(count)))
        if self.gone is not None:
            good = np.where(points == self.gone, factual == self.gone, good)
        found = good.all(axis=-1)
        for j, cost in self.moves.items():
            found &= np.isfinite(cost[factual[..., j].astype(np.intp), points[..., j].astype(np.intp)])
        for tie in self.ties:
            found &= _tied(points, factual, tie)
        for column, stays in self.either:
            found &= (points[..., column] == factual[..., column]) | (points[..., stays] == factual[..., stays])
        return np.asarray(found)


def _tied(points: FloatArray, factual: FloatArray, tie: Tie) -> BoolArray:
    """Where a column rises enough for its driver."""
    rises, driven = ((points - factual)[..., j] for j in (tie.column, tie.driver))
    room = 1e-9 * (1.0 + np.abs(rises) + np.abs(tie.ratio * driven))
    return np.asarray(rises >= tie.ratio * driven - room)


def __getattr__(name: str) -> Any:
    """What people say is found here as well: pickles name it so, from when both were one module."""
    if name not in ("Actionable", "ColumnName", "IfChanges", "RisesWith", "Rule", "position"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from evenhand.table import actionable

    return getattr(actionable, name)
