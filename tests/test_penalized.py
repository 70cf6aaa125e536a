"""Counterfactuals of any model by local search: valid, on the boundary, and never better than the exact ones."""

from __future__ import annotations

import dataclasses
import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from evenhand import L1, L2, Actionable, Closest, Penalized, Status, certify
from evenhand.methods.penalized import hinge_loss, log_loss, zero_one_loss

IRIS, LABEL = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(IRIS)
PETALS = X[:, 2:]
SOME = [3, 75, 140]  # one of each class
NEXT = [1, 2, 1]


class Linear:
    """Softmax regression without scikit-learn's checks, which would take most of the time."""

    def __init__(self, like: LogisticRegression) -> None:
        self.weights, self.offsets = like.coef_.copy(), like.intercept_.copy()
        self.classes_, self.n_features_in_ = like.classes_, like.n_features_in_

    def predict_proba(self, people: np.ndarray) -> np.ndarray:
        return softmax(people @ self.weights.T + self.offsets, axis=1)

    def predict(self, people: np.ndarray) -> np.ndarray:
        return self.classes_[(people @ self.weights.T + self.offsets).argmax(axis=1)]

    def slope(self, people: np.ndarray, k: int) -> np.ndarray:
        """Gradient of minus the log of the probability of a label."""
        return self.predict_proba(people) @ self.weights - self.weights[k]


class Plain:
    """Has a predict, and nothing else."""

    def __init__(self, predict: Any) -> None:
        self.predict = predict


@cache
def logistic() -> LogisticRegression:
    return LogisticRegression().fit(X, LABEL)


@cache
def linear() -> Linear:
    return Linear(logistic())


@cache
def petals(kind: str) -> Any:
    """A model of two columns."""
    made = {
        "logistic": lambda: LogisticRegression(),
        "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
        "forest": lambda: RandomForestClassifier(4, max_depth=4, random_state=0),
        "boosting": lambda: GradientBoostingClassifier(n_estimators=4, random_state=0),
        "kernel": lambda: SVC(),
        "network": lambda: MLPClassifier((6,), max_iter=400, solver="lbfgs", random_state=0),
        "neighbours": lambda: KNeighborsClassifier(5),
        "plain": lambda: SVC(),
    }[kind]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.fit(PETALS, LABEL)
    return Plain(made.predict) if kind == "plain" else made


def assert_on_the_boundary(model: Any, found: Any) -> None:
    """One part in a million back towards the person, and the model says something else."""
    moved = found.valid & (found.status != Status.ALREADY)
    assert moved.any()
    back = found.counterfactual + 1e-6 * (found.factual - found.counterfactual)
    assert (np.asarray(model.predict(back[moved])) != found.target[moved]).all()


# --- Against the exact answer -----------------------------------------------------------------------------------------


def test_linear_model_against_the_exact_cost() -> None:
    model = logistic()
    for target in (NEXT, [2, 0, 0]):
        found = Penalized(cost="l2", restarts=1).fit(model, X).explain(X[SOME], target)
        exact = Closest("l2").fit(model).explain(X[SOME], target)
        assert (found.status == Status.LOCAL).all()
        assert_array_equal(model.predict(found.counterfactual), target)
        assert (found.cost >= exact.cost * (1 - 1e-6)).all()
        assert (found.cost <= exact.cost * 1.03).all()
        assert_allclose(found.cost, np.linalg.norm(found.counterfactual - X[SOME], axis=1))
        assert_array_equal(found.gap, found.cost, "nothing is proven")
        assert_on_the_boundary(model, found)


@pytest.mark.parametrize(
    "cost", ["l1", L1([1.0, 3.0, 0.5, 2.0]), L2([4.0, 1.0, 1.0, 0.25]), L2(matrix=np.cov(X.T) + np.eye(4))]
)
def test_other_costs_against_the_exact_cost(cost) -> None:
    found = Penalized(cost=cost).fit(linear(), X).explain(X[SOME], NEXT)
    exact = Closest(cost).fit(logistic()).explain(X[SOME], NEXT)
    assert found.valid.all()
    assert (found.cost >= exact.cost * (1 - 1e-6)).all()
    assert (found.cost <= exact.cost * 1.1).all()
    assert_on_the_boundary(linear(), found)


def test_no_target_means_the_cheapest_found() -> None:
    explainer = Penalized(cost="l2", restarts=1).fit(linear(), X)
    found = explainer.explain(X[SOME])
    each = [explainer.explain(X[SOME], label) for label in range(3)]
    price = np.array([np.where(one.status == Status.ALREADY, np.inf, one.cost) for one in each])
    assert_array_equal(found.target, price.argmin(axis=0))
    assert_array_equal(found.cost, price.min(axis=0))
    for one, label, x in zip(each, range(3), SOME, strict=True):
        assert one.status[label] == Status.ALREADY
        assert_array_equal(one.counterfactual[label], X[x])


def test_tree_against_the_exact_cost() -> None:
    tree = petals("tree")
    for cost in ("l1", "l2"):
        explainer = Penalized(cost=cost, restarts=2).fit(tree, PETALS)
        assert explainer.optimizer == "descent"
        found = explainer.explain(PETALS[SOME], NEXT)
        exact = Closest(cost).fit(tree).explain(PETALS[SOME], NEXT)
        assert (found.status == Status.LOCAL).all()
        assert_array_equal(tree.predict(found.counterfactual), NEXT)
        assert (found.cost >= exact.cost * (1 - 1e-6)).all()
        assert (found.cost <= exact.cost * 1.5).all()
        assert_on_the_boundary(tree, found)


# --- Models without a region ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "loss", "optimizer"),
    [
        ("logistic", log_loss, "bfgs"),
        ("tree", log_loss, "descent"),
        ("forest", log_loss, "descent"),
        ("boosting", log_loss, "descent"),
        ("kernel", hinge_loss, "bfgs"),
        ("network", log_loss, "bfgs"),
        ("neighbours", log_loss, "descent"),
        ("plain", zero_one_loss, "descent"),
    ],
)
def test_any_model(kind: str, loss, optimizer: str) -> None:
    model = petals(kind)
    explainer = Penalized(restarts=1).fit(model, PETALS)
    assert explainer.loss is loss
    assert explainer.optimizer == optimizer
    people, target = PETALS[[3, 140]], [1, 1]
    found = explainer.explain(people, target)
    assert set(found.status) <= {Status.LOCAL, Status.MISSING}
    assert found.valid.any()
    assert_array_equal(found.valid, found.status == Status.LOCAL)
    assert_array_equal(model.predict(found.counterfactual[found.valid]), 1)
    assert np.isnan(found.counterfactual[~found.valid]).all()
    assert_on_the_boundary(model, found)
    # A training point of the class is where the search starts from: the answer is no worse.
    known = PETALS[np.asarray(model.predict(PETALS)) == 1]
    best = np.abs(known[None] - people[:, None]).sum(axis=2).min(axis=1)
    assert (found.cost[found.valid] <= best[found.valid]).all()


def test_two_classes_and_decision_values() -> None:
    two = SVC(kernel="linear").fit(PETALS[:100], np.array(["no", "yes"])[LABEL[:100]])
    explainer = Penalized(cost="l2", restarts=1).fit(two, PETALS[:100])
    assert explainer.loss is hinge_loss
    found = explainer.explain(PETALS[[0, 60]])
    assert found.target.tolist() == ["yes", "no"]
    distance = np.abs(two.decision_function(PETALS[[0, 60]])) / np.linalg.norm(two.coef_)
    assert_allclose(found.cost, distance, rtol=0.01)


def test_far_from_everything_the_search_starts_from_the_data() -> None:
    """The label is an island that no step from the person reaches."""
    island = Plain(lambda people: (np.abs(people - 100.0).max(axis=1) < 0.01).astype(int))
    data = np.array([[0.0, 0.0], [1.0, 0.0], [100.0, 100.0]])
    found = Penalized(restarts=0).fit(island, data).explain(data[:2], target=1)
    assert (found.status == Status.MISSING).all()
    assert not found.valid.any()
    assert np.isnan(found.counterfactual).all()
    assert np.isnan(found.cost).all()
    assert all("does not prove that there is none" in reason for reason in found.reason)
    found = Penalized(restarts=1).fit(island, data).explain(data[:2], target=1)
    assert (found.status == Status.LOCAL).all()
    assert (found.cost >= 199.98 - 1 - 1e-9).all()
    assert (found.cost <= 199.99).all()


def test_label_without_people_in_the_data() -> None:
    """The model knows three labels, the data shows two of them: the search starts from the person alone."""
    data = X[LABEL != 1]
    data = data[linear().predict(data) != 1]
    found = Penalized(cost="l2").fit(linear(), data).explain(X[[3, 140]], target=1)
    assert_array_equal(linear().predict(found.counterfactual[found.valid]), 1)
    assert found.valid.any()


def test_names_are_kept() -> None:
    frame = pd.DataFrame(PETALS, columns=["length", "width"], index=[f"flower {i}" for i in range(150)])
    named = LogisticRegression().fit(frame, np.array(["a", "b", "c"])[LABEL])
    method = Penalized(cost=L1(), restarts=0, strength=1.0, actionable=Actionable(immutable=["width"]))
    found = method.fit(named, frame).explain(frame.iloc[[3]][["width", "length"]], target="b")
    assert list(found.counterfactual.columns) == ["width", "length"]
    assert found.counterfactual.index.tolist() == ["flower 3"]
    assert found.valid.all()
    assert found.counterfactual["width"].iloc[0] == PETALS[3, 1]


def test_names_of_the_data_alone_are_known() -> None:
    """The model was fitted without names, the table has them."""
    method = Penalized(restarts=0, actionable=Actionable(immutable=["width"]))
    frame = pd.DataFrame(PETALS, columns=["length", "width"])
    limits = method.fit(petals("logistic"), frame).limits
    assert_array_equal(limits.directions == 0, [False, True])


# --- What may change --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["bfgs", "nelder-mead"])
def test_actionable_is_respected(optimizer: str) -> None:
    people = X[SOME]
    allowed = Actionable(immutable=[0], increase=[1], decrease=[2], bounds={3: (-1.25, 1.5)})
    method = Penalized(cost="l2", optimizer=optimizer, actionable=allowed)
    found = method.fit(linear(), X).explain(people, [1, 0, 1])
    exact = Closest("l2", actionable=allowed).fit(logistic()).explain(people, [1, 0, 1])
    assert found.valid.any()
    assert_array_equal(found.valid <= exact.valid, True)
    for i in np.flatnonzero(found.valid):
        point = found.counterfactual[i]
        assert point[0] == people[i, 0], "to the last bit"
        assert point[1] >= people[i, 1]
        assert point[2] <= people[i, 2]
        assert -1.25 <= point[3] <= 1.5
        assert linear().predict(point[None])[0] == found.target[i]
        assert found.cost[i] >= exact.cost[i] * (1 - 1e-6)


def test_actionable_is_used_well() -> None:
    allowed = Actionable(immutable=[2], bounds={0: (-3.0, 3.0)})
    found = Penalized(cost="l2", actionable=allowed).fit(linear(), X).explain(X[SOME], NEXT)
    exact = Closest("l2", actionable=allowed).fit(logistic()).explain(X[SOME], NEXT)
    assert exact.valid.all()
    assert (found.cost <= exact.cost * 1.05).all()
    assert (found.cost >= exact.cost * (1 - 1e-6)).all()


def test_nothing_within_bounds() -> None:
    tight = Actionable(bounds={j: (float(X[3, j]) - 0.01, float(X[3, j]) + 0.01) for j in range(4)})
    found = Penalized(actionable=tight).fit(linear(), X).explain(X[[3]], target=2)
    assert found.status.tolist() == ["missing"]


def test_contradictory_limits() -> None:
    with pytest.raises(ValueError, match="is both immutable and increase"):
        Penalized(actionable=Actionable(immutable=[0], increase=[0])).fit(linear(), X)
    with pytest.raises(ValueError, match="Column 9 does not exist"):
        Penalized(actionable=Actionable(immutable=[9])).fit(linear(), X)


# --- Loss, strength, gradient -----------------------------------------------------------------------------------------


def test_losses_by_hand() -> None:
    scores = np.random.default_rng(0).normal(size=(50, 3)) * 20.0
    for k in range(3):
        assert_allclose(log_loss(scores, k), -log_softmax(scores, axis=1)[:, k], atol=1e-12)
        for row, hinge, wrong in zip(scores, hinge_loss(scores, k), zero_one_loss(scores, k), strict=True):
            lead = row[k] - max(s for j, s in enumerate(row) if j != k)
            assert hinge == pytest.approx(max(0.0, 1.0 - lead))
            assert wrong == (lead < 0)


@pytest.mark.parametrize("strength", [1e-3, 0.1, 10.0])
def test_strength_as_a_number(strength: float) -> None:
    found = Penalized(cost="l2", strength=strength, restarts=1).fit(linear(), X).explain(X[SOME], NEXT)
    exact = Closest("l2").fit(logistic()).explain(X[SOME], NEXT)
    assert found.valid.all()
    assert (found.cost >= exact.cost * (1 - 1e-6)).all()
    assert_on_the_boundary(linear(), found)


def test_strength_decides_what_is_minimised() -> None:
    """Without data to start from: too strong a cost, and the person stays; weak enough, and it moves."""
    weak, strong = (
        Penalized(cost="l2", strength=strength, restarts=0).fit(linear(), X).explain(X[[3]], target=2)
        for strength in (1e-3, 1e3)
    )
    assert weak.status.tolist() == ["local"]
    assert strong.status.tolist() == ["missing"]


def test_gradient_gives_the_same_cost() -> None:
    calls = []

    def slope(people: np.ndarray, k: int) -> np.ndarray:
        calls.append(k)
        return linear().slope(people, k)

    given, numeric = (
        Penalized(cost="l2", restarts=1, gradient=gradient).fit(linear(), X).explain(X[SOME], NEXT)
        for gradient in (slope, None)
    )
    assert {1, 2} <= set(calls)
    assert_allclose(given.cost, numeric.cost, rtol=0.01)
    for k in range(3):  # the slope itself, by differences
        for j, step in enumerate(1e-6 * np.eye(4)):
            up, down = (log_loss(np.log(linear().predict_proba(X[SOME] + side)), k) for side in (step, -step))
            assert_allclose(linear().slope(X[SOME], k)[:, j], (up - down) / 2e-6, atol=1e-6)


def test_gradient_of_some_columns_only() -> None:
    allowed = Actionable(immutable=[1])
    given, numeric = (
        Penalized(cost="l2", restarts=1, gradient=gradient, actionable=allowed).fit(linear(), X).explain(X[SOME], NEXT)
        for gradient in (linear().slope, None)
    )
    assert_allclose(given.cost, numeric.cost, rtol=0.01)
    assert_array_equal(given.counterfactual[:, 1], X[SOME, 1])


def test_a_loss_of_ones_own() -> None:
    asked = []

    def squared(scores: np.ndarray, k: int) -> np.ndarray:
        asked.append(k)
        assert scores.shape[1] == 3
        return (1.0 - np.exp(scores[:, k])) ** 2

    explainer = Penalized(squared, cost="l2", restarts=1).fit(linear(), X)
    asked.clear()
    found = explainer.explain(X[SOME], 1)
    assert set(asked) == {1}
    exact = Closest("l2").fit(logistic()).explain(X[SOME], 1)
    assert found.valid.all()
    assert (found.cost >= exact.cost * (1 - 1e-6)).all()
    assert (found.cost <= exact.cost * 1.1).all()


@pytest.mark.parametrize("loss", ["log", "hinge", "zero-one"])
def test_losses_by_name(loss: str) -> None:
    explainer = Penalized(loss, cost="l2", restarts=1).fit(linear(), X)
    assert explainer.optimizer == ("descent" if loss == "zero-one" else "bfgs")
    found = explainer.explain(X[SOME], NEXT)
    assert found.valid.all()
    assert_on_the_boundary(linear(), found)


def test_more_restarts_are_never_worse() -> None:
    tree = petals("tree")
    costs = [Penalized(strength=1.0, restarts=n).fit(tree, PETALS).explain(PETALS[SOME], NEXT).cost for n in (1, 2, 6)]
    assert (costs[1] <= costs[0] * (1 + 1e-12)).all()
    assert (costs[2] <= costs[1] * (1 + 1e-12)).all()


# --- The same answer every time ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["bfgs", "nelder-mead"])
def test_deterministic(optimizer: str) -> None:
    people, target = X[[3, 75, 140]], [1, 2, 0]
    explainer = Penalized(cost="l2", optimizer=optimizer, restarts=1).fit(linear(), X)
    first = explainer.explain(people, target)
    again = Penalized(cost="l2", optimizer=optimizer, restarts=1).fit(linear(), X).explain(people, target)
    chunks = explainer.explain(people, target, n_jobs=2, chunk_size=1)
    backwards = explainer.explain(people[::-1], target[::-1])
    alone = explainer.explain(people[1:2], target[1:2])
    for other in (again.counterfactual, chunks.counterfactual, backwards.counterfactual[::-1]):
        assert_array_equal(other, first.counterfactual)
    assert_array_equal(alone.counterfactual[0], first.counterfactual[1])
    assert_array_equal(chunks.status, first.status)


# --- Errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "square"}, "loss must be auto, log, hinge, zero-one or a function, got 'square'"),
        ({"optimizer": "adam"}, 'optimizer must be "auto", "bfgs", "nelder-mead" or "descent", got \'adam\''),
        ({"strength": 0.0}, r'strength must be a number > 0 or "auto", got 0\.0'),
        ({"strength": -1.0}, "strength must be a number > 0"),
        ({"strength": np.nan}, "strength must be a number > 0"),
        ({"strength": np.inf}, "strength must be a number > 0"),
        ({"strength": "strong"}, "strength must be a number > 0 .* got 'strong'"),
        ({"restarts": -1}, "restarts must be a whole number >= 0, got -1"),
    ],
)
def test_wrong_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Penalized(**options)


def test_wrong_cost() -> None:
    with pytest.raises(ValueError, match="'max' is not a known cost"):
        Penalized(cost="max").fit(linear(), X)


def test_needs_data() -> None:
    with pytest.raises(ValueError, match=r"needs training data to start its searches from: fit\(model, X\)"):
        Penalized().fit(linear())
    with pytest.raises(ValueError, match="at least one row of training data without missing values"):
        Penalized().fit(linear(), np.full((3, 4), np.nan))
    with pytest.raises(ValueError, match="4 columns"):
        Penalized().fit(linear(), X[:, :3])


def test_rows_with_missing_values_are_left_out() -> None:
    holes = np.vstack([X, X[:5]])
    holes[150:, 1] = np.nan
    whole, part = (
        Penalized(strength=1.0, restarts=2).fit(linear(), data).explain(X[SOME], NEXT) for data in (X, holes)
    )
    assert_array_equal(part.counterfactual, whole.counterfactual)
    person = X[SOME].copy()
    person[1, 2] = np.nan
    assert Penalized(strength=1.0).fit(linear(), X).explain(person, NEXT).status.tolist() == [
        "local",
        "invalid",
        "local",
    ]


def test_wrong_models() -> None:
    with pytest.raises(ValueError, match="one label only"):
        Penalized().fit(Plain(lambda people: np.zeros(len(people))), X)
    with pytest.raises(TypeError, match="str has no predict method"):
        Penalized().fit("model", X)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        Penalized().fit(RandomForestClassifier(), X)


def test_constant_column() -> None:
    wide = np.column_stack([PETALS, np.full(150, 0.1)])
    model = Linear(LogisticRegression().fit(wide, LABEL))
    found = Penalized(cost="l2", restarts=1).fit(model, wide).explain(wide[SOME], NEXT)
    assert found.valid.all()
    assert_array_equal(model.predict(found.counterfactual), NEXT)


def test_nothing_can_be_certified() -> None:
    with pytest.raises(TypeError, match="got PenalizedExplainer: of what it does not solve exactly"):
        certify(Penalized().fit(linear(), X), X[:2])


def test_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Penalized().restarts = 5


class TestDescent:
    """From people with the target towards the person: valid, never better than exact, and the same in any company."""

    @pytest.mark.parametrize("cost", ["l1", "l2"])
    @pytest.mark.parametrize(
        "model",
        [LogisticRegression(), DecisionTreeClassifier(max_depth=4, random_state=0), KNeighborsClassifier(1)],
        ids=["logistic", "tree", "neighbour"],
    )
    def test_valid_and_not_far_from_the_exact_one(self, model: Any, cost: str) -> None:
        model.fit(X, LABEL)
        people = X[LABEL != 1]
        found = Penalized(cost=cost, optimizer="descent").fit(model, X).explain(people, target=1)
        best = Closest(cost).fit(model).explain(people, target=1)
        assert (model.predict(found.counterfactual[found.valid]) == 1).all()
        asked = found.status == Status.LOCAL
        assert asked.sum() > 80
        ratio = found.cost[asked] / best.cost[asked]
        assert (ratio > 1 - 1e-6).all()
        assert np.median(ratio) < 1.2

    def test_a_person_gets_the_same_alone_and_in_company(self) -> None:
        explainer = Penalized(optimizer="descent").fit(petals("forest"), PETALS)
        whole = explainer.explain(PETALS[:60], target=1)
        alone = explainer.explain(PETALS[7:8], target=1)
        assert_array_equal(whole.counterfactual[7:8], alone.counterfactual)

    def test_what_may_not_change_does_not(self) -> None:
        limits = Actionable(immutable=[0], increase=[1], bounds={2: (-1.0, 1.0)})
        explainer = Penalized(optimizer="descent", actionable=limits).fit(logistic(), X)
        found = explainer.explain(X[LABEL == 0], target=1)
        after = found.counterfactual[found.valid]
        before = X[LABEL == 0][found.valid]
        assert len(after)
        assert_array_equal(after[:, 0], before[:, 0])
        assert (after[:, 1] >= before[:, 1]).all()
        assert ((after[:, 2] >= -1) & (after[:, 2] <= 1)).all()

    def test_without_anybody_to_begin_from_it_searches(self) -> None:
        descent, search = (
            Penalized(optimizer=o, restarts=0).fit(petals("forest"), PETALS) for o in ("descent", "nelder-mead")
        )
        found = [one.explain(PETALS[:2], target=1) for one in (descent, search)]
        assert_array_equal(found[0].counterfactual, found[1].counterfactual)
