"""From the draws of the paper's study to the tables that are compared with the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from evenhand.stats import hodges_lehmann, paired_bootstrap, share_interval, signed_rank
from evenhand.study import Cell
from evenhand.study.summaries import medians

CLOSE = 0.05  # a median of ours that differs from the paper's by less is the same number
PAIR = ["fold", "person", "draw", "level"]


def table1(draws: pd.DataFrame, info: Mapping[Cell, dict[str, Any]], published: list[dict[str, Any]]) -> pd.DataFrame:
    """One row per data set and model that was run: the paper's medians, ours, and what the paper does not say."""
    mine = draws[draws["experiment"] == "table1"]
    summary = medians(mine).set_index(["data", "model", "method"])
    rows = []
    for entry in published:
        data, model = entry["data"], entry["model"]
        if not any((cell.experiment, cell.data.name, cell.model.name) == ("table1", data, model) for cell in info):
            continue  # nobody asked for it
        row: dict[str, Any] = {"data": data, "model": model}
        for method in ("closest", "plausible"):
            found: Any = summary.loc[[(data, model, method)]].iloc[0]
            row[f"{method}_paper"] = entry[method]
            row[method], row[f"{method}_low"], row[f"{method}_high"] = found[["median", "median_low", "median_high"]]
            row[f"{method}_mean"] = found["mean"]
            row[f"{method}_density_rank"] = found["density_rank"]
            row[f"{method}_not_found"] = found["not_found_rate"]
        row["people"], row["flip_rate"] = found["people"], found["flip_rate"]
        part = mine[(mine["data"] == data) & (mine["model"] == model)]
        row |= _paired(part)
        row |= _quality(info, data, model)
        row["noise"] = part.loc[part["method"] == "closest", "input_distance"].median()
        row["same_order"] = bool((row["plausible"] < row["closest"]) == (entry["plausible"] < entry["closest"]))
        row["closest_off"] = row["closest"] / entry["closest"] - 1
        row["plausible_inside"] = bool(row["plausible_low"] <= entry["plausible"] <= row["plausible_high"])
        rows.append(row)
    return pd.DataFrame(rows)


def _paired(part: pd.DataFrame) -> dict[str, Any]:
    """Plausible against closest, on the same people and draws."""
    sides = [
        part[part["method"] == method].set_index(PAIR)[["distance", "own_cost"]].add_suffix(f"_{method[0]}")
        for method in ("closest", "plausible")
    ]
    both = sides[0].join(sides[1], how="inner").dropna()
    cluster = both.reset_index().groupby(["fold", "person"], sort=False).ngroup().to_numpy()
    a, b = both["distance_c"].to_numpy(), both["distance_p"].to_numpy()
    size = np.bincount(cluster)
    change = np.bincount(cluster, b) / size - np.bincount(cluster, a) / size
    worse = share_interval(int((change > 0).sum()), len(change))
    difference = paired_bootstrap(a, b, cluster, "median")
    ratio = both["own_cost_p"] / both["own_cost_c"]
    return {
        "pairs": len(both),
        "difference": difference.value,
        "difference_low": difference.low,
        "difference_high": difference.high,
        "shift": hodges_lehmann(change),
        "p": signed_rank(change),
        "worse": worse.value,
        "worse_low": worse.low,
        "worse_high": worse.high,
        "cost_ratio": float(ratio[np.isfinite(ratio)].median()),
    }


def _quality(info: Mapping[Cell, dict[str, Any]], data: str, model: str) -> dict[str, float]:
    mine = [
        found
        for cell, found in info.items()
        if (cell.experiment, cell.data.name, cell.model.name, cell.method.name) == ("table1", data, model, "closest")
    ]
    return {name: float(np.mean([found[name] for found in mine])) for name in ("accuracy", "f1")}


def masking(draws: pd.DataFrame) -> pd.DataFrame:
    """Medians by the number of masked features."""
    found = medians(draws[draws["experiment"] == "masking"])
    found["features"] = found["level"].astype(int)
    return found[
        ["data", "model", "method", "features", "people", "median", "median_low", "median_high", "not_found_rate"]
    ]


def curse(draws: pd.DataFrame) -> pd.DataFrame:
    """Medians by the number of dimensions, with the noise's own norm and the closed form of a linear model."""
    mine = draws[draws["experiment"] == "curse"]
    found = medians(mine)[["dim", "model", "people", "median", "median_low", "median_high"]]
    noise = mine.groupby(["dim", "model"], sort=False, observed=True)["input_distance"].median()
    found["noise"] = [noise[dim, model] for dim, model in zip(found["dim"], found["model"], strict=True)]
    found["ratio"] = found["median"] / found["noise"]
    # Row 10 of the theory, for a linear model with equal weights: the mean of what a linear boundary would give.
    found["linear"] = [math.sqrt(2 / math.pi) * (d - 1 + math.sqrt(d - 1)) for d in found["dim"]]
    return found


def sensitivity(draws: pd.DataFrame) -> pd.DataFrame:
    """Every method over scale, cost and treatment of flips, relative to closest."""
    both = draws[draws["experiment"].isin(["sensitivity", "steady"])]
    both = both[~((both["experiment"] == "steady") & (both["method"] != "steady"))]
    found = medians(both)
    keys = ["data", "model", "scale", "cost", "on_flip"]
    closest = found[found["method"] == "closest"].set_index(keys)
    price = _prices(both, keys)
    found = found[
        [*keys, "method", "people", "median", "median_low", "median_high", "p95", "median_cost", "not_found_rate"]
    ]
    index = pd.MultiIndex.from_frame(found[keys])
    found["ratio"] = found["median"].to_numpy() / closest["median"].reindex(index).to_numpy()
    whole = pd.MultiIndex.from_frame(found[[*keys, "method"]])
    found["price"] = price.reindex(whole).to_numpy()
    return found


def _prices(draws: pd.DataFrame, keys: list[str]) -> pd.Series[Any]:
    """What a method costs a person relative to closest, the median over people, as in Table 1."""
    once = draws[draws["draw"] == 0]
    people = [*keys, "fold", "person"]
    closest = once[once["method"] == "closest"].set_index(people)["own_cost"].rename("closest")
    both = once.join(closest, on=people)
    both = both[both["closest"] > 0]
    ratio = (both["own_cost"] / both["closest"]).rename("price")
    groups = [both[key] for key in (*keys, "method")]
    return ratio.groupby(groups, sort=False, observed=True).median()
