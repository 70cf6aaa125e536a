"""How many people's explanations move how far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.displays.base import INK, MUTED, Display, check_named, percent, plain_numbers, styles
from evenhand.stability.draws import MEASURES
from evenhand.stability.instability import Instability
from evenhand.types import FloatArray

WORDS = {
    "distance": ("How far explanations move", "distance between explanations"),
    "amplification": ("How far explanations move", "amplification (distance / perturbation)"),
    "jaccard": ("How much of what people are told stays the same", "overlap of the changed features (Jaccard)"),
    "change_distance": ("How far what people are told to change moves", "distance between changes"),
    "cost_gap": ("How much the cost changes", "difference of costs"),
    "input_distance": ("How far people were moved", "distance between people"),
}


@dataclass
class InstabilityDisplay(Display):
    """How many people's explanations move how far: one cumulative curve per measurement.

    Parameters
    ----------
    values : mapping of name to array
        A number per person.
    measure : str
        What the numbers are.
    """

    values: Mapping[str, FloatArray] = field(default_factory=dict)
    measure: str = "distance"

    @classmethod
    def from_instability(
        cls, results: Instability | Mapping[str, Instability], *, measure: str = "distance", ax: Any = None
    ) -> InstabilityDisplay:
        """Draw the people's means of a measure, for one result of :func:`instability` or several by name."""
        named = {"": results} if isinstance(results, Instability) else results
        check_named(named, "instability()")
        values = {}
        for name, result in named.items():
            measures = [m for m in result.people.columns if m.startswith(MEASURES) or m in ("cost", "floor")]
            if measure not in measures:
                raise ValueError(f"There is no measure {measure!r}; there are {', '.join(measures)}.")
            column = result.people[measure].to_numpy(dtype=float)
            values[name] = column[np.isfinite(column)]
        return cls(values=values, measure=measure).plot(ax=ax)

    def plot(self, ax: Any = None) -> InstabilityDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = self._canvas(ax)
        ratio = self.measure.startswith("amplification")
        positive = all((values > 0).all() for values in self.values.values() if len(values))
        for (name, values), (color, _, line) in zip(self.values.items(), styles(len(self.values)), strict=True):
            if not len(values):
                continue
            middle = float(np.median(values))
            label = f"{name}, median {middle:.3g}" if name else f"median {middle:.3g}"
            ordered = np.sort(values)
            ax.step(
                ordered,
                np.arange(1, len(values) + 1) / len(values),
                where="post",
                color=color,
                ls=line,
                lw=1.8,
                label=label,
            )
            ax.plot([middle], [0.5], marker="|", color=color, ms=12, mew=2)
        if ratio:
            ax.axvline(1.0, color=INK, lw=0.8)
        if ratio and positive:
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter(plain_numbers())
            ax.xaxis.set_minor_formatter(plain_numbers(only=(2, 5)))
        elif positive:
            ax.set_xlim(left=0)
        ax.set_ylim(0, 1)
        ax.yaxis.set_major_formatter(percent())
        title, axis = WORDS.get(self.measure, (self.measure.replace("_", " "), self.measure.replace("_", " ")))
        self._titled(ax, title, f"{axis} →", "share of people")
        if not any(map(len, self.values.values())):
            ax.text(0.5, 0.5, "Nothing to measure.", transform=ax.transAxes, ha="center", color=MUTED)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(frameon=False, fontsize=9, loc="lower right", labelcolor=INK)
        return self
