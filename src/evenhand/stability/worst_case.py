"""The perturbation that moves an explanation most: searched for, and put next to what is proven."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.costs import Norm
from evenhand.explaining.exact import GUARD, ExactExplainer
from evenhand.explaining.explainer import Explainer, Flip, check_explainer
from evenhand.explaining.explanations import Explanations
from evenhand.markup import framed
from evenhand.randomness import Streams, identities, seed_of
from evenhand.stability.certificate import certify
from evenhand.stability.raw_search import Effort
from evenhand.stability.raw_tables import worst_in_raw_table
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
        (distance / radius), `reached` (distance / bound), whether the prediction `flipped`, how far the perturbed
        person is away (`input_distance`), and whether the search was `exhaustive`: every possible person within the
        radius was tried, so that no perturbation moves the explanation further.  All in units of the cost.
    perturbed : array or table of shape (n, n_features)
        The perturbed people: an array for tables of numbers, otherwise a table of the form and the types that were
        given.
    original, moved : Explanations
        What the people and the perturbed people are told.
    """

    table: pd.DataFrame
    perturbed: Any = field(repr=False)
    original: Explanations = field(repr=False)
    moved: Explanations = field(repr=False)

    @property
    def advice(self) -> pd.DataFrame:
        """In words, one row per person: how it was perturbed, and what it is told before and after.

        `columns_before` and `columns_after` name the columns that it is told to change; without an explanation the
        words say why, and the columns are empty.
        """
        change = replace(self.original, counterfactual=self.moved.factual)
        rows = range(len(self.table))
        is_moved = self.table["input_distance"].to_numpy() > 0
        return pd.DataFrame(
            {
                "person": self.table["person"],
                "perturbation": [change.describe(i) if is_moved[i] else "" for i in rows],
                "before": [self.original.describe(i) for i in rows],
                "after": [self.moved.describe(i) for i in rows],
                "columns_before": _changed_columns(self.original),
                "columns_after": _changed_columns(self.moved),
            }
        )

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

    Works on tables of numbers and on raw tables with levels, whole numbers and missing values, with every method.

    Parameters
    ----------
    explainer : Explainer
        A fitted method, of any kind.
    X : table of shape (n, n_features)
        People.
    radius : float, or array of shape (n,)
        Largest size of the perturbation, in units of the explainer's cost: in a raw table Gower's distance of the
        schema.  With 0 nobody moves.  Immutable columns are left alone.
    target, n_jobs
        As in ``explain``.
    on_flip : {"swap", "keep", "skip"}
        As in :func:`instability`; "skip" looks only at perturbations that keep the prediction.
    restarts : int
        Random perturbations to start from, besides those of single features and those towards other pieces of the
        target's region, or towards labels.
    rounds : int
        Rounds of refinement: along the way that the explanation moved, and at random in ever smaller steps; in raw
        tables also by taking columns back and by crossing the best perturbations.  Methods that take long to answer
        get a quarter of them there.
    random_state : int or numpy Generator, optional
        Seed.

    Returns
    -------
    WorstCase
        What was found is a lower bound of the worst case; `bound` is an upper one, which is there for tables of
        numbers only.

    Notes
    -----
    In a raw table a perturbed person is a possible one: its levels are known to the model, its numbers move in the
    steps of their columns (in whole numbers, if the given table holds those) and stay inside of their bounds, and what
    is missing stays missing.  If no more than 1,000 such people are within the radius (200 for a method that takes
    long), all of them are tried: the result is exact, and `exhaustive`.  Otherwise all single and double changes of
    levels and of up to 64 steps are tried, if they are no more than 600 (100); else single changes, at most 400 (60).
    The rest, and all that a column does that may take any value, is a search.  Of perturbations that move the
    explanation equally far the smallest is reported.  Sums of prices may exceed the radius by rounding, one part in
    10^12.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from evenhand import Closest, worst_case
    >>> X, y = load_iris(return_X_y=True)
    >>> explainer = Closest(cost="l2").fit(LogisticRegression(max_iter=1000).fit(X, y))
    >>> bool((worst_case(explainer, X[:5], 0.1).table["amplification"] <= 1 + 1e-6).all())
    True

    A raw table:

    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> people = pd.DataFrame({"job": ["none", "part", "full", "full"] * 5, "children": [0, 1, 2, 3, 4] * 4})
    >>> encoder = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    >>> model = make_pipeline(encoder, LogisticRegression()).fit(people, people["job"] == "full")
    >>> worst = worst_case(Closest().fit(model, people), people[:1], radius=1.0)
    >>> bool(worst.table["exhaustive"].item())
    True
    """
    check_explainer(explainer)
    if on_flip not in ("swap", "keep", "skip"):
        raise ValueError(f'on_flip must be "swap", "keep" or "skip", got {on_flip!r}.')
    if restarts < 1 or rounds < 0:
        raise ValueError(f"restarts must be >= 1 and rounds >= 0, got {restarts} and {rounds}.")
    view = explainer.view
    people = view.reader.read(X)
    table, index = people.codes, people.index
    whole = _radii(radius, len(table))
    seed = seed_of(random_state)
    original = explainer.explain(X, target, random_state=seed, n_jobs=n_jobs)
    if not view.reader.plain:
        effort = Effort.of(explainer, restarts, rounds)
        worst = worst_in_raw_table(explainer, people, whole, original, on_flip, seed, effort, n_jobs)
        unproven = np.full(len(table), np.nan)
        described = _described(index, original, whole, unproven, worst.distance, worst.flipped)
        described["input_distance"], described["exhaustive"] = worst.size, worst.exhaustive
        return WorstCase(described, worst.perturbed, original, worst.moved)
    rows = np.flatnonzero(original.valid)
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
        limits = getattr(explainer, "limits", None)  # other tools have none
        self.free = np.ones(X.shape[1], dtype=bool) if limits is None else limits.directions != FIXED
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
            return np.asarray(change / frame)
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
    provable = (
        isinstance(explainer, ExactExplainer)
        and explainer.certifiable
        and np.isin(explainer.limits.directions, (FIXED, FREE)).all()
    )
    if provable and len(rows):
        certificates = certify(explainer, X[rows], original.target[rows], n_jobs=n_jobs)
        bound[rows] = certificates.bound(radius[rows], on_flip)
    table = _described(people_of(given), original, radius, bound, distance, flipped)
    table["input_distance"] = np.nan
    if len(rows):
        table.loc[rows, "input_distance"] = explainer.cost(search.best, search.X)
    table["exhaustive"] = False
    return WorstCase(table, perturbed, original, moved)


def _described(
    index: pd.Index,
    original: Explanations,
    radius: FloatArray,
    bound: FloatArray,
    distance: FloatArray,
    flipped: npt.NDArray[np.bool_],
) -> pd.DataFrame:
    """One row per person: what was found, next to what is proven."""
    amplification = np.full(len(radius), np.nan)  # of a radius of 0
    np.divide(distance, radius, out=amplification, where=radius > 0)
    return pd.DataFrame(
        {
            "person": index,
            "target": original.target,
            "status": original.status,
            "radius": radius,
            "distance": distance,
            "bound": bound,
            "amplification": amplification,
            "reached": np.where(np.isfinite(bound) & (bound > 0), distance / np.where(bound > 0, bound, 1.0), np.nan),
            "flipped": flipped,
        }
    )


def _changed_columns(explanations: Explanations) -> list[tuple[Any, ...]]:
    """Names of the columns that each person is told to change; none without an explanation."""
    changes = explanations.changes
    frame = pd.DataFrame(changes).rename(columns="x{}".format) if isinstance(changes, np.ndarray) else changes
    changed = [
        [not pd.isna(value) and value != 0 and told for value in row]
        for row, told in zip(frame.astype(object).to_numpy(), explanations.valid, strict=True)
    ]
    return [tuple(name for name, moves in zip(frame.columns, row, strict=True) if moves) for row in changed]


def _radii(radius: float | npt.ArrayLike, people: int) -> FloatArray:
    """One radius per person."""
    try:
        size = np.asarray(radius, dtype=np.float64)
    except (TypeError, ValueError):
        size = np.full((), np.nan)
    if size.shape not in ((), (people,)) or not (np.isfinite(size) & (size >= 0)).all():
        raise ValueError(
            f"radius must be a finite number >= 0, or one per person ({people}), in units of the explainer's cost; "
            f"got {radius!r}."
        )
    return np.broadcast_to(size, (people,))
