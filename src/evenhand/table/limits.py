"""What a person can change."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.types import FloatArray

ColumnName = Hashable
FIXED, FREE, UP, DOWN = 0, 1, 2, 3


@dataclass(frozen=True, eq=False)
class Limits:
    """An :class:`Actionable` for one table: a direction and an interval per column."""

    directions: npt.NDArray[np.int64]
    lower: FloatArray
    upper: FloatArray

    @property
    def any(self) -> bool:
        """Whether anything is limited at all."""
        return bool((self.directions != FREE).any() or np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    def snap(self, points: FloatArray, factual: FloatArray) -> FloatArray:
        """Undo rounding: a column that may only grow is not smaller by one part in 10^16 either."""
        points = np.where(self.directions == UP, np.maximum(points, factual), points)
        points = np.where(self.directions == DOWN, np.minimum(points, factual), points)
        return np.where(self.directions == FIXED, factual, np.clip(points, self.lower, self.upper))


@dataclass(frozen=True)
class RisesWith:
    """A column rises at least as much as another one: ``age`` with ``years_employed``.

    Parameters
    ----------
    column, driver : columns
        Numbers, or ordered levels, which count by rank.
    ratio : float
        ``column`` changes by at least ``ratio`` times the change of ``driver``.

    Examples
    --------
    >>> RisesWith("age", "years_employed")
    RisesWith(column='age', driver='years_employed', ratio=1.0)
    """

    column: ColumnName
    driver: ColumnName
    ratio: float = 1.0

    def __post_init__(self) -> None:
        if self.column == self.driver:
            raise ValueError(f"RisesWith ties {self.column!r} to itself: name two columns.")
        if not (np.isfinite(self.ratio) and self.ratio > 0):
            raise ValueError(f"ratio must be a positive number, got {self.ratio!r}.")


@dataclass(frozen=True)
class IfChanges:
    """If one column changes, another one stays as it is.

    Examples
    --------
    >>> IfChanges("job", stays="city")
    IfChanges(column='job', stays='city')
    """

    column: ColumnName
    stays: ColumnName

    def __post_init__(self) -> None:
        if self.column == self.stays:
            raise ValueError(f"IfChanges names {self.column!r} twice; a column that never changes is immutable.")


Rule = RisesWith | IfChanges


@dataclass(frozen=True)
class Actionable:
    """What a person can change, by column name or position.

    Parameters
    ----------
    immutable : sequence of columns
        Never change.
    increase, decrease : sequences of columns
        May only grow, or only fall.
    bounds : mapping from column to (lower, upper)
        Values that the counterfactual may take; None or infinity leaves a side open.
    levels : mapping from column to a sequence of levels
        Levels that a category may be changed to; needs a schema.
    rules : sequence of RisesWith and IfChanges
        What ties columns; needs a schema.

    Examples
    --------
    >>> limits = Actionable(immutable=["age"], increase=["income"], bounds={"duration": (6, 60)})
    >>> limits.immutable, limits.bounds
    (('age',), {'duration': (6, 60)})
    """

    immutable: Sequence[ColumnName] = ()
    increase: Sequence[ColumnName] = ()
    decrease: Sequence[ColumnName] = ()
    bounds: Mapping[ColumnName, tuple[float | None, float | None]] = field(default_factory=dict)
    levels: Mapping[ColumnName, Sequence[Any]] = field(default_factory=dict)
    rules: Sequence[Rule] = ()

    def __post_init__(self) -> None:
        strange = [rule for rule in self.rules if not isinstance(rule, RisesWith | IfChanges)]
        if strange:
            raise TypeError(f"A rule is RisesWith(...) or IfChanges(...), got {strange[0]!r}.")
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "levels", {column: tuple(some) for column, some in self.levels.items()})
        for name in ("immutable", "increase", "decrease"):
            columns = getattr(self, name)
            if isinstance(columns, str) or not isinstance(columns, Sequence | np.ndarray):
                raise TypeError(f"{name} is a list of columns; got {columns!r}. Write {name}=[{columns!r}].")
            object.__setattr__(self, name, tuple(columns))
        object.__setattr__(self, "bounds", dict(self.bounds))

    def limits(self, dim: int, names: Sequence[ColumnName] | None) -> Limits:
        """Look up the columns of a table and check that nothing contradicts itself."""
        directions = np.full(dim, FREE, dtype=np.int64)
        for way, label in ((FIXED, "immutable"), (UP, "increase"), (DOWN, "decrease")):
            for column in getattr(self, label):
                j = position(column, dim, names)
                if directions[j] not in (FREE, way):
                    raise ValueError(
                        f"Column {column!r} is both {_word(directions[j])} and {label}. "
                        "Name it once; what may neither grow nor fall is immutable."
                    )
                directions[j] = way
        lower, upper = np.full(dim, -np.inf), np.full(dim, np.inf)
        for column, interval in self.bounds.items():
            j = position(column, dim, names)
            if np.isfinite(lower[j]) or np.isfinite(upper[j]):
                raise ValueError(f"Column {column!r} has bounds twice, by name and by position. Give them once.")
            lower[j], upper[j] = _interval(column, interval)
            if directions[j] == FIXED:
                raise ValueError(f"Column {column!r} is immutable and has bounds; an immutable column keeps its value.")
        return Limits(directions, lower, upper)

    def plain(self) -> Actionable:
        """The same without levels and rules, which only a table with a schema can have."""
        if self.levels or self.rules:
            what = "levels" if self.levels else "rules"
            raise ValueError(f"Actionable({what}=...) needs to know the columns: pass schema=Schema.infer(X) as well.")
        return self


def _interval(column: ColumnName, interval: Any) -> tuple[float, float]:
    try:
        low, high = interval
        lower = -np.inf if low is None else float(low)
        upper = np.inf if high is None else float(high)
    except (TypeError, ValueError) as error:
        raise ValueError(f"bounds[{column!r}] must be a pair (lower, upper), got {interval!r}.") from error
    if not lower <= upper or lower == np.inf or upper == -np.inf:
        raise ValueError(f"bounds[{column!r}] = ({low}, {high}) leave no value: the lower one must not be larger.")
    return lower, upper


def _word(way: int) -> str:
    return {FIXED: "immutable", UP: "increase", DOWN: "decrease"}[int(way)]


def position(column: ColumnName, dim: int, names: Sequence[ColumnName] | None) -> int:
    """Where a column stands that is given by name or position."""
    if names is not None and column in names:
        return list(names).index(column)
    if isinstance(column, int | np.integer) and not isinstance(column, bool):
        if -dim <= column < dim:
            return int(column) % dim
        raise ValueError(f"Column {column} does not exist: the table has {dim} columns, 0 to {dim - 1}.")
    if names is None:
        raise ValueError(
            f"Column {column!r} is a name, but neither the model nor the data given to fit has column names. "
            "Fit with a DataFrame, or use positions."
        )
    raise ValueError(f"Column {column!r} does not exist. Columns: {', '.join(map(str, names))}.")
