"""Gates about gaps between groups of people."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from evenhand.auditing.gaps import ColumnGroups, GapKind, coverage_gaps, gaps
from evenhand.auditing.gates.evidence import Evidence
from evenhand.auditing.gates.registry import Candidate, Condition, Unmeasured, gate
from evenhand.fairness import Gap
from evenhand.stats import Interval

FEW_PEOPLE = "There are no two groups with enough people."
Gaps = Callable[[ColumnGroups], tuple[list[Gap], list[Gap]]]  # with usual intervals, and with strict ones


def _of(kind: GapKind) -> Gaps:
    return lambda column: (gaps(column.measured, kind), gaps(column.strict, kind))


def _in_coverage(column: ColumnGroups) -> tuple[list[Gap], list[Gap]]:
    return coverage_gaps(column.coverage), coverage_gaps(column.coverage, strict=True)


def _compared(
    condition: Condition, evidence: Evidence, find: Gaps, nothing: str = FEW_PEOPLE
) -> Sequence[Candidate] | Unmeasured:
    """Every two groups of every column that the condition is about."""
    if not evidence.groups:
        return Unmeasured("No sensitive column is named.")
    if evidence.target is None:
        return Unmeasured("Without a target it is not known who is at a disadvantage: name the wanted decision.")
    candidates: list[Candidate] = []
    for name, column in evidence.groups.items():
        if condition.argument not in (None, name):
            continue
        usual, strict = find(column)
        wide = {frozenset((pair.first, pair.second)): pair.gap for pair in strict}
        candidates += [
            Candidate(pair.gap, f"{name}: {pair.first}, {pair.second}", wide[frozenset((pair.first, pair.second))])
            for pair in usual
        ]
        if not usual:
            candidates.append(Candidate(Interval(math.nan, math.nan, math.nan), name, why=nothing))
    return candidates


@gate(
    "group_cost_gap",
    title="Group gap in cost",
    question="Largest difference in typical cost between two groups",
    section="groups",
    unit="cost",
    argument="column",
    default=lambda situation: "group_cost_gap <= 0.1" if situation.groups else None,
)
def group_cost_gap(condition: Condition, evidence: Evidence) -> Sequence[Candidate] | Unmeasured:
    """Differences of median costs."""
    return _compared(condition, evidence, _of("cost_gap"))


@gate(
    "group_adjusted_gap",
    title="Group gap at the same distance",
    question="Largest difference in cost to everybody else who is equally far from the boundary",
    section="groups",
    unit="cost",
    argument="column",
)
def group_adjusted_gap(condition: Condition, evidence: Evidence) -> Sequence[Candidate] | Unmeasured:
    """Differences of costs at the same distance from the boundary."""
    nothing = FEW_PEOPLE if evidence.has_boundary else "A model that is searched has no known boundary."
    return _compared(condition, evidence, _of("adjusted_gap"), nothing)


@gate(
    "group_not_found_gap",
    title="Group gap in coverage",
    question="Largest difference between two groups in the share of people without an explanation",
    section="groups",
    unit="share",
    argument="column",
)
def group_not_found_gap(condition: Condition, evidence: Evidence) -> Sequence[Candidate] | Unmeasured:
    """Differences of shares without an explanation."""
    return _compared(condition, evidence, _in_coverage)


@gate(
    "group_recourse_gap",
    title="Recourse gap",
    question="Largest difference in mean cost between two groups (equalizing recourse)",
    section="groups",
    unit="cost",
    argument="column",
)
def group_recourse_gap(condition: Condition, evidence: Evidence) -> Sequence[Candidate] | Unmeasured:
    """Differences of mean costs."""
    return _compared(condition, evidence, _of("recourse_gap"))


@gate(
    "group_amplification_gap",
    title="Group gap in stability",
    question="Largest difference in typical amplification between two groups",
    section="groups",
    unit="times",
    argument="column",
)
def group_amplification_gap(condition: Condition, evidence: Evidence) -> Sequence[Candidate] | Unmeasured:
    """Differences of median amplifications."""
    return _compared(condition, evidence, _of("amplification_gap"))
