"""What a person can change, as people say it: by the names of columns, and with rules."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.table.column import Column, few
from evenhand.table.limits import DOWN, FIXED, FREE, UP, Limits, Tie
from evenhand.table.schema import Schema
from evenhand.types import BoolArray, FloatArray, IntArray

ColumnName = Hashable


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
        Levels that a category may be changed to.
    rules : sequence of RisesWith and IfChanges
        What ties columns.

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

    def over(self, schema: Schema, named: bool = True) -> Limits:
        """What may change in a table: its columns looked up, with their levels, steps and bounds, and the rules.

        Columns of a table without names can only be given by position.
        """
        names = schema.names
        known = names if named else None
        directions, lower, upper = self._ways(len(schema), known)
        columns = list(schema.columns.values())
        for j, column in enumerate(columns):
            if not column.is_number and (np.isfinite(lower[j]) or np.isfinite(upper[j])):
                raise ValueError(f"Column {names[j]!r} has levels, not bounds: use levels={{{names[j]!r}: [...]}}.")
            if directions[j] in (UP, DOWN) and column.kind == "categorical":
                raise ValueError(
                    f"Column {names[j]!r} may only increase or decrease, but its levels have no order: make it "
                    "Column('ordered', levels=[lowest, ..., highest])."
                )
            if column.bounds is not None and directions[j] != FIXED:
                low, high = column.bounds
                lower[j] = max(lower[j], -np.inf if low is None else low)
                upper[j] = min(upper[j], np.inf if high is None else high)
                if lower[j] > upper[j]:
                    raise ValueError(
                        f"The bounds of {names[j]!r} leave no value that its column in the schema can have."
                    )
        free = self._free_levels(schema, directions, known)
        moves = {j: _moves(c, int(directions[j]), free.get(j)) for j, c in enumerate(columns) if not c.is_number}
        step = np.array([column.step or 0.0 for column in columns])
        ties = tuple(self._tie(rule, schema, directions, known) for rule in self.rules if isinstance(rule, RisesWith))
        either = tuple(
            (position(rule.column, len(schema), known), position(rule.stays, len(schema), known))
            for rule in self.rules
            if isinstance(rule, IfChanges)
        )
        return Limits(directions, lower, upper, step, moves, ties, either)

    def _ways(self, dim: int, names: Sequence[ColumnName] | None) -> tuple[IntArray, FloatArray, FloatArray]:
        """Directions and bounds of the columns of a table, once it is checked that nothing contradicts itself."""
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
        return directions, lower, upper

    def _free_levels(
        self, schema: Schema, directions: IntArray, names: Sequence[ColumnName] | None
    ) -> dict[int, BoolArray]:
        """Per column with allowed levels: which they are."""
        found = {}
        for name, some in self.levels.items():
            j = position(name, len(schema), names)
            column = schema.column(j)
            if column.is_number:
                raise ValueError(f"Column {name!r} holds numbers, not levels: use bounds={{{name!r}: (lower, upper)}}.")
            if directions[j] == FIXED:
                raise ValueError(
                    f"Column {name!r} is immutable and has allowed levels; an immutable column keeps its own."
                )
            if not len(some):
                raise ValueError(f"levels[{name!r}] is empty: what never changes is immutable.")
            mask = np.zeros(len(column.levels), dtype=bool)
            for level in some:
                try:
                    mask[column.position(level)] = True
                except ValueError as error:
                    raise ValueError(f"levels[{name!r}]: {error}") from None
            found[j] = mask
        return found

    def _tie(self, rule: RisesWith, schema: Schema, directions: IntArray, names: Sequence[ColumnName] | None) -> Tie:
        j, driver = (position(name, len(schema), names) for name in (rule.column, rule.driver))
        if directions[j] in (FIXED, DOWN) and directions[driver] == UP:
            raise ValueError(
                f"{rule} contradicts the rest: {rule.driver!r} may only increase, but {rule.column!r} can never rise. "
                f"Then {rule.driver!r} is immutable; say so, or free {rule.column!r}."
            )
        for where in (j, driver):
            if not (schema.column(where).is_number or schema.column(where).kind == "ordered"):
                raise ValueError(f"{rule}: {schema.names[where]!r} has no order, so it neither rises nor falls.")
            if schema.column(where).codes and not schema.column(where).consecutive:
                raise ValueError(
                    f"{rule}: the model's encoder knows {schema.names[where]!r} by the numbers "
                    f"{few(schema.column(where).levels)} only, which are no even steps, so a ratio says nothing of "
                    "them. Say that they are ranks with Column('ordered', levels=[...]), or leave the rule out."
                )
        return Tie(j, driver, rule.ratio)


def _moves(column: Column, direction: int, free: BoolArray | None) -> FloatArray:
    """What changes of level cost, infinite where they are not allowed."""
    cost = column.moves.copy()
    steps = np.subtract.outer(np.arange(len(cost)), np.arange(len(cost)))  # from - to
    if direction != FREE:
        cost[steps != 0 if direction == FIXED else steps > 0 if direction == UP else steps < 0] = np.inf
    if free is not None:
        cost[:, ~free] = np.inf
    np.fill_diagonal(cost, 0.0)
    return cost


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
