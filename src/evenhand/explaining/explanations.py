"""Explanations of a table of people, as data."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.explaining.blockers import Blockers
from evenhand.explaining.telling import Teller, told, word
from evenhand.markup import block
from evenhand.status import Status
from evenhand.table.frames import as_frame
from evenhand.types import FloatArray

Table: TypeAlias = FloatArray | pd.DataFrame
SHOWN = 10


@dataclass(frozen=True, eq=False)
class Explanations:
    """What would have to be different, one row per person; no row is ever dropped.

    Attributes
    ----------
    factual, counterfactual : array or DataFrame of shape (n, n_features)
        The people as they are, and as they would have to be; a DataFrame if one was given.
        A person without a counterfactual is a row of NaN.
    target : array of shape (n,)
        The label that each counterfactual aims at; None where no label was within reach.
    cost : array of shape (n,)
        Cost of the change; NaN where there is none.
    gap : array of shape (n,)
        Proven: nothing cheaper than ``cost - gap`` exists.  What an answer keeps from the boundary, so that rounding
        cannot put it on the wrong side, is part of the gap.
    status : array of shape (n,)
        A :class:`Status` per person; :attr:`reason` says it in words.
    valid : array of shape (n,)
        Whether the model's own ``predict`` returns the target for the counterfactual.
    complaint : array of shape (n,), optional
        What is wrong with people who could not be read, in words; empty for all others.
    blockers : Blockers, optional
        Finds what blocks the people whose target is unreachable, when :attr:`reason` is asked for.
    teller : Teller, optional
        Knows how few digits still lead to the target, when :meth:`describe` is asked; without it, as after pickling,
        all of them are told.
    """

    factual: Table
    counterfactual: Table
    target: npt.NDArray[Any]
    cost: FloatArray
    gap: FloatArray
    status: npt.NDArray[np.str_]
    valid: npt.NDArray[np.bool_]
    complaint: npt.NDArray[Any] | None = None
    blockers: Blockers | None = field(default=None, repr=False)
    teller: Teller | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.cost)

    @property
    def changes(self) -> Table:
        """The change per feature: counterfactual minus factual; levels as ``"car -> house"``, None where they stay."""
        if not isinstance(self.factual, np.ndarray):
            before, after = self._frame(self.factual), self._frame(self.counterfactual)
            return pd.DataFrame({name: _change(before[name], after[name]) for name in before}, index=before.index)
        return self.counterfactual - self.factual

    @cached_property
    def note(self) -> npt.NDArray[Any]:
        """What is known beyond the status: what is wrong with a person, or which rules block it; else empty.

        What blocks people is found when it is asked for the first time.
        """
        note = np.full(len(self), "", dtype=object) if self.complaint is None else self.complaint.copy()
        blocked = np.flatnonzero(self.status == Status.UNREACHABLE)
        if len(blocked) and self.blockers is not None:
            note[blocked] = self.blockers.reasons()
        return note

    def __getstate__(self) -> dict[str, Any]:
        # A method that was fitted does not travel with its answers: what blocks people is found before.
        return {**self.__dict__, "note": self.note, "blockers": None, "teller": None}

    @property
    def reason(self) -> npt.NDArray[np.str_]:
        """The status of each person as a sentence, with what blocks it or is wrong with it."""
        reasons = {status: status.reason for status in Status}
        found = np.array([reasons[Status(status)] for status in self.status], dtype=object)
        return np.where(self.note != "", self.note, found).astype(np.str_)

    def to_frame(self) -> pd.DataFrame:
        """One row per person: the outcome, then the counterfactual under the features' own names.

        A column of the outcome whose name is also a feature's gets a trailing underscore.
        """
        features = self._frame(self.counterfactual)
        outcome = {
            "target": self.target,
            "cost": self.cost,
            "gap": self.gap,
            "status": self.status,
            "valid": self.valid,
            "reason": self.reason,
        }
        taken = set(features.columns)
        named = {name + "_" * (name in taken): values for name, values in outcome.items()}
        return pd.concat([pd.DataFrame(named, index=features.index), features], axis=1)

    def describe(self, row: int) -> str:
        """What one person is told, in words: ``income: 1200 -> 1500; debt: 300 -> 250``.

        Numbers are rounded away from the person, to as few digits as lead to the target if they are typed back.
        """
        if not self.valid[row]:
            return str(self.reason[row])
        person, changed = (self._frame(table).iloc[[row]] for table in (self.factual, self.counterfactual))
        before, after = (next(table.itertuples(index=False, name=None)) for table in (person, changed))
        moved = [j for j, (is_now, would_be) in enumerate(zip(before, after, strict=True)) if _other(is_now, would_be)]
        if not moved:
            return Status(self.status[row]).reason

        def leads(values: list[Any]) -> bool:
            assert self.teller is not None
            typed = changed.copy()
            for j, value in zip(moved, values, strict=True):
                if value != after[j]:
                    typed.isetitem(j, [value])
            if isinstance(self.factual, np.ndarray):
                return self.teller.leads(person.to_numpy(), typed.to_numpy(), self.target[row])
            return self.teller.leads(person, typed, self.target[row])

        words = told(list(before), list(after), moved, leads if self.teller is not None else None)
        return "; ".join(f"{person.columns[j]}: {now} -> {then}" for j, (now, then) in zip(moved, words, strict=True))

    def __repr__(self) -> str:
        found = int(self.valid.sum())
        counts = ", ".join(f"{n} {s}" for s, n in zip(*np.unique(self.status, return_counts=True), strict=True))
        middle = f", median cost {np.nanmedian(self.cost):.4g}" if found else ""
        return f"Explanations({len(self)} people: {counts or 'none'}{middle})"

    def _repr_html_(self) -> str:
        index = self.factual.index if isinstance(self.factual, pd.DataFrame) else range(len(self))
        rows: list[list[str]] = []
        for i in range(min(len(self), SHOWN)):
            cost = "–" if np.isnan(self.cost[i]) else f"{self.cost[i]:.4g}"
            cells = [html.escape(str(cell)) for cell in (index[i], self.target[i], self.status[i], cost)]
            rows.append([*cells, self._told_html(i)])
        more = f"{len(self) - SHOWN} more people." if len(self) > SHOWN else ""
        return block(repr(self), ["person", "target", "status", "cost", "what would have to change"], rows, more)

    def _told_html(self, row: int) -> str:
        parts = self.describe(row).split("; ")
        shown = "<br>".join(html.escape(part).replace("-&gt;", "→") for part in parts[:SHOWN])
        return shown + (f"<br>and {len(parts) - SHOWN} more" if len(parts) > SHOWN else "")

    @staticmethod
    def _frame(table: Table) -> pd.DataFrame:
        if not isinstance(table, np.ndarray):
            return as_frame(table)
        return pd.DataFrame(table, columns=[f"x{j}" for j in range(table.shape[1])])


def _change(before: pd.Series[Any], after: pd.Series[Any]) -> Any:
    if pd.api.types.is_numeric_dtype(before.dtype) and not pd.api.types.is_bool_dtype(before.dtype):
        return after - before
    pairs = zip(before.astype(object), after.astype(object), strict=True)
    return [_told(is_now, then) if _other(is_now, then) else None for is_now, then in pairs]


def _told(before: Any, after: Any) -> str:
    """Both values."""
    return f"{word(before)} -> {word(after)}"


def _other(a: Any, b: Any) -> bool:
    """Whether two values differ; missing is missing."""
    return bool(a != b) if not (pd.isna(a) or pd.isna(b)) else bool(pd.isna(a) != pd.isna(b))
