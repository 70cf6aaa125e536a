"""Counterfactuals by search, of any model on any table: from real people with the target towards a person.

Needs nothing but predictions, many at a time: a forest answers a thousand rows about as fast as one.  Every point that
is tried is one that the person may become, whole numbers and levels included, so nothing has to be rounded afterwards.
All decisions about a person depend on that person alone, and nothing is random.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from evenhand.table.limits import Limits
from evenhand.types import BoolArray, FloatArray, IntArray

PEOPLE = 256  # that are searched for at a time
RANKS = (0, 6, 30, 150)  # nearest people with the target: the first six, and more for those who can use none of them
QUANTILES = np.linspace(0.05, 0.95, 9)  # of the people with the target: values of a number that are tried by themselves
PARTS = 16  # into which a number's way back is cut, all of which are asked about at once
COARSE, FINE = 3, 10  # how often a part is cut again
ROUNDS = 4  # of exchanging columns
TRIED = 400  # exchanges per person and round
BETTER = 1e-9  # a relative improvement that counts
CELLS = 2_000_000  # numbers in memory while neighbours are looked for


@dataclass(frozen=True, eq=False)
class Search:
    """Looks for cheap points of one label.

    Attributes
    ----------
    valid : callable
        Which rows the model gives the label.
    price : callable
        ``price(people, points)``: what it costs to change people into points.
    limits : Limits
        What may change.
    number : array of bool, shape (d,)
        Which columns are numbers, and not levels.
    known : array of shape (n, d)
        People whom the model gives the label.
    values : list of d arrays
        Values of each column that are worth trying.
    """

    valid: Callable[[FloatArray], BoolArray]
    price: Callable[[FloatArray, FloatArray], FloatArray]
    limits: Limits
    number: BoolArray
    known: FloatArray
    values: list[FloatArray]

    def best(self, X: FloatArray) -> FloatArray:
        """For each person the cheapest point that was found; NaN where none was."""
        found = np.full(X.shape, np.nan)
        for first in range(0, len(X), PEOPLE):
            part = slice(first, first + PEOPLE)
            found[part] = self._block(X[part])
        return found

    def _block(self, X: FloatArray) -> FloatArray:
        points, owner = self._proposed(X)
        points = self._reduced(X[owner], points)
        points = self._tightened(X[owner], points, COARSE)
        best = _cheapest(X, points, owner, self.price)
        active = np.arange(len(X))
        for _ in range(ROUNDS):
            better, who = self._exchanged(X[active], best[active])
            active = active[who]
            if not len(active):
                break
            better = self._tightened(X[active], self._reduced(X[active], better), COARSE)
            best[active] = better
        there = np.flatnonzero(~np.isnan(best[:, 0]))
        best[there] = self._tightened(X[there], self._reduced(X[there], best[there]), FINE)
        return best

    def _good(self, points: FloatArray, people: FloatArray, asked: BoolArray | None = None) -> BoolArray:
        """Which points people may become and the model gives the label; only those `asked` about."""
        good = self.limits.admits(points, people)
        good = good if asked is None else good & asked
        rows = np.flatnonzero(good)
        if len(rows):
            good[rows] = self.valid(points[rows])
        return good

    def _proposed(self, X: FloatArray) -> tuple[FloatArray, IntArray]:
        """Points to begin from, and whose they are: the nearest known people, as far as a person may become them."""
        points, owner = [np.zeros((0, X.shape[1]))], [np.zeros(0, dtype=np.int64)]
        if len(self.known):
            near, nearest_admitted = self._neighbours(X)
            lacking = np.arange(len(X))
            for begin, end in pairwise(RANKS):
                ranks = near[lacking, begin:end]
                tried = self.limits.snap(self.known[ranks], X[lacking, None])
                people = np.repeat(lacking, ranks.shape[1])
                flat = tried.reshape(-1, X.shape[1])
                good = self._good(flat, X[people])
                points.append(flat[good])
                owner.append(people[good])
                lacking = np.setdiff1d(lacking, people[good])
            # Whoever may become a real person as they are never gets a worse answer than the nearest of them.
            there = np.flatnonzero(nearest_admitted >= 0)
            points.append(self.known[nearest_admitted[there]])
            owner.append(there)
        found, people = np.concatenate(points), np.concatenate(owner)
        lacking = np.setdiff1d(np.arange(len(X)), people)
        if len(lacking):  # nobody's way leads there: a single change may
            singles, who = self._singles(X[lacking])
            good = self._good(singles, X[lacking[who]])
            found, people = np.vstack([found, singles[good]]), np.concatenate([people, lacking[who[good]]])
        return found, people

    def _neighbours(self, X: FloatArray) -> tuple[IntArray, IntArray]:
        """Known people by their cost once they are put into what a person may become; and the nearest who already are.

        -1 where no known person can be reached as they are.
        """
        count = min(RANKS[-1], len(self.known))
        near, admitted = np.empty((len(X), count), dtype=np.int64), np.full(len(X), -1)
        step = max(1, CELLS // self.known.size)
        for first in range(0, len(X), step):
            people = np.repeat(X[first : first + step], len(self.known), axis=0)
            known = np.tile(self.known, (len(people) // len(self.known), 1))
            snapped = self.limits.snap(known, people)
            cost = self.price(people, snapped).reshape(-1, len(self.known))
            order = np.argsort(cost, axis=1, kind="stable")
            near[first : first + step] = order[:, :count]
            reached = self.limits.admits(known, people).reshape(cost.shape)
            own = np.where(reached, cost, np.inf)
            least = own.argmin(axis=1)
            admitted[first : first + step] = np.where(np.isfinite(own[np.arange(len(own)), least]), least, -1)
        return near, admitted

    def _singles(self, X: FloatArray) -> tuple[FloatArray, IntArray]:
        """Every person with one column changed to each value worth trying, and whose they are."""
        rows = sum(len(values) for values in self.values)
        points = np.repeat(X, rows, axis=0)
        at = 0
        for j, values in enumerate(self.values):
            for value in values:
                points[at::rows, j] = value
                at += 1
        owner = np.repeat(np.arange(len(X)), rows)
        points = self.limits.snap(points, X[owner])
        changed = (points != X[owner]).any(axis=1)
        return points[changed], owner[changed]

    def _dearest(self, X: FloatArray, points: FloatArray, usable: BoolArray) -> tuple[IntArray, IntArray]:
        """Columns by what their change costs, the dearest first, and how many of the usable ones change."""
        alone = np.full(points.shape, -1.0)
        for j in np.flatnonzero(usable):
            moved = X.copy()
            moved[:, j] = points[:, j]
            alone[:, j] = np.where(points[:, j] != X[:, j], self.price(X, moved), -1.0)
        return np.argsort(-alone, axis=1, kind="stable"), (alone >= 0).sum(axis=1)

    def _reduced(self, X: FloatArray, points: FloatArray) -> FloatArray:
        """Take back whole columns, the dearest first, as long as the model keeps its answer.

        All beginnings of a list of columns are asked about at once; the column behind the longest that works has to
        stay, and the rest of the list follows.
        """
        points = points.copy()
        order, count = self._dearest(X, points, np.ones(X.shape[1], dtype=bool))
        place = np.zeros(len(points), dtype=np.int64)  # in its list, up to which a point is settled
        while (active := np.flatnonzero(place < count)).size:
            length = (count - place)[active]
            owner = np.repeat(active, length)
            taken = np.arange(len(owner)) - np.repeat(np.cumsum(length) - length, length)  # 0, 1, ... for each point
            tried = points[owner]
            for back in range(int(length.max())):  # the columns at place, place + 1, ..., place + taken
                rows = np.flatnonzero(taken >= back)
                column = order[owner[rows], place[owner[rows]] + back]
                tried[rows, column] = X[owner[rows], column]
            good = self._good(tried, X[owner])
            longest = np.zeros(len(points), dtype=np.int64)
            np.maximum.at(longest, owner[good], taken[good] + 1)
            chosen = np.flatnonzero(good & (taken + 1 == longest[owner]))
            points[owner[chosen]] = tried[chosen]
            place[active] += longest[active] + 1
        return points

    def _tightened(self, X: FloatArray, points: FloatArray, cuts: int) -> FloatArray:
        """Bring numbers as near to the person as the model keeps its answer, the dearest column first."""
        points = points.copy()
        order, count = self._dearest(X, points, self.number)
        for turn in range(int(count.max(initial=0))):
            rows = np.flatnonzero(count > turn)
            column = order[rows, turn]
            own, goal = X[rows, column], points[rows, column]
            near, far = np.zeros(len(rows)), np.ones(len(rows))
            for _ in range(cuts):
                shares = near[:, None] + (far - near)[:, None] * np.arange(1, PARTS) / PARTS
                tried = np.repeat(points[rows][:, None], PARTS - 1, axis=1)
                tried[np.arange(len(rows))[:, None], np.arange(PARTS - 1), column[:, None]] = (
                    own[:, None] + shares * (goal - own)[:, None]
                )
                tried = self.limits.snap(tried, X[rows][:, None])
                value = np.take_along_axis(tried, column[:, None, None], axis=2)[:, :, 0]
                # Between two neighbouring steps there is nothing left to try.
                new = (value != points[rows, column][:, None]) & (value != own[:, None])
                new[:, 1:] &= value[:, 1:] != value[:, :-1]
                if not new.any():
                    break
                flat = tried.reshape(-1, X.shape[1])
                good = self._good(flat, np.repeat(X[rows], PARTS - 1, axis=0), new.ravel()).reshape(new.shape)
                first, any_good = good.argmax(axis=1), good.any(axis=1)
                points[rows[any_good]] = tried[any_good, first[any_good]]
                at = np.arange(len(rows))
                before = np.where(first > 0, shares[at, first - 1], near)
                near, far = np.where(any_good, before, shares[:, -1]), np.where(any_good, shares[at, first], far)
        return points

    def _exchanged(self, X: FloatArray, best: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Cheaper points with one column set to another value and some of the changed ones taken back.

        Returns those of the people who have one, and who they are.
        """
        now = np.where(np.isnan(best[:, 0]), np.inf, self.price(X, np.where(np.isnan(best), X, best)))
        points, owner = [np.zeros((0, X.shape[1]))], [np.zeros(0, dtype=np.int64)]
        for i in np.flatnonzero(np.isfinite(now)):
            changed = np.flatnonzero(best[i] != X[i])
            bases = np.repeat(best[i][None], len(changed) + 1, axis=0)
            bases[np.arange(len(changed)), changed] = X[i, changed]
            bases[-1] = X[i]  # a single change may do instead of all
            singles, _ = self._singles(X[i][None])
            column = (singles != X[i]).argmax(axis=1)
            tried = np.repeat(bases, len(singles), axis=0)
            value = np.tile(singles[np.arange(len(singles)), column], len(bases))
            tried[np.arange(len(tried)), np.tile(column, len(bases))] = value
            price = self.price(np.broadcast_to(X[i], tried.shape), tried)
            cheaper = np.flatnonzero(price < now[i] * (1 - BETTER))
            # The dearest of the cheaper ones are the likeliest to have the label.
            kept = cheaper[np.argsort(-price[cheaper], kind="stable")[:TRIED]]
            points.append(tried[kept])
            owner.append(np.full(len(kept), i))
        tried, people = np.concatenate(points), np.concatenate(owner)
        good = self._good(tried, X[people])
        found = _cheapest(X, tried[good], people[good], self.price)
        there = ~np.isnan(found[:, 0])
        return found[there], there


def worth_trying(known: FloatArray, number: BoolArray, levels: list[int]) -> list[FloatArray]:
    """Values of each column: all levels, and of numbers those that people with the label have."""
    tried = []
    for j, is_number in enumerate(number):
        if not len(known):
            tried.append(np.zeros(0))
        elif not is_number:
            tried.append(np.arange(levels[j], dtype=np.float64))
        else:
            tried.append(np.unique(np.quantile(known[:, j], QUANTILES, method="nearest")))
    return tried


def _cheapest(
    X: FloatArray, points: FloatArray, owner: IntArray, price: Callable[[FloatArray, FloatArray], FloatArray]
) -> FloatArray:
    """For each person the cheapest of its points, of equal ones the first; NaN for those without one."""
    found = np.full(X.shape, np.nan)
    if len(points):
        order = np.argsort(
            -price(X[owner], points)[::-1], kind="stable"
        )  # the cheapest, and the first, is entered last
        found[owner[::-1][order]] = points[::-1][order]
    return found
