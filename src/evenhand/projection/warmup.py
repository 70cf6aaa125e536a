"""Having kernels compiled before they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from evenhand.costs import Gower, as_cost
from evenhand.projection.problem import Problem
from evenhand.projection.solver import Projector, solver
from evenhand.sets import ConvexSet, Ellipsoid, Paraboloid, Region
from evenhand.table.actionable import Actionable
from evenhand.table.column import Column
from evenhand.table.layout import Layout
from evenhand.table.schema import Schema

_BOX = ConvexSet(2, lower=np.zeros(2))
_ROWS = ConvexSet(2, G=np.ones((1, 2)), h=np.zeros(1))
_CURVED = ConvexSet(2, ellipsoids=(Ellipsoid(np.eye(2), np.zeros(2), 1.0),))


def _numbers(piece: ConvexSet, cost: str) -> None:
    solver(Problem.of_numbers(Region((piece,)), as_cost(cost))).project(np.full((1, 2), 2.0))


def _levels() -> tuple[Projector, Projector, Projector]:
    """Onto a box, a row, and a density, over a number and a category of two levels."""
    schema = Schema({"a": Column("numeric"), "b": Column("categorical", levels=["x", "y"])})
    start, known = np.array([0, 2]), np.ones(2, dtype=bool)
    layout = Layout(np.array([0]), np.array([1]), start, known)
    limits, cost = Actionable().over(schema), Gower(schema)
    dense = Paraboloid(np.array([[1.0, 0.0, 0.0]]), np.zeros(1), 2.0, np.array([0.0, -0.5, -0.5]))
    box = ConvexSet(3, lower=np.array([0.0, -np.inf, -np.inf]))
    row = ConvexSet(3, G=np.ones((1, 3)), h=np.ones(1))
    curved = ConvexSet(3, ellipsoids=(dense,))
    first, second, third = (solver(Problem(Region((piece,)), cost, limits, layout)) for piece in (box, row, curved))
    return first, second, third


def _boxes_of_levels() -> None:
    _levels()[0].project(np.array([[-1.0, 0.0]]))


def _search_over_levels() -> None:
    _levels()[1].project(np.array([[3.0, 0.0]]))


def _search_dense_levels() -> None:
    _levels()[2].project(np.array([[3.0, 0.0]]))


def _inside_levels() -> None:
    _levels()[0].within(np.array([[-1.0, 0.0]]), 1e-5)


KERNELS: dict[str, Callable[[], None]] = {
    "levels: search, curved": _search_dense_levels,
    "levels: search": _search_over_levels,
    "numbers: l1, curved": lambda: _numbers(_CURVED, "l1"),
    "numbers: l2, curved": lambda: _numbers(_CURVED, "l2"),
    "numbers: l1": lambda: _numbers(_ROWS, "l1"),
    "numbers: l2": lambda: _numbers(_ROWS, "l2"),
    "levels: boxes": _boxes_of_levels,
    "levels: inside": _inside_levels,
    "numbers: boxes": lambda: _numbers(_BOX, "l1"),
}


def compile_kernels(names: Iterable[str] = tuple(KERNELS)) -> None:
    """Have kernels compiled, or loaded from disk, before they are needed; all of them unless they are named."""
    for name in names:
        KERNELS[name]()
