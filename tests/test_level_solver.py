"""What the search over levels refuses, with its reason: regions that its kernels would misread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenhand import L2, Actionable, Column, Gower, Schema
from evenhand.projection import Problem, solver
from evenhand.projection.levels.engine import LevelProjector
from evenhand.sets import ConvexSet, Ellipsoid, Paraboloid, Region
from evenhand.table.layout import Layout

SCHEMA = Schema({"age": Column("integer"), "debt": Column("numeric"), "job": Column("categorical", levels="abc")})
LAYOUT = Layout(np.arange(2), np.array([2]), np.array([0, 3]), np.ones(3, dtype=bool))
ROUND = np.eye(2, LAYOUT.width)  # the numbers, as they are
FLAT = ConvexSet(LAYOUT.width, G=np.array([[1.0, 1.0, 0.5, 0.0, -0.5]]), h=np.array([-2.0]))


def bowl(slope: Any = (0.0, 0.0, -1.0, 0.0, -2.0)) -> ConvexSet:
    return ConvexSet(LAYOUT.width, ellipsoids=(Paraboloid(ROUND, np.zeros(2), 4.0, np.array(slope)),))


def ball(*more: Ellipsoid) -> ConvexSet:
    return ConvexSet(LAYOUT.width, ellipsoids=(Ellipsoid(ROUND, np.zeros(2), 2.2), *more))


def problem(*pieces: ConvexSet, cost: Any = None) -> Problem:
    cost = Gower(SCHEMA) if cost is None else cost
    return Problem(Region(pieces), cost, Actionable().over(SCHEMA), LAYOUT)


REFUSED = {
    "flat and curved": (problem(FLAT, ball()), "either all pieces have a curved part, or none."),
    "curved and flat": (problem(bowl(), FLAT), "either all pieces have a curved part, or none."),
    "two ellipsoids": (problem(ball(Ellipsoid(ROUND, np.ones(2), 2.0))), "a piece may have one ellipsoid at most."),
    "an ellipsoid of levels": (
        problem(ConvexSet(LAYOUT.width, ellipsoids=(Ellipsoid(np.eye(LAYOUT.width), np.zeros(LAYOUT.width), 2.0),))),
        "an ellipsoid may be about numbers only.",
    ),
    "slopes that differ": (
        problem(bowl(), bowl((0.0, 0.0, -1.0, 0.0, -3.0))),
        "the slopes of paraboloids are about levels, and the same for all pieces.",
    ),
    "a slope of numbers": (
        problem(bowl((1.0, 0.0, -1.0, 0.0, -2.0))),
        "the slopes of paraboloids are about levels, and the same for all pieces.",
    ),
    "l2": (problem(FLAT, cost=L2()), "its costs are sums over columns"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_with_a_reason(name: str) -> None:
    asked, reason = REFUSED[name]
    assert LevelProjector.refusal(asked).startswith(reason)
    with pytest.raises(TypeError, match=f"No solver takes a Region.*LevelProjector: {reason}"):
        solver(asked)


@pytest.mark.parametrize("pieces", [(FLAT, FLAT), (ball(), ball()), (bowl(), bowl())])
def test_pieces_of_one_kind_are_taken(pieces: tuple[ConvexSet, ...]) -> None:
    assert LevelProjector.refusal(problem(*pieces)) == ""
    asked = problem(*pieces)
    people = np.array([[4.0, 0.5, 0.0], [0.0, 0.0, 1.0], [-3.0, 2.5, 2.0]])
    found = solver(asked).project(people)
    assert found.verify(asked, people).ok.all()
