"""A second opinion on projections: it confirms what solvers say, and is not fooled by what they do not say."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from evenhand import L1, L2, Actionable, Column, Gower, IfChanges, RisesWith, Schema
from evenhand.projection import Problem, Projection, solver
from evenhand.sets import ConvexSet, Ellipsoid, Paraboloid, Region
from evenhand.status import Status
from evenhand.table.layout import Layout
from strategies import cases, seeds

SLOW = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def limits_for(rng: np.random.Generator, X: np.ndarray) -> Actionable:
    """A few columns that stay, go one way, or have bounds around the people."""
    way = rng.choice(["free", "free", "immutable", "increase", "decrease", "bounds"], X.shape[1])
    named = {kind: [int(j) for j in np.flatnonzero(way == kind)] for kind in ("immutable", "increase", "decrease")}
    bounds = {int(j): (float(X[:, j].min()) - 3.0, float(X[:, j].max()) + 3.0) for j in np.flatnonzero(way == "bounds")}
    return Actionable(**named, bounds=bounds)


# --- Numbers: every norm, polyhedra and ellipsoids --------------------------------------------------------------------


@settings(SLOW, max_examples=80)
@given(cases(most_pieces=3, most_dims=5), seeds, st.booleans())
def test_projections_of_numbers_are_confirmed(case: Any, seed: int, limited: bool) -> None:
    schema = Schema.numbers(case.region.dim)
    actionable = limits_for(np.random.default_rng(seed), case.X) if limited else Actionable()
    problem = Problem.of_numbers(case.region, case.cost, actionable.over(schema))
    found = solver(problem).project(case.X)
    checked = found.verify(problem, case.X)
    for status in found.status:
        event(str(status))
    assert checked.feasible.all()
    assert checked.priced.all()
    assert not checked.refuted.any()
    assert checked.confirmed.all()


def test_a_column_that_hardly_moves_is_no_matter_of_tolerances() -> None:
    """One whose numbers are 1e-5 of the cost, and decide: an opinion in units of the cost was 2e-6 too low."""
    matrix = np.array(
        [
            [328.83829719021315, 0.36223983508436586, 0.11779837871968887, -0.1937138886018306, -0.23925255696164544],
            [-64.03492093325659, 0.09400701047128651, -0.000788911780033548, 0.011161600636190486, -0.0295300172945545],
        ]
    )
    curve = Ellipsoid(matrix, np.array([4.007411042120297, -0.008817189012034175]), 1.02779669414857)
    rows = np.array([[0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0], [1024.0, 0.0, 0.0, 0.0, 0.0]])
    region = Region((ConvexSet(5, G=rows, h=np.array([-1.75, -1.75, 6.25]), ellipsoids=(curve,)),))
    problem, person = Problem.of_numbers(region, L1()), np.array([[0.005859375, 7.0, 0.0, 2.0, 32.0]])
    found = solver(problem).project(person)
    assert found.verify(problem, person, tol=1e-8).ok.all()
    claim = replace(found, bound=found.bound * (1 + 1e-5))
    assert not claim.verify(problem, person).confirmed.any()


# --- Steps, levels and rules ------------------------------------------------------------------------------------------


def random_problem(seed: int, curved: str = "") -> tuple[Problem, np.ndarray]:
    """Whole numbers, numbers and levels with costs of their own, rules, and a region over all of them."""
    rng = np.random.default_rng(seed)
    columns = {
        "age": Column("integer", weight=0.3),
        "debt": Column("numeric", weight=float(rng.uniform(0.5, 2.0))),
        "rate": Column("numeric", step=0.5, weight=0.7, bounds=(-6.0, 6.0)),
        "job": Column("categorical", levels="abc", costs=rng.uniform(0.2, 2.0, (3, 3)).round(2)),
        "rank": Column("ordered", levels="uvwx", weight=0.6),
        "flag": Column("boolean"),
    }
    schema = Schema(columns)
    rules = [IfChanges("job", stays="flag"), RisesWith("age", "rank"), RisesWith("debt", "rate", 0.5)]
    actionable = Actionable(
        immutable=[str(name) for name in rng.choice(["age", "flag", "debt"], rng.integers(0, 2), replace=False)],
        decrease=["rate"] if rng.random() < 0.3 else [],
        bounds={"debt": (-4.0, 5.0)} if rng.random() < 0.3 else {},
        levels={"job": "ab"} if rng.random() < 0.3 else {},
        rules=[rule for rule in rules if rng.random() < 0.4],
    )
    if "debt" in actionable.immutable:
        actionable = replace(actionable, bounds={})
    known = rng.random(9) < 0.9
    people = np.column_stack(
        [
            rng.integers(-5, 6, 3),
            rng.normal(size=3) * 2,
            rng.integers(-8, 9, 3) / 2,
            *(rng.integers(0, n, 3) for n in (3, 4, 2)),
        ]
    )
    known[np.array([0, 3, 7]) + people[:, 3:].astype(int)] = True  # nobody is what the model does not accept
    layout = Layout(np.arange(3), np.arange(3, 6), np.array([0, 3, 7, 9]), known)
    pieces = []
    for _ in range(rng.integers(1, 4)):
        G = rng.normal(size=(rng.integers(0, 4), layout.width))
        h = G @ layout.expand(people[:1])[0] - rng.uniform(-1.0, 3.0, len(G))
        lower = np.full(layout.width, -np.inf)
        if rng.random() < 0.4:
            lower[rng.integers(0, 3)] = rng.uniform(0.0, 4.0)
        if rng.random() < 0.2:
            lower[rng.integers(3, layout.width)] = 0.5  # this level, and no other
        parts: tuple[Any, ...] = ()
        matrix = np.zeros((3, layout.width))
        matrix[:, :3] = rng.normal(size=(3, 3)) * 0.5 + np.eye(3)
        centre = matrix[:, :3] @ rng.normal(size=3) * 3
        if curved == "ellipsoid":
            parts = (Ellipsoid(matrix, centre, float(rng.uniform(2.0, 4.0))),)
        elif curved == "density":
            slope = np.append(np.zeros(3), shared_slope(seed))
            parts = (Paraboloid(matrix, centre, float(rng.uniform(4.0, 9.0)), slope),)
        pieces.append(ConvexSet(layout.width, lower, G=G, h=h, ellipsoids=parts))
    cost = Gower(schema)
    return Problem(Region(tuple(pieces)), cost, actionable.over(schema), layout), people


def shared_slope(seed: int) -> np.ndarray:
    """Logarithms of the frequencies of levels: those of all components of a class."""
    return np.log(np.random.default_rng([seed, 1]).uniform(0.05, 0.9, 9))


@pytest.mark.slow
@pytest.mark.parametrize("curved", ["", "ellipsoid", "density"])
@settings(SLOW, max_examples=12)
@given(seed=seeds)
def test_projections_of_steps_and_levels_are_confirmed(curved: str, seed: int) -> None:
    problem, people = random_problem(seed, curved)
    found = solver(problem).project(people)
    checked = found.verify(problem, people)
    for status in found.status:
        event(str(status))
    assert checked.feasible.all()
    assert checked.priced.all()
    assert not checked.refuted.any()
    assert checked.confirmed.all()


def test_a_binned_number_is_verified_by_its_bins() -> None:
    schema = Schema({"age": Column("integer", bounds=(0.0, 90.0)), "debt": Column("numeric", weight=2.0)})
    edges = np.array([0.0, 17.5, 29.5, 64.5, 90.0])
    layout = Layout(np.array([1]), np.array([0]), np.array([0, 4]), np.ones(4, dtype=bool), {0: edges})
    rows = np.array([[1.0, 0.0, -4.0, -20.0, -9.0]])  # debt is at most 4, 20 or 9, by bin of the age
    problem = Problem(Region((ConvexSet(5, G=rows, h=np.zeros(1)),)), Gower(schema), Actionable().over(schema), layout)
    people = np.array([[20.0, 12.0], [70.0, 12.0], [40.0, 25.0], [17.0, 3.0]])
    found = solver(problem).project(people)
    assert found.cost.tolist() == pytest.approx([10.0, 6.0, 10.0, 1.0], rel=1e-6)
    assert found.verify(problem, people).ok.all()
    raised = replace(found, bound=found.bound * 1.01)
    assert not raised.verify(problem, people).ok.any()


# --- What cannot be fooled --------------------------------------------------------------------------------------------


@cache
def everywhere() -> dict[str, tuple[Problem, np.ndarray]]:
    """A problem for every way to solve: boxes, kernels, several ellipsoids, levels, levels with a density."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3, 3)) * 2
    tilted = ConvexSet(3, G=-np.ones((1, 3)), h=np.array([-12.0]))
    balls = tuple(Ellipsoid(np.eye(3) * (1 + i), np.full(3, 8.0) * (1 + i), 3.0 * (1 + i)) for i in range(2))
    root = rng.normal(size=(4, 3))
    shapes = {
        "boxes": (Region((ConvexSet(3, lower=np.full(3, 6.0)), ConvexSet(3, upper=np.full(3, -9.0)))), L1()),
        "rows, l1": (Region((tilted,)), L1([1.0, 2.0, 3.0])),
        "rows, matrix": (Region((tilted,)), L2(matrix=root.T @ root)),
        "ellipsoids": (Region((replace(tilted, ellipsoids=balls),)), L2([1.0, 2.0, 0.5])),
        "one ellipsoid": (Region((ConvexSet(3, ellipsoids=balls[:1]),)), L1()),
    }
    found = {name: (Problem.of_numbers(region, cost), X) for name, (region, cost) in shapes.items()}
    for curved in ("", "ellipsoid", "density"):
        for seed in range(30):
            problem, people = random_problem(seed, curved)
            reached = solver(problem).project(people).cost > 0.1
            if reached.sum() >= 2:
                found[f"levels {curved}".strip()] = problem, people[reached]
                break
    return found


NUMBERS = ["boxes", "rows, l1", "rows, matrix", "ellipsoids", "one ellipsoid"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NUMBERS, "levels", "levels ellipsoid", "levels density"])
def test_nobody_is_fooled(name: str) -> None:
    problem, X = everywhere()[name]
    found = solver(problem).project(X)
    assert (found.status == Status.OPTIMAL).all()
    assert found.verify(problem, X).ok.all()

    cheaper = replace(found, cost=found.cost * 0.99)
    assert not cheaper.verify(problem, X).priced.any()
    both = replace(found, cost=found.cost * 0.99, bound=found.bound * 0.99)
    assert not both.verify(problem, X).ok.any()

    raised = replace(found, bound=found.bound * 1.01)
    checked = raised.verify(problem, X)
    assert checked.refuted.all()
    assert not checked.confirmed.any()

    halfway = replace(found, points=(found.points + X) / 2)
    assert not halfway.verify(problem, X).ok.any()
    moved = found.points.copy()
    moved[:, 0] += 1.0
    assert not replace(found, points=moved).verify(problem, X).ok.any()
    priced = problem.cost.price(X, moved)
    told = replace(found, points=moved, cost=priced, bound=priced)
    assert not (told.verify(problem, X).ok & (np.abs(priced - found.cost) > 1e-3)).any()

    lost = np.full(len(X), np.nan)
    nobody = replace(
        found,
        points=np.full_like(X, np.nan),
        cost=lost,
        bound=np.full(len(X), np.inf),
        status=np.full_like(found.status, Status.UNREACHABLE),
    )
    checked = nobody.verify(problem, X)
    assert checked.refuted.all()
    assert not checked.ok.any()
    assert not replace(found, points=np.full_like(X, np.nan)).verify(problem, X).feasible.any()


def test_a_dearer_point_with_its_own_cost_is_refuted_by_a_cheaper_one() -> None:
    region = Region((ConvexSet(2, lower=np.array([1.0, 1.0])),))
    problem, X = Problem.of_numbers(region, L1()), np.zeros((1, 2))
    dearer = Projection(np.full((1, 2), 2.0), np.array([4.0]), np.array([4.0]), np.zeros(1, int), np.array(["optimal"]))
    checked = dearer.verify(problem, X)
    assert checked.feasible.all()
    assert checked.priced.all()
    assert checked.refuted.all()
    assert checked.bound == pytest.approx([2.0], rel=1e-6)
    honest = replace(dearer, bound=np.array([1.5]), status=np.array(["inaccurate"]))
    assert honest.verify(problem, X).ok.all()


def test_what_claims_nothing_is_not_asked_about() -> None:
    region = Region((ConvexSet(2, lower=np.array([1.0, 1.0])),))
    problem, X = Problem.of_numbers(region, L2()), np.array([[0.0, np.nan], [0.0, 0.0]])
    found = solver(problem).project(X)
    checked = found.verify(problem, X)
    assert found.status.tolist() == ["invalid", "optimal"]
    assert checked.ok.all()
    assert checked.bound == pytest.approx([0.0, np.sqrt(2.0)], rel=1e-6)
    assert len(checked) == 2


class Elsewhere:
    """A region that is no union of convex sets."""

    dim = 2


def test_only_unions_of_convex_sets_and_sums_can_be_verified() -> None:
    region = Region((ConvexSet(2, lower=np.array([1.0, 1.0])),))
    problem, X = Problem.of_numbers(region, L1()), np.zeros((1, 2))
    found = solver(problem).project(X)
    with pytest.raises(TypeError, match=r"Only a Region.*got a Elsewhere.*[Cc]ompare"):
        found.verify(problem.onto(Elsewhere()), X)
    with pytest.raises(ValueError, match="pass the same X"):
        found.verify(problem, np.zeros((2, 2)))
    stepped = replace(problem, cost=L2(), limits=replace(problem.limits, step=np.ones(2)))
    with pytest.raises(TypeError, match="sums over columns"):
        found.verify(stepped, X)


def test_a_person_at_the_origin_has_no_size_and_is_not_out_of_reach() -> None:
    problem, X = Problem.of_numbers(Region((ConvexSet(2, lower=np.array([1.0, 1.0])),)), L1()), np.zeros((1, 2))
    nothing = np.full(1, np.nan)
    claimed = Projection(
        np.full((1, 2), np.nan), nothing, np.array([np.inf]), np.zeros(1, int), np.array(["unreachable"])
    )
    checked = claimed.verify(problem, X)
    assert checked.refuted.all()
    assert not checked.confirmed.any()
