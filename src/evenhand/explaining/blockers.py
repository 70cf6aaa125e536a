"""Which rules stand in the way of people who cannot reach a target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from evenhand.status import Status
from evenhand.table.limits import Actionable
from evenhand.table.schema import Schema
from evenhand.types import BoolArray, FloatArray, IntArray

MOST = 2000  # combinations of rules that are tried before the search for a reason gives up
REACHED = (Status.OPTIMAL, Status.INACCURATE)


@dataclass(frozen=True)
class Rule:
    """One thing that keeps people from changing: its name, and the limits without it."""

    name: str
    lift: Callable[[Actionable, Schema], tuple[Actionable, Schema]]


@dataclass(frozen=True, eq=False)
class Blockers:
    """What blocks people, found when somebody asks.

    Attributes
    ----------
    freed : callable
        ``freed(actionable, schema)`` is the explainer with other limits.
    actionable, schema : Actionable, Schema
        What may change, as it is.
    codes, goal : arrays
        The people who have no counterfactual, and the positions of their targets; -1 for any other label.
    """

    freed: Callable[[Actionable, Schema], Any]
    actionable: Actionable
    schema: Schema
    codes: FloatArray
    goal: IntArray

    def reasons(self) -> list[str]:
        """One sentence per person: single rules first, then pairs of them."""
        named: list[list[str]] = [[] for _ in self.codes]
        rules = list(rules_of(self.actionable, self.schema))
        open_rows = np.flatnonzero(self._reached(rules, np.arange(len(self.codes))))
        for size in (1, 2):
            waiting = np.array([i for i in open_rows if not named[i]], dtype=np.intp)
            for some in list(combinations(rules, size))[:MOST]:
                if not len(waiting):
                    break
                for i in waiting[self._reached(list(some), waiting)]:
                    named[i].append(" together with ".join(rule.name for rule in some))
        possible = np.isin(np.arange(len(self.codes)), open_rows)
        return [self._sentence(names, bool(free)) for names, free in zip(named, possible, strict=True)]

    def _reached(self, lifted: list[Rule], rows: IntArray) -> BoolArray:
        """Which people have a counterfactual without some of the rules."""
        if not len(rows) or not lifted:
            return np.zeros(len(rows), dtype=bool)
        actionable, schema = self.actionable, self.schema
        for rule in lifted:
            actionable, schema = rule.lift(actionable, schema)
        answers = self.freed(actionable, schema).answer(self.codes[rows], self.goal[rows])
        return np.isin(answers.status, REACHED)

    @staticmethod
    def _sentence(names: list[str], possible: bool) -> str:
        if names:
            why = f"What blocks it: {'; or '.join(names)}."
        elif possible:
            why = "Several rules block it together."
        else:
            why = "No rule blocks it: with these columns there is no such point."
        return f"{Status.UNREACHABLE.reason} {why}"


def rules_of(actionable: Actionable, schema: Schema) -> Iterator[Rule]:
    """Everything that limits people, one thing at a time."""
    for kind in ("immutable", "increase", "decrease"):
        for column in getattr(actionable, kind):
            words = "is immutable" if kind == "immutable" else f"may only {kind}"
            yield Rule(f"{column!r} {words}", _without(kind, column))
    for kind in ("bounds", "levels"):
        for column in getattr(actionable, kind):
            yield Rule(f"the {kind} of {column!r}", _without(kind, column))
    for rule in actionable.rules:
        yield Rule(str(rule), _without("rules", rule))
    for name, column in schema.columns.items():
        if column.bounds is not None:
            low, high = ("" if side is None else f"{side:g}" for side in column.bounds)
            between = " to ".join(side for side in (low, high) if side)
            words = f"from {between}" if low else f"up to {between}"
            yield Rule(f"{name!r} takes values {words}" + (" on" if low and not high else ""), _unbounded(str(name)))


def _without(kind: str, item: Any) -> Callable[[Actionable, Schema], tuple[Actionable, Schema]]:
    def lift(actionable: Actionable, schema: Schema) -> tuple[Actionable, Schema]:
        present = getattr(actionable, kind)
        if isinstance(present, dict):
            rest: Any = {name: value for name, value in present.items() if name != item}
        else:
            rest = tuple(other for other in present if other != item)
        return replace(actionable, **{kind: rest}), schema

    return lift


def _unbounded(name: str) -> Callable[[Actionable, Schema], tuple[Actionable, Schema]]:
    def lift(actionable: Actionable, schema: Schema) -> tuple[Actionable, Schema]:
        return actionable, Schema(
            {
                known: replace(column, bounds=None) if str(known) == name else column
                for known, column in schema.columns.items()
            }
        )

    return lift
