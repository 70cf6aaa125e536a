"""Gates: what an audit must reach, judged on the whole interval and not on the estimate."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from evenhand.auditing.errors import AuditError
from evenhand.settings import nearest
from evenhand.stats import Interval

Result = Literal["pass", "fail", "undecided"]
Unit = Literal["times", "share", "cost"]


class Known(NamedTuple):
    """What a gate is about."""

    title: str
    question: str
    section: str
    unit: Unit
    argument: str | None  # what may stand in parentheses


STABILITY, COLUMN, RADIUS = "perturbation", "column", "radius"

KNOWN = {
    "not_found_rate": Known(
        "Coverage", "For how many people is there no explanation at all?", "coverage", "share", None
    ),
    "median_amplification": Known(
        "Typical stability",
        "How much further does the explanation move than the person?",
        "stability",
        "times",
        STABILITY,
    ),
    "p95_amplification": Known(
        "Worst-case stability", "The same, exceeded by one variation in twenty", "stability", "times", STABILITY
    ),
    "median_distance": Known("Typical movement", "How far does the explanation move?", "stability", "cost", STABILITY),
    "p95_distance": Known(
        "Largest movement",
        "How far does the explanation move, exceeded by one variation in twenty?",
        "stability",
        "cost",
        STABILITY,
    ),
    "flip_rate": Known(
        "Decisions that flip",
        "How often does a slight variation get the other decision?",
        "stability",
        "share",
        STABILITY,
    ),
    "certified_share": Known(
        "Certified share",
        "For how many is stability proven, for every change within the radius that leaves immutable columns alone?",
        "stability",
        "share",
        RADIUS,
    ),
    "pair_difference_rate": Known(
        "Alike pairs", "How many pairs of similar people are told to change different things?", "pairs", "share", None
    ),
    "pair_break_rate": Known(
        "Pairs that come apart",
        "How many similar pairs get explanations that are too far apart?",
        "pairs",
        "share",
        None,
    ),
    "group_cost_gap": Known(
        "Group gap in cost", "Largest difference in typical cost between two groups", "groups", "cost", COLUMN
    ),
    "group_adjusted_gap": Known(
        "Group gap at the same distance",
        "Largest difference in cost to everybody else who is equally far from the boundary",
        "groups",
        "cost",
        COLUMN,
    ),
    "group_not_found_gap": Known(
        "Group gap in coverage",
        "Largest difference between two groups in the share of people without an explanation",
        "groups",
        "share",
        COLUMN,
    ),
    "group_recourse_gap": Known(
        "Recourse gap",
        "Largest difference in mean cost between two groups (equalizing recourse)",
        "groups",
        "cost",
        COLUMN,
    ),
    "group_amplification_gap": Known(
        "Group gap in stability",
        "Largest difference in typical amplification between two groups",
        "groups",
        "times",
        COLUMN,
    ),
}

_PATTERN = re.compile(r"\s*(\w+)\s*(?:\(\s*([^()]*?)\s*\))?\s*(<=|>=)\s*([-+0-9.eE]+)\s*")


@dataclass(frozen=True)
class Gate:
    """One condition, such as ``median_amplification <= 1.2``."""

    text: str
    name: str
    argument: str | float | None
    comparison: Literal["<=", ">="]
    limit: float

    @property
    def known(self) -> Known:
        """What it is about."""
        return KNOWN[self.name]

    def judge(self, interval: Interval, strict: Interval | None = None) -> Result:
        """Pass only if the whole interval is inside the limit, fail only if it is wholly outside.

        `strict` is a wider interval that decides failing, where many are looked at and one fails by chance.
        """
        if strict is not None and self.judge(interval) == "fail":
            return "fail" if self.judge(strict) == "fail" else "undecided"
        if math.isnan(interval.low) or math.isnan(interval.high):
            return "undecided"
        if self.comparison == "<=":
            return "pass" if interval.high <= self.limit else "fail" if interval.low > self.limit else "undecided"
        return "pass" if interval.low >= self.limit else "fail" if interval.high < self.limit else "undecided"


class Candidate(NamedTuple):
    """A number that a gate is about, and what it was measured on."""

    interval: Interval
    of: str | None = None
    strict: Interval | None = None
    why: str | None = None  # it could not be measured


class Judged(NamedTuple):
    """A gate with its result; `why` says what kept it from being decided."""

    gate: Gate
    result: Result
    interval: Interval
    of: str | None
    why: str | None


def parse_gate(text: str) -> Gate:
    """A gate from its text; what is wrong with it is said with what is possible.

    Examples
    --------
    >>> parse_gate("certified_share(0.1) >= 0.8").argument
    0.1
    """
    found = _PATTERN.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise AuditError(
            f"The gate {text!r} cannot be read. A gate is a name, <= or >=, and a limit: "
            '"median_amplification <= 1.2", "certified_share(0.1) >= 0.8".'
        )
    name, argument, comparison, limit = found.groups()
    if name not in KNOWN:
        raise AuditError(
            f"There is no gate {name!r} (in {text!r}).{nearest(name, KNOWN)} Possible are {', '.join(KNOWN)}."
        )
    wanted = KNOWN[name].argument
    value: str | float | None = argument
    if wanted == RADIUS:
        value = _number(argument or "", text, f"{name} needs a radius in parentheses, such as {name}(0.1)")
        if value < 0:
            raise AuditError(f"The radius of the gate {text!r} must not be negative.")
    elif argument is not None and wanted is None:
        raise AuditError(f"The gate {name} takes nothing in parentheses, got {text!r}.")
    elif argument == "":
        raise AuditError(f"The parentheses of the gate {text!r} are empty: name a {wanted}, or leave them out.")
    better: Literal["<=", ">="] = ">=" if name == "certified_share" else "<="
    if comparison != better:
        raise AuditError(
            f"The gate {text!r} asks for the worse: of {name} {'more' if better == '>=' else 'less'} "
            f"is better, write {better}."
        )
    return Gate(text, name, value, better, _number(limit, text, "the limit is not a number"))


def _number(text: str, gate: str, problem: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise AuditError(f"The gate {gate!r} cannot be read: {problem}.") from None
    if not math.isfinite(value):
        raise AuditError(f"The gate {gate!r} cannot be read: {problem}.")
    return value


def judge(gate: Gate, candidates: Sequence[Candidate], why: str | None = None) -> Judged:
    """The gate's result over everything that it is about: it passes only if all of it passes.

    Parameters
    ----------
    gate : Gate
    candidates : sequence of Candidate
        Without any the gate is undecided.
    why : str, optional
        Why there is none.
    """
    if not candidates:
        nothing = Interval(math.nan, math.nan, math.nan)
        return Judged(gate, "undecided", nothing, None, why or "There was nothing to measure.")
    worst_first: tuple[Result, ...] = ("fail", "undecided", "pass")
    results = [gate.judge(one.interval, one.strict) for one in candidates]
    result = min(results, key=worst_first.index)
    sign = 1.0 if gate.comparison == "<=" else -1.0
    deciding = [one for one, its in zip(candidates, results, strict=True) if its == result]
    shown = max(deciding, key=lambda one: -math.inf if math.isnan(one.interval.value) else sign * one.interval.value)
    reason = None
    if result == "undecided":
        across = "The interval lies on both sides of the limit."
        if shown.strict is not None and gate.judge(shown.interval) == "fail":
            across = "Outside of the limit, but one of so many comparisons may be so by chance."
        unknown = math.isnan(shown.interval.low) or math.isnan(shown.interval.high)
        reason = shown.why or ("An interval takes at least two people." if unknown else across)
    return Judged(gate, result, shown.interval, shown.of, reason)
