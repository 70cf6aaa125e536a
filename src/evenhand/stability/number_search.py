"""The worst perturbation of people in tables of numbers: along directions, for all people at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.costs import Norm
from evenhand.explaining.explainer import Explainer, Flip
from evenhand.projection.solver import GUARD
from evenhand.table.limits import FIXED
from evenhand.types import FloatArray

SHRINK = 0.6  # of the step after a round without progress
AXES = 24  # features that are tried one by one; of more a random choice
RIVALS = 3  # pieces that an explanation might jump to, nearest first
PROPOSALS = 3  # random ones per person and round


class NumberSearch:
    """Best perturbation so far of every person, improved round by round, for all people at once."""

    def __init__(
        self,
        explainer: Explainer,
        X: FloatArray,
        radius: FloatArray,
        told: FloatArray,
        target: npt.NDArray[Any],
        on_flip: Flip,
        n_jobs: int | None,
    ) -> None:
        self.explainer, self.X, self.radius, self.on_flip, self.n_jobs = explainer, X, radius, on_flip, n_jobs
        view = explainer.view
        self.told = told
        self.present = view.decide(X)
        self.goal = view.positions(target)
        limits = getattr(explainer, "limits", None)  # other tools have none
        self.free = np.ones(X.shape[1], dtype=bool) if limits is None else limits.directions != FIXED
        self.best = X.copy()
        self.moved_to = self.told.copy()
        self.distance = np.zeros(len(X))
        self.tried = np.zeros(len(X), dtype=bool)  # whether any perturbation was allowed and had an explanation
        self.step = np.full(len(X), 0.5)
        self.streams: list[np.random.Generator] = []

    def run(self, streams: list[np.random.Generator], restarts: int, rounds: int) -> None:
        """Begin at random and towards other pieces of the target's region; then refine what moved explanations most."""
        self.start(streams, restarts)
        for directions in _towards_rivals(self.explainer, self):
            self.try_along(directions)
        for _ in range(rounds):
            self.refine()

    def start(self, streams: list[np.random.Generator], restarts: int) -> None:
        """Random perturbations of full size."""
        self.streams = streams
        dim = self.X.shape[1]
        shape = (restarts, dim)
        directions = np.array([rng.standard_normal(shape) for rng in streams]).reshape(-1, restarts, dim)
        length = np.array([rng.random(restarts) for rng in streams]).reshape(-1, restarts)
        for i in range(restarts):  # most of full size, every third anywhere inside
            self.try_along(directions[:, i], length[:, i] if i % 3 == 2 else None)
        order = np.array([rng.permutation(dim) for rng in streams]).reshape(-1, dim)
        for j in range(min(dim, AXES)):  # one feature takes it all, up or down
            axis = np.eye(dim)[order[:, j]]
            self.try_along(axis)
            self.try_along(-axis)

    def refine(self) -> None:
        """Follow the explanation, then step at random around the best perturbation."""
        before = self.distance.copy()
        self.try_along(self.plain(self.moved_to - self.told))
        dim = self.X.shape[1]
        noise = np.array([rng.standard_normal((PROPOSALS, dim)) for rng in self.streams]).reshape(-1, PROPOSALS, dim)
        inside = np.array([rng.random() for rng in self.streams])
        for i in range(PROPOSALS):
            now = self.plain(self.best - self.X)
            length = np.linalg.norm(now, axis=1, keepdims=True)
            length = np.where(length > 0, length, self.radius[:, None])
            self.try_along(now + self.step[:, None] * length / np.sqrt(dim) * noise[:, i], inside if i == 0 else None)
        improved = self.distance > before * (1 + 1e-6)
        self.step = np.where(improved, self.step, SHRINK * self.step)

    def try_along(self, directions: FloatArray, share: FloatArray | None = None) -> None:
        """Perturbations along some directions, of full size or a share of it; keep what moves the explanation further.

        If those that change the prediction do not count, they are tried once more with half the size.
        """
        if not len(self.X):
            return
        size = self.radius if share is None else self.radius * share
        change = _along(self.explainer.cost, directions, self.free, size)
        if self.on_flip == "skip":
            view = self.explainer.view
            flipped = view.decide(self.X + change) != self.present
            change = np.where(flipped[:, None], change / 2, change)
        candidates = self.X + change
        view = self.explainer.view
        flipped = view.decide(candidates) != self.present
        goal = np.where(flipped & (self.on_flip == "swap"), self.present, self.goal)
        allowed = ~flipped if self.on_flip == "skip" else np.ones(len(flipped), dtype=bool)
        found = self.explainer.explain(candidates, view.classes[goal], n_jobs=self.n_jobs)
        points = np.asarray(found.counterfactual)
        usable = found.valid & allowed
        distance = np.zeros(len(self.X))
        distance[usable] = self.explainer.cost(points[usable], self.told[usable])
        self.tried |= usable
        better = distance > self.distance
        self.best[better], self.moved_to[better] = candidates[better], points[better]
        self.distance[better] = distance[better]

    def plain(self, change: FloatArray) -> FloatArray:
        """Changes in the coordinates in which the cost is a plain norm."""
        dim = change.shape[1]
        frame = self.explainer.cost.frame(dim, np.arange(dim))
        if frame.ndim == 1:
            return np.asarray(change / frame)
        return np.asarray(np.linalg.solve(frame, change.T).T, dtype=np.float64)


def _towards_rivals(explainer: Explainer, search: NumberSearch) -> Iterator[FloatArray]:
    """Directions, in plain coordinates, towards the nearest other pieces of the target and away from the chosen one."""
    exact = explainer.exact
    if exact is None or not len(search.X):
        return
    n, dim = search.X.shape
    distance, point = np.full((n, RIVALS), np.inf), np.zeros((n, RIVALS, dim))
    for k in np.unique(search.goal):
        rows = np.flatnonzero(search.goal == k)
        for _, projector in exact.projector(int(k)).pieces(search.X[rows]):
            found = projector.project(search.X[rows], GUARD)
            away = np.where(np.isnan(found.cost), np.inf, found.cost)
            own = explainer.cost(np.nan_to_num(found.points), search.told[rows]) <= 1e-9 * (1.0 + away)
            worst = distance[rows].argmax(axis=1)
            nearer = ~own & (away < distance[rows, worst])
            distance[rows[nearer], worst[nearer]] = away[nearer]
            point[rows[nearer], worst[nearer]] = found.points[nearer]
    here = search.plain(search.told - search.X)
    here /= np.maximum(np.linalg.norm(here, axis=1, keepdims=True), 1e-300)
    for i in range(RIVALS):
        there = search.plain(point[:, i] - search.X)
        there /= np.maximum(np.linalg.norm(there, axis=1, keepdims=True), 1e-300)
        known = np.isfinite(distance[:, i])[:, None]
        yield np.where(known, there - here, 0.0)
        yield np.where(known, there, 0.0)


def _along(cost: Norm, directions: FloatArray, free: npt.NDArray[np.bool_], radius: FloatArray) -> FloatArray:
    """Changes of the given cost along directions in plain coordinates; a direction of length zero changes nothing."""
    dim = directions.shape[1]
    frame = cost.frame(dim, np.arange(dim))
    change = directions * frame if frame.ndim == 1 else directions @ frame.T
    change = np.where(free, change, 0.0)
    length = cost(change, np.zeros(dim))
    # A hair inside, so that rounding cannot leave the radius.
    scale = np.where(length > 0, radius * (1 - 1e-12) / np.where(length > 0, length, 1.0), 0.0)
    scaled: FloatArray = change * scale[:, None]
    return scaled
