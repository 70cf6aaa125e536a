"""Perturbations: their distributions, what they leave alone, their bounds, their errors."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from evenhand import Gaussian, Mask, Neighbor, Relative, Uniform
from evenhand.perturbations import learned, perturbed
from evenhand.randomness import Streams, identities, seed_of

MANY = 40_000
LEVEL = 1e-4  # seeds are fixed: a test fails for a wrong distribution, not by bad luck
ROOT = np.array([[2.0, 0.0, 0.0], [-1.0, 0.5, 0.0], [0.3, 3.0, 0.1]])
SINGULAR = np.array([[1.0, 0.0], [1.0, 0.0], [2.0, 1.0]])  # x0 and x1 move together
REFERENCE = np.random.default_rng(8).normal(size=(60, 3)) * [1.0, 10.0, 0.1]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def twice(X: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """A user's own perturbation: from minus to plus two."""
    return X + generator.uniform(-2.0, 2.0, X.shape)


def five(bounds: Any = None) -> dict[str, Any]:
    return {
        "gaussian": Gaussian([1.0, 4.0, 0.0], bounds=bounds),
        "gaussian matrix": Gaussian(ROOT @ ROOT.T, bounds=bounds),
        "uniform": Uniform([1.0, 0.2, 3.0], bounds=bounds),
        "mask": Mask(2, [0.1, 0.2, 0.3], bounds=bounds),
        "relative": Relative(Gaussian(0.5), bounds=bounds).fit(REFERENCE),
        "neighbor": Neighbor(REFERENCE, k=4, bounds=bounds),
    }


every = pytest.mark.parametrize("name", five())


# --- Gaussian ---------------------------------------------------------------------------------------------------------


def assert_moments(noise: np.ndarray, covariance: np.ndarray) -> None:
    """Mean zero and the covariance, within five standard errors of each entry."""
    n = len(noise)
    variances = np.diagonal(covariance)
    assert (np.abs(noise.mean(axis=0)) <= 5 * np.sqrt(variances / n) + 1e-12).all()
    found = noise.T @ noise / n
    error = np.sqrt((np.outer(variances, variances) + covariance**2) / n)
    assert (np.abs(found - covariance) <= 5 * error + 1e-12).all(), found


@pytest.mark.parametrize(
    ("given", "covariance"),
    [
        (2.5, 2.5 * np.eye(3)),
        (np.float32(0.25), 0.25 * np.eye(3)),
        ([1.0, 9.0, 0.0], np.diag([1.0, 9.0, 0.0])),
        (np.diag([1.0, 4.0, 0.25]), np.diag([1.0, 4.0, 0.25])),
        (ROOT @ ROOT.T, ROOT @ ROOT.T),
        (SINGULAR @ SINGULAR.T, SINGULAR @ SINGULAR.T),
        (np.zeros((3, 3)), np.zeros((3, 3))),
        (np.outer([1e6, 1.0, 1e-6], [1e6, 1.0, 1e-6]) * (ROOT @ ROOT.T), None),
    ],
    ids=["number", "float32", "vector", "diagonal", "full", "singular", "zero", "odd units"],
)
def test_gaussian_has_the_covariance(given, covariance) -> None:
    covariance = np.asarray(given) if covariance is None else covariance
    people = rng(1).normal(size=(MANY, 3))
    assert_moments(Gaussian(given)(people, rng(2)) - people, covariance)


def test_gaussian_is_normal_in_every_direction() -> None:
    moved = Gaussian(ROOT @ ROOT.T)(np.zeros((MANY, 3)), rng(3))
    for direction in rng(4).normal(size=(5, 3)):
        spread = np.linalg.norm(ROOT.T @ direction)
        assert stats.kstest(moved @ direction, "norm", args=(0.0, spread)).pvalue > LEVEL


def test_singular_covariance_keeps_to_its_directions() -> None:
    moved = Gaussian(SINGULAR @ SINGULAR.T)(np.zeros((1000, 3)), rng(5))
    assert_allclose(moved[:, 0], moved[:, 1], atol=1e-7)
    assert moved[:, 0].std() > 0.5


def test_rows_are_independent() -> None:
    moved = Gaussian(1.0)(np.zeros((MANY, 2)), rng(6))
    assert abs(np.corrcoef(moved[1:, 0], moved[:-1, 0])[0, 1]) < 5 / np.sqrt(MANY)
    assert abs(np.corrcoef(moved[:, 0], moved[:, 1])[0, 1]) < 5 / np.sqrt(MANY)


def test_covariance_of_few_people_is_possible() -> None:
    """The sample covariance of three people in five features has rank two, and eigenvalues of minus rounding."""
    some = rng(7).normal(size=(3, 5)) * [1.0, 1e3, 1e-3, 1.0, 1.0]
    covariance = np.cov(some.T)
    moved = Gaussian(covariance)(np.zeros((MANY, 5)), rng(8))
    assert_moments(moved, covariance)


# --- Uniform ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [0.7, [0.1, 2.0, 5.0]])
def test_uniform_fills_its_range(radius) -> None:
    people = np.full((MANY, 3), 3.0)
    moved = Uniform(radius)(people, rng(1)) - people
    for j, r in enumerate(np.broadcast_to(radius, 3)):
        assert np.abs(moved[:, j]).max() <= r * (1 + 1e-12)
        assert stats.kstest(moved[:, j], "uniform", args=(-r, 2 * r)).pvalue > LEVEL


def test_no_radius_no_noise() -> None:
    people = rng(2).normal(size=(50, 2))
    moved = Uniform([0.0, 1.0])(people, rng(3))
    assert_array_equal(moved[:, 0], people[:, 0])
    assert (moved[:, 1] != people[:, 1]).all()


# --- Mask -------------------------------------------------------------------------------------------------------------


@given(st.integers(1, 7), st.integers(0, 7), st.integers(0, 2**32))
def test_mask_replaces_exactly_so_many(dim: int, k: int, seed: int) -> None:
    k = min(k, dim)
    people = rng(seed).normal(size=(30, dim)) + 10.0
    moved = Mask(k)(people, rng(seed + 1))
    masked = moved == 0.0
    assert_array_equal(masked.sum(axis=1), k)
    assert_array_equal(moved[~masked], people[~masked])


@pytest.mark.parametrize("k", [1, 2, 3])
def test_mask_chooses_every_subset_equally_often(k: int) -> None:
    masked = Mask(k)(np.ones((MANY, 4)), rng(1)) == 0.0
    _, counts = np.unique(masked, axis=0, return_counts=True)
    assert len(counts) == math.comb(4, k)
    assert stats.chisquare(counts).pvalue > LEVEL


def test_mask_baselines() -> None:
    people = rng(2).normal([1.0, 2.0, 3.0], size=(500, 3))
    for baseline, expected in (
        (0.0, np.zeros(3)),
        (-7.0, np.full(3, -7.0)),
        ([5.0, 6.0, 7.0], np.array([5.0, 6.0, 7.0])),
    ):
        moved = Mask(2, baseline)(people, rng(3))
        masked = moved != people
        assert_array_equal(masked.sum(axis=1), 2)
        assert_array_equal(moved[masked], np.broadcast_to(expected, people.shape)[masked])
        assert Mask(2, baseline).fit(people + 100.0).baseline == pytest.approx(baseline), "nothing to learn"


def test_mask_learns_the_mean() -> None:
    seen, people = rng(4).normal(size=(100, 3)), rng(5).normal(size=(40, 3))
    mask = Mask(3, "mean")
    with pytest.raises(ValueError, match=r"has not seen any data: call its fit\(X\)"):
        mask(people, rng())
    fitted = mask.fit(seen)
    assert_allclose(fitted(people, rng()), np.tile(seen.sum(axis=0) / 100, (40, 1)))
    assert mask.baseline == "mean", "fit returns another one"
    with pytest.raises(ValueError, match="outside of the bounds"):
        Mask(1, "mean", bounds=(5.0, 6.0)).fit(seen)


def test_mask_leaves_the_table_alone() -> None:
    people = np.ones((5, 3))
    Mask(2)(people, rng())
    assert_array_equal(people, 1.0)


# --- Relative ---------------------------------------------------------------------------------------------------------


def columns() -> np.ndarray:
    """Of very different spread, one of them constant, with a value that has rounding error."""
    return rng(9).normal([0.0, 1e6, 3.0, 0.1], [1.0, 1e5, 1e-4, 0.0], size=(400, 4))


@pytest.mark.parametrize(
    "inner", [Gaussian(0.04), Uniform(0.2 * np.sqrt(3)), lambda X, r: X + 0.2 * r.normal(size=X.shape)]
)
def test_relative_noise_is_in_proportion_to_the_spread(inner) -> None:
    """All of these have a standard deviation of 0.2 in units of the spread."""
    seen = columns()
    people = np.tile(seen[:1], (MANY, 1))
    noise = Relative(inner).fit(seen)(people, rng(1)) - people
    assert_allclose(noise.std(axis=0)[:3] / seen.std(axis=0)[:3], 0.2, rtol=5 / np.sqrt(2 * MANY))
    assert_array_equal(noise[:, 3], 0.0)


def test_relative_follows_the_units() -> None:
    """Euros or cents: the same draw, in the other unit."""
    seen, factor = columns(), np.array([4.0, 1024.0, 0.5, 8.0])
    a = Relative(twice).fit(seen)(seen, rng(2))
    b = Relative(twice).fit(seen * factor)(seen * factor, rng(2))
    assert_allclose(b, a * factor, rtol=1e-12)


def test_relative_mask_puts_the_mean() -> None:
    seen = columns()
    for inner in (Mask(2), Mask(2, "mean")):
        moved = Relative(inner).fit(seen)(seen, rng(3))
        masked = moved != seen
        assert (masked.sum(axis=1) <= 2).all()
        assert masked[:, :3].mean() == pytest.approx(0.5, abs=0.06)
        mean = np.broadcast_to(seen.mean(axis=0), seen.shape)
        assert_allclose(moved[masked], mean[masked], rtol=1e-9, atol=1e-12)
        assert_array_equal(moved[:, 3], 0.1)


def test_relative_takes_a_given_spread_and_centre() -> None:
    people = np.full((MANY, 2), 7.0)
    given = Relative(Uniform(1.0), spread=[2.0, 0.0], centre=[0.0, 0.0])
    moved = given(people, rng(4))
    assert 8.9 < moved[:, 0].max() <= 9.0
    assert_array_equal(moved[:, 1], 7.0)
    assert_array_equal(given.fit(columns()[:, :2]).spread, [2.0, 0.0])
    half = Relative(Mask(2), spread=[2.0, 5.0]).fit(np.array([[1.0, 3.0], [3.0, 5.0]]))
    assert_allclose(half(people, rng()), np.tile([2.0, 4.0], (MANY, 1)))


def test_relative_learns_by_itself_only_if_asked() -> None:
    with pytest.raises(ValueError, match=r"does not know the features' spread: call its fit\(X\)"):
        Relative(Gaussian(1.0))(np.ones((2, 2)), rng())
    assert learned(Relative(Gaussian(1.0)), columns()).spread.shape == (4,)
    assert learned(twice, columns()) is twice


# --- Neighbor ---------------------------------------------------------------------------------------------------------


def candidates(reference: np.ndarray, x: np.ndarray, k: int, standardise: bool) -> np.ndarray:
    """The k nearest different people by comparing with everybody; more of them if the last ones are equally far."""
    unit = reference.std(axis=0) if standardise else np.ones(reference.shape[1])
    others = np.array(sorted({tuple(row) for row in reference} - {tuple(x)}))
    distance = (((others - x) / unit) ** 2).sum(axis=1)
    return others[distance <= np.sort(distance)[min(k, len(others)) - 1] * (1 + 1e-12)]


@pytest.mark.parametrize("standardise", [True, False])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_neighbors_are_the_nearest(k: int, standardise: bool) -> None:
    for people in (REFERENCE[:15], rng(1).normal(size=(15, 3)) * [1.0, 10.0, 0.1]):
        neighbor = Neighbor(REFERENCE, k=k, standardise=standardise)
        moved = neighbor(np.repeat(people, 40, axis=0), rng(2)).reshape(15, 40, 3)
        for x, drawn in zip(people, moved, strict=True):
            expected = candidates(REFERENCE, x, k, standardise)
            assert {tuple(row) for row in drawn} == {tuple(row) for row in expected}, "all k, and nobody else"


def test_units_matter_unless_standardised() -> None:
    reference = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1000.0], [5.0, 3000.0]])
    person = np.array([[0.0, 0.0]])
    assert_array_equal(Neighbor(reference, k=1, standardise=False)(person, rng()), [[1.0, 0.0]])
    stretched = reference * [1000.0, 1.0]
    assert_array_equal(Neighbor(stretched, k=1, standardise=False)(person, rng()), [[0.0, 1000.0]])
    standard = Neighbor(reference, k=1)(person, rng()) * [1000.0, 1.0]
    assert_array_equal(Neighbor(stretched, k=1)(person, rng()), standard)


@pytest.mark.parametrize("k", [2, 3, 6])
def test_neighbors_are_equally_likely(k: int) -> None:
    moved = Neighbor(REFERENCE, k=k)(np.repeat(REFERENCE[:1], MANY, axis=0), rng(3))
    _, counts = np.unique(moved, axis=0, return_counts=True)
    assert len(counts) == k
    assert stats.chisquare(counts).pvalue > LEVEL


@given(st.integers(1, 12), st.integers(0, 2**32))
def test_never_the_person_itself(k: int, seed: int) -> None:
    """Few different people, many times each, on a grid where distances tie."""
    reference = rng(seed).integers(0, 3, size=(14, 2)).astype(float)
    if len(np.unique(reference, axis=0)) < 2:
        return
    moved = Neighbor(reference, k=k, standardise=False)(reference, rng(seed + 1))
    for x, new in zip(reference, moved, strict=True):
        assert tuple(new) != tuple(x)
        assert tuple(new) in {tuple(row) for row in candidates(reference, x, k, standardise=False)}


def test_repetitions_are_one_neighbor() -> None:
    reference = np.array([[0.0]] * 5 + [[1.0]] * 20 + [[3.0]])
    moved = Neighbor(reference, k=2)(np.zeros((MANY, 1)), rng(4))
    values, counts = np.unique(moved, return_counts=True)
    assert_array_equal(values, [1.0, 3.0])
    assert stats.chisquare(counts).pvalue > LEVEL


def test_one_person_only_has_no_neighbor() -> None:
    alone = Neighbor(np.ones((4, 2)), k=2)
    with pytest.raises(ValueError, match="nobody has a neighbour"):
        alone(np.ones((1, 2)), rng())
    assert_array_equal(alone(np.zeros((1, 2)), rng()), [[1.0, 1.0]])


def test_neighbor_reads_a_frame_and_keeps_its_own_copy() -> None:
    reference = REFERENCE.copy()
    neighbor = Neighbor(pd.DataFrame(reference), k=1)
    copied = Neighbor(reference, k=1)
    expected = neighbor(REFERENCE[:5], rng())
    reference[:] = 0.0
    assert_array_equal(copied(REFERENCE[:5], rng()), expected)


# --- What all of them share -------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("bounds", [(-0.5, 0.75), ([-1.0, -2.0, 0.0], [1.0, 0.3, np.inf]), (0.0, [0.5, 0.5, 0.4])])
def test_bounds_are_kept(name: str, bounds) -> None:
    people = rng(1).normal(size=(300, 3)) * 2.0
    free, kept = five()[name](people, rng(2)), five(bounds)[name](people, rng(2))
    lower, upper = (np.broadcast_to(side, people.shape) for side in bounds)
    assert (kept >= lower).all()
    assert (kept <= upper).all()
    outside = (free < lower) | (free > upper)
    assert outside.any()
    assert_array_equal(kept[~outside], free[~outside])
    assert ((kept == lower) | (kept == upper))[outside].all(), "what falls outside is put on the bound"


@every
@given(st.integers(1, 60), st.integers(0, 2**32))
def test_more_rows_do_not_change_the_first(name: str, n: int, seed: int) -> None:
    people = rng(seed).normal(size=(60, 3))
    whole, part = (five()[name](table, rng(seed)) for table in (people, people[:n]))
    # A product of matrices may round differently for another number of rows.
    assert_allclose(part, whole[:n], rtol=0, atol=1e-13 if name == "gaussian matrix" else 0)


@every
def test_same_seed_same_noise(name: str) -> None:
    people = rng(3).normal(size=(40, 3))
    before = people.copy()
    one, same, other = (five()[name](people, rng(seed)) for seed in (4, 4, 5))
    assert_array_equal(one, same)
    assert (one != other).any()
    assert_array_equal(people, before)
    assert perturbed(five()[name], people, rng(4)).shape == people.shape


@every
def test_no_rows(name: str) -> None:
    assert five()[name](np.zeros((0, 3)), rng()).shape == (0, 3)


@every
def test_frozen(name: str) -> None:
    perturbation = five((-9.0, 9.0))[name]
    for field in dataclasses.fields(perturbation):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(perturbation, field.name, None)
        value = getattr(perturbation, field.name)
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[...] = 0.0


def test_parameters_are_copied() -> None:
    variances = np.ones(2)
    noise = Gaussian(variances)
    variances[:] = 0.0
    assert (noise(np.zeros((3, 2)), rng()) != 0).all()


# --- Errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(-1.0), r"A variance cannot be negative, got covariance = -1"),
        (lambda: Gaussian([1.0, -0.5]), "A variance cannot be negative"),
        (lambda: Gaussian([[1.0, 2.0], [2.0, 1.0]]), r"not positive semi-definite: .* eigenvalue -1"),
        (lambda: Gaussian([[-1.0, 0.0], [0.0, 1.0]]), "not positive semi-definite"),
        (lambda: Gaussian([[0.0, 0.1], [0.1, 1.0]]), "not positive semi-definite"),
        (lambda: Gaussian(1e-12 * np.array([[1.0, 2.0], [2.0, 1.0]])), "not positive semi-definite"),
        (lambda: Gaussian([[1.0, 0.5], [0.4, 1.0]]), "not symmetric"),
        (lambda: Gaussian(np.ones((2, 3))), r"a square matrix; got an array of shape \(2, 3\)"),
        (lambda: Gaussian(np.ones((2, 2, 2))), r"got an array of shape \(2, 2, 2\)"),
        (lambda: Gaussian(np.nan), "covariance must be finite"),
        (lambda: Gaussian([1.0, np.inf]), "covariance must be finite"),
        (lambda: Gaussian("wide"), "covariance must be a number or an array of numbers, got 'wide'"),
        (lambda: Gaussian([[1.0], [1.0, 2.0]]), "covariance must be a number or an array of numbers"),
        (lambda: Uniform(-0.1), r"radius must be a number >= 0, or one per feature; got -0\.1"),
        (lambda: Uniform([0.1, -0.1]), "radius must be a number >= 0"),
        (lambda: Uniform(np.eye(2)), "or one per feature"),
        (lambda: Uniform(np.nan), "radius must be finite"),
        (lambda: Uniform("far"), "radius must be a number or an array of numbers, got 'far'"),
        (lambda: Mask(-1), "n_features must be a whole number >= 0, got -1"),
        (lambda: Mask(1.5), "whole number"),
        (lambda: Mask("all"), "whole number >= 0, got 'all'"),
        (lambda: Mask(1, "median"), "baseline must be a number, one per feature, or \"mean\"; got 'median'"),
        (lambda: Mask(1, np.nan), "baseline must be finite"),
        (lambda: Mask(1, np.eye(2)), r"one per feature; got an array of shape \(2, 2\)"),
        (lambda: Mask(1, bounds=(1.0, 2.0)), r"The baseline 0\. lies outside of the bounds"),
        (lambda: Mask(1, [0.0, 5.0], bounds=(0.0, [9.0, 4.0])), "lies outside of the bounds"),
        (lambda: Relative(Gaussian(1.0), spread=[1.0, -1.0]), "spread cannot be negative"),
        (lambda: Relative(Gaussian(1.0), spread=np.nan), "spread must be finite"),
        (lambda: Relative(Gaussian(1.0), centre="middle"), "centre must be a number"),
        (lambda: Neighbor(np.ones((3, 1)), k=3), "k must be a whole number from 1 to 2, .* got 3"),
        (lambda: Neighbor(np.ones((3, 1)), k=0), "k must be a whole number from 1 to 2"),
        (lambda: Neighbor(np.ones((9, 1)), k=2.0), r"whole number .* got 2\.0"),
        (lambda: Neighbor([[1.0], [np.nan]], k=1), "X_reference must be finite"),
        (lambda: Neighbor([1.0, 2.0], k=1), r"a table of finite numbers, got shape \(2,\)"),
        (lambda: Uniform(1.0, bounds=(1.0, 0.0)), "with lower <= upper"),
        (lambda: Uniform(1.0, bounds=([0.0, 1.0], 0.5)), "with lower <= upper"),
        (lambda: Gaussian(1.0, bounds=(np.nan, 1.0)), "with lower <= upper"),
        (lambda: Gaussian(1.0, bounds=3.0), r"bounds must be a pair \(lower, upper\)"),
        (lambda: Gaussian(1.0, bounds=(0.0, 1.0, 2.0)), "bounds must be a pair"),
        (lambda: Relative(Gaussian(1.0), bounds=("low", "high")), "bounds must be a pair .* got .'low', 'high'."),
        (lambda: Neighbor(np.eye(3), k=1, bounds=(2.0, 1.0)), "with lower <= upper"),
    ],
)
def test_impossible_parameters(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("perturbation", "message"),
    [
        (Gaussian([1.0, 1.0]), "covariance is for 2 features, the table has 3"),
        (Gaussian(np.eye(4)), "covariance is for 4 features, the table has 3"),
        (Uniform([1.0]), "radius is for 1 features, the table has 3"),
        (Mask(1, [0.0, 0.0]), "baseline is for 2 features, the table has 3"),
        (Mask(4), "cannot replace 4 features: the table has 3"),
        (Relative(Gaussian(1.0), [1.0, 1.0], [0.0, 0.0]), "spread is for 2 features, the table has 3"),
        (Neighbor(np.eye(4), k=1), "X_reference is for 4 features, the table has 3"),
        (Uniform(1.0, bounds=([0.0, 0.0], 1.0)), "bounds is for 2 features, the table has 3"),
    ],
)
def test_wrong_width(perturbation, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        perturbation(np.ones((5, 3)), rng())


def test_relative_needs_something_to_scale() -> None:
    with pytest.raises(TypeError, match=r"such as Gaussian\(0\.01\); got float"):
        Relative(0.1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X, r: X[:-1], r"returned shape \(4, 3\) for a table of shape \(5, 3\)"),
        (lambda X, r: X[:, :2], r"returned shape \(5, 2\)"),
        (lambda X, r: X[0], r"returned shape \(3,\) .* one perturbed row per row"),
        (lambda X, r: None, r"returned shape \(\)"),
        (lambda X, r: np.where(np.eye(5, 3, dtype=bool), np.nan, X), "returned NaN or infinity"),
        (lambda X, r: X / np.where(X == 1, np.inf, 0.0) + np.inf, "returned NaN or infinity"),
    ],
)
def test_what_a_users_function_returns_is_checked(function, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        perturbed(function, np.ones((5, 3)), rng())


def test_a_users_function_may_return_a_list() -> None:
    moved = perturbed(lambda X, r: (X + 1).astype(int).tolist(), np.ones((2, 2)), rng())
    assert_array_equal(moved, 2.0)
    assert moved.dtype == np.float64


# --- Streams of random numbers ----------------------------------------------------------------------------------------


def test_streams_depend_on_seed_person_and_block_only() -> None:
    def numbers(seed: int, person: int, block: int) -> list[float]:
        return Streams(seed).of(np.uint64(person), block).random(4).tolist()

    one = numbers(1, 2, 3)
    assert one == numbers(1, 2, 3)
    others = [numbers(*key) for key in ((0, 2, 3), (1, 0, 3), (1, 2, 0), (2, 1, 3), (3, 2, 1))]
    assert len({tuple(row) for row in [one, *others]}) == 6


def test_identity_follows_the_label() -> None:
    index = pd.Index(["ada", "bob", "eve", "bob"])
    found = identities(index)
    assert len(set(found.tolist())) == 4, "two people of one name are two people"
    assert_array_equal(identities(index[[2, 0]]), found[[2, 0]])
    assert set(identities(index[[3, 1]]).tolist()) == set(found[[1, 3]].tolist())


def test_seeds() -> None:
    assert seed_of(7) == seed_of(np.int32(7)) == 7
    assert seed_of(rng(1)) == seed_of(rng(1)) != seed_of(rng(2))
    assert seed_of(None) != seed_of(None)
    assert 0 <= seed_of(None) < 2**63
    for wrong in (-1, 1.5, "seed", True):
        with pytest.raises(ValueError, match="random_state must be a whole number >= 0"):
            seed_of(wrong)


def test_neighbours_are_not_scaled_twice() -> None:
    with pytest.raises(TypeError, match="by itself"):
        Relative(Neighbor(np.arange(6.0)[:, None], k=2))
