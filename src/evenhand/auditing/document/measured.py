"""The parts of a document that are about many people: coverage, stability, certificates, groups and remedies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evenhand.auditing.document.values import Count, Finite, Spread, Typical
from evenhand.stats import Interval

Statistic = Literal["median", "p95"]


@dataclass(frozen=True)
class MethodCoverage:
    """People of one method: those who have the decision already, and those with and without an explanation."""

    method: str
    people: Count
    already: Count
    found: Count
    not_found: Count


@dataclass(frozen=True)
class Reason:
    """Why there is no explanation, and for how many people by method."""

    reason: str
    counts: dict[str, Count]


@dataclass(frozen=True)
class DrawCoverage:
    """What became of the planned comparisons of one method under one perturbation."""

    method: str
    perturbation: str
    draws: Count
    compared: Count
    flipped: Count
    not_found: Count


@dataclass(frozen=True)
class Coverage:
    """Who has an explanation, and which comparisons could be made."""

    people: list[MethodCoverage]
    reasons: list[Reason]
    draws: list[DrawCoverage]


@dataclass(frozen=True)
class Histogram:
    """Counts between edges."""

    edges: list[Finite]
    counts: list[Count]


@dataclass(frozen=True)
class Stability:
    """How far explanations of one method move under one perturbation."""

    method: str
    perturbation: str
    people: Count
    draws: Count
    distance: Spread
    amplification: Spread
    flip_interval: Interval
    flip_rate: float
    not_found_rate: float
    floor: float
    histogram: Histogram


@dataclass(frozen=True)
class Comparison:
    """One method against another, in a sentence."""

    a: str
    b: str
    perturbation: str
    sentence: str


@dataclass(frozen=True)
class Curve:
    """Shares of people for whom stability is proven, with the ends of their intervals, by radius."""

    method: str
    statement: str
    people: Count
    radius: list[Finite]
    share: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class Certificates:
    """Curves of methods that can be certified, and why others cannot."""

    curves: list[Curve]
    not_available: dict[str, str]


@dataclass(frozen=True)
class Boundary:
    """How far people are from the boundary."""

    median: float


@dataclass(frozen=True)
class GroupRow:
    """One group: what explanations cost it and how far they move, also against everybody else."""

    group: str
    people: Count
    few: bool
    needed: Count
    not_found: Count
    cost: Spread
    amplification: Typical | None
    cost_difference: Interval
    adjusted_difference: Interval
    matched: float
    boundary: Boundary


@dataclass(frozen=True)
class GroupColumn:
    """The groups of one sensitive column, and the widest gap of each kind with the two groups that it is between."""

    column: str
    groups: list[GroupRow]
    cost_gap: Interval | None
    cost_gap_of: list[str]
    adjusted_gap: Interval | None
    adjusted_gap_of: list[str]
    recourse_gap: Interval | None
    recourse_gap_of: list[str]
    amplification_gap: Interval | None
    amplification_gap_of: list[str]
    sentence: str


@dataclass(frozen=True)
class Remedy:
    """One way to explain the same decisions: its cost, how far it moves, and whether another one beats it."""

    name: str
    method: str
    in_use: bool
    people: Count
    cost: Interval | None
    amplification: Interval | None
    statistic: Statistic
    perturbation: str
    passes: bool | None
    found: float | None
    not_available: str | None
    dominated: bool
