"""GLVQ and GMLVQ: scikit-learn's contract, the gradient, the accuracy, and prototypes from elsewhere."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import OptimizeResult, check_grad
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from evenhand.models import quantization
from evenhand.models.lvq import GLVQ, GMLVQ

BOTH = pytest.mark.parametrize("cls", [GLVQ, GMLVQ])


def brute_force(model: Any, X: np.ndarray) -> np.ndarray:
    """Squared distances by the definition."""
    omega = getattr(model, "omega_", np.eye(X.shape[1]))
    return np.array([np.sum(((x - model.prototypes_) @ omega.T) ** 2, axis=1) for x in X])


def mean_mu(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """The cost by its definition."""
    distances, own = brute_force(model, X), model.labels_ == y[:, None]
    plus, minus = np.where(own, distances, np.inf).min(axis=1), np.where(own, np.inf, distances).min(axis=1)
    return float(np.mean((plus - minus) / (plus + minus)))


def accuracy(model: Any, X: np.ndarray, y: np.ndarray, folds: int = 5) -> float:
    return float(cross_val_score(model, X, y, cv=StratifiedKFold(folds, shuffle=True, random_state=0)).mean())


@parametrize_with_checks([GLVQ(), GMLVQ(), GMLVQ(prototypes_per_class=2)])
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


# --- the cost ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_omega", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_gradient_is_that_of_the_cost(with_omega: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, owner = rng.normal(size=(40, 4)), np.array([0, 0, 1, 2, 2])
    own = rng.integers(3, size=40)[:, None] == owner
    flat = rng.normal(size=5 * 4 + 16 * with_omega)
    error = check_grad(lambda v: quantization._cost(v, X, own)[0], lambda v: quantization._cost(v, X, own)[1], flat)
    assert error < 1e-6


@BOTH
def test_cost_is_that_of_the_definition(cls: Any) -> None:
    X, y = load_iris(return_X_y=True)
    model = cls(2, random_state=0).fit(X, y)
    flat = np.concatenate([model.prototypes_.ravel(), getattr(model, "omega_", np.zeros(0)).ravel()])
    assert quantization._cost(flat, X, model.labels_ == y[:, None])[0] == pytest.approx(mean_mu(model, X, y))


@pytest.mark.parametrize("with_omega", [False, True])
def test_sample_on_two_prototypes_costs_nothing(with_omega: bool) -> None:
    flat = np.concatenate([np.ones(4), np.eye(2).ravel() if with_omega else np.zeros(0)])
    cost, gradient = quantization._cost(flat, np.ones((3, 2)), np.array([[True, False]] * 3))
    assert cost == 0.0
    assert not gradient.any()


@BOTH
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("count", [1, 3])
def test_training_beats_its_own_start(cls: Any, load: Any, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = load(return_X_y=True)
    trained = cls(count, random_state=0).fit(X, y)
    monkeypatch.setattr(quantization, "minimize", lambda _, x0, **__: OptimizeResult(x=x0, nit=0, status=0))
    start = cls(count, random_state=0).fit(X, y)
    assert mean_mu(trained, X, y) < mean_mu(start, X, y) - 0.001
    assert trained.score(X, y) >= start.score(X, y) - 0.02


# --- accuracy ---------------------------------------------------------------------------------------------


def test_accuracy_on_raw_wine() -> None:
    X, y = load_wine(return_X_y=True)
    assert accuracy(GLVQ(3, random_state=0), X, y) > 0.65
    assert accuracy(GMLVQ(random_state=0), X, y) > 0.93  # its metric finds the scale of each feature


@BOTH
def test_accuracy_on_standardised_wine(cls: Any) -> None:
    X, y = load_wine(return_X_y=True)
    assert accuracy(make_pipeline(StandardScaler(), cls(random_state=0)), X, y) > 0.93


@pytest.mark.parametrize(("cls", "least"), [(GLVQ, 0.9), (GMLVQ, 0.93)])
def test_accuracy_on_breast_cancer(cls: Any, least: float) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    assert accuracy(make_pipeline(StandardScaler(), cls(random_state=0)), X, y) > least


def test_accuracy_on_digits() -> None:
    X, y = load_digits(return_X_y=True)
    assert accuracy(GLVQ(3, random_state=0), X, y, folds=3) > 0.93


def test_gmlvq_with_constant_pixels() -> None:
    X, y = load_digits(n_class=5, return_X_y=True)
    model = GMLVQ(random_state=0).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.9
    constant = np.ptp(X[::2], axis=0) == 0
    assert constant.any()
    assert not model.omega_[:, constant].any()


# --- the fitted model -------------------------------------------------------------------------------------


@BOTH
def test_attributes(cls: Any) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = cls(2, random_state=0).fit(X, names)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert model.labels_.tolist() == ["setosa"] * 2 + ["versicolor"] * 2 + ["virginica"] * 2
    assert model.prototypes_.shape == (6, 4)
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    assert model.n_iter_ > 1
    assert set(model.predict(X)) <= set(names)


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_omega_has_trace_one(load: Any) -> None:
    X, y = load(return_X_y=True)
    omega = GMLVQ(random_state=0).fit(X, y).omega_
    assert omega.shape == (X.shape[1], X.shape[1])
    assert np.trace(omega.T @ omega) == pytest.approx(1.0)


@BOTH
def test_predicts_label_of_nearest_prototype(cls: Any) -> None:
    X, y = load_wine(return_X_y=True)
    model = cls(3, random_state=0).fit(X, y)
    assert np.array_equal(model.predict(X), model.labels_[brute_force(model, X).argmin(axis=1)])


@BOTH
def test_decision_function_agrees_with_predict(cls: Any) -> None:
    X, y = load_iris(return_X_y=True)
    model = cls(2, random_state=0).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (150, 3)
    assert np.array_equal(model.classes_[scores.argmax(axis=1)], model.predict(X))
    assert ((scores > 0).sum(axis=1) == 1).all()
    # The score of a sample's own class is -mu.
    assert -scores[np.arange(150), y].mean() == pytest.approx(mean_mu(model, X, y))

    two = cls(2, random_state=0).fit(X[50:], y[50:])
    assert two.decision_function(X[50:]).shape == (100,)
    assert np.array_equal(np.where(two.decision_function(X[50:]) > 0, 2, 1), two.predict(X[50:]))


@BOTH
def test_same_seed_same_model(cls: Any) -> None:
    X, y = load_iris(return_X_y=True)
    first, again, other = (cls(3, random_state=seed).fit(X, y) for seed in (0, 0, 1))
    assert np.array_equal(first.prototypes_, again.prototypes_)
    assert not np.array_equal(first.prototypes_, other.prototypes_)
    by_state = [cls(3, random_state=np.random.RandomState(7)).fit(X, y).prototypes_ for _ in range(2)]
    assert np.array_equal(*by_state)


@BOTH
def test_class_with_fewer_samples_than_prototypes(cls: Any) -> None:
    X, y = load_iris(return_X_y=True)
    keep = np.r_[0:50, 50, 51, 51, 100:150]  # class 1: three samples, two of them the same
    model = cls(5, random_state=0).fit(X[keep], y[keep])
    assert np.bincount(model.labels_).tolist() == [5, 2, 5]
    assert model.score(X[keep], y[keep]) > 0.9


@BOTH
def test_classes_with_the_same_centre(cls: Any) -> None:
    X = np.repeat([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], 10, axis=0)
    y = np.repeat([0, 0, 1, 1], 10)
    assert cls(2, random_state=0).fit(X, y).score(X, y) == 1.0
    assert cls(1, random_state=0).fit(X, y).n_iter_ > 0


# --- numbers of every size --------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("power", [-1000, -60, 60, 1000])
def test_unit_of_the_inputs_does_not_matter(cls: Any, power: int) -> None:
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model, scaled = (cls(2, random_state=0).fit(Z, y) for Z in (X, np.ldexp(X, power)))
        assert np.array_equal(np.ldexp(model.prototypes_, power), scaled.prototypes_)
        assert np.array_equal(model.predict(X), scaled.predict(np.ldexp(X, power)))
        assert np.array_equal(model.decision_function(X), scaled.decision_function(np.ldexp(X, power)))


def test_gmlvq_unit_of_each_feature_does_not_matter() -> None:
    X, y = load_iris(return_X_y=True)
    powers = np.array([-400, -3, 0, 400])
    model, scaled = (GMLVQ(2, random_state=0).fit(Z, y) for Z in (X, np.ldexp(X, powers)))
    assert np.array_equal(model.predict(X), scaled.predict(np.ldexp(X, powers)))
    assert np.linalg.norm(scaled.omega_) == pytest.approx(1.0)


@pytest.mark.parametrize("constant", [0.0, 1e-300, 0.1, 1e300])
def test_gmlvq_ignores_a_constant_feature(constant: float) -> None:
    X, y = load_iris(return_X_y=True)
    X = X * 1e100
    model = GMLVQ(random_state=0).fit(np.column_stack([X, np.full(150, constant)]), y)
    assert not model.omega_[:, 4].any()
    without = GMLVQ.from_prototypes(model.prototypes_[:, :4], model.labels_, model.omega_[:, :4])
    assert np.array_equal(model.predict(np.column_stack([X, np.zeros(150)])), without.predict(X))
    assert without.score(X, y) > 0.9


@BOTH
def test_inputs_far_from_the_origin(cls: Any) -> None:
    X, y = load_iris(return_X_y=True)
    model = cls(random_state=0).fit(X + 1e9, y)
    assert model.score(X + 1e9, y) > 0.9


@BOTH
@pytest.mark.parametrize("largest", [1e155, 1e300, 1.7e308])
def test_huge_numbers_are_not_nan(cls: Any, largest: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1.0, 1.0, size=(60, 3)) * largest, np.arange(60) % 2
    X[:, 0] = np.where(y == 1, 1.0, -1.0) * np.abs(X[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # scikit-learn looks for infinities by a sum, which overflows by itself.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"numpy\._core\.fromnumeric")
        model = cls(random_state=0).fit(X, y)
        assert np.isfinite(model.prototypes_).all()
        assert model.score(X, y) > 0.9
        assert np.isfinite(model.decision_function(X)).all()
        small = cls(random_state=0).fit(X / largest, y)
        assert np.isfinite(small.decision_function(X)).all()
        assert set(small.predict(X)) <= {0, 1}


@BOTH
def test_inputs_that_are_all_the_same(cls: Any) -> None:
    X, y = np.full((6, 2), 0.1), np.arange(6) % 2
    model = cls(3, random_state=0).fit(X, y)
    assert np.isfinite(model.prototypes_).all()
    assert np.isfinite(model.decision_function(X)).all()


# --- prototypes from elsewhere ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_from_prototypes_equals_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prototypes, X = rng.normal(size=(7, 4)), rng.normal(size=(200, 4))
    labels = np.array(["b", "a", "c", "a", "b", "c", "a"])
    for model in (
        GLVQ.from_prototypes(prototypes, labels),
        GMLVQ.from_prototypes(prototypes, labels, 1e-9 * rng.normal(size=(4, 4))),
        GMLVQ.from_prototypes(prototypes.tolist(), labels.tolist(), rng.normal(size=(2, 4))),
    ):
        assert model.classes_.tolist() == ["a", "b", "c"]
        assert model.labels_.tolist() == labels.tolist()
        assert np.array_equal(model.prototypes_, prototypes)
        assert model.n_iter_ == 0
        assert np.array_equal(model.predict(X), labels[brute_force(model, X).argmin(axis=1)])


def test_from_prototypes_round_trip() -> None:
    X, y = load_wine(return_X_y=True, as_frame=True)
    glvq, gmlvq = GLVQ(2, random_state=0).fit(X, y), GMLVQ(2, random_state=0).fit(X, y)
    table = pd.DataFrame(glvq.prototypes_, columns=X.columns)
    copy = GLVQ.from_prototypes(table, glvq.labels_)
    assert copy.feature_names_in_.tolist() == X.columns.tolist()
    assert np.array_equal(copy.predict(X), glvq.predict(X))
    table = pd.DataFrame(gmlvq.prototypes_, columns=X.columns)
    same = GMLVQ.from_prototypes(table, gmlvq.labels_, gmlvq.omega_)
    assert np.array_equal(same.decision_function(X), gmlvq.decision_function(X))
    assert clone(copy).fit(X, y).prototypes_.shape == glvq.prototypes_.shape


def test_from_prototypes_keeps_its_own_copy() -> None:
    prototypes, labels, omega = np.array([[0.0], [1.0]]), np.array([0, 1]), np.array([[1.0]])
    model = GMLVQ.from_prototypes(prototypes, labels, omega)
    prototypes[:], labels[:], omega[:] = 9.0, 9, 0.0
    assert model.predict([[0.1], [0.9]]).tolist() == [0, 1]


def test_first_of_equally_near_prototypes_decides() -> None:
    model = GLVQ.from_prototypes([[2.0, 0.0], [0.0, 0.0], [1.0, 1.0]], ["z", "a", "m"])
    assert model.predict([[1.0, 0.0], [1.0, 7.0]]).tolist() == ["z", "m"]
    assert GLVQ.from_prototypes([[1.0], [1.0]], [5, 3]).predict([[4.0]]).tolist() == [5]


@pytest.mark.parametrize(
    ("prototypes", "labels", "message"),
    [
        ([[0.0], [np.nan]], [0, 1], "prototypes contains NaN"),
        ([[0.0], [np.inf]], [0, 1], "prototypes contains infinity"),
        ([0.0, 1.0], [0, 1], "Expected 2D array"),
        ([[0.0], [1.0]], [0, 1, 2], "labels must hold one label for each of 2 prototypes, got (3,)"),
        ([[0.0], [1.0]], [[0], [1]], "labels must hold one label for each of 2 prototypes, got (2, 1)"),
        ([[0.0], [1.0]], ["a", "a"], "GLVQ needs at least 2 classes, got 1 class: ['a']"),
        ([[0.0], [1.0]], [0.5, 1.5], "Unknown label type"),
    ],
)
def test_from_prototypes_refuses(prototypes: Any, labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        GLVQ.from_prototypes(prototypes, labels)


@pytest.mark.parametrize(
    ("omega", "message"),
    [
        (np.eye(3), "one column for each of 2 features and not be all zero, got shape (3, 3)"),
        (np.zeros((2, 2)), "not be all zero, got shape (2, 2) and largest entry 0.0"),
        ([[np.nan, 1.0]], "omega contains NaN"),
    ],
)
def test_from_prototypes_refuses_omega(omega: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        GMLVQ.from_prototypes(np.eye(2), [0, 1], omega)


# --- bad use ----------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"prototypes_per_class": 0}, "prototypes_per_class must be an integer of at least 1, got 0"),
        ({"prototypes_per_class": 1.5}, "prototypes_per_class must be an integer of at least 1, got 1.5"),
        ({"prototypes_per_class": True}, "prototypes_per_class must be an integer of at least 1, got True"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1, got 0"),
        ({"tol": -1.0}, "tol must be a finite number of at least 0, got -1.0"),
        ({"tol": np.nan}, "tol must be a finite number of at least 0, got nan"),
        ({"tol": "small"}, "tol must be a finite number of at least 0, got 'small'"),
    ],
)
def test_bad_parameters(cls: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        cls(**parameters).fit([[0.0], [1.0]], [0, 1])


@BOTH
def test_one_class_is_refused(cls: Any) -> None:
    with pytest.raises(ValueError, match=r"needs at least 2 classes, got 1 class: \['yes'\]"):
        cls().fit([[0.0], [1.0]], ["yes", "yes"])


@BOTH
def test_not_fitted(cls: Any) -> None:
    with pytest.raises(NotFittedError):
        cls().predict([[0.0]])


@BOTH
def test_warns_when_iterations_run_out(cls: Any) -> None:
    X, y = load_wine(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter=2 before it reached tol=1e-05"):
        assert cls(3, max_iter=2, random_state=0).fit(X, y).n_iter_ == 2
