"""What the columns of a table are, and people as rows of codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from evenhand.table.codec import UNKNOWN, is_number, numbers_of, positions_of, values_of
from evenhand.table.column import KINDS, Column, few, is_missing
from evenhand.table.frames import as_frame
from evenhand.types import BoolArray, FloatArray

MANY_LEVELS = 1000


@dataclass(frozen=True, eq=False)
class Schema:
    """The columns of a table, by name and in order.

    Inside, a person is a row of numbers: a number is itself, a level is its position.  The distance of two people is
    Gower-like: ``weight * |difference|`` for numbers, the cost of the change for levels, added up.

    Parameters
    ----------
    columns : mapping from name to Column

    Examples
    --------
    >>> people = pd.DataFrame({"income": [1200.0, 900.0, 1500.0], "purpose": ["car", "house", "car"]})
    >>> schema = Schema.infer(people)
    >>> schema["purpose"].levels, round(1 / schema["income"].weight, 1)
    (('car', 'house'), 244.9)
    >>> schema.encode(people).tolist()
    [[1200.0, 0.0], [900.0, 1.0], [1500.0, 0.0]]
    """

    columns: Mapping[str, Column]

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping) or not self.columns:
            raise TypeError(f"A schema is a mapping from column names to Column(...); got {self.columns!r}.")
        for name, column in self.columns.items():
            if not isinstance(column, Column):
                raise TypeError(f"Column {name!r} of the schema must be a Column(...), got {column!r}.")
        object.__setattr__(self, "columns", dict(self.columns))

    @classmethod
    def infer(cls, X: Any, *, levels: Iterable[str] = (), **columns: Column) -> Schema:
        """What a table looks like.

        Flags, integers with the two values 0 and 1, strings and categories become levels; other integers count in ones,
        and do not become negative if none is, also where some are missing; other floats are continuous. The weight of a
        number is one over its standard deviation, the unit of perturbations as well.

        Parameters
        ----------
        X : DataFrame
            pandas or polars.
        levels : iterable of str
            Numbers that are names, such as a code of a district: categories.
        **columns : Column
            What is known better, by name.
        """
        frame = as_frame(X)
        names, known = set(map(str, levels)), dict(columns)
        strange = [name for name in (*names, *known) if name not in frame.columns]
        if strange:
            raise ValueError(f"The table has no column {strange[0]!r}; it has {', '.join(map(str, frame.columns))}.")
        return cls({name: known.get(name) or _inferred(name, frame[name], name in names) for name in frame.columns})

    @classmethod
    def numbers(cls, columns: Any) -> Schema:
        """Continuous numbers throughout, each of weight 1.

        Parameters
        ----------
        columns : DataFrame, names of columns, or how many there are

        Examples
        --------
        >>> Schema.numbers(["age", "income"])
        Schema(2 columns: 2 numeric)
        """
        if isinstance(columns, int | np.integer):
            columns = [f"x{j}" for j in range(columns)]
        elif hasattr(columns, "columns"):
            columns = columns.columns
        return cls(dict.fromkeys(columns, Column("numeric")))

    def __getitem__(self, name: str) -> Column:
        if name not in self.columns:
            raise KeyError(f"The schema has no column {name!r}; it has {', '.join(map(str, self.columns))}.")
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        kinds = [column.kind for column in self.columns.values()]
        counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in KINDS if kind in kinds)
        return f"Schema({len(self)} columns: {counts})"

    def with_columns(self, **columns: Column) -> Schema:
        """The same schema with some columns replaced."""
        for name in columns:
            _ = self[name]
        return Schema({**self.columns, **columns})

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(self.columns)

    @cached_property
    def number(self) -> BoolArray:
        """Which columns are numbers."""
        return np.array([column.is_number for column in self.columns.values()])

    @cached_property
    def whole(self) -> BoolArray:
        """Which columns count in whole numbers."""
        return np.array([column.kind == "integer" for column in self.columns.values()])

    @cached_property
    def continuous(self) -> bool:
        """Whether all columns are numbers that may take any value."""
        return all(column.kind == "numeric" and not (column.step or column.bounds) for column in self.columns.values())

    @property
    def unweighted(self) -> bool:
        """Whether a unit of every column costs the same."""
        return all(column.weight == 1.0 for column in self.columns.values())

    def column(self, j: int) -> Column:
        """The column at a position."""
        return self.columns[self.names[j]]

    def value(self, j: int, code: float) -> Any:
        """The value that a code of the j-th column stands for."""
        column = self.column(j)
        return float(code) if column.is_number else column.levels[int(code)]

    def encode(self, X: Any, fill: FloatArray | None = None) -> FloatArray:
        """People as rows of numbers; a value that a column cannot have is infinite.

        `fill` has the number that stands for a missing one, per column; NaN where there is none.
        """
        frame = as_frame(X)
        self.check(frame)
        codes = np.empty((len(frame), len(self)))
        for j, (name, column) in enumerate(self.columns.items()):
            codes[:, j] = numbers_of(frame[name], column) if column.is_number else positions_of(frame[name], column)
            if column.is_number:
                instead = UNKNOWN if fill is None or np.isnan(fill[j]) else fill[j]
                codes[np.isnan(codes[:, j]), j] = instead
        return codes

    def decode(
        self,
        codes: FloatArray,
        like: pd.DataFrame | None = None,
        gaps: Mapping[str, Any] | None = None,
        types: Mapping[str, Any] | None = None,
    ) -> pd.DataFrame:
        """People from rows of numbers, with the types of the table `like`; a row of NaN is missing throughout.

        `gaps` says what stands for a missing level, by column; None if left out.  `types` are those of some columns, if
        there is no such table.
        """
        known = like.dtypes.to_dict() if like is not None else {} if types is None else types
        lost: BoolArray = np.asarray(np.isnan(codes).any(axis=1))
        found: dict[str, Any] = {}
        for j, (name, column) in enumerate(self.columns.items()):
            gap = None if gaps is None else gaps.get(name)
            found[name] = values_of(codes[:, j], column, known.get(name), lost, gap)
            if pd.api.types.is_object_dtype(found[name]):  # pandas would guess a type
                found[name] = pd.Series(found[name], dtype=object, index=None if like is None else like.index)
        return pd.DataFrame(found, index=None if like is None else like.index)

    def check(self, frame: pd.DataFrame) -> None:
        """Refuse a table whose columns are not those of the schema."""
        missing = [name for name in self.columns if name not in frame.columns]
        extra = [str(name) for name in frame.columns if name not in self.columns]
        if missing or extra or frame.columns.has_duplicates:
            raise ValueError(
                f"The table's columns are not the model's. Missing: {', '.join(map(str, missing)) or 'none'}. "
                f"Unknown: {', '.join(extra) or 'none'}. The model takes: {', '.join(map(str, self.columns))}."
            )

    def following(self, frame: pd.DataFrame) -> Schema:
        """The same in the order of a table's columns, which must be those of the schema."""
        absent = [name for name in self.names if name not in frame.columns]
        if absent:
            raise ValueError(
                f"The schema names the column {absent[0]!r}, which the table does not have; it has "
                f"{', '.join(map(str, frame.columns))}."
            )
        self.check(frame)
        return Schema({name: self[name] for name in frame.columns})

    def complaint(self, row: pd.Series[Any]) -> str:
        """What is wrong with a person: the first value that its column cannot have."""
        for name, column in self.columns.items():
            value = row[name]
            if column.is_number:
                if is_missing(value):
                    return f"{name} is missing, and nothing says what stands for it."
                if np.isfinite(numbers_of(pd.Series([value], dtype=object), column)[0]):
                    continue
                if isinstance(value, str) or not is_number(value):
                    return f"{name} is {value!r}, of the type {type(value).__name__}, which is no number."
                if not np.isfinite(float(value)):
                    return f"{name} is {value}, which is no finite number."
                return f"{name} is {value}, but the column counts in whole numbers."
            if column.key(None if is_missing(value) else value) not in {column.key(level) for level in column.levels}:
                return f"{name} is {value!r}, which is not among its levels {few(column.levels)}."
        return ""

    def weighted(self, weights: Mapping[str, float]) -> Schema:
        """The same columns with other weights."""
        return Schema({n: replace(c, weight=float(weights[n])) if n in weights else c for n, c in self.columns.items()})


def _inferred(name: str, values: pd.Series[Any], as_levels: bool) -> Column:
    kind = values.dtype
    if isinstance(kind, pd.CategoricalDtype):
        levels = list(kind.categories) + ([None] if values.isna().any() else [])
        return Column("ordered" if kind.ordered else "categorical", levels)
    if pd.api.types.is_bool_dtype(kind):
        return Column("boolean", [False, True] + ([None] if values.isna().any() else []))
    if pd.api.types.is_numeric_dtype(kind) and not as_levels:
        return _inferred_number(values)
    found = sorted(values.dropna().unique().tolist(), key=lambda value: (str(type(value)), value))
    if not found:
        raise ValueError(
            f"Column {name!r} has no value at all: leave it out, or say what it is with {name}=Column(...)."
        )
    if len(found) > MANY_LEVELS:
        raise ValueError(
            f"Column {name!r} has {len(found):,} different values, such as {found[0]!r}: is it a name or a date? "
            "Leave it out of the table that is explained, or give its levels with Column('categorical', levels=...)."
        )
    return Column("categorical", found + ([None] if values.isna().any() else []))


def _inferred_number(values: pd.Series[Any]) -> Column:
    numbers = values.dropna().to_numpy(dtype=np.float64)
    numbers = numbers[np.isfinite(numbers)]
    # pandas has no whole numbers with gaps but as floats: where some are missing and all others are whole, they count.
    gaps = len(numbers) > 0 and bool(values.isna().any()) and bool((numbers == np.round(numbers)).all())
    if pd.api.types.is_integer_dtype(values.dtype) or gaps:
        if set(np.unique(numbers[:MANY_LEVELS])) <= {0.0, 1.0} and set(np.unique(numbers)) == {0.0, 1.0}:
            return Column("boolean", [0, 1] + ([None] if values.isna().any() else []))
        bounds = (0.0, None) if len(numbers) and numbers.min() >= 0 else None
        return Column("integer", weight=_weight(numbers), bounds=bounds)
    return Column("numeric", weight=_weight(numbers))


def _weight(numbers: FloatArray) -> float:
    """One over the standard deviation; 1 for a column that is constant but for rounding."""
    spread = float(numbers.std()) if len(numbers) else 0.0
    return 1.0 / spread if spread > 1e-12 * float(np.abs(numbers).max(initial=0.0)) else 1.0
