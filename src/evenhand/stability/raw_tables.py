"""Worst cases of raw tables: from tables to codes, and back to tables whose every row is asked about once more."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.explaining.explainer import Explainer, Flip
from evenhand.explaining.explanations import Explanations
from evenhand.randomness import Streams, identities
from evenhand.stability.possible import ROUNDING
from evenhand.stability.possible_people import possible_people
from evenhand.stability.raw_search import Effort, RawSearch
from evenhand.stability.worst_case_result import Worst
from evenhand.table.frames import as_frame
from evenhand.table.people import People, Reader
from evenhand.types import FloatArray, IntArray

PEOPLE = 256  # that are searched for at a time; bounds the memory, not the answers


def worst_in_raw_table(
    explainer: Explainer,
    people: People,
    radius: FloatArray,
    original: Explanations,
    on_flip: Flip,
    seed: int,
    effort: Effort,
    n_jobs: int | None,
) -> Worst:
    """Search, write what was found as a table like the given one, and ask about that table.

    What is reported is measured between the tables that people see: the perturbed people are read from theirs again,
    and so are the explanations.
    """
    view = explainer.view
    n = len(people.codes)
    rows = np.flatnonzero(original.valid)
    told = view.read(original.counterfactual)
    present, goal = np.full(n, -1), view.positions(original.target)
    if len(rows):
        present[rows] = view.decide(people.codes[rows])
    best, tried, exhaustive = people.codes.copy(), np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    frame = view.reader.columns(people.given)
    streams, who = Streams(seed), identities(people.index)
    for first in range(0, len(rows), PEOPLE):
        some = rows[first : first + PEOPLE]
        possible = possible_people(explainer, frame.iloc[some], people.codes[some], radius[some])
        search = RawSearch(explainer, possible, told[some], present[some], goal[some], on_flip, n_jobs)
        search.run([streams.of(person, 0) for person in who[some]], effort)
        best[some], tried[some], exhaustive[some] = search.best, search.tried, search.exhaustive

    perturbed, codes = _confirmed(explainer, people, radius, best, rows)
    flipped = np.zeros(n, dtype=bool)
    if len(rows):
        flipped[rows] = view.decide(codes[rows]) != present[rows]
    aim = np.where(flipped & (on_flip == "swap"), present, goal)
    moved = explainer.explain(perturbed, _labels(explainer, aim), n_jobs=n_jobs)
    distance, size = np.full(n, np.nan), np.full(n, np.nan)
    size[rows] = explainer.cost(codes[rows], people.codes[rows])
    both = np.flatnonzero(original.valid & moved.valid & tried)
    distance[both] = explainer.cost(view.read(moved.counterfactual)[both], told[both])
    unproven = np.full(n, np.nan)
    return Worst(perturbed, moved, distance, size, flipped, unproven, exhaustive)


def _labels(explainer: Explainer, aim: IntArray) -> npt.NDArray[Any] | None:
    """What the perturbed people aim at; people without an explanation aim at what somebody else does."""
    if not len(aim) or (aim < 0).all():
        return None
    labels: npt.NDArray[Any] = explainer.view.classes[np.where(aim < 0, aim[aim >= 0][0], aim)]
    return labels


def _confirmed(
    explainer: Explainer, people: People, radius: FloatArray, best: FloatArray, rows: IntArray
) -> tuple[Any, FloatArray]:
    """The perturbed people as a table, and as they are read from it; who is another there, stays as it is."""
    reader = explainer.view.reader
    table = written(reader, best, people.given)
    codes = reader.read(table).codes
    away = explainer.cost(codes[rows], people.codes[rows])
    changed = (codes[rows] != best[rows]).any(axis=1) | ~(away <= radius[rows] * (1.0 + ROUNDING))
    if changed.any():
        best = best.copy()
        best[rows[changed]] = people.codes[rows[changed]]
        table = written(reader, best, people.given)
        codes = reader.read(table).codes
    return table, codes


def written(reader: Reader, codes: FloatArray, given: Any) -> Any:
    """Codes in the form of the given table; a person who cannot be read is the one that was given."""
    readable = np.isfinite(codes).all(axis=1)
    if readable.all():
        return reader.write(codes, given)
    good, bad = np.flatnonzero(readable), np.flatnonzero(~readable)
    order = np.argsort(np.concatenate([good, bad]), kind="stable")
    if type(given).__module__.startswith("polars"):
        table: Any = reader.write(codes[good], given[good])
        return table.vstack(given[bad].cast(table.schema))[order]
    if isinstance(given, np.ndarray):
        return np.concatenate([reader.write(codes[good], given[good]), given[bad]])[order]
    frame = as_frame(given)
    part: Any = reader.write(codes[good], frame.iloc[good])
    return pd.concat([part, frame.iloc[bad]]).iloc[order]
