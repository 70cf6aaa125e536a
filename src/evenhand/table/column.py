"""What one column of a table is: a number, a count, ordered levels, a category, a flag; and what a change costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from evenhand.types import FloatArray

Kind = Literal["numeric", "integer", "ordered", "categorical", "boolean"]
KINDS = ("numeric", "integer", "ordered", "categorical", "boolean")
NUMBERS = ("numeric", "integer")


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    kind : {"numeric", "integer", "ordered", "categorical", "boolean"}
        What its values are.
    levels : sequence
        The values of an ordered column, lowest first, of a category or of a flag. ``None`` stands for a missing one.
    step : float, optional
        A number changes by whole multiples of it, starting from the person's own value; 1 for an integer column.
    weight : float
        Cost per unit of a number, or factor on the cost of a change of level.
    costs : array of shape (n_levels, n_levels), optional
        From each level (row) to each other; by default 1 for a category or a flag, and the difference in rank for an
        ordered column. Infinity forbids a change.
    bounds : (lower, upper), optional
        Values that a number may be changed to; None leaves a side open.
    """

    kind: Kind
    levels: Sequence[Any] = ()
    step: float | None = None
    weight: float = 1.0
    costs: Any = field(default=None, compare=False)
    bounds: tuple[float | None, float | None] | None = None
    codes: bool = field(default=False, compare=False, repr=False)  # whether levels are the numbers an encoder knows

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {self.kind!r}.")
        if not (np.isfinite(self.weight) and self.weight > 0):
            raise ValueError(f"weight must be a positive number, got {self.weight!r}.")
        (self._check_number if self.is_number else self._check_levels)()

    def _check_number(self) -> None:
        if len(self.levels) or self.costs is not None:
            raise ValueError(f"A column of kind {self.kind!r} has no levels; use 'ordered' or 'categorical'.")
        if self.step is not None and not (np.isfinite(self.step) and self.step > 0):
            raise ValueError(f"step must be a positive number, got {self.step!r}.")
        if self.kind == "integer":
            step = 1.0 if self.step is None else float(self.step)
            if step != round(step):
                raise ValueError(f"step of an integer column must be a whole number, got {self.step!r}.")
            object.__setattr__(self, "step", step)
        low, high = (None, None) if self.bounds is None else self.bounds
        if low is not None and high is not None and not low <= high:
            raise ValueError(f"bounds {self.bounds} leave no value: the lower one must not be larger.")

    def _check_levels(self) -> None:
        if self.step is not None or self.bounds is not None:
            raise ValueError(f"A column of kind {self.kind!r} has levels: no step and no bounds.")
        levels = (False, True) if self.kind == "boolean" and not len(self.levels) else tuple(self.levels)
        levels = tuple(None if is_missing(level) else level for level in levels)
        if not levels:
            raise ValueError(f"A column of kind {self.kind!r} needs its levels.")
        if len({level_key(level) for level in levels}) < len(levels):
            raise ValueError(f"A level is there twice: {list(levels)}.")
        if self.kind == "boolean" and len(levels) > 3:
            raise ValueError(f"A flag has two levels, got {list(levels)}; use 'categorical'.")
        object.__setattr__(self, "levels", levels)
        if self.costs is None:
            return
        costs = np.array(self.costs, dtype=np.float64)
        if costs.shape != (len(levels), len(levels)) or np.isnan(costs).any() or (costs < 0).any():
            raise ValueError(
                f"costs must be a table of {len(levels)} x {len(levels)} numbers >= 0, from each level to each other; "
                f"got shape {costs.shape}."
            )
        off = ~np.eye(len(levels), dtype=bool)
        if (costs[off] <= 0).any():
            raise ValueError("A change of level must cost more than 0: one that costs nothing has no cheapest answer.")
        np.fill_diagonal(costs, 0.0)
        costs.setflags(write=False)
        object.__setattr__(self, "costs", costs)

    @property
    def is_number(self) -> bool:
        """Whether the values are numbers, not levels."""
        return self.kind in NUMBERS

    @property
    def has_words(self) -> bool:
        """Whether any level is a word."""
        return any(isinstance(level, str) for level in self.levels)

    @cached_property
    def moves(self) -> FloatArray:
        """Cost from each level to each other, weight included; a missing value is nobody's goal."""
        n = len(self.levels)
        if self.costs is not None:
            found = self.weight * np.array(self.costs, dtype=np.float64)
        elif self.kind == "ordered":
            found = self.weight * np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(np.float64)
        else:
            found = self.weight * (1.0 - np.eye(n))
        for gone in [i for i, level in enumerate(self.levels) if level is None]:
            if self.costs is None and self.kind == "ordered":
                found[gone, :] = self.weight
            found[:, gone] = np.inf
            found[gone, gone] = 0.0
        found.setflags(write=False)
        return np.asarray(found)

    @cached_property
    def distances(self) -> FloatArray:
        """How far two people are apart, whoever moves; the last row and column are for "no change" (code -1)."""
        n = len(self.levels)
        found = np.full((n + 1, n + 1), self.weight)
        found[n, n] = 0.0
        found[:n, :n] = np.minimum(self.moves, self.moves.T)
        found[~np.isfinite(found)] = self.weight
        return found

    @property
    def consecutive(self) -> bool:
        """Whether the levels are numbers in steps of one."""
        numbers = np.array([level for level in self.levels if level is not None], dtype=np.float64)
        return bool((np.diff(numbers) == 1.0).all())

    def over(self, values: Sequence[Any]) -> Column:
        """The same number, if it may only have some values: levels in their order, at what it costs to get there.

        For codes that an encoder knows by name; what is out of bounds, or no whole number of steps away, is no goal.
        """
        levels = sorted((value for value in values if not is_missing(value)), key=float)
        numbers = np.array(levels, dtype=np.float64)
        costs = np.abs(np.subtract.outer(numbers, numbers))
        low, high = (None, None) if self.bounds is None else self.bounds
        if self.step:
            steps = costs / self.step
            costs[np.abs(steps - np.round(steps)) > 1e-9] = np.inf
        costs[:, (numbers < (-np.inf if low is None else low)) | (numbers > (np.inf if high is None else high))] = (
            np.inf
        )
        missing = [None] if len(levels) < len(values) else []
        if missing:
            costs = np.pad(costs, ((0, 1), (0, 1)), constant_values=np.inf)
        return Column("ordered", [*levels, *missing], weight=self.weight, costs=costs, codes=True)

    def key(self, level: Any) -> Any:
        """What makes two levels of this column the same: a flag is True or 1, whatever the type of the table."""
        key = level_key(level)
        return float(key[1]) if self.kind == "boolean" and isinstance(key, tuple) else key

    def position(self, level: Any) -> int:
        """Where a level stands; raises a ``ValueError`` if it is none."""
        key = self.key(None if is_missing(level) else level)
        for i, known in enumerate(self.levels):
            if self.key(known) == key:
                return i
        raise ValueError(f"{level!r} is not a level; there are {list(self.levels)}.")


def is_missing(value: Any) -> bool:
    """Whether a value says that nothing is known, in any of the ways to say it."""
    return (
        value is None
        or value is pd.NA
        or value is pd.NaT
        or (isinstance(value, float | np.floating) and np.isnan(value))
    )


def level_key(value: Any) -> Any:
    """What makes two levels the same: 1, 1.0 and numpy's 1 are, True is another."""
    if value is None:
        return None
    if isinstance(value, np.generic):
        value = value.item()
    return (bool, value) if isinstance(value, bool) else value


def few(levels: Sequence[Any], most: int = 8) -> str:
    """The first levels, in words."""
    shown = ", ".join(repr(level) for level in levels[:most])
    return shown + (f" and {len(levels) - most} more" if len(levels) > most else "")
