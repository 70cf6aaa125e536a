"""What a solver from outside says about one query and one piece, and what it has to know of the problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from evenhand.projection.problem import Problem
from evenhand.sets import ConvexSet
from evenhand.table.limits import DOWN, FIXED, UP
from evenhand.types import FloatArray

EMPTY = np.inf  # the bound of a piece that holds nothing


class Opinion(NamedTuple):
    """What a solver says about one query and one piece: a proven bound, and a point if it has one."""

    bound: float
    point: FloatArray | None = None


Ask = Callable[[Problem, ConvexSet, FloatArray, FloatArray, float], Opinion]


def units_of(problem: Problem, columns: Any) -> FloatArray:
    """Per column a change that no point of cost one can exceed, whatever else it changes."""
    rates = problem.cost.rates(problem.n_columns)
    if rates is not None:
        return np.asarray(1.0 / rates[columns])
    weights, matrix = problem.cost.weights, problem.cost.matrix
    if matrix is not None:
        return np.asarray(np.sqrt(np.diagonal(np.linalg.inv(matrix[np.ix_(columns, columns)]))))
    return np.ones(len(columns)) if weights is None else 1.0 / np.sqrt(weights[columns])


def ways(problem: Problem, x: FloatArray, held: frozenset[int]) -> tuple[FloatArray, FloatArray]:
    """The least and the largest change of every column that limits leave."""
    limits = problem.limits
    least, most = limits.lower - x, limits.upper - x
    least = np.where(limits.directions == UP, np.maximum(least, 0.0), least)
    most = np.where(limits.directions == DOWN, np.minimum(most, 0.0), most)
    if limits.gone is not None:  # what is missing may stay so, whatever its bounds
        stays = x == limits.gone
        least, most = np.where(stays, np.minimum(least, 0.0), least), np.where(stays, np.maximum(most, 0.0), most)
    still = (limits.directions == FIXED) | np.isin(np.arange(len(x)), list(held))
    return np.where(still, 0.0, least), np.where(still, 0.0, most)
