"""Kinds of files that hold models, by suffix: one module a kind, and anybody can add another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.registering import check_free

Reader = Callable[[bytes, Path], Any]


@dataclass(frozen=True)
class ModelFile:
    """A kind of file.

    Attributes
    ----------
    suffixes : tuple of str
        In lower case, with the point.
    read : callable
        From the content of a file and its path, which is for messages only, to a fitted model.
    unsafe : str or None
        What it is called, such as "pickle", if to open it can run any code; it is opened for people only who say that
        they trust it.
    tried : bool
        Whether compiled code reads it that may crash on a damaged file; then it is opened in another process, which
        sends the model.
    """

    suffixes: tuple[str, ...]
    read: Reader
    unsafe: str | None = None
    tried: bool = False


FORMATS: dict[str, ModelFile] = {}


def model_file(*suffixes: str, unsafe: str | None = None, tried: bool = False) -> Callable[[Reader], Reader]:
    """Register a function that reads models from files with some suffixes.

    Parameters
    ----------
    *suffixes : str
        Such as ".skops".
    unsafe : str, optional
        What such a file is called if to open it can run any code; see :class:`ModelFile`.
    tried : bool
        Whether it is opened in another process, which may crash; see :class:`ModelFile`.

    Examples
    --------
    >>> import json
    >>> from sklearn.dummy import DummyClassifier
    >>> @model_file(".always")
    ... def read_always(data, path):
    ...     return DummyClassifier(strategy="constant", constant=json.loads(data)).fit([[0.0]], [json.loads(data)])
    >>> possible()
    'a .skops, .onnx or .always file, a pickle (.pkl, .pickle, .joblib) with --trust-pickle, or module:attribute'
    >>> del FORMATS[".always"]
    """
    wrong = [suffix for suffix in suffixes if not suffix.startswith(".") or suffix != suffix.lower()]
    if wrong or not suffixes:
        raise ValueError(f"Suffixes start with a point and are in lower case, such as '.skops'; got {suffixes!r}.")

    def register(read: Reader) -> Reader:
        instead = 'choose another suffix with @model_file(".suffix"), or remove that one from FORMATS first.'
        for suffix in suffixes:
            known = FORMATS.get(suffix)
            check_free("reader of model files", suffix, read, None if known is None else known.read, instead)
        kind = ModelFile(suffixes, read, unsafe, tried)
        FORMATS.update(dict.fromkeys(suffixes, kind))
        return read

    return register


def possible() -> str:
    """Everything that a model can be loaded from, for messages."""
    safe = [suffix for suffix, kind in FORMATS.items() if kind.unsafe is None]
    listed = " or ".join(filter(None, [", ".join(safe[:-1]), safe[-1]]))
    unsafe = dict.fromkeys(kind for kind in FORMATS.values() if kind.unsafe is not None)
    parts = [f"a {listed} file"]
    parts += [f"a {kind.unsafe} ({', '.join(kind.suffixes)}) with --trust-pickle" for kind in unsafe]
    return ", ".join([*parts, "or module:attribute"])
