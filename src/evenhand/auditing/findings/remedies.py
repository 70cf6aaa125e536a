"""Every method next to the one in use: what it costs people, and how far its explanations move."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from evenhand.auditing.document.measured import Remedy, Statistic
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
    prepared: Prepared, measures: Measures, statistic: Statistic, limit: float | None, perturbation: str
) -> list[Remedy]:
    """Every method: what it costs people, and how far its explanations move.

    Cost and movement are of the people whom all methods explain: one that leaves out the difficult ones would look
    cheap otherwise.
    """
    setup, seed = prepared.setup, prepared.options.seed
    valid = {
        name: np.isin(measures.instability[name, perturbation].people["status"], VALID) for name in setup.explainers
    }
    common = np.logical_and.reduce(list(valid.values()))
    measured: list[_Measured] = []
    for method in setup.explainers:
        instability = measures.instability[method, perturbation]
        person = np.repeat(np.arange(len(instability.people)), instability.draws)
        ratio = instability.table["amplification"].to_numpy(dtype=float)
        usable = np.isfinite(ratio) & common[person]
        moves = Interval(math.nan, math.nan, math.nan)
        if usable.any():
            moves = cluster_bootstrap(ratio[usable], person[usable], (statistic,), seed=seed)[statistic]
        cost = middle(measures.price[method][common], ("median",), seed)["median"]
        share = float(valid[method].mean()) if len(instability.people) else math.nan
        measured.append(_Measured(method, cost, moves, share))
    rows = [
        Remedy(
            name=option.method,
            method=option.method,
            in_use=option.method == setup.in_use,
            people=int(common.sum()),
            cost=option.cost,
            amplification=option.moves,
            statistic=statistic,
            perturbation=perturbation,
            passes=_passes(option.moves, limit),
            found=option.found,
            not_available=None,
            dominated=any(_better(other, option) for other in measured),
        )
        for option in measured
    ]
    return rows + [_not_available(method, why, statistic, perturbation) for method, why in setup.unavailable.items()]


class _Measured(NamedTuple):
    """What options are compared by."""

    method: str
    cost: Interval
    moves: Interval
    found: float


def _not_available(method: str, why: str, statistic: Statistic, perturbation: str) -> Remedy:
    return Remedy(
        name=method,
        method=method,
        in_use=False,
        people=0,
        cost=None,
        amplification=None,
        statistic=statistic,
        perturbation=perturbation,
        passes=None,
        found=None,
        not_available=why,
        dominated=False,
    )


def _passes(moves: Interval, limit: float | None) -> bool | None:
    """Whether the whole interval is inside, or outside of the limit; None if it is neither."""
    if limit is None or math.isnan(moves.high):
        return None
    return True if moves.high <= limit else False if moves.low > limit else None


def _better(a: _Measured, b: _Measured) -> bool:
    """Whether one option is at least as good in all respects, and better in one."""
    first, second = ((option.cost.value, option.moves.value, -option.found) for option in (a, b))
    return all(mine <= other for mine, other in zip(first, second, strict=True)) and first != second
