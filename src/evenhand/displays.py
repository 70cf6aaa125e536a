"""Pictures of results, in the manner of scikit-learn's displays: computing and drawing are apart.

matplotlib is imported when something is drawn, and not before (``pip install evenhand[plot]``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.explaining.explanations import Explanations
from evenhand.markup import short
from evenhand.stability.certificate import Certificates
from evenhand.stability.comparison import Comparison
from evenhand.stability.experiment import MEASURES
from evenhand.stability.instability import Instability
from evenhand.types import FloatArray

INK, MUTED, LINE, ZONE = "#1B1F24", "#59626D", "#C3C8C6", "#E7EAE5"
# Colour, marker and line style together tell methods apart, also without colour.
STYLES: tuple[tuple[str, str, Any], ...] = (
    ("#C04A00", "o", "-"),
    ("#1A4FA3", "D", (0, (6, 2))),
    ("#007A6C", "^", "-."),
    ("#59626D", "s", ":"),
    ("#8A2C7E", "v", (0, (1, 1))),
    ("#8A6D00", "P", (0, (8, 2, 2, 2))),
    ("#1B1F24", "X", (0, (3, 3))),
    ("#4B83C3", "*", (0, (10, 3))),
)
MOST_FEATURES = 12
WORDS = {
    "distance": ("How far explanations move", "distance between explanations"),
    "amplification": ("How far explanations move", "amplification (distance / perturbation)"),
    "jaccard": ("How much of what people are told stays the same", "overlap of the changed features (Jaccard)"),
    "change_distance": ("How far what people are told to change moves", "distance between changes"),
    "cost_gap": ("How much the cost changes", "difference of costs"),
    "input_distance": ("How far people were moved", "distance between people"),
}


@dataclass
class _Display:
    """What the displays share: after :meth:`plot`, `ax_` and `figure_` hold what was drawn."""

    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    def _canvas(self, ax: Any, height: float = 3.6) -> Any:
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError(
                "Drawing needs matplotlib: pip install 'evenhand[plot]', or pip install matplotlib."
            ) from None
        if ax is None:
            _, ax = plt.subplots(figsize=(7.2, height), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        for side in ("left", "bottom"):
            ax.spines[side].set_color(LINE)
        ax.tick_params(which="both", colors=MUTED, labelsize=9, length=3)
        return ax

    @staticmethod
    def _titled(ax: Any, title: str, x: str, y: str = "") -> None:
        ax.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK, wrap=True)
        ax.set_xlabel(x, loc="right", fontsize=9, color=MUTED)
        ax.set_ylabel(y, loc="top", fontsize=9, color=MUTED)


@dataclass
class InstabilityDisplay(_Display):
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
        _something(named, "instability()")
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
        for (name, values), (color, _, line) in zip(self.values.items(), _styles(len(self.values)), strict=True):
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
            ax.xaxis.set_major_formatter(_plain_numbers())
            ax.xaxis.set_minor_formatter(_plain_numbers(only=(2, 5)))
        elif positive:
            ax.set_xlim(left=0)
        ax.set_ylim(0, 1)
        ax.yaxis.set_major_formatter(_percent())
        title, axis = WORDS.get(self.measure, (self.measure.replace("_", " "), self.measure.replace("_", " ")))
        self._titled(ax, title, f"{axis} →", "share of people")
        if not any(map(len, self.values.values())):
            ax.text(0.5, 0.5, "Nothing to measure.", transform=ax.transAxes, ha="center", color=MUTED)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(frameon=False, fontsize=9, loc="lower right", labelcolor=INK)
        return self


@dataclass
class ComparisonDisplay(_Display):
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
        found = self.comparison
        if found is None or not len(found.differences):
            raise ValueError("There are no pairs to draw: the comparison is empty.")
        ax = self._canvas(ax)
        a, b = found.names
        low, high = np.quantile(found.differences, [0.005, 0.995])
        reach = max(abs(low), abs(high), 1e-12)
        edges = np.linspace(-reach, reach, 41)  # zero is an edge: nobody is drawn on both sides
        moved = found.differences[found.differences != 0]
        same = len(found.differences) - len(moved)
        inside = np.clip(moved, -reach, reach)
        counts, _, bars = ax.hist(inside, edges, color=STYLES[1][0], alpha=0.85)
        smaller_is_better = found.measure != "jaccard"
        for edge, bar in zip(edges, bars, strict=False):
            better = (edge < -1e-15) == smaller_is_better
            bar.set_facecolor(STYLES[1][0] if better else STYLES[0][0])
            if not better:
                bar.set_hatch("////")
                bar.set_edgecolor("white")
        ax.axvline(0.0, color=INK, lw=0.8)
        ax.axvline(found.shift, color=INK, lw=1.2, ls=(0, (4, 2)))
        ax.annotate(
            f"shift {found.shift:.3g}",
            (found.shift, counts.max()),
            xytext=(4, 2),
            textcoords="offset points",
            fontsize=9,
            color=INK,
        )
        left, right = (found.better, found.worse) if smaller_is_better else (found.worse, found.better)
        words = ("better", "worse") if smaller_is_better else ("worse", "better")
        for side, share, word in ((0.01, left, words[0]), (0.99, right, words[1])):
            text = f"{share.value:.0%} {word} off\nwith {b}"
            across = "left" if side < 0.5 else "right"
            ax.text(side, 0.97, text, transform=ax.transAxes, ha=across, va="top", fontsize=9, color=INK, wrap=True)
        unchanged = f", of whom {same:,} are the same with both" if same else ""
        title = f"{b} against {a}, {found.people:,} people{unchanged}"
        self._titled(ax, title, f"{found.measure}: {b} minus {a} →", "people")
        return self


@dataclass
class CertificateDisplay(_Display):
    """For how many people an explanation is proven to be stable, by the size of the perturbation.

    Parameters
    ----------
    eps : array of shape (k,)
        Sizes of the perturbation.
    shares : mapping of name to array of shape (k,)
        Share of people who are certified.
    """

    eps: FloatArray = field(default_factory=lambda: np.zeros(0))
    shares: Mapping[str, FloatArray] = field(default_factory=dict)

    @classmethod
    def from_certificates(
        cls,
        certificates: Certificates | Mapping[str, Certificates],
        *,
        eps: npt.ArrayLike | None = None,
        ax: Any = None,
    ) -> CertificateDisplay:
        """Draw one result of :func:`certify`, or several by name; sizes `eps` are chosen from the radii if left out."""
        named = {"": certificates} if isinstance(certificates, Certificates) else certificates
        _something(named, "certify()")
        if len({c.order for c in named.values()}) > 1:
            raise ValueError(
                "Certificates with l1 and with l2 costs prove different things, in different units: draw them apart."
            )
        if eps is None:
            radii = np.concatenate([np.minimum(c.stability_radius, c.label_radius) for c in named.values()])
            radii = radii[np.isfinite(radii)]
            most = float(np.quantile(radii, 0.95)) if len(radii) else 1.0
            eps = np.linspace(0.0, most or 1.0, 200)
        sizes = np.asarray(eps, dtype=np.float64)
        if sizes.ndim != 1 or len(np.unique(sizes)) < 2 or not (np.isfinite(sizes) & (sizes >= 0)).all():
            raise ValueError(f"eps must list at least two different sizes >= 0, got {eps!r}.")
        shares = {name: np.array([c.share(size) for size in sizes]) for name, c in named.items()}
        return cls(eps=sizes, shares=shares).plot(ax=ax)

    def plot(self, ax: Any = None) -> CertificateDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = self._canvas(ax)
        for (name, share), (color, _, line) in zip(self.shares.items(), _styles(len(self.shares)), strict=True):
            ax.step(self.eps, share, where="post", color=color, ls=line, lw=1.8, label=name or None)
            if not name:
                ax.fill_between(self.eps, share, step="post", color=ZONE, lw=0)
        ax.set_ylim(0, 1)
        ax.set_xlim(float(self.eps.min()), float(self.eps.max()))
        ax.yaxis.set_major_formatter(_percent())
        self._titled(
            ax, "Explanations proven stable", "size of the perturbation, in units of the cost →", "share of people"
        )
        if any(self.shares):
            ax.legend(frameon=False, fontsize=9, loc="upper right", labelcolor=INK)
        return self


@dataclass
class CounterfactualDisplay(_Display):
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


def _something(named: Mapping[str, Any], source: str) -> None:
    if not named:
        raise ValueError(f"There is nothing to draw: pass a result of {source}, or a mapping of names to results.")


def _styles(n: int) -> list[tuple[str, str, Any]]:
    return [STYLES[i % len(STYLES)] for i in range(n)]


def _percent() -> Any:
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: f"{value:.0%}")


def _plain_numbers(only: tuple[int, ...] = ()) -> Any:
    """Ratios on a log axis; of the minor ticks `only` those with these first digits, so that labels do not collide."""
    from matplotlib.ticker import FuncFormatter

    def label(value: float, _: object) -> str:
        digit = round(value / 10 ** np.floor(np.log10(value)))
        return f"{value:g}×" if not only or digit in only else ""

    return FuncFormatter(label)


__all__ = ["CertificateDisplay", "ComparisonDisplay", "CounterfactualDisplay", "InstabilityDisplay"]
