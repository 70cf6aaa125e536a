"""Every method next to the one in use: what it costs people, and how far its explanations move."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evenhand.auditing.measures import Measures
from evenhand.auditing.prepare import Prepared
from evenhand.stats import Interval, cluster_bootstrap
from evenhand.status import VALID
from evenhand.types import FloatArray


def middle(values: FloatArray, statistics: tuple[str, ...], seed: int) -> dict[str, Interval]:
    """Statistics of one value per person, with intervals."""
    known = values[np.isfinite(values)]
    if not len(known):
        return dict.fromkeys(statistics, Interval(math.nan, math.nan, math.nan))
    return cluster_bootstrap(known, np.arange(len(known)), statistics, seed=seed)


def remedies(
    prepared: Prepared, measures: Measures, statistic: str, limit: float | None, noise: str
) -> list[dict[str, Any]]:
    """Every method: what it costs people, and how far its explanations move.

    Cost and movement are of the people whom all methods explain: one that leaves out the difficult ones would look
    cheap otherwise.
    """
    setup, seed = prepared.setup, prepared.options.seed
    valid = {name: np.isin(measures.instability[name, noise].people["status"], VALID) for name in setup.explainers}
    common = np.logical_and.reduce(list(valid.values()))
    found: list[dict[str, Any]] = []
    for method in setup.explainers:
        one = measures.instability[method, noise]
        person = np.repeat(np.arange(len(one.people)), one.draws)
        ratio = one.table["amplification"].to_numpy(dtype=float)
        usable = np.isfinite(ratio) & common[person]
        moves = Interval(math.nan, math.nan, math.nan)
        if usable.any():
            moves = cluster_bootstrap(ratio[usable], person[usable], (statistic,), seed=seed)[statistic]
        found.append(
            {
                "name": method,
                "method": method,
                "in_use": method == setup.in_use,
                "people": int(common.sum()),
                "cost": middle(measures.price[method][common], ("median",), seed)["median"],
                "amplification": moves,
                "statistic": statistic,
                "perturbation": noise,
                "passes": _passes(moves, limit),
                "found": float(valid[method].mean()) if len(one.people) else math.nan,
                "not_available": None,
            }
        )
    for option in found:
        option["dominated"] = any(_better(other, option) for other in found)
    for method, reason in setup.unavailable.items():
        found.append(
            {
                "name": method,
                "method": method,
                "in_use": False,
                "people": 0,
                "cost": None,
                "amplification": None,
                "statistic": statistic,
                "perturbation": noise,
                "passes": None,
                "found": None,
                "not_available": reason,
                "dominated": False,
            }
        )
    return found


def _passes(moves: Interval, limit: float | None) -> bool | None:
    """Whether the whole interval is inside, or outside of the limit; None if it is neither."""
    if limit is None or math.isnan(moves.high):
        return None
    return True if moves.high <= limit else False if moves.low > limit else None


def _better(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Whether one option is at least as good in all respects, and better in one."""
    first, second = ((one["cost"].value, one["amplification"].value, -one["found"]) for one in (a, b))
    return all(mine <= other for mine, other in zip(first, second, strict=True)) and first != second
