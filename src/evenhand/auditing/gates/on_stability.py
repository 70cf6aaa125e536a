"""Gates about how far explanations move when people change a little."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from evenhand.auditing.document.measured import Stability
from evenhand.auditing.gates.evidence import Evidence
from evenhand.auditing.gates.registry import Candidate, Condition, Unmeasured, gate
from evenhand.stats import Interval

ENOUGH, TAIL = 30, 70  # people below which nothing is judged; the 95th percentile takes more


def _moved(
    condition: Condition, evidence: Evidence, number: Callable[[Stability], Interval], least: int = ENOUGH
) -> Sequence[Candidate] | Unmeasured:
    """A number of every perturbation that the condition is about; too few people have no interval to judge by."""
    rows = [row for row in evidence.stability if condition.argument in (None, row.perturbation)]
    if not rows:
        named = f"perturbation {condition.argument!r}"
        return Unmeasured(next((note for note in evidence.notes if named in note), None))
    if any(row.people < least for row in rows):
        why = f"Fewer than {least} people were varied, too few to judge by."
        return [Candidate(number(row)._replace(low=math.nan, high=math.nan), row.perturbation, why=why) for row in rows]
    return [Candidate(number(row), row.perturbation) for row in rows]


@gate(
    "median_amplification",
    title="Typical stability",
    question="How much further does the explanation move than the person?",
    section="stability",
    unit="times",
    argument="perturbation",
    # With an l1 cost even a linear model has up to 2, because the one column that is changed makes up for all others.
    default=lambda situation: f"median_amplification <= {1.2 if situation.euclidean else 2.0:g}",
)
def median_amplification(condition: Condition, evidence: Evidence) -> Sequence[Candidate] | Unmeasured:
    """Median over all variations."""
    return _moved(condition, evidence, lambda row: row.amplification.median)


@gate(
    "p95_amplification",
    title="Worst-case stability",
    question="The same, exceeded by one variation in twenty",
    section="stability",
    unit="times",
    argument="perturbation",
    default="p95_amplification <= 3",
)
def p95_amplification(condition: Condition, evidence: Evidence) -> Sequence[Candidate] | Unmeasured:
    """95th percentile over all variations."""
    return _moved(condition, evidence, lambda row: row.amplification.p95, TAIL)


@gate(
    "median_distance",
    title="Typical movement",
    question="How far does the explanation move?",
    section="stability",
    unit="cost",
    argument="perturbation",
)
def median_distance(condition: Condition, evidence: Evidence) -> Sequence[Candidate] | Unmeasured:
    """Median distance between explanations."""
    return _moved(condition, evidence, lambda row: row.distance.median)


@gate(
    "p95_distance",
    title="Largest movement",
    question="How far does the explanation move, exceeded by one variation in twenty?",
    section="stability",
    unit="cost",
    argument="perturbation",
)
def p95_distance(condition: Condition, evidence: Evidence) -> Sequence[Candidate] | Unmeasured:
    """95th percentile of the distance between explanations."""
    return _moved(condition, evidence, lambda row: row.distance.p95, TAIL)


@gate(
    "flip_rate",
    title="Decisions that flip",
    question="How often does a slight variation get the other decision?",
    section="stability",
    unit="share",
    argument="perturbation",
)
def flip_rate(condition: Condition, evidence: Evidence) -> Sequence[Candidate] | Unmeasured:
    """Share of the variations that get another decision."""
    return _moved(condition, evidence, lambda row: row.flip_interval)
