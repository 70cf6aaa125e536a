"""Gates about pairs of people who are almost alike."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.auditing.gates.evidence import Evidence
from evenhand.auditing.gates.registry import Candidate, Condition, Unmeasured, gate


@gate(
    "pair_difference_rate",
    title="Alike pairs",
    question="How many pairs of similar people are told to change different things?",
    section="pairs",
    unit="share",
    default="pair_difference_rate <= 0.05",
)
def pair_difference_rate(_: Condition, evidence: Evidence) -> Sequence[Candidate] | Unmeasured:
    """Share of the pairs with different advice."""
    return Unmeasured(evidence.no_pairs) if evidence.pairs is None else [Candidate(evidence.pairs.different_share)]


@gate(
    "pair_break_rate",
    title="Pairs that come apart",
    question="How many similar pairs get explanations that are too far apart?",
    section="pairs",
    unit="share",
)
def pair_break_rate(_: Condition, evidence: Evidence) -> Sequence[Candidate] | Unmeasured:
    """Share of the pairs whose explanations are too far apart."""
    return Unmeasured(evidence.no_pairs) if evidence.pairs is None else [Candidate(evidence.pairs.broken_share)]
