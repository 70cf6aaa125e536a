"""A model as an audit sees it: with regions, or as a function that is only asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError

from evenhand.auditing.errors import AuditError, short
from evenhand.auditing.model_files.told import check_labels
from evenhand.models import View, blackbox
from evenhand.models import view_of as view_in_table
from evenhand.models.encoders import has_encoders
from evenhand.table.schema import Schema

TRIED = 50  # rows until it is clear that the model takes none
LONGEST = 300  # letters of what a model says
MOST_REFUSED = 20  # levels of a column; a column with more is not one that the model was fitted on


@contextmanager
def door(model: Any) -> Iterator[None]:
    """What a model raises that is asked, or looked into, ends in a sentence.

    A model is code and arrays of somebody else. If its parts do not fit each other, it raises whatever it stumbles
    over, an IndexError as well as a ValueError, and so does what reads its regions off its parts.
    """
    try:
        yield
    except AuditError:
        raise
    except (TypeError, ValueError) as error:  # these are sentences already, of evenhand or of the model itself
        raise AuditError(str(error) or short(error)) from error
    except (Exception, SystemExit) as error:
        raise AuditError(
            f"{last_step(model)} fails with {short(error)}. Either its parts do not fit each other, then fit it and "
            "save it again; or its own code is wrong, then the error that this one comes from says where."
        ) from error


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
    with door(model):
        if hasattr(model, "__sklearn_tags__") and is_regressor(model):
            raise AuditError(f"{last_step(model)} predicts numbers; an audit needs a classifier, which decides.")
        if getattr(model, "classes_", None) is not None:
            check_labels(model.classes_)
        named = getattr(model, "feature_names_in_", None) is not None or has_encoders(model)
        accepted, labels = _accepted(model, sample, named, table)
        Schema.infer(accepted)  # refuses too many levels before anything is as wide as they are
        viewed, exact = _view(model, accepted, named)
        check_labels(viewed.classes)
        known = set(viewed.classes.tolist())
        strange = [label for label in labels.tolist() if label not in known]
        if strange:
            raise AuditError(
                f"The model predicts {strange[0]!r}, which is not among its classes_ "
                f"({', '.join(map(repr, viewed.classes.tolist()))}). Fit the model again, and save it again."
            )
    return viewed, exact


def last_step(model: Any) -> str:
    """The kind of a model, or of the last step of a pipeline."""
    steps = getattr(model, "steps", None)
    return type(steps[-1][1] if isinstance(steps, list) and steps else model).__name__


def _view(model: Any, sample: pd.DataFrame, named: bool) -> tuple[View, bool]:
    try:
        return view_in_table(model, sample), True
    except TypeError:
        return blackbox(model, sample if named else sample.to_numpy()), False


def _accepted(model: Any, sample: pd.DataFrame, named: bool, table: str) -> tuple[pd.DataFrame, npt.NDArray[Any]]:
    """The rows without levels that the model refuses, and their labels; the others are counted later."""
    ask = _Asking(model, named)
    answer = ask(sample)
    if not isinstance(answer, str):
        return sample, answer
    problem = answer
    rows = (sample.iloc[[i]] for i in range(min(TRIED, len(sample))))
    home = next((row for row in rows if not isinstance(ask(row), str)), None)
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

        def refused(some: slice, levels: pd.Series[Any] = levels) -> bool:
            alone = home.iloc[np.zeros(some.stop - some.start, dtype=np.intp)].reset_index(drop=True)
            alone[levels.name] = levels.iloc[some].array
            return isinstance(ask(alone), str)

        bad = levels.iloc[_refused(refused, len(levels))]
        if len(bad) > MOST_REFUSED:
            raise AuditError(
                f"Column {name!r} of {table} has {len(levels):,} levels, and the model refuses more than "
                f"{MOST_REFUSED} of them, such as {bad.iloc[0]!r}: {problem.rstrip('.')}. Does the table look like the "
                "one that the model was fitted on? An encoder with handle_unknown='ignore' takes new levels."
            )
        absent = sample[name].isna().to_numpy()
        keep &= ~np.where(absent, bool(bad.isna().any()), sample[name].isin(bad.dropna()).to_numpy(dtype=bool))
    labels = ask(sample[keep]) if not keep.all() else answer
    return sample[keep], np.zeros(0) if isinstance(labels, str) else labels


class _Asking:
    """A model that is asked for labels: the labels, or why it refuses, in its own words."""

    def __init__(self, model: Any, named: bool) -> None:
        self.model, self.named = model, named

    def __call__(self, part: pd.DataFrame) -> npt.NDArray[Any] | str:
        try:
            answer = np.asarray(self.model.predict(part if self.named else part.to_numpy()))
        except NotFittedError:
            raise
        except (TypeError, ValueError, AttributeError) as error:
            return str(error).strip().partition("\n")[0][:LONGEST] or short(error)
        if answer.shape != (len(part),):
            raise AuditError(
                f"The model predicts an array of shape {answer.shape} for {len(part)} people: one output is needed."
            )
        return answer


def _refused(refused: Callable[[slice], bool], count: int) -> list[int]:
    """Which of some levels are refused, half by half; it stops where there are too many, so that few questions do."""
    found: list[int] = []
    todo = [slice(0, count)]
    while todo and len(found) <= MOST_REFUSED:
        some = todo.pop()
        if not refused(some):
            continue
        if some.stop - some.start == 1:
            found.append(some.start)
            continue
        middle = (some.start + some.stop) // 2
        todo += [slice(middle, some.stop), slice(some.start, middle)]
    return found
