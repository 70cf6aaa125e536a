"""A sample of people, perturbed and certified, by every method: what the numbers on stability rest on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.auditing.everyone import Everyone
from evenhand.auditing.prepare import Prepared, Report
from evenhand.auditing.sources import rows_of
from evenhand.auditing.tasks import Packed, Varied, certify_part, measure_part, vary_part
from evenhand.stability.instability import PILOT, Instability
from evenhand.types import FloatArray
from evenhand.workers import Task, run_all

PART = 250  # people of one task
SEARCHED = 100  # people who are varied if the model has no regions, at most: a search takes longer


@dataclass
class Measures:
    """What was measured on a sample.

    Attributes
    ----------
    rows : array
        Rows of the sample's people in the table.
    people : DataFrame
        Their features; the index says who is who.
    target : array
        The label that each aims at.
    draws : int
        Variations per person.
    instability : dict from (method, perturbation) to Instability
    price : dict from method to array
        How far the explanation is from the person, in the audit's distance.
    certificates : dict from method to DataFrame
    not_certified : dict from method to str
    """

    rows: npt.NDArray[np.intp]
    people: pd.DataFrame
    target: npt.NDArray[Any]
    draws: int
    instability: dict[tuple[str, str], Instability]
    price: dict[str, FloatArray]
    certificates: dict[str, pd.DataFrame]
    not_certified: dict[str, str]


def measure(prepared: Prepared, everyone: Everyone, report: Report) -> Measures:
    """Perturb a random sample of the people who have an explanation, and explain them again by every method."""
    setup, options = prepared.setup, prepared.options
    explained = everyone.found
    size = options.people if setup.exact else min(options.people, SEARCHED)
    rows = prepared.order[explained[prepared.order]][:size]
    people = rows_of(prepared.source, prepared.features, rows)
    people.index = prepared.survey.ids[rows]
    target = setup.view.classes[everyone.label[rows]]
    packed = {name: Packed.of(explainer) for name, explainer in setup.explainers.items()}
    draws = options.draws
    pairs = [(method, noise) for method in packed for noise in setup.perturbations]
    if options.tolerance is not None:
        draws = _enough(prepared, packed, people, target, report)
    measured = _measured(prepared, packed, people, target, pairs, draws, report)
    price = {method: measured[method, next(iter(setup.perturbations))][1] for method in packed}
    certificates, reasons = _certified(prepared, packed, people, target, report)
    return Measures(
        rows,
        people,
        target,
        draws,
        {pair: instability for pair, (instability, _) in measured.items()},
        price,
        certificates,
        reasons,
    )


def _slices(n: int) -> Iterator[slice]:
    """Parts of so many people; one empty slice of nobody, so that empty results have columns."""
    for start in range(0, max(n, 1), PART):
        yield slice(start, min(start + PART, n))


def _measured(
    prepared: Prepared,
    packed: dict[str, Packed],
    people: pd.DataFrame,
    target: npt.NDArray[Any],
    pairs: list[tuple[str, str]],
    draws: int,
    report: Report,
) -> dict[tuple[str, str], tuple[Instability, FloatArray]]:
    setup, options = prepared.setup, prepared.options
    distance = setup.distance if setup.view.reader.plain else None
    tasks = (
        Task(
            measure_part,
            (
                packed[method],
                people.iloc[part],
                target[part],
                setup.perturbations[noise],
                draws,
                distance,
                options.on_flip,
                options.seed,
            ),
            f"perturbing people {part.start} to {part.stop} of the sample, {method}, {noise}",
        )
        for method, noise in pairs
        for part in _slices(len(people))
    )
    parts: list[tuple[Instability, FloatArray]] = []
    each = len(list(_slices(len(people))))
    total = len(pairs) * len(people) * draws
    for part_measured in run_all(tasks):
        parts.append(part_measured)
        report("perturbing and explaining again", min(len(parts) * PART * draws, total), total)
    return {
        pair: (
            Instability.joined([one for one, _ in parts[i * each : (i + 1) * each]]),
            np.concatenate([price for _, price in parts[i * each : (i + 1) * each]]),
        )
        for i, pair in enumerate(pairs)
    }


def _enough(
    prepared: Prepared, packed: dict[str, Packed], people: pd.DataFrame, target: npt.NDArray[Any], report: Report
) -> int:
    """Draws until the mean distance of the method in use is known to within the tolerance, for every perturbation."""
    setup, options = prepared.setup, prepared.options
    assert options.tolerance is not None
    pairs = [(setup.in_use, noise) for noise in setup.perturbations]
    draws = min(PILOT, options.max_draws)
    while True:
        wanted, short = draws, False
        for measured, _ in _measured(prepared, packed, people, target, pairs, draws, report).values():
            mean = float(measured.people["distance"].mean())
            if not mean > 0 or np.isnan(measured.half_width) or measured.half_width <= options.tolerance * mean:
                continue
            short = True
            # The width falls with the root of the number of draws; a tenth more, because it was estimated.
            needed = 1.1 * draws * (measured.half_width / (options.tolerance * mean)) ** 2
            wanted = max(wanted, int(min(max(needed, draws + 1), options.max_draws)))
        if wanted == draws and draws < options.max_draws:
            return draws
        if draws == options.max_draws:
            if short:
                setup.notes.append(f"The tolerance asks for more than max_draws = {draws} variations per person.")
            return draws
        draws = wanted


def _certified(
    prepared: Prepared, packed: dict[str, Packed], people: pd.DataFrame, target: npt.NDArray[Any], report: Report
) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Radii of the sample's people where they can be proven, and where they cannot, why."""
    certificates: dict[str, pd.DataFrame] = {}
    reasons: dict[str, str] = {}
    for method, explainer in prepared.setup.explainers.items():
        if not explainer.quick:
            reasons[method] = "The method searches and does not solve exactly, so nothing can be proven of it."
            continue
        if not explainer.certifiable:
            reasons[method] = "Certificates are for tables of numbers: for levels and steps nothing is proven yet."
            continue
        tasks = (
            Task(
                certify_part,
                (packed[method], people.iloc[part], target[part]),
                f"certifying people {part.start} to {part.stop} of the sample, {method}",
            )
            for part in _slices(len(people))
        )
        parts: list[pd.DataFrame] = []
        try:
            for radii in run_all(tasks):
                parts.append(radii)
                report("certifying", min(len(parts) * PART, len(people)), len(people))
        except ValueError as error:  # columns that may only grow: the message says so
            reasons[method] = str(error)
            continue
        if parts:
            certificates[method] = pd.concat(parts)
            certificates[method].attrs["statement"] = parts[0].attrs["statement"]
    return certificates, reasons


def vary(
    prepared: Prepared, people: pd.DataFrame, target: npt.NDArray[Any], draws: int, report: Report
) -> dict[str, Varied]:
    """Some people and their variations under the first perturbation, by every method."""
    setup, options = prepared.setup, prepared.options
    noise = next(iter(setup.perturbations.values()))
    tasks = (
        Task(
            vary_part,
            (Packed.of(explainer), people, target, noise, draws, setup.distance, options.on_flip, options.seed),
            f"varying {len(people)} people, {method}",
        )
        for method, explainer in setup.explainers.items()
    )
    by_method = {}
    for method, varied in zip(setup.explainers, run_all(tasks), strict=True):
        by_method[method] = varied
        report("looking at single people", len(by_method), len(setup.explainers))
    return by_method
