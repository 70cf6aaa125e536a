"""Methods and explanations: targets, margins, statuses, and what a person reads."""

from __future__ import annotations

import dataclasses
import html.parser
import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from evenhand import GLVQ, GMLVQ, L1, L2, Actionable, Closest, Explanations, HighDensity, Plausible, Status
from evenhand.models import view
from oracle import nearest_of

DENSITY = HighDensity(components=[1])
METHODS = {"closest": Closest(), "plausible": Plausible(DENSITY)}
methods = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


@cache
def iris() -> tuple[np.ndarray, np.ndarray]:
    return load_iris(return_X_y=True)


@cache
def model(kind: str = "logistic") -> Any:
    X, y = iris()
    made = {
        "logistic": lambda: LogisticRegression(max_iter=2000),
        "pipeline": lambda: make_pipeline(StandardScaler(), PCA(3), LogisticRegression()),
        "tree": lambda: DecisionTreeClassifier(max_depth=3, random_state=0),
        "tree behind pca": lambda: make_pipeline(PCA(3), DecisionTreeClassifier(random_state=0)),
        "glvq": lambda: GLVQ(prototypes_per_class=2, max_iter=30, random_state=0),
        "gmlvq": lambda: GMLVQ(max_iter=30, random_state=0),
        "1nn": lambda: KNeighborsClassifier(1),
    }[kind]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return made.fit(X, y)


def people(n: int = 30) -> np.ndarray:
    X, _ = iris()
    return X[np.linspace(0, len(X) - 1, n).astype(int)]


def explain(method: Closest | Plausible, kind: str, X: Any, target: Any = None, **options: Any) -> Explanations:
    return method.fit(model(kind), *iris()).explain(X, target, **options)


# --- Targets ----------------------------------------------------------------------------------------------------------


@methods
@pytest.mark.parametrize("kind", ["logistic", "tree", "glvq"])
def test_one_label_for_all(method, kind: str) -> None:
    X = people()
    present = model(kind).predict(X)
    for label in (0, 1, 2, np.int64(2)):
        found = explain(method, kind, X, label)
        assert found.valid.all()
        np.testing.assert_array_equal(found.target, label)
        np.testing.assert_array_equal(model(kind).predict(found.counterfactual), label)
        already = present == label
        assert already.any()
        np.testing.assert_array_equal(found.status == Status.ALREADY, already)
        np.testing.assert_array_equal(found.status == Status.OPTIMAL, ~already)
        np.testing.assert_array_equal(found.counterfactual[already], X[already])
        np.testing.assert_array_equal(found.cost[already], 0.0)
        np.testing.assert_array_equal(found.gap[already], 0.0)
        assert (found.cost[~already] > 0).all()


@methods
def test_one_label_per_row(method) -> None:
    X = people(12)
    labels = np.arange(12) % 3
    expected = [explain(method, "logistic", X[i : i + 1], int(labels[i])) for i in range(12)]
    for given in (
        labels,
        labels.tolist(),
        tuple(labels),
        pd.Series(labels, index=range(100, 112)),
        labels.astype(object),
    ):
        found = explain(method, "logistic", X, given)
        np.testing.assert_array_equal(found.target, labels)
        np.testing.assert_allclose(found.cost, [one.cost[0] for one in expected], rtol=1e-9)
        np.testing.assert_allclose(found.counterfactual, np.vstack([one.counterfactual for one in expected]), atol=1e-8)


@methods
@pytest.mark.parametrize("kind", ["logistic", "tree", "glvq", "1nn"])
@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_no_label_means_the_cheapest_other_one(method, kind: str, cost: str) -> None:
    method = dataclasses.replace(method, cost=cost)
    X = people()
    present = model(kind).predict(X)
    free = explain(method, kind, X)
    each = [explain(method, kind, X, label) for label in range(3)]
    price = np.array([np.where(present == label, np.inf, found.cost) for label, found in enumerate(each)])
    np.testing.assert_allclose(free.cost, price.min(axis=0), rtol=1e-9)
    assert (free.target != present).all()
    assert free.valid.all()
    for q, label in enumerate(free.target):
        assert price[label, q] <= price[:, q].min() * (1 + 1e-9)
        np.testing.assert_allclose(free.counterfactual[q], each[label].counterfactual[q], atol=1e-8)


def test_equally_cheap_labels_give_the_lexicographically_smallest_point() -> None:
    """Three prototypes on a line: from the middle one, left and right are equally far, whatever the labels' order."""
    for labels in (["a", "b", "c"], ["c", "b", "a"], ["b", "a", "c"], ["c", "a", "b"]):
        lvq = GLVQ.from_prototypes(np.array([[-2.0, 0.0], [0.0, 0.0], [2.0, 0.0]]), np.array(labels))
        for cost in ("l1", "l2", L2([3.0, 1.0])):
            found = Closest(cost).fit(lvq).explain([[0.0, 0.0], [0.0, 5.0]])
            assert found.target.tolist() == [labels[0]] * 2
            np.testing.assert_allclose(found.counterfactual, [[-1.0, 0.0], [-1.0, 5.0]], atol=1e-6)


@methods
def test_random_labels_are_reproducible_and_never_the_present_one(method) -> None:
    X = people(40)
    present = model().predict(X)
    first = explain(method, "logistic", X, "random", random_state=5)
    assert (first.target != present).all()
    assert first.valid.all()
    np.testing.assert_array_equal(model().predict(first.counterfactual), first.target)
    same = explain(method, "logistic", X, "random", random_state=5)
    np.testing.assert_array_equal(first.target, same.target)
    np.testing.assert_array_equal(first.counterfactual, same.counterfactual)
    generators = [explain(method, "logistic", X, "random", random_state=np.random.default_rng(5)) for _ in range(2)]
    np.testing.assert_array_equal(generators[0].target, generators[1].target)
    other = explain(method, "logistic", X, "random", random_state=6)
    assert (first.target != other.target).any()
    for options in ({"chunk_size": 1}, {"chunk_size": 7}, {"chunk_size": 3, "n_jobs": 2}):
        np.testing.assert_array_equal(
            explain(method, "logistic", X, "random", random_state=5, **options).target, first.target
        )


def test_random_labels_are_uniform_over_the_others() -> None:
    X, _ = iris()
    many = np.repeat(X[[0, 60, 120]], 1000, axis=0)
    present = model().predict(many)
    found = explain(Closest(), "logistic", many, "random", random_state=0)
    for label in range(3):
        counts = np.bincount(found.target[present == label], minlength=3)
        assert counts[label] == 0
        # A fixed seed: fails with a biased draw, not by bad luck.
        assert chisquare(np.delete(counts, label)).pvalue > 1e-4


def test_random_with_two_classes_is_the_other_one() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    two = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    found = Closest().fit(two).explain(X[:50], "random", random_state=0)
    np.testing.assert_array_equal(found.target, 1 - two.predict(X[:50]))


def test_label_called_random_is_a_label() -> None:
    X, y = iris()
    odd = LogisticRegression(max_iter=2000).fit(X, np.array(["random", "b", "c"])[y])
    found = Closest().fit(odd).explain(X[::10], "random")
    assert (found.target == "random").all()


@methods
@pytest.mark.parametrize(
    ("target", "message"),
    [
        (7, r"Unknown label 7.*\[0, 1, 2\]"),
        ("setosa", r"Unknown label 'setosa'"),
        (np.nan, "Unknown label nan"),
        (1.5, "Unknown label 1.5"),
        ([0, 1, 9], "Unknown label 9 in target"),
        (["a", "b", "c"], "Unknown label 'a' in target"),
        ([0, 1], r"shape \(2,\), the table has 3 rows"),
        ([[0], [1], [2]], r"shape \(3, 1\)"),
        ([], r"shape \(0,\)"),
    ],
)
def test_wrong_targets(method, target, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explain(method, "logistic", people(3), target)


def lost_class() -> tuple[Any, np.ndarray]:
    """A tree of one split on three classes: no leaf predicts the third."""
    X, y = iris()
    stump = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    assert set(stump.predict(X)) == {0, 1}
    return stump, X[::10]


def test_class_that_no_leaf_predicts_is_unreachable() -> None:
    stump, X = lost_class()
    found = Closest().fit(stump).explain(X, target=2)
    assert (found.status == Status.UNREACHABLE).all()
    assert not found.valid.any()
    assert np.isnan(found.counterfactual).all()
    assert np.isnan(found.cost).all()
    assert np.isnan(found.gap).all()
    np.testing.assert_array_equal(found.target, 2)
    assert all("No point of the target's region can be reached" in reason for reason in found.reason)
    # It does not stand in the way of the others.
    free = Closest().fit(stump).explain(X)
    assert free.valid.all()
    np.testing.assert_array_equal(free.target, 1 - stump.predict(X))


@methods
def test_nobody_within_reach_has_no_target(method) -> None:
    """With all else fixed no other label can be reached: the row stays, without a label."""
    X = people(6)
    tight = {j: (float(X[:, j].min()), float(X[:, j].max())) for j in range(4)}
    stuck = dataclasses.replace(method, actionable=Actionable(immutable=[0, 1, 2], bounds={3: tight[3]}))
    found = explain(stuck, "tree", X)
    for q in range(6):
        if found.status[q] == Status.UNREACHABLE:
            assert found.target[q] is None
    pinned = dataclasses.replace(method, actionable=Actionable(immutable=[0, 1, 2, 3]))
    found = explain(pinned, "tree", X)
    assert (found.status == Status.UNREACHABLE).all()
    assert found.target.tolist() == [None] * 6
    assert len(found.to_frame()) == 6


# --- Margins ----------------------------------------------------------------------------------------------------------

MARGIN_COSTS = {
    "l1": L1(),
    "l2": L2(),
    "weights": L1([1.0, 2.0, 0.5, 4.0]),
    "matrix": L2(matrix=np.linalg.inv(np.cov(load_iris().data.T))),
}


@methods
@pytest.mark.parametrize("cost", MARGIN_COSTS)
@pytest.mark.parametrize("kind", ["logistic", "pipeline", "tree", "tree behind pca", "glvq", "gmlvq", "1nn"])
def test_margin_is_kept_in_units_of_the_cost(method, kind: str, cost: str) -> None:
    norm, margin = MARGIN_COSTS[cost], 0.04
    X = people(12)
    rng = np.random.default_rng(0)
    found = explain(dataclasses.replace(method, cost=norm, margin=margin), kind, X)
    plain = explain(dataclasses.replace(method, cost=norm), kind, X)
    reached = found.valid
    assert reached.any()
    assert (found.status[~reached] == Status.UNREACHABLE).all()
    assert (found.cost[reached] >= plain.cost[reached] - 1e-9).all()
    steps = np.vstack([np.eye(4), -np.eye(4), rng.normal(size=(60, 4))])
    steps *= margin * (1 - 1e-6) / norm(steps, np.zeros_like(steps))[:, None]
    for point, target in zip(found.counterfactual[reached], found.target[reached], strict=True):
        np.testing.assert_array_equal(model(kind).predict(point + steps), target)
        assert view(model(kind)).region(target).shrink(margin, norm).contains(point[None]).all()


@pytest.mark.parametrize("cost", MARGIN_COSTS)
def test_margin_is_no_larger_than_it_has_to_be(cost: str) -> None:
    """One halfspace: the margin is added to the cost of reaching it, to the last digit."""
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :4]
    two = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    norm = MARGIN_COSTS[cost]
    plain, wide = (Closest(norm, margin).fit(two).explain(X[:30]) for margin in (0.0, 0.5))
    np.testing.assert_allclose(wide.cost, plain.cost + 0.5, rtol=1e-6)


@methods
def test_margin_against_the_oracle(method) -> None:
    X = people(6)
    explainer = dataclasses.replace(method, margin=0.05, cost="l2").fit(model(), *iris())
    found = explainer.explain(X, target=1)
    seen = view(model())
    for q, x in enumerate(X):
        if found.status[q] == Status.ALREADY:
            continue
        region = seen.region(1).shrink(0.05, "l2")
        if isinstance(method, Plausible):
            region = region & DENSITY.fit(*iris(), seen.classes).region(1)
        assert found.cost[q] == pytest.approx(nearest_of(x, region, "l2"), rel=1e-6)


def test_margin_wider_than_the_region_is_unreachable() -> None:
    """Three prototypes on a line: the cell in the middle is two wide."""
    lvq = GLVQ.from_prototypes(np.array([[-2.0, 0.0], [0.0, 0.0], [2.0, 0.0]]), np.array([0, 1, 2]))
    X = np.array([[-3.0, 1.0], [0.5, 0.0], [5.0, -1.0]])
    for margin, outcome in ((0.9, "optimal"), (1.1, "unreachable")):
        for cost in ("l1", "l2", L1([1.0, 9.0])):
            found = Closest(cost, margin).fit(lvq).explain(X, target=1)
            assert found.status.tolist() == [outcome, "already", outcome]
            np.testing.assert_array_equal(found.valid, found.status != Status.UNREACHABLE)


@methods
@pytest.mark.parametrize("margin", [-1e-9, -1.0, np.nan, np.inf])
def test_wrong_margins(method, margin: float) -> None:
    with pytest.raises(ValueError, match="margin must be a number >= 0"):
        dataclasses.replace(method, margin=margin).fit(model(), *iris())


# --- Bad input --------------------------------------------------------------------------------------------------------


@methods
@pytest.mark.parametrize("kind", ["logistic", "tree", "pipeline"])
@pytest.mark.parametrize("target", [None, 1, "random", [0, 1, 2, 0, 1]])
def test_rows_with_nan_or_infinity(method, kind: str, target) -> None:
    X = people(5).copy()
    expected = explain(method, kind, X[[0, 4]], [0, 1] if isinstance(target, list) else target, random_state=0)
    X[1, 0], X[2, 3], X[3, 1] = np.nan, np.inf, -np.inf
    found = explain(method, kind, X, target, random_state=0)
    assert (found.status[1:4] == Status.INVALID).all()
    assert not found.valid[1:4].any()
    assert np.isnan(found.counterfactual[1:4]).all()
    assert np.isnan(found.cost[1:4]).all()
    assert np.isnan(found.gap[1:4]).all()
    assert all("NaN or infinity" in reason for reason in found.reason[1:4])
    np.testing.assert_array_equal(found.valid[[0, 4]], True)
    if target != "random":  # whose draws depend on the row's place
        np.testing.assert_allclose(found.counterfactual[[0, 4]], expected.counterfactual, atol=1e-9)


def test_missing_values_of_pandas_are_invalid_rows() -> None:
    table = pd.DataFrame(people(3), columns=list("abcd")).astype("Float64")
    table.iloc[1, 2] = pd.NA
    found = Closest().fit(model()).explain(table, target=1)
    assert found.status[1] == Status.INVALID
    assert found.valid[[0, 2]].all()


@methods
@pytest.mark.parametrize("X", [np.zeros((2, 3)), np.zeros((2, 5)), np.zeros(4), np.zeros((1, 2, 4)), [["a"] * 4]])
def test_wrong_tables(method, X) -> None:
    with pytest.raises(ValueError, match="4 columns"):
        explain(method, "logistic", X, 1)


@methods
def test_wrong_frames(method) -> None:
    X, y = load_iris(as_frame=True, return_X_y=True)
    named = LogisticRegression(max_iter=2000).fit(X, y)
    explainer = method.fit(named, X, y)
    with pytest.raises(ValueError, match=r"Missing: sepal length \(cm\)"):
        explainer.explain(X.iloc[:, 1:])
    with pytest.raises(ValueError, match="Unknown: height"):
        explainer.explain(X.assign(height=1.0))
    with pytest.raises(ValueError, match=r"Columns petal width \(cm\) are not numeric"):
        explainer.explain(X.assign(**{"petal width (cm)": "wide"}))
    with pytest.raises(ValueError, match="The table's columns are not the model's"):
        explainer.explain(pd.concat([X, X.iloc[:, :1]], axis=1))


@methods
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("target", [None, 1, "random", []])
def test_empty_table(method, target, n_jobs: int | None) -> None:
    found = explain(method, "logistic", np.zeros((0, 4)), target, n_jobs=n_jobs)
    assert len(found) == 0
    assert found.counterfactual.shape == (0, 4)
    assert found.to_frame().shape[0] == 0
    assert "0 people" in repr(found)
    assert "table" in read(found._repr_html_()).tags
    frame = explain(method, "logistic", pd.DataFrame(columns=list("abcd"), dtype=float), target)
    assert list(frame.counterfactual.columns) == list("abcd")


@methods
@pytest.mark.parametrize("options", [{"n_jobs": 0}, {"chunk_size": 0}])
def test_wrong_options(method, options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        explain(method, "logistic", people(3), **options)


@methods
def test_unfitted_model(method) -> None:
    for unfitted in (
        LogisticRegression(),
        DecisionTreeClassifier(),
        GLVQ(),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            method.fit(unfitted, *iris())


@methods
def test_unsupported_model_lists_what_is_supported(method) -> None:
    X, y = iris()
    for wrong in (
        SVC().fit(X, y),
        RandomForestClassifier(2).fit(X, y),
        make_pipeline(StandardScaler(), SVC()).fit(X, y),
        "model",
    ):
        with pytest.raises(TypeError, match=r"no decision region for (SVC|RandomForestClassifier|str)") as error:
            method.fit(wrong, X, y)
        for name in ("LogisticRegression", "DecisionTreeClassifier", "GLVQ", "NearestCentroid", "Pipeline"):
            assert name in str(error.value)


@methods
def test_model_that_knows_one_label_only(method) -> None:
    X, _ = iris()
    same = np.zeros(len(X), dtype=int)
    for single in (DecisionTreeClassifier().fit(X, same), KNeighborsClassifier(1).fit(X[:5], same[:5])):
        with pytest.raises(ValueError, match="one label only"):
            method.fit(single, X, same)


@pytest.mark.parametrize("cost", ["l1", "l2", L1([1.0, 2.0, 0.5, 4.0])])
def test_person_on_the_boundary_at_the_origin(cost) -> None:
    """All zeros, and a model without intercept: the boundary is exactly here, and one step beyond it is enough."""
    X, y = iris()
    through_zero = LogisticRegression(fit_intercept=False, max_iter=2000).fit(X, y)
    nobody = np.zeros((1, 4))
    present = through_zero.predict(nobody)[0]
    for label in {0, 1, 2} - {int(present)}:
        found = Closest(cost).fit(through_zero).explain(nobody, target=label)
        assert found.status[0] in (Status.OPTIMAL, Status.INACCURATE), found.reason
        assert through_zero.predict(found.counterfactual)[0] == label
        assert 0 < found.cost[0] < 1e-3


def test_person_half_way_between_prototypes() -> None:
    lvq = GLVQ.from_prototypes(np.array([[-1.0, 0.0], [1.0, 0.0]]), np.array(["a", "b"]))
    middle = np.array([[0.0, 0.0], [0.0, 3.0], [0.0, -1e-3]])
    for target in ("a", "b"):
        for cost in ("l1", "l2"):
            found = Closest(cost).fit(lvq).explain(middle, target=target)
            assert found.valid.all(), found.reason
            np.testing.assert_array_equal(lvq.predict(found.counterfactual), target)
            assert (found.cost < 1e-3).all()


class Liar(LogisticRegression):
    """Its coefficients say one thing, its predict another."""

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


class Coarse(LogisticRegression):
    """Looks at people through eight bits of mantissa."""

    def predict(self, X):
        mantissa, exponent = np.frexp(np.asarray(X, dtype=float))
        return super().predict(np.ldexp(np.round(mantissa * 2.0**8) / 2.0**8, exponent))


@methods
def test_what_the_model_does_not_confirm_is_not_returned(method) -> None:
    X, y = iris()
    liar = Liar(max_iter=2000).fit(X, y)
    found = method.fit(liar, X, y).explain(people(6), target=1)
    assert (found.status == Status.REJECTED).all()
    assert not found.valid.any()
    assert np.isnan(found.counterfactual).all()
    assert np.isnan(found.cost).all()
    assert all("does not confirm" in reason for reason in found.reason)
    assert not method.fit(liar, X, y).explain(people(6)).valid.any()


@methods
@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_model_with_coarse_arithmetic_confirms_what_is_returned(method, cost: str) -> None:
    X, y = iris()
    coarse = Coarse(max_iter=2000).fit(X, y)
    found = dataclasses.replace(method, cost=cost).fit(coarse, X, y).explain(people(30))
    np.testing.assert_array_equal(coarse.predict(found.counterfactual[found.valid]), found.target[found.valid])
    assert np.isnan(found.counterfactual[~found.valid]).all()
    assert set(found.status) <= {Status.OPTIMAL, Status.INACCURATE, Status.REJECTED}
    assert found.valid.any()
    assert (found.status != Status.OPTIMAL).any(), "otherwise this test does not test anything"
    truth = (
        dataclasses.replace(method, cost=cost)
        .fit(LogisticRegression(max_iter=2000).fit(X, y), X, y)
        .explain(people(30))
    )
    same = found.valid & (found.target == truth.target)
    assert (found.cost[same] - found.gap[same] <= truth.cost[same] * (1 + 1e-6)).all(), "kept room is part of the gap"


def test_plausible_needs_data() -> None:
    with pytest.raises(ValueError, match="Plausible needs training data"):
        Plausible().fit(model())


def test_plausible_takes_predictions_where_there_are_no_labels() -> None:
    X, _ = iris()
    by_prediction = Plausible(DENSITY).fit(model(), X, model().predict(X)).explain(people(9))
    found = Plausible(DENSITY).fit(model(), X).explain(people(9))
    np.testing.assert_array_equal(found.counterfactual, by_prediction.counterfactual)


def test_plausible_with_wrong_labels() -> None:
    X, y = iris()
    with pytest.raises(ValueError, match="not among the classes"):
        Plausible(DENSITY).fit(model(), X, y + 5)
    with pytest.raises(ValueError, match="one label per row"):
        Plausible(DENSITY).fit(model(), X, y[:-1])
    with pytest.raises(ValueError, match="4 columns"):
        Plausible(DENSITY).fit(model(), X[:, :3], y)
    with pytest.raises(ValueError, match="NaN"):
        Plausible(DENSITY).fit(model(), np.where(np.eye(150, 4, dtype=bool), np.nan, X), y)


@pytest.mark.parametrize("options", [{"quantile": 1.5}, {"quantile": np.nan}, {"components": []}, {"components": [0]}])
def test_wrong_density(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        Plausible(HighDensity(**options))


def test_plausible_class_without_points_fails_only_as_a_target() -> None:
    X, y = iris()
    explainer = Plausible(DENSITY).fit(model(), X[y != 2], y[y != 2])
    assert explainer.explain(people(6), target=1).valid.all()
    with pytest.raises(ValueError, match=r"Class .*2.* has no density"):
        explainer.explain(people(6), target=2)


@methods
@pytest.mark.parametrize("cost", ["max", L1([1.0, 1.0]), L2([1.0] * 5), L2(matrix=np.eye(3))])
def test_wrong_costs_fail_when_the_method_is_fitted(method, cost) -> None:
    with pytest.raises(ValueError, match=r"cost|weights|columns"):
        dataclasses.replace(method, cost=cost).fit(model(), *iris())


@methods
@pytest.mark.parametrize("cost", ["l1", "l2", "mad"])
@pytest.mark.parametrize("scaled", [False, True])
def test_constant_feature(method, cost: str, scaled: bool) -> None:
    X, y = iris()
    X = np.column_stack([X, np.full(len(X), 3.0)])
    steps = [StandardScaler()] if scaled else []
    constant = make_pipeline(*steps, LogisticRegression(max_iter=2000)).fit(X, y)
    found = dataclasses.replace(method, cost=L1.mad(X) if cost == "mad" else cost).fit(constant, X, y).explain(X[::15])
    assert found.valid.all()
    np.testing.assert_array_equal(constant.predict(found.counterfactual), found.target)
    np.testing.assert_allclose(found.counterfactual[:, 4], 3.0, atol=1e-2)


def test_mixed_dtypes_and_integer_columns() -> None:
    X, y = iris()
    table = pd.DataFrame(
        {"a": (X[:, 0] * 10).astype(int), "b": X[:, 1].astype(np.float32), "c": X[:, 2] > 3, "d": X[:, 3]}
    )
    mixed = LogisticRegression(max_iter=5000).fit(table, y)
    found = Closest().fit(mixed).explain(table.iloc[::20])
    assert found.valid.all()
    np.testing.assert_array_equal(mixed.predict(found.counterfactual), found.target)


def test_float32_queries_are_confirmed_as_they_are() -> None:
    X = people(20).astype(np.float32)
    found = explain(Closest(), "tree", X)
    assert found.valid.all()
    np.testing.assert_array_equal(model("tree").predict(found.counterfactual), found.target)
    np.testing.assert_array_equal(found.factual, X.astype(float))


# --- Order, chunks, threads -------------------------------------------------------------------------------------------


@methods
@pytest.mark.parametrize("kind", ["logistic", "tree", "glvq"])
def test_chunks_threads_and_progress(method, kind: str) -> None:
    X = people(23)
    calls: list[tuple[int, int]] = []
    expected = explain(method, kind, X)
    for options in ({"chunk_size": 1}, {"chunk_size": 7, "n_jobs": 2}, {"chunk_size": 23, "n_jobs": -1}):
        calls.clear()
        found = explain(method, kind, X, progress=lambda *call: calls.append(call), **options)
        np.testing.assert_array_equal(found.target, expected.target)
        np.testing.assert_array_equal(found.status, expected.status)
        np.testing.assert_allclose(found.counterfactual, expected.counterfactual, rtol=1e-9)
        np.testing.assert_allclose(found.cost, expected.cost, rtol=1e-9)
        done = [call[0] for call in calls]
        assert done == sorted(set(done))
        assert calls[-1] == (23, 23)


def test_explaining_leaves_model_and_table_alone() -> None:
    X, y = load_wine(return_X_y=True, as_frame=True)
    wine = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    before, coef = X.copy(deep=True), wine[-1].coef_.copy()
    found = Plausible(DENSITY).fit(wine, X, y).explain(X.iloc[::10])
    pd.testing.assert_frame_equal(X, before)
    np.testing.assert_array_equal(wine[-1].coef_, coef)
    array = np.ascontiguousarray(X.iloc[::10])
    plain = Closest().fit(wine).explain(array, target=int(wine.predict(X.iloc[:1])[0]))
    plain.counterfactual[:] = 0.0
    np.testing.assert_array_equal(array, X.iloc[::10])
    assert len(found) == 18


# --- Results ----------------------------------------------------------------------------------------------------------


def mixture_of_statuses() -> Explanations:
    """Four people: optimal, already, unreachable (a class that no leaf predicts), invalid."""
    stump, _ = lost_class()
    X = iris()[0][[0, 100, 0, 0]].copy()
    X[3, 1] = np.nan
    return Closest().fit(stump).explain(X, target=[1, 1, 2, 1])


def test_every_row_is_kept_with_a_reason() -> None:
    found = mixture_of_statuses()
    assert found.status.tolist() == ["optimal", "already", "unreachable", "invalid"]
    np.testing.assert_array_equal(found.valid, [True, True, False, False])
    for reason, status in zip(found.reason, found.status, strict=True):
        assert reason.startswith(Status(status).reason)
    assert found.reason[2].endswith("No rule blocks it: with these columns there is no such point.")
    assert len(set(found.reason)) == 4
    assert all(status.reason.endswith(".") for status in Status)


def test_changes_are_counterfactual_minus_factual() -> None:
    found = mixture_of_statuses()
    np.testing.assert_allclose(found.changes[0], found.counterfactual[0] - found.factual[0])
    np.testing.assert_array_equal(found.changes[1], 0.0)
    assert np.isnan(found.changes[2:]).all()
    assert np.abs(found.changes[0]).sum() == pytest.approx(found.cost[0])
    assert np.count_nonzero(found.changes[0]) == 1, "one split is crossed by one column"
    frame = explain(Closest(), "logistic", pd.DataFrame(people(3), columns=list("abcd"), index=[5, 6, 7])).changes
    assert isinstance(frame, pd.DataFrame)
    assert frame.index.tolist() == [5, 6, 7]


def test_to_frame_has_outcome_and_counterfactual() -> None:
    found = mixture_of_statuses()
    table = found.to_frame()
    assert table.columns.tolist() == ["target", "cost", "gap", "status", "valid", "reason", "x0", "x1", "x2", "x3"]
    assert table["status"].tolist() == found.status.tolist()
    assert table["target"].tolist() == [1, 1, 2, 1]
    np.testing.assert_array_equal(table[["x0", "x1", "x2", "x3"]], found.counterfactual)
    np.testing.assert_array_equal(table["cost"], found.cost)
    assert table["valid"].dtype == bool
    people_ = pd.DataFrame(people(3), columns=["cost", "b", "target", "d"], index=["ann", "bob", "cy"])
    table = explain(Closest(), "logistic", people_).to_frame()
    assert table.index.tolist() == ["ann", "bob", "cy"]
    assert table.columns.tolist() == [
        "target_",
        "cost_",
        "gap",
        "status",
        "valid",
        "reason",
        "cost",
        "b",
        "target",
        "d",
    ]
    np.testing.assert_allclose(table["cost_"], explain(Closest(), "logistic", people_).cost)


def test_describe_names_what_changes_and_nothing_else() -> None:
    found = mixture_of_statuses()
    (j,) = np.flatnonzero(found.changes[0])
    text = found.describe(0)
    said = text.removeprefix(f"x{j}: {found.factual[0, j]:.4g} -> ")
    assert float(said) == pytest.approx(found.counterfactual[0, j], rel=1e-3)
    assert abs(float(said) - found.factual[0, j]) >= abs(found.changes[0, j])  # rounded away from the person
    for row in (1, 2, 3):
        assert found.describe(row).startswith(Status(found.status[row]).reason)


def test_describe_with_repeated_column_names() -> None:
    found = explain(Closest("l2"), "logistic", pd.DataFrame(people(2), columns=["a", "a", "b", "c"]), target=2)
    assert found.describe(0).count("a:") == 2
    assert "a:" in found._repr_html_()


def test_repr_counts_the_outcomes() -> None:
    text = repr(mixture_of_statuses())
    assert text.startswith("Explanations(4 people:")
    for status in ("optimal", "already", "unreachable", "invalid"):
        assert f"1 {status}" in text
    assert "median cost" in text
    assert len(text.splitlines()) == 1
    nobody = Closest().fit(lost_class()[0]).explain(people(2), target=2)
    assert repr(nobody) == "Explanations(2 people: 2 unreachable)"


class Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)

    def handle_data(self, data) -> None:
        self.text.append(data)


def read(page: str) -> Tags:
    parsed = Tags()
    parsed.feed(page)
    parsed.close()
    return parsed


def test_html_escapes_whatever_the_user_named() -> None:
    X, y = iris()
    evil = "<b>width</b>&<script>alert(1)</script>"
    labels = np.array(["<i>no</i>", "<i>yes</i>", "maybe"])[y]
    table = pd.DataFrame(X, columns=[evil, "b", "c", "<img src=x>"], index=[f"<u>{i}</u>" for i in range(150)])
    named = LogisticRegression(max_iter=2000).fit(table, labels)
    page = read(Closest("l2").fit(named).explain(table.iloc[::5], target="<i>yes</i>")._repr_html_())
    assert not {"b", "script", "img", "i", "u"} & set(page.tags)
    shown = "".join(page.text)
    for text in (evil, "<img src=x>", "<i>yes</i>", "<u>0</u>"):
        assert text in shown
    assert "20 more people" in shown


def test_html_shows_every_status() -> None:
    page = read(mixture_of_statuses()._repr_html_())
    shown = "".join(page.text)
    for status in Status.OPTIMAL, Status.ALREADY, Status.UNREACHABLE, Status.INVALID:
        assert status in shown
        assert status == Status.OPTIMAL or status.reason in shown
    assert page.tags.count("tr") == 5
    assert "nan" not in shown.replace("NaN or infinity", "").lower()


def test_explanations_are_values() -> None:
    found = mixture_of_statuses()
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.cost = None
    with pytest.raises(dataclasses.FrozenInstanceError):
        Closest().cost = "l2"
    assert Closest("l2", 0.1) == Closest(cost="l2", margin=0.1)


def test_nobody_confirmed_of_a_label_is_asked_further_inside() -> None:
    """At the origin all scores tie: nobody is confirmed at first, and a density has nobody to score."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X @ [1.0, 0.5] + rng.normal(scale=0.5, size=200) > 0).astype(int)
    model = LogisticRegression(fit_intercept=False).fit(X, y)
    assert model.predict(np.zeros((1, 2))) == 0
    found = Plausible(HighDensity(components=[1])).fit(model, X, y).explain(np.zeros((1, 2)), 1)
    assert found.valid.all()
