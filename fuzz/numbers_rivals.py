"""Whom somebody could become for less than an answer says is possible, in a table of numbers.

Pieces of regions are solved one by one; from the nearest point of a piece the way leads to the answer, which is inside,
so that somewhere on it predict confirms what is cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fuzz.densities import Gaussian, image
from fuzz.regions import affine, nearest, pieces

if TYPE_CHECKING:
    from fuzz.numbers_question import NumberQuestion

WALK = np.array([0.0, *(10.0 ** -np.arange(13.0, 0.0, -1.0)), 0.5])
MOST_PIECES = 12
INSIDE = (1e-6, 1e-3)  # how far inside a region, in spreads of its rows, a point is looked for where none is said to be


class Asked(NamedTuple):
    """Somebody, the answer if there is one, its cost, and what a rival has to cost less than."""

    model: Any
    own: np.ndarray
    answer: np.ndarray | None
    cost: float
    floor: float


def nearer(question: NumberQuestion, asked: Asked, label: Any) -> np.ndarray | None:
    """Somebody cheaper whom the model gives a label, next to the nearest point of one of its pieces."""
    for point in _points(question, asked, label):
        ends = point[None] if asked.answer is None else point + WALK[:, None] * (asked.answer - point)
        found = _confirmed(question, asked, question.allowed(asked.own, ends), label)
        if found is not None:
            return found
    return None


def denser(question: NumberQuestion, asked: Asked, label: Any) -> np.ndarray | None:
    """Somebody cheaper, of the data or beside the answer, who lives where the label is dense."""
    seen = partial(image, asked.model[:-1] if question.steps else None, question.as_table)
    inside = Gaussian.of(seen(question.X[question.y == label]))
    if inside is None:
        return None
    rivals = question.X
    if asked.answer is not None:
        rng = np.random.default_rng(0)
        ways = rng.normal(size=(60, question.dim)) @ question.frame().T
        steps = 10.0 ** rng.uniform(-7, -1, (60, 1)) * asked.cost
        back = 10.0 ** -np.arange(1.0, 9.0)[:, None] * (asked.own - asked.answer)
        rivals = np.concatenate([rivals, asked.answer + ways * steps, asked.answer + back])
    rivals = question.allowed(asked.own, rivals)
    return _confirmed(question, asked, rivals[inside.clearly(seen(rivals))], label)


def _confirmed(question: NumberQuestion, asked: Asked, ends: np.ndarray, label: Any) -> np.ndarray | None:
    prices = np.array([question.price(end - asked.own) for end in ends])
    good = np.flatnonzero(prices < asked.floor)
    if not len(good):
        return None
    there = good[asked.model.predict(question.as_table(ends[good])) == label]
    return ends[there[prices[there].argmin()]] if len(there) else None


def _points(question: NumberQuestion, asked: Asked, label: Any) -> Iterator[np.ndarray]:
    """The nearest point of each piece that may be near enough, nearest first."""
    steps, last = (asked.model[:-1], asked.model[-1]) if question.steps else (None, asked.model)
    spread = question.X.std(axis=0)
    spread = np.where(spread > 1e-14 * np.abs(question.X).max(axis=0), spread, 1.0)
    seen, slope = affine(steps, asked.own, spread, question.as_table)
    valid = asked.answer is not None
    scale = asked.cost if valid else question.size(spread)
    rows, sides = _limit_rows(question, asked.own)
    fixed = [limit.column for limit in question.limits if limit.way == "immutable"]
    free = [j for j in range(question.dim) if j not in fixed]
    frame = question.frame()[:, free]
    if fixed and question.matrix is not None:
        frame = np.zeros((question.dim, len(free)))
        frame[free] = np.linalg.inv(np.linalg.cholesky(question.matrix[np.ix_(free, free)])).T
    queue = []
    for G, h in pieces(last, label):
        A, b = G @ slope, h - G @ seen
        reach = np.linalg.norm(A @ frame, np.inf if question.order == 1 else 2, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.where(b < 0, -b / np.where(reach > 0, reach, 0.0), 0.0).max(initial=0.0)
        if least < asked.floor:
            queue.append((float(least), A, b))
    queue.sort(key=lambda piece: piece[0])
    for _, A, b in queue[:MOST_PIECES]:
        margins = [np.zeros(len(A))] if valid else [m * np.linalg.norm(A * spread, axis=1) for m in INSIDE]
        for margin in margins:
            u = nearest(question.order, np.vstack([A, rows]) @ frame * scale, np.append(b - margin, sides))
            if u is not None and np.isfinite(u).all():
                yield asked.own + frame @ u * scale


def _limit_rows(question: NumberQuestion, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Limits as halfspaces of the change."""
    rows, sides = [np.zeros((0, question.dim))], []
    for limit in question.limits:
        if limit.way == "immutable":
            continue
        e = np.eye(question.dim)[limit.column][None]
        low = 0.0 if limit.way == "increase" else limit.low - own[limit.column]
        high = 0.0 if limit.way == "decrease" else limit.high - own[limit.column]
        if np.isfinite(low):
            rows, sides = [*rows, -e], [*sides, -low]
        if np.isfinite(high):
            rows, sides = [*rows, e], [*sides, high]
    return np.vstack(rows), np.array(sides)
