"""Answers to a table of people, as numbers, and where they are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.status import Status, statuses
from evenhand.types import FloatArray

BLOCK = 2**19  # bytes of people: a few tables of that size stay in the cache of one core


class Answers(NamedTuple):
    """Counterfactuals of some rows towards given labels."""

    points: FloatArray
    cost: FloatArray
    gap: FloatArray
    status: npt.NDArray[np.str_]
    label: npt.NDArray[np.int64]
    floor: FloatArray  # proven: nothing cheaper exists; 0 where nothing is proven

    def part(self, rows: slice) -> Answers:
        """The same memory, of some rows."""
        points, cost, gap, status, label, floor = self
        return Answers(points[rows], cost[rows], gap[rows], status[rows], label[rows], floor[rows])


def unanswered(X: FloatArray, label: npt.NDArray[np.int64]) -> Answers:
    """Answers for rows of which nothing is known yet."""
    answers = room_for(X)
    answers.points[:] = np.nan
    open_for(answers, label)
    return answers


def room_for(X: FloatArray) -> Answers:
    """Where answers are written: not filled, because a pass over memory takes a while."""
    n = len(X)
    cost, gap, floor = np.empty(n), np.empty(n), np.empty(n)
    return Answers(np.empty(X.shape), cost, gap, statuses(n), np.empty(n, dtype=np.int64), floor)


def open_for(answers: Answers, label: npt.NDArray[np.int64]) -> None:
    """Say that nothing is known yet of rows that aim at a label; points are left as they are."""
    answers.cost[:] = np.nan
    answers.gap[:] = np.nan
    answers.status[:] = Status.UNREACHABLE
    answers.label[:] = label
    answers.floor[:] = np.inf


def blocks(rows: npt.NDArray[np.intp], n_columns: int) -> Iterator[npt.NDArray[np.intp] | slice]:
    """Rows in the order given, a few at a time; neighbours as a slice, which copies nothing."""
    size = max(256, BLOCK // (8 * max(n_columns, 1)))
    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        first, last = int(some[0]), int(some[-1])
        yield slice(first, last + 1) if last - first + 1 == len(some) else some
