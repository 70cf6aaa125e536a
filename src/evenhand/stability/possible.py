"""Who a person of a raw table could have been: possible people within a radius, as rows of codes.

A possible person has a level that the model knows in every column of levels, whole steps away from the person's own
value in every column of steps, numbers inside of their column's bounds, and nothing known that was missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.costs import Distance
from evenhand.types import BoolArray, FloatArray, IntArray

ROUNDING = 1e-12  # relative: sums of prices may exceed the radius by so much
LONG = 64  # a column with more steps within the radius is probed like one that may take any value
PROBES = (1.0, 0.5, 0.25)  # shares of the radius that are tried of such a column by itself
NEARLY = 1e-9  # of a step, by which a bound may be missed


@dataclass(frozen=True, eq=False)
class Possible:
    """Possible people within a radius of some people.

    Attributes
    ----------
    X : array of shape (n, d)
        The people.
    radius : array of shape (n,)
    cost : callable
        Distance of rows of codes.
    number : array of bool, shape (d,)
        Which columns are numbers, and not levels.
    step, weight, lower, upper : arrays of shape (d,)
        Of numbers; a step of 0 leaves any value.
    avoid : array of shape (d,)
        The code that the model is shown as missing, which nobody else may have; NaN where there is none.
    narrow : mapping from position to type
        Columns whose table has room for fewer digits.
    free : array of bool, shape (n, d)
        Which columns of each person may differ.
    price : mapping from position to array of shape (n, n_levels)
        How far each person would be from itself with another level; infinite where that is no possible person.
    """

    X: FloatArray
    radius: FloatArray
    cost: Distance
    number: BoolArray
    step: FloatArray
    weight: FloatArray
    lower: FloatArray
    upper: FloatArray
    avoid: FloatArray
    narrow: Mapping[int, Any]
    free: BoolArray
    price: Mapping[int, FloatArray]

    @property
    def limit(self) -> FloatArray:
        """The radius, with room for the rounding of sums."""
        return self.radius * (1.0 + ROUNDING)

    def within(self, owner: IntArray, people: FloatArray) -> BoolArray:
        """Which people are within the radius of the person that they belong to."""
        inside: BoolArray = self.cost(people, self.X[owner]) <= self.limit[owner]
        return inside

    def options(self, i: int, j: int) -> tuple[FloatArray, FloatArray] | None:
        """All other values that a column of a person may have within the radius, and their prices; None if too many."""
        if not self.free[i, j]:
            return np.zeros(0), np.zeros(0)
        if not self.number[j]:
            near = self.price[j][i] <= self.limit[i]
            near[int(self.X[i, j])] = False
            return np.flatnonzero(near).astype(np.float64), self.price[j][i][near]
        unit = self.weight[j] * self.step[j]
        if self.step[j] == 0 or self.limit[i] > unit * LONG / 2:
            return None
        most = int(self.limit[i] / unit + NEARLY)
        values, there = self._stepped(i, j, np.concatenate([np.arange(-most, 0), np.arange(1, most + 1)]))
        prices = self.weight[j] * np.abs(values - self.X[i, j])
        there &= prices <= self.limit[i]
        return values[there], prices[there]

    def _stepped(self, i: int, j: int, counts: IntArray) -> tuple[FloatArray, BoolArray]:
        """Values so many steps away, and which of them the column can have."""
        values = self.X[i, j] + counts * self.step[j]
        room = NEARLY * self.step[j]
        there = (values >= self.lower[j] - room) & (values <= self.upper[j] + room)
        values = np.clip(values, self.lower[j], self.upper[j])  # three times 0.1 is more than 0.3
        return self._rounded(j, values, self.X[i, j]), there & (values != self.avoid[j])

    def probes(self, i: int) -> FloatArray:
        """One column of a person changed at a time, where it has too many values to try them all."""
        rows = []
        for j in np.flatnonzero(self.free[i] & self.number):
            if self.options(i, int(j)) is not None:
                continue
            x = self.X[i, j]
            amounts = np.outer((1.0, -1.0), PROBES).ravel() * (self.radius[i] * (1.0 - ROUNDING) / self.weight[j])
            values = np.clip(x + amounts, self.lower[j], self.upper[j])
            if self.step[j] > 0:
                values, there = self._stepped(
                    i, int(j), np.trunc((values - x) / self.step[j] + NEARLY).astype(np.int64)
                )
                values = values[there]
            values = np.unique(self._rounded(int(j), values, x))
            for value in values[(values != x) & (values != self.avoid[j])]:
                row = self.X[i].copy()
                row[j] = value
                rows.append(row)
        return np.array(rows).reshape(-1, self.X.shape[1])

    def combinations(self, i: int, most: int, cap: int) -> FloatArray | None:
        """All people that differ from a person in at most so many columns of :meth:`options`; None if over the cap."""
        rows, spent, changed = self.X[i][None], np.zeros(1), np.zeros(1, dtype=np.int64)
        for j in range(self.X.shape[1]):
            choice = self.options(i, j)
            if choice is None or not len(choice[0]):
                continue
            values, prices = choice
            total = spent[:, None] + prices
            before, option = np.nonzero((total <= self.limit[i] * (1.0 + NEARLY)) & (changed[:, None] < most))
            if len(rows) + len(before) > cap + 1:
                return None
            more = rows[before]
            more[:, j] = values[option]
            rows, spent = np.vstack([rows, more]), np.concatenate([spent, total[before, option]])
            changed = np.concatenate([changed, changed[before] + 1])
        others: FloatArray = rows[1:]
        return others

    def countable(self, i: int) -> bool:
        """Whether :meth:`options` knows every value of every column."""
        return all(self.options(i, j) is not None for j in range(self.X.shape[1]))

    def fit(
        self, owner: IntArray, wish: FloatArray, rank: FloatArray, share: FloatArray, full: BoolArray
    ) -> FloatArray:
        """The possible people that come nearest to what is wished for, within a share of the radius.

        Levels first, those with the lowest `rank` before others, while the radius lasts; numbers get the rest in
        proportion to what was wished, more than that where it shall be used up in `full`.
        """
        x = self.X[owner]
        people = x.copy()
        rest = self.radius[owner] * share * (1.0 - ROUNDING)
        rest = np.where(share >= 1.0, self.radius[owner], rest)
        order = np.argsort(rank, axis=1, kind="stable")
        free = self.free[owner]
        price = np.full(x.shape, np.inf)
        for j, prices in self.price.items():
            level = np.clip(np.nan_to_num(wish[:, j]), 0, prices.shape[1] - 1).astype(np.intp)
            price[:, j] = np.where(free[:, j] & (level != x[:, j]), prices[owner, level], np.inf)
        line = np.arange(len(x))
        for column in order.T:
            taken = (price[line, column] <= rest * (1.0 + ROUNDING)) & ~self.number[column]
            people[line[taken], column[taken]] = np.rint(wish[line[taken], column[taken]])
            rest = np.maximum(rest - np.where(taken, np.where(taken, price[line, column], 0.0), 0.0), 0.0)
        self._fit_numbers(x, people, wish, free, rest, order, full)
        return people

    def _fit_numbers(
        self,
        x: FloatArray,
        people: FloatArray,
        wish: FloatArray,
        free: BoolArray,
        rest: FloatArray,
        order: IntArray,
        full: BoolArray,
    ) -> None:
        """Numbers of people, in place; a number out of its bounds stays as it is."""
        inside = free & self.number & (x >= self.lower) & (x <= self.upper)
        want = np.where(inside, np.nan_to_num(wish) - x, 0.0)
        size = (self.weight * np.abs(want)).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.where(size > 0, rest * (1.0 - ROUNDING) / size, 0.0)
        scale = np.where(full, scale, np.minimum(scale, 1.0))
        amount = np.clip(x + want * scale[:, None], self.lower, self.upper) - x
        stepped = self.number & (self.step > 0)
        unit = np.where(stepped, self.step, 1.0)
        count = np.trunc(amount / unit + np.sign(amount) * NEARLY)
        rest = rest - (self.weight * np.abs(np.where(stepped, count * unit, amount))).sum(axis=1)
        for column in order.T if stepped.any() else ():  # what is left over goes to whole steps, in their order
            line = np.flatnonzero(stepped[column] & (want[np.arange(len(x)), column] != 0))
            j = column[line]
            way = np.sign(want[line, j])
            end = np.where(way > 0, self.upper[j], self.lower[j])
            room = np.floor(np.abs(end - x[line, j]) / unit[j] + NEARLY) - np.abs(count[line, j])
            wished = np.where(full[line], np.inf, np.abs(np.rint(want[line, j] / unit[j])) - np.abs(count[line, j]))
            more = np.floor(np.maximum(rest[line], 0.0) / (self.weight[j] * unit[j]) * (1.0 + ROUNDING))
            more = np.maximum(np.minimum(np.minimum(more, room), wished), 0.0)
            count[line, j] += way * more
            rest[line] -= more * self.weight[j] * unit[j]
        value = np.clip(x + np.where(stepped, count * unit, amount), self.lower, self.upper)
        for j in np.flatnonzero(self.number):
            rounded = self._rounded(int(j), value[:, j], x[:, j])
            moves = inside[:, j] & (want[:, j] != 0) & (rounded != self.avoid[j])
            people[:, j] = np.where(moves, rounded, x[:, j])

    def _rounded(self, j: int, values: FloatArray, x: Any) -> FloatArray:
        """Values that the given table has room for, none of them farther away than before."""
        kind = self.narrow.get(j)
        if kind is None:
            return values
        short = values.astype(kind)
        short = np.where(np.abs(short - x) > np.abs(values - x), np.nextafter(short, np.asarray(x, dtype=kind)), short)
        return short.astype(np.float64)
