"""A first look at all rows of a table: a sample to learn from, labels, groups, ids, and what is missing."""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.auditing.errors import AuditError
from evenhand.auditing.sources import READ, Source

MANY = 30  # levels; if most of more are numbers, numbers were meant
# What a level can be: something that is the same again and again, and comes in an order.
LEVELS = (str, Number, np.generic, datetime.date, datetime.time, datetime.timedelta, pd.Period, pd.Interval)


@dataclass
class Survey:
    """What a first look at all rows found.

    Attributes
    ----------
    sample : DataFrame
        Features of some people, with everybody who has a level or a missing value that nobody before had.
    labels : Series or None
        Labels of all people.
    sensitive : DataFrame
        Sensitive columns of all people.
    ids : Index
        Who is who.
    missing : dict from column to (row, count)
        Features with missing values, and where the first one is.
    """

    sample: pd.DataFrame
    labels: pd.Series[Any] | None
    sensitive: pd.DataFrame
    ids: pd.Index
    missing: dict[str, tuple[int, int]]


def survey(
    source: Source,
    features: Sequence[str],
    label: str | None,
    sensitive: Sequence[str],
    id_column: str | None,
    keep: npt.NDArray[np.bool_],
) -> Survey:
    """Go through all rows once; `keep` says which rows go into the sample."""
    if not source.rows:
        raise AuditError(f"{source.name} has no rows: there is nobody to explain.")
    columns = list(
        dict.fromkeys([*features, *sensitive, *([label] if label else []), *([id_column] if id_column else [])])
    )
    seen: dict[str, set[Hashable]] = {name: set() for name in features}
    beside = {name: what for what, names in _beside(label, sensitive, id_column) for name in names}
    missing: dict[str, tuple[int, int]] = {}
    samples, labels, groups, ids = [], [], [], []
    for batch in source.batches(columns, READ):
        chosen = keep[batch.index.to_numpy()].copy()
        for name in features:
            _look(source.name, batch[name], seen[name], missing, chosen)
        for name, what in beside.items():
            _levels(source.name, batch[name], f"Name another column under {what}.")
        samples.append(batch.loc[chosen, list(features)])
        groups.append(batch[list(sensitive)])
        labels += [batch[label]] if label else []
        ids += [batch[id_column]] if id_column else []
    who = pd.Index(pd.concat(ids)) if id_column else pd.RangeIndex(source.rows)
    if who.hasnans:
        row = int(np.argmax(who.isna()))
        raise AuditError(f"id: row {row} of {source.name} (counted from 0) has no {id_column}: everybody needs one.")
    if id_column and who.has_duplicates:
        again = who[who.duplicated()][0]
        raise AuditError(
            f"id: two rows of {source.name} have the {id_column} {again!r}. Name a column that tells people apart, or "
            "leave id out: then rows are counted from 0."
        )
    return Survey(
        pd.concat(samples), pd.concat(labels) if label else None, pd.concat(groups), who.rename(None), missing
    )


def _beside(label: str | None, sensitive: Sequence[str], id_column: str | None) -> list[tuple[str, Sequence[str]]]:
    """Columns that are no features, by the key that names them."""
    return [("label", [label] if label else []), ("sensitive", sensitive), ("id", [id_column] if id_column else [])]


def _look(
    table: str,
    values: pd.Series[Any],
    seen: set[Hashable],
    missing: dict[str, tuple[int, int]],
    chosen: npt.NDArray[np.bool_],
) -> None:
    """Note missing values, and choose the first row of every level."""
    name, gone = str(values.name), values.isna().to_numpy()
    if gone.any():
        first, count = missing.get(name, (int(values.index[int(gone.argmax())]), 0))
        chosen[int(gone.argmax())] |= count == 0
        missing[name] = (first, count + int(gone.sum()))
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
        return
    codes, levels = _levels(table, values, "Leave it out of the model's inputs, or spread it over columns.")
    _check_numbers(table, values, len(levels))
    there, first_rows = np.unique(codes, return_index=True)
    for row, level in zip(first_rows[there >= 0], levels, strict=True):
        if level not in seen:
            seen.add(level)
            chosen[int(row)] = True


def _levels(table: str, values: pd.Series[Any], instead: str) -> tuple[npt.NDArray[np.intp], list[Hashable]]:
    """Positions of levels, -1 for missing ones, and the levels themselves; refuses what is none."""
    try:
        codes, uniques = pd.factorize(values)
    except TypeError:  # something in it cannot be hashed, and so is never the same again
        codes, levels = np.zeros(0, dtype=np.intp), [value for value in values if value is not None]
    else:
        levels = uniques.tolist()
    odd = [type(level) for level in levels if not isinstance(level, LEVELS)]
    if odd:
        kind, row = odd[0].__name__, next(row for row, value in values.items() if type(value) is odd[0])
        raise AuditError(
            f"Column {values.name!r} of {table} holds {kind} (row {row}): neither number nor level. {instead}"
        )
    return codes, levels


def _check_numbers(table: str, values: pd.Series[Any], levels: int) -> None:
    """Refuse numbers with a few words among them: as levels they would mean nothing."""
    if levels <= MANY or not pd.api.types.is_string_dtype(values.dtype):
        return
    present = values[values.notna()]
    words = pd.to_numeric(present, errors="coerce").isna()
    if words.any() and words.mean() < 0.5:
        row = words.index[int(np.argmax(words.to_numpy()))]
        raise AuditError(
            f"Column {values.name!r} of {table} holds text among numbers: {present.loc[row]!r} in row {row}."
        )
