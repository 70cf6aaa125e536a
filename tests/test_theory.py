"""Theory against simulation: every mean, probability and bound is met by the library's own counterfactuals."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand import L1, L2, Closest, Explainer, HighDensity, Plausible, Status, theory
from evenhand.models import view
from evenhand.projection import project
from evenhand.sets import ConvexSet, Ellipsoid, Region

DRAWS = 60_000
SURE = 4.5  # standard errors: one false alarm in 150,000
W = np.array([0.8, -1.7, 0.4, 2.3, -0.6, 1.1])
B = 0.35
D = len(W)
X0 = np.array([0.3, 0.5, -0.2, 0.4, 1.0, -0.3])  # at a distance of 0.11 from the boundary: noise often crosses it
FAR = X0 + 3 * W / np.linalg.norm(W)
TOUCH = 1e-8  # how far rounding, and the distance kept from the boundary because of it, move an answer


def linear(w: np.ndarray, b: float = 0.0) -> LogisticRegression:
    """A model that says 1 where w @ x + b > 0, and 0 elsewhere."""
    w = np.asarray(w, dtype=float)
    model = LogisticRegression().fit(np.vstack([w, -w]), [1, 0])
    model.coef_, model.intercept_ = w[None], np.array([float(b)])
    return model


def covariance(seed: int = 0, d: int = D) -> np.ndarray:
    root = np.random.default_rng(seed).normal(size=(d, d)) * np.geomspace(0.2, 1.5, d)
    return root @ root.T / d


def gaussian(S: np.ndarray, seed: int = 0, n: int = DRAWS) -> np.ndarray:
    return np.random.default_rng(seed).multivariate_normal(np.zeros(len(S)), S, size=n)


def uniform(radius: float | np.ndarray, d: int = D, seed: int = 0, n: int = DRAWS) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, size=(n, d)) * radius


def masked(x: np.ndarray, k: int, baseline: float | np.ndarray = 0.0, seed: int = 0, n: int = DRAWS) -> np.ndarray:
    order = np.argsort(np.random.default_rng(seed).random((n, len(x))), axis=1)
    return np.where(order < k, baseline, x)


def answers(explainer: Explainer, x0: np.ndarray, X: np.ndarray, *, kept: bool = False) -> tuple[np.ndarray, ...]:
    """How each counterfactual differs from that of x0, what that of x0 costs, and whose target was swapped."""
    model = explainer.view
    own = model.predict(x0[None])[0]
    first = explainer.explain(x0[None])
    swapped = model.predict(X) != own
    target = first.target[0] if kept else np.where(swapped, own, first.target[0])
    found = explainer.explain(X, target=target)
    assert first.valid.all()
    assert found.valid.all()
    return found.counterfactual - first.counterfactual, first.cost[0], swapped


def moved(
    w: np.ndarray, b: float, x0: np.ndarray, X: np.ndarray, cost: Any = "l2", *, margin: float = 0.0, kept: bool = False
) -> np.ndarray:
    """How far apart the closest counterfactuals of a linear model are, as vectors."""
    return answers(Closest(cost, margin=margin).fit(linear(w, b)), x0, X, kept=kept)[0]


def squares(vectors: np.ndarray) -> np.ndarray:
    return (vectors**2).sum(axis=1)


def agree(sample: np.ndarray, expected: float, slack: float = 0.0) -> None:
    error = sample.std(ddof=1) / np.sqrt(len(sample))
    assert abs(sample.mean() - expected) <= SURE * error + slack + 1e-9, (sample.mean(), expected, error)


def below(sample: np.ndarray, bound: float) -> None:
    """The mean is below the bound, as far as the sample tells."""
    assert sample.mean() <= bound + SURE * sample.std(ddof=1) / np.sqrt(len(sample)) + 1e-9


def on_sphere(eps: float, d: int, p: float, seed: int = 0, n: int = 5000) -> np.ndarray:
    """Noise of p-norm eps exactly, some of it along an axis."""
    noise = np.random.default_rng(seed).normal(size=(n, d))
    noise = np.vstack([noise, np.eye(d), -np.eye(d)])
    return eps * noise / np.linalg.norm(noise, p, axis=1)[:, None]


# Row 1


def two_sides(left: float, right: float) -> DecisionTreeClassifier:
    """1 below -left and above right, 0 between."""
    X = np.array([-left - 0.1, -left + 0.1, right - 0.1, right + 0.1])[:, None]
    return DecisionTreeClassifier(random_state=0).fit(X, [1, 0, 0, 1])


def test_the_general_bound_is_nearly_attained() -> None:
    eps = 0.1
    explainer = Closest("l2").fit(two_sides(1.0, 1.199))
    change, cost, swapped = answers(explainer, np.zeros(1), np.linspace(-eps, eps, 2001)[:, None])
    bound = theory.movement_bound(cost, eps)
    assert cost == pytest.approx(1.0)
    assert not swapped.any()
    assert np.abs(change).max() <= bound
    assert np.abs(change).max() >= 0.999 * bound


@cache
def neighbours() -> KNeighborsClassifier:
    rng = np.random.default_rng(3)
    return KNeighborsClassifier(n_neighbors=1).fit(rng.normal(size=(24, 2)), rng.integers(3, size=24))


@pytest.mark.parametrize(("cost", "p"), [("l1", 1), ("l2", 2)])
def test_the_general_bound_holds_with_and_without_a_swap(cost: str, p: int) -> None:
    explainer = Closest(cost).fit(neighbours())
    rng, eps, swaps, worst = np.random.default_rng(4), 0.3, 0, 0.0
    for x0 in rng.normal(size=(25, 2)):
        change, near, swapped = answers(explainer, x0, x0 + on_sphere(eps, 2, p, n=200))
        size = np.linalg.norm(change, p, axis=1)
        assert (size[~swapped] <= theory.movement_bound(near, eps) + TOUCH).all()
        assert (size[swapped] <= theory.movement_bound(near, eps, swapped=True) + TOUCH).all()
        swaps += swapped.sum()
        worst = max(worst, (size / theory.movement_bound(near, eps)).max())
    assert swaps > 100
    assert worst > 0.7  # people between two cells do move this far


# Row 1b: the people of label 0 live far from the boundary, those of label 1 near it


@cache
def lopsided() -> Explainer:
    rng = np.random.default_rng(5)
    X = np.vstack([rng.normal([-8.0, 0.0], 0.3, (200, 2)), rng.normal([1.0, 0.0], 0.3, (200, 2))])
    return Plausible(HighDensity(components=[1]), cost="l2").fit(linear([1.0, 0.0]), X, np.repeat([0, 1], 200))


def test_a_swap_breaks_the_bound_for_plausible_counterfactuals() -> None:
    eps, x0 = 0.2, np.array([-0.1, 0.0])
    X = x0 + on_sphere(eps, 2, 2, n=300)
    change, cost, swapped = answers(lopsided(), x0, X)
    size = np.linalg.norm(change, axis=1)
    assert 50 < swapped.sum() < 250
    assert (size[swapped] > 3 * theory.movement_bound(cost, eps)).all()
    assert (size[~swapped] <= theory.movement_bound(cost, eps, plausible=True) + TOUCH).all()
    with pytest.raises(ValueError, match=r"swapped=True and plausible=True: no bound holds.*same target"):
        theory.movement_bound(cost, eps, swapped=True, plausible=True)


def test_with_the_target_kept_the_bound_holds_for_plausible_counterfactuals() -> None:
    eps, x0 = 0.2, np.array([-0.1, 0.0])
    change, cost, swapped = answers(lopsided(), x0, x0 + on_sphere(eps, 2, 2, n=300), kept=True)
    assert swapped.any()
    assert np.linalg.norm(change, axis=1).max() <= theory.movement_bound(cost, eps, plausible=True) + TOUCH


# Row 2


@pytest.mark.parametrize(("cost", "p"), [("l1", 1), ("l2", 2)])
def test_the_distance_to_the_boundary_has_the_dual_norm(cost: str, p: int) -> None:
    X = np.random.default_rng(0).normal(size=(200, D))
    found = Closest(cost).fit(linear(W, B)).explain(X)
    assert [theory.boundary_distance(W, B, x, p) for x in X] == pytest.approx(found.cost)


def test_the_distance_in_other_norms() -> None:
    def gap(change: np.ndarray) -> float:
        return float(W @ (X0 + change) + B)

    cubes = minimize(
        lambda change: (np.abs(change) ** 3).sum(),
        -0.1 * np.sign(W),
        constraints={"type": "eq", "fun": gap},
        tol=1e-14,
        options={"maxiter": 1000},
    )
    assert theory.boundary_distance(W, B, X0, 3) == pytest.approx(cubes.fun ** (1 / 3), rel=1e-5)
    rows = np.vstack([np.c_[np.eye(D), -np.ones(D)], np.c_[-np.eye(D), -np.ones(D)]])
    largest = linprog(
        np.r_[np.zeros(D), 1], rows, np.zeros(2 * D), np.r_[W, 0][None], [-gap(np.zeros(D))], (None, None)
    )
    assert theory.boundary_distance(W, B, X0, np.inf) == pytest.approx(largest.fun)


def test_the_printed_normalisation_is_broken_and_the_corrected_bound_is_not() -> None:
    w, x0, eps = np.array([0.5, 0.5]), np.array([1.0, 1.0]), 0.1
    assert np.linalg.norm(w, 1) == 1  # as the paper wants it for p = 1
    printed = abs(w @ x0)
    best = Closest("l1").fit(linear(w)).explain(x0[None])
    assert printed == 1
    assert best.cost[0] == pytest.approx(2.0)  # twice what the paper says
    assert theory.boundary_distance(w, 0.0, x0, 1) == pytest.approx(best.cost[0])
    # Two counterfactuals of the very same person, both as close as the closest, are farther apart than printed.
    # Weights that differ by a hair tell the library which of them to take.
    ties = [Closest(L1(weights=c)).fit(linear(w)).explain(x0[None]) for c in ([1, 1 + 1e-7], [1 + 1e-7, 1])]
    assert [tie.cost[0] for tie in ties] == pytest.approx([2.0, 2.0])
    apart = np.abs(ties[0].counterfactual - ties[1].counterfactual).sum()
    assert apart == pytest.approx(4.0)
    assert 2 * eps + 2 * printed < apart < theory.linear_bound(w, 0.0, x0, eps, 1)
    with pytest.raises(ValueError, match=r"Features \[0, 1\] all have the largest.*linear_bound covers ties"):
        theory.unique_minimiser_bound(w, eps, 1)


@pytest.mark.parametrize("x0", [X0, FAR])
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(("cost", "p"), [("l1", 1), ("l2", 2)])
def test_a_unique_counterfactual_moves_as_far_as_stated_and_no_farther(
    cost: str, p: int, kept: bool, x0: np.ndarray
) -> None:
    eps = 0.4
    along = np.linalg.svd(W[None])[2][1:]  # in l2 this moves farthest, in l1 the feature with the second largest weight
    noise = np.vstack([on_sphere(eps, D, p), eps * along / np.linalg.norm(along, p, axis=1)[:, None]])
    size = np.linalg.norm(moved(W, B, x0, x0 + noise, cost, kept=kept), p, axis=1)
    bound = theory.unique_minimiser_bound(W, eps, p)
    assert size.max() <= bound + TOUCH
    assert bound <= theory.linear_bound(W, B, x0, eps, p)
    if not kept:
        assert size.max() == pytest.approx(bound)


def test_other_norms_move_at_most_twice_as_far() -> None:
    eps, w = 0.4, np.full(40, 1.0)
    noise = np.where(np.eye(40) > 0, eps, -eps)  # of infinity norm eps
    change = noise - np.outer(noise @ w, np.sign(w)) / np.abs(w).sum()  # the closest point moves all features alike
    size = np.abs(change).max()
    assert 1.9 * eps < size <= theory.unique_minimiser_bound(w, eps, np.inf) == theory.unique_minimiser_bound(w, eps, 3)
    with pytest.raises(ValueError, match="w is 0 for feature 1, so that with p = inf many points"):
        theory.unique_minimiser_bound([1.0, 0.0], eps, np.inf)


# Rows 3 and 4


@pytest.mark.parametrize("x0", [X0, FAR])
@pytest.mark.parametrize("S", [0.49, np.geomspace(0.1, 2.0, D), covariance()], ids=["one", "per feature", "matrix"])
def test_gaussian_mean(S: Any, x0: np.ndarray) -> None:
    full = np.diag(np.broadcast_to(S, D)) if np.ndim(S) < 2 else S
    agree(squares(moved(W, B, x0, x0 + gaussian(full))), theory.gaussian_mean(W, S))


def test_standard_normal_noise_moves_by_one_dimension_less() -> None:
    assert theory.gaussian_mean(W, 1.0) == pytest.approx(D - 1)
    agree(squares(moved(W, B, X0, X0 + gaussian(np.eye(D)))), D - 1)


def test_any_noise_of_the_same_covariance_and_a_mean() -> None:
    drift = np.linspace(-1, 1, D)
    noise = np.random.default_rng(2).exponential(size=(DRAWS, D)) - 1
    agree(squares(moved(W, B, X0, X0 + noise)), theory.gaussian_mean(W, 1.0))
    agree(squares(moved(W, B, X0, X0 + noise + drift)), theory.gaussian_mean(W, 1.0, mean=drift))


@pytest.mark.parametrize("x0", [X0, X0 + 0.2 * W, X0 - 0.25 * W], ids=["near", "farther", "below"])
def test_a_margin_costs_those_who_cross(x0: np.ndarray) -> None:
    S, margin = covariance(1), 0.8
    people = x0 + gaussian(S)
    sample = squares(moved(W, B, x0, people, margin=margin))
    agree(sample, theory.gaussian_mean_with_margin(W, B, x0, S, margin))
    more = theory.gaussian_mean_with_margin(W, B, x0, S, margin) - theory.gaussian_mean(W, S)
    agree(sample - squares(moved(W, B, x0, people)), more)  # person by person: much sharper
    assert theory.gaussian_mean_with_margin(W, B, x0, S, 0.0) == pytest.approx(theory.gaussian_mean(W, S))
    assert theory.gaussian_mean_with_margin(7 * W, 7 * B, x0, S, 1) == pytest.approx(
        theory.gaussian_mean_with_margin(W, B, x0, S, 1)
    )


@pytest.mark.parametrize("x0", [X0, X0 + 0.2 * W, X0 - 0.25 * W], ids=["near", "farther", "below"])
def test_with_the_target_kept_who_crosses_stays(x0: np.ndarray) -> None:
    S = covariance(1)
    people = x0 + gaussian(S)
    sample = squares(moved(W, B, x0, people, kept=True))
    agree(sample, theory.gaussian_mean_target_kept(W, B, x0, S))
    more = theory.gaussian_mean_target_kept(W, B, x0, S) - theory.gaussian_mean(W, S)
    agree(sample - squares(moved(W, B, x0, people)), more)  # person by person: much sharper
    assert more > 0


def test_noise_along_the_boundary_never_crosses_it() -> None:
    S = np.diag([0.0, 1.0])
    assert theory.gaussian_mean_with_margin([1.0, 0.0], 0.0, [0.0, 0.0], S, 1.0) == 1
    assert theory.gaussian_mean_target_kept([1.0, 0.0], 0.0, [0.0, 0.0], S) == 1


# Row 5


@pytest.mark.parametrize("S", [0.5 * np.eye(D), covariance(2)], ids=["isotropic", "matrix"])
def test_the_distribution_under_gaussian_noise(S: np.ndarray) -> None:
    sample = squares(moved(W, B, X0, X0 + gaussian(S, seed=8)))
    centred = (sample - theory.gaussian_mean(W, S)) ** 2
    agree(centred, theory.gaussian_variance(W, S))
    for level in (0.05, 0.3, 0.7, 0.95, 0.999):
        delta = np.quantile(sample, level)
        exact, markov = (theory.gaussian_tail(W, S, delta, method=m) for m in ("exact", "markov"))
        agree(sample >= delta, exact)
        assert exact <= markov
    assert theory.gaussian_tail(W, S, 1e-3, method="markov") == 1


@pytest.mark.parametrize(
    "weights",
    [
        [1.0, 0.4],
        [1.0, 1e-3],
        [1.0, 1e-8],
        [2.0, 1.0, 0.5],
        [5.0, 1e-2, 1e-6],
        [1.0, 0.9, 0.8, 0.7, 0.6, 0.5],
        [1.0, 1e-1, 1e-2, 1e-3, 1e-4, 0.0],
        [3.0, 3.0, 3.0],
    ],
    ids=str,
)
def test_imhof_against_simulation(weights: list[float]) -> None:
    sample = np.random.default_rng(9).chisquare(1, size=(300_000, len(weights))) @ weights
    for level in (0.001, 0.1, 0.5, 0.9, 0.999):
        x = np.quantile(sample, level)
        agree(sample >= x, theory.imhof(weights, x))


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.5), (1.0, 1e-3), (1.0, 1e-8), (1e5, 1e-5)])
def test_imhof_where_weights_come_in_pairs(a: float, b: float) -> None:
    # A pair is an exponential variable, and the sum of two of these has a closed form.
    for x in a * np.geomspace(1e-9, 1000, 40):
        exact = (a * np.exp(-x / (2 * a)) - b * np.exp(-x / (2 * b))) / (a - b)
        assert theory.imhof([a, b, a, b], x) == pytest.approx(exact, rel=1e-8, abs=0)


def test_imhof_at_the_ends() -> None:
    assert theory.imhof([1.0, 2.0], 0.0) == theory.imhof([1.0, 2.0], -3.0) == theory.imhof([0.0], 0.0) == 1
    assert theory.imhof([0.0, 0.0], 1.0) == theory.imhof([], 1.0) == theory.imhof([1.0, 2.0], 1e9) == 0
    assert theory.gaussian_tail([2.0], 1.0, 0.1) == 0  # on a line the counterfactual is one point
    with pytest.raises(ValueError, match=r"weights must be >= 0, got -1\.0"):
        theory.imhof([1.0, -1.0], 1.0)


# Rows 6 and 7


@pytest.mark.parametrize("radius", [0.7, np.geomspace(0.2, 3.0, D)], ids=["one", "per feature"])
def test_uniform_noise(radius: Any) -> None:
    sample = squares(moved(W, B, X0, X0 + uniform(radius)))
    mean, variance = theory.uniform_mean(W, radius), theory.uniform_variance(W, radius)
    agree(sample, mean)
    agree((sample - mean) ** 2, variance)
    for level in (0.1, 0.5, 0.9, 0.99, 0.9999):
        delta = np.quantile(sample, level)
        for method in ("markov", "cantelli"):
            below(sample >= delta, theory.uniform_tail(W, radius, delta, method=method))
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * D)).reshape(D, -1).T * radius
    largest = theory.uniform_largest(W, radius)
    assert sample.max() <= largest + TOUCH
    assert squares(moved(W, B, X0, X0 + corners)).max() == pytest.approx(largest)


def test_cantelli_is_sharper_far_out_and_says_nothing_below_the_mean() -> None:
    mean, largest = theory.uniform_mean(W, 1.0), theory.uniform_largest(W, 1.0)
    far = 0.9 * largest
    assert theory.uniform_tail(W, 1.0, far, "cantelli") < theory.uniform_tail(W, 1.0, far, "markov")
    assert theory.uniform_tail(W, 1.0, mean / 2, "cantelli") == theory.uniform_tail(W, 1.0, mean / 2, "markov") == 1


def test_the_printed_uniform_tail_is_broken_and_the_corrected_ones_are_not() -> None:
    w, eps, delta = np.array([1.0, 0.0]), 1.0, 0.1
    x0 = np.array([0.2, 0.3])
    sample = squares(moved(w, 0.0, x0, x0 + uniform(eps, 2)))
    share = (sample >= delta).mean()
    assert share == pytest.approx(0.684, abs=0.01)
    printed = theory.uniform._printed_uniform_tail(w, eps, delta)
    assert printed == pytest.approx(0.0333, abs=1e-4)
    assert share > 20 * printed
    assert share <= theory.uniform_tail(w, eps, delta, "markov")
    assert share <= theory.uniform_tail(w, eps, delta, "cantelli")
    # Where delta is large enough to be informative, too:
    assert (sample >= 0.5).mean() > theory.uniform._printed_uniform_tail(w, eps, 0.5)
    assert (sample >= 0.5).mean() <= theory.uniform_tail(w, eps, 0.5) == pytest.approx(2 / 3)


# Row 8


@pytest.mark.parametrize("baseline", [0.0, 0.6, np.linspace(-1, 1, D)], ids=["zero", "one", "per feature"])
@pytest.mark.parametrize("k", [1, 3, D])
def test_masking(k: int, baseline: Any) -> None:
    agree(squares(moved(W, B, FAR, masked(FAR, k, baseline))), theory.masking_mean(W, FAR, k, baseline))


def test_masking_nothing_and_a_single_feature() -> None:
    assert theory.masking_mean(W, X0, 0) == theory.l1_masking_mean(W, X0, 0) == 0
    assert theory.masking_mean([2.0], [3.0], 1) == theory.l1_masking_mean([2.0], [3.0], 1) == 0


# Row 9


@pytest.mark.parametrize(
    "omega", [np.geomspace(0.2, 4.0, D), covariance(6) + 0.3 * np.eye(D)], ids=["vector", "matrix"]
)
def test_weighted_l2(omega: np.ndarray) -> None:
    S = covariance(7)
    cost = L2(weights=omega) if omega.ndim == 1 else L2(matrix=omega)
    change = moved(W, B, X0, X0 + gaussian(S), cost)
    agree(squares(change), theory.weighted_mean(W, S, omega))
    agree(cost(change, np.zeros(D)) ** 2, theory.weighted_mean(W, S, omega, measured="cost"))
    assert theory.weighted_mean(W, S, np.ones(D)) == pytest.approx(theory.gaussian_mean(W, S))


# Row 10

prices = pytest.mark.parametrize("weights", [None, np.geomspace(0.3, 3.0, D)], ids=["plain", "weighted"])


@prices
@pytest.mark.parametrize("S", [0.49, covariance(3)], ids=["one", "matrix"])
def test_l1_under_gaussian_noise(S: Any, weights: np.ndarray | None) -> None:
    full = S if np.ndim(S) else S * np.eye(D)
    change = moved(W, B, X0, X0 + gaussian(full), L1(weights=weights))
    agree(np.abs(change).sum(axis=1), theory.l1_gaussian_mean(W, S, weights))


@prices
@pytest.mark.parametrize("radius", [0.7, np.geomspace(0.2, 3.0, D)], ids=["one", "per feature"])
def test_l1_under_uniform_noise(radius: Any, weights: np.ndarray | None) -> None:
    change = moved(W, B, X0, X0 + uniform(radius), L1(weights=weights))
    agree(np.abs(change).sum(axis=1), theory.l1_uniform_mean(W, radius, weights))


@pytest.mark.parametrize(
    "w",
    [
        [2.0],
        [2.0, 1.0],
        [2.0, 1.9, 1.0, 0.8],  # the second outweighs the rest
        [1.1, 1.0, 1.0, 1e-6],  # two decide
        [1.5, 1.0, 1.0, 1.0],
        [1.0, 0.0, 0.0],
        np.linspace(1.0, 2.0, 60),
    ],
    ids=lambda w: str(len(w)),
)
def test_l1_under_uniform_noise_of_other_dimensions(w: Any) -> None:
    d = len(w)
    x0 = np.full(d, 0.1)
    change = np.abs(moved(np.asarray(w), 0.0, x0, x0 + uniform(1.0, d, n=20_000 if d > 9 else 100_000), "l1"))
    expected = theory.l1_uniform_mean(w, 1.0)
    agree(change.sum(axis=1), expected, slack=1e-8)
    agree(change[:, np.argmax(w)], expected - (d - 1) / 2, slack=1e-8)  # without the features that only have noise


def test_the_mean_absolute_sum_of_three_uniforms() -> None:
    # The feature that moves has the largest weight, by a hair; E|U + U + U| = 13/16.
    assert theory.l1_uniform_mean([1 + 1e-8, 1, 1, 1], 1.0) == pytest.approx(3 / 2 + 13 / 16, abs=1e-7)


@prices
@pytest.mark.parametrize(("k", "baseline"), [(1, 0.0), (3, 0.6), (D, 0.0)])
def test_l1_masking(k: int, baseline: float, weights: np.ndarray | None) -> None:
    change = moved(W, B, FAR, masked(FAR, k, baseline), L1(weights=weights))
    agree(np.abs(change).sum(axis=1), theory.l1_masking_mean(W, FAR, k, weights, baseline))


# Rows 11 and 12


@cache
def softmax() -> tuple[LogisticRegression, np.ndarray, Region]:
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=2000).fit(X, y)
    return model, X, view(model).region(1)  # between two others: a wedge


def ball(radius: float = 1.0) -> ConvexSet:
    return ConvexSet(4, ellipsoids=(Ellipsoid(np.eye(4), softmax()[1][75], radius),))


@pytest.mark.parametrize("kind", ["softmax", "and a ball", "box"])
def test_a_convex_target_moves_no_more_than_the_person(kind: str) -> None:
    _, X, wedge = softmax()
    box = Region([ConvexSet(4, lower=[5.5, 2.5, 3.0, 1.0], upper=[6.0, 2.9, 4.0, 1.5])])
    region = {"softmax": wedge, "and a ball": wedge & ball(), "box": box}[kind]
    eps, worst = 0.5, 0.0
    for x0 in X[::10]:
        people = np.vstack([x0[None], x0 + on_sphere(eps, 4, 2, n=500)])
        found = project(people, region, "l2")
        assert (found.status == Status.OPTIMAL).all()
        size = np.linalg.norm(found.points[1:] - found.points[0], axis=1)
        assert size.max() <= theory.convex_bound(eps) + 1e-6
        worst = max(worst, size.max())
    assert worst > 0.95 * eps


def test_one_leaf_and_one_label_of_a_model_move_no_more_than_the_person() -> None:
    model, X, _ = softmax()
    explainer, eps = Closest("l2").fit(model), 0.3
    for x0 in X[::30]:
        for target in range(3):
            people = np.vstack([x0[None], x0 + on_sphere(eps, 4, 2, n=200)])
            points = explainer.explain(people, target=target).counterfactual
            assert np.linalg.norm(points[1:] - points[0], axis=1).max() <= theory.convex_bound(eps) + TOUCH


def faces(points: np.ndarray, piece: ConvexSet) -> np.ndarray:
    """The projector onto the face of a polyhedron that each point lies on."""
    G, h = piece.halfspaces
    active = np.abs(points @ G.T - h) <= 1e-7 * np.linalg.norm(G, axis=1)
    patterns, which = np.unique(active, axis=0, return_inverse=True)
    assert len(patterns) > 1
    projectors = [np.eye(piece.dim) - np.linalg.pinv(G[pattern]) @ G[pattern] for pattern in patterns]
    return np.array(projectors)[which.ravel()]


@pytest.mark.parametrize("row", [0, 75, 120])
@pytest.mark.parametrize("S", [0.3, covariance(4, 4)], ids=["isotropic", "matrix"])
def test_a_convex_target_under_gaussian_noise(S: Any, row: int) -> None:
    _, X, wedge = softmax()
    full = S if np.ndim(S) else S * np.eye(4)
    people = np.vstack([X[row][None], X[row] + gaussian(full, n=20_000)])
    points = project(people, wedge, "l2").points
    sample = squares(points[1:] - points[0])
    sharper = theory.convex_gaussian_bound(S, faces(points[1:], wedge.pieces[0]))
    below(sample, sharper)
    assert sharper < theory.convex_gaussian_bound(full) == pytest.approx(np.trace(full))


def test_the_bound_of_the_faces_is_attained_by_a_halfspace_through_the_person() -> None:
    half = ConvexSet(2, G=[[1.0, 0.0]], h=[0.0])
    noise = gaussian(np.eye(2))
    points = project(np.vstack([np.zeros((1, 2)), noise]), Region([half]), "l2").points
    inside = noise[:, 0] <= 0
    projectors = np.where(inside[:, None, None], np.eye(2), np.diag([0.0, 1.0]))
    agree(squares(points[1:] - points[0]), theory.convex_gaussian_bound(1.0, projectors), slack=0.02)


# Row 13


@cache
def behind_pca(k: int = 3) -> tuple[Any, np.ndarray, np.ndarray]:
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = make_pipeline(PCA(k), LogisticRegression()).fit(X, y == 1)
    return model, X, model[0].components_


def test_behind_a_pca_the_mean_still_counts_the_inputs() -> None:
    model, X, matrix = behind_pca()
    d = X.shape[1]
    change, _, swapped = answers(Closest("l2").fit(model), X[0], X[0] + gaussian(np.eye(d), n=30_000))
    w = theory.input_normal(model[-1].coef_[0], matrix)
    assert w.shape == (d,)
    assert swapped.any()
    agree(squares(change), theory.gaussian_mean(w, 1.0))
    assert theory.gaussian_mean(w, 1.0) == pytest.approx(d - 1)
    S = covariance(12, d)  # here the direction matters
    change, _, _ = answers(Closest("l2").fit(model), X[0], X[0] + gaussian(S, n=30_000))
    agree(squares(change), theory.gaussian_mean(w, S))


def test_what_a_pca_does_not_see_stays_whatever_is_demanded_behind_it() -> None:
    model, X, matrix = behind_pca()
    d, sigma = X.shape[1], 0.4
    explainer = Plausible(HighDensity(components=[1, 2]), cost="l2").fit(model, X)
    noise = gaussian(sigma**2 * np.eye(d), n=3000)
    change, _, _ = answers(explainer, X[0], X[0] + noise)
    unseen = noise - noise @ matrix.T @ matrix
    assert (squares(change) >= squares(unseen) - 1e-6).all()
    floor = theory.latent_floor(matrix, sigma)
    assert floor == pytest.approx(sigma**2 * (d - 3))
    agree(squares(unseen), floor)
    assert squares(change).mean() > floor


@cache
def latent_point() -> Region:
    """All inputs that the PCA maps to one point."""
    matrix = behind_pca()[2]
    return Region([ConvexSet(matrix.shape[1], G=np.vstack([matrix, -matrix]), h=np.r_[np.ones(3), -np.ones(3)])])


def test_the_latent_floor_is_attained_by_a_point() -> None:
    _, X, matrix = behind_pca()
    points = project(np.vstack([X[:1], X[0] + gaussian(np.eye(X.shape[1]), n=3000)]), latent_point(), "l2").points
    agree(squares(points[1:] - points[0]), theory.latent_floor(matrix), slack=1e-6)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_l1_moves_few_features_behind_a_pca(k: int) -> None:
    _, X, _ = behind_pca()
    tree = make_pipeline(PCA(k), DecisionTreeClassifier(random_state=0, max_depth=5)).fit(X, load_wine().target)
    found = Closest("l1").fit(tree).explain(X)
    assert found.valid.all()
    assert (np.abs(found.changes) > 1e-7).sum(axis=1).max() <= theory.most_features_moved(tree[0].components_) == k


def test_l1_moves_as_many_features_to_reach_a_point_behind_a_pca() -> None:
    _, X, matrix = behind_pca()
    change = project(X, latent_point(), "l1").points - X
    assert ((np.abs(change) > 1e-7).sum(axis=1) == theory.most_features_moved(matrix)).all()


def test_the_rank_counts() -> None:
    assert theory.most_features_moved([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]) == 1


# Row 14


def ellipsoid(axes: list[float], turn: np.ndarray) -> Region:
    return Region(
        [ConvexSet(len(axes), ellipsoids=(Ellipsoid(np.diag(1 / np.array(axes)) @ turn, np.zeros(len(axes)), 1.0),))]
    )


@pytest.mark.parametrize("axes", [[1.0, 1.0, 1.0], [1.0, 0.5, 2.0], [1.0, 3.0, 5.0, 0.4]], ids=str)
@pytest.mark.parametrize("distance", [0.3, 2.0])
def test_a_curved_target(axes: list[float], distance: float) -> None:
    d, sigma = len(axes), 1e-3
    turn = np.linalg.qr(np.random.default_rng(11).normal(size=(d, d)))[0]
    x0 = (axes[0] + distance) * turn[0]  # above the end of the first axis, where the curvatures are a_1 / a_i^2
    people = np.vstack([x0[None], x0 + gaussian(sigma**2 * np.eye(d))])
    found = project(people, ellipsoid(axes, turn), "l2")
    assert found.cost[0] == pytest.approx(distance)
    expected = theory.curved_mean(distance, axes[0] / np.array(axes[1:]) ** 2, sigma)
    agree(squares(found.points[1:] - found.points[0]), expected, slack=0.01 * expected)
    assert expected < theory.curved_mean(distance, np.zeros(d - 1), sigma)


def test_without_curvature_a_target_is_a_halfspace() -> None:
    assert theory.curved_mean(2.0, np.zeros(D - 1), 0.3) == pytest.approx(theory.gaussian_mean(W, 0.09))


# What cannot be


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.movement_bound(-1.0, 0.1), r"cost must be a number >= 0, got -1\.0"),
        (lambda: theory.movement_bound(1.0, np.nan), "eps must be a number >= 0, got nan"),
        (lambda: theory.convex_bound(-0.1), r"eps must be a number >= 0, got -0\.1"),
        (lambda: theory.boundary_distance(W, B, X0, 0.5), r"p must be a number from 1 to infinity, got 0\.5"),
        (lambda: theory.boundary_distance(W, np.inf, X0), "b must be a finite number, got inf"),
        (lambda: theory.boundary_distance(W, B, X0[1:]), "x has 5 entries, w has 6"),
        (lambda: theory.gaussian_mean(np.zeros(2), 1.0), "w must have an entry that is not 0"),
        (lambda: theory.gaussian_mean([[1.0]], 1.0), r"w must be a vector of finite numbers.*shape \(1, 1\)"),
        (lambda: theory.gaussian_mean([1.0, np.nan], 1.0), "w must be a vector of finite numbers"),
        (lambda: theory.gaussian_mean(W, np.ones(3)), r"one variance, 6 variances or a 6 x 6 matrix; got shape \(3,\)"),
        (lambda: theory.gaussian_mean(W, -1.0), "no negative eigenvalue"),
        (lambda: theory.gaussian_mean([1.0, 1.0], [[1.0, 2.0], [2.0, 1.0]]), "no negative eigenvalue.*got -1"),
        (lambda: theory.gaussian_mean([1.0, 1.0], [[1.0, 0.5], [0.0, 1.0]]), "covariance must be symmetric"),
        (lambda: theory.gaussian_mean(W, 1.0, mean=[1.0]), "mean has 1 entries, w has 6"),
        (lambda: theory.gaussian_mean_with_margin(W, B, X0, 1.0, -1.0), "margin must be a number >= 0"),
        (lambda: theory.gaussian_tail(W, 1.0, 0.0), r"delta must be a number > 0, got 0\.0"),
        (lambda: theory.gaussian_tail(W, 1.0, 1.0, "chernoff"), r"\['exact', 'markov'\], got 'chernoff'"),
        (lambda: theory.imhof([[1.0]], 1.0), "weights must be a vector"),
        (lambda: theory.uniform_mean(W, -1.0), r"radius must be >= 0, got -1\.0"),
        (lambda: theory.uniform_mean(W, np.ones(2)), "radius must be one finite number or 6"),
        (lambda: theory.uniform_tail(W, 1.0, -1.0), "delta must be a number > 0"),
        (lambda: theory.uniform_tail(W, 1.0, 1.0, "exact"), r"\['markov', 'cantelli'\], got 'exact'"),
        (lambda: theory.uniform_largest(np.ones(23), 1.0), "all signs of the 23 features.*possible are 22"),
        (lambda: theory.masking_mean(W, X0, 7), "k must be a whole number from 0 to 6.*got 7"),
        (lambda: theory.masking_mean(W, X0, 1.5), r"k must be a whole number.*got 1\.5"),
        (lambda: theory.masking_mean(W, X0, 1, baseline=[1.0]), "baseline must be one finite number or 6"),
        (lambda: theory.weighted_mean(W, 1.0, np.ones(5)), "The cost has 5 weights, the data has 6 columns"),
        (lambda: theory.weighted_mean(W, 1.0, np.zeros((6, 6))), "matrix must be positive definite"),
        (lambda: theory.weighted_mean(W, 1.0, np.ones(6), "l1"), r"measured must be one of \['l2', 'cost'\]"),
        (lambda: theory.l1_gaussian_mean([1.0, -1.0], 1.0), r"Features \[0, 1\] all have the largest"),
        (lambda: theory.l1_uniform_mean([1.0, 2.0], 1.0, weights=[1.0, 2.0]), r"Features \[0, 1\] all have"),
        (lambda: theory.l1_masking_mean([1.0, 2.0], [0.0, 0.0], 1, [1.0, -2.0]), "weights must be positive"),
        (lambda: theory.l1_masking_mean(np.arange(40.0), np.ones(40), 20), "137846528820 outcomes.*Simulate"),
        (lambda: theory.convex_gaussian_bound(1.0), r"Got one variance, 1\.0, for an unknown number of features"),
        (lambda: theory.convex_gaussian_bound(1.0, np.eye(2)), r"shape \(n, d, d\), got \(2, 2\)"),
        (lambda: theory.convex_gaussian_bound(1.0, [2 * np.eye(2)]), "faces must be orthogonal projectors"),
        (lambda: theory.input_normal([1.0], np.eye(2)), "w has 1 entries, matrix has 2 rows"),
        (lambda: theory.latent_floor([[1.0, 1.0]]), "1 rows of matrix must be orthonormal"),
        (lambda: theory.latent_floor(np.eye(2), -1.0), "sigma must be a number >= 0"),
        (lambda: theory.most_features_moved([1.0]), r"matrix must be finite and have shape \(k, d\), got shape \(1,\)"),
        (lambda: theory.curved_mean(1.0, [-1.0], 1.0), r"curvatures of a convex set are >= 0, got -1\.0"),
        (lambda: theory.curved_mean(-1.0, [1.0], 1.0), "distance must be a number >= 0"),
    ],
)
def test_errors_say_what_was_got_and_what_is_possible(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_results_are_plain_numbers() -> None:
    results = [
        theory.movement_bound(1, 2),
        theory.unique_minimiser_bound(W, 1, 1),
        theory.gaussian_mean(W, 1, X0),
        theory.gaussian_tail(W, covariance(), 1),
        theory.uniform_largest(np.ones(22), 1),
        theory.masking_mean(W, X0, np.int64(2)),
        theory.weighted_mean(W, 1, np.ones(D), "cost"),
        theory.l1_gaussian_mean(W, 1),
        theory.l1_uniform_mean(W, 1),
        theory.l1_masking_mean(W, X0, 2),
        theory.convex_gaussian_bound([1, 1]),
        theory.latent_floor(np.eye(2, 3), 1),
        theory.curved_mean(1, [1], 1),
    ]
    assert {type(value) for value in results} == {float}
    assert type(theory.most_features_moved(np.eye(2))) is int
