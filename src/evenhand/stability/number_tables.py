"""Worst cases of tables of numbers: searched for, confirmed, and put next to what is proven."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.explaining.explainer import Explainer, Flip
from evenhand.explaining.explanations import Explanations
from evenhand.randomness import Streams, identities
from evenhand.stability.certificate import certify
from evenhand.stability.number_search import NumberSearch
from evenhand.stability.worst_case_result import Worst
from evenhand.table.limits import FIXED, FREE
from evenhand.table.people import People
from evenhand.types import FloatArray


def worst_in_numbers(
    explainer: Explainer,
    people: People,
    radius: FloatArray,
    original: Explanations,
    on_flip: Flip,
    seed: int,
    restarts: int,
    rounds: int,
    n_jobs: int | None,
) -> Worst:
    """Search, and ask once more about what was found."""
    view, X = explainer.view, people.codes
    n, rows = len(X), np.flatnonzero(original.valid)
    told = view.read(original.counterfactual)
    search = NumberSearch(explainer, X[rows], radius[rows], told[rows], original.target[rows], on_flip, n_jobs)
    if len(rows):
        streams = Streams(seed)
        search.run([streams.of(person, 0) for person in identities(people.index)[rows]], restarts, rounds)
    perturbed, distance, flipped = X.copy(), np.full(n, np.nan), np.zeros(n, dtype=bool)
    perturbed[rows], distance[rows] = search.best, np.where(search.tried, search.distance, np.nan)
    size, goal = np.full(n, np.nan), original.target.copy()
    if len(rows):
        flipped[rows] = view.decide(search.best) != search.present
        goal[rows] = view.classes[np.where(flipped[rows] & (on_flip == "swap"), search.present, search.goal)]
        size[rows] = explainer.cost(search.best, search.X)
    some = [label for label in goal if label is not None]
    goal = np.array([some[0] if label is None else label for label in goal]) if some else goal
    moved = explainer.explain(view.reader.write(perturbed, people.given), goal if some else None, n_jobs=n_jobs)
    bound = _proven(explainer, X, radius, original, rows, on_flip, n_jobs)
    return Worst(perturbed, moved, distance, size, flipped, bound, np.zeros(n, dtype=bool))


def _proven(
    explainer: Explainer,
    X: FloatArray,
    radius: FloatArray,
    original: Explanations,
    rows: npt.NDArray[np.intp],
    on_flip: Flip,
    n_jobs: int | None,
) -> FloatArray:
    """How far explanations move at most; NaN where nothing can be proven."""
    bound, exact = np.full(len(X), np.nan), explainer.exact
    if exact is None or not exact.certifiable or not len(rows):
        return bound
    if np.isin(exact.limits.directions, (FIXED, FREE)).all():
        certificates = certify(explainer, X[rows], original.target[rows], n_jobs=n_jobs)
        bound[rows] = certificates.bound(radius[rows], on_flip)
    return bound
