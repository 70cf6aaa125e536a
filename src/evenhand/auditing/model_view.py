"""A model as an audit sees it: with regions, or as a function that is only asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError

from evenhand.auditing.errors import AuditError
from evenhand.models import View, blackbox
from evenhand.models import view_of as view_in_table
from evenhand.models.encoders import has_encoders

TRIED = 50  # rows until it is clear that the model takes none


def view_of(model: Any, sample: pd.DataFrame, table: str) -> tuple[View, bool]:
    """The model as regions if it has any, else as a function that is only asked; and whether it has.

    Parameters
    ----------
    model : fitted classifier
    sample : DataFrame
        Features of some people.
    table : str
        What to call the table in messages.
    """
    if hasattr(model, "__sklearn_tags__") and is_regressor(model):
        raise AuditError(f"{last_step(model)} predicts numbers; an audit needs a classifier, which decides.")
    named = getattr(model, "feature_names_in_", None) is not None or has_encoders(model)
    try:
        viewed, exact = _view(model, _accepted(model, sample, named, table), named)
    except NotFittedError as error:
        raise AuditError(str(error)) from None
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, AuditError) else AuditError(str(error)) from None
    if len(viewed.classes) < 2:
        raise AuditError(
            f"The model knows one label only ({viewed.classes.tolist()[0]!r}): there is nothing to change to."
        )
    return viewed, exact


def last_step(model: Any) -> str:
    """The kind of a model, or of the last step of a pipeline."""
    return type(model.steps[-1][1] if hasattr(model, "steps") else model).__name__


def _view(model: Any, sample: pd.DataFrame, named: bool) -> tuple[View, bool]:
    try:
        return view_in_table(model, sample), True
    except TypeError:
        return blackbox(model, sample if named else sample.to_numpy()), False


def _accepted(model: Any, sample: pd.DataFrame, named: bool, table: str) -> pd.DataFrame:
    """The rows without levels that the model refuses; people with those are counted later, not learned from."""

    def refusal(part: pd.DataFrame) -> str:
        try:
            answer = np.asarray(model.predict(part if named else part.to_numpy()))
        except (TypeError, ValueError, AttributeError) as error:
            if isinstance(error, NotFittedError):
                raise
            return str(error).strip().splitlines()[0]
        if answer.shape != (len(part),):
            raise AuditError(
                f"The model predicts an array of shape {answer.shape} for {len(part)} people: one output is needed."
            )
        return ""

    problem = refusal(sample)
    if not problem:
        return sample
    home = next((sample.iloc[[i]] for i in range(min(TRIED, len(sample))) if not refusal(sample.iloc[[i]])), None)
    if home is None:
        gone = [
            f"{name!r} is missing in every row, it has no value at all" for name in sample if sample[name].isna().all()
        ]
        words = [repr(name) for name, kind in sample.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]
        raise AuditError(
            f"The model refuses every row of {table} that was tried: {problem.rstrip('.')}."
            + (f" Column {'; '.join(gone)}." if gone else "")
            + (f" Columns that hold no numbers: {', '.join(words)}." if words else "")
            + " Does the table look like the one that the model was fitted on?"
        )
    keep = np.ones(len(sample), dtype=bool)
    for name in sample:
        if pd.api.types.is_numeric_dtype(sample[name].dtype):
            continue
        levels = sample[name].drop_duplicates()
        for level in levels.index:
            alone = home.copy()
            alone[name] = levels.loc[[level]].to_numpy()
            if refusal(alone):
                bad = levels.loc[level]
                keep &= ~(sample[name].isna() if pd.isna(bad) else sample[name] == bad).to_numpy(dtype=bool)
    return sample[keep]
