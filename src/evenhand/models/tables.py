"""Models seen from the tables that people come in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from evenhand.models.base import View, view
from evenhand.models.encoders import has_encoders, table_view
from evenhand.models.pipeline_steps import flat_pipeline
from evenhand.models.whole_numbers import on_whole_numbers
from evenhand.sets import Affine
from evenhand.table.column import Column
from evenhand.table.frames import as_frame
from evenhand.table.layout import Layout
from evenhand.table.people import Reader, is_frame
from evenhand.table.schema import Schema
from evenhand.types import FloatArray


def view_of(model: Any, X: Any = None, schema: Schema | None = None) -> View:
    """A fitted model with regions, seen from tables like `X`.

    Whole numbers of a DataFrame stay whole and its flags are levels; an array holds numbers that may take any value.

    Parameters
    ----------
    model : fitted classifier, Pipeline or search
        Of a kind that has regions (see :func:`view`).
    X : table, optional
        People like those that will be explained; a DataFrame is needed if the model has encoders.
    schema : Schema, optional
        What the columns are; inferred from a DataFrame if left out.
    """
    if has_encoders(model) or (is_frame(X) and _takes_apart(model) and not _numeric(as_frame(X))):
        if X is None:
            raise ValueError(
                "What the columns of a raw table do is learned from a table: fit(model, X), with a DataFrame."
            )
        return table_view(model, X, schema)
    bare = view(model)
    if is_frame(X):
        return _in_frame(bare, as_frame(X), schema)
    if schema is None:
        return bare
    if len(schema) != bare.n_features:
        raise ValueError(f"The schema has {len(schema)} columns, the model takes {bare.n_features}.")
    return _with_schema(bare, schema, None)


def _takes_apart(model: Any) -> bool:
    """Whether a model's first step looks at columns one by one, and may leave some out."""
    inside = flat_pipeline(model)
    return isinstance(inside, Pipeline) and isinstance(inside.steps[0][1], ColumnTransformer)


def _numeric(frame: pd.DataFrame) -> bool:
    return all(pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes)


def needs_numbers(what: str, seen: View) -> TypeError:
    """Why something is not there for a table with levels or steps, and what to do instead."""
    columns = seen.schema.columns.items()
    limited = [(n, c) for n, c in columns if not c.is_number or c.step or c.bounds]
    name, column = next(iter(limited or columns))
    has = "has levels" if not column.is_number else "moves in steps" if column.step else "has bounds or gaps"
    return TypeError(
        f"{what} needs a table of numbers that may take any value, without levels and steps; {name!r} {has}. If all "
        "columns may, pass schema=Schema.numbers(X) to the method; otherwise measure with instability() or "
        "worst_case(), and explain with Closest or Plausible."
    )


def _in_frame(bare: View, frame: pd.DataFrame, schema: Schema | None) -> View:
    names = bare.feature_names
    if names is not None:
        lost = [name for name in names if name not in frame.columns]
        if lost:
            raise ValueError(f"The table has no column {lost[0]!r}, with which the model was fitted.")
        frame = frame[list(names)]
    if frame.shape[1] != bare.n_features:
        raise ValueError(f"Expected a table with {bare.n_features} columns, got shape {frame.shape}.")
    words = [str(name) for name, kind in frame.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]
    if words:
        raise ValueError(f"Columns {', '.join(words)} are not numeric; encode or leave them out.")
    return _with_schema(bare, Schema.infer(frame) if schema is None else schema.following(frame), frame)


def _with_schema(bare: View, schema: Schema, frame: pd.DataFrame | None) -> View:
    """The view of a model of numbers from a table with steps and flags."""
    named = bare.reader.named
    if schema.continuous:
        return replace(bare, reader=Reader(schema, named=named))
    numbers = np.flatnonzero(schema.number)
    categories = np.flatnonzero(~schema.number)
    values = {int(j): _values(schema.names[j], schema.column(int(j))) for j in categories}
    start = np.cumsum([0, *(len(values[int(j)]) for j in categories)]).astype(np.int64)
    known = np.concatenate([np.zeros(0, dtype=bool), *(np.isfinite(values[int(j)]) for j in categories)])
    layout = Layout(numbers, categories, start, known)
    raw = np.zeros((len(schema), layout.width))  # from expanded rows to the model's inputs
    raw[numbers, np.arange(len(numbers))] = 1.0
    for b, j in enumerate(categories):
        raw[j, layout.block(b)] = np.nan_to_num(values[int(j)])
    assert bare.encode is not None
    encode = Affine(raw, np.zeros(len(schema))).then(bare.encode)
    like = None if frame is None else frame.iloc[:0]
    reader = Reader(schema, named=named, known=layout.refused(schema), like=like, values=values)
    seen = View(bare.model, bare.classes, reader, encode, bare.latent, layout, bare.coarse)
    return on_whole_numbers(seen, np.zeros(len(schema)))


def _values(name: str, column: Column) -> FloatArray:
    """The numbers that levels are to a model of numbers; NaN for a missing one, which it does not take."""
    try:
        return np.array([np.nan if level is None else float(level) for level in column.levels])
    except (TypeError, ValueError):
        raise ValueError(
            f"The levels of {name!r} are words, such as {column.levels[0]!r}, but the model takes numbers: put an "
            "encoder in front of it, in a Pipeline, and pass that."
        ) from None
