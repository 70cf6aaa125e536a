"""A first look at all rows of a table: a sample to learn from, labels, groups, ids, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.auditing.errors import AuditError
from evenhand.auditing.sources import READ, Source

MANY = 30  # levels; if most of more are numbers, numbers were meant


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
    seen: dict[str, set[Any]] = {name: set() for name in features}
    missing: dict[str, tuple[int, int]] = {}
    samples, labels, groups, ids = [], [], [], []
    for batch in source.batches(columns, READ):
        chosen = keep[batch.index.to_numpy()].copy()
        for name in features:
            _look(source.name, batch[name], seen[name], missing, chosen)
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


def _look(
    table: str,
    values: pd.Series[Any],
    seen: set[Any],
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
    try:
        codes, levels = pd.factorize(values)
    except TypeError:
        row = values.index[0]
        raise AuditError(
            f"Column {name!r} of {table} holds {type(values.iloc[0]).__name__} (row {row}): neither number nor level. "
            "Leave it out of the model's inputs, or spread it over columns."
        ) from None
    _check_numbers(table, values, len(levels))
    for code, level in enumerate(levels.tolist()):
        if level not in seen:
            seen.add(level)
            chosen[int(np.argmax(codes == code))] = True


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
