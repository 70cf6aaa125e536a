"""Numbers of a document whose type says more than their Python type does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

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
