"""The document of an audit: verdict, gates, what was audited, and all that was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evenhand.auditing.document.individuals import AlikePairs, Card, Person
from evenhand.auditing.document.measured import Certificates, Comparison, Coverage, GroupColumn, Remedy, Stability
from evenhand.auditing.document.values import Count, Finite
from evenhand.stats import Interval

SCHEMA: Literal["evenhand-audit/1"] = "evenhand-audit/1"

Outcome = Literal["passed", "failed", "undecided"]
Result = Literal["pass", "fail", "undecided"]
Better = Literal["<=", ">="]
Unit = Literal["times", "share", "cost"]
Part = Literal["coverage", "stability", "pairs", "groups"]  # parts of the page that gates belong to


@dataclass(frozen=True)
class Verdict:
    """Passed, failed or undecided, with the finding in a few sentences."""

    result: Outcome
    exit_code: Literal[0, 1, 3]
    passed: Count
    failed: Count
    undecided: Count
    title: str
    sentences: list[str]


@dataclass(frozen=True)
class GateResult:
    """A gate, what it is about, and how it was judged."""

    gate: str
    name: str
    argument: str | float | None
    comparison: Better
    limit: Finite
    result: Result
    interval: Interval
    unit: Unit
    title: str
    question: str
    section: Part
    of: str | None
    why: str | None


@dataclass(frozen=True)
class ModelSource:
    """Where the model is from."""

    name: str
    kind: str
    sha256: str | None


@dataclass(frozen=True)
class DataFile:
    """Where the people are from."""

    name: str
    rows: Count
    columns: Count
    sha256: str | None


@dataclass(frozen=True)
class Audited:
    """What was audited and how: enough to do it again."""

    evenhand: str
    model: ModelSource
    data: DataFile
    features: list[str]
    label: str | None
    sensitive: list[str]
    target: str | None
    explained: Count
    already: Count
    decisions: dict[str, Count]
    command: str
    in_use: str
    methods: dict[str, str]
    perturbations: dict[str, str]
    draws: Count
    people: Count
    seed: Count
    cost: str
    unit: str
    versions: dict[str, str]
    settings: dict[str, str]
    settings_sha256: str
    redacted: bool


@dataclass(frozen=True)
class Document:
    """Everything that audit.json holds."""

    schema: Literal["evenhand-audit/1"]
    verdict: Verdict
    gates: list[GateResult]
    audited: Audited
    notes: list[str]
    coverage: Coverage
    stability: list[Stability]
    comparisons: list[Comparison]
    certificates: Certificates
    least_stable: list[Card]
    pairs: AlikePairs | None
    groups: list[GroupColumn]
    remedies: list[Remedy]
    lookup: list[Person]
