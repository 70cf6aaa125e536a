"""Medians with intervals of a study's draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evenhand.stats import Interval, cluster_bootstrap
from evenhand.status import VALID
from evenhand.study.cells import KEYS

LEVELS = [key for key in KEYS if key != "fold"] + ["perturbation", "level"]


def medians(table: pd.DataFrame, measure: str = "distance") -> pd.DataFrame:
    """One row per combination, folds pooled: people, median, mean and 95th percentile with intervals, and rates."""
    rows = []
    for keys, part in table.groupby(LEVELS, sort=False, dropna=False, observed=True):
        values = part[measure].to_numpy()
        usable = np.isfinite(values)
        # A person is in one test fold only, but different data sets may be cut into folds in other ways.
        cluster = part.groupby(["fold", "person"], sort=False).ngroup().to_numpy()
        found = dict.fromkeys(("median", "mean", "p95"), Interval(np.nan, np.nan, np.nan))
        if usable.any():
            found |= cluster_bootstrap(values[usable], cluster[usable], ("median", "mean", "p95"))
        row: dict[str, Any] = dict(zip(LEVELS, keys if isinstance(keys, tuple) else (keys,), strict=True))
        row |= {"people": len(np.unique(cluster)), "draws": len(part)}
        for name, interval in found.items():
            row |= {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}
        row["flip_rate"] = float(part["flipped"].mean())
        row["not_found_rate"] = float((~part["status"].isin([*VALID, "skipped"])).mean())
        row["median_cost"] = float(np.nanmedian(part["own_cost"])) if part["own_cost"].notna().any() else np.nan
        row["density_rank"] = (
            float(np.nanmedian(part["density_rank"])) if part["density_rank"].notna().any() else np.nan
        )
        row["floor"] = float(part["floor"].max())
        rows.append(row)
    return pd.DataFrame(rows)
