"""Pairs, groups and remedies: dots with intervals in both directions."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import altair as alt

from evenhand.auditing.report.drawing import (
    DASHED,
    TIMES,
    above,
    across,
    color_of,
    doublings,
    mark,
    rows,
    rule,
    spotted,
    text,
    upward,
)
from evenhand.auditing.report.placing import NARROW, WIDE, Label, Point, Spot, place, width_of
from evenhand.auditing.report.wording import Wording
from evenhand.pages.look import LIGHT

FAINT = 0.4
STEP = 34  # pixels of a group's row
HEIGHT = 270
SPLIT = "\u2063"  # an invisible separator: stands in no name


def _tips(*names: str) -> list[Any]:
    fields = ("x", "a", "b") if len(names) == 3 else ("x", "y")
    return [alt.Tooltip(f"{field}:Q", title=name, format=".2~g") for field, name in zip(fields, names, strict=True)]


def pairs(found: dict[str, Any], method: str, say: Wording) -> Any:
    """Every pair is a dot: how alike the two are, and how far their explanations are apart."""
    sample, apart = found["sample"], found["apart"]
    right = max([found["within"] or 0, *(d for d, _, _ in sample)]) or 1.0
    tall = 1.06 * max([*(e for _, e, _ in sample), apart or 0]) or 1.0
    unit = f" ({say.cost})" if say.cost else ""
    sides = alt.Scale(domain=[0, right], nice=False)
    x = across(f"distance between the two people{unit}", sides, grid=False, tickCount=5, format="~g")
    y = upward(alt.Scale(domain=[0, tall], nice=False), tickCount=5, format="~g")
    layers: list[Any] = []
    for flag, color, size in ((False, "line2", 22), (True, color_of(method), 34)):
        dots = [{"x": d, "y": e} for d, e, other in sample if bool(other) == flag]
        look = {"filled": True, "size": size, "color": LIGHT.get(color, color), "opacity": 1}
        drawn = rows(dots).mark_point(shape="circle", **look)
        if dots:
            layers.append(drawn.encode(x=x, y=y, tooltip=_tips("people apart", "explanations apart")))
    end = min(right, tall)
    line = rows([{"x": 0.0, "y": 0.0}, {"x": end, "y": end}]).mark_line(color=LIGHT["ink"], strokeWidth=1)
    layers.append(line.encode(x=x, y=y))
    note = [{"x": end, "y": end, "t": "1×: as far as the people"}]
    layers.append(text(note, "muted", align="right", dx=-2, dy=-9 if right <= tall else 12).encode(x=x, y=y))
    if apart:
        layers.append(rule([{"y": apart}], strokeDash=DASHED).encode(y=y))
        limit = [{"y": apart, "t": f"too far apart above {say.exact(apart, 'cost')}"}]
        layers.append(text(limit, align="left", dy=-8, fontWeight=600).encode(x=alt.value(4), y=y))
    told = sum(bool(other) for _, _, other in sample)
    if not apart or apart < 0.75 * tall:
        for at, words, color in (
            (8, f"{told:,} told different things", color_of(method)),
            (24, f"{len(sample) - told:,} told the same", LIGHT["muted"]),
        ):
            layers.append(
                text([{"t": words}], color, align="left", fontWeight=600).encode(x=alt.value(4), y=alt.value(at))
            )
    title = above(f"distance between their explanations{unit}")
    return alt.layer(*layers).properties(width="container", height=250, title=title)


def groups(parts: list[dict[str, Any]], what: str, method: str, limit: float | None, say: Wording) -> Any | None:
    """Medians with intervals for every group; None if nothing was measured."""
    order, dots = [], []
    for part in parts:
        order.append(_row_name(part["column"], "", ""))
        for group in part["groups"]:
            few = " (few)" if group["few"] else ""
            order.append(_row_name(part["column"], str(group["group"]), f"n = {group['people']:,}{few}"))
            found = (group[what] or {}).get("median")
            if found and found["value"] is not None:
                ends = {"x": found["value"], "a": found["low"], "b": found["high"]}
                dots.append({"g": order[-1], "o": FAINT if group["few"] else 1.0} | ends)
    if not dots:
        return None
    x = _group_axis(dots, what == "amplification", limit, say)
    y = alt.Y("g:N", title=None, scale=alt.Scale(domain=order), axis=_group_names())
    fade = alt.Opacity("o:Q", scale=None, legend=None)
    layers = []
    if what == "amplification" and limit:
        layers.append(rule([{"x": limit}], strokeDash=DASHED).encode(x=x))
    spans = [dot | {"x": dot["a"]} for dot in dots if dot["a"] is not None and dot["b"] is not None]
    if spans:
        layers.append(rule(spans, color_of(method), strokeWidth=3).encode(x=x, x2="b:Q", y=y, opacity=fade))
    tips = _tips("median", "95% from", "to")
    layers.append(mark(dots, method, 70).encode(x=x, y=y, opacity=fade, tooltip=tips))
    return alt.layer(*layers).properties(width="container", height=STEP * len(order))


def _row_name(column: str, group: str, size: str) -> str:
    """A value that is unique among all rows, from which the axis takes what it shows."""
    return SPLIT.join(part.replace(SPLIT, " ") for part in (column, group, size))


def _group_names() -> Any:
    """Two lines for a group, one in bold for the column before its groups."""
    parts = f"split(datum.label, '{SPLIT}')"
    head = {"test": f"length({parts}[1]) == 0"}
    return alt.Axis(
        labelExpr=f"length({parts}[1]) == 0 ? {parts}[0] : slice({parts}, 1)",
        labelLimit=112,
        labelAlign="left",
        labelPadding=116,
        labelColor=LIGHT["ink"],
        labelFontWeight={"condition": head | {"value": 600}, "value": 400},
        labelLineHeight=13,
        # A column's name stands nearer to its own groups than to those before it.
        labelOffset={"condition": head | {"value": 9}, "value": -3},
        ticks=False,
        domain=False,
        grid=False,
    )


def _group_axis(dots: list[dict[str, Any]], times: bool, limit: float | None, say: Wording) -> Any:
    values = [dot[key] for dot in dots for key in ("x", "a", "b") if dot[key] is not None]
    name = "median amplification" if times else f"median cost{f' ({say.cost})' if say.cost else ''}"
    name += f", limit {say.exact(limit, 'times')}" if times and limit else ""
    if not times or min(values) <= 0:
        return across(name, alt.Scale(zero=False, padding=8), tickCount=4, format="~g")
    ends = [*values, limit] if limit else values
    low, high = min(ends) / 1.12, max(ends) * 1.12
    scale = alt.Scale(type="log", base=2, domain=[low, high], nice=False)
    return across(name, scale, values=doublings(low, high, 5), labelExpr=TIMES)


def remedies(options: list[dict[str, Any]], limit: float | None, statistic: str, say: Wording) -> Any:
    """Cost against amplification; the line joins what nothing else beats in both."""
    costs = [row["cost"][key] for row in options for key in ("value", "low", "high") if row["cost"][key] is not None]
    moved = [
        row["amplification"][key] for row in options for key in ("value", "low", "high") if row["amplification"][key]
    ]
    pad = 0.12 * (max(costs) - min(costs)) or 0.1 * max(costs) or 1.0
    sides = (max(0.0, min(costs) - pad), max(costs) + 1.2 * pad)
    ends = (min([*moved, limit or 1.0]) / 1.45, max([*moved, limit or 1.0]) * 1.3)
    unit = f"{say.cost}, " if say.cost else ""
    costs_scale = alt.Scale(domain=list(sides), nice=False)
    name = f"cost: how much a person has to change ({unit}median)"
    x = across(name, costs_scale, grid=False, tickCount=6, format="~g")
    scale = alt.Scale(type="log", base=2, domain=list(ends), nice=False)
    y = upward(scale, values=doublings(*ends, 6), labelExpr=TIMES)
    layers = _allowed(limit, ends[0], y, say) if limit is not None else []
    front = sorted((row for row in options if not row["dominated"]), key=lambda row: float(row["cost"]["value"]))
    line = rows([_at(row) for row in front]).mark_line(color=LIGHT["muted"], strokeWidth=1.2)
    layers.append(line.encode(x=x, y=y, order="x:Q"))
    for row in options:
        layers += _cross(row, x, y)
    tips = [alt.Tooltip("t:N", title="option"), *_tips("cost", "amplification")]
    names = [f"{row['name']} (in use)" if row["in_use"] else row["name"] for row in options]
    narrow, wide = (_spots(options, front, names, sides, ends, limit, width) for width in (NARROW, WIDE))
    for row, name, near, far in zip(options, names, narrow, wide, strict=True):
        hollow = {"fill": LIGHT["bg"], "stroke": color_of(row["method"]), "strokeWidth": 2} if row["dominated"] else {}
        at = [_at(row) | {"t": name}]
        layers.append(mark(at, row["method"], 100, **hollow).encode(x=x, y=y, tooltip=tips))
        layers.append(spotted(at, color_of(row["method"]), near, far).encode(x=x, y=y))
    return alt.layer(*layers).properties(width="container", height=HEIGHT, title=above(statistic))


def _at(row: dict[str, Any]) -> dict[str, Any]:
    return {"x": row["cost"]["value"], "y": row["amplification"]["value"]}


def _allowed(limit: float, low: float, y: Any, say: Wording) -> list[Any]:
    zone = rows([{"y": low, "z": limit}]).mark_rect(color=LIGHT["zone"], opacity=0.6)
    note = [{"t": f"allowed: at most {say.exact(limit, 'times')}"}]
    return [
        zone.encode(x=alt.value(0), x2=alt.value("width"), y=y, y2="z:Q"),
        rule([{"y": limit}], strokeDash=DASHED).encode(y=y),
        text(note, "muted", align="left", fontWeight=600).encode(x=alt.value(5), y=alt.value(HEIGHT - 10)),
    ]


def _cross(row: dict[str, Any], x: Any, y: Any) -> list[Any]:
    """The intervals of both directions."""
    cost, moved, color = row["cost"], row["amplification"], color_of(row["method"])
    layers = []
    if cost["low"] is not None and cost["high"] is not None:
        ends = _at(row) | {"x": cost["low"], "x2": cost["high"]}
        layers.append(rule([ends], color, strokeWidth=2.5).encode(x=x, x2="x2:Q", y=y))
    if moved["low"] and moved["high"]:
        ends = _at(row) | {"y": moved["low"], "y2": moved["high"]}
        layers.append(rule([ends], color, strokeWidth=2.5).encode(x=x, y=y, y2="y2:Q"))
    return layers


def _spots(
    options: list[dict[str, Any]],
    front: list[dict[str, Any]],
    names: list[str],
    sides: Point,
    ends: Point,
    limit: float | None,
    width: float,
) -> list[Spot]:
    def pixel(cost: float, moved: float) -> Point:
        up = math.log(moved / ends[0]) / math.log(ends[1] / ends[0])
        return width * (cost - sides[0]) / (sides[1] - sides[0]), HEIGHT * up

    marks = [pixel(row["cost"]["value"], row["amplification"]["value"]) for row in options]
    obstacles = list(marks)
    for row in options:
        cost, moved = row["cost"], row["amplification"]
        if cost["low"] is not None and cost["high"] is not None:
            obstacles += _between(pixel(cost["low"], moved["value"]), pixel(cost["high"], moved["value"]))
        if moved["low"] and moved["high"]:
            obstacles += _between(pixel(cost["value"], moved["low"]), pixel(cost["value"], moved["high"]))
    joined = [pixel(row["cost"]["value"], row["amplification"]["value"]) for row in front]
    for one, other in pairwise(joined):
        obstacles += _between(one, other)
    if limit is not None:
        height = pixel(sides[0], limit)[1]
        # The line of the limit, and the words in the corner under it.
        obstacles += [*_between((0.0, height), (width, height), 30), *_between((5.0, 10.0), (125.0, 10.0))]
    labels = [Label((at,), width_of(name)) for at, name in zip(marks, names, strict=True)]
    return place(labels, obstacles, (width, float(HEIGHT)))


def _between(one: Point, other: Point, steps: int = 12) -> list[Point]:
    """Points along a line: a name must not stand on any of it."""
    return [
        (one[0] + (other[0] - one[0]) * k / steps, one[1] + (other[1] - one[1]) * k / steps) for k in range(steps + 1)
    ]
