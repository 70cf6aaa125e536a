"""Tables of people, read once: behind this door only codes travel."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.types import FloatArray


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
