"""Pairs of people who are almost alike."""

from __future__ import annotations

from typing import Any

import altair as alt

from evenhand.auditing.document import Document, GateResult
from evenhand.auditing.document.individuals import AlikePairs
from evenhand.auditing.document.values import finite
from evenhand.auditing.report.drawing import (
    DASHED,
    above,
    across,
    color_of,
    pointed_at,
    rows,
    rule,
    text,
    upward,
)
from evenhand.auditing.report.section import Page, Section
from evenhand.auditing.report.wording import Wording
from evenhand.pages.look import LIGHT


def values(page: Page) -> dict[str, Any]:
    """What the template shows."""
    pairs = page.document.pairs
    return {
        "answer": answer(page.document, page.gates, page.say),
        "finding": directions(pairs) if pairs else None,
    }


def figures(page: Page) -> dict[str, Any]:
    """Every pair as a dot."""
    pairs = page.document.pairs
    return {"pairs": figure(pairs, page.in_use, page.say)} if pairs and pairs.sample else {}


def answer(document: Document, gates: dict[str, GateResult], say: Wording) -> str:
    """How often two similar people are told something else."""
    pairs = document.pairs
    if not pairs or not pairs.pairs:
        return "No two people are similar enough to be compared as a pair."
    different, broken = pairs.different, pairs.broken
    parts = []
    for it, words, name in (
        (different, "are told to change different things", "pair_difference_rate"),
        (broken, f"get explanations more than {say.exact(pairs.apart, 'cost')} apart", "pair_break_rate"),
    ):
        if not finite(it.value):
            continue
        gate = gates.get(name)
        end = f"; the limit is {say.exact(gate.limit, 'share')}" if gate else ""
        limit = gate.limit if gate else None
        parts.append(f"{say.value(it, 'share', limit)} {words} (95% interval {say.prose(it, 'share', limit)}{end})")
    return f"Of {pairs.pairs:,} pairs of similar people, " + ", and ".join(parts) + "."


def directions(pairs: AlikePairs) -> str:
    """The finding of the pairs."""
    share = pairs.different.value
    if not finite(share) or not share:
        return "No two similar people are sent in different directions"
    return "Some people who are alike are sent in different directions"


def figure(pairs: AlikePairs, method: str, say: Wording) -> Any:
    """Every pair is a dot: how alike the two are, and how far their explanations are apart."""
    sample = pairs.sample
    apart = pairs.apart if finite(pairs.apart) else 0.0
    within = pairs.within if finite(pairs.within) else 0.0
    right = max([within, *(d for d, _, _ in sample)]) or 1.0
    tall = 1.06 * max([*(e for _, e, _ in sample), apart]) or 1.0
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
            layers.append(drawn.encode(x=x, y=y, tooltip=pointed_at("people apart", "explanations apart")))
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


SECTION = Section("pairs", "Alike pairs", values, figures, template="alike")
