"""The laws on tables of numbers for the methods that test_laws.py does not run: Steady, Penalized, External; and law 1.

Models, tables and costs are those of test_laws.py; a cost in the units of a schema (Gower) is there as well.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from evenhand import (
    Closest,
    Column,
    Explainer,
    Explanations,
    External,
    Gower,
    Penalized,
    Plausible,
    Schema,
    Status,
    Steady,
)
from evenhand.models import view
from oracle import UndecidedError, nearest_of
from test_laws import COSTS, DENSITY, MODELS, PIPELINES, cost_of, data, fitted, queries
from threads import one_thread, threads_at_once  # noqa: F401

STEPS = ["none", "pca", "standard"]
ALL_COSTS = [*COSTS, "gower"]
# Every family x cost; the pipelines take turns.
PAIRS = [(kind, STEPS[(i + j) % 3], cost) for i, kind in enumerate(MODELS) for j, cost in enumerate(ALL_COSTS)]


def given(cost: str) -> Any:
    if cost != "gower":
        return cost_of(cost, "iris")
    return Gower(Schema({f"x{j}": Column("numeric", weight=0.5 + j) for j in range(4)}))


def by_hand(cost: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What changes cost, from how the costs are described."""
    X, _ = data("iris")
    change = b - a
    if cost == "mahalanobis":
        return np.sqrt(np.einsum("ij,jk,ik->i", change, np.linalg.inv(np.cov(X.T)), change))
    if cost == "l2":
        return np.sqrt((change**2).sum(axis=1))
    spread = np.median(np.abs(X - np.median(X, axis=0)), axis=0)
    return np.abs(change) @ {"l1": np.ones(4), "mad": 1.0 / spread, "gower": 0.5 + np.arange(4)}[cost]


@cache
def explainer(method: str, kind: str, steps: str, cost: str) -> Explainer:
    (X, y), model = data("iris"), fitted(kind, steps, "iris")
    said = model.predict(X)
    optimizer = "bfgs" if (kind, cost) == ("logistic", "l2") else "descent"  # BFGS goes person by person

    def somebody(people: np.ndarray, label: Any) -> np.ndarray:
        return np.tile(X[said == label][0], (len(people), 1))

    recipe: Any = {
        "closest": lambda: Closest(given(cost)),
        "plausible": lambda: Plausible(DENSITY, given(cost)),
        "steady": lambda: Steady(cost=given(cost)),
        "penalized": lambda: Penalized(cost=given(cost), restarts=1, optimizer=optimizer),
        "external": lambda: External(somebody, cost=given(cost)),
    }[method]()
    return recipe.fit(model, X, y)


def asked(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Some people, each towards every label."""
    return np.repeat(queries("iris", 4)[:n], 3, axis=0), np.tile([0, 1, 2], n)


def assert_same_bytes(a: Explanations, b: Explanations, order: Any) -> None:
    for name in ("counterfactual", "target", "cost", "gap", "status", "valid"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name)[order])


def check(method: str, kind: str, steps: str, cost: str, n: int) -> Explanations:
    """Laws 5 and 6, and of law 3 that nothing is cheaper than what is proven to be the least."""
    people, goal = asked(n)
    explain, model = explainer(method, kind, steps, cost), fitted(kind, steps, "iris")
    found = explain.explain(people, target=goal)
    assert (found.reason[~found.valid] != "").all()
    assert np.isnan(found.cost[~found.valid]).all()
    if found.valid.any():
        np.testing.assert_array_equal(model.predict(found.counterfactual[found.valid]), goal[found.valid])
        paid = by_hand(cost, people[found.valid], found.counterfactual[found.valid])
        np.testing.assert_allclose(found.cost[found.valid], paid, rtol=1e-7, atol=1e-9)
    least = explainer("closest", kind, steps, cost).explain(people, target=goal)
    assert (found.cost >= least.cost * (1 - 1e-6) - 1e-9)[found.valid].all()
    order = np.random.default_rng(0).permutation(len(people))
    turned = explain.explain(people[order], target=goal[order], chunk_size=2, n_jobs=2)
    assert_same_bytes(found, turned, np.argsort(order))
    return found


@pytest.mark.parametrize("steps", PIPELINES)
@pytest.mark.parametrize("kind", MODELS)
def test_a_region_contains_exactly_whom_predict_gives_the_label(kind: str, steps: str) -> None:
    X, _ = data("iris")
    rng = np.random.default_rng(0)
    strangers = np.vstack([X, X.mean(axis=0) + 2 * rng.normal(size=(200, 4)) * X.std(axis=0)])
    model = fitted(kind, steps, "iris")
    answers, seen = model.predict(strangers), view(model)
    for label in seen.classes:
        inside = seen.region(label).contains(strangers, 1e-8)
        sure = inside == seen.region(label).contains(strangers, -1e-8)  # on a boundary it may be either
        assert sure.mean() > 0.95
        np.testing.assert_array_equal(inside[sure], (answers == label)[sure])


@pytest.mark.parametrize(("kind", "steps", "cost"), PAIRS)
def test_steady_is_one_piece_and_projects_onto_it(kind: str, steps: str, cost: str) -> None:
    if cost in ("l1", "mad", "gower"):
        with pytest.raises(ValueError, match="Steady needs an l2 cost"):
            explainer("steady", kind, steps, cost)
        return
    found = check("steady", kind, steps, cost, 4)
    assert found.valid.all()
    assert set(found.status) <= {Status.OPTIMAL, Status.INACCURATE, Status.ALREADY}
    steady, (people, goal) = explainer("steady", kind, steps, cost), asked(4)
    again = steady.explain(found.counterfactual, target=goal)
    assert (again.cost <= 1e-6).all()
    for q in (1, 5, 9):  # three people, towards three labels
        try:
            truth = nearest_of(people[q], steady.region(int(goal[q])), cost_of(cost, "iris"))
        except UndecidedError:
            continue
        assert found.cost[q] == pytest.approx(truth, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize(("kind", "steps", "cost"), PAIRS)
def test_searches_are_confirmed_by_the_model_or_say_why_not(kind: str, steps: str, cost: str) -> None:
    for method, n in (("penalized", 1), ("external", 4)):
        found = check(method, kind, steps, cost, n)
        assert set(found.status) <= {Status.LOCAL, Status.ALREADY, Status.MISSING, Status.REJECTED}
        assert found.valid.all()


@pytest.mark.parametrize("kind", MODELS)
def test_a_cost_in_the_units_of_a_schema_is_that_sum(kind: str) -> None:
    for method in ("closest", "plausible"):
        found = check(method, kind, "standard", "gower", 4)
        assert set(found.status) <= {Status.OPTIMAL, Status.ALREADY}
        assert found.valid.all()
        again = explainer(method, kind, "standard", "gower").explain(found.counterfactual, target=asked(4)[1])
        assert (again.cost == 0).all()  # whoever did as told has nothing left to do
