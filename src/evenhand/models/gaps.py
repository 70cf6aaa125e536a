"""What a pipeline makes of values that are missing: it is asked, as it is about levels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand.table.people import GAPS, Reader, kind_of_gap
from evenhand.types import FloatArray

ASKED = 200  # people of whom a value is missing


def checked_gaps(reader: Reader, shown: Callable[[Any], FloatArray], frame: pd.DataFrame) -> Reader:
    """The reader that takes a missing value for what the pipeline takes it for, or not at all.

    An encoder may know None and NaN as two levels, and a column with two imputers has no number that stands for a
    missing one: such people cannot be read, and are told why.

    Parameters
    ----------
    reader : Reader
        As it is learned from a table: one number and one kind of gap per column.
    shown : callable
        People in the form that the model takes, as its last step sees them.
    frame : DataFrame
        People, of whom one is asked about.
    """
    codes = reader.read(frame).codes
    readable = np.flatnonzero(np.isfinite(codes).all(axis=1))
    if reader.fill is None or not len(readable):
        return reader
    home = codes[readable[:1]]
    fill = reader.fill.copy()
    alike = {}
    for j, (name, column) in enumerate(reader.schema.columns.items()):
        if column.is_number and np.isfinite(fill[j]):
            number = {"nan": np.nan}
            tried = (fill[j], float(np.float32(fill[j])))  # an imputer that was fitted with singles imputes singles
            fits = (value for value in tried if dict(_same(reader, shown, home, j, value, number))["nan"])
            fill[j] = next(fits, np.nan)
        elif not column.is_number and None in column.levels:
            same = dict(_same(reader, shown, home, j, column.position(None), GAPS))
            alike[name] = frozenset(kind for kind, is_same in same.items() if is_same)
    return replace(reader, fill=fill, alike=alike)


def asked_gaps(reader: Reader, predict: Callable[[Any], Any], frame: pd.DataFrame) -> Reader:
    """The same for a model that can only be asked for labels: which ways to be missing it does not tell apart.

    It is asked about the people of whom something is missing, written in each way.
    """
    alike = {}
    for j, name in enumerate(reader.schema.names):
        gone = np.flatnonzero(frame[name].isna())[:ASKED]
        if name not in reader.gaps or not len(gone):
            continue
        codes = reader.read(frame.iloc[gone]).codes
        codes = codes[np.isfinite(codes).all(axis=1)]
        if not len(codes):
            continue
        expected = predict(reader.show(codes))
        same = {kind_of_gap(reader.gaps[name])}
        for kind in GAPS.keys() - same:
            try:
                found = predict(_written(reader, codes, j, GAPS[kind]))
            except (TypeError, ValueError):  # it refuses what is written like that
                continue
            same |= {kind} if np.array_equal(found, expected) else set()
        alike[name] = frozenset(same)
    return replace(reader, alike=alike)


def _same(
    reader: Reader, shown: Callable[[Any], FloatArray], home: FloatArray, j: int, code: float, gaps: dict[str, Any]
) -> Iterator[tuple[str, bool]]:
    """Which kinds of a missing value are to the pipeline what a code of the j-th column is."""
    row = home.copy()
    row[:, j] = code
    try:
        expected = shown(reader.show(row))
    except ValueError:  # the pipeline takes no missing value here
        yield from dict.fromkeys(gaps, False).items()
        return
    for kind, value in gaps.items():
        try:
            found = shown(_written(reader, row, j, value))
        except (TypeError, ValueError):  # an encoder cannot compare pandas' NA, or refuses what it has not seen
            yield kind, False
        else:
            yield kind, bool(np.array_equal(found, expected))


def _written(reader: Reader, codes: FloatArray, j: int, value: Any) -> Any:
    """People as the model is shown them, with the j-th column missing, in one way to write it."""
    people: Any = reader.show(codes)
    values = np.full(len(codes), value, dtype=np.float64 if reader.schema.number[j] else object)
    if isinstance(people, pd.DataFrame):
        people = people.copy()
        people[reader.schema.names[j]] = values
        return people
    people = people.astype(object)
    people[:, j] = values
    return people
