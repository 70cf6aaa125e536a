"""What all pictures share: colours, canvas, titles and the labels of axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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


@dataclass
class Display:
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


def check_named(named: Mapping[str, Any], source: str) -> None:
    """Refuse to draw no result at all."""
    if not named:
        raise ValueError(f"There is nothing to draw: pass a result of {source}, or a mapping of names to results.")


def styles(n: int) -> list[tuple[str, str, Any]]:
    """Colour, marker and line style of `n` curves; they repeat when there are more than styles."""
    return [STYLES[i % len(STYLES)] for i in range(n)]


def percent() -> Any:
    """Shares on an axis."""
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: f"{value:.0%}")


def plain_numbers(only: tuple[int, ...] = ()) -> Any:
    """Ratios on a log axis; of the minor ticks `only` those with these first digits, so that labels do not collide."""
    from matplotlib.ticker import FuncFormatter

    def label(value: float, _: object) -> str:
        digit = round(value / 10 ** np.floor(np.log10(value)))
        return f"{value:g}×" if not only or digit in only else ""

    return FuncFormatter(label)
