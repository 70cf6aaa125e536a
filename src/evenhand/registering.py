"""One rule for all registries: who comes again replaces itself, and nobody takes the name of another."""

from __future__ import annotations

import functools
import inspect
import sys
from pathlib import Path
from typing import Any


def check_free(what: str, name: str, new: Any, known: Any, instead: str) -> None:
    """Refuse a name that another has; the same class or function may come again, and then replaces what it was.

    It does so when a module is loaded anew, a cell of a notebook is run twice, or a worker reads the file that it has
    read before.

    Parameters
    ----------
    what, name : str
        What is registered, and the name that it shall have.
    new : class or function
        Who wants the name.
    known : class, function or None
        Who has it; None if nobody has.
    instead : str
        What to do if it is another, ready to follow a semicolon.

    Examples
    --------
    >>> check_free("cost", "l1", int, None, "")
    >>> check_free("cost", "l1", int, int, "")
    >>> check_free("cost", "l1", int, float, "choose another name.")
    Traceback (most recent call last):
        ...
    ValueError: builtins.int cannot be the cost 'l1': builtins.float has this name; choose another name.
    """
    if known is not None and not _is_same(new, known):
        raise ValueError(
            f"{_described(new)} cannot be the {what} {name!r}: {_described(known)} has this name; {instead}"
        )


def source_file(thing: Any) -> Path | None:
    """The file that a class or function comes from, None if there is none, as in a notebook."""
    try:
        path = Path(inspect.getfile(_named(thing))).resolve()
    except (OSError, TypeError):
        return None
    return path if path.is_file() else None


def is_ours(thing: Any) -> bool:
    """Whether a class or function is part of this package."""
    module: str = _named(thing).__module__ or ""
    return module.partition(".")[0] == "evenhand"


def _named(thing: Any) -> Any:
    """What has a name: a class or function itself, of a partial its function, of another object its class."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    return thing if hasattr(thing, "__qualname__") else type(thing)


def _is_same(new: Any, known: Any) -> bool:
    """Whether one is the other, loaded anew."""
    new, known = _named(new), _named(known)
    file = source_file(new)
    if new.__module__ != known.__module__ and (file is None or file != source_file(known)):
        return False
    return bool(new.__qualname__ == known.__qualname__) or _is_gone(known)


def _is_gone(known: Any) -> bool:
    """Whether the file of a class or function was run again, and has it no longer."""
    if "<" in known.__qualname__:  # of a function inside of another, or one without a name, a module does not know
        return False
    found: Any = sys.modules.get(known.__module__)
    for part in known.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is not known


def _described(thing: Any) -> str:
    named = _named(thing)
    file = None if is_ours(thing) else source_file(thing)
    return f"{named.__module__}.{named.__qualname__}" + (f" in {file}" if file else "")
