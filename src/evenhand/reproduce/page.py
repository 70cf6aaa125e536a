"""The page: findings in plain sentences, generated from the numbers, and one self-contained file."""

from __future__ import annotations

from typing import Any

import pandas as pd

from evenhand.pages.template import environment, scripts, style
from evenhand.reproduce import charts
from evenhand.reproduce.results import CLOSE

SAME = 1e-6  # medians that differ by a smaller part are the same: what is left is rounding


def findings(tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """What the numbers say, as data: counts, shares, and the cells that stand out."""
    found: dict[str, Any] = {}
    if "table1" in tables:
        found["table1"] = _table1(tables["table1"])
    if "masking" in tables:
        found["masking"] = _masking(tables["masking"])
    if "curse" in tables:
        ratio = tables["curse"]["ratio"]
        found["curse"] = {"ratio_low": float(ratio.min()), "ratio_high": float(ratio.max())}
    if "sensitivity" in tables:
        found["sensitivity"] = _sensitivity(tables["sensitivity"])
    if "theorems" in tables:
        table = tables["theorems"]
        inside = (table["low"] <= table["theory"]) & (table["theory"] <= table["high"])
        found["theorems"] = {"inside": int(inside.sum()), "total": len(table)}
    return found


def _table1(table: pd.DataFrame) -> dict[str, Any]:
    close = table["closest_off"].abs() <= CLOSE
    return {
        "cells": len(table),
        "same_order": int(table["same_order"].sum()),
        "closest_close": int(close.sum()),
        "closest_far": [_cell(row) for row in table[~close].itertuples()],
        "plausible_inside": int(table["plausible_inside"].sum()),
        "plausible_outside": [_cell(row) for row in table[~table["plausible_inside"]].itertuples()],
        "worse_low": float(table["worse"].min()),
        "worse_high": float(table["worse"].max()),
        "price_low": float(table["cost_ratio"].min()),
        "price_high": float(table["cost_ratio"].max()),
        "mean_against": [_cell(row) for row in table[table["plausible_mean"] > table["closest_mean"]].itertuples()],
        "noise_ratio_low": float((table["closest"] / table["noise"]).min()),
        "noise_ratio_high": float((table["closest"] / table["noise"]).max()),
    }


def _cell(row: Any) -> str:
    return f"{charts.DATA[row.data].lower()} {charts.MODELS[row.model]}"


def _masking(table: pd.DataFrame) -> dict[str, Any]:
    wide = table.pivot_table(index=["data", "model", "features"], columns="method", values="median", sort=False)
    wins = (wide["closest"] - wide["plausible"] > SAME * (1 + wide["closest"])).groupby(level="data", sort=False).mean()
    softmax = wide["closest"].xs("softmax", level="model").groupby(level="data", sort=False)
    first, last = softmax.first(), softmax.last()
    return {
        "plausible_wins": {str(data): float(share) for data, share in wins.items()},
        "closest_softmax": {str(data): [float(first[data]), float(last[data])] for data in first.index},
    }


def _sensitivity(table: pd.DataFrame) -> dict[str, Any]:
    plausible, steady = (table[table["method"] == method] for method in ("plausible", "steady"))
    wins = plausible["ratio"] < 1 - SAME
    by = plausible.assign(wins=wins).groupby(["scale", "cost"], sort=False)["wins"].agg(["sum", "count"])
    return {
        "settings": len(plausible),
        "plausible_wins": int(wins.sum()),
        "by": {" ".join(name): [int(won), int(of)] for name, won, of in by.itertuples()},
        "losses": [_cell(row) + f" ({row.scale}, {row.cost}, {row.on_flip})" for row in plausible[~wins].itertuples()],
        "steady_wins": int((steady["ratio"] < 1 - SAME).sum()),
        "steady_ties": int(((steady["ratio"] - 1).abs() <= SAME).sum()),
        "steady_settings": len(steady),
        "steady_price": float(steady["price"].median()) if len(steady) else None,
        "plausible_price": float(plausible["price"].median()),
    }


def render(tables: dict[str, pd.DataFrame], figures: dict[str, dict[str, Any]], summary: dict[str, Any]) -> str:
    """The page as one file, with its scripts and numbers inside; `figures` are Vega-Lite specifications."""
    return (
        environment("evenhand.reproduce")
        .get_template("report.html.j2")
        .render(
            tables={name: table.to_dict("records") for name, table in tables.items()},
            figures=list(figures),
            found=summary,
            run=summary["run"],
            data_names=charts.DATA,
            model_names=charts.MODELS,
            style=style("evenhand.reproduce", "report.css"),
            scripts=scripts(figures),
            strip=_strip,
        )
    )


def _strip(row: dict[str, Any], largest: float, width: int = 290) -> str:
    """Table 1's small picture: the paper as a line, ours as a mark with its interval, from zero."""

    def at(value: float) -> float:
        return round(4 + (width - 8) * value / largest, 1)

    parts = []
    for y, method, mark in ((11, "closest", "circle"), (29, "plausible", "diamond")):
        x = at(row[method])
        parts.append(f'<line class="grid" x1="4" x2="{width - 4}" y1="{y}" y2="{y}"/>')
        low, high = at(row[f"{method}_low"]), at(row[f"{method}_high"])
        parts.append(f'<line class="interval {method}" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>')
        shape = (
            f'<circle cx="{x}" cy="{y}" r="4.5"'
            if mark == "circle"
            else f'<path d="M{x},{y - 6}L{x + 6},{y}L{x},{y + 6}L{x - 6},{y}Z"'
        )
        parts.append(f'{shape} class="mark {method}"/>')
        paper = at(row[f"{method}_paper"])
        parts.append(f'<line class="paper" x1="{paper}" x2="{paper}" y1="{y - 8}" y2="{y + 8}"/>')
    return "".join(parts)
