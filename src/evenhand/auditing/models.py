"""Fitted models from files: skops and ONNX as they are, pickles only for people who say that they trust them."""

from __future__ import annotations

import hashlib
import importlib
import io
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import PathFinder
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.pipeline import Pipeline

from evenhand.auditing.errors import AuditError, short
from evenhand.auditing.onnx_files import OnnxModel
from evenhand.auditing.skops_files import DAMAGED, TRUSTED, open_skops
from evenhand.models.base import check_fitted

__all__ = ["TRUSTED", "LoadedModel", "OnnxModel", "load_model"]

PICKLES = (".pkl", ".pickle", ".joblib")
SUFFIXES = (".skops", ".onnx", *PICKLES)
POSSIBLE = "a .skops or .onnx file, a pickle (.pkl, .pickle, .joblib) with --trust-pickle, or module:attribute"


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
            name, model = source, _imported(source, folder.absolute())
        else:
            name, suffix = path.name, path.suffix.lower()
            data = _content(path, suffix, trust_pickle)
            digest = hashlib.sha256(data).hexdigest()
            if suffix in PICKLES:
                notes.append(f"{name} is a pickle, which can run any code: it was opened because you trust it.")
                model = _unpickled(data, path)
            else:
                model = OnnxModel(data, str(path)) if suffix == ".onnx" else open_skops(data, path)
        kind = _checked(model, source)
    notes += [_said(entry.message) for entry in caught if issubclass(entry.category, UserWarning)]
    return LoadedModel(model, name, kind, digest, " ".join(dict.fromkeys(notes)) or None)


def _is_module(source: str, path: Path) -> bool:
    """Whether the source is module:attribute: a file that exists, or is called like a model, is a file."""
    module, colon, attribute = source.partition(":")
    dotted = all(part.isidentifier() for part in (*module.split("."), *attribute.split(".")))
    if not colon or not dotted or path.suffix.lower() in SUFFIXES:
        return False
    try:
        return not path.exists()
    except OSError:  # too long to be a file's name
        return True


def _content(path: Path, suffix: str, trust_pickle: bool) -> bytes:
    try:
        if path.is_dir():
            raise AuditError(f"{path} is a directory. A model is {POSSIBLE}.")
        if suffix not in SUFFIXES:
            raise AuditError(f"{path.name} is no kind of model that evenhand can open. Possible: {POSSIBLE}.")
        if not path.is_file():
            raise AuditError(f"There is no file {path}. Paths of models start at the folder of the configuration.")
        if suffix in PICKLES and not trust_pickle:
            raise AuditError(
                f"{path} is a pickle, and pickle files can run any code when they are opened. Save the model with "
                "skops.io.dump(model, 'model.skops'), or pass --trust-pickle if you made this file yourself."
            )
        data = path.read_bytes()
    except OSError as error:
        raise AuditError(f"{path} cannot be read: {error.strerror or error}.") from None
    if not data:
        raise AuditError(f"{path} is empty. Save the model again.")
    return data


def _said(message: Warning | str) -> str:
    if isinstance(message, InconsistentVersionWarning):
        before, now = message.original_sklearn_version, message.current_sklearn_version
        return f"The model was saved with scikit-learn {before} and opened with {now}: predictions may differ."
    return " ".join(str(message).split())


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
        return _kind(model)
    except AuditError:
        raise
    except NotFittedError:
        raise AuditError(
            f"{source} holds a {type(model).__name__} that is not fitted: call its fit(X, y), then save it again."
        ) from None
    except DAMAGED as error:
        raise AuditError(f"{source} holds a {type(model).__name__} that is not whole: {short(error)}.") from error


def _kind(model: Any) -> str:
    if isinstance(model, Pipeline):
        return f"Pipeline ending in {_kind(model.steps[-1][1])}"
    return "ONNX model" if isinstance(model, OnnxModel) else type(model).__name__


@contextmanager
def _importable(*folders: Path) -> Iterator[None]:
    before = list(sys.path)
    sys.path[:0] = map(str, folders)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = before


def _imported(source: str, folder: Path) -> Any:
    """The object that module:attribute names. Its code is the user's own and may raise anything."""
    module, _, attribute = source.partition(":")
    top, places = module.partition(".")[0], (folder, Path.cwd())
    spec = PathFinder.find_spec(top, [str(place) for place in places])
    loaded = getattr(sys.modules.get(top), "__file__", None)
    if loaded and spec and spec.origin and Path(loaded).resolve() != Path(spec.origin).resolve():
        raise AuditError(f"{source}: a module {top!r} is loaded already, from {loaded}. Rename {spec.origin}.")
    with _importable(*places):
        try:
            found = importlib.import_module(module)
        except (Exception, SystemExit) as error:
            if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
                raise AuditError(
                    f"{source}: there is no module {error.name!r}, neither in {folder} nor installed."
                ) from error
            raise AuditError(f"{source}: the import of {module!r} failed with {short(error)}.") from error
        _send_by_value(module, places)
        for part in attribute.split("."):
            if not hasattr(found, part):
                public = ", ".join(name for name in dir(found) if not name.startswith("_")) or "nothing"
                raise AuditError(f"{source}: there is no {part!r}; there is {public}.")
            found = getattr(found, part)
        if not callable(found) or (hasattr(found, "predict") and not isinstance(found, type)):
            return found
        try:
            return found()
        except (Exception, SystemExit) as error:
            raise AuditError(f"{source}() failed with {short(error)}.") from error


def _send_by_value(module: str, places: tuple[Path, ...]) -> None:
    """Pickle the classes of a user's module whole: worker processes do not look into these folders.

    A module that is installed, if only in an environment below one of the folders, is imported by the workers. Of a
    package all modules are sent, unless it has no file: such a name may be shared with packages that are installed.
    """
    names = list(accumulate(module.split("."), "{}.{}".format))
    loaded = [sys.modules[name] for name in names if name in sys.modules]
    own = next((one for one in loaded if getattr(one, "__file__", None)), None)
    if not isinstance(own, ModuleType) or own.__file__ is None:
        return
    depth = own.__name__.count(".") + ("__path__" in vars(own))
    start = Path(own.__file__).absolute().parents[depth : depth + 1]
    if {place.resolve() for place in start} & {place.resolve() for place in places}:
        cloudpickle.register_pickle_by_value(own)


def _unpickled(data: bytes, path: Path) -> Any:
    import joblib

    try:
        return joblib.load(io.BytesIO(data))
    except (Exception, SystemExit) as error:  # a pickle calls what it likes, which may raise anything
        raise AuditError(f"{path} cannot be opened: {short(error)}. Save the model again.") from error
