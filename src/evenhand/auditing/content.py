"""What was measured, as plain data: the sections of audit.json, from which the page is made."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.auditing.measures import Measures
from evenhand.auditing.people import Everyone, Prepared
from evenhand.auditing.words import typeset
from evenhand.stability.comparison import compare
from evenhand.stability.instability import Instability
from evenhand.stats import Interval, cluster_bootstrap, share_interval
from evenhand.status import VALID, Status
from evenhand.types import FloatArray

CURVE = 31  # radii at which certificates are counted
EXAMINED = 50  # people without an explanation of whom it is found out which rule blocks them


def plain(value: Any) -> Any:
    """Numbers, texts, lists and dicts only; what is not a finite number is None."""
    if isinstance(value, Interval):
        return {"value": plain(value.value), "low": plain(value.low), "high": plain(value.high)}
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def middle(values: FloatArray, statistics: tuple[str, ...], seed: int) -> dict[str, Interval]:
    """Statistics of one value per person, with intervals."""
    known = values[np.isfinite(values)]
    if not len(known):
        return dict.fromkeys(statistics, Interval(math.nan, math.nan, math.nan))
    return cluster_bootstrap(known, np.arange(len(known)), statistics, seed=seed)


def coverage(prepared: Prepared, everyone: Everyone, measures: Measures) -> dict[str, Any]:
    """Who has an explanation, by the method in use of everybody, by the others of the sample; and why not."""
    setup = prepared.setup
    needed, found = everyone.needed, everyone.found
    people = [
        {
            "method": setup.in_use,
            "people": int(everyone.asked.sum()),
            "already": int(everyone.already.sum()),
            "found": int(found.sum()),
            "not_found": int((needed & ~found).sum()),
        }
    ]
    why: dict[str, dict[str, int]] = {}
    _count(why, setup.in_use, everyone.status[needed & ~found])
    noises = list(setup.perturbations)
    draws = []
    for (method, noise), one in measures.instability.items():
        status = one.people["status"].to_numpy()
        if method != setup.in_use and noise == noises[0]:
            valid = np.isin(status, VALID)
            people.append(
                {
                    "method": method,
                    "people": len(status),
                    "already": 0,
                    "found": int(valid.sum()),
                    "not_found": int((~valid).sum()),
                }
            )
            _count(why, method, status[~valid])
        table = one.table
        compared = int(table["distance"].notna().sum())
        skipped = int((table["status"] == Status.SKIPPED).sum())
        draws.append(
            {
                "method": method,
                "perturbation": noise,
                "draws": len(table),
                "compared": compared,
                "flipped": skipped,
                "not_found": len(table) - compared - skipped,
            }
        )
    reasons = [{"reason": reason, "counts": counts} for reason, counts in why.items()]
    return {"people": people, "reasons": reasons, "draws": draws}


def _count(why: dict[str, dict[str, int]], method: str, status: npt.NDArray[np.str_]) -> None:
    for name, count in zip(*np.unique(status, return_counts=True), strict=True):
        why.setdefault(Status(name).reason, {})[method] = int(count)


def blockers(prepared: Prepared, people: pd.DataFrame) -> list[str]:
    """What stands in the way of some people who have no explanation, most frequent first."""
    explainer = prepared.setup.explainers[prepared.setup.in_use]
    if not len(people) or prepared.setup.view.reader.plain:
        return []
    notes = pd.Series(explainer.explain(people, prepared.target).note)
    if prepared.options.redact:  # other notes name the value that cannot be explained
        notes = notes[notes.str.startswith(Status.UNREACHABLE.reason)]
    counts = notes[notes != ""].value_counts()
    return [f"{count} of {len(people)} people looked at: {note}" for note, count in counts.items()]


def flips_compared(prepared: Prepared, measures: Measures) -> list[str]:
    """What is not set aside has to be said: variations with another decision that are compared all the same."""
    if prepared.options.on_flip == "skip":
        return []
    one = measures.instability[prepared.setup.in_use, next(iter(prepared.setup.perturbations))]
    share = float(one.table["flipped"].mean()) if len(one.table) else 0.0
    return [
        f"{share:.1%} of the variations get another decision; they are compared as well "
        f"(on_flip = {prepared.options.on_flip!r}), and not counted as flipped under coverage."
    ]


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


def certificates(measures: Measures, radii: Iterable[float]) -> dict[str, Any]:
    """Shares of people for whom stability is proven, over radii up to where next to nobody is left."""
    asked = sorted(set(radii))
    most = 0.3
    for table in measures.certificates.values():
        radius = _radius(table)
        known = radius[np.isfinite(radius)]
        most = max(most, float(np.quantile(known, 0.9)) if len(known) else 0.0)
    most = max([min(most, 3.0), *(1.5 * one for one in asked)])
    grid = sorted({*np.linspace(0.0, most, CURVE).tolist(), *asked})
    curves = []
    for method, table in measures.certificates.items():
        shares = [certified_share(table, radius) for radius in grid]
        curves.append(
            {
                "method": method,
                "statement": table.attrs["statement"],
                "people": len(table),
                "radius": grid,
                "share": [one.value for one in shares],
                "low": [one.low for one in shares],
                "high": [one.high for one in shares],
            }
        )
    return {"curves": curves, "not_available": measures.not_certified}


def _radius(table: pd.DataFrame) -> FloatArray:
    return np.asarray(table[["stability_radius", "label_radius"]].min(axis=1, skipna=False).to_numpy(dtype=float))


def certified_share(table: pd.DataFrame, radius: float) -> Interval:
    """Share of people whose explanation is proven to be stable for every change up to the radius."""
    return share_interval(int((_radius(table) > radius).sum()), len(table))


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
