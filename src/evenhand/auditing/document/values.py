"""Numbers of a document whose type says more than their Python type does."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, TypeGuard, get_type_hints

from evenhand.stats import Interval


@dataclass(frozen=True)
class AtLeast:
    """Marks a number that is never less."""

    least: int


@dataclass(frozen=True)
class Known:
    """Marks a number that is always finite; any other float is null in JSON where it is not finite."""


Count = Annotated[int, AtLeast(0)]
Finite = Annotated[float, Known()]


@cache
def hints_of(kind: Any) -> dict[str, Any]:
    """Types of the fields of a part of a document, by name and in their order.

    >>> list(hints_of(Interval))
    ['value', 'low', 'high']
    """
    hints = get_type_hints(kind, include_extras=True)
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else list(kind._fields)
    return {name: hints[name] for name in names}


def finite(value: float | None) -> TypeGuard[float]:
    """Whether there is a number: one that was not measured is NaN, or None, and one without an end is infinite.

    >>> [finite(value) for value in (0.0, None, float("nan"), float("inf"))]
    [True, False, False, False]
    """
    return value is not None and math.isfinite(value)


@dataclass(frozen=True)
class Middle:
    """The median and the 95th percentile of something."""

    median: float
    p95: float


@dataclass(frozen=True)
class Typical:
    """The same with intervals."""

    median: Interval
    p95: Interval


@dataclass(frozen=True)
class Spread:
    """Median, 95th percentile and mean with intervals."""

    median: Interval
    p95: Interval
    mean: Interval
