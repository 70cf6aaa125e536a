"""How far stability is proven: the share of people by radius, with Wilson bands."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import altair as alt

from evenhand.auditing.document.measured import Curve
from evenhand.auditing.document.values import finite
from evenhand.auditing.report.drawing import DASHED, across, color_of, mark, rows, rule, spotted, text, upward
from evenhand.auditing.report.placing import NARROW, WIDE, Label, Point, Spot, place, width_of
from evenhand.pages.look import DASHES

HEIGHT = 200
STEPS = 60


def certificates(curves: list[Curve], radius: float | None, unit: str, in_use: str) -> Any:
    """The figure; `radius` is that of the gate."""
    widest = max([*(max(curve.radius) for curve in curves), radius or 0.0]) or 1.0
    x = across(
        f"radius: how far the person may change{f' ({unit})' if unit else ''}",
        alt.Scale(domain=[0, widest], nice=False),
        grid=False,
        tickCount=6,
        format="~g",
    )
    y = upward(alt.Scale(domain=[0, 1]), format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
    layers = [layer for curve in curves for layer in _curve(curve, x, y)]
    if radius is not None:
        layers.append(rule([{"x": radius}], strokeDash=DASHED).encode(x=x))
        side = "left" if radius < 0.6 * widest else "right"
        note = [{"x": radius, "y": 0.0, "t": f"gate radius {radius:g}"}]
        layers.append(text(note, "muted", align=side, dx=5 if side == "left" else -5, dy=-8).encode(x=x, y=y))
    at = radius if radius is not None else widest / 2
    tips = [alt.Tooltip("m:N", title="method"), alt.Tooltip("y:Q", title="proven for", format=".1%")]
    for curve in curves:
        here = share_at(curve, at)
        if here is not None:
            row = {"x": at, "y": here, "m": curve.method}
            layers.append(mark([row], curve.method, 80).encode(x=x, y=y, tooltip=tips))
    return alt.layer(*layers, *_names(curves, at, radius, widest, in_use, x, y)).properties(
        width="container", height=HEIGHT
    )


def share_at(curve: Curve, radius: float) -> float | None:
    """Share at a radius, between two points of the curve if need be."""
    points = [(r, s) for r, s in zip(curve.radius, curve.share, strict=True) if finite(s)]
    for (r0, s0), (r1, s1) in pairwise(points):
        if r0 <= radius <= r1:
            part = 0.0 if r1 == r0 else (radius - r0) / (r1 - r0)
            return float(s0 + part * (s1 - s0))
    return None


def _curve(curve: Curve, x: Any, y: Any) -> list[Any]:
    method = curve.method
    band = [
        {"x": r, "y": low, "z": high}
        for r, low, high in zip(curve.radius, curve.low, curve.high, strict=True)
        if finite(low) and finite(high)
    ]
    line = [{"x": r, "y": s} for r, s in zip(curve.radius, curve.share, strict=True) if finite(s)]
    drawn = rows(line).mark_line(color=color_of(method), strokeWidth=2, strokeDash=DASHES.get(method, [2, 2]))
    area = rows(band).mark_area(color=color_of(method, tint=True), opacity=0.85)
    return [area.encode(x=x, y=y, y2="z:Q"), drawn.encode(x=x, y=y)]


def _names(
    curves: list[Curve], at: float, radius: float | None, widest: float, in_use: str, x: Any, y: Any
) -> list[Any]:
    dense = [_dense(curve, widest) for curve in curves]
    lines = []
    for curve in curves:
        here = share_at(curve, at)
        name = f"{curve.method} (in use)" if curve.method == in_use else curve.method
        lines.append((name, "" if here is None else f"{100 * here:.0f}% at {at:.2g}"))
    close = _spots(dense, lines, radius, widest, NARROW, None)
    wide = _spots(dense, lines, radius, widest, WIDE, [spot.anchor for spot in close])
    layers = []
    for curve, points, both, narrow, broad in zip(curves, dense, lines, close, wide, strict=True):
        px, py = points[_kept(points)[narrow.anchor]]
        for line, color, weight, lower in ((both[0], color_of(curve.method), 600, -7), (both[1], "muted", 400, 8)):
            row = [{"x": px, "y": py, "t": line}]
            layers.append(spotted(row, color, narrow, broad, lower, fontWeight=weight).encode(x=x, y=y))
    return layers


def _dense(curve: Curve, widest: float) -> list[Point]:
    """The curve at many radii: a name must not stand on the line between two points either."""
    shares = [(widest * k / STEPS, share_at(curve, widest * k / STEPS)) for k in range(STEPS + 1)]
    return [(r, s) for r, s in shares if s is not None] or [(0.0, 0.0)]


def _kept(points: list[Point]) -> list[int]:
    """Points of a curve that a name may stand at: not at its very ends."""
    return list(range(len(points) // 12, max(len(points) // 12 + 1, 4 * len(points) // 5), 2))


def _spots(
    dense: list[list[Point]],
    lines: list[tuple[str, str]],
    radius: float | None,
    widest: float,
    wide: float,
    anchors: list[int] | None,
) -> list[Spot]:
    def pixel(point: Point) -> Point:
        return wide * point[0] / widest, HEIGHT * point[1]

    obstacles = [pixel(point) for points in dense for point in points]
    if radius is not None:
        obstacles += [(wide * radius / widest, HEIGHT * k / 20) for k in range(21)]
    labels = []
    for at, (points, both) in enumerate(zip(dense, lines, strict=True)):
        may = _kept(points) if anchors is None else [_kept(points)[anchors[at]]]
        labels.append(Label(tuple(pixel(points[k]) for k in may), width_of(*both), 32.0))
    return place(labels, obstacles, (wide, float(HEIGHT)))
