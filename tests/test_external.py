"""Other tools' counterfactuals: measured like the library's own, and trusted in nothing."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from evenhand import L1, L2, Closest, External, Gaussian, Status, certify, instability

X, y = load_iris(return_X_y=True)
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]
FRAME = pd.DataFrame(X, columns=NAMES, index=[f"flower {i}" for i in range(len(X))])
MEANS = np.array([X[y == label].mean(axis=0) for label in range(3)])
SOME = np.array([0, 10, 60, 75, 120, 140])  # two of each class


@pytest.fixture(scope="module")
def model() -> LogisticRegression:
    return LogisticRegression(max_iter=2000).fit(X, y)


@pytest.fixture(scope="module")
def named() -> LogisticRegression:
    return LogisticRegression(max_iter=2000).fit(FRAME, np.array(["setosa", "versicolor", "virginica"])[y])


def mean_of_class(people: np.ndarray, label: int) -> np.ndarray:
    return np.tile(MEANS[label], (len(people), 1))


def mean_of_name(people: pd.DataFrame, label: str) -> pd.DataFrame:
    mean = MEANS[["setosa", "versicolor", "virginica"].index(label)]
    return pd.DataFrame(np.tile(mean, (len(people), 1)), columns=NAMES)


class Plain:
    """Says nothing of itself, and predicts."""

    def __init__(self, inner: Any, kind: type = np.ndarray) -> None:
        self.inner, self.kind = inner, kind

    def predict(self, people: Any) -> Any:
        assert isinstance(people, self.kind)
        return self.inner.predict(people).tolist()


# --- Statuses ---------------------------------------------------------------------------------------------------------


def test_valid_rows_are_local(model) -> None:
    for cost, price in (
        ("l1", np.abs(MEANS[1] - X[SOME]).sum(axis=1)),
        ("l2", np.sqrt(((MEANS[1] - X[SOME]) ** 2).sum(axis=1))),
        (L1([1.0, 2.0, 0.0625, 4.0]), (np.abs(MEANS[1] - X[SOME]) * [1.0, 2.0, 0.0625, 4.0]).sum(axis=1)),
        (L2(matrix=2.0 * np.eye(4)), np.sqrt(2 * ((MEANS[1] - X[SOME]) ** 2).sum(axis=1))),
    ):
        found = External(mean_of_class, cost).fit(model).explain(X[SOME], target=1)
        assert found.status.tolist() == ["local", "local", "already", "already", "local", "local"]
        assert found.valid.all()
        asked = found.status == Status.LOCAL
        assert_array_equal(found.counterfactual[asked], np.tile(MEANS[1], (4, 1)))
        assert_allclose(found.cost[asked], price[asked])
        assert_array_equal(found.gap[asked], found.cost[asked], "nothing is proven")
        assert_array_equal(found.counterfactual[~asked], X[SOME][~asked])
        assert_array_equal(found.cost[~asked], 0.0)


def test_rows_of_nan_are_missing(model) -> None:
    def sometimes(people: np.ndarray, label: int) -> np.ndarray:
        found = mean_of_class(people, label)
        found[0] = np.nan
        found[1, 2] = np.nan  # one number is enough
        found[2, 0] = np.inf
        return found

    found = External(sometimes).fit(model).explain(X[:5], target=1)
    assert found.status.tolist() == ["missing"] * 3 + ["local"] * 2
    assert_array_equal(found.valid, [False, False, False, True, True])
    assert np.isnan(found.counterfactual[:3]).all()
    assert np.isnan(found.cost[:3]).all()
    assert np.isnan(found.gap[:3]).all()
    assert "does not prove that there is none" in found.reason[0]


def test_what_the_model_does_not_confirm_is_rejected(model) -> None:
    lie = External(lambda people, label: np.where(people[:, :1] > 5.0, people, MEANS[label]))
    found = lie.fit(model).explain(X[:20], target=2)
    wrong = X[:20, 0] > 5.0
    assert wrong.any()
    assert not wrong.all()
    assert_array_equal(found.status[wrong], "rejected")
    assert_array_equal(found.status[~wrong], "local")
    assert_array_equal(found.valid, ~wrong)
    assert np.isnan(found.counterfactual[wrong]).all()
    assert np.isnan(found.cost[wrong]).all()
    assert all("does not confirm" in reason for reason in found.reason[wrong])


def test_rows_that_are_no_people_are_not_asked_about(model) -> None:
    def careful(people: np.ndarray, label: int) -> np.ndarray:
        assert np.isfinite(people).all()
        assert (model.predict(people) != label).all()
        return mean_of_class(people, label)

    people = X[SOME].copy()
    people[1, 0], people[4, 2] = np.nan, -np.inf
    found = External(careful).fit(model).explain(people, target=0)
    assert found.status.tolist() == ["already", "invalid", "local", "local", "invalid", "local"]


def test_it_is_never_cheaper_than_the_closest(model) -> None:
    exact = Closest().fit(model).explain(X[::7])
    found = External(mean_of_class).fit(model).explain(X[::7])
    assert found.valid.all()
    assert (found.cost >= exact.cost * (1 - 1e-9)).all()


# --- What the generator is asked ------------------------------------------------------------------------------


def test_one_label_at_a_time(model) -> None:
    calls = []

    def recorded(people: np.ndarray, label: int) -> np.ndarray:
        calls.append((label, len(people)))
        assert np.ndim(label) == 0
        return mean_of_class(people, label)

    explainer = External(recorded).fit(model)
    explainer.explain(X[SOME], target=1)
    assert calls == [(1, 4)]
    calls.clear()
    explainer.explain(X[SOME], target=[1, 2, 0, 0, 0, 0])
    assert calls == [(0, 4), (1, 1), (2, 1)]
    calls.clear()
    explainer.explain(X[SOME])
    assert calls == [(0, 4), (1, 4), (2, 4)]
    calls.clear()
    explainer.explain(X[:0], target=1)
    assert calls == [], "nobody, nothing to ask"


def test_no_target_means_the_cheapest_label(model) -> None:
    people = X[::5]
    found = External(mean_of_class).fit(model).explain(people)
    price = np.abs(MEANS[None] - people[:, None]).sum(axis=2)
    price[np.arange(len(people)), model.predict(people)] = np.inf
    assert_array_equal(found.target, price.argmin(axis=1))
    assert_allclose(found.cost, price.min(axis=1))
    assert_array_equal(found.counterfactual, MEANS[price.argmin(axis=1)])


def test_a_label_without_an_answer_does_not_stand_in_the_way(model) -> None:
    """From the first class the second is nearer, but the generator knows the way to the third only."""

    def only_third(people: np.ndarray, label: int) -> np.ndarray:
        return mean_of_class(people, label) if label == 2 else np.full(people.shape, np.nan)

    found = External(only_third).fit(model).explain(X[:5])
    assert found.valid.all()
    assert_array_equal(found.target, 2)

    def only_second(people: np.ndarray, label: int) -> np.ndarray:
        return mean_of_class(people, label) if label == 1 else people

    found = External(only_second).fit(model).explain(X[:5])
    assert found.valid.all()
    assert_array_equal(found.target, 1)


def test_never_more_than_one_thread(model) -> None:
    seen = set()

    def recorded(people: np.ndarray, label: int) -> np.ndarray:
        seen.add(threading.current_thread())
        return mean_of_class(people, label)

    found = External(recorded).fit(model).explain(X, target=1, n_jobs=2, chunk_size=10)
    assert seen == {threading.current_thread()}
    assert_array_equal(found.cost, External(mean_of_class).fit(model).explain(X, target=1).cost)


# --- Tables in and out ------------------------------------------------------------------------------------------------


def test_frames_in_and_out(named) -> None:
    def checked(people: pd.DataFrame, label: str) -> pd.DataFrame:
        assert isinstance(people, pd.DataFrame)
        assert list(people.columns) == NAMES
        return mean_of_name(people, label)

    explainer = External(checked).fit(named)
    people = FRAME.iloc[SOME]
    found = explainer.explain(people, target="versicolor")
    assert found.valid.all()
    assert isinstance(found.counterfactual, pd.DataFrame)
    pd.testing.assert_index_equal(found.counterfactual.index, people.index)
    assert_array_equal(found.counterfactual.to_numpy()[0], MEANS[1])
    mixed = explainer.explain(people[NAMES[::-1]], target="versicolor")
    pd.testing.assert_frame_equal(mixed.counterfactual, found.counterfactual[NAMES[::-1]])
    array = explainer.explain(X[SOME], target="versicolor")
    assert_array_equal(array.counterfactual, found.counterfactual.to_numpy())


def test_the_generator_may_change_the_order_of_columns(named) -> None:
    expected = External(mean_of_name).fit(named).explain(FRAME.iloc[SOME], target="virginica")
    for order in (NAMES[::-1], sorted(NAMES, key=len)):
        found = External(lambda people, label, order=order: mean_of_name(people, label)[order])
        found = found.fit(named).explain(FRAME.iloc[SOME], target="virginica")
        pd.testing.assert_frame_equal(found.counterfactual, expected.counterfactual)
        assert_array_equal(found.cost, expected.cost)


def test_missing_values_of_pandas_are_missing(named) -> None:
    def nullable(people: pd.DataFrame, label: str) -> pd.DataFrame:
        found = mean_of_name(people, label).astype("Float64")
        found.iloc[0, 1] = pd.NA
        return found

    found = External(nullable).fit(named).explain(FRAME.iloc[:2], target="virginica")
    assert found.status.tolist() == ["missing", "local"]


def test_a_list_is_a_table(model) -> None:
    found = External(lambda people, label: mean_of_class(people, label).tolist()).fit(model).explain(X[:2], target=1)
    assert found.valid.all()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda people, label: people[:-1], r"returned shape \(2, 4\) for 3 people with 4 features"),
        (lambda people, label: people[:, 1:], r"returned shape \(3, 3\) for 3 people with 4 features"),
        (lambda people, label: people[0], r"returned shape \(4,\).*with NaN for those who have none"),
        (lambda people, label: people[:, None], r"returned shape \(3, 1, 4\)"),
        (lambda people, label: None, r"returned shape \(\)"),
        (lambda people, label: np.full(people.shape, "much"), "answer is no table of numbers: could not convert"),
        (lambda people, label: [[1.0], [1.0, 2.0]], "answer is no table of numbers"),
        (lambda people, label: pd.DataFrame(people).assign(note="text"), "Columns note are not numeric"),
    ],
)
def test_wrong_answers(model, function, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        External(function).fit(model).explain(X[:3], target=1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda people, label: people.drop(columns="petal width"), "Missing: petal width"),
        (lambda people, label: people.assign(height=1.0), "Unknown: height"),
        (lambda people, label: people.assign(**{"petal width": "wide"}), "Columns petal width are not numeric"),
        (lambda people, label: pd.concat([people, people]), r"returned shape \(6, 4\) for 3 people"),
    ],
)
def test_wrong_frames(named, function, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        External(function).fit(named).explain(FRAME.iloc[:3], target="virginica")


# --- Any model --------------------------------------------------------------------------------------------------------


def test_models_without_a_region() -> None:
    kernel = SVC().fit(X, y)
    found = External(mean_of_class).fit(kernel).explain(X[SOME])
    assert found.valid.all()
    assert_array_equal(kernel.predict(found.counterfactual), found.target)


def test_a_model_that_says_nothing_is_learned_from_a_table(model) -> None:
    expected = External(mean_of_class).fit(model).explain(X[SOME])
    explainer = External(mean_of_class).fit(Plain(model), X)
    assert explainer.view.n_features == 4
    assert_array_equal(explainer.view.classes, [0, 1, 2])
    found = explainer.explain(X[SOME])
    assert_array_equal(found.counterfactual, expected.counterfactual)
    assert_array_equal(found.target, expected.target)
    with pytest.raises(ValueError, match="4 columns"):
        explainer.explain(X[:, :3])


def test_a_model_that_says_nothing_gets_tables_like_the_one_it_was_shown(named) -> None:
    explainer = External(mean_of_name).fit(Plain(named, pd.DataFrame), FRAME)
    assert explainer.view.feature_names == tuple(NAMES)
    assert explainer.explain(FRAME.iloc[SOME], target="setosa").valid.all()
    assert explainer.explain(X[SOME], target="setosa").valid.all()


def test_what_cannot_be_learned_is_asked_for(model) -> None:
    with pytest.raises(ValueError, match=r"Plain has no n_features_in_: pass a table of people, fit\(model, X\)"):
        External(mean_of_class).fit(Plain(model))
    half = Plain(model)
    half.n_features_in_ = 4
    with pytest.raises(ValueError, match=r"Plain has no classes_"):
        External(mean_of_class).fit(half)
    half.classes_ = [0, 1, 2]
    assert External(mean_of_class).fit(half).explain(X[:3], target=2).valid.all()


def test_labels_that_the_table_did_not_show(model) -> None:
    """Shown the first two classes only, the third is neither a target nor an error."""
    explainer = External(mean_of_class).fit(Plain(model), X[:100][model.predict(X[:100]) < 2])
    assert_array_equal(explainer.view.classes, [0, 1])
    with pytest.raises(ValueError, match="Unknown label 2"):
        explainer.explain(X[:3], target=2)
    assert explainer.explain(X[[120]], target=0).status.tolist() == ["local"]


def test_no_model() -> None:
    for wrong in ("model", None, object()):
        with pytest.raises(TypeError, match="has no predict method"):
            External(mean_of_class).fit(wrong, X)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        External(mean_of_class).fit(SVC())


def test_no_function() -> None:
    with pytest.raises(TypeError, match=r"External wraps a function \(X, target\) -> counterfactuals, got ndarray"):
        External(X)


def test_unknown_cost(model) -> None:
    with pytest.raises(ValueError, match="'max' is not a known cost"):
        External(mean_of_class, "max").fit(model)


def test_frozen(model) -> None:
    method = External(mean_of_class)
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.cost = "l2"
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.fit(model).cost = L2()


# --- Measured like the others -----------------------------------------------------------------------------------------


def test_randomness_of_the_generator_is_the_floor(model) -> None:
    noise = np.random.default_rng(0)

    def restless(people: np.ndarray, label: int) -> np.ndarray:
        return mean_of_class(people, label) + noise.uniform(-0.01, 0.01, people.shape)

    still, moving = (
        instability(External(function).fit(model), X[SOME], Gaussian(0.001), draws=3, random_state=0).people
        for function in (mean_of_class, restless)
    )
    assert_array_equal(still["floor"], 0.0)
    assert (moving["floor"] > 0).all()
    assert (moving["floor"] <= 4 * 0.02).all()


def test_dependence_on_the_order_is_in_the_floor(model) -> None:
    def by_place(people: np.ndarray, label: int) -> np.ndarray:
        return mean_of_class(people, label) + 0.001 * np.arange(len(people))[:, None]

    found = instability(External(by_place).fit(model), X[:4], Gaussian(0.0), target=1, random_state=0).people
    assert_allclose(found["floor"], 4 * 0.001 * np.array([3, 1, 1, 3]), rtol=1e-9)


def test_instability_of_a_generator_by_hand(model) -> None:
    """It moves people by a constant: explanations move as far as the people."""
    shift = External(lambda people, label: people + (MEANS[label] - MEANS[0]))
    found = instability(shift.fit(model), X[:8], Gaussian(0.01), target=2, draws=4, random_state=1).table
    assert (found["status"] == "local").all()
    assert_allclose(found["distance"], found["input_distance"], rtol=1e-9)
    assert_allclose(found["change_distance"], 0.0, atol=1e-12)


def test_nothing_can_be_certified(model) -> None:
    with pytest.raises(TypeError, match=r"certify needs a method that projects onto regions .* got ExternalExplainer"):
        certify(External(mean_of_class).fit(model), X[:3])


def test_tree_with_names() -> None:
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(FRAME, y)
    found = External(lambda people, label: people * 0 + MEANS[label]).fit(tree).explain(FRAME.iloc[SOME], "random")
    assert found.valid.all()
    assert_array_equal(tree.predict(found.counterfactual), found.target)
