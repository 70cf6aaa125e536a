"""Tables of a TOML file as dataclasses: every key checked, unknown ones refused with the nearest known one."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, field, fields
from pathlib import Path
from typing import Any

Check = Callable[[Any], str]  # what a value would have to be; empty if it is


def whole(least: int) -> Check:
    """A whole number."""

    def check(value: Any) -> str:
        good = isinstance(value, int) and not isinstance(value, bool) and value >= least
        return "" if good else f"a whole number >= {least}"

    return check


def number(least: float, most: float = 1e12) -> Check:
    """A number in a range."""

    def check(value: Any) -> str:
        good = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
        return "" if good else f"a number from {least:g} to {most:g}"

    return check


def one_of(*choices: str) -> Check:
    """One of some words."""
    return lambda value: "" if value in choices else "one of " + ", ".join(choices)


def known_in(registry: Mapping[str, Any], first: Sequence[str] = ()) -> Check:
    """A name in a registry, looked up when a file is read, so that what was added in between counts.

    A check says what is possible, with the nearest name if there is one; those in `first` are listed first.
    """

    def check(value: Any) -> str:
        if isinstance(value, str) and value in registry:
            return ""
        known = list(dict.fromkeys((*first, *registry)))
        hint = nearest(value, known) if isinstance(value, str) else ""
        return "one of " + ", ".join(known) + (f" ({hint.strip()})" if hint else "")

    return check


def text(value: Any) -> str:
    """Any text that is not empty."""
    return "" if isinstance(value, str) and value else "a text"


def flag(value: Any) -> str:
    """True or false."""
    return "" if isinstance(value, bool) else "true or false"


def maybe(check: Check) -> Check:
    """Nothing, or what the check says."""
    return lambda value: "" if value is None else check(value)


def list_of(check: Check, *, empty: bool = False) -> Check:
    """A list, each element of which passes the check."""

    def each(value: Any) -> str:
        if not isinstance(value, tuple) or not (value or empty):
            return "a list"
        return next((f"a list, each {found}" for found in map(check, value) if found), "")

    return each


def key(check: Check, default: Any = MISSING) -> Any:
    """A field of a dataclass that a TOML table fills."""
    if default is MISSING:
        return field(metadata={"check": check})
    return field(default=default, metadata={"check": check})


def read_toml(path: Path, error: type[ValueError]) -> dict[str, Any]:
    """The content of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))  # editors of Windows begin files with a mark
    except FileNotFoundError:
        raise error(f"There is no file {path}.") from None
    except OSError as found:
        raise error(f"{path} cannot be read: {found.strerror}.") from None
    except ValueError as found:  # no TOML, no UTF-8, or a number of thousands of digits
        raise error(f"{path} is not TOML: {found}") from None
    except RecursionError:
        raise error(f"{path} is not TOML that can be read: its lists are nested too deeply.") from None


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at what was meant, ready to follow a sentence; empty if nothing is near."""
    found = difflib.get_close_matches(name, list(known), 1)
    return f" Did you mean {found[0]!r}?" if found else ""


def check_known(table: Mapping[str, Any], keys: tuple[str, ...], where: str, error: type[ValueError]) -> None:
    """Refuse keys that mean nothing."""
    for name in table:
        if name not in keys:
            hint = nearest(name, keys)
            raise error(f"Unknown key {name!r} in {where}.{hint} Possible are {', '.join(keys)}.")


def read_table(table: Any, kind: type[Any], where: str, error: type[ValueError], **given: Any) -> Any:
    """A table as an instance of a dataclass whose fields are made by :func:`key`."""
    if not isinstance(table, Mapping):
        raise error(f"{where} must be a table, got {table!r}.")
    keys = [f for f in fields(kind) if f.name not in given]
    check_known(table, tuple(f.name for f in keys), where, error)
    values = dict(given)
    for f in keys:
        if f.name not in table:
            if f.default is MISSING:
                raise error(f"{where} has no {f.name!r}; it must be {f.metadata['check'](object()) or 'given'}.")
            continue
        value = _listed(table[f.name], f)
        if found := f.metadata["check"](value):
            raise error(f"{where}.{f.name} must be {found}; got {table[f.name]!r}.")
        values[f.name] = value
    return kind(**values)


def _listed(value: Any, f: Any) -> Any:
    """One value stands for a list of one, where a list is meant."""
    if not (isinstance(f.default, tuple) or "tuple" in str(f.type)):
        return value
    if isinstance(value, list):
        return tuple(value)
    allows_a_word = isinstance(value, str) and not f.metadata["check"](value)
    return value if allows_a_word else (value,)
