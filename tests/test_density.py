"""The region of a class lies where its mixture is dense; scipy computes the densities a second time."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from evenhand.density import ClassDensities, HighDensity
from threads import one_thread  # noqa: F401

# A threshold is lowered by 1e-9, and scipy inverts the covariances on its own.
CLOSE = 1e-6


@cache
def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "blobs":
        # Two clusters in class 0, one of them small and so dense that only it reaches high thresholds.
        rng = np.random.default_rng(7)
        Z = np.vstack([rng.normal(0, 1, (80, 2)), rng.normal(9, 0.1, (20, 2)), rng.normal(-9, 2, (60, 2))])
        return Z, np.repeat([0, 1], [100, 60])
    if name == "wine":
        return load_wine(return_X_y=True)
    X, y = load_breast_cancer(return_X_y=True)
    return PCA(5).fit_transform(X), y


@cache
def fitted(name: str, quantile: float = 0.5, components: tuple[int, ...] = (1, 2, 3)) -> ClassDensities:
    Z, y = table(name)
    return HighDensity(quantile, components).fit(Z, y, np.unique(y))


def weighted(mixture: GaussianMixture, Z: np.ndarray) -> np.ndarray:
    """log w_k + log N_k(z), by scipy and from the covariances alone."""
    parts = zip(mixture.weights_, mixture.means_, mixture.covariances_, strict=True)
    columns = [np.log(w) + multivariate_normal(m, C, allow_singular=False).logpdf(Z) for w, m, C in parts]
    return np.column_stack([np.atleast_1d(column) for column in columns])


def around(Z: np.ndarray, rng: np.random.Generator, n: int = 2000) -> np.ndarray:
    """Points of the data, moved by up to three of their spreads."""
    steps = rng.normal(size=(n, Z.shape[1])) * rng.choice([0.0, 0.3, 1.0, 3.0], (n, 1))
    return Z[rng.integers(len(Z), size=n)] + steps * Z.std(axis=0)


everywhere = pytest.mark.parametrize("name", ["blobs", "wine", "cancer"])
quantiles = pytest.mark.parametrize("quantile", [0.0, 0.25, 0.5, 0.9, 1.0])


# --- The region, and the threshold ------------------------------------------------------------------------------------


@everywhere
@quantiles
def test_threshold_is_the_quantile_of_the_largest_weighted_density(name: str, quantile: float) -> None:
    Z, y = table(name)
    model = fitted(name, quantile)
    for label, mixture in model.mixtures.items():
        reached = np.sort(weighted(mixture, Z[y == label]).max(axis=1))
        expected = reached[int(np.floor(quantile * (len(reached) - 1)))]
        assert model.log_threshold(label) == pytest.approx(expected, abs=CLOSE)


@everywhere
@quantiles
def test_region_is_where_a_component_reaches_the_threshold(name: str, quantile: float) -> None:
    Z, y = table(name)
    model = fitted(name, quantile)
    rng = np.random.default_rng(1)
    for label, mixture in model.mixtures.items():
        points = around(Z[y == label], rng)
        surplus = weighted(mixture, points).max(axis=1) - model.log_threshold(label)
        clear = np.abs(surplus) > CLOSE
        assert clear.mean() > 0.9
        np.testing.assert_array_equal(model.region(label).contains(points)[clear], surplus[clear] > 0)


@everywhere
@quantiles
def test_each_piece_is_the_ellipsoid_of_one_component(name: str, quantile: float) -> None:
    model = fitted(name, quantile)
    for label, mixture in model.mixtures.items():
        peaks = np.diagonal(weighted(mixture, mixture.means_))
        pieces = model.region(label).pieces
        assert len(pieces) == np.sum(peaks >= model.log_threshold(label)) >= 1
        for k, piece in zip(np.flatnonzero(peaks >= model.log_threshold(label)), pieces, strict=True):
            (ellipsoid,) = piece.ellipsoids
            np.testing.assert_allclose(ellipsoid.matrix @ mixture.means_[k], ellipsoid.offset)
            # On the sphere the component's weighted density is the threshold, in any direction.
            directions = np.random.default_rng(k).normal(size=(50, len(mixture.means_[k])))
            directions *= ellipsoid.radius / np.linalg.norm(directions, axis=1, keepdims=True)
            surface = np.linalg.solve(ellipsoid.matrix, (ellipsoid.offset + directions).T).T
            np.testing.assert_allclose(weighted(mixture, surface)[:, k], model.log_threshold(label), atol=1e-5)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 60),
    dim=st.integers(1, 5),
    quantile=st.floats(0.0, 1.0),
    components=st.integers(1, 4),
)
def test_every_point_of_the_region_is_dense(seed: int, n: int, dim: int, quantile: float, components: int) -> None:
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, dim)) * rng.uniform(0.1, 10, dim) + 5 * rng.integers(0, 3, (n, 1))
    model = HighDensity(quantile, [components]).fit(Z, np.zeros(n), [0.0])
    log_threshold, region = model.log_threshold(0.0), model.region(0.0)
    for piece in region.pieces:
        (ellipsoid,) = piece.ellipsoids
        steps = rng.normal(size=(100, dim))
        steps *= ellipsoid.radius * rng.uniform(0, 1, (100, 1)) / np.linalg.norm(steps, axis=1, keepdims=True)
        points = np.linalg.solve(ellipsoid.matrix, (ellipsoid.offset + steps).T).T
        assert region.contains(points).all()
        assert (model.score(points, 0.0) >= log_threshold - 1e-7).all()
    inside = region.contains(Z, tol=0.0)  # the tolerance is a length: across a needle the density falls at once
    assert (model.score(Z[inside], 0.0) >= log_threshold - 1e-7).all()
    assert inside.sum() >= max(1, n * (1 - quantile) - 1e-9)


@everywhere
@quantiles
def test_share_of_the_training_points_inside(name: str, quantile: float) -> None:
    Z, y = table(name)
    model = fitted(name, quantile)
    for label in model.mixtures:
        inside = model.region(label).contains(Z[y == label])
        assert 1 - quantile <= inside.mean() <= 1 - quantile + 2 / len(inside)


def test_largest_quantile_keeps_the_densest_point_even_on_its_mean() -> None:
    # The first point is the mean: without slack its ellipsoid has radius 0, or none at all after rounding.
    Z = np.array([[0.1, 0.7], [1.1, 0.7], [-0.9, 0.7], [0.1, 2.7], [0.1, -1.3]])
    model = HighDensity(1.0, [1]).fit(Z, np.zeros(5), [0])
    (piece,) = model.region(0).pieces
    assert 0 < piece.ellipsoids[0].radius < 1e-4
    np.testing.assert_array_equal(model.region(0).contains(Z), [True, False, False, False, False])


def test_component_that_never_reaches_the_threshold_has_no_ellipsoid() -> None:
    model = fitted("blobs", 0.9, (2,))
    assert model.mixtures[0].n_components == 2
    assert len(model.region(0)) == 1
    assert model.region(0).contains([[9.0, 9.0], [0.0, 0.0]]).tolist() == [True, False]


@everywhere
def test_score_is_the_log_density_of_the_whole_mixture(name: str) -> None:
    Z, _ = table(name)
    model = fitted(name)
    for label, mixture in model.mixtures.items():
        expected = logsumexp(weighted(mixture, Z), axis=1)
        np.testing.assert_allclose(model.score(Z, label), expected, rtol=1e-9, atol=CLOSE)
        single = Z.astype(np.float32)
        np.testing.assert_array_equal(model.score(single, label), model.score(single.astype(np.float64), label))


# --- The number of components, and the mixture ------------------------------------------------------------------------


@pytest.mark.parametrize("true", [1, 2, 4])
def test_number_of_components_is_that_of_the_clusters(true: int) -> None:
    rng = np.random.default_rng(true)
    Z = rng.normal(size=(200, 2)) + 12.0 * np.repeat(np.eye(5, 2) + np.arange(5)[:, None], 40, axis=0)[:200]
    Z = Z[: 40 * true]
    model = HighDensity().fit(Z, np.zeros(len(Z)), [0])
    assert model.mixtures[0].n_components == true


def test_mixture_is_what_em_on_the_raw_points_converges_to() -> None:
    """Standardising changes where EM starts, not what it maximises."""
    Z, y = table("blobs")
    for label, mixture in fitted("blobs", 0.5, (2,)).mixtures.items():
        own = Z[y == label]
        raw = GaussianMixture(
            2, means_init=mixture.means_, weights_init=mixture.weights_, precisions_init=mixture.precisions_
        ).fit(own)
        assert mixture.score(own) == pytest.approx(raw.score(own), abs=1e-2)


def test_mixture_is_consistent_in_all_its_parts() -> None:
    for mixture in fitted("wine").mixtures.values():
        roots = mixture.precisions_cholesky_
        np.testing.assert_allclose(mixture.precisions_, roots @ roots.transpose(0, 2, 1), rtol=1e-9)
        identity = mixture.covariances_ @ mixture.precisions_
        np.testing.assert_allclose(identity, np.broadcast_to(np.eye(13), identity.shape), atol=1e-6)
        assert np.isfinite(mixture.sample(3)[0]).all()


def test_same_inputs_give_the_same_result() -> None:
    Z, y = table("cancer")
    first, second = (HighDensity(components=[1, 2, 3]).fit(Z, y, [0, 1]) for _ in range(2))
    assert first.thresholds == second.thresholds
    for label in (0, 1):
        np.testing.assert_array_equal(first.mixtures[label].means_, second.mixtures[label].means_)
    # A class does not depend on the rows of the others, nor on where they stand.
    order = np.argsort(y, kind="stable")
    sorted_ = HighDensity(components=[1, 2, 3]).fit(Z[order], y[order], [1, 0])
    assert sorted_.thresholds == pytest.approx(first.thresholds)


def test_global_random_state_is_left_alone() -> None:
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1]  # noqa: NPY002
    Z, y = table("blobs")
    HighDensity(components=[1, 2]).fit(Z, y, [0, 1])
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


# --- Few points, constant columns, scales -----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7])
@pytest.mark.parametrize("dim", [1, 3, 20])
def test_few_points(n: int, dim: int) -> None:
    Z = np.random.default_rng(n).normal(size=(n, dim))
    model = HighDensity().fit(Z, ["few"] * n, ["few"])
    assert model.mixtures["few"].n_components <= n // 2
    inside = model.region("few").contains(Z)
    assert n / 2 <= inside.sum()
    # Without tolerance, as above: fewer points than dimensions make a needle.
    inside = model.region("few").contains(Z, tol=0.0)
    assert (model.score(Z[inside], "few") >= model.log_threshold("few") - 1e-7).all()


def test_more_components_than_points_become_fewer() -> None:
    Z = np.random.default_rng(0).normal(size=(6, 2))
    assert HighDensity(components=[50]).fit(Z, np.zeros(6), [0]).mixtures[0].n_components == 3


def test_repeated_points_count_once() -> None:
    Z = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 30, axis=0)
    model = HighDensity().fit(Z, np.zeros(90), [0])
    assert model.mixtures[0].n_components == 1
    assert model.region(0).contains(Z).mean() >= 0.5


def test_em_that_does_not_converge_stays_quiet() -> None:
    """Warnings are errors here; half of these points are fewer different ones than there are components."""
    Z = np.append(np.zeros(60), np.arange(1.0, 8.0))[:, None]
    for seed in range(5):
        model = HighDensity(components=[1, 4], folds=2, random_state=seed).fit(Z, np.zeros(67), [0])
        assert model.region(0).contains(Z).mean() >= 0.5


@pytest.mark.parametrize("copies", [1, 4])
def test_class_without_two_different_points_says_so_when_asked(copies: int) -> None:
    Z, y = table("blobs")
    Z, y = np.vstack([Z, np.full((copies, 2), 0.1)]), np.append(y, [2] * copies)
    model = HighDensity(components=[1]).fit(Z, y, [0, 1, 2, 3])
    assert list(model.missing) == [2, 3]
    assert set(model.mixtures) == {0, 1}
    asks: list[Callable[[Any], object]] = [model.region, model.log_threshold, lambda label: model.score(Z, label)]
    for ask in asks:
        with pytest.raises(ValueError, match=rf"Class 2 has no density: it has {copies} training point.*\[0, 1\].*Add"):
            ask(2)
        with pytest.raises(ValueError, match=r"Class 3 has no density: it has no training points.*Add training points"):
            ask(3)
        with pytest.raises(ValueError, match=r"Unknown label 'x'; the model knows \[0, 1, 2, 3\]"):
            ask("x")


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 1e13), (1e-120, 0.0)])
def test_differences_that_are_rounding_are_no_density(scale: float, shift: float) -> None:
    Z, y = table("blobs")
    model = HighDensity().fit(scale * Z + shift, y, [0, 1])
    with pytest.raises(ValueError, match=r"Class 0 has no density: it has 100 .*differ by more than rounding \(1e"):
        model.region(0)


@pytest.mark.parametrize("reg_covar", [1e-6, 0.0])
def test_columns_that_are_constant_equal_or_dependent(reg_covar: float) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 120))
    own = np.arange(120) < 60
    Z = np.column_stack([a, b, a, a + 2 * b, np.where(own, 0.1, b), np.full(120, 1 / 3)])
    model = HighDensity(components=[1, 2], reg_covar=reg_covar).fit(Z, own, [False, True])
    for label in (False, True):
        points = Z[own == label]
        region = model.region(label)
        assert region.contains(points).mean() == pytest.approx(0.5, abs=0.03)
        # What is the same for the whole class must stay as it is.
        moved = points.copy()
        moved[:, 5] += 0.1
        assert not region.contains(moved).any()
        torn = points.copy()
        torn[:, 2] += 0.1
        assert not region.contains(torn).any()
    moved = Z[own] + 0.1 * np.eye(6)[4]
    assert not model.region(True).contains(moved).any()


def test_superfluous_principal_components_do_not_make_a_needle() -> None:
    X, y = load_wine(return_X_y=True)
    Z = PCA().fit_transform(np.hstack([X, X]))
    model = HighDensity(components=[1]).fit(Z, y, [0, 1, 2])
    for label in range(3):
        (piece,) = model.region(label).pieces
        assert np.linalg.cond(piece.ellipsoids[0].matrix) < 1e8
        assert model.region(label).contains(Z[y == label]).mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(
    ("scale", "shift"),
    [
        (1e8, 0.0),
        (1e-6, 0.0),
        (1e-6, 1.0),
        (1.0, 1e6),
        ([1e8, 1e-3], 0.0),
        ([1e-6, 1e3], [0.0, 1e6]),
        (1e90, 0.0),
        (1e-90, 0.0),
    ],
)
def test_units_do_not_matter(scale: Any, shift: Any) -> None:
    Z, y = table("blobs")
    plain, scaled = fitted("blobs"), HighDensity(components=[1, 2, 3]).fit(Z * scale + shift, y, [0, 1])
    points = around(Z, np.random.default_rng(5))
    volume = np.log(np.broadcast_to(scale, 2)).sum()
    for label in (0, 1):
        assert scaled.log_threshold(label) + volume == pytest.approx(plain.log_threshold(label), abs=1e-5)
        score = plain.score(points, label)
        np.testing.assert_allclose(scaled.score(points * scale + shift, label) + volume, score, rtol=1e-5, atol=1e-5)
        surplus = weighted(plain.mixtures[label], points).max(axis=1) - plain.log_threshold(label)
        clear = np.abs(surplus) > 1e-3
        # Without tolerance, which is a length, and so not the same in all units.
        inside = scaled.region(label).contains(points * scale + shift, tol=0.0)
        np.testing.assert_array_equal(inside[clear], surplus[clear] > 0)


def test_too_small_regularisation_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    Z = np.random.default_rng(0).normal(size=(10, 30))  # more columns than points: no covariance has an inverse
    model = HighDensity(reg_covar=0.0).fit(Z, np.zeros(10), [0])
    assert model.region(0).contains(Z).mean() >= 0.5
    monkeypatch.setattr("evenhand.density.high_density._REGULARISATIONS", ())
    model = HighDensity(reg_covar=0.0).fit(Z, np.zeros(10), [0])
    with pytest.raises(ValueError, match=r"its 10 training points have no invertible covariance.*reg_covar=0"):
        model.region(0)


def test_numbers_of_components_that_fail_are_skipped() -> None:
    # Without regularisation 9 of 60 points in 5 dimensions often leave a component with too few; 1 always works.
    Z = np.random.default_rng(1).normal(size=(60, 5))
    model = HighDensity(components=[1, 9, 20], reg_covar=0.0).fit(Z, np.zeros(60), [0])
    assert model.mixtures[0].n_components == 1
    assert model.mixtures[0].reg_covar == 0.0


# --- Labels, and bad inputs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [["no", "yes"], [False, True], [0.0, 1.0], np.array(["a", "b"], dtype=object)])
def test_labels_of_any_kind(names: Any) -> None:
    Z, y = table("blobs")
    classes = np.asarray(names)
    model = HighDensity(components=[1]).fit(pd.DataFrame(Z), pd.Series(classes[y]), classes)
    for label in [*classes, *classes.tolist()]:
        assert model.log_threshold(label) == pytest.approx(
            fitted("blobs", 0.5, (1,)).thresholds[list(names).index(label)]
        )


def test_results_can_be_pickled() -> None:
    model = pickle.loads(pickle.dumps(fitted("blobs")))
    assert model.region(0).contains([[9.0, 9.0]]).all()
    assert HighDensity(components=range(1, 3)) == HighDensity(components=[2, 1, 2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantile": -0.1}, "quantile must be a number from 0 to 1, got -0.1"),
        ({"quantile": 1.5}, "quantile must be a number from 0 to 1, got 1.5"),
        ({"quantile": float("nan")}, "quantile must be a number from 0 to 1, got nan"),
        ({"quantile": "0.5"}, "quantile must be a number from 0 to 1, got '0.5'"),
        ({"components": []}, r"components must list whole numbers >= 1.*got \[\]"),
        ({"components": 3}, r"components must list whole numbers >= 1.*or \[3\], got 3"),
        ({"components": [0, 1]}, r"components must list whole numbers >= 1.*got \(0, 1\)"),
        ({"components": [1.5]}, r"components must list whole numbers >= 1.*got \(1.5,\)"),
        ({"folds": 1}, "folds must be a whole number from 2 to inf, got 1"),
        ({"reg_covar": -1e-6}, "reg_covar must be a number from 0 .* got -1e-06"),
        ({"random_state": None}, "random_state must be a whole number from 0 .* got None"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HighDensity(**options)


@pytest.mark.parametrize(
    ("Z", "labels", "message"),
    [
        ([[0.0], [np.nan], [1.0]], [0, 0, 1], "finite numbers.*1 of its 3 rows.*row 1. Drop, impute"),
        ([[np.inf], [2.0], [-np.inf]], [0, 0, 1], "finite numbers.*2 of its 3 rows.*row 0"),
        ([[0.0], [1e200]], [0, 0], "below 1e.100.*row 1.*rescale"),
        ([0.0, 1.0], [0, 0], r"table.*got shape \(2,\)"),
        (np.zeros((0, 2)), [], r"table.*got shape \(0, 2\)"),
        (np.zeros((2, 0)), [0, 0], r"table.*got shape \(2, 0\)"),
        ([[0.0], [1.0]], [0], r"Z has 2 rows and labels has shape \(1,\)"),
        ([[0.0], [1.0]], [[0], [0]], r"Z has 2 rows and labels has shape \(2, 1\)"),
        ([[0.0], [1.0]], [0, 7], r"1 of 2 labels are not among the classes \[0, 1\], the first is 7"),
        ([[0.0], [1.0]], ["0", "1"], r"2 of 2 labels are not among the classes \[0, 1\], the first is '0'"),
    ],
)
def test_bad_training_data(Z: Any, labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.compile(message)):
        HighDensity().fit(Z, labels, [0, 1])


def test_score_of_a_wrong_table() -> None:
    with pytest.raises(ValueError, match="features"):
        fitted("blobs").score([[0.0, 1.0, 2.0]], 0)
