"""Perturbations by name: one file with a decorated class adds one, wherever the file is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import Field, fields, is_dataclass
from functools import wraps
from typing import Any, TypeVar, overload

from evenhand.perturbations.base import Perturbation
from evenhand.registering import check_free
from evenhand.settings import nearest
from evenhand.table.column import NUMBERS, Column

ROWS = "rows"  # what a perturbation suits that takes all columns of a table of numbers at once
PERTURBATIONS: dict[str, type[Any]] = {}

T = TypeVar("T", bound=type[Any])


@overload
def register(cls: T) -> T: ...
@overload
def register(cls: None = None, *, name: str | None = None) -> Callable[[T], T]: ...


def register(cls: T | None = None, *, name: str | None = None) -> T | Callable[[T], T]:
    """Make a perturbation known by its name: to :func:`by_name` and to study files.

    Parameters
    ----------
    cls : dataclass
        Its objects are functions ``(X, rng) -> X``. Its fields are what a file can say about it. The first of them is
        its strength: a list of numbers there stands for several perturbations, one per number, and every other list is
        one value. A field with the metadata ``{"people": True}`` is filled with the training data instead,
        ``{"key": ...}`` is another name in files, and ``{"words": ...}`` maps words to functions from the number of
        columns to numbers. A class variable ``suits`` lists the kinds of columns that it can perturb, and "rows" if it
        can perturb all columns of a table of numbers at once; if left out it suits all numbers. A method ``fit(X)``
        returns a copy that has learned from people; a copy that has learned is not fitted again.
    name : str, optional
        If left out, that of the class in lower case: `SaltAndPepper` is "salt_and_pepper".

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @register(name="example_of_a_raise")
    ... @dataclass(frozen=True)
    ... class Raise:
    ...     by: float = 1.0
    ...
    ...     def __call__(self, X, rng):
    ...         return X + self.by
    >>> by_name("example_of_a_raise", by=2.0)
    Raise(by=2.0)
    >>> del PERTURBATIONS["example_of_a_raise"]
    """
    if cls is None:
        return lambda decorated: _registered(decorated, name)
    return _registered(cls, name)


def _registered(cls: T, name: str | None) -> T:
    # Every class can be called, to make an object: what counts is whether its objects can.
    callable_objects = isinstance(cls, type) and any("__call__" in vars(base) for base in cls.__mro__)
    if not callable_objects or not is_dataclass(cls):
        raise TypeError(
            f"A perturbation is a dataclass with a method __call__(self, X, rng) -> X; got {cls!r}. "
            "Write @register above @dataclass(frozen=True)."
        )
    wanted = name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
    instead = 'choose another name with @register(name="..."), or remove that one from PERTURBATIONS first.'
    check_free("perturbation", wanted, cls, PERTURBATIONS.get(wanted), instead)
    if "fit" in vars(cls):
        cls.fit = _once(cls.fit)  # type: ignore[attr-defined]
    PERTURBATIONS[wanted] = cls
    return cls


def _once(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A fit that returns what has learned already as it is: who is given a perturbation cannot know, and fits it."""
    if getattr(fit, "_once", False):
        return fit

    @wraps(fit)
    def fitted(self: Any, X: Any) -> Any:
        if getattr(self, "_has_learned", False):
            return self
        found = fit(self, X)
        object.__setattr__(found, "_has_learned", True)
        return found

    fitted._once = True  # type: ignore[attr-defined]
    return fitted


def class_named(name: str) -> type[Any]:
    """The class of a perturbation, by its name or by that of the class.

    Examples
    --------
    >>> class_named("mask") is class_named("Mask")
    True
    >>> class_named("gausian")
    Traceback (most recent call last):
        ...
    ValueError: There is no perturbation 'gausian'. Did you mean 'gaussian'? There are ordered, categorical, ...
    """
    if isinstance(name, str):
        for known, cls in PERTURBATIONS.items():
            if name in (known, cls.__name__):
                return cls
    raise ValueError(
        f"There is no perturbation {name!r}.{nearest(str(name), PERTURBATIONS)} There are {', '.join(PERTURBATIONS)}. "
        "The decorator evenhand.perturbations.register adds another."
    )


def by_name(name: str, /, **parameters: Any) -> Perturbation:
    """A perturbation by its name, with the parameters of its class.

    Examples
    --------
    >>> by_name("count", by=2)
    Count(by=2)
    """
    made: Perturbation = class_named(name)(**parameters)
    return made


def parameters_of(cls: type[Any]) -> Mapping[str, Field[Any]]:
    """What a file can say about a perturbation, by the name that it has there; the strength comes first.

    Examples
    --------
    >>> list(parameters_of(class_named("neighbor")))
    ['k', 'standardise', 'bounds']
    """
    return {f.metadata.get("key", f.name): f for f in fields(cls) if f.init and not f.metadata.get("people")}


def suits(perturbation: Any, column: Column) -> bool:
    """Whether a perturbation can be used for one column; whoever does not say so takes numbers."""
    kinds = getattr(perturbation, "suits", (ROWS,))
    return column.kind in kinds or (column.is_number and ROWS in kinds)


__all__ = ["NUMBERS", "PERTURBATIONS", "ROWS", "by_name", "class_named", "parameters_of", "register", "suits"]
