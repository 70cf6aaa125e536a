"""What a model says of itself, its columns and its labels, checked before anything relies on it."""

from __future__ import annotations

from collections import Counter
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning

from evenhand.auditing.errors import AuditError, short

AGAIN = "Fit the model again, and save it again."


def names_of(model: Any) -> list[str] | None:
    """Names of the columns that a model was fitted with; None if it says none."""
    told = _told(model, "feature_names_in_")
    if told is None:
        return None
    try:
        names = [str(name) for name in told]
    except TypeError:
        raise AuditError(f"The model's feature_names_in_ must be a list of names, got {told!r}. {AGAIN}") from None
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None or not names or np.ndim(told) != 1:
        problem = "is empty" if not names else f"names {twice!r} twice" if twice is not None else "has no single row"
        raise AuditError(f"The model's feature_names_in_ {problem}. {AGAIN}")
    return names


def width_of(model: Any) -> int | None:
    """How many columns a model takes; None if it does not say so."""
    names, told = names_of(model), _told(model, "n_features_in_")
    if told is None:
        return None if names is None else len(names)
    if isinstance(told, bool) or not isinstance(told, Integral) or told < 1:
        raise AuditError(f"The model's n_features_in_ must be a whole number >= 1, got {told!r}. {AGAIN}")
    if names is not None and len(names) != told:
        raise AuditError(f"The model takes {told} columns (n_features_in_) and has {len(names)} names. {AGAIN}")
    return int(told)


def said(message: Warning | str) -> str:
    """A warning that came with a model."""
    if isinstance(message, InconsistentVersionWarning):
        before, now = message.original_sklearn_version, message.current_sklearn_version
        return f"The model was saved with scikit-learn {before} and opened with {now}: predictions may differ."
    return " ".join(str(message).split())


def check_labels(classes: Any) -> None:
    """Refuse labels that do not tell decisions apart."""
    known = classes.tolist() if isinstance(classes, np.ndarray) and classes.ndim else classes
    if not isinstance(known, list | tuple) or any(isinstance(label, list | tuple | np.ndarray) for label in known):
        raise AuditError(f"The model's classes_ must be a list of labels, got {known!r}: one output is needed.")
    try:
        twice = next((label for label, count in Counter(known).items() if count > 1), None)
    except TypeError:
        raise AuditError(f"The model's labels must be texts or numbers, got {known[:3]!r}. {AGAIN}") from None
    if twice is not None:
        raise AuditError(f"The model's classes_ names {twice!r} twice. {AGAIN}")
    if any(label is None or label != label for label in known):
        raise AuditError(f"The model's classes_ holds a label that is missing: {known!r}. {AGAIN}")
    if len(known) < 2:
        only = f"one label only ({known[0]!r})" if known else "no label"
        raise AuditError(f"The model knows {only}: there is nothing to change to.")


def _told(model: Any, attribute: str) -> Any:
    """An attribute, or None; those of pipelines are code that asks their steps."""
    try:
        return getattr(model, attribute, None)
    except Exception as error:  # steps that are none raise whatever they stumble over
        raise AuditError(f"{type(model).__name__} is not whole, its {attribute} fails with {short(error)}.") from error
