"""The figures of the page: one Vega-Lite specification each, for the browser and for the files."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from evenhand.pages.look import DASHES, LIGHT, METHODS

MODELS = {"softmax": "softmax regression", "tree": "decision tree", "glvq": "GLVQ"}
SHORT = {"softmax": "softmax", "tree": "tree", "glvq": "GLVQ"}
DATA = {"wine": "Wine", "breast_cancer": "Breast cancer", "digits": "Digits"}
NAMES = ("curse", *(f"masking-{data}-{model}" for data in DATA for model in MODELS), "sensitivity", "theorems")
# Losses of plausible in orange, wins in blue, in five steps: the number itself is in the cell.
# Lower case where a colour is also one of the page's: these stay as they are on a dark screen, and so does the number.
STEPS = [0.5, 0.95, 1.05, 2.0]
HEAT = ["#6B93D6", "#BCCFEC", "#e7eae5", "#F0C9AC", "#DE8A52"]


def masking(table: pd.DataFrame, data: str, model: str) -> Any:
    """Medians by the number of masked features, with intervals."""
    part = table[(table["data"] == data) & (table["model"] == model)]
    return _lines(part, "features:Q", "masked features", "median l1 distance", "method", METHODS[:2])


def curse(table: pd.DataFrame) -> Any:
    """Medians by the number of dimensions, next to the noise and to a linear model."""
    measured = table[["dim", "model", "median", "median_low", "median_high"]].rename(columns={"model": "curve"})
    one = table[table["model"] == table["model"].iloc[0]]
    extra = [
        pd.DataFrame(
            {"dim": one["dim"], "curve": name, "median": one[column], "median_low": np.nan, "median_high": np.nan}
        )
        for name, column in (("norm of the noise", "noise"), ("linear model, closed form", "linear"))
    ]
    names = {"tree": "decision tree", "glvq": "GLVQ"}
    whole = pd.concat([measured.replace({"curve": names}), *extra])
    order = [*names.values(), "norm of the noise", "linear model, closed form"]
    colors = [LIGHT["closest"], LIGHT["plausible"], LIGHT["muted"], LIGHT["steady"]]
    dashes = [[1, 0], [9, 3], [2, 2], [5, 2, 1, 2]]
    return _lines(whole, "dim:Q", "dimensions", "median l1 distance", "curve", order, colors, dashes, log=True)


def _lines(
    part: pd.DataFrame,
    x: str,
    x_title: str,
    y_title: str,
    by: str,
    order: list[str],
    colors: list[str] | None = None,
    dashes: list[list[int]] | None = None,
    *,
    log: bool = False,
) -> Any:
    scale = {"type": "log", "base": 2} if log else {"zero": True}
    # log of dimensions in powers of two; distances start at zero otherwise
    across = alt.X(
        x,
        title=f"{x_title} →",
        scale=alt.Scale(**({"type": "log", "base": 2} if log else {"nice": False})),
        axis=alt.Axis(format="d", grid=False, tickMinStep=1),
    )
    decades = [10.0**k for k in range(-6, 7)]
    upward = alt.Y(
        "median:Q",
        title=y_title,
        scale=alt.Scale(**({"type": "log"} if log else scale)),
        axis=alt.Axis(values=decades) if log else alt.Axis(),
    )
    # Four names in a row are wider than a phone; and the legend must not be as pale as the bands.
    legend = alt.Legend(columns=2, symbolOpacity=1.0, symbolStrokeWidth=0, symbolSize=110, labelLimit=220)
    color = alt.Color(
        f"{by}:N", scale=alt.Scale(domain=order, range=colors or [LIGHT[name] for name in order]), legend=legend
    )
    dash = alt.StrokeDash(f"{by}:N", scale=alt.Scale(domain=order, range=dashes or [DASHES[name] for name in order]))
    shape = alt.Shape(
        f"{by}:N", scale=alt.Scale(domain=order, range=["circle", "diamond", "square", "triangle-up"][: len(order)])
    )
    field = x.split(":")[0]
    tip = [
        alt.Tooltip(f"{by}:N"),
        alt.Tooltip(f"{field}:Q", title=x_title),
        alt.Tooltip("median:Q", format=".3~g"),
        alt.Tooltip("median_low:Q", title="95 % from", format=".3~g"),
        alt.Tooltip("median_high:Q", title="to", format=".3~g"),
    ]
    chosen = alt.selection_point(fields=[by], bind="legend")
    faded = alt.condition(chosen, alt.value(1.0), alt.value(0.12))
    base = alt.Chart(part).encode(x=across, color=color, opacity=faded)
    band = base.mark_area(opacity=0.18).encode(
        y=alt.Y("median_low:Q", title=y_title),
        y2="median_high:Q",
        opacity=alt.condition(chosen, alt.value(0.18), alt.value(0.03)),
    )
    line = base.mark_line(strokeWidth=2).encode(y=upward, strokeDash=dash)
    mark = base.mark_point(filled=True, size=42).encode(y=upward, shape=shape, tooltip=tip)
    return alt.layer(band, line, mark).add_params(chosen).properties(width="container", height=220)


def sensitivity(table: pd.DataFrame) -> Any:
    """Median distance of plausible relative to closest, over all settings."""
    part = table[table["method"] == "plausible"].copy()
    part["setting"] = [
        f"{'std' if scale == 'standardised' else 'raw'} {cost} {flip}"
        for scale, cost, flip in zip(part["scale"], part["cost"], part["on_flip"], strict=True)
    ]
    part["cell"] = [f"{DATA[d]}, {SHORT[m]}" for d, m in zip(part["data"], part["model"], strict=True)]
    part["label"] = [f"{value:.2f}" for value in part["ratio"]]
    settings, cells = list(dict.fromkeys(part["setting"])), list(dict.fromkeys(part["cell"]))
    base = alt.Chart(part).encode(
        x=alt.X("setting:N", sort=settings, title=None, axis=alt.Axis(orient="top", labelAngle=-60, labelLimit=200)),
        y=alt.Y("cell:N", sort=cells, title=None, axis=alt.Axis(labelLimit=150)),
    )
    tip = [
        alt.Tooltip("cell:N"),
        alt.Tooltip("setting:N"),
        alt.Tooltip("ratio:Q", title="plausible / closest", format=".3~g"),
        alt.Tooltip("median:Q", format=".3~g"),
        alt.Tooltip("price:Q", title="cost of plausibility", format=".2~f"),
    ]
    fill = alt.Color("ratio:Q", scale=alt.Scale(type="threshold", domain=STEPS, range=HEAT), legend=None)
    rect = base.mark_rect(stroke="white", strokeWidth=1).encode(color=fill, tooltip=tip)
    text = base.mark_text(fontSize=11, color="#1b1f24").encode(text="label:N")
    return alt.layer(rect, text).properties(width="container", height=300)


def theorems(table: pd.DataFrame) -> Any:
    """Simulated means relative to the closed forms, with intervals."""
    part = table.assign(
        ratio=table["simulated"] / table["theory"],
        ratio_low=table["low"] / table["theory"],
        ratio_high=table["high"] / table["theory"],
        name=[f"({row}) {name}" for row, name in zip(table["row"], table["theorem"], strict=True)],
    )
    order = list(part["name"])
    base = alt.Chart(part).encode(y=alt.Y("name:N", sort=order, title=None, axis=alt.Axis(labelLimit=260, grid=True)))
    tip = [
        alt.Tooltip("name:N", title="theorem"),
        alt.Tooltip("theory:Q", format=".4~g"),
        alt.Tooltip("simulated:Q", format=".4~g"),
    ]
    scale = alt.Scale(zero=False, padding=12)
    interval = base.mark_rule(strokeWidth=3, color=LIGHT["plausible"]).encode(
        x=alt.X("ratio_low:Q", title="simulated / closed form →", scale=scale), x2="ratio_high:Q"
    )
    mark = base.mark_point(filled=True, size=60, color=LIGHT["plausible"], shape="diamond").encode(
        x="ratio:Q", tooltip=tip
    )
    one = alt.Chart(pd.DataFrame({"x": [1.0]})).mark_rule(color=LIGHT["ink"]).encode(x="x:Q")
    return alt.layer(one, interval, mark).properties(width="container", height=28 * len(part))


def figures(tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """All figures by name, for the tables that there are."""
    found: dict[str, Any] = {}
    if "curse" in tables:
        found["curse"] = curse(tables["curse"])
    if "masking" in tables:
        for data, model in tables["masking"][["data", "model"]].drop_duplicates().itertuples(index=False):
            found[f"masking-{data}-{model}"] = masking(tables["masking"], data, model)
    if "sensitivity" in tables:
        found["sensitivity"] = sensitivity(tables["sensitivity"])
    if "theorems" in tables:
        found["theorems"] = theorems(tables["theorems"])
    return found
