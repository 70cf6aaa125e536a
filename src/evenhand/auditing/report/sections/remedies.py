"""Other ways to explain the same decisions: what they cost, and how far they move."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import altair as alt
from markupsafe import Markup

from evenhand.auditing.report.cells import NONE, Table, both
from evenhand.auditing.report.drawing import (
    DASHED,
    TIMES,
    above,
    across,
    color_of,
    doublings,
    known,
    mark,
    pointed_at,
    rows,
    rule,
    spotted,
    text,
    upward,
)
from evenhand.auditing.report.placing import NARROW, WIDE, Label, Point, Spot, place, width_of
from evenhand.auditing.report.section import Page, Section
from evenhand.auditing.report.wording import Wording
from evenhand.pages.look import LIGHT

HEIGHT = 270


STATISTICS = {"median": "median amplification", "p95": "95th percentile of amplification"}


def values(page: Page) -> dict[str, Any]:
    """What the template shows."""
    drawn, still, gate, statistic = options_of(page)
    shown = {
        "answer": answer(page.content, gate),
        "options": drawn,
        "still": still,
        "judged": gate,
        "numbers_of": table(page.content, gate, statistic, page.say) if page.content["remedies"] else None,
    }
    return shown | ({"price": price(drawn), "heard": heard(drawn, page.say)} if drawn else {})


def figures(page: Page) -> dict[str, Any]:
    """Cost against amplification."""
    drawn, _, gate, statistic = options_of(page)
    return {"remedies": figure(drawn, gate["limit"] if gate else None, statistic, page.say)} if drawn else {}


def options_of(page: Page) -> tuple[list[dict[str, Any]], list[str], dict[str, Any] | None, str]:
    """Options that can be drawn, names of those that do not move, the gate that judges them, and its statistic."""
    every = page.content["remedies"]
    statistic = next((row.get("statistic", "median") for row in every), "median")
    measured = [row for row in every if _measured(row)]
    still = [row["name"] for row in measured if row["amplification"]["value"] <= 0]  # has no place on the axis
    drawn = [row for row in measured if row["name"] not in still]
    return drawn, still, page.gates.get(f"{statistic}_amplification"), STATISTICS[statistic]


def _measured(row: dict[str, Any]) -> bool:
    cost, moved = row["cost"], row["amplification"]
    return bool(cost and moved and cost["value"] is not None and moved["value"] is not None)


def answer(content: dict[str, Any], gate: dict[str, Any] | None) -> Markup:
    """The cheapest option that passes, and its price; `gate` is the one that they are compared by."""
    name = f"the gate “{gate['title']}”" if gate else "the gate"
    rows = [row for row in content["remedies"] if row["cost"] and row["cost"]["value"] is not None]
    if not rows:
        return Markup("No other method was tried, so there is no remedy to show.")
    using = next((row for row in rows if row["in_use"]), None)
    passing = sorted((row for row in rows if row["passes"]), key=lambda row: float(row["cost"]["value"]))
    if all(row["passes"] is None for row in rows):
        text = "No gate judges these {} ways: here is what they cost and how far they move."
        return Markup(text).format(len(rows))
    if using and using["passes"]:
        end = "; another option is both cheaper and steadier" if using["dominated"] else ""
        return Markup("{}, the method in use, passes {}{}.").format(_option(using), name, end)
    if not passing:
        return Markup("None of the {} ways that were tried passes {}.").format(len(rows), name)
    best = passing[0]
    text = Markup("{} is the cheapest option that passes {}").format(_option(best), name)
    if using and using["cost"]["value"]:
        more = best["cost"]["value"] / using["cost"]["value"] - 1
        words = f"{100 * abs(more):.0f}% {'more' if more >= 0 else 'less'}"
        text += Markup(": it asks people to change {} than {}").format(words, _option(using))
    if best["found"] is not None and best["found"] < 0.95:
        text += f"; it finds an explanation for {Wording().number(best['found'], 'share')} of the people"
    return text + "."


def _option(row: dict[str, Any]) -> Markup:
    return Markup('<span class="m name-{}">{}</span>').format(known(row["method"]), row["name"])


def price(options: list[dict[str, Any]]) -> str:
    """The finding of the remedies."""
    using = next((row for row in options if row["in_use"]), None)
    if using is None or len(options) < 2:
        return "Cost against stability"
    steadier = [row for row in options if row["amplification"]["value"] < using["amplification"]["value"]]
    if not steadier:
        return f"Nothing that was tried is steadier than {using['name']}"
    if any(row["cost"]["value"] <= using["cost"]["value"] for row in steadier):
        return "A steadier explanation need not cost more"
    return "Stability has a price: what is steadier asks people to change more"


def heard(options: list[dict[str, Any]], say: Wording) -> str:
    """What the options cost and bring."""
    parts = []
    for row in options:
        cost, moved = say.value(row["cost"], "cost"), say.value(row["amplification"], "times")
        end = " (dominated)" if row["dominated"] else ""
        parts.append(f"{row['name']} costs {cost} and has amplification {moved}{end}")
    return "; ".join(parts) + "."


def table(content: dict[str, Any], gate: dict[str, Any] | None, statistic: str, say: Wording) -> Table:
    """Every option, also those that were not available."""
    rows = []
    for row in content["remedies"]:
        if row["not_available"]:
            result = row["not_available"]
        else:
            result = {True: "✓ passes", False: "✕ does not pass", None: "? not judged"}[row["passes"]]
            result += ", dominated" if row["dominated"] else ""
        name = Markup('<span class="m name-{}">{}</span>').format(known(row["method"]), row["name"])
        if row["in_use"]:
            name += Markup(' <span class="muted">(in use)</span>')
        share = say.number(row["found"], "share") if row["found"] is not None else NONE
        rows.append([name, both(row["cost"], "cost", say), both(row["amplification"], "times", say), share, result])
    return Table(
        "Ways to explain the same decisions; 95% intervals",
        [
            "Option",
            "Median cost|",
            f"{statistic[:1].upper()}{statistic[1:]}|",
            "Found|",
            gate["title"] if gate else "Gate",
        ],
        rows,
    )


def figure(options: list[dict[str, Any]], limit: float | None, statistic: str, say: Wording) -> Any:
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
    tips = [alt.Tooltip("t:N", title="option"), *pointed_at("cost", "amplification")]
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


SECTION = Section("remedies", "Remedies", values, figures)
