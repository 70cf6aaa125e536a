"""Pipelines with encoders, seen from raw tables: what every level and every number adds to the model's last step.

Encoders are not read but asked: one row per level goes through the user's own pipeline.  So dropped, infrequent and
unknown levels are what the pipeline makes of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import KBinsDiscretizer

from evenhand.models.base import View, check_fitted, gap, view
from evenhand.models.gaps import checked_gaps
from evenhand.models.pipeline import seen_by
from evenhand.models.pipeline_steps import (
    ENCODERS,
    NAMING,
    all_steps,
    check_step,
    filled,
    first_encoders,
    flat_pipeline,
)
from evenhand.models.whole_numbers import LastStep, on_whole_numbers
from evenhand.sets import Affine
from evenhand.table.column import Column
from evenhand.table.frames import as_frame
from evenhand.table.layout import Layout
from evenhand.table.people import Reader, is_frame
from evenhand.table.schema import Schema
from evenhand.types import BoolArray, FloatArray

Image = Callable[[FloatArray], FloatArray]  # codes as the model's last step sees them
CHECKED = 500  # people on whom it is checked that columns add up
ASKED = 200  # values of a number of which it is checked that they lie on a line
CLOSE = 1e-8
LAST_BITS = 1e-14


def has_encoders(model: Any) -> bool:
    """Whether a model takes raw tables apart before it looks at numbers."""
    return any(isinstance(step, ENCODERS) for step in all_steps(flat_pipeline(model)))


def table_view(model: Any, X: Any, schema: Schema | None = None) -> View:
    """A fitted pipeline with encoders as regions over levels and numbers.

    Parameters
    ----------
    model : fitted classifier, Pipeline or search
        Whose last step has a region (see :func:`view`).
    X : DataFrame
        People like those that the model was fitted on: what columns look like is learned from them.
    schema : Schema, optional
        What the columns are; inferred from `X` if left out.
    """
    inside = flat_pipeline(model)
    check_fitted(inside)
    steps = [step for _, step in inside.steps] if isinstance(inside, Pipeline) else [inside]
    last = view(steps[-1])
    for step in steps[:-1]:
        check_step(step)
    frame = as_frame(X)
    fitted_with = seen_by(inside, "feature_names_in_")
    if fitted_with is not None:
        lost = [name for name in fitted_with if name not in frame.columns]
        if lost:
            raise ValueError(f"The table has no column {lost[0]!r}, with which the model was fitted.")
        frame = frame[list(fitted_with)]
    first = first_encoders(steps[0] if len(steps) > 1 else None, list(frame.columns))
    fill_of = {name: filled(first.get(name)) for name in frame.columns}
    inferred = schema is None
    schema = _with_codes(first, frame, schema)
    if inferred:
        schema = Schema({name: _steady(c, frame[name], fill_of[name]) for name, c in schema.columns.items()})
    if not len(frame):
        raise ValueError("The table has no rows: what columns do cannot be learned from it.")
    fill = np.array([fill_of[name] for name in schema.names])
    gaps = {name: gap(frame[name]) for name, column in schema.columns.items() if None in column.levels}
    reader = Reader(schema, named=fitted_with is not None, fill=fill, like=frame.iloc[:0], gaps=gaps)

    reader = checked_gaps(reader, LastStep(model, reader).of, frame)
    home, layout, encode = _learned(LastStep(model, reader), reader, frame, first)
    reader = replace(reader, known=layout.refused(schema))
    return on_whole_numbers(View(model, last.classes, reader, encode, last.latent, layout, last.coarse), home)


def with_codes(model: Any, X: Any, schema: Schema | None) -> Schema | None:
    """What columns are, for a model that is only asked: numbers that an encoder names are the levels that it knows.

    Parameters
    ----------
    model : fitted classifier
        Of any kind; of pipelines the first step is looked at.
    X : table
        People like those that the model was fitted on.
    schema : Schema, optional
        What the columns are; if left out, and nothing is named, it stays so.
    """
    inside = flat_pipeline(model)
    if not is_frame(X) or not isinstance(inside, Pipeline) or not has_encoders(inside):
        return schema
    frame, names = as_frame(X), seen_by(inside, "feature_names_in_")
    if names is not None:
        if not set(names) <= set(frame.columns):  # that is refused where the table is read
            return schema
        frame = frame[list(names)]
    first = first_encoders(inside.steps[0][1], list(frame.columns))
    if not any(isinstance(step, NAMING) and _is_number(frame[name]) for name, (step, _, _) in first.items()):
        return schema
    return _with_codes(first, frame, schema)


def _with_codes(first: dict[str, Any], frame: pd.DataFrame, schema: Schema | None) -> Schema:
    """The schema, or the one that a table suggests, with levels where an encoder names numbers: it knows no others."""
    named = [n for n, (step, _, _) in first.items() if isinstance(step, NAMING) and _is_number(frame[n])]
    if schema is None:
        return Schema.infer(frame, levels=[n for n in named if not set(frame[n].dropna().unique()) <= {0, 1}])
    schema = schema.following(frame)
    codes = {name: frame[name].unique().tolist() for name in named if schema[name].is_number}
    return Schema({n: c.over(codes[n]) if n in codes else c for n, c in schema.columns.items()})


def _steady(column: Column, values: pd.Series[Any], fill: float) -> Column:
    """A column that counts, unless a missing one is imputed as a fraction: steps from there are not whole."""
    if column.kind == "integer" and values.isna().any() and np.isfinite(fill) and fill != round(fill):
        return Column("numeric", weight=column.weight, bounds=column.bounds)
    return column


def _is_number(values: pd.Series[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype)


def _learned(
    seen: Image, reader: Reader, frame: pd.DataFrame, first: dict[str, Any]
) -> tuple[FloatArray, Layout, Affine]:
    """Ask the pipeline what each level and each number does, and check that it adds up."""
    schema = reader.schema
    codes = reader.read(frame).codes
    usable = np.flatnonzero(np.isfinite(codes).all(axis=1))
    if not len(usable):
        raise ValueError(f"No row of the table can be read: {schema.complaint(frame.iloc[0])}")
    home = codes[usable[0]]
    base = seen(home[None])[0]
    binned = {
        name: np.asarray(step.bin_edges_[i], dtype=np.float64)
        for name, (step, i, _) in first.items()
        if isinstance(step, KBinsDiscretizer) and schema[name].is_number
    }
    numbers = [j for j, (name, c) in enumerate(schema.columns.items()) if c.is_number and name not in binned]
    categories = [j for j in range(len(schema)) if j not in numbers]
    slopes = np.zeros((len(base), len(numbers)))
    for i, j in enumerate(numbers):
        slopes[:, i] = _slope(seen, home, j, codes[usable, j], schema)
    images, known, bins = [], [], {}
    for b, j in enumerate(categories):
        name = schema.names[j]
        column = schema[name]
        if name in binned:
            bins[b] = edges = binned[name]
            values = _inside_bins(edges, column)
            accepted = np.isfinite(values)
        else:
            values = np.arange(len(column.levels), dtype=np.float64)
            accepted = _accepted(seen, home, j, len(values))
        if not accepted.any():
            raise ValueError(f"The model's encoder accepts none of the levels of {name!r}: {list(column.levels)}.")
        rows = np.repeat(home[None], len(values), axis=0)
        rows[accepted, j] = values[accepted]
        images.append(seen(rows))
        known.append(accepted)
    start = np.cumsum([0, *map(len, known)]).astype(np.int64)
    layout = Layout(
        np.array(numbers, dtype=np.intp),
        np.array(categories, dtype=np.intp),
        start,
        np.concatenate([np.zeros(0, dtype=bool), *known]),
        bins,
    )
    encode = _added_up(slopes, images, known, base, home, layout)
    parts = np.abs(slopes) @ np.abs(codes[usable][:, numbers]).max(axis=0, initial=0.0)
    _check_sum(lambda some: encode(layout.expand(some)), seen, codes[usable], schema, parts)
    return home, layout, encode


def _added_up(
    slopes: FloatArray,
    images: list[FloatArray],
    known: list[BoolArray],
    base: FloatArray,
    home: FloatArray,
    layout: Layout,
) -> Affine:
    """The map from expanded rows: what each number and each level adds.

    A coordinate that depends on one category only has that category's values themselves, so that nothing is rounded;
    elsewhere the first level that is accepted adds nothing, and the offset is what is left of a whole person.
    """
    varies = np.array([(image[ok] != image[ok][0]).any(axis=0) for image, ok in zip(images, known, strict=True)])
    alone = ~slopes.any(axis=1) & (varies.reshape(-1, len(base)).sum(axis=0) == 1)
    blocks = []
    for image, ok, moved in zip(images, known, varies, strict=True):
        blocks.append(np.where(alone, np.where(moved, image, 0.0), image - image[int(np.argmax(ok))]).T)
    matrix = np.hstack([slopes, *blocks])
    rest = base - Affine(matrix, np.zeros(len(base)))(layout.expand(home[None]))[0]
    return Affine(matrix, np.where(alone, 0.0, rest))


def _slope(seen: Image, home: FloatArray, j: int, values: FloatArray, schema: Schema) -> FloatArray:
    """How the image moves with a number; refuses one that does not move it evenly.

    It is asked about many of the values that people have: a few points do not show the steps of a bin.
    """
    some = np.unique(values)
    some = some[np.linspace(0, len(some) - 1, min(len(some), ASKED)).astype(np.intp)]
    if len(some) == 1:
        some = np.array([some[0], some[0] + max(1.0, abs(some[0]))])
    rows = np.repeat(home[None], len(some), axis=0)
    rows[:, j] = some
    images = seen(rows)
    slope: FloatArray = (images[-1] - images[0]) / (some[-1] - some[0])
    off = np.abs(images[0] + np.outer(some - some[0], slope) - images)
    if (off > _rounding(images, np.abs(slope) * np.abs(some).max())).any():
        raise ValueError(
            f"Column {schema.names[j]!r} does not act linearly on the model's last step. If its numbers are names, "
            "make it levels, Column('categorical', levels=...); a KBinsDiscretizer has to be its first step."
        )
    return slope


def _rounding(images: FloatArray, parts: FloatArray) -> FloatArray:
    """By how much each coordinate may be off: a little of its own size, and the last bits of what it is made of."""
    size: FloatArray = CLOSE * np.abs(images).max(axis=0) + LAST_BITS * parts
    return size


def _accepted(seen: Image, home: FloatArray, j: int, count: int) -> BoolArray:
    """Which levels the pipeline transforms; encoders may refuse those that they have not seen."""
    rows = np.repeat(home[None], count, axis=0)
    rows[:, j] = np.arange(count)
    try:
        seen(rows)
    except ValueError:
        return np.array([_passes(seen, row) for row in rows])
    return np.ones(count, dtype=bool)


def _passes(seen: Image, row: FloatArray) -> bool:
    try:
        seen(row[None])
    except ValueError:
        return False
    return True


def _inside_bins(edges: FloatArray, column: Column) -> FloatArray:
    """A value inside of each bin; NaN where no whole number is."""
    low, high = edges[:-1], edges[1:]
    if column.kind != "integer":
        return (low + high) / 2
    value = np.ceil(low)
    return np.where((value < high) | (value == edges[-1]), value, np.nan)


def _check_sum(learned: Image, seen: Image, codes: FloatArray, schema: Schema, parts: FloatArray) -> None:
    """What was learned column by column has to hold for whole people."""
    some = codes[np.linspace(0, len(codes) - 1, min(len(codes), CHECKED)).astype(np.intp)]
    truth = seen(some)
    off = np.abs(learned(some) - truth) > _rounding(truth, parts)
    if off.any():
        row = int(np.flatnonzero(off.any(axis=1))[0])
        raise ValueError(
            f"The pipeline does not add up over columns: {int(off.any(axis=1).sum())} of {len(some)} people differ "
            f"from the sum of their columns, the first is {dict(zip(schema.names, some[row].tolist(), strict=True))}. "
            "Interactions between columns are not understood; use Penalized(...) or External(...)."
        )
