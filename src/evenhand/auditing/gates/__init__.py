"""Gates: what an audit must reach, judged on the whole interval and not on the estimate.

One function a gate; :func:`gate` registers another one, from anywhere.
"""

from __future__ import annotations

# Gates register themselves, in the order in which messages list them.
from evenhand.auditing.gates import on_coverage as _1  # isort: skip  # noqa: F401
from evenhand.auditing.gates import on_stability as _2  # isort: skip  # noqa: F401
from evenhand.auditing.gates import on_certificates as _3  # isort: skip  # noqa: F401
from evenhand.auditing.gates import on_pairs as _4  # isort: skip  # noqa: F401
from evenhand.auditing.gates import on_groups as _5  # isort: skip  # noqa: F401
from evenhand.auditing.gates.evidence import Evidence
from evenhand.auditing.gates.judging import Judged, default_gates, judge, judge_all, parse_gate
from evenhand.auditing.gates.registry import GATES, Candidate, Condition, Gate, Situation, Unmeasured, gate

__all__ = [
    "GATES",
    "Candidate",
    "Condition",
    "Evidence",
    "Gate",
    "Judged",
    "Situation",
    "Unmeasured",
    "default_gates",
    "gate",
    "judge",
    "judge_all",
    "parse_gate",
]
