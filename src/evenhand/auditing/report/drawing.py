"""Parts of figures: rows, marks and names, whose fields are ours, whatever the columns of the data are called."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from evenhand.auditing.report.placing import Spot
from evenhand.pages.look import LIGHT, METHODS, SHAPES

TIMES = "(datum.value < 1 ? format(datum.value, '.3~r') : format(datum.value, ',~r')) + '×'"
BROAD = "width > 450"  # between a phone's and a screen's, in an expression of Vega
DASHED = [4, 3]
FINER = ((1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8), tuple(1 + k / 10 for k in range(90)))


def known(method: str) -> str:
    """The method whose colour and shape a name has."""
    return method if method in METHODS else "other"


def color_of(method: str, *, tint: bool = False) -> str:
    """The method's colour, or the paler one for areas."""
    if known(method) == "other":
        return LIGHT["line2" if tint else "muted"]
    return LIGHT[f"{method}-tint" if tint else method]


def rows(values: list[dict[str, Any]]) -> Any:
    """A chart of these rows."""
    return alt.Chart(alt.InlineData(values=values))


def mark(values: list[dict[str, Any]], method: str, size: int = 90, **more: Any) -> Any:
    """The method's own shape, with a rim that sets it off from lines."""
    shape = SHAPES.get(method, "square")
    look = {"filled": True, "fill": color_of(method), "stroke": LIGHT["bg"], "strokeWidth": 1.5, "opacity": 1.0}
    # A triangle or a diamond of the same area looks smaller than a circle.
    return rows(values).mark_point(shape=shape, size=size if shape == "circle" else 1.35 * size, **(look | more))


def rule(values: list[dict[str, Any]], color: str = "ink", **more: Any) -> Any:
    """Lines, thin unless said otherwise."""
    return rows(values).mark_rule(color=LIGHT.get(color, color), **more)


def text(values: list[dict[str, Any]], color: str = "ink", **more: Any) -> Any:
    """Texts of the field ``t``."""
    look = {"fontSize": 12, "color": LIGHT.get(color, color)}
    return rows(values).mark_text(**(look | more)).encode(text="t:N")


def spotted(values: list[dict[str, Any]], color: str, narrow: Spot, wide: Spot, lower: float = 0, **more: Any) -> Any:
    """A text beside its mark: where there is room on a phone, and where on a screen."""
    return text(
        values,
        color,
        align=_either(f"'{wide.align}'", f"'{narrow.align}'"),
        dx=_either(wide.dx, narrow.dx),
        dy=_either(wide.dy + lower, narrow.dy + lower),
        **({"fontSize": 12.5, "fontWeight": 600, "baseline": "middle"} | more),
    )


def _either(wide: Any, narrow: Any) -> dict[str, str]:
    return {"expr": f"{BROAD} ? {wide} : {narrow}"}


def above(name: str) -> Any:
    """The name of the upward axis, over it, with an arrow."""
    return alt.TitleParams(
        f"↑ {name}", anchor="start", frame="group", fontSize=12, fontWeight="normal", color=LIGHT["muted"], offset=8
    )


def across(title: str, scale: Any, **axis: Any) -> Any:
    """The field ``x``, with the name of the axis at its end."""
    look: dict[str, Any] = {"titleAnchor": "end", "titleAlign": "right", "titlePadding": 8, "labelFlush": False}
    return alt.X("x:Q", title=f"{title} →", scale=scale, axis=alt.Axis(**(look | axis)))


def upward(scale: Any, **axis: Any) -> Any:
    """The field ``y``; its name is above the figure."""
    return alt.Y("y:Q", title=None, scale=scale, axis=alt.Axis(**({"domain": False, "ticks": False} | axis)))


def doublings(low: float, high: float, most: int = 9) -> list[float]:
    """Ticks of ratios between two ends: powers of two with 1 among them, or rounder numbers where those are few.

    >>> doublings(0.5, 8), doublings(2.4, 4.4)
    ([0.5, 1.0, 2.0, 4.0, 8.0], [2.5, 3.0, 4.0])
    """
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    step = max(1, math.ceil((last - first) / most))
    ticks = [2.0**k for k in range(step * math.ceil(first / step), last + 1, step)]
    tens = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for family in FINER:
        if len(ticks) > 2:
            break
        every = [round(part * 10.0**ten, 6) for ten in tens for part in family]
        ticks = [tick for tick in every if low <= tick <= high]
    return ticks


def pointed_at(*names: str) -> list[Any]:
    """What a mark says when it is pointed at: two coordinates, or one with its interval."""
    fields = ("x", "a", "b") if len(names) == 3 else ("x", "y")
    return [alt.Tooltip(f"{field}:Q", title=name, format=".2~g") for field, name in zip(fields, names, strict=True)]
