"""Columns as numbers and back: a number is itself, a level is its position."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.table.column import Column, is_missing, level_key
from evenhand.types import BoolArray, FloatArray

UNKNOWN = np.inf  # the code of a value that a column cannot have


def numbers_of(values: pd.Series[Any], column: Column) -> FloatArray:
    """The numbers of a column, missing ones as NaN, impossible ones as infinity."""
    if not counts(values.dtype):  # a moment has a number inside, but is none
        return np.where(values.isna().to_numpy(), np.nan, UNKNOWN)
    if pd.api.types.is_object_dtype(values.dtype):  # one by one: what a value is must not depend on the others
        return _whole_or_unknown(np.array([_number(value) for value in values.tolist()], dtype=np.float64), column)
    try:
        found = values.to_numpy(dtype=np.float64, na_value=np.nan).copy()
    except (TypeError, ValueError):
        found = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan).copy()
        found[np.isnan(found) & ~values.isna().to_numpy()] = UNKNOWN  # a word in a column of numbers
    return _whole_or_unknown(found, column)


def _whole_or_unknown(found: FloatArray, column: Column) -> FloatArray:
    if column.kind == "integer":
        found[np.isfinite(found) & (found != np.round(found))] = UNKNOWN
    return found


def counts(dtype: Any) -> bool:
    """Whether values of a type may be numbers; moments, durations, periods, intervals and complex numbers are not."""
    if isinstance(dtype, pd.CategoricalDtype):
        return counts(dtype.categories.dtype)
    base = _base(dtype)
    return base.kind in "iufb" or (
        base.kind in "OTSU" and not isinstance(dtype, pd.IntervalDtype | pd.PeriodDtype | pd.DatetimeTZDtype)
    )


def is_number(value: object) -> bool:
    """Whether one value is a number."""
    return isinstance(value, bool | int | float | np.integer | np.floating | np.bool_ | Decimal)


def _number(value: object) -> float:
    """One value as a number: NaN if it is missing, infinity if it is none."""
    if is_missing(value):
        return np.nan
    try:
        return float(value) if is_number(value) or isinstance(value, str) else UNKNOWN  # type: ignore[arg-type]
    except (ValueError, OverflowError, ArithmeticError):  # a word, or more than any double
        return UNKNOWN


def positions_of(values: pd.Series[Any], column: Column) -> FloatArray:
    """Positions of levels, unknown ones as infinity."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        codes, names = values.cat.codes.to_numpy(), list(values.cat.categories)
    else:
        codes, uniques = pd.factorize(values)
        names = list(uniques)
    known = {column.key(level): float(i) for i, level in enumerate(column.levels)}
    table = np.array([known.get(column.key(name), UNKNOWN) for name in names] + [known.get(None, UNKNOWN)])
    return np.asarray(table[codes])  # a missing value has the code -1


def values_of(codes: FloatArray, column: Column, dtype: Any, lost: BoolArray, gap: Any) -> Any:
    """The values that codes stand for, with the type of a column; `gap` is what says that nothing is known.

    A type that cannot hold them all as they are is widened: nothing wraps around, is rounded or goes missing.
    """
    if column.is_number:
        return _typed_numbers(codes, dtype, lost)
    positions = np.where(lost, 0, codes).astype(np.intp)
    if isinstance(dtype, pd.CategoricalDtype):
        return _category(positions, column, dtype, lost)
    levels = [gap if level is None else level for level in column.levels]
    if dtype is not None and not pd.api.types.is_object_dtype(dtype) and None not in column.levels and not lost.any():
        return _typed_levels(levels, dtype).take(positions)
    chosen = np.array([*levels, None], dtype=object)[np.where(lost, len(levels), positions)]
    if dtype is None or pd.api.types.is_object_dtype(dtype) or not _nullable(dtype):
        return chosen if dtype is None or lost.any() or None in column.levels else pd.array(chosen, dtype=dtype)
    return _typed_levels(chosen.tolist(), dtype)


def _category(positions: npt.NDArray[np.intp], column: Column, dtype: pd.CategoricalDtype, lost: BoolArray) -> Any:
    """Levels as a category; those that the type does not have yet are added, in the order of the column if possible."""
    names = [level for level in column.levels if level is not None]
    known = {level_key(name) for name in dtype.categories}
    used = {level_key(column.levels[i]) for i in np.unique(positions[~lost])} - {None}
    if not used <= known:
        own = {level_key(name) for name in names}
        if known <= own:
            dtype = pd.CategoricalDtype(names, dtype.ordered)
        else:
            dtype = pd.CategoricalDtype([*dtype.categories, *(n for n in names if level_key(n) not in known)])
    where = {level_key(name): i for i, name in enumerate(dtype.categories)}
    table = np.array([where.get(level_key(level), -1) for level in column.levels])
    return pd.Categorical.from_codes(np.where(lost, -1, table[positions]), dtype=dtype)


def _typed_levels(levels: list[Any], dtype: Any) -> Any:
    """Levels as an array of a type, or as objects if it is one for other things."""
    missing = np.array([is_missing(level) for level in levels], dtype=bool)
    there = [level for level, gone in zip(levels, missing, strict=True) if not gone]
    base = _base(dtype)
    if base.kind in "iuf":
        if not all(isinstance(level, bool | int | float | np.number | np.bool_) for level in there):
            return np.array([*levels, None], dtype=object)[:-1]
        numbers = np.zeros(len(levels))
        numbers[~missing] = np.array(there, dtype=np.float64)
        return _typed_numbers(numbers, dtype, missing)
    if base.kind == "b" and not {float(level) for level in there if not isinstance(level, str)} <= {0.0, 1.0}:
        return np.array([*levels, None], dtype=object)[:-1]
    return pd.array(levels, dtype=dtype)


def _typed_numbers(codes: FloatArray, dtype: Any, lost: BoolArray) -> Any:
    """Numbers in the type of a column, or in the next wider one of its kind that holds all of them as they are.

    Fractions are doubles throughout: a narrower type would round an answer to the other side of a boundary.
    """
    base = None if dtype is None else _base(dtype)
    if base is None or (base.kind == "O" and not _nullable(dtype)):
        return codes if base is None else codes.astype(object)
    wider = ("float64",) if base.kind == "f" else ("int64", "float64")
    wide = next(name for name in (base.name, *wider) if holds(codes[~lost], np.dtype(name)))
    if not _nullable(dtype):
        whole = np.dtype(wide).kind in "iu"
        return codes if lost.any() and whole else codes.astype(wide)  # NaN has no place among integers
    found = pd.array(np.where(lost, 0.0, codes), dtype=_of_family(dtype, wide))
    found[lost] = pd.NA
    return found


def holds(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Whether a type has all of some numbers, none of which is missing; of fractions only doubles do."""
    if dtype.kind in "iu":
        limits, whole = np.iinfo(dtype), values == np.round(values)
        return bool((whole & (values >= limits.min) & (values < float(limits.max) + 1.0)).all())
    if dtype.kind == "b":
        return bool(np.isin(values, (0.0, 1.0)).all())
    return dtype == np.float64


def _base(dtype: Any) -> np.dtype[Any]:
    """The type of numpy that has the same values."""
    base = getattr(dtype, "numpy_dtype", dtype)  # pandas' own types, and those of Arrow
    return base if isinstance(base, np.dtype) else np.dtype(object)


def _of_family(dtype: Any, name: str) -> Any:
    """The type of pandas or of Arrow, as the given one is, with the values of a type of numpy."""
    if _base(dtype).name == name:
        return dtype
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        return pd.ArrowDtype(pa.from_numpy_dtype(np.dtype(name)))
    return {"int64": "Int64", "float64": "Float64"}[name]


def _nullable(dtype: Any) -> bool:
    return pd.api.types.is_extension_array_dtype(dtype)
