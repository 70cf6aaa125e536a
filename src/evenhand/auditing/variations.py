"""The smallest variation of a person that is told something else."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenhand.auditing.advice import different
from evenhand.costs import Distance
from evenhand.explaining.explainer import Explainer
from evenhand.stability.experiment import Variations
from evenhand.status import VALID
from evenhand.types import FloatArray

HALVINGS = 6  # to within some percent: further digits would say nothing


class Nearest(NamedTuple):
    """A variation of a person, and what it is told."""

    person: FloatArray
    point: FloatArray
    differs: bool  # told to change other columns, not only other amounts


def nearest_variation(
    explainer: Explainer, x: FloatArray, cf: FloatArray, target: int, varied: Variations, i: int, distance: Distance
) -> Nearest | None:
    """The least change of person `i` that is told to change something else.

    Starts from the nearest of the variations that were drawn, takes back every column that does not matter, and
    then as much of the others as leaves the answer another one, if the method is quick enough.  If all variations are
    told the same, the one whose answer moved furthest in relation to itself.
    """
    view = explainer.view
    usable = np.flatnonzero(np.isin(varied.status[i], VALID) & ~varied.flipped[i])
    if not len(usable):
        return None
    people, points = varied.people[i][usable], varied.points[i][usable]
    away = distance(np.repeat(x[None], len(people), axis=0), people)
    others = np.flatnonzero(different(view, x, cf, people, points))
    if not len(others):
        moved = distance(np.repeat(cf[None], len(points), axis=0), points)
        k = int(np.argmax(moved / np.maximum(away, 1e-300)))
        return Nearest(people[k], points[k], differs=False)
    k = int(others[np.argmin(away[others])])
    nearest = Nearest(people[k], points[k], differs=True)
    if not explainer.quick:
        return nearest
    decision = int(view.decide(x[None])[0])

    def still(person: FloatArray) -> Nearest | None:
        if view.decide(person[None])[0] != decision:
            return None
        answer = explainer.answer(person[None], np.array([target]), np.array([decision]))
        if answer.status[0] not in VALID or not different(view, x, cf, person[None], answer.points)[0]:
            return None
        return Nearest(person, answer.points[0], differs=True)

    gaps = [distance(x[None], np.where(np.arange(len(x)) == j, nearest.person, x)[None])[0] for j in range(len(x))]
    for j in np.argsort(gaps, kind="stable"):
        if nearest.person[j] != x[j]:
            tried = nearest.person.copy()
            tried[j] = x[j]
            nearest = still(tried) or nearest
    start, low, high = nearest.person, 0.0, 1.0  # at `low` the person is told the same, at `high` something else
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        tried = x + middle * (start - x)
        tried = np.where(view.schema.whole, np.rint(tried), tried)
        tried = np.where(view.schema.number, tried, start)
        nearer = still(tried) if not (tried == nearest.person).all() else nearest
        low, high = (low, middle) if nearer is not None else (middle, high)
        nearest = nearer or nearest
    return nearest
