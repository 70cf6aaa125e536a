"""Other ways to explain the same decisions: what they cost, and how far they move."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import altair as alt
from markupsafe import Markup

from evenhand.auditing.document import Document, GateResult
from evenhand.auditing.document.measured import Remedy
from evenhand.auditing.document.values import finite
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
from evenhand.stats import Interval

HEIGHT = 270
STATISTICS = {"median": "median amplification", "p95": "95th percentile of amplification"}


class Option(NamedTuple):
    """A way that was measured: what it costs, and how far it moves."""

    row: Remedy
    cost: Interval
    moved: Interval


def values(page: Page) -> dict[str, Any]:
    """What the template shows."""
    drawn, still, gate, statistic = options_of(page)
    shown = {
        "answer": answer(page.document, gate),
        "options": [option.row for option in drawn],
        "still": still,
        "judged": gate,
        "numbers_of": table(page.document, gate, statistic, page.say) if page.document.remedies else None,
    }
    return shown | ({"price": price(drawn), "heard": heard(drawn, page.say)} if drawn else {})


def figures(page: Page) -> dict[str, Any]:
    """Cost against amplification."""
    drawn, _, gate, statistic = options_of(page)
    return {"remedies": figure(drawn, gate.limit if gate else None, statistic, page.say)} if drawn else {}


def options_of(page: Page) -> tuple[list[Option], list[str], GateResult | None, str]:
    """Options that can be drawn, names of those that do not move, the gate that judges them, and its statistic."""
    every = page.document.remedies
    statistic = next((row.statistic for row in every), "median")
    measured = [
        Option(row, row.cost, row.amplification)
        for row in every
        if row.cost and row.amplification and finite(row.cost.value) and finite(row.amplification.value)
    ]
    still = [option.row.name for option in measured if option.moved.value <= 0]  # has no place on the axis
    drawn = [option for option in measured if option.row.name not in still]
    return drawn, still, page.gates.get(f"{statistic}_amplification"), STATISTICS[statistic]


def answer(document: Document, gate: GateResult | None) -> Markup:
    """The cheapest option that passes, and its price; `gate` is the one that they are compared by."""
    name = f"the gate “{gate.title}”" if gate else "the gate"
    priced = [(row, row.cost.value) for row in document.remedies if row.cost and finite(row.cost.value)]
    if not priced:
        return Markup("No other method was tried, so there is no remedy to show.")
    using, asked = next(((row, cost) for row, cost in priced if row.in_use), (None, 0.0))
    passing = sorted(((row, cost) for row, cost in priced if row.passes), key=lambda option: option[1])
    if all(row.passes is None for row, _ in priced):
        text = "No gate judges these {} ways: here is what they cost and how far they move."
        return Markup(text).format(len(priced))
    if using and using.passes:
        end = "; another option is both cheaper and steadier" if using.dominated else ""
        return Markup("{}, the method in use, passes {}{}.").format(_option(using), name, end)
    if not passing:
        return Markup("None of the {} ways that were tried passes {}.").format(len(priced), name)
    best, cost = passing[0]
    text = Markup("{} is the cheapest option that passes {}").format(_option(best), name)
    if using and asked:
        more = cost / asked - 1
        words = f"{100 * abs(more):.0f}% {'more' if more >= 0 else 'less'}"
        text += Markup(": it asks people to change {} than {}").format(words, _option(using))
    if finite(best.found) and best.found < 0.95:
        text += f"; it finds an explanation for {Wording().number(best.found, 'share')} of the people"
    return text + "."


def _option(row: Remedy) -> Markup:
    return Markup('<span class="m name-{}">{}</span>').format(known(row.method), row.name)


def price(options: list[Option]) -> str:
    """The finding of the remedies."""
    using = next((option for option in options if option.row.in_use), None)
    if using is None or len(options) < 2:
        return "Cost against stability"
    steadier = [option for option in options if option.moved.value < using.moved.value]
    if not steadier:
        return f"Nothing that was tried is steadier than {using.row.name}"
    if any(option.cost.value <= using.cost.value for option in steadier):
        return "A steadier explanation need not cost more"
    return "Stability has a price: what is steadier asks people to change more"


def heard(options: list[Option], say: Wording) -> str:
    """What the options cost and bring."""
    parts = []
    for row, cost, moved in options:
        end = " (dominated)" if row.dominated else ""
        parts.append(
            f"{row.name} costs {say.value(cost, 'cost')} and has amplification {say.value(moved, 'times')}{end}"
        )
    return "; ".join(parts) + "."


def table(document: Document, gate: GateResult | None, statistic: str, say: Wording) -> Table:
    """Every option, also those that were not available."""
    rows = []
    for row in document.remedies:
        if row.not_available:
            result = row.not_available
        else:
            result = {True: "✓ passes", False: "✕ does not pass", None: "? not judged"}[row.passes]
            result += ", dominated" if row.dominated else ""
        name = _option(row)
        if row.in_use:
            name += Markup(' <span class="muted">(in use)</span>')
        share = say.number(row.found, "share") if finite(row.found) else NONE
        rows.append([name, both(row.cost, "cost", say), both(row.amplification, "times", say), share, result])
    return Table(
        "Ways to explain the same decisions; 95% intervals",
        [
            "Option",
            "Median cost|",
            f"{statistic[:1].upper()}{statistic[1:]}|",
            "Found|",
            gate.title if gate else "Gate",
        ],
        rows,
    )


def figure(options: list[Option], limit: float | None, statistic: str, say: Wording) -> Any:
    """Cost against amplification; the line joins what nothing else beats in both."""
    costs = [value for option in options for value in option.cost if finite(value)]
    moved = [value for option in options for value in option.moved if finite(value) and value]
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
    front = sorted((option for option in options if not option.row.dominated), key=lambda option: option.cost.value)
    line = rows([_at(option) for option in front]).mark_line(color=LIGHT["muted"], strokeWidth=1.2)
    layers.append(line.encode(x=x, y=y, order="x:Q"))
    for option in options:
        layers += _cross(option, x, y)
    tips = [alt.Tooltip("t:N", title="option"), *pointed_at("cost", "amplification")]
    names = [f"{row.name} (in use)" if row.in_use else row.name for row, _, _ in options]
    narrow, wide = (_spots(options, front, names, sides, ends, limit, width) for width in (NARROW, WIDE))
    for option, name, near, far in zip(options, names, narrow, wide, strict=True):
        method = option.row.method
        hollow = {"fill": LIGHT["bg"], "stroke": color_of(method), "strokeWidth": 2} if option.row.dominated else {}
        at = [_at(option) | {"t": name}]
        layers.append(mark(at, method, 100, **hollow).encode(x=x, y=y, tooltip=tips))
        layers.append(spotted(at, color_of(method), near, far).encode(x=x, y=y))
    return alt.layer(*layers).properties(width="container", height=HEIGHT, title=above(statistic))


def _at(option: Option) -> dict[str, Any]:
    return {"x": option.cost.value, "y": option.moved.value}


def _allowed(limit: float, low: float, y: Any, say: Wording) -> list[Any]:
    zone = rows([{"y": low, "z": limit}]).mark_rect(color=LIGHT["zone"], opacity=0.6)
    note = [{"t": f"allowed: at most {say.exact(limit, 'times')}"}]
    return [
        zone.encode(x=alt.value(0), x2=alt.value("width"), y=y, y2="z:Q"),
        rule([{"y": limit}], strokeDash=DASHED).encode(y=y),
        text(note, "muted", align="left", fontWeight=600).encode(x=alt.value(5), y=alt.value(HEIGHT - 10)),
    ]


def _cross(option: Option, x: Any, y: Any) -> list[Any]:
    """The intervals of both directions."""
    row, cost, moved = option
    color, layers = color_of(row.method), []
    if _has_ends(cost):
        ends = _at(option) | {"x": cost.low, "x2": cost.high}
        layers.append(rule([ends], color, strokeWidth=2.5).encode(x=x, x2="x2:Q", y=y))
    if _has_ends(moved) and moved.low and moved.high:  # a logarithmic axis has no zero
        ends = _at(option) | {"y": moved.low, "y2": moved.high}
        layers.append(rule([ends], color, strokeWidth=2.5).encode(x=x, y=y, y2="y2:Q"))
    return layers


def _has_ends(interval: Interval) -> bool:
    return finite(interval.low) and finite(interval.high)


def _spots(
    options: list[Option],
    front: list[Option],
    names: list[str],
    sides: Point,
    ends: Point,
    limit: float | None,
    width: float,
) -> list[Spot]:
    def pixel(cost: float, moved: float) -> Point:
        up = math.log(moved / ends[0]) / math.log(ends[1] / ends[0])
        return width * (cost - sides[0]) / (sides[1] - sides[0]), HEIGHT * up

    marks = [pixel(cost.value, moved.value) for _, cost, moved in options]
    obstacles = list(marks)
    for _, cost, moved in options:
        if _has_ends(cost):
            obstacles += _between(pixel(cost.low, moved.value), pixel(cost.high, moved.value))
        if _has_ends(moved) and moved.low and moved.high:
            obstacles += _between(pixel(cost.value, moved.low), pixel(cost.value, moved.high))
    joined = [pixel(cost.value, moved.value) for _, cost, moved in front]
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
