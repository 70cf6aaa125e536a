"""The parts of a document that are about single people: what they are told, cards, alike pairs and the look-up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evenhand.auditing.document.values import Count, Finite, Middle
from evenhand.stats import Interval

Way = Literal["up", "down", "to"]


@dataclass(frozen=True)
class Advice:
    """One column that somebody is told to change; values are None in a redacted document."""

    column: str
    before: str | None
    after: str | None
    value: float | None
    way: Way
    tag: str | None  # how it compares with what somebody else is told


@dataclass(frozen=True)
class Card:
    """One of the least stable people, beside the nearest variation that is told something else."""

    id: str | None
    perturbation: str
    amplification: float
    low: float
    high: float
    draws: Count
    facts: list[tuple[str, str, bool]]  # column, value, whether the variation differs in it
    variation: list[tuple[str, str | None, str | None]]  # column, value of the person, value of the variation
    told: list[Advice]
    variation_told: list[Advice]
    by: float | None
    moves: float | None
    sentence: str


@dataclass(frozen=True)
class AlikePair:
    """Two people who are close together, and what each of them is told."""

    first: str | None
    second: str | None
    distance: float
    explanation_distance: float
    change_distance: float
    cost_gap: float
    amplification: float
    differ: list[tuple[str, str | None, str | None]]
    first_told: list[Advice]
    second_told: list[Advice]


@dataclass(frozen=True)
class AlikePairs:
    """Pairs of people who are close together; `sample` holds their two distances and whether advice differs."""

    people: Count
    neighbours: Count
    within: float
    apart: float
    pairs: Count
    broken: Interval
    different: Interval
    cost_gap: Middle
    change_distance: Middle
    amplification: Middle
    sample: list[tuple[Finite, Finite, int]]
    worst: list[AlikePair]


@dataclass(frozen=True)
class Certificate:
    """What is proven of one person's explanation; a radius without an end is null."""

    stability_radius: float
    label_radius: float
    text: str


@dataclass(frozen=True)
class PersonMethod:
    """One person's explanation by one method."""

    method: str
    status: str
    reason: str
    told: list[Advice]
    cost: float | None
    gap: float | None
    amplification: float | None
    certificate: Certificate | None


@dataclass(frozen=True)
class Axis:
    """A column of a figure; `levels` by position if it is not a number."""

    column: str
    levels: list[str] | None


@dataclass(frozen=True)
class Points:
    """Where a person's explanation is, and those of the variations."""

    at: list[Finite]
    draws: list[list[Finite]]


@dataclass(frozen=True)
class Cloud:
    """What variations of a person are told, by method."""

    x: Axis
    y: Axis | None
    points: dict[str, Points]


@dataclass(frozen=True)
class Person:
    """Everything that the look-up shows of one person."""

    id: str
    decision: str
    target: str
    title: str
    sentence: str
    facts: list[tuple[str, str]]
    methods: list[PersonMethod]
    cloud: Cloud | None
