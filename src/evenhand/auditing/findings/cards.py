"""The least stable people next to their nearest variation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evenhand.auditing.advice import both, facts, hidden, tagged, told
from evenhand.auditing.document.individuals import Card
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


def card(prepared: Prepared, measures: Measures, i: int, varied: Varied, at: int, gone: npt.NDArray[np.bool_]) -> Card:
    """The `i`-th person of the sample, who is the `at`-th of `varied`, beside its nearest variation."""
    setup, redact = prepared.setup, prepared.options.redact
    explainer, view, names = setup.explainers[setup.in_use], setup.view, prepared.features
    perturbation = next(iter(setup.perturbations))
    measured = measures.instability[setup.in_use, perturbation]
    ratios = measured.table["amplification"].to_numpy(dtype=float)[i * measured.draws : (i + 1) * measured.draws]
    ratios = ratios[np.isfinite(ratios)]
    x, cf = varied.codes[at], varied.answers.points[at]
    place = int(np.flatnonzero(varied.some == at)[0])
    target = int(varied.answers.label[at])
    advice = told(view, names, x, cf, gone)
    alone = Card(
        id=None if redact else str(measures.people.index[i]),
        perturbation=perturbation,
        amplification=float(measured.people["amplification"].iloc[i]),
        low=float(np.min(ratios)),
        high=float(np.max(ratios)),
        draws=len(ratios),
        facts=[],
        variation=[],
        told=hidden(advice) if redact else advice,
        variation_told=[],
        by=None,
        moves=None,
        sentence="",
    )
    other = nearest_variation(explainer, x, cf, target, varied.variations, place, setup.distance)
    if other is None:
        return alone
    changed = np.flatnonzero(other.person != x)
    columns = [names[j] for j in changed]
    other_advice = told(view, names, other.person, other.point, gone & (other.person == x))
    advice, other_advice = tagged(advice, other_advice, ("this person", "the variation"))
    beside = replace(
        alone,
        told=advice,
        variation_told=other_advice,
        by=float(setup.distance(x[None], other.person[None])[0]),
        moves=float(setup.distance(cf[None], other.point[None])[0]),
    )
    if redact:
        return replace(
            beside,
            variation=[(name, None, None) for name in columns],
            told=hidden(advice),
            variation_told=hidden(other_advice),
            sentence=_sentence(columns, None, other.differs),
        )
    words = [
        (names[j], *both(view.schema.value(int(j), x[j]), view.schema.value(int(j), other.person[j]))) for j in changed
    ]
    return replace(
        beside,
        facts=[(name, value, bool(j in changed)) for j, (name, value) in enumerate(facts(view, names, x, gone))],
        variation=[*words],
        sentence=_sentence(columns, words, other.differs),
    )


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
