"""How far explanations move when people change a little, by method and perturbation."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from evenhand.auditing.document.measured import Comparison, Histogram, Stability
from evenhand.auditing.document.values import Spread
from evenhand.auditing.measures import Measures
from evenhand.auditing.phrases import typeset
from evenhand.auditing.prepare import Prepared
from evenhand.stability.comparison import compare
from evenhand.stability.instability import Instability
from evenhand.stats import Interval, cluster_bootstrap
from evenhand.types import FloatArray


def stability(prepared: Prepared, measures: Measures) -> list[Stability]:
    """How far explanations move, by method and perturbation."""
    return [
        _moved(method, perturbation, measured, prepared.options.seed)
        for (method, perturbation), measured in measures.instability.items()
    ]


def _moved(method: str, perturbation: str, measured: Instability, seed: int) -> Stability:
    unknown = pd.Series(dtype=float)  # of nobody nothing is known
    spreads = {}
    for measure in ("distance", "amplification"):
        summary = measured.summary(measure=measure, seed=seed)
        row = summary.iloc[0] if len(summary) else unknown
        spreads[measure] = Spread(
            *(
                Interval(*(float(row.get(key, math.nan)) for key in (name, f"{name}_low", f"{name}_high")))
                for name in ("median", "p95", "mean")
            )
        )
    table = measured.table
    perturbed = table["input_distance"].notna().to_numpy()
    flips = table["flipped"].to_numpy(dtype=float)[perturbed]
    person = np.repeat(np.arange(len(measured.people)), measured.draws)[perturbed]
    flipped = Interval(math.nan, math.nan, math.nan)
    if len(flips):
        flipped = cluster_bootstrap(flips, person, ("mean",), seed=seed)["mean"]
    return Stability(
        method,
        perturbation,
        people=len(measured.people),
        draws=measured.draws,
        distance=spreads["distance"],
        amplification=spreads["amplification"],
        flip_interval=flipped,
        flip_rate=flipped.value,
        not_found_rate=row.get("not_found_rate", math.nan),
        floor=row.get("floor", math.nan),
        histogram=histogram(measured.people["amplification"].to_numpy(dtype=float)),
    )


def histogram(values: FloatArray) -> Histogram:
    """People by their mean amplification, in bins of equal ratio with an edge at 1; who is beyond is in the last."""
    edges = 2.0 ** np.linspace(-5, 6, 11 * 4 + 1)
    known = values[np.isfinite(values)]
    counts, _ = np.histogram(np.clip(known, edges[0], edges[-1]), edges)
    return Histogram(edges.tolist(), counts.tolist())


def comparisons(prepared: Prepared, measures: Measures) -> list[Comparison]:
    """Each method against the one in use, on the same people and draws."""
    setup = prepared.setup
    compared = []
    for method in list(setup.explainers)[1:]:
        for perturbation in setup.perturbations:
            a, b = (measures.instability[name, perturbation] for name in (setup.in_use, method))
            result = compare(a, b, names=(setup.in_use, method), seed=prepared.options.seed)
            compared.append(Comparison(setup.in_use, method, perturbation, typeset(result.sentence)))
    return compared
