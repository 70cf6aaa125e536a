"""What one person would have to change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.displays.base import INK, MUTED, STYLES, Display
from evenhand.explaining.explanations import Explanations
from evenhand.markup import short
from evenhand.types import FloatArray

MOST_FEATURES = 12


@dataclass
class CounterfactualDisplay(Display):
    """What one person would have to change, in units of each feature's spread among the people.

    Parameters
    ----------
    names : list of str
        Features that change, the largest change first.
    changes : array
        Their changes in units of the spread.
    words : list of str
        From what to what.
    title : str
        Who, and towards which label.
    """

    names: list[str] = field(default_factory=list)
    changes: FloatArray = field(default_factory=lambda: np.zeros(0))
    words: list[str] = field(default_factory=list)
    title: str = ""
    left_out: int = 0
    unit: str = "standard deviations"

    @classmethod
    def from_explanations(cls, explanations: Explanations, row: int = 0, *, ax: Any = None) -> CounterfactualDisplay:
        """Draw the explanation of the person at a position; for one without it, a ValueError says why."""
        if not -len(explanations) <= row < len(explanations):
            raise ValueError(f"There is no person at position {row!r}: the table has {len(explanations)}.")
        if not explanations.valid[row]:
            raise ValueError(f"Person {row} has no counterfactual to draw. {explanations.reason[row]}")
        before, after = (Explanations._frame(table) for table in (explanations.factual, explanations.counterfactual))
        known = before.to_numpy(dtype=float)
        known = known[np.isfinite(known).all(axis=1)]
        spread = known.std(axis=0)
        spread = np.where(spread > 1e-12 * np.abs(known).max(axis=0), spread, 0.0)
        change = (after.iloc[row] - before.iloc[row]).to_numpy()
        size = change / np.where(spread > 0, spread, 1.0)
        order = [int(j) for j in np.argsort(-np.abs(size), kind="stable") if change[j] != 0]
        shown = order[:MOST_FEATURES]
        person, target = short(before.index[row]), short(explanations.target[row])
        return cls(
            names=[str(before.columns[j]) for j in shown],
            changes=size[shown],
            words=[f"{short(before.iloc[row, j])} → {short(after.iloc[row, j])}" for j in shown],
            title=f"Person {person}: what would have to change for {target}",
            left_out=len(order) - len(shown),
            unit="standard deviations" if len(known) > 1 else "raw units, for lack of other people",
        ).plot(ax=ax)

    def plot(self, ax: Any = None) -> CounterfactualDisplay:
        """Draw on `ax`, or on a new figure."""
        n = len(self.names)
        ax = self._canvas(ax, height=1.2 + 0.34 * max(n, 1))
        place = np.arange(n)[::-1]
        color = STYLES[0][0]
        ax.hlines(place, 0, self.changes, color=color, lw=2)
        ax.plot(self.changes, place, ls="", marker="o", color=color, ms=6)
        ax.axvline(0.0, color=INK, lw=0.8)
        for y, size, word in zip(place, self.changes, self.words, strict=True):
            side = "left" if size >= 0 else "right"
            ax.annotate(
                word,
                (size, y),
                xytext=(8 if size >= 0 else -8, 0),
                textcoords="offset points",
                ha=side,
                va="center",
                fontsize=9,
                color=INK,
            )
        ax.set_yticks(place, self.names)
        ax.set_ylim(-0.6, max(n, 1) - 0.4)
        reach = float(np.abs(self.changes).max(initial=0.0)) or 1.0
        low, high = min(self.changes.min(initial=0.0), 0.0), max(self.changes.max(initial=0.0), 0.0)
        ax.set_xlim(low - 0.45 * reach * (low < 0) - 0.05 * reach, high + 0.45 * reach * (high > 0) + 0.05 * reach)
        if not n:
            ax.text(0.5, 0.5, "Nothing has to change.", transform=ax.transAxes, ha="center", color=MUTED)
        more = f", {self.left_out} smaller left out" if self.left_out else ""
        self._titled(ax, self.title, f"change in {self.unit}{more} →")
        return self
