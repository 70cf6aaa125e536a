"""Tables of other libraries as tables of pandas, and back."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd


def as_frame(X: Any) -> pd.DataFrame:
    """A DataFrame of pandas; tables of polars and Arrow are converted, and decimals are numbers."""
    if not isinstance(X, pd.DataFrame) and not hasattr(X, "to_pandas"):
        raise TypeError(
            f"A table with named columns is needed, a DataFrame of pandas or polars; got {type(X).__name__}."
        )
    frame: pd.DataFrame = X if isinstance(X, pd.DataFrame) else _converted(X)
    strange = [i for i, kind in enumerate(frame.dtypes) if isinstance(kind, pd.ArrowDtype) or kind == np.dtype(object)]
    plain = {i: column for i in strange if (column := _plain(frame.iloc[:, i])) is not None}
    if not plain:
        return frame
    found = pd.concat([plain.get(i, frame.iloc[:, i]) for i in range(frame.shape[1])], axis=1)
    found.columns = frame.columns
    return found


def as_given(written: pd.DataFrame, given: Any) -> Any:
    """A table in the form of another: of pandas, polars or Arrow."""
    library = type(given).__module__.split(".")[0]
    if library == "polars":
        return _as_polars(written, given)
    return _as_arrow(written, given) if library == "pyarrow" else written


def _converted(X: Any) -> pd.DataFrame:
    if type(X).__module__.split(".")[0] != "polars":
        frame: pd.DataFrame = X.to_pandas()
        return frame
    import polars

    huge = [name for name, dtype in X.schema.items() if str(dtype) in ("Int128", "UInt128")]
    X = X.with_columns(polars.col(name).cast(polars.Float64) for name in huge) if huge else X
    # Whole numbers with gaps would become floats.
    gaps = [name for name, dtype in X.schema.items() if dtype.is_integer() and X[name].null_count()]
    frame = X.to_pandas()
    return frame.astype(dict.fromkeys(gaps, "Int64"))


def _plain(values: pd.Series[Any]) -> pd.Series[Any] | None:
    """A column in the type in which it is read; None if that is its own."""
    kind = values.dtype
    if isinstance(kind, pd.ArrowDtype):
        name = str(kind.pyarrow_dtype)
        if name == "string_view":  # pandas knows it by name only
            words = values.array.__arrow_array__().to_pylist()
            return pd.Series(words, index=values.index, name=values.name, dtype="str")
        return values.astype(np.float64) if name.startswith("decimal") else None
    if not any(isinstance(value, Decimal) for value in values.array):
        return None
    numbers = [_double(value) for value in values.tolist()]
    return pd.Series(numbers, index=values.index, name=values.name, dtype=object).infer_objects()


def _double(value: Any) -> Any:
    """A decimal as a double, and what is missing as such; everything else as it is."""
    if isinstance(value, Decimal):
        return np.nan if value.is_nan() else float(value)
    return np.nan if value is pd.NA or value is pd.NaT else value


def _as_polars(written: pd.DataFrame, given: Any) -> Any:
    """A table of polars with the types of another, but where a type would lose something."""
    found = type(given)(written)
    columns = {}
    for name, dtype in given.schema.items():
        cast = found[name].cast(dtype, strict=False)
        columns[name] = cast if cast.cast(found[name].dtype, strict=False).equals(found[name]) else found[name]
    return type(given)(columns)


def _as_arrow(written: pd.DataFrame, given: Any) -> Any:
    """The same for a table of Arrow."""
    import pyarrow as pa

    found = pa.Table.from_pandas(written, preserve_index=False)
    for i, field in enumerate(given.schema):
        column = found.column(i)
        try:
            cast = column.cast(field.type)
            whole = cast.cast(column.type).equals(column)
        except pa.ArrowException:  # a type that cannot hold it is widened
            continue
        if whole:
            found = found.set_column(i, field.name, cast)
    return found
