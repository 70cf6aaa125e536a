"""Small pictures inside tables: plain SVG, whose text keeps its size."""

from __future__ import annotations

import math
from collections.abc import Callable

from markupsafe import Markup

from evenhand.auditing.document import GateResult
from evenhand.auditing.document.values import finite
from evenhand.auditing.report.wording import Wording

WIDTH = 190


def gate_strip(gate: GateResult, say: Wording) -> Markup:
    """Estimate and interval of a gate on its own axis, with the allowed zone in grey."""
    interval, limit = gate.interval, gate.limit
    known = [value for value in interval if finite(value)]
    if not known:
        return Markup('<span class="muted">not measured</span>')
    at = _axis([*known, limit], gate.unit)
    edge = at(limit)
    zone = (6, edge) if gate.comparison == "<=" else (edge, WIDTH - 6)
    mark = at(interval.value) if finite(interval.value) else None
    low, high = (at(end) if finite(end) else mark for end in (interval.low, interval.high))
    text = say.limit(gate)
    half = 3.2 * len(text)
    label = min(max(edge, half + 2), WIDTH - half - 2)
    kind = "failing" if gate.result == "fail" else "plain"
    parts = [
        f'<line class="axis" x1="6" x2="{WIDTH - 6}" y1="12" y2="12"/>',
        f'<rect class="zone" x="{zone[0]:.1f}" y="4" width="{max(zone[1] - zone[0], 0):.1f}" height="16"/>',
        f'<line class="limit" x1="{edge:.1f}" x2="{edge:.1f}" y1="1" y2="23"/>',
    ]
    if low is not None and high is not None:
        parts.append(f'<line class="interval {kind}" x1="{low:.1f}" x2="{high:.1f}" y1="12" y2="12"/>')
    if mark is not None:
        parts.append(f'<circle class="dot {kind}" cx="{mark:.1f}" cy="12" r="4.5"/>')
    parts.append(f'<text x="{label:.1f}" y="36" text-anchor="middle">{Markup.escape(text)}</text>')
    heard = Markup.escape(
        f"{say.value(interval, gate.unit, limit)}, 95% interval "
        f"{say.prose(interval, gate.unit, limit) or 'not known'}; the limit is {text}."
    )
    return Markup(
        f'<svg class="strip" width="{WIDTH}" height="40" viewBox="0 0 {WIDTH} 40" role="img" aria-label="{heard}">'
        + "".join(parts)
        + "</svg>"
    )


def _axis(values: list[float], unit: str) -> Callable[[float], float]:
    """Pixels of a value: ratios on a logarithmic axis, shares never beyond 0 and 1."""
    log = unit == "times" and min(values) > 0
    inner = [math.log(value) if log else value for value in values]
    low, high = min(inner), max(inner)
    pad = 0.45 * (high - low) or 0.5 * abs(low) or 1.0
    low, high = low - pad, high + pad
    if unit == "share":
        low, high = max(low, 0.0), min(high, 1.0)
    elif not log and min(values) >= 0:
        low = max(low, 0.0)

    def at(value: float) -> float:
        inside = math.log(value) if log else value
        return 6 + (WIDTH - 12) * min(max((inside - low) / (high - low), 0.0), 1.0)

    return at


def bar(parts: list[tuple[str, float]], label: str) -> Markup:
    """Shares of a whole from the left to the right; each part has a class."""
    drawn, start = [], 0.0
    for kind, share in parts:
        drawn.append(f'<rect class="{kind}" x="{100 * start:.2f}%" y="0.5" width="{100 * share:.2f}%" height="13"/>')
        start += share
    heard = Markup.escape(label)
    return Markup(f'<svg class="bar" width="100%" height="14" role="img" aria-label="{heard}">{"".join(drawn)}</svg>')


def key_bar(value: float, largest: float, kind: str, one: float | None = None) -> Markup:
    """A bar from zero, with a tick where the person's own change is."""
    tick = (
        f'<line class="one" x1="{100 * one / largest:.2f}%" x2="{100 * one / largest:.2f}%" y1="0" y2="16"/>'
        if one
        else ""
    )
    wide = 100 * value / largest
    return Markup(
        f'<svg class="bar" width="100%" height="16" aria-hidden="true">'
        f'<rect class="solid {kind}" x="0" y="1" width="{wide:.2f}%" height="12"/>{tick}</svg>'
    )
