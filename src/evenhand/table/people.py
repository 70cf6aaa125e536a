"""Tables of people, read once: behind this door only codes travel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.table.codec import UNKNOWN, holds
from evenhand.table.column import is_missing
from evenhand.table.frames import as_frame, as_given
from evenhand.table.schema import Schema
from evenhand.types import BoolArray, FloatArray

GAPS: dict[str, Any] = {"None": None, "nan": np.nan, "<NA>": pd.NA}  # ways to say that nothing is known
Table: TypeAlias = FloatArray | pd.DataFrame  # or a DataFrame of polars, if one was given


@dataclass(frozen=True, eq=False)
class People:
    """People who were read: their codes, who they are, and the table that they came in."""

    codes: FloatArray
    index: pd.Index
    given: Any


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads people into rows of codes, and writes codes in the form in which people came, or as the model takes them.

    Attributes
    ----------
    schema : Schema
        What the columns are.
    named : bool
        Whether the model takes a table with names; otherwise an array, and tables go by position.
    fill : array of shape (n_columns,), optional
        The number that stands for a missing one; NaN where none does.
    unfilled : tuple of str
        Columns whose missing numbers the model takes as they are: there the code `fill` is shown to it as missing.
    known : mapping from column to array of bool
        The levels that the model accepts, for columns where that is not all of them.
    like : DataFrame, optional
        No rows; the types of the columns that the model was shown.
    gaps : mapping from column to object
        What it was shown in place of a missing level.
    alike : mapping from column to set of str
        Which ways to say that a level is missing (:data:`GAPS`) are the same to the model, where that was asked.
    values : mapping from position to array, optional
        The numbers that levels stand for, if the model takes nothing but numbers.
    """

    schema: Schema
    named: bool = True
    fill: FloatArray | None = None
    unfilled: tuple[str, ...] = ()
    known: Mapping[str, BoolArray] = field(default_factory=dict)
    like: pd.DataFrame | None = None
    gaps: Mapping[str, Any] = field(default_factory=dict)
    alike: Mapping[str, frozenset[str]] = field(default_factory=dict)
    values: Mapping[int, FloatArray] | None = None

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns, if the model knows them."""
        return self.schema.names if self.named else None

    @property
    def plain(self) -> bool:
        """Whether a table is what it looks like: numbers that may take any value, and none that stands for another."""
        return self.schema.continuous and self.fill is None

    def read(self, X: Any) -> People:
        """People as rows of codes, in the model's order of columns; what cannot be is NaN or infinite."""
        return People(self._codes(X), people_of(X), X)

    def _codes(self, X: Any) -> FloatArray:
        table = self.columns(X)
        if self.plain:
            return as_table(table, len(self.schema))
        codes = self.schema.encode(table, self.fill)
        for j, name in enumerate(self.schema.names):
            if name in self.known:
                there = np.isfinite(codes[:, j])
                accepted = self.known[name][codes[there, j].astype(np.intp)]
                codes[there, j] = np.where(accepted, codes[there, j], UNKNOWN)
            if name in self.alike:
                gone = np.flatnonzero(table[name].isna())
                others = [kind_of_gap(value) not in self.alike[name] for value in table[name].iloc[gone]]
                codes[gone[others], j] = UNKNOWN
        return codes

    def columns(self, X: Any) -> Any:
        """A table with its columns in the model's order, checked, not converted; an array as it is."""
        if not is_frame(X) and self.plain:
            return X
        numbers_only = self.schema.number.all() or self.values is not None
        frame = self._framed(X) if numbers_only and not is_frame(X) else as_frame(X)
        if not self.plain:
            if not self.named and tuple(frame.columns) != self.schema.names and frame.shape[1] == len(self.schema):
                return frame.set_axis(list(self.schema.names), axis=1)
            self.schema.check(frame)
            return frame[list(self.schema.names)]
        wrong = [str(name) for name, kind in frame.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]
        if wrong:
            raise ValueError(f"Columns {', '.join(wrong)} are not numeric; encode or leave them out.")
        if not self.named:
            return frame
        self.schema.check(frame)
        return frame[list(self.schema.names)]

    def _framed(self, X: Any) -> pd.DataFrame:
        """An array of numbers, by position."""
        return pd.DataFrame(as_table(X, len(self.schema)), columns=list(self.schema.names))

    def write(self, codes: FloatArray, given: Any) -> Table:
        """Codes as a table of the form, the types and the order of columns of the table `given`."""
        if not is_frame(given):
            return codes if self.plain else self._decoded(codes, self._framed(given)).to_numpy()
        frame = as_frame(given)
        if self.plain:
            names = list(self.schema.names) if self.named else list(frame.columns)
            written = pd.DataFrame(codes, index=frame.index, columns=names, copy=False)
        else:
            written = self._decoded(codes, frame)
        written = written if list(written.columns) == list(frame.columns) else written[list(frame.columns)]
        found: Table = as_given(written, given)
        return found

    def _decoded(self, codes: FloatArray, frame: pd.DataFrame) -> pd.DataFrame:
        ordered = self.columns(frame)
        decoded = self.schema.decode(codes, ordered)
        for j, (name, column) in enumerate(self.schema.columns.items()):
            if column.is_number:
                if self.fill is None:
                    continue
                gone = codes[:, j] == self.fill[j]
                if name not in self.unfilled:  # a number that an imputer takes for a missing one may be one
                    gone &= ordered[name].isna().to_numpy()
            elif None in column.levels:
                gone = codes[:, j] == column.position(None)
            else:
                continue
            if gone.any():  # missing it was, and missing it may stay, in the way in which it was
                decoded[name] = decoded[name].mask(gone, ordered[name].set_axis(decoded.index))
        return decoded if self.named else decoded.set_axis(list(frame.columns), axis=1)

    def show(self, codes: FloatArray) -> Any:
        """People in the form that the model's own ``predict`` takes."""
        if self.plain:
            return pd.DataFrame(codes, columns=list(self.schema.names), copy=False) if self.named else codes
        if self.values is not None:
            numbers = codes.copy()
            for j, known in self.values.items():
                numbers[:, j] = known[codes[:, j].astype(np.intp)]
            return pd.DataFrame(numbers, columns=list(self.schema.names), copy=False) if self.named else numbers
        # Levels of numbers get their type below, if all of them fit into it.
        columns = self.schema.columns
        types = {n: t for n, t in self._shown.items() if columns[n].is_number or isinstance(t, pd.CategoricalDtype)}
        frame = self.schema.decode(codes, gaps=self.gaps, types=types)
        for name in self.unfilled:
            assert self.fill is not None
            j = self.schema.names.index(name)
            frame[name] = frame[name].astype(np.float64).mask(codes[:, j] == self.fill[j])
        if self.like is not None:
            wanted = {
                name: dtype
                for name, dtype in self._shown.items()
                if frame[name].dtype != dtype and _fits(frame[name], dtype)
            }
            frame = frame.astype(wanted) if wanted else frame
        return frame if self.named else frame.to_numpy()

    @cached_property
    def _shown(self) -> dict[str, Any]:
        """The types of columns in which the model is shown people.

        Words stay plain objects, which encoders read fastest; models with categories of their own need the type.
        """
        if self.like is None:
            return {}
        types = {name: self.like[name].dtype for name in self.schema.names}
        return {
            name: types[name]
            for name, column in self.schema.columns.items()
            if not column.has_words or isinstance(types[name], pd.CategoricalDtype)
        }

    def complaint(self, row: pd.Series[Any]) -> str:
        """Why a person cannot be read; empty if it can."""
        found = self.schema.complaint(row)
        if found:
            return found
        for name, accepted in self.known.items():
            if not accepted[self.schema[name].position(row[name])]:
                return f"{name} is {row[name]!r}, a level that the model's encoder has never seen."
        for name, alike in self.alike.items():
            if is_missing(row[name]) and kind_of_gap(row[name]) not in alike:
                known = f": it takes {' or '.join(sorted(alike))}" if alike else ""
                return (
                    f"{name} is missing, written as {row[name]!r}, which is not what the model takes for that{known}."
                )
        return ""


def kind_of_gap(value: Any) -> str:
    """Which of the ways to say that nothing is known it is."""
    return "None" if value is None else "<NA>" if value is pd.NA else "nan"


def is_frame(X: Any) -> bool:
    """Whether a table has named columns: a DataFrame of pandas, polars or another that pandas can have."""
    return isinstance(X, pd.DataFrame) or hasattr(X, "to_pandas")


def people_of(X: Any) -> pd.Index:
    """Who is who in a table: the labels of its index, or positions."""
    return X.index if isinstance(X, pd.DataFrame) else pd.RangeIndex(len(X))


def _fits(values: pd.Series[Any], dtype: Any) -> bool:
    """Whether values can have the type that the model was shown: a fraction or a gap cannot be an integer."""
    if not pd.api.types.is_integer_dtype(dtype):
        return not pd.api.types.is_float_dtype(dtype)  # a narrower type would round
    if not pd.api.types.is_numeric_dtype(values.dtype):
        return False
    there = values.dropna().to_numpy(dtype=np.float64)
    whole = len(there) == len(values) or pd.api.types.is_extension_array_dtype(dtype)
    return whole and holds(there, np.dtype(getattr(dtype, "numpy_dtype", dtype)))


def below(X: FloatArray, limit: float) -> BoolArray:
    """Rows of which every number is smaller than a limit; NaN is not."""
    if X.size and X.max() < limit and X.min() > -limit:  # NaN is neither; most tables are whole
        return np.ones(len(X), dtype=bool)
    return np.asarray((np.abs(X) < limit).all(axis=1))


def as_table(X: npt.ArrayLike, dim: int) -> FloatArray:
    """`X` as a float table with `dim` columns, or an error that says what it is instead."""
    try:
        table = _numbers(X)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Expected a table of numbers with {dim} columns: {error}") from error
    if table.ndim != 2 or table.shape[1] != dim:
        hint = " One person is a table with one row: X[None, :]." if table.ndim == 1 else ""
        raise ValueError(f"Expected a table with {dim} columns, got shape {table.shape}.{hint}")
    return table


def _numbers(X: npt.ArrayLike) -> FloatArray:
    if isinstance(X, pd.DataFrame) and any(pd.api.types.is_extension_array_dtype(kind) for kind in X.dtypes):
        return X.to_numpy(dtype=np.float64, na_value=np.nan)  # pandas' own missing values are NaN here
    return np.asarray(X, dtype=np.float64)
