"""Groups of people: what is asked of them, and how stable it is."""

from __future__ import annotations

from typing import Any, Literal, get_args

import altair as alt
from markupsafe import Markup

from evenhand.auditing.document import Document, plain
from evenhand.auditing.document.measured import GroupColumn, GroupRow
from evenhand.auditing.document.values import finite
from evenhand.auditing.report.cells import NONE, Table, both
from evenhand.auditing.report.drawing import (
    DASHED,
    TIMES,
    across,
    color_of,
    doublings,
    mark,
    pointed_at,
    rule,
)
from evenhand.auditing.report.section import Page, Section
from evenhand.auditing.report.wording import Wording
from evenhand.pages.look import LIGHT
from evenhand.stats import Interval

Measure = Literal["cost", "amplification"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
FAINT = 0.4
STEP = 34  # pixels of a group's row
SPLIT = "\u2063"  # an invisible separator: stands in no name


def values(page: Page) -> dict[str, Any]:
    """What the template shows."""
    if not page.document.groups:
        return {}
    return {
        "heard": {what: heard(page.document, what, page.say) for what in MEASURES},
        "numbers_of": table(page.document, page.say),
        "gaps": gaps(page.document, page.say),
    }


def figures(page: Page) -> dict[str, Any]:
    """Medians of every group."""
    parts = page.document.groups
    drawn = {what: figure(parts, what, page.in_use, page.limit, page.say) for what in MEASURES}
    return {f"groups-{what}": chart for what, chart in drawn.items() if chart is not None}


def heard(document: Document, what: Measure, say: Wording) -> str:
    """What the dots show."""
    unit = "cost" if what == "cost" else "times"
    parts = [
        f"{part.column} {group.group} {say.value(median, unit)}"
        for part in document.groups
        for group in part.groups
        if (median := _median(group, what)) is not None
    ]
    name = "Median cost" if what == "cost" else "Median amplification"
    return f"{name} by group: {'; '.join(parts)}."


def _median(group: GroupRow, what: Measure) -> Interval | None:
    """None if it was not measured."""
    of = group.cost if what == "cost" else group.amplification
    return of.median if of is not None and finite(of.median.value) else None


def table(document: Document, say: Wording) -> Table:
    """The method in use, group by group."""
    rows = []
    for part in document.groups:
        for group in part.groups:
            moved = group.amplification
            name = f"{part.column}: {group.group}" + (" (few)" if group.few else "")
            rows.append(
                [
                    name,
                    f"{group.people:,}",
                    f"{group.not_found:,} of {group.needed:,}",
                    both(group.cost.median, "cost", say),
                    both(group.cost.mean, "cost", say),
                    both(group.cost_difference, "cost", say),
                    say.number(group.boundary.median, "cost") if finite(group.boundary.median) else NONE,
                    both(group.adjusted_difference, "cost", say),
                    both(moved.median if moved else None, "times", say),
                    both(moved.p95 if moved else None, "times", say),
                ]
            )
    return Table(
        f"{document.audited.in_use}, the method in use; 95% intervals",
        [
            *(
                "Group",
                "People|",
                "Without explanation|",
                "Median cost|",
                "Mean cost|",
                "Median against the rest|",
                "Distance to the boundary|",
            ),
            *("Against the rest at the same distance|", "Amplification, median|", "95th percentile|"),
        ],
        rows,
    )


def gaps(document: Document, say: Wording) -> Table:
    """The largest differences between two groups of a column."""
    rows = []
    for part in document.groups:
        costs = [
            (part.cost_gap, part.cost_gap_of),
            (part.adjusted_gap, part.adjusted_gap_of),
            (part.recourse_gap, part.recourse_gap_of),
        ]
        cells = [_gap(gap, of, "cost", say) for gap, of in costs]
        rows.append([part.column, *cells, _gap(part.amplification_gap, part.amplification_gap_of, "times", say)])
    return Table(
        "Largest differences between two groups that are not few",
        [
            *("Column", "Median cost|", "Cost at the same distance|", "Mean cost (equalizing recourse)|"),
            "Amplification|",
        ],
        rows,
    )


def _gap(gap: Interval | None, of: list[str], unit: str, say: Wording) -> Any:
    """A difference, with the two groups under it."""
    if gap is None or not finite(gap.value):
        return NONE
    return both(gap, unit, say) + Markup('<span class="plain">{}</span>').format(" and ".join(of))


def figure(parts: list[GroupColumn], what: Measure, method: str, limit: float | None, say: Wording) -> Any | None:
    """Medians with intervals for every group; None if nothing was measured."""
    order, dots = [], []
    for part in parts:
        order.append(_row_name(part.column, "", ""))
        for group in part.groups:
            few = " (few)" if group.few else ""
            order.append(_row_name(part.column, group.group, f"n = {group.people:,}{few}"))
            median = _median(group, what)
            if median is not None:
                ends = {"x": median.value, "a": plain(median.low), "b": plain(median.high)}
                dots.append({"g": order[-1], "o": FAINT if group.few else 1.0} | ends)
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
    tips = pointed_at("median", "95% from", "to")
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


SECTION = Section("groups", "Groups", values, figures, template="by_group")
