"""The search over levels: what it refuses, with its reason, and that it ends with a proof otherwise."""

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


def random_problem(seed: int, curved: bool) -> tuple[Problem, np.ndarray]:
    """Numbers, whole numbers and levels, onto a few pieces with rows and, if wanted, one of a few densities; people."""
    rng = np.random.default_rng(seed)
    numbers, sizes = int(rng.integers(1, 5)), rng.integers(2, 5, int(rng.integers(1, 4)))
    whole = rng.random(numbers) < 0.5
    weights = rng.choice([0.1, 0.5, 1.0, 2.0], numbers + len(sizes))
    columns = {f"n{j}": Column("integer" if whole[j] else "numeric", weight=weights[j]) for j in range(numbers)}
    for b, size in enumerate(sizes):
        columns[f"c{b}"] = Column("categorical", levels="abcd"[:size], weight=weights[numbers + b])
    schema = Schema(columns)
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    order = np.arange(numbers + len(sizes))
    layout = Layout(order[:numbers], order[numbers:], start, np.ones(start[-1], dtype=bool))
    slope = np.concatenate([np.zeros(numbers), np.log(rng.dirichlet(np.ones(start[-1])) + 1e-6)])
    dense: list[Any] = []
    for _ in range(int(rng.integers(1, 4)) if curved else 0):
        matrix = rng.normal(size=(int(rng.integers(1, numbers + 2)), layout.width))
        matrix[:, numbers:] = 0.0
        centre = matrix[:, :numbers] @ rng.normal(scale=2.0, size=numbers)
        dense.append(Paraboloid(matrix, centre, float(rng.uniform(0.5, 6.0)), slope))
    pieces = []
    for _ in range(int(rng.integers(1, 5))):
        lower, upper = np.full(layout.width, -np.inf), np.full(layout.width, np.inf)
        lower[:numbers] = np.where(rng.random(numbers) < 0.4, rng.normal(scale=2.0, size=numbers), -np.inf)
        upper[numbers:] = np.where(rng.random(start[-1]) < 0.15, 0.0, np.inf)
        rows = int(rng.integers(0, 4))
        flat = ConvexSet(
            layout.width, lower=lower, upper=upper, G=rng.normal(size=(rows, layout.width)), h=rng.normal(size=rows)
        )
        pieces += [flat & ConvexSet(layout.width, ellipsoids=(part,)) for part in dense] if curved else [flat]
    X = np.column_stack([rng.normal(scale=3.0, size=(6, numbers)), *(rng.integers(0, size, 6) for size in sizes)])
    X[:, :numbers] = np.where(whole, np.round(X[:, :numbers]), X[:, :numbers])
    return Problem(Region(tuple(pieces)), Gower(schema), Actionable().over(schema), layout), X


@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("seeds", [range(0, 30), range(30, 60)])
def test_every_search_ends_with_a_proof(seeds: range, curved: bool) -> None:
    """Also where a whole number could go up and down at once, for ever."""
    reached = 0
    for seed in seeds:
        problem, X = random_problem(seed, curved)
        projector = solver(problem)
        found = projector.project(X, 1e-10)
        assert set(found.status) <= {"optimal", "unreachable"}, seed
        there = found.status == "optimal"
        reached += int(there.sum())
        assert problem.admits(X[there], found.points[there], 1e-7).all(), seed
        np.testing.assert_allclose(problem.cost.price(X[there], found.points[there]), found.cost[there], rtol=1e-7)
        other = np.random.default_rng(seed).permutation(len(X))
        assert projector.project(X[other], 1e-10).points.tobytes() == found.points[other].tobytes(), seed
        limited = projector.project(X, 1e-10, np.where(there, 1.2 * found.cost, np.inf))
        assert limited.points.tobytes() == found.points.tobytes(), seed
    assert reached > 60
