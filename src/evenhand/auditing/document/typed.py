"""A document from plain data: what audit.json holds, back as types."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from evenhand.auditing.document.overall import SCHEMA
from evenhand.auditing.document.values import Known, hints_of
from evenhand.auditing.errors import AuditError
from evenhand.stats import Interval

T = TypeVar("T")

ADVICE = f"audit.json of the schema {SCHEMA} can be read; the audit, run once more with this version, writes one."


def typed(kind: type[T], value: Any) -> T:
    """The reverse of :func:`plain`: null is NaN where the type is a number.

    Raises
    ------
    AuditError
        If a key is missing or unknown, or a value is of another type.

    Examples
    --------
    >>> from evenhand.stats import Interval
    >>> typed(Interval, {"value": 0.5, "low": 0.25, "high": None})
    Interval(value=0.5, low=0.25, high=nan)
    >>> typed(Interval, {"value": 0.5, "low": 0.25})
    Traceback (most recent call last):
        ...
    evenhand.auditing.errors.AuditError: Interval has no key 'high'. audit.json of the schema evenhand-audit/1 can ...
    """
    made: T = _of(kind, value, kind.__name__)
    return made


def _of(hint: Any, value: Any, where: str) -> Any:
    """A value of the type; `where` is its place in the document, for messages."""
    origin, inside = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and (is_dataclass(hint) or hint is Interval):
        return _object(hint, value, where)
    if origin is Annotated:
        finite = any(isinstance(mark, Known) for mark in inside[1:])
        return _checked(value, _is_number if finite else _is_plain(inside[0]), inside[0], where)
    if origin is Literal:
        return _checked(value, lambda it: it in inside, " or ".join(map(repr, inside)), where)
    if hint is float:
        return math.nan if value is None else _checked(value, _is_number, hint, where)
    if origin is list:
        _checked(value, _is_plain(list), list, where)
        return [_of(inside[0], item, f"{where}[{i}]") for i, item in enumerate(value)]
    if origin is tuple:
        _checked(value, lambda it: isinstance(it, list | tuple) and len(it) == len(inside), hint, where)
        return tuple(_of(part, item, f"{where}[{i}]") for i, (part, item) in enumerate(zip(inside, value, strict=True)))
    if origin is dict:
        _checked(value, _is_plain(dict), dict, where)
        return {key: _of(inside[1], item, f"{where}[{key!r}]") for key, item in value.items()}
    if origin in (Union, UnionType):
        return _any_of(inside, value, where)
    return _checked(value, _is_plain(hint), hint, where)


def _object(kind: Any, value: Any, where: str) -> Any:
    _checked(value, _is_plain(dict), "an object", where)
    hints = hints_of(kind)
    for name in hints:
        if name not in value:
            raise AuditError(f"{where} has no key {name!r}. {ADVICE}")
    for name in value:
        if name not in hints:
            raise AuditError(f"{where} has the key {name!r}, which is none of {', '.join(hints)}. {ADVICE}")
    return kind(**{name: _of(hint, value[name], f"{where}.{name}") for name, hint in hints.items()})


def _any_of(hints: tuple[Any, ...], value: Any, where: str) -> Any:
    """None if it may be, and otherwise the first type that the value has."""
    if value is None and NoneType in hints:
        return None
    possible = [hint for hint in hints if hint is not NoneType]
    for hint in possible[:-1]:
        try:
            return _of(hint, value, where)
        except AuditError:
            continue
    return _of(possible[-1], value, where)


def _checked(value: Any, right: Callable[[Any], bool], kind: Any, where: str) -> Any:
    if not right(value):
        name = kind.__name__ if isinstance(kind, type) else str(kind)
        raise AuditError(f"{where} must be {name}; got {value!r:.100}. {ADVICE}")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_plain(kind: type[Any]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
