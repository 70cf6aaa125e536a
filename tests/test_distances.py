"""Distances against scipy, and what makes them costs: dual norms, frames, and errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import distance
from scipy.stats import median_abs_deviation
from sklearn.datasets import load_breast_cancer, load_wine

from evenhand import L1, L2
from evenhand.costs import as_cost, as_distance
from evenhand.projection import project
from evenhand.sets import ConvexSet, Region
from strategies import costs, seeds, units_of


def tables(dim: int, seed: int = 0, n: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, dim)) * 3, rng.normal(size=(n, dim))


def by_scipy(a: np.ndarray, b: np.ndarray, measure, **options) -> np.ndarray:
    return np.array([measure(x, y, **options) for x, y in zip(a, b, strict=True)])


@pytest.mark.parametrize("dim", [1, 2, 7])
def test_against_scipy(dim: int) -> None:
    a, b = tables(dim)
    weights = np.random.default_rng(1).uniform(0.1, 9.0, dim)
    root = np.random.default_rng(2).normal(size=(dim + 3, dim))
    np.testing.assert_allclose(L1()(a, b), by_scipy(a, b, distance.cityblock))
    np.testing.assert_allclose(L2()(a, b), by_scipy(a, b, distance.euclidean))
    np.testing.assert_allclose(L1(weights)(a, b), by_scipy(a, b, distance.cityblock, w=weights))
    np.testing.assert_allclose(L2(weights)(a, b), by_scipy(a, b, distance.euclidean, w=weights))
    omega = root.T @ root
    np.testing.assert_allclose(L2(matrix=omega)(a, b), by_scipy(a, b, distance.mahalanobis, VI=omega))
    np.testing.assert_allclose(L2(matrix=np.diag(weights))(a, b), L2(weights)(a, b))


def test_mahalanobis_against_scipy() -> None:
    X = load_wine().data
    a, b = X[:50], X[60:110]
    inverse = np.linalg.inv(np.cov(X.T))
    np.testing.assert_allclose(L2.mahalanobis(X)(a, b), by_scipy(a, b, distance.mahalanobis, VI=inverse), rtol=1e-7)


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_mad_against_scipy(load) -> None:
    X = load().data
    np.testing.assert_allclose(L1.mad(X).weights, 1 / median_abs_deviation(X, axis=0))


def test_mad_of_a_column_that_hardly_varies_is_one() -> None:
    X = np.array([[1.0, 5.0, 0.0], [2.0, 5.0, 0.0], [4.0, 5.0, 0.0], [9.0, 5.0, 7.0]])
    np.testing.assert_allclose(L1.mad(X).weights, [1 / 1.5, 1.0, 1.0])
    assert L1.mad(X)([[0.0, 0.0, 0.0]], [[3.0, 1.0, 2.0]])[0] == pytest.approx(5.0)


def test_mad_and_mahalanobis_do_not_depend_on_units() -> None:
    X, b = tables(3, n=80)
    units = np.array([1e-4, 1.0, 1e5])
    for fit in (L1.mad, L2.mahalanobis):
        np.testing.assert_allclose(fit(X * units)(X * units, b * units), fit(X)(X, b), rtol=1e-6)


@settings(max_examples=60)
@given(st.data(), seeds)
def test_every_cost_is_a_norm_of_the_change(data, seed: int) -> None:
    dim = data.draw(st.integers(1, 5))
    cost = data.draw(data.draw(units_of(dim).map(costs)))
    a, b = tables(dim, seed)
    c = a[::-1]
    zero = np.zeros_like(a)
    np.testing.assert_array_equal(cost(a, a), 0.0)
    assert (cost(a, b) > 0).all()
    np.testing.assert_allclose(cost(a, b), cost(b, a))
    np.testing.assert_allclose(cost(a, b), cost(a - b, zero))
    np.testing.assert_allclose(cost(-3.0 * a, zero), 3.0 * cost(a, zero))
    assert (cost(a, c) <= (cost(a, b) + cost(b, c)) * (1 + 1e-12)).all()


@settings(max_examples=60)
@given(st.data(), seeds)
def test_frame_turns_the_cost_into_a_plain_norm(data, seed: int) -> None:
    dim = data.draw(st.integers(1, 5))
    cost = data.draw(data.draw(units_of(dim).map(costs)))
    free = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=dim, max_size=dim).filter(any)))
    frame = cost.frame(dim, free)
    xi = np.random.default_rng(seed).normal(size=(20, len(free)))
    change = np.zeros((20, dim))
    change[:, free] = xi * frame if frame.ndim == 1 else xi @ frame.T
    np.testing.assert_allclose(cost(change, np.zeros_like(change)), np.linalg.norm(xi, cost.order, axis=1), rtol=1e-7)


@settings(max_examples=60)
@given(st.data(), seeds)
def test_dual_norm_and_reach_are_the_largest_effects_of_a_unit_of_cost(data, seed: int) -> None:
    dim = data.draw(st.integers(1, 4))
    cost = data.draw(costs(np.ones(dim)))
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(3, dim))
    change = np.vstack([np.eye(dim), rng.normal(size=(4000, dim)), rows])
    if cost.order == 2:
        omega = np.diag(np.ones(dim) if cost.weights is None else cost.weights) if cost.matrix is None else cost.matrix
        change = np.vstack([change, np.linalg.solve(omega, rows.T).T])
    change /= cost(change, np.zeros_like(change))[:, None]
    effect = np.abs(change @ rows.T).max(axis=0)
    np.testing.assert_allclose(effect, cost.dual(rows), rtol=1e-9)  # attained by one of them, passed by none
    lengths = np.linalg.norm(change @ rows.T, axis=1)
    assert (lengths <= cost.reach(rows) * (1 + 1e-9)).all()
    assert lengths.max() >= 0.9 * cost.reach(rows)


def test_dual_of_no_rows() -> None:
    for cost in (L1(), L2(), L1([1.0, 2.0]), L2(matrix=np.eye(2))):
        assert cost.dual(np.zeros((0, 2))).shape == (0,)
        assert cost.reach(np.zeros((0, 2))) == 0.0


def test_one_row_against_many() -> None:
    a, b = tables(3)
    for cost in (L1(), L2(), L2(matrix=np.diag([1.0, 2.0, 3.0]))):
        np.testing.assert_allclose(cost(a, b[:1]), [cost(x[None], b[:1])[0] for x in a])
        np.testing.assert_allclose(cost(a[0], b[0]), cost(a[:1], b[:1]))
        assert cost(a[:0], b[:0]).shape == (0,)


# --- Names ------------------------------------------------------------------------------------------------------------


def test_strings_stand_for_costs_and_distances() -> None:
    a, b = tables(3)
    for name, expected in (("l1", L1()), ("l2", L2())):
        np.testing.assert_array_equal(as_cost(name)(a, b), expected(a, b))
        np.testing.assert_array_equal(as_distance(name)(a, b), expected(a, b))
        X, region = a, Region([ConvexSet(3, lower=[5.0, 5.0, 5.0])])
        np.testing.assert_array_equal(project(X, region, name).cost, project(X, region, expected).cost)
    own = L1([1.0, 2.0, 3.0])
    assert as_cost(own) is as_distance(own) is own


def test_any_function_is_a_distance_but_not_a_cost() -> None:
    def farthest(a, b):
        return np.abs(np.asarray(a) - b).max(axis=1)

    assert as_distance(farthest) is farthest
    with pytest.raises(ValueError, match='a cost is "l1"'):
        as_cost(farthest)


@pytest.mark.parametrize("name", ["L1", "l3", "", None, 1])
def test_unknown_names(name) -> None:
    with pytest.raises(ValueError, match=r"is not a known cost.*\"l1\", \"l2\", L1"):
        as_cost(name)
    with pytest.raises(ValueError, match=r"is not a known distance.*any function"):
        as_distance(name)


# --- Errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [L1, L2])
@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, -np.inf])
def test_weights_have_to_be_positive(kind, bad: float) -> None:
    with pytest.raises(ValueError, match=r"weights must be positive and finite, got .* for column 1.*immutable"):
        kind([1.0, bad, 2.0])


@pytest.mark.parametrize("kind", [L1, L2])
@pytest.mark.parametrize("weights", [3.0, [[1.0, 2.0]]])
def test_weights_are_one_number_per_column(kind, weights) -> None:
    with pytest.raises(ValueError, match="one number per column"):
        kind(weights)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, 0.0]], "square"),
        ([1.0, 2.0], "square"),
        ([[1.0, 2.0], [0.0, 1.0]], "symmetric"),
        ([[1.0, np.nan], [np.nan, 1.0]], "finite"),
        ([[np.inf, 0.0], [0.0, 1.0]], "finite"),
        ([[1.0, 2.0], [2.0, 1.0]], "positive definite"),
        ([[1.0, 1.0], [1.0, 1.0]], "positive definite"),
        ([[0.0, 0.0], [0.0, 1.0]], "positive definite"),
        ([[-1.0]], "positive definite"),
    ],
)
def test_wrong_matrices(matrix, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        L2(matrix=matrix)


def test_weights_and_matrix_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="not both"):
        L2(weights=[1.0], matrix=[[1.0]])


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (L1([1.0, 1.0]), "2 weights, the data has 3"),
        (L2([1.0, 1.0]), "2 weights"),
        (L2(matrix=np.eye(2)), "2 x 2.*3 columns"),
    ],
)
def test_wrong_sizes(cost, message: str) -> None:
    a, b = tables(3)
    with pytest.raises(ValueError, match=message):
        cost(a, b)
    with pytest.raises(ValueError, match=message):
        cost.dual(a)
    with pytest.raises(ValueError, match=message):
        cost.frame(3, np.arange(3))


@pytest.mark.parametrize("cost", [L1(), L2(), L2(matrix=np.eye(3))])
def test_tables_of_different_widths(cost) -> None:
    with pytest.raises(ValueError, match=r"shape|columns"):
        cost(np.zeros((4, 3)), np.zeros((4, 2)))


SINGULAR = {
    "constant column": np.column_stack([np.arange(9.0), np.full(9, 3.0)]),
    "equal columns": np.column_stack([np.arange(9.0), np.arange(9.0)]),
    "sum of others": np.column_stack([np.arange(9.0), np.arange(9.0) ** 2, np.arange(9.0) + np.arange(9.0) ** 2]),
    "fewer rows than columns": np.random.default_rng(0).normal(size=(3, 5)),
    "one row": np.ones((1, 2)),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_mahalanobis_of_singular_data_says_so(name: str) -> None:
    with pytest.raises(ValueError, match=r"singular.*constant or a combination of others"):
        L2.mahalanobis(SINGULAR[name])


@pytest.mark.parametrize("fit", [L1.mad, L2.mahalanobis])
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((0, 2)), "table of people"),
        (np.zeros(5), "table of people"),
        ([[0.0, np.nan], [1.0, 2.0]], "NaN or infinity"),
    ],
)
def test_fitting_to_wrong_tables(fit, X, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(X)


def test_costs_are_values() -> None:
    weights, matrix = np.array([1.0, 2.0]), np.eye(2)
    costs_ = L1(weights), L2(weights), L2(matrix=matrix)
    weights[:], matrix[:] = 9.0, 9.0
    a, b = np.zeros((1, 2)), np.ones((1, 2))
    assert [cost(a, b)[0] for cost in costs_] == pytest.approx([3.0, np.sqrt(3.0), np.sqrt(2.0)])
    with pytest.raises(ValueError, match="read-only"):
        costs_[0].weights[0] = 5.0
    with pytest.raises(AttributeError):
        costs_[0].weights = None
