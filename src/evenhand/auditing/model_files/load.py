"""`load_model`: a fitted model from a file of any known kind, or from a Python module; and what is wrong with it."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from evenhand.auditing.errors import AuditError, short
from evenhand.auditing.model_files.modules import imported
from evenhand.auditing.model_files.registry import FORMATS, ModelFile, possible
from evenhand.auditing.model_files.told import said, width_of
from evenhand.auditing.model_files.tried import open_elsewhere
from evenhand.models.base import check_fitted


@dataclass(frozen=True)
class LoadedModel:
    """A fitted model and where it is from.

    Attributes
    ----------
    model : object with ``predict``
        Fitted.
    name : str
        The file's name, or ``module:attribute``.
    kind : str
        Such as "Pipeline ending in LogisticRegression".
    sha256 : str or None
        Of the file; None for ``module:attribute``.
    warning : str or None
        What its reader should know: a pickle was opened, versions differ.
    """

    model: Any
    name: str
    kind: str
    sha256: str | None
    warning: str | None = None


def load_model(source: str, folder: Path, *, trust_pickle: bool = False) -> LoadedModel:
    """Load a fitted model.

    Parameters
    ----------
    source : str
        A path relative to `folder`, or ``module:attribute``, where the attribute is a fitted model or a function
        without arguments that returns one.
    folder : Path
        Where paths start; modules are looked for here and in the current directory first.
    trust_pickle : bool
        Whether pickles, which can run any code, are opened.

    Raises
    ------
    AuditError
        Whatever is wrong with the source, the file or the model.
    """
    path = folder.absolute() / source
    digest, notes = None, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if _is_module(source, path):
            name, model = source, imported(source, folder.absolute())
        else:
            name, suffix = path.name, path.suffix.lower()
            kind_of_file, data = _content(path, suffix, trust_pickle)
            digest = hashlib.sha256(data).hexdigest()
            if kind_of_file.unsafe:
                notes.append(
                    f"{name} is a {kind_of_file.unsafe}, which can run any code: it was opened because you trust it."
                )
            read = kind_of_file.read
            model = open_elsewhere(read, data, path) if kind_of_file.tried else read(data, path)
        kind = _checked(model, source)
    notes += [said(entry.message) for entry in caught if issubclass(entry.category, UserWarning)]
    return LoadedModel(model, name, kind, digest, " ".join(dict.fromkeys(notes)) or None)


def _is_module(source: str, path: Path) -> bool:
    """Whether the source is module:attribute: a file that exists, or is called like a model, is a file."""
    module, colon, attribute = source.partition(":")
    dotted = all(part.isidentifier() for part in (*module.split("."), *attribute.split(".")))
    if not colon or not dotted or path.suffix.lower() in FORMATS:
        return False
    try:
        return not path.exists()
    except OSError:  # too long to be a file's name
        return True


def _content(path: Path, suffix: str, trust_pickle: bool) -> tuple[ModelFile, bytes]:
    """What kind of file it is, and what it holds, before anything of it is opened."""
    try:
        if path.is_dir():
            raise AuditError(f"{path} is a directory. A model is {possible()}.")
        if suffix not in FORMATS:
            raise AuditError(f"{path.name} is no kind of model that evenhand can open. Possible: {possible()}.")
        if not path.is_file():
            raise AuditError(f"There is no file {path}. Paths of models start at the folder of the configuration.")
        unsafe = FORMATS[suffix].unsafe
        if unsafe and not trust_pickle:
            raise AuditError(
                f"{path} is a {unsafe}, and {unsafe} files can run any code when they are opened. Save the model with "
                "skops.io.dump(model, 'model.skops'), or pass --trust-pickle if you made this file yourself."
            )
        data = path.read_bytes()
    except OSError as error:
        raise AuditError(f"{path} cannot be read: {error.strerror or error}.") from None
    if not data:
        raise AuditError(f"{path} is empty. Save the model again.")
    return FORMATS[suffix], data


def _checked(model: Any, source: str) -> str:
    """What kind of model it is, if it is a fitted one."""
    try:
        if isinstance(model, type) or not callable(getattr(model, "predict", None)):
            raise AuditError(
                f"{source} holds {type(model).__name__}, which has no predict method. Save a fitted classifier, or an "
                "object whose predict(X) returns one label per row."
            )
        if hasattr(model, "fit"):
            check_fitted(model)
        width_of(model)  # and the names of columns
        return _kind(model)
    except AuditError:
        raise
    except NotFittedError:
        raise AuditError(
            f"{source} holds a {type(model).__name__} that is not fitted: call its fit(X, y), then save it again."
        ) from None
    except Exception as error:  # what tells whether a model is fitted is code of the model
        raise AuditError(f"{source} holds a {type(model).__name__} that is not whole: {short(error)}.") from error


def _kind(model: Any) -> str:
    if isinstance(model, Pipeline):
        return f"Pipeline ending in {_kind(model.steps[-1][1])}"
    return str(getattr(type(model), "kind_of_model", type(model).__name__))
