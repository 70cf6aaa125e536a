"""How far explanations move: one histogram per method, all of the same area, over a logarithmic axis."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import altair as alt

from evenhand.auditing.document.measured import Stability
from evenhand.auditing.document.values import finite
from evenhand.auditing.report.drawing import BROAD, DASHED, TIMES, across, color_of, doublings, mark, rows, rule, text
from evenhand.auditing.report.wording import Wording
from evenhand.pages.look import LIGHT

# Pixels: the tallest histogram, the three lines of a name, the room under each, and that over all of them.
PEAK, NAME, GAP, TOP = 88.0, 52.0, 14.0, 24.0
NAMED = 0.46  # part of the axis that a name covers on a phone
LOWEST, HIGHEST = 2.0**-7, 2.0**12  # the axis ends here; what is beyond is drawn at its end


class _Row(NamedTuple):
    row: Stability
    outline: list[tuple[float, float]]
    side: str
    under: float  # how high the histogram is where the name stands
    foot: float = 0.0

    @property
    def height(self) -> float:
        return max(max(height for _, height in self.outline), self.under + NAME) + GAP


def amplification(methods: list[Stability], in_use: str, limit: float | None, say: Wording) -> Any:
    """The figure; `methods` are the methods of one perturbation."""
    outlines = [_outline(row) for row in methods]
    ends = [x for outline in outlines for x, _ in outline]
    low = max(min([*ends, 0.5, limit or 1.0]), LOWEST)
    high = min(max([*ends, 4.0, limit or 1.0]), HIGHEST)
    tallest = max(height for outline in outlines for _, height in outline) or 1.0
    stacked = _stacked(
        [_row(row, outline, PEAK / tallest, low, high) for row, outline in zip(methods, outlines, strict=True)]
    )
    whole = sum(one.height for one in stacked) + TOP
    x = across(
        "amplification (logarithmic)",
        alt.Scale(type="log", base=2, domain=[low, high], nice=False, clamp=True),
        values=doublings(low, high),
        labelExpr=TIMES,
        grid=True,
    )
    y = alt.Y("y:Q", scale=alt.Scale(domain=[0, whole], nice=False), axis=None)
    areas = [_area(one, x, y) for one in stacked]
    feet = [rule([{"y": one.foot}], "line2").encode(y=y) for one in stacked]
    estimates = [layer for one in stacked for layer in _estimate(one, x, y, low, say)]
    names = [layer for one in stacked for layer in _name(one, in_use, y, say)]
    layers = [*areas, *feet, *_references(x, y, limit, whole, say), *estimates, *names]
    return alt.layer(*layers).properties(width="container", height=round(whole))


def _outline(row: Stability) -> list[tuple[float, float]]:
    """Corners: the share of people per doubling, so that areas are equal; empty bins at the ends are left out."""
    edges, counts = row.histogram.edges, row.histogram.counts
    filled = [i for i, count in enumerate(counts) if count]
    total, first, last = sum(counts), filled[0], filled[-1]
    inside = [(edges[i], counts[i] / total / math.log2(edges[i + 1] / edges[i])) for i in range(first, last + 1)]
    return [(edges[first], 0.0), *inside, (edges[last + 1], 0.0)]


def _row(row: Stability, outline: list[tuple[float, float]], scale: float, low: float, high: float) -> _Row:
    """The name stands where it is over less of the histogram."""
    shape = [(x, scale * height) for x, height in outline]
    span = math.log2(high / low)
    left, right = [0.0], [0.0]
    for (x, height), (end, _) in pairwise(shape):
        if math.log2(max(x, low) / low) < NAMED * span:
            left.append(height)
        if math.log2(max(end, low) / low) > (1 - NAMED) * span:
            right.append(height)
    side, under = ("right", max(right)) if max(right) <= max(left) else ("left", max(left))
    return _Row(row, shape, side, under)


def _stacked(outlined: list[_Row]) -> list[_Row]:
    placed, top = [], sum(one.height for one in outlined)
    for one in outlined:
        top -= one.height
        placed.append(one._replace(foot=top + GAP / 2))
    return placed


def _area(one: _Row, x: Any, y: Any) -> Any:
    method = one.row.method
    line = {"color": color_of(method), "strokeWidth": 1.2, "interpolate": "step-after"}
    points = [{"x": at, "y": one.foot + height, "b": one.foot} for at, height in one.outline]
    area = rows(points).mark_area(interpolate="step-after", color=color_of(method, tint=True), opacity=1, line=line)
    return area.encode(x=x, y=y, y2="b:Q")


def _estimate(one: _Row, x: Any, y: Any, least: float, say: Wording) -> list[Any]:
    median, method = one.row.amplification.median, one.row.method
    if not finite(median.value):
        return []
    tips = {"method": method, "median": say.value(median, "times"), "95% interval": say.span(median, "times")}
    at = {"x": max(median.value, least), "y": one.foot} | {f"v{k}": value for k, value in enumerate(tips.values())}
    shown = [alt.Tooltip(f"v{k}:N", title=name) for k, name in enumerate(tips)]
    layers = [mark([at], method).encode(x=x, y=y, tooltip=shown)]
    if finite(median.low) and finite(median.high):
        line = rule(
            [{"x": max(median.low, least), "x2": max(median.high, least), "y": one.foot}],
            color_of(method),
            strokeWidth=3,
        )
        layers.insert(0, line.encode(x=x, x2="x2:Q", y=y))
    return layers


def _name(one: _Row, in_use: str, y: Any, say: Wording) -> list[Any]:
    median, method = one.row.amplification.median, one.row.method
    lines = [
        (f"{method} (in use)" if method == in_use else method, color_of(method), 600),
        (f"median {say.value(median, 'times')}", LIGHT["ink"], 600),
        (f"95% interval {say.span(median, 'times') or 'not known'}", LIGHT["muted"], 400),
    ]
    return [
        text(
            [{"y": one.foot + one.under + NAME, "t": line}],
            color,
            align=one.side,
            baseline="middle",
            dy=8 + 15 * at,
            fontWeight=weight,
            fontSize=12.5,
        ).encode(x=alt.value("width" if one.side == "right" else 0), y=y)
        for at, (line, color, weight) in enumerate(lines)
    ]


def _references(x: Any, y: Any, limit: float | None, whole: float, say: Wording) -> list[Any]:
    """1×, where an explanation moves as far as the person, and the limit; their names point away from each other."""
    beyond = limit is None or limit >= 1
    short = {"expr": f"{BROAD} ? datum.t : datum.s"}
    names = [(1.0, "moves with the person", "as far", "right" if beyond else "left", "muted", 400)]
    layers = [rule([{"x": 1.0}]).encode(x=x)]
    if limit is not None:
        layers.append(rule([{"x": limit}], strokeDash=DASHED).encode(x=x))
        words = f"limit {say.exact(limit, 'times')}"
        names.append((limit, words, words, "left" if beyond else "right", "ink", 600))
    for at, long, brief, align, color, weight in names:
        row = {"x": at, "y": whole, "t": long, "s": brief}
        look = {"align": align, "dx": 5 if align == "left" else -5, "dy": 8, "fontWeight": weight, "text": short}
        layers.append(rows([row]).mark_text(color=LIGHT[color], fontSize=12, **look).encode(x=x, y=y))
    return layers
