"""Conditions such as ``median_amplification <= 1.2``: read from text, set by default, and judged."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from evenhand.auditing.document.overall import GateResult, Result
from evenhand.auditing.errors import AuditError
from evenhand.auditing.gates.evidence import Evidence
from evenhand.auditing.gates.registry import GATES, NUMBERS, Candidate, Condition, Gate, Situation, Unmeasured
from evenhand.settings import nearest
from evenhand.stats import Interval

_PATTERN = re.compile(r"\s*(\w+)\s*(?:\(\s*([^()]*?)\s*\))?\s*(<=|>=)\s*([-+0-9.eE]+)\s*")


class Judged(NamedTuple):
    """A condition with its result; `why` says what kept it from being decided."""

    condition: Condition
    result: Result
    interval: Interval
    of: str | None
    why: str | None

    def row(self) -> GateResult:
        """What the document says of it."""
        condition, gate = self.condition, self.condition.gate
        return GateResult(
            gate=condition.text,
            name=gate.name,
            argument=condition.argument,
            comparison=condition.comparison,
            limit=condition.limit,
            result=self.result,
            interval=self.interval,
            unit=gate.unit,
            title=gate.title,
            question=gate.question,
            section=gate.section,
            of=self.of,
            why=self.why,
        )


def parse_gate(text: str) -> Condition:
    """A condition from its text; what is wrong with it is said with what is possible.

    Examples
    --------
    >>> parse_gate("certified_share(0.1) >= 0.8").argument
    0.1
    """
    match = _PATTERN.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise AuditError(
            f"The gate {text!r} cannot be read. A gate is a name, <= or >=, and a limit: "
            '"median_amplification <= 1.2", "certified_share(0.1) >= 0.8".'
        )
    name, argument, comparison, limit = match.groups()
    if name not in GATES:
        raise AuditError(
            f"There is no gate {name!r} (in {text!r}).{nearest(name, GATES)} Possible are {', '.join(GATES)}."
        )
    gate = GATES[name]
    value: str | float | None = argument
    if gate.argument in NUMBERS:
        kind = gate.argument
        value = _number(argument or "", text, f"{name} needs a {kind} in parentheses, such as {name}(0.1)")
        if value < 0:
            raise AuditError(f"The {kind} of the gate {text!r} must not be negative.")
    elif argument is not None and gate.argument is None:
        raise AuditError(f"The gate {name} takes nothing in parentheses, got {text!r}.")
    elif argument == "":
        raise AuditError(f"The parentheses of the gate {text!r} are empty: name a {gate.argument}, or leave them out.")
    if comparison != gate.better:
        raise AuditError(
            f"The gate {text!r} asks for the worse: of {name} {'more' if gate.better == '>=' else 'less'} "
            f"is better, write {gate.better}."
        )
    return Condition(text, gate, value, _number(limit, text, "the limit is not a number"))


def _number(text: str, condition: str, problem: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise AuditError(f"The gate {condition!r} cannot be read: {problem}.") from None
    if not math.isfinite(value):
        raise AuditError(f"The gate {condition!r} cannot be read: {problem}.")
    return value


def default_gates(situation: Situation) -> list[Condition]:
    """Conditions of an audit that sets none: first those that every audit can answer, then those that this one can."""
    bare = Situation(groups=False, certificates=False, euclidean=False)
    every_audit_first = sorted(GATES.values(), key=lambda gate: _default(gate, bare) is None)
    texts = [_default(gate, situation) for gate in every_audit_first]
    return [parse_gate(text) for text in texts if text is not None]


def _default(gate: Gate, situation: Situation) -> str | None:
    return gate.default(situation) if callable(gate.default) else gate.default


def judge_all(conditions: Sequence[Condition], evidence: Evidence) -> list[Judged]:
    """Every condition with its result."""
    results = []
    for condition in conditions:
        measured = condition.gate.measure(condition, evidence)
        if isinstance(measured, Unmeasured):
            results.append(judge(condition, (), measured.why))
            continue
        if not all(isinstance(candidate, Candidate) for candidate in measured):
            raise TypeError(
                f"The gate {condition.name!r} must return a list of Candidate(interval), or Unmeasured(why); "
                f"got {measured!r}."
            )
        results.append(judge(condition, measured))
    return results


def judge(condition: Condition, candidates: Sequence[Candidate], why: str | None = None) -> Judged:
    """The result over everything that the condition is about: it passes only if all of it passes.

    Parameters
    ----------
    condition : Condition
    candidates : sequence of Candidate
        Without any the gate is undecided.
    why : str, optional
        Why there is none.
    """
    if not candidates:
        nothing = Interval(math.nan, math.nan, math.nan)
        return Judged(condition, "undecided", nothing, None, why or "There was nothing to measure.")
    worst_first: tuple[Result, ...] = ("fail", "undecided", "pass")
    results = [condition.judge(candidate.interval, candidate.strict) for candidate in candidates]
    result = min(results, key=worst_first.index)
    sign = 1.0 if condition.comparison == "<=" else -1.0
    deciding = [candidate for candidate, its in zip(candidates, results, strict=True) if its == result]
    shown = max(deciding, key=lambda one: -math.inf if math.isnan(one.interval.value) else sign * one.interval.value)
    reason = None
    if result == "undecided":
        across = "The interval lies on both sides of the limit."
        if shown.strict is not None and condition.judge(shown.interval) == "fail":
            across = "Outside of the limit, but one of so many comparisons may be so by chance."
        unknown = math.isnan(shown.interval.low) or math.isnan(shown.interval.high)
        reason = shown.why or ("An interval takes at least two people." if unknown else across)
    return Judged(condition, result, shown.interval, shown.of, reason)
