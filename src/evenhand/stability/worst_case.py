"""The perturbation that moves an explanation most: searched for, and put next to what is proven."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.costs import Cost
from evenhand.explaining.exact import GUARD, ExactExplainer
from evenhand.explaining.explainer import Explainer, Flip, check_explainer
from evenhand.explaining.explanations import Explanations
from evenhand.markup import framed
from evenhand.models import needs_numbers
from evenhand.randomness import Streams, identities, seed_of
from evenhand.stability.certificate import certify
from evenhand.table.limits import FIXED, FREE
from evenhand.table.people import people_of
from evenhand.types import FloatArray

SHRINK = 0.6  # of the step after a round without progress
AXES = 24  # features that are tried one by one; of more a random choice
RIVALS = 3  # pieces that an explanation might jump to, nearest first
PROPOSALS = 3  # random ones per person and round


@dataclass(frozen=True, eq=False)
class WorstCase:
    """The worst perturbation that was found for each person; :func:`worst_case` makes it.

    Attributes
    ----------
    table : DataFrame
        One row per person: `radius`, the largest `distance` between explanations that was found, the `bound` that is
        proven (NaN for methods that prove nothing, infinity where the prediction may change), `amplification`
        (distance / radius), `reached` (distance / bound) and whether the prediction `flipped`.  All in units of
        the cost.
    perturbed : array of shape (n, n_features)
        The perturbed people.
    original, moved : Explanations
        What the people and the perturbed people are told.
    """

    table: pd.DataFrame
    perturbed: FloatArray = field(repr=False)
    original: Explanations = field(repr=False)
    moved: Explanations = field(repr=False)

    def __repr__(self) -> str:
        found = self.table["amplification"].to_numpy()
        worst = f": largest amplification {np.nanmax(found):.4g}" if np.isfinite(found).any() else ""
        return f"WorstCase({len(self.table)} people{worst})"

    def _repr_html_(self) -> str:
        return framed(repr(self), self.table.sort_values("distance", ascending=False).head(10).set_index("person"))


def worst_case(
    explainer: Explainer,
    X: Any,
    radius: float | npt.ArrayLike,
    *,
    target: Any = None,
    on_flip: Flip = "swap",
    restarts: int = 12,
    rounds: int = 12,
    random_state: int | np.random.Generator | None = 0,
    n_jobs: int | None = None,
) -> WorstCase:
    """Search for the perturbation within a radius that moves the explanation most.

    Parameters
    ----------
    explainer : Explainer
        A fitted method, of any kind.
    X : table of shape (n, n_features)
        People.
    radius : float, or array of shape (n,)
        Largest size of the perturbation, in units of the explainer's cost.  Immutable columns are left alone.
    target, n_jobs
        As in ``explain``.
    on_flip : {"swap", "keep", "skip"}
        As in :func:`instability`; "skip" looks only at perturbations that keep the prediction.
    restarts : int
        Random perturbations to start from, besides those of single features and those towards other pieces of the
        target's region.
    rounds : int
        Rounds of refinement: along the way that the explanation moved, and at random in ever smaller steps.
    random_state : int or numpy Generator, optional
        Seed.

    Returns
    -------
    WorstCase
        What was found is a lower bound of the worst case; `bound` is an upper one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from evenhand import Closest, worst_case
    >>> X, y = load_iris(return_X_y=True)
    >>> explainer = Closest(cost="l2").fit(LogisticRegression(max_iter=1000).fit(X, y))
    >>> bool((worst_case(explainer, X[:5], 0.1).table["amplification"] <= 1 + 1e-6).all())
    True
    """
    check_explainer(explainer)
    if not explainer.view.reader.plain:
        raise needs_numbers("worst_case", explainer.view)
    if on_flip not in ("swap", "keep", "skip"):
        raise ValueError(f'on_flip must be "swap", "keep" or "skip", got {on_flip!r}.')
    if restarts < 1 or rounds < 0:
        raise ValueError(f"restarts must be >= 1 and rounds >= 0, got {restarts} and {rounds}.")
    view = explainer.view
    table = view.read(X)
    size = np.asarray(radius, dtype=np.float64)
    if size.shape not in ((), (len(table),)) or not (np.isfinite(size) & (size > 0)).all():
        raise ValueError(f"radius must be a finite number > 0, or one per person ({len(table)}); got {radius!r}.")
    index = people_of(X)
    seed = seed_of(random_state)
    original = explainer.explain(X, target, random_state=seed, n_jobs=n_jobs)
    rows = np.flatnonzero(original.valid)
    whole = np.broadcast_to(size, (len(table),))
    told = view.read(original.counterfactual)
    search = _Search(explainer, table[rows], whole[rows], told[rows], original.target[rows], on_flip, n_jobs)
    streams, who = Streams(seed), identities(index)[rows]
    if not len(rows):
        return _result(explainer, X, table, whole, original, rows, search, on_flip, n_jobs)
    search.start([streams.of(person, 0) for person in who], restarts)
    for directions in _rivals(explainer, search):
        search.try_along(directions)
    for _ in range(rounds):
        search.refine()
    return _result(explainer, X, table, whole, original, rows, search, on_flip, n_jobs)


class _Search:
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
        self.free = np.ones(X.shape[1], dtype=bool)
        if isinstance(explainer, ExactExplainer):
            self.free = explainer.limits.directions != FIXED
        self.best = X.copy()
        self.moved_to = self.told.copy()
        self.distance = np.zeros(len(X))
        self.tried = np.zeros(len(X), dtype=bool)  # whether any perturbation was allowed and had an explanation
        self.step = np.full(len(X), 0.5)
        self.streams: list[np.random.Generator] = []

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
            return change / frame
        return np.asarray(np.linalg.solve(frame, change.T).T, dtype=np.float64)


def _rivals(explainer: Explainer, search: _Search) -> Iterator[FloatArray]:
    """Directions, in plain coordinates, towards the nearest other pieces of the target and away from the chosen one."""
    if not isinstance(explainer, ExactExplainer) or not len(search.X):
        return
    n, dim = search.X.shape
    distance, point = np.full((n, RIVALS), np.inf), np.zeros((n, RIVALS, dim))
    for k in np.unique(search.goal):
        rows = np.flatnonzero(search.goal == k)
        for _, projector in explainer.projector(int(k)).pieces(search.X[rows]):
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


def _along(cost: Cost, directions: FloatArray, free: npt.NDArray[np.bool_], radius: FloatArray) -> FloatArray:
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


def _result(
    explainer: Explainer,
    given: Any,
    X: FloatArray,
    radius: FloatArray,
    original: Explanations,
    rows: npt.NDArray[np.intp],
    search: _Search,
    on_flip: Flip,
    n_jobs: int | None,
) -> WorstCase:
    view = explainer.view
    n = len(X)
    perturbed, distance, flipped = X.copy(), np.full(n, np.nan), np.zeros(n, dtype=bool)
    perturbed[rows], distance[rows] = search.best, np.where(search.tried, search.distance, np.nan)
    goal = original.target.copy()
    if len(rows):
        flipped[rows] = view.decide(search.best) != search.present
        goal[rows] = view.classes[np.where(flipped[rows] & (on_flip == "swap"), search.present, search.goal)]
    some = [label for label in goal if label is not None]
    goal = np.array([some[0] if label is None else label for label in goal]) if some else goal
    moved = explainer.explain(view.reader.write(perturbed, given), goal if some else None, n_jobs=n_jobs)
    bound = np.full(n, np.nan)
    provable = isinstance(explainer, ExactExplainer) and np.isin(explainer.limits.directions, (FIXED, FREE)).all()
    if provable and len(rows):
        certificates = certify(explainer, X[rows], original.target[rows], n_jobs=n_jobs)
        bound[rows] = certificates.bound(radius[rows], on_flip)
    table = pd.DataFrame(
        {
            "person": people_of(given),
            "target": original.target,
            "status": original.status,
            "radius": radius,
            "distance": distance,
            "bound": bound,
            "amplification": distance / radius,
            "reached": np.where(np.isfinite(bound) & (bound > 0), distance / np.where(bound > 0, bound, 1.0), np.nan),
            "flipped": flipped,
        }
    )
    return WorstCase(table, perturbed, original, moved)
