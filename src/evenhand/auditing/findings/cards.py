"""The least stable people next to their nearest variation."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.auditing.advice import both, facts, tagged, told
from evenhand.auditing.measures import Measures
from evenhand.auditing.prepare import Prepared
from evenhand.auditing.tasks import Varied
from evenhand.auditing.variations import nearest_variation

LEAST_STABLE = 10


def least_stable(measures: Measures, in_use: str, noise: str) -> npt.NDArray[np.intp]:
    """Positions in the sample of the people whose explanations move most in relation to themselves."""
    values = measures.instability[in_use, noise].people["amplification"].to_numpy(dtype=float)
    order = np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")
    chosen: npt.NDArray[np.intp] = order[np.isfinite(values[order])][:LEAST_STABLE]
    return chosen


def card(
    prepared: Prepared, measures: Measures, i: int, varied: Varied, at: int, gone: npt.NDArray[np.bool_]
) -> dict[str, Any]:
    """The `i`-th person of the sample, who is the `at`-th of `varied`, beside its nearest variation."""
    setup, redact = prepared.setup, prepared.options.redact
    explainer, view, names = setup.explainers[setup.in_use], setup.view, prepared.features
    noise = next(iter(setup.perturbations))
    one = measures.instability[setup.in_use, noise]
    drawn = one.table["amplification"].to_numpy(dtype=float)[i * one.draws : (i + 1) * one.draws]
    drawn = drawn[np.isfinite(drawn)]
    x, cf = varied.codes[at], varied.answers.points[at]
    place = int(np.flatnonzero(varied.some == at)[0])
    target = int(varied.answers.label[at])
    other = nearest_variation(explainer, x, cf, target, varied.variations, place, setup.distance)
    shown: dict[str, Any] = {
        "id": None if redact else str(measures.people.index[i]),
        "perturbation": noise,
        "amplification": float(one.people["amplification"].iloc[i]),
        "low": float(np.min(drawn)),
        "high": float(np.max(drawn)),
        "draws": len(drawn),
        "facts": [],
        "variation": [],
        "told": told(view, names, x, cf, gone, redact),
        "variation_told": [],
        "by": None,
        "moves": None,
        "sentence": "",
    }
    if other is None:
        return shown
    changed = np.flatnonzero(other.person != x)
    shown["by"] = float(setup.distance(x[None], other.person[None])[0])
    shown["moves"] = float(setup.distance(cf[None], other.point[None])[0])
    shown["variation_told"] = told(view, names, other.person, other.point, gone & (other.person == x), redact)
    if redact:
        full = told(view, names, x, cf, gone), told(view, names, other.person, other.point, gone)
        tagged(*full, ("this person", "the variation"))
        for short, long in zip((*shown["told"], *shown["variation_told"]), (*full[0], *full[1]), strict=True):
            short["tag"] = long["tag"]
        shown["variation"] = [[names[j], None, None] for j in changed]
        shown["sentence"] = _sentence([names[j] for j in changed], None, other.differs)
        return shown
    tagged(shown["told"], shown["variation_told"], ("this person", "the variation"))
    shown["facts"] = [[name, value, bool(j in changed)] for j, (name, value) in enumerate(facts(view, names, x, gone))]
    words = [
        (names[j], *both(view.schema.value(int(j), x[j]), view.schema.value(int(j), other.person[j]))) for j in changed
    ]
    shown["variation"] = [list(one) for one in words]
    shown["sentence"] = _sentence([names[j] for j in changed], words, other.differs)
    return shown


def _sentence(columns: list[str], words: list[tuple[str, str, str]] | None, differs: bool) -> str:
    end = "is told to change something else" if differs else "is told other amounts"
    if words is None or len(words) > 2:
        what = ", ".join(columns[:3]) + (f" and {len(columns) - 3} more" if len(columns) > 3 else "")
        return f"The same person with a little other {what} {end}."
    return (
        "The same person with "
        + " and ".join(f"{name} {after} instead of {before}" for name, before, after in words)
        + f" {end}."
    )
