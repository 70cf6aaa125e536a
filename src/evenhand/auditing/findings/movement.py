"""How far explanations move when people change a little, by method and perturbation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from evenhand.auditing.measures import Measures
from evenhand.auditing.phrases import typeset
from evenhand.auditing.prepare import Prepared
from evenhand.stability.comparison import compare
from evenhand.stability.instability import Instability
from evenhand.stats import Interval, cluster_bootstrap
from evenhand.types import FloatArray


def stability(prepared: Prepared, measures: Measures) -> list[dict[str, Any]]:
    """How far explanations move, by method and perturbation."""
    return [
        {"method": method, "perturbation": noise, **_moved(one, prepared.options.seed)}
        for (method, noise), one in measures.instability.items()
    ]


def _moved(one: Instability, seed: int) -> dict[str, Any]:
    found: dict[str, Any] = {"people": len(one.people), "draws": one.draws}
    unknown = pd.Series(dtype=float)  # of nobody nothing is known
    for measure in ("distance", "amplification"):
        rows = one.summary(measure=measure, seed=seed)
        row = rows.iloc[0] if len(rows) else unknown
        found[measure] = {
            name: Interval(*(float(row.get(key, math.nan)) for key in (name, f"{name}_low", f"{name}_high")))
            for name in ("median", "p95", "mean")
        }
    table = one.table
    perturbed = table["input_distance"].notna().to_numpy()
    flips = table["flipped"].to_numpy(dtype=float)[perturbed]
    person = np.repeat(np.arange(len(one.people)), one.draws)[perturbed]
    nothing = Interval(math.nan, math.nan, math.nan)
    found["flip_interval"] = cluster_bootstrap(flips, person, ("mean",), seed=seed)["mean"] if len(flips) else nothing
    found["flip_rate"] = found["flip_interval"].value
    found["not_found_rate"] = row.get("not_found_rate", math.nan)
    found["floor"] = row.get("floor", math.nan)
    found["histogram"] = histogram(one.people["amplification"].to_numpy(dtype=float))
    return found


def histogram(values: FloatArray) -> dict[str, Any]:
    """People by their mean amplification, in bins of equal ratio with an edge at 1; who is beyond is in the last."""
    edges = 2.0 ** np.linspace(-5, 6, 11 * 4 + 1)
    known = values[np.isfinite(values)]
    counts, _ = np.histogram(np.clip(known, edges[0], edges[-1]), edges)
    return {"edges": edges, "counts": counts}


def comparisons(prepared: Prepared, measures: Measures) -> list[dict[str, Any]]:
    """Each method against the one in use, on the same people and draws."""
    setup = prepared.setup
    found = []
    for method in list(setup.explainers)[1:]:
        for noise in setup.perturbations:
            a, b = (measures.instability[name, noise] for name in (setup.in_use, method))
            result = compare(a, b, names=(setup.in_use, method), seed=prepared.options.seed)
            found.append({"a": setup.in_use, "b": method, "perturbation": noise, "sentence": typeset(result.sentence)})
    return found
