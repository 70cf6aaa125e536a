"""The worst perturbation of people in raw tables: levels, steps and numbers, all people and candidates at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.explaining.explainer import Explainer, Flip
from evenhand.stability.possible import Possible
from evenhand.stability.raw_proposals import ELITES, Known, at_random, variations
from evenhand.status import VALID
from evenhand.types import BoolArray, FloatArray, IntArray

ROWS = 65_536  # that a pipeline with encoders is asked about at a time
SHRINK = 0.7  # of the step after a round without progress
SAME = 1e-9  # a relative difference of distances that counts as none


@dataclass(frozen=True)
class Effort:
    """How much is asked about one person.

    Attributes
    ----------
    every : int
        If no more people than this are possible, all of them are tried.
    pairs : int
        If no more single and double changes than this are possible, all of them are tried.
    singles : int
        Of single changes, which are more than that, so many are tried.
    restarts, rounds : int
        Random perturbations to begin with, and rounds of variations of the best ones.
    """

    every: int
    pairs: int
    singles: int
    restarts: int
    rounds: int

    @classmethod
    def of(cls, explainer: Explainer, restarts: int, rounds: int) -> Effort:
        """For a method that takes long fewer questions; what it is asked comes in fewer and larger batches anyway."""
        if explainer.quick:
            return cls(1000, 600, 400, restarts, rounds)
        return cls(200, 100, 60, restarts, -(-rounds // 4))


class RawSearch:
    """Best perturbation so far of every person.

    Attributes
    ----------
    best, moved_to : arrays of shape (n, d)
        The perturbed people, and what they are told.
    distance, size : arrays of shape (n,)
        How far the explanation moves, and how far the person does.
    tried : array of bool, shape (n,)
        Whether any perturbation was allowed and had an explanation, or none is possible.
    exhaustive : array of bool, shape (n,)
        Whether every possible person was tried.
    """

    def __init__(
        self,
        explainer: Explainer,
        possible: Possible,
        told: FloatArray,
        present: IntArray,
        goal: IntArray,
        on_flip: Flip,
        n_jobs: int | None,
    ) -> None:
        self.explainer, self.possible, self.told = explainer, possible, told
        self.present, self.goal, self.on_flip, self.n_jobs = present, goal, on_flip, n_jobs
        n = len(told)
        self.best, self.moved_to = possible.X.copy(), told.copy()
        self.distance, self.size = np.zeros(n), np.zeros(n)
        self.tried = np.zeros(n, dtype=bool)
        self.exhaustive = np.zeros(n, dtype=bool)
        self._asked: list[set[bytes]] = [{row.tobytes()} for row in possible.X + 0.0]
        self._elite = np.repeat(possible.X[:, None], ELITES, axis=1)
        self._elite_distance = np.full((n, ELITES), -1.0)
        self._elite_size = np.zeros((n, ELITES))
        self._step = np.full(n, 0.5)

    def run(self, streams: list[np.random.Generator], effort: Effort) -> None:
        """Try changes one by one and in pairs, at random and towards labels; then vary what moved explanations most."""
        self._enumerate(streams, effort)
        rows = np.flatnonzero(~self.exhaustive)
        self.tried |= self.exhaustive & np.array([len(asked) == 1 for asked in self._asked])
        if not len(rows):
            return
        possible, own = self.possible, [streams[i] for i in rows]
        batches = [self._toward_labels(rows), at_random(possible, own, rows, effort.restarts)]
        self.ask(np.concatenate([owner for owner, _ in batches]), np.concatenate([people for _, people in batches]))
        for _ in range(effort.rounds):
            before = self.distance.copy()
            change = np.where(possible.number, self.moved_to - self.told, 0.0)
            known = Known(self.best, change, self._elite, self._elite_distance, self._step)
            self.ask(*variations(possible, known, own, rows))
            improved = self.distance > before * (1.0 + 1e-6)
            self._step = np.where(improved, self._step, SHRINK * self._step)

    def ask(self, owner: IntArray, people: FloatArray) -> None:
        """Explain possible people, and keep those whose explanation moved further than that of others."""
        people = people + 0.0  # no negative zeros: the same person has the same bytes
        fresh = self._fresh(owner, people)
        owner, people = owner[fresh], people[fresh]
        if not len(owner):
            return
        view = self.explainer.view
        label = view.decide(people)
        flipped = label != self.present[owner]
        if self.on_flip == "skip":
            owner, people, label = self._unflipped(owner, people, label, flipped)
            flipped = np.zeros(len(owner), dtype=bool)
            if not len(owner):
                return
        goal = np.where(flipped & (self.on_flip == "swap"), self.present[owner], self.goal[owner])
        answers = self.explainer.answer(people, goal, label, n_jobs=self.n_jobs, chunk_size=ROWS)
        usable = np.isin(answers.status, VALID)
        self._keep(owner[usable], people[usable], answers.points[usable])

    def _unflipped(
        self, owner: IntArray, people: FloatArray, label: IntArray, flipped: BoolArray
    ) -> tuple[IntArray, FloatArray, IntArray]:
        """Who keeps the prediction; who does not is tried once more with numbers half as far away."""
        possible, stay = self.possible, ~flipped
        x = possible.X[owner[flipped]]
        half = np.where(possible.number, (x + people[flipped]) / 2.0, people[flipped])
        again = possible.fit(owner[flipped], half, np.zeros(half.shape), np.ones(len(half)), np.zeros(len(half), bool))
        who = owner[flipped]
        fresh = self._fresh(who, again + 0.0)
        who, again = who[fresh], again[fresh] + 0.0
        label_again = self.explainer.view.decide(again)
        kept = label_again == self.present[who]
        return (
            np.concatenate([owner[stay], who[kept]]),
            np.concatenate([people[stay], again[kept]]),
            np.concatenate([label[stay], label_again[kept]]),
        )

    def _fresh(self, owner: IntArray, people: FloatArray) -> IntArray:
        """Positions of people within the radius who were not asked about before."""
        fresh = []
        for row in np.flatnonzero(self.possible.within(owner, people)):
            key, asked = people[row].tobytes(), self._asked[owner[row]]
            if key not in asked:
                asked.add(key)
                fresh.append(row)
        return np.array(fresh, dtype=np.int64)

    def _keep(self, owner: IntArray, people: FloatArray, points: FloatArray) -> None:
        """The best per person: the largest distance between explanations; of equal ones the smallest perturbation."""
        if not len(owner):
            return
        self.tried[owner] = True
        cost, X = self.explainer.cost, self.possible.X
        distance, size = cost(points, self.told[owner]), cost(people, X[owner])
        order = np.lexsort((size, -distance, owner))
        first = order[np.unique(owner[order], return_index=True)[1]]
        room = SAME * distance[first][np.searchsorted(owner[first], owner)]
        nearly = distance >= distance[first][np.searchsorted(owner[first], owner)] - room
        order = np.lexsort((-distance, size, ~nearly, owner))
        for row in order[np.unique(owner[order], return_index=True)[1]]:
            i = owner[row]
            further = distance[row] > self.distance[i] * (1.0 + SAME)
            nearer = distance[row] >= self.distance[i] * (1.0 - SAME) and size[row] < self.size[i]
            if further or nearer:
                self.best[i], self.moved_to[i] = people[row], points[row]
                self.distance[i], self.size[i] = distance[row], size[row]
        self._keep_elites(owner, people, distance, size)

    def _keep_elites(self, owner: IntArray, people: FloatArray, distance: FloatArray, size: FloatArray) -> None:
        who = np.unique(owner)
        everybody = np.concatenate([np.repeat(who, ELITES), owner])
        codes = np.concatenate([self._elite[who].reshape(-1, people.shape[1]), people])
        moved = np.concatenate([self._elite_distance[who].ravel(), distance])
        sizes = np.concatenate([self._elite_size[who].ravel(), size])
        order = np.lexsort((sizes, -moved, everybody))
        # Of people whose explanations moved equally far the nearest stands for all: the others are often much the same.
        alike = (np.diff(everybody[order]) == 0) & (np.diff(moved[order]) >= -SAME * np.abs(moved[order][1:]))
        moved[order[1:][alike]] = -1.0
        order = np.lexsort((sizes, -moved, everybody))
        start = np.unique(everybody[order], return_index=True)[1]
        chosen = order[start[:, None] + np.arange(ELITES)]
        self._elite[who], self._elite_distance[who], self._elite_size[who] = codes[chosen], moved[chosen], sizes[chosen]

    def _enumerate(self, streams: list[np.random.Generator], effort: Effort) -> None:
        """Everybody possible if they are few; otherwise single and double changes, or as many as are affordable."""
        possible = self.possible
        d = possible.X.shape[1]
        owners, batches = [np.zeros(0, dtype=np.int64)], [np.zeros((0, d))]
        for i in range(len(possible.X)):
            people = possible.combinations(i, d, effort.every)
            if people is not None and possible.countable(i):
                self.exhaustive[i] = True
            elif people is None or len(people) > effort.pairs:
                people = possible.combinations(i, 2, effort.pairs)
            if people is None:
                people = possible.combinations(i, 1, 10**9)
                assert people is not None
                if len(people) > effort.singles:
                    people = people[np.sort(streams[i].permutation(len(people))[: effort.singles])]
            if not self.exhaustive[i]:
                people = np.concatenate([people, possible.probes(i)])
            batches.append(people)
            owners.append(np.full(len(people), i, dtype=np.int64))
        self.ask(np.concatenate(owners), np.concatenate(batches))

    def _toward_labels(self, rows: IntArray) -> tuple[IntArray, FloatArray]:
        """Towards what people are told and away from it, and towards other labels, where the decision turns."""
        X, told, number = self.possible.X[rows], self.told[rows], self.possible.number
        wishes = [told, np.where(number, 2.0 * X - told, X)]
        for k in range(len(self.explainer.view.classes)) if self.explainer.quick else ():
            goal = np.full(len(rows), k)
            point = self.explainer.answer(X, goal, self.present[rows], n_jobs=self.n_jobs, chunk_size=ROWS).points
            other = ~np.isnan(point).any(axis=1) & (self.goal[rows] != k) & (self.present[rows] != k)
            point = np.where(other[:, None], point, X)
            wishes += [point, np.where(number, X + point - told, point)]
        owner, batches = np.tile(rows, 2 * len(wishes)), []
        for wish in wishes:
            cheapest_first = np.array([self._alone(X, wish, j) for j in range(X.shape[1])]).T
            batches += [self._fitted(rows, wish, cheapest_first, full=full) for full in (False, True)]
        return owner, np.concatenate(batches)

    def _alone(self, X: FloatArray, wish: FloatArray, j: int) -> FloatArray:
        """What one column's change costs by itself."""
        moved = X.copy()
        moved[:, j] = wish[:, j]
        return np.asarray(self.explainer.cost(moved, X))

    def _fitted(self, rows: IntArray, wish: FloatArray, rank: FloatArray, *, full: bool) -> FloatArray:
        return self.possible.fit(rows, wish, rank, np.ones(len(rows)), np.full(len(rows), full))
