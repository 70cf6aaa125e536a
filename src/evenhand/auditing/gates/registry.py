"""Gates by name: one object a gate, and anybody can add another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from evenhand.auditing.document.overall import Better, Part, Result, Unit
from evenhand.auditing.gates.evidence import Evidence
from evenhand.registering import check_free
from evenhand.stats import Interval

Argument = Literal["perturbation", "column", "radius", "number"]
NUMBERS: tuple[Argument, ...] = ("radius", "number")  # have to be given; names may be left out, which means all


class Candidate(NamedTuple):
    """A number that a gate is about, and what it was measured on.

    `strict` is a wider interval that decides failing where many numbers are looked at; `why` says that, and why, it
    could not be measured.
    """

    interval: Interval
    of: str | None = None
    strict: Interval | None = None
    why: str | None = None


class Unmeasured(NamedTuple):
    """Why there is no number at all."""

    why: str | None = None


Measure = Callable[["Condition", Evidence], Sequence[Candidate] | Unmeasured]


class Situation(NamedTuple):
    """What an audit without gates of its own has, for gates that are set by default."""

    groups: bool  # sensitive columns, and a decision that people want
    certificates: bool  # radii in the distance of the audit
    euclidean: bool  # an l2 cost: with an l1 cost even a linear model amplifies up to 2


Default = str | Callable[[Situation], str | None]


@dataclass(frozen=True)
class Gate:
    """What can be asked of explanations.

    Attributes
    ----------
    name : str
        How conditions call it: ``name <= limit`` in the list `gates` of an audit or its file.
    title, question : str
        How the report calls it, and what it asks.
    section : str
        The part of the report that it belongs to.
    unit : {"times", "share", "cost"}
        Of its number.
    measure : callable
        ``measure(condition, evidence)`` finds the numbers: it passes only if all of them pass.
    argument : str or None
        What may stand in parentheses after the name: a perturbation or sensitive column, all of them if left out; or
        a radius or another number, which has to be given.
    better : {"<=", ">="}
        Whether less or more is better.
    default : str, callable or None
        The condition of an audit that sets none, such as ``"p95_amplification <= 3"``; or a function that makes it
        from the :class:`Situation` and returns None to leave the gate out.
    failing : str or None
        The title of a report in which nothing else fails; that of its section if left out.
    """

    name: str
    title: str
    question: str
    section: Part
    unit: Unit
    measure: Measure
    argument: Argument | None = None
    better: Better = "<="
    default: Default | None = None
    failing: str | None = None


@dataclass(frozen=True)
class Condition:
    """One gate with its limit."""

    text: str
    gate: Gate
    argument: str | float | None
    limit: float

    @property
    def name(self) -> str:
        """Of the gate."""
        return self.gate.name

    @property
    def comparison(self) -> Better:
        """Whether the limit is an upper or a lower one."""
        return self.gate.better

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


GATES: dict[str, Gate] = {}


def gate(
    name: str,
    *,
    title: str,
    question: str,
    section: Part,
    unit: Unit,
    argument: Argument | None = None,
    better: Better = "<=",
    default: Default | None = None,
    failing: str | None = None,
) -> Callable[[Measure], Measure]:
    """Register a function that measures what a gate asks; the parameters are those of :class:`Gate`.

    Examples
    --------
    >>> from evenhand.stats import share_interval
    >>> @gate("dear_rate", title="Dear advice", question="How many are asked to change more than this?",
    ...       section="coverage", unit="share", argument="number")
    ... def dear_rate(condition, evidence):
    ...     cost = evidence.people.loc[evidence.people["found"], "cost"]
    ...     return [Candidate(share_interval(int((cost > condition.argument).sum()), len(cost)))]
    >>> GATES.pop("dear_rate").title
    'Dear advice'
    """
    if not name.isidentifier():
        raise ValueError(f"The name of a gate is letters, digits and underscores, such as 'flip_rate'; got {name!r}.")
    for what, value, choices in (
        ("section", section, get_args(Part)),
        ("unit", unit, get_args(Unit)),
        ("argument", argument, (None, *get_args(Argument))),
        ("better", better, get_args(Better)),
    ):
        if value not in choices:
            raise ValueError(
                f"The {what} of the gate {name!r} must be one of {', '.join(map(repr, choices))}; got {value!r}."
            )

    def register(measure: Measure) -> Measure:
        known = GATES.get(name)
        instead = 'choose another name with @gate("..."), or remove that one from GATES first.'
        check_free("gate", name, measure, None if known is None else known.measure, instead)
        GATES[name] = Gate(name, title, question, section, unit, measure, argument, better, default, failing)
        return measure

    return register
