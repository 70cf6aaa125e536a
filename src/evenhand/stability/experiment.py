"""Perturb, explain again, measure: the draws behind :func:`instability`."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.costs import Distance
from evenhand.explaining.answers import Answers
from evenhand.explaining.explainer import LARGEST, Explainer, Flip
from evenhand.explaining.targets import read_targets
from evenhand.parallel import CHUNK, Progress
from evenhand.perturbations import Perturbation, bound, learned, perturbed
from evenhand.randomness import Streams, identities, seed_of
from evenhand.stability.draws import MEASURES, Draws, aggregated, no_draws, overlap_of
from evenhand.status import VALID, Status, statuses
from evenhand.table.people import below
from evenhand.types import FloatArray

__all__ = ["BLOCK", "MEASURES", "Experiment", "Variations"]

BLOCK = 128  # draws that share a stream of random numbers
IN_CACHE = 65_536  # numbers to measure at a time


class Variations(NamedTuple):
    """Perturbed people and what they are told: arrays of shape (people, draws), of rows where it says so."""

    people: FloatArray  # (people, draws, features)
    points: FloatArray  # (people, draws, features), NaN without an explanation
    flipped: npt.NDArray[np.bool_]
    target: npt.NDArray[np.int64]
    cost: FloatArray
    status: npt.NDArray[np.str_]


class _Group(NamedTuple):
    """Some people as they are: what the model says, and what they are told."""

    rows: slice
    present: npt.NDArray[np.int64]
    base: Answers
    floor: FloatArray  # how far a second run differs
    valid: npt.NDArray[np.bool_]

    def part(self, start: int, stop: int) -> _Group:
        """Some of these people."""
        few = slice(start, min(stop, len(self.valid)))
        rows = slice(self.rows.start + few.start, self.rows.start + few.stop)
        points, cost, gap, status, label, floor = self.base
        base = Answers(points[few], cost[few], gap[few], status[few], label[few], floor[few])
        return _Group(rows, self.present[few], base, self.floor[few], self.valid[few])


class Experiment:
    """People, what they aim at, and their streams of random numbers: everything that does not depend on a draw."""

    def __init__(
        self,
        explainer: Explainer,
        X: Any,
        perturbation: Perturbation,
        target: Any,
        distance: Distance,
        on_flip: Flip,
        random_state: int | np.random.Generator | None,
        n_jobs: int | None,
        reference: Any,
    ) -> None:
        view = explainer.view
        self.explainer, self.on_flip, self.n_jobs = explainer, on_flip, n_jobs
        self.distance = _checked(distance)
        people = view.reader.read(X)
        self.X, self.index = people.codes, people.index
        self.seed = seed_of(random_state)
        self.streams, self.who = Streams(self.seed), identities(self.index)
        perturbation = bound(perturbation, view.schema, view.feature_names)
        known = self.X if reference is None else view.read(reference)
        known = known[np.isfinite(known).all(axis=1)]
        if reference is None and len(known) == 1 and hasattr(perturbation, "fit") and len(self.X):
            fitted = learned(perturbation, known)
            if fitted is not perturbation:
                raise ValueError(
                    f"{type(perturbation).__name__} has to learn from data, and one person has no spread and no mean: "
                    "pass the training data as reference=..., or fit it before."
                )
        self.perturbation = learned(perturbation, known) if len(known) else perturbation
        self.codes = read_targets(target, view, self.index, self.seed)
        self._known: dict[tuple[int, int], _Group] = {}

    def perturbed_by(self, perturbation: Perturbation) -> Experiment:
        """The same people and explanations under another perturbation, which knows what it has to know."""
        other = copy.copy(self)
        other.perturbation = perturbation
        return other

    def people(self) -> _Group:
        """All people as they are."""
        return self._group(slice(0, len(self.X)))

    def measure(
        self, draws: int, keep: bool, chunk_size: int, progress: Progress | None
    ) -> tuple[pd.DataFrame, pd.DataFrame | None]:
        """Perturb everybody `draws` times: one row per person, and one per draw if they are to be kept."""
        n = len(self.X)
        nobody, nothing = self._group(slice(0, 0)), no_draws(0, draws)
        tables, people = [self._table(nobody, nothing)], [self._people(nobody, nothing)]
        step = max(1, chunk_size // draws)
        for first in range(0, n, chunk_size):
            whole = self._group(slice(first, min(first + chunk_size, n)))
            for start in range(0, len(whole.valid), step):
                group = whole.part(start, start + step)
                found = self._draws(group, draws)
                if keep:
                    tables.append(self._table(group, found))
                people.append(self._people(group, found))
                if progress is not None:
                    progress(group.rows.stop * draws, n * draws)
        return _stacked(people), _stacked(tables) if keep else None

    def _group(self, rows: slice) -> _Group:
        """Explain some people, twice; a table that fits into one chunk is explained once for all perturbations."""
        if (rows.start, rows.stop) in self._known:
            return self._known[rows.start, rows.stop]
        view, X, codes = self.explainer.view, self.X[rows], self.codes[rows]
        usable = below(X, LARGEST)
        present = np.full(len(X), -1)
        if usable.any():
            present[usable] = view.decide(X[usable])
        base = self.explainer.answer(X, codes, present, n_jobs=self.n_jobs)
        valid = np.isin(base.status, VALID)
        floor = np.full(len(X), np.nan)
        some = np.flatnonzero(valid)[::-1]  # last person first: whatever depends on the run or on its order shows
        again = self.explainer.answer(X[some], base.label[some], present[some], n_jobs=self.n_jobs)
        both = np.isin(again.status, VALID)
        if both.any():
            floor[some[both]] = self.distance(base.points[some[both]], again.points[both])
        group = _Group(rows, present, base, floor, valid)
        if len(self.X) <= CHUNK:
            self._known[rows.start, rows.stop] = group
        return group

    def _draws(self, group: _Group, draws: int) -> Draws:
        """Perturb some people, explain them again, and measure."""
        base = group.base
        found = no_draws(len(group.valid), draws)
        found.status[:] = base.status[:, None]
        found.target[:] = base.label[:, None]
        some = np.flatnonzero(group.valid)
        if not len(some):
            return found
        X = self.X[group.rows]
        again = self._again(group, some, draws)
        found.flipped[some], found.target[some], found.status[some] = again.flipped, again.target, again.status
        found.cost_gap[some] = np.abs(again.cost - base.cost[some][:, None])
        step = max(1, IN_CACHE // (draws * X.shape[1]))
        for start in range(0, len(some), step):
            part = slice(start, start + step)
            who = some[part]
            self._measure(found, who, X[who], base.points[who], again.people[part], again.points[part])
        return found

    def variations(self, draws: int) -> tuple[Answers, npt.NDArray[np.intp], Variations]:
        """All people as they are, who of them has an explanation, and those perturbed as in :meth:`measure`."""
        group = self.people()
        some = np.flatnonzero(group.valid)
        return group.base, some, self._again(group, some, draws)

    def _again(self, group: _Group, some: npt.NDArray[np.intp], draws: int) -> Variations:
        """Perturb some people of a group, and explain them again."""
        view, base = self.explainer.view, group.base
        moved = np.empty((len(some), draws, self.X.shape[1]))
        for i, person in enumerate(some):
            self._perturb(group.rows.start + person, moved[i])
        flat = moved.reshape(-1, moved.shape[2])
        label = view.decide(flat)
        own = np.repeat(group.present[some], draws)
        flipped = label != own
        goal = np.repeat(base.label[some], draws)
        if self.on_flip == "swap":
            goal = np.where(flipped, own, goal)
        asked = ~flipped if self.on_flip == "skip" else np.ones(len(flat), dtype=bool)
        if asked.all():
            points, cost, _, status, _, _ = self.explainer.answer(flat, goal, label, n_jobs=self.n_jobs)
        else:
            status = statuses(len(flat), Status.SKIPPED)
            points, cost = np.full(flat.shape, np.nan), np.full(len(flat), np.nan)
            answers = self.explainer.answer(flat[asked], goal[asked], label[asked], n_jobs=self.n_jobs)
            points[asked], cost[asked], status[asked] = answers.points, answers.cost, answers.status
        shape = (len(some), draws)
        return Variations(
            moved,
            points.reshape(moved.shape),
            flipped.reshape(shape),
            goal.reshape(shape),
            cost.reshape(shape),
            status.reshape(shape),
        )

    def _measure(
        self,
        found: Draws,
        some: npt.NDArray[np.intp],
        x0: FloatArray,
        cf0: FloatArray,
        moved: FloatArray,
        points: FloatArray,
    ) -> None:
        """Distances of a few people's draws, arrays of shape (people, draws, features)."""
        shape, dim = moved.shape[:2], moved.shape[2]

        def between(a: FloatArray, b: FloatArray) -> FloatArray:
            whole = np.ascontiguousarray(np.broadcast_to(a[:, None], b.shape)).reshape(-1, dim)
            return self.distance(whole, b.reshape(-1, dim)).reshape(shape)

        view = self.explainer.view
        (told0, changed0), (told, changed) = view.change(x0, cf0), view.change(moved, points)
        valid = ~np.isnan(points[:, :, 0])
        if not valid.all():  # a user's own distance need not know NaN
            points, told = np.where(valid[:, :, None], points, 0.0), np.where(valid[:, :, None], told, 0.0)
        inputs = between(x0, moved)
        distance = np.where(valid, between(cf0, points), np.nan)
        found.input_distance[some], found.distance[some] = inputs, distance
        found.change_distance[some] = np.where(valid, between(told0, told), np.nan)
        overlap = overlap_of(changed0[:, None], changed)
        found.jaccard[some] = np.where(valid, overlap, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 is undefined and stays NaN
            found.amplification[some] = distance / inputs

    def _perturb(self, person: int, into: FloatArray) -> None:
        """All draws of one person, from streams that are its own."""
        for block, start in enumerate(range(0, len(into), BLOCK)):
            part = into[start : start + BLOCK]
            part[:] = self.X[person]
            part[:] = perturbed(self.perturbation, part, self.streams.of(self.who[person], block))

    def _table(self, group: _Group, found: Draws) -> pd.DataFrame:
        people, draws = found.flipped.shape
        columns: dict[str, Any] = {
            "person": self.index[group.rows].repeat(draws),
            "draw": np.tile(np.arange(draws), people),
            "target": self.explainer.labels(found.target.ravel()),
            "flipped": found.flipped.ravel(),
            "status": found.status.ravel(),
        }
        for name in ("input_distance", "distance", "change_distance", "cost_gap", "jaccard", "amplification"):
            columns[name] = getattr(found, name).ravel()
        return pd.DataFrame(columns)

    def _people(self, group: _Group, found: Draws) -> pd.DataFrame:
        columns: dict[str, Any] = {
            "person": self.index[group.rows],
            "target": self.explainer.labels(group.base.label),
            "status": group.base.status,
            "cost": group.base.cost,
            "floor": group.floor,
            "draws": found.flipped.shape[1],
        }
        return pd.DataFrame(columns | aggregated(found))


def _checked(distance: Distance) -> Distance:
    """A distance, which may be a user's own function, with a check of what it returns."""

    def checked(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
        found = np.asarray(distance(a, b), dtype=np.float64)
        if found.shape != (len(np.asarray(a)),):
            raise ValueError(
                f"distance returned shape {found.shape} for {len(np.asarray(a))} rows: one number per row."
            )
        return found

    return checked


def _stacked(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """The parts as one table; the first, which is empty, only says what the columns are."""
    return pd.concat(parts[1:], ignore_index=True) if len(parts) > 1 else parts[0]
