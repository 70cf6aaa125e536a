"""Who is better off with which method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.displays.base import INK, STYLES, Display
from evenhand.stability.comparison import Comparison


@dataclass
class ComparisonDisplay(Display):
    """Who is better off with which method: the people's differences as a histogram.

    Parameters
    ----------
    comparison : Comparison
        Made by :func:`compare`.
    """

    comparison: Comparison | None = None

    @classmethod
    def from_comparison(cls, comparison: Comparison, *, ax: Any = None) -> ComparisonDisplay:
        """Draw a result of :func:`compare`."""
        return cls(comparison=comparison).plot(ax=ax)

    def plot(self, ax: Any = None) -> ComparisonDisplay:
        """Draw on `ax`, or on a new figure."""
        comparison = self.comparison
        if comparison is None or not len(comparison.differences):
            raise ValueError("There are no pairs to draw: the comparison is empty.")
        ax = self._canvas(ax)
        a, b = comparison.names
        low, high = np.quantile(comparison.differences, [0.005, 0.995])
        reach = max(abs(low), abs(high), 1e-12)
        edges = np.linspace(-reach, reach, 41)  # zero is an edge: nobody is drawn on both sides
        moved = comparison.differences[comparison.differences != 0]
        same = len(comparison.differences) - len(moved)
        inside = np.clip(moved, -reach, reach)
        counts, _, bars = ax.hist(inside, edges, color=STYLES[1][0], alpha=0.85)
        smaller_is_better = comparison.measure != "jaccard"
        for edge, bar in zip(edges, bars, strict=False):
            better = (edge < -1e-15) == smaller_is_better
            bar.set_facecolor(STYLES[1][0] if better else STYLES[0][0])
            if not better:
                bar.set_hatch("////")
                bar.set_edgecolor("white")
        ax.axvline(0.0, color=INK, lw=0.8)
        ax.axvline(comparison.shift, color=INK, lw=1.2, ls=(0, (4, 2)))
        ax.annotate(
            f"shift {comparison.shift:.3g}",
            (comparison.shift, counts.max()),
            xytext=(4, 2),
            textcoords="offset points",
            fontsize=9,
            color=INK,
        )
        left, right = (
            (comparison.better, comparison.worse) if smaller_is_better else (comparison.worse, comparison.better)
        )
        words = ("better", "worse") if smaller_is_better else ("worse", "better")
        for side, share, word in ((0.01, left, words[0]), (0.99, right, words[1])):
            text = f"{share.value:.0%} {word} off\nwith {b}"
            across = "left" if side < 0.5 else "right"
            ax.text(side, 0.97, text, transform=ax.transAxes, ha=across, va="top", fontsize=9, color=INK, wrap=True)
        unchanged = f", of whom {same:,} are the same with both" if same else ""
        title = f"{b} against {a}, {comparison.people:,} people{unchanged}"
        self._titled(ax, title, f"{comparison.measure}: {b} minus {a} →", "people")
        return self
