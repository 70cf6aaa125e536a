"""What the columns of a table are: numbers, counts, ordered levels, categories, flags; and what a change costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.distances import FloatArray

Kind = Literal["numeric", "integer", "ordered", "categorical", "boolean"]
KINDS = ("numeric", "integer", "ordered", "categorical", "boolean")
NUMBERS = ("numeric", "integer")
UNKNOWN = np.inf  # the code of a value that a column cannot have
MANY_LEVELS = 1000


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
        levels = tuple(None if _missing(level) else level for level in levels)
        if not levels:
            raise ValueError(f"A column of kind {self.kind!r} needs its levels.")
        if len({_key(level) for level in levels}) < len(levels):
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
    def moves(self) -> FloatArray:
        """Cost from each level to each other, weight included; a missing value is nobody's goal."""
        n = len(self.levels)
        if self.costs is not None:
            found = self.weight * np.asarray(self.costs)
        elif self.kind == "ordered":
            found = self.weight * np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(np.float64)
        else:
            found = self.weight * (1.0 - np.eye(n))
        for gone in [i for i, level in enumerate(self.levels) if level is None]:
            if self.costs is None and self.kind == "ordered":
                found[gone, :] = self.weight
            found[:, gone] = np.inf
            found[gone, gone] = 0.0
        return np.asarray(found)

    @property
    def distances(self) -> FloatArray:
        """How far two people are apart, whoever moves; the last row and column are for "no change" (code -1)."""
        n = len(self.levels)
        found = np.full((n + 1, n + 1), self.weight)
        found[n, n] = 0.0
        found[:n, :n] = np.minimum(self.moves, self.moves.T)
        found[~np.isfinite(found)] = self.weight
        return found

    def position(self, level: Any) -> int:
        """Where a level stands; raises a ``ValueError`` if it is none."""
        key = _key(None if _missing(level) else level)
        for i, known in enumerate(self.levels):
            if _key(known) == key:
                return i
        raise ValueError(f"{level!r} is not a level; there are {list(self.levels)}.")


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
    >>> schema["purpose"].levels, schema["income"].weight
    (('car', 'house'), 0.0033333333333333335)
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
        and do not become negative if none is; floats are continuous. The weight of a number is one over its median
        absolute deviation (or its standard deviation, if more than half of the values are the same).

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

    @property
    def names(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(self.columns)

    @cached_property
    def number(self) -> npt.NDArray[np.bool_]:
        """Which columns are numbers."""
        return np.array([column.is_number for column in self.columns.values()])

    def encode(self, X: Any, fill: FloatArray | None = None) -> FloatArray:
        """People as rows of numbers; a value that a column cannot have is infinite.

        `fill` has the number that stands for a missing one, per column; NaN where there is none.
        """
        frame = as_frame(X)
        self.check(frame)
        codes = np.empty((len(frame), len(self)))
        for j, (name, column) in enumerate(self.columns.items()):
            codes[:, j] = _numbers(frame[name], column) if column.is_number else _positions(frame[name], column)
            if column.is_number:
                instead = UNKNOWN if fill is None or np.isnan(fill[j]) else fill[j]
                codes[np.isnan(codes[:, j]), j] = instead
        return codes

    def decode(
        self, codes: FloatArray, like: pd.DataFrame | None = None, gaps: Mapping[str, Any] | None = None
    ) -> pd.DataFrame:
        """People from rows of numbers, with the types of the table `like`; a row of NaN is missing throughout.

        `gaps` says what stands for a missing level, by column; None if left out.
        """
        lost: npt.NDArray[np.bool_] = np.asarray(np.isnan(codes).any(axis=1))
        found: dict[str, Any] = {}
        for j, (name, column) in enumerate(self.columns.items()):
            dtype = None if like is None else like[name].dtype
            found[name] = _values(codes[:, j], column, dtype, lost, None if gaps is None else gaps.get(name))
            if pd.api.types.is_object_dtype(found[name]):  # pandas would guess a type
                found[name] = pd.Series(found[name], dtype=object, index=None if like is None else like.index)
        return pd.DataFrame(found, index=None if like is None else like.index)

    def check(self, frame: pd.DataFrame) -> None:
        """Refuse a table whose columns are not those of the schema."""
        missing = [name for name in self.columns if name not in frame.columns]
        extra = [str(name) for name in frame.columns if name not in self.columns]
        if missing or extra or frame.columns.has_duplicates:
            raise ValueError(
                f"The table's columns are not the schema's. Missing: {', '.join(map(str, missing)) or 'none'}. "
                f"Unknown: {', '.join(extra) or 'none'}. The schema has: {', '.join(map(str, self.columns))}."
            )

    def complaint(self, row: pd.Series[Any]) -> str:
        """What is wrong with a person: the first value that its column cannot have."""
        for name, column in self.columns.items():
            value = row[name]
            if column.is_number:
                if _missing(value):
                    return f"{name} is missing, and nothing says what stands for it."
                if not np.isfinite(float(value)):
                    return f"{name} is {value}, which is no finite number."
                if column.kind == "integer" and float(value) != round(float(value)):
                    return f"{name} is {value}, but the column counts in whole numbers."
            elif _key(None if _missing(value) else value) not in {_key(level) for level in column.levels}:
                return f"{name} is {value!r}, which is not among its levels {_few(column.levels)}."
        return ""

    def weighted(self, weights: Mapping[str, float]) -> Schema:
        """The same columns with other weights."""
        return Schema({n: replace(c, weight=float(weights[n])) if n in weights else c for n, c in self.columns.items()})


@dataclass(frozen=True, eq=False)
class Gower:
    """How far two people are apart, in the units of a schema; works on encoded rows.

    Examples
    --------
    >>> schema = Schema({"age": Column("integer", weight=0.1), "sex": Column("categorical", levels=["f", "m"])})
    >>> Gower(schema)([[30.0, 0.0]], [[35.0, 1.0]]).tolist()
    [1.5]
    """

    schema: Schema

    def __call__(self, a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
        """Distance between the rows of `a` and the rows of `b`."""
        left, right = np.atleast_2d(np.asarray(a, dtype=np.float64)), np.atleast_2d(np.asarray(b, dtype=np.float64))
        total = np.zeros(max(len(left), len(right)))
        for j, column in enumerate(self.schema.columns.values()):
            if column.is_number:
                total += column.weight * np.abs(left[:, j] - right[:, j])
            else:
                lost = np.isnan(left[:, j]) | np.isnan(right[:, j])
                i, k = (np.where(lost, 0, side[:, j]).astype(np.intp) for side in (left, right))
                total += np.where(lost, np.nan, column.distances[i, k])
        return total

    def __repr__(self) -> str:
        return f"Gower({len(self.schema)} columns)"


def as_frame(X: Any) -> pd.DataFrame:
    """A pandas DataFrame; one of polars is converted."""
    if isinstance(X, pd.DataFrame):
        return X
    if hasattr(X, "to_pandas"):
        frame: pd.DataFrame = X.to_pandas()
        return frame
    raise TypeError(f"A table with named columns is needed, a DataFrame of pandas or polars; got {type(X).__name__}.")


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
    if pd.api.types.is_integer_dtype(values.dtype):
        if set(np.unique(numbers[:MANY_LEVELS])) <= {0.0, 1.0} and set(np.unique(numbers)) == {0.0, 1.0}:
            return Column("boolean", [0, 1] + ([None] if values.isna().any() else []))
        bounds = (0.0, None) if len(numbers) and numbers.min() >= 0 else None
        return Column("integer", weight=_weight(numbers), bounds=bounds)
    return Column("numeric", weight=_weight(numbers))


def _weight(numbers: FloatArray) -> float:
    if not len(numbers):
        return 1.0
    spread = float(np.median(np.abs(numbers - np.median(numbers)))) or float(numbers.std())
    return 1.0 / spread if spread > 0 else 1.0


def _numbers(values: pd.Series[Any], column: Column) -> FloatArray:
    """The numbers of a column, missing ones as NaN, impossible ones as infinity."""
    try:
        found = values.to_numpy(dtype=np.float64, na_value=np.nan).copy()
    except (TypeError, ValueError):
        found = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan).copy()
        found[np.isnan(found) & ~values.isna().to_numpy()] = UNKNOWN  # a word in a column of numbers
    if column.kind == "integer":
        found[np.isfinite(found) & (found != np.round(found))] = UNKNOWN
    return found


def _positions(values: pd.Series[Any], column: Column) -> FloatArray:
    """Positions of levels, unknown ones as infinity."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        codes, names = values.cat.codes.to_numpy(), list(values.cat.categories)
    else:
        codes, uniques = pd.factorize(values)
        names = list(uniques)
    known = {_key(level): float(i) for i, level in enumerate(column.levels)}
    table = np.array([known.get(_key(name), UNKNOWN) for name in names] + [known.get(_key(None), UNKNOWN)])
    return np.asarray(table[codes])  # a missing value has the code -1


def _values(codes: FloatArray, column: Column, dtype: Any, lost: npt.NDArray[np.bool_], gap: Any) -> Any:
    if column.is_number:
        return _typed_numbers(codes, dtype, lost)
    positions = np.where(lost, 0, codes).astype(np.intp)
    if isinstance(dtype, pd.CategoricalDtype):
        where = {_key(name): i for i, name in enumerate(dtype.categories)}
        table = np.array([where.get(_key(level), -1) for level in column.levels])
        return pd.Categorical.from_codes(np.where(lost, -1, table[positions]), dtype=dtype)
    levels = [gap if level is None else level for level in column.levels]
    plain = dtype is not None and not pd.api.types.is_object_dtype(dtype) and None not in column.levels
    if plain and not lost.any():
        return pd.array(levels, dtype=dtype).take(positions)
    chosen = np.array([*levels, None], dtype=object)[np.where(lost, len(levels), positions)]
    if dtype is None or pd.api.types.is_object_dtype(dtype) or (lost.any() and not _nullable(dtype)):
        return chosen
    return pd.array(chosen, dtype=dtype)


def _typed_numbers(codes: FloatArray, dtype: Any, lost: npt.NDArray[np.bool_]) -> Any:
    if dtype is None:
        return codes
    if pd.api.types.is_extension_array_dtype(dtype):
        return pd.array(np.where(lost, 0.0, codes), dtype=dtype) if not lost.any() else _with_gaps(codes, dtype, lost)
    if pd.api.types.is_integer_dtype(dtype):
        whole = bool(np.all(lost | (codes == np.round(codes))))
        return codes.astype(dtype) if whole and not lost.any() else codes  # NaN has no place among integers
    return codes.astype(dtype)


def _with_gaps(codes: FloatArray, dtype: Any, lost: npt.NDArray[np.bool_]) -> Any:
    found = pd.array(np.where(lost, 0.0, codes), dtype=dtype)
    found[lost] = pd.NA
    return found


def _nullable(dtype: Any) -> bool:
    return pd.api.types.is_extension_array_dtype(dtype)


def _missing(value: Any) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and np.isnan(value))


def _key(value: Any) -> Any:
    """What makes two levels the same: 1, 1.0 and numpy's 1 are, True is another."""
    if value is None:
        return None
    if isinstance(value, np.generic):
        value = value.item()
    return (bool, value) if isinstance(value, bool) else value


def _few(levels: Sequence[Any], most: int = 8) -> str:
    shown = ", ".join(repr(level) for level in levels[:most])
    return shown + (f" and {len(levels) - most} more" if len(levels) > most else "")
