"""Gates about who has an explanation at all."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.auditing.gates.evidence import Evidence
from evenhand.auditing.gates.registry import Candidate, Condition, Unmeasured, gate
from evenhand.stats import share_interval


@gate(
    "not_found_rate",
    title="Coverage",
    question="For how many people is there no explanation at all?",
    section="coverage",
    unit="share",
    default="not_found_rate <= 0.01",
)
def not_found_rate(_: Condition, evidence: Evidence) -> Sequence[Candidate] | Unmeasured:
    """Share of the people without an explanation, of those who need one."""
    needed, explained = int(evidence.people["needed"].sum()), int(evidence.people["found"].sum())
    return [Candidate(share_interval(needed - explained, needed))] if needed else Unmeasured("Nobody needs one.")
