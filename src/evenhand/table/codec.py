"""Columns as numbers and back: a number is itself, a level is its position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evenhand.table.column import Column, level_key
from evenhand.types import BoolArray, FloatArray

UNKNOWN = np.inf  # the code of a value that a column cannot have


def numbers_of(values: pd.Series[Any], column: Column) -> FloatArray:
    """The numbers of a column, missing ones as NaN, impossible ones as infinity."""
    try:
        found = values.to_numpy(dtype=np.float64, na_value=np.nan).copy()
    except (TypeError, ValueError):
        found = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan).copy()
        found[np.isnan(found) & ~values.isna().to_numpy()] = UNKNOWN  # a word in a column of numbers
    if column.kind == "integer":
        found[np.isfinite(found) & (found != np.round(found))] = UNKNOWN
    return found


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
    """The values that codes stand for, with the type of a column; `gap` is what says that nothing is known."""
    if column.is_number:
        return _typed_numbers(codes, dtype, lost)
    positions = np.where(lost, 0, codes).astype(np.intp)
    if isinstance(dtype, pd.CategoricalDtype):
        where = {level_key(name): i for i, name in enumerate(dtype.categories)}
        table = np.array([where.get(level_key(level), -1) for level in column.levels])
        return pd.Categorical.from_codes(np.where(lost, -1, table[positions]), dtype=dtype)
    levels = [gap if level is None else level for level in column.levels]
    plain = dtype is not None and not pd.api.types.is_object_dtype(dtype) and None not in column.levels
    if plain and not lost.any():
        return pd.array(levels, dtype=dtype).take(positions)
    chosen = np.array([*levels, None], dtype=object)[np.where(lost, len(levels), positions)]
    if dtype is None or pd.api.types.is_object_dtype(dtype) or (lost.any() and not _nullable(dtype)):
        return chosen
    return pd.array(chosen, dtype=dtype)


def _typed_numbers(codes: FloatArray, dtype: Any, lost: BoolArray) -> Any:
    if dtype is None:
        return codes
    if pd.api.types.is_integer_dtype(dtype) and not bool(np.all(lost | (codes == np.round(codes)))):
        return codes  # a fraction has no place among integers
    if pd.api.types.is_extension_array_dtype(dtype):
        return pd.array(np.where(lost, 0.0, codes), dtype=dtype) if not lost.any() else _with_gaps(codes, dtype, lost)
    if pd.api.types.is_integer_dtype(dtype):
        whole = bool(np.all(lost | (codes == np.round(codes))))
        return codes.astype(dtype) if whole and not lost.any() else codes  # NaN has no place among integers
    return codes.astype(dtype)


def _with_gaps(codes: FloatArray, dtype: Any, lost: BoolArray) -> Any:
    found = pd.array(np.where(lost, 0.0, codes), dtype=dtype)
    found[lost] = pd.NA
    return found


def _nullable(dtype: Any) -> bool:
    return pd.api.types.is_extension_array_dtype(dtype)
