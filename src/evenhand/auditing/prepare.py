"""A table, a model and options that fit each other: everything that a user can get wrong is checked here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.auditing.errors import AuditError
from evenhand.auditing.fitting import Setup, set_up
from evenhand.auditing.model_files.told import names_of, width_of
from evenhand.auditing.model_view import door, view_of
from evenhand.auditing.options import Options
from evenhand.auditing.sources import Frame, Source, as_source, check_columns
from evenhand.auditing.survey import Survey, survey
from evenhand.explaining.targets import followed
from evenhand.models import View
from evenhand.randomness import chosen

SAMPLE = 20_000  # people from whom columns, spreads and densities are learned
FEW_SEARCHED = 1000  # people that a model without regions is searched for, unless told otherwise
LABEL = "label of the person"

Report = Callable[[str, int, int], object]


@dataclass
class Prepared:
    """A table, a model and options that fit each other."""

    source: Source
    features: list[str]
    survey: Survey
    setup: Setup
    target: Any
    options: Options
    order: npt.NDArray[np.intp]  # all rows in random order, for samples
    explained: int  # rows that are explained, the first ones of `order`


def prepare(model: Any, X: Any, y: Any, options: Options) -> Prepared:
    """Check that model, table and options fit, and fit the methods."""
    source, label, sensitive = _joined(as_source(X), y, options)
    features = _features(model, source, label, sensitive, options)
    for columns, what in (
        (features, "features"),
        (sensitive, "sensitive"),
        ([label] if label else [], "label"),
        ([options.id] if options.id else [], "id"),
    ):
        check_columns(source, columns, what)
    order = np.argsort(chosen(options.seed, np.arange(source.rows, dtype=np.uint64), 2**62), kind="stable")
    keep = np.zeros(source.rows, dtype=bool)
    keep[order[:SAMPLE]] = True
    surveyed = survey(source, features, label, sensitive, options.id, keep)
    if options.id is None and isinstance(source, Frame):
        if source.frame.index.has_duplicates:
            raise AuditError(
                "The table's index has the same label twice, and it says who is who: use reset_index(drop=True)."
            )
        surveyed.ids = source.frame.index
    # In random order, so that the first of them are as good as any: files are often sorted.
    rank = np.empty(source.rows, dtype=np.int64)
    rank[order] = np.arange(source.rows)
    surveyed.sample = surveyed.sample.iloc[np.argsort(rank[surveyed.sample.index.to_numpy()], kind="stable")]
    labels = None if surveyed.labels is None else surveyed.labels.loc[surveyed.sample.index].to_numpy()
    view, exact = view_of(model, surveyed.sample, source.name)
    _check_labels(surveyed, view, source)
    with door(model):
        _check_missing(surveyed, view, source)
    target = _target(options.target, view)
    setup = set_up(model, view, exact, surveyed.sample, labels, options)
    if surveyed.missing:
        counts = ", ".join(f"{name} ({count:,} rows)" for name, (_, count) in surveyed.missing.items())
        setup.notes.append(f"Missing values, for which the model takes something else: {counts}.")
    if target is None:
        setup.notes.append(
            "No target is named: everybody is explained towards the cheapest other label, favourable or not."
        )
    if target is None and len(view.classes) > 2:
        setup.notes.append(
            "No target is named: a person's variations and certificates are held to the label that was cheapest for "
            "the person. That another label may become the cheapest is not measured."
        )
    if label in features:
        setup.notes.append(f"The label {label!r} is also an input of the model.")
    explained = source.rows
    if options.explain is not None or not setup.exact:
        explained = min(source.rows, options.explain or FEW_SEARCHED)
    if explained < source.rows:
        setup.notes.append(f"{explained:,} people of {source.rows:,}, chosen at random, were explained.")
    return Prepared(source, features, surveyed, setup, target, options, order, explained)


def _joined(source: Source, y: Any, options: Options) -> tuple[Source, str | None, list[str]]:
    """The table with labels and sensitive columns that were given beside it."""
    label, sensitive = options.label, options.sensitive_names()
    beside = hasattr(options.sensitive, "columns")
    if y is None and not beside:
        return source, label, sensitive
    if not isinstance(source, Frame):
        raise AuditError("With a file, name the label and the sensitive columns; they cannot be given beside it.")
    frame = source.frame
    if y is not None:
        if label is not None:
            raise AuditError(f"Labels are given twice: y and label = {label!r}. Give one of them.")
        values = np.asarray(_following(y, frame, "y"))
        if values.shape != (len(frame),):
            raise AuditError(f"y has shape {values.shape}, the table has {len(frame)} rows: one label each.")
        label, frame = LABEL, frame.copy(deep=False)
        frame[LABEL] = values
    if beside:
        extra = as_source(options.sensitive)
        if extra.rows != len(frame):
            raise AuditError(f"sensitive has {extra.rows} rows, the table has {len(frame)}.")
        table = next(extra.batches(extra.columns, max(extra.rows, 1)), pd.DataFrame(columns=extra.columns))
        twice = [name for name in extra.columns if name in frame.columns]
        if twice:
            raise AuditError(
                f"The table has a column {twice[0]!r}, and sensitive has another one: name it in sensitive instead."
            )
        if isinstance(options.sensitive, pd.DataFrame):
            table.index = options.sensitive.index
        frame = frame.copy(deep=False)
        for name in extra.columns:
            frame[name] = np.asarray(_following(table[name], frame, "sensitive"))
    return Frame(frame, source.name), label, sensitive


def _following(values: Any, frame: pd.DataFrame, name: str) -> Any:
    """What was given beside the table, in the order of its people."""
    if not isinstance(values, pd.Series) or len(values) != len(frame):
        return values
    try:
        return followed(values, frame.index, name)
    except ValueError as error:
        raise AuditError(str(error)) from None


def _features(model: Any, source: Source, label: str | None, sensitive: Sequence[str], options: Options) -> list[str]:
    """The columns that the model takes: its own, those that are named, or all that are nothing else."""
    fitted_with, width = names_of(model), width_of(model)
    if options.features is not None:
        features = [str(name) for name in options.features]
        if fitted_with is not None and set(fitted_with) != set(features):
            odd = sorted(set(fitted_with) ^ set(features))
            raise AuditError(
                f"features: the model was fitted with {', '.join(fitted_with)}; what differs: {', '.join(odd)}. Leave "
                "features out to use the model's own."
            )
        if width is not None and width != len(features):
            raise AuditError(f"features: {len(features)} are listed, and the model is expecting {width} features.")
        return fitted_with or features
    if fitted_with is not None:
        return fitted_with
    taken = {label, options.id, *sensitive}
    features = [name for name in source.columns if name not in taken]
    if width is not None and width != len(features):
        raise AuditError(
            f"The model takes {width} columns and has no names for them; the table has "
            f"{len(features)} besides label, id "
            f"and sensitive columns: {', '.join(features)}. List the model's columns under features."
        )
    return features


def _check_labels(surveyed: Survey, view: View, source: Source) -> None:
    if surveyed.labels is None:
        return
    gone = surveyed.labels.isna().to_numpy()
    if gone.any():
        raise AuditError(
            f"label: row {int(np.argmax(gone))} of {source.name} has none ({int(gone.sum()):,} rows "
            "in all). Leave those rows out."
        )
    known = set(view.classes.tolist())
    values = surveyed.labels.unique().tolist()
    strange = [value for value in values if value not in known]
    if strange:
        raise AuditError(
            f"label: {source.name} has the label {strange[0]!r}, which the model does not know; it knows "
            f"{', '.join(map(repr, view.classes.tolist()))}. Is it the right column, and spelled as in training?"
        )
    if len(values) < 2:
        raise AuditError(
            f"label: all {source.rows:,} rows of {source.name} have the label {values[0]!r}. An "
            "audit takes people with both decisions."
        )


def _check_missing(surveyed: Survey, view: View, source: Source) -> None:
    """A missing value that the model cannot take is a mistake in the table or in the pipeline."""
    for name, (row, count) in surveyed.missing.items():
        first_row = surveyed.sample.loc[[row]]
        if not view.reader.plain and np.isfinite(view.read(first_row)[0, view.schema.names.index(name)]):
            continue
        who = surveyed.ids[row]
        raise AuditError(
            f"Column {name!r} of {source.name} is missing in {count:,} rows, the first of them "
            f"row {who}, and the model has "
            "no imputer for it (or has to be searched, which takes complete rows). Put a SimpleImputer into the "
            "model's pipeline, or leave those rows out."
        )


def _target(target: Any, view: View) -> Any:
    """The wanted label as the model has it; TOML knows fewer types than labels."""
    if target is None:
        return None
    classes = view.classes.tolist()
    for label in classes:
        if label == target and isinstance(label, bool) == isinstance(target, bool):
            return label
    spelled = [label for label in classes if str(label) == str(target)]
    if len(spelled) != 1:
        raise AuditError(f"target: the model does not know {target!r}; it knows {', '.join(map(repr, classes))}.")
    return spelled[0]
