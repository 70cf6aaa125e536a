"""Laws of numbers: on boundaries and edges, far from zero, in any unit and at any price, and as twins behind PCA.

Against everybody there can be, by the model's own `predict`, and in exact arithmetic where numbers take any value.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, StandardScaler

from evenhand import L1, L2, Actionable, Closest, Column, HighDensity, Plausible, Schema
from raw_laws import FEW, MODELS, quietly
from rotation import in_turn
from threads import one_thread  # noqa: F401

WHOLE = ["a", "b", "c"]
MOST = 6  # of each of these counts
OFFSETS = [0, -37, 10**3, 10**6]


# --- Whole numbers on boundaries --------------------------------------------------------------------------------------


@cache
def counts() -> tuple[pd.DataFrame, np.ndarray]:
    """Even counts, so that trees split at whole numbers, and three labels."""
    rng = np.random.default_rng(4)
    X = pd.DataFrame(2 * rng.integers(0, MOST // 2 + 1, (60, 3)), columns=WHOLE)
    merit = X["a"] + X["b"] - X["c"] + rng.normal(size=60)
    return X, np.searchsorted(np.quantile(merit, [0.35, 0.7]), merit)


def round_off(last: Any) -> None:
    """Numbers of a few bits, which models predict with exactly: whole numbers stand on their boundaries."""
    if hasattr(last, "coef_"):
        unit = 2.0 ** np.floor(np.log2(np.abs(last.coef_).max())) / 4
        last.coef_, last.intercept_ = np.round(last.coef_ / unit), np.round(last.intercept_ / unit)
    if hasattr(last, "prototypes_"):
        last.prototypes_ = np.round(last.prototypes_)
    if hasattr(last, "omega_"):
        last.omega_ = np.round(8 * last.omega_) / 8
    if hasattr(last, "centroids_"):
        last.centroids_ = np.round(last.centroids_)


def move(last: Any, offset: float) -> None:
    """The same model of people who stand elsewhere."""
    if hasattr(last, "coef_"):
        last.intercept_ = last.intercept_ - last.coef_.sum(axis=1) * offset
    for name in ("prototypes_", "centroids_"):
        if hasattr(last, name):
            setattr(last, name, getattr(last, name) + offset)


@cache
def of_counts(kind: str, steps: str, offset: int) -> Any:
    X, y = counts()
    if kind == "1nn":  # everybody once: which of two twins decides is a question of its own, see below
        once = np.flatnonzero(~X.duplicated())[:FEW]
        X, y = X.iloc[once], y[once]
    if steps == "none":
        bare = kind in ("tree", "1nn")
        last = quietly(MODELS[kind](), X + offset if bare else X, y)
        round_off(last)
        if not bare:
            move(last, offset)
        return last
    scaler = StandardScaler().fit(X + offset)
    if steps == "bits":
        scaler.mean_, scaler.scale_ = np.round(scaler.mean_), np.array([1.0, 2.0, 0.5])
    last = quietly(MODELS[kind](), scaler.transform(X + offset), y)
    if steps == "bits":
        round_off(last)
    return make_pipeline(scaler, last)


def best(prices: np.ndarray, moved: np.ndarray, good: np.ndarray) -> tuple[float, int]:
    """The least price of what is good, and of those of that price the fewest columns that change."""
    least = prices[good].min()
    return least, int(moved[good & (prices <= least * (1 + 1e-9))].min())


def check_against_everybody(
    model: Any, explainer: Any, people: pd.DataFrame, everybody: pd.DataFrame, weights: np.ndarray
) -> None:
    """Everybody towards every label: the cheapest of all whom `predict` gives it, with the fewest changes."""
    said, now = model.predict(everybody), model.predict(people)
    for label in model.classes_:
        found = explainer.explain(people, target=label)
        for i in range(len(people)):
            moves = np.abs(everybody.to_numpy(dtype=float) - people.iloc[i].to_numpy(dtype=float))
            told = f"person {i}, {people.iloc[i].tolist()} -> {label}: {found.status[i]}, cost {found.cost[i]}"
            if now[i] == label:
                assert found.status[i] == "already", told
                continue
            if not (said == label).any():
                assert found.status[i] == "unreachable", told
                continue
            least, fewest = best(moves @ weights, (moves > 0).sum(axis=1), said == label)
            assert found.status[i] == "optimal", f"{told}; {least} is possible"
            assert found.cost[i] == pytest.approx(least, rel=1e-9), told
            assert found.gap[i] <= 1e-7 * found.cost[i], told
            after = found.counterfactual.iloc[i].to_numpy(dtype=float)
            assert (after != people.iloc[i].to_numpy(dtype=float)).sum() == fewest, f"{told}; {fewest} changes do"


@pytest.mark.parametrize(
    ("kind", "steps", "offset", "weights"),
    in_turn(43, MODELS, ["none", "bits", "standard"], OFFSETS, [(1.0, 1.0, 1.0), (1.0, 2.0, 0.5)]),
)
def test_whole_numbers_on_boundaries(kind: str, steps: str, offset: int, weights: tuple[float, ...]) -> None:
    X, _ = counts()
    model = of_counts(kind, steps, offset)
    everybody = pd.DataFrame(itertools.product(range(MOST + 1), repeat=3), columns=WHOLE) + offset
    ends = Actionable(bounds=dict.fromkeys(WHOLE, (offset, offset + MOST)))
    explainer = Closest(cost=L1(weights=np.array(weights)), actionable=ends).fit(model, X + offset)
    check_against_everybody(model, explainer, everybody.iloc[::41], everybody, np.array(weights))


@pytest.mark.parametrize("kind", [int, float])
def test_repeated_people_of_other_labels(kind: type) -> None:
    """Whose label decides of two who are the same depends on types in 1-NN: it is what `predict` says, or refused."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 4, (24, 2)), columns=["a", "b"]).astype(kind)
    model = MODELS["1nn"]().fit(X, rng.integers(0, 3, 24))
    ends = Actionable(bounds={"a": (0, 4), "b": (0, 4)})
    everybody = pd.DataFrame(itertools.product(range(5), repeat=2), columns=["a", "b"]).astype(kind)
    try:
        explainer = Closest(cost=L1(weights=np.ones(2)), actionable=ends).fit(model, X)
    except ValueError as error:
        assert "repeat an earlier point" in str(error)  # noqa: PT017 - either is an answer
        return
    now = model.predict(everybody)
    for label in model.classes_:
        found = explainer.explain(everybody, target=label)
        assert ((found.status == "already") == (now == label)).all()
        assert (model.predict(found.counterfactual[found.valid]) == label).all()
        away = np.abs(everybody.to_numpy()[:, None] - everybody.to_numpy()[None, now == label]).sum(axis=2).min(axis=1)
        assert (found.cost - found.gap <= away + 1e-9)[found.valid].all()


# --- Bins whose edges are what people have ----------------------------------------------------------------------------


def binned(kind: str, encode: str, whole: bool) -> tuple[Any, pd.DataFrame]:
    """Ages in bins of ten, beside a count and a level."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"age": np.repeat(np.arange(41), 3), "k": rng.integers(0, 4, 123)})
    X["c"] = rng.integers(0, 2, 123)  # a flag
    X = X if whole else X.astype({"age": float})
    y = (X["age"] // 10 + X["k"] + 2 * X["c"] + rng.normal(size=123) > 4).astype(int).to_numpy()
    bins = KBinsDiscretizer(4, strategy="uniform", encode=encode)
    steps = ColumnTransformer([("age", bins, ["age"]), ("rest", "passthrough", ["k", "c"])])
    rows = np.arange(123) % 5 == 0 if kind == "1nn" else np.full(123, True)
    return quietly(make_pipeline(steps, MODELS[kind]()), X[rows], y[rows]), X


@pytest.mark.parametrize(("kind", "encode", "whole"), in_turn(13, MODELS, ["onehot-dense", "ordinal"], [True, False]))
def test_people_on_the_edges_of_bins(kind: str, encode: str, whole: bool) -> None:
    """An edge belongs to the bin above it; of fractions the one below is the last before the edge."""
    model, X = binned(kind, encode, whole)
    edges = model[0].named_transformers_["age"].bin_edges_[0]
    assert set(edges) <= set(X["age"])
    weights = np.array([0.125, 1.0, 2.0])
    limits = Actionable(bounds={"age": (0, 40), "k": (0, 3)})
    explainer = Closest(cost=L1(weights=weights), actionable=limits).fit(model, X)
    people = X.iloc[::6].reset_index(drop=True)
    ages = np.arange(41.0)
    if not whole:
        ages = np.unique(np.concatenate([ages, np.nextafter(edges[1:-1], -np.inf)]))
    everybody = pd.DataFrame(itertools.product(ages, range(4), range(2)), columns=["age", "k", "c"]).astype(X.dtypes)
    check_against_everybody(model, explainer, people, everybody, weights)


# --- In exact arithmetic: one number of any value beside levels and counts --------------------------------------------


@cache
def mixed_people() -> tuple[pd.DataFrame, np.ndarray]:
    """A level of three, a count, and a number in quarters, which any offset below 10**12 keeps exactly."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"c": rng.choice(["p", "q", "r"], 90), "k": rng.integers(0, 5, 90)})
    X["z"] = np.round(4 * rng.normal(size=90)) / 4
    merit = X["z"] + 0.5 * X["k"] + (X["c"] == "q") - (X["c"] == "r") + 0.3 * rng.normal(size=90)
    return X, np.searchsorted(np.quantile(merit, [0.35, 0.7]), merit)


@cache
def of_mixed_people(kind: str, unit: float, offset: float) -> tuple[Any, pd.DataFrame]:
    X, y = mixed_people()
    X = X.assign(z=(X["z"] + offset) * unit)
    steps = [("c", OneHotEncoder(), ["c"]), ("n", StandardScaler(), ["k", "z"])]
    few = FEW if kind == "1nn" else len(X)
    return quietly(make_pipeline(ColumnTransformer(steps), MODELS[kind]()), X.iloc[:few], y[:few]), X


Line = tuple[Fraction | None, Fraction | None]  # an interval; None is no end


def scores(last: Any) -> tuple[list[list[Fraction]], list[Fraction], np.ndarray]:
    """Rows W and offsets b, and whose they are: the label of the largest score is predicted."""
    exact = np.vectorize(Fraction, otypes=[object])
    if hasattr(last, "coef_"):
        W, b = last.coef_, last.intercept_
        if len(last.classes_) == 2:
            W, b = np.vstack([0 * W, W]), np.append(0.0, b)
        return exact(W).tolist(), exact(np.broadcast_to(b, len(W))).tolist(), last.classes_
    if hasattr(last, "centroids_"):
        points, owner = last.centroids_, last.classes_
    elif hasattr(last, "prototypes_"):
        points, owner = last.prototypes_, last.labels_
    else:
        points, owner = last._fit_X, last.classes_[last._y]
    points = exact(points)
    metric = exact(last.omega_.T @ last.omega_) if hasattr(last, "omega_") else exact(np.eye(points.shape[1]))
    return (2 * points @ metric).tolist(), (-((points @ metric) * points).sum(axis=1)).tolist(), owner


def lines(model: Any, level: str, k: int, label: Any) -> Iterator[Line]:
    """Where z may lie, everything else held, for a label: intervals, as exact as the model's own numbers."""
    last, encoder = model[-1], model[0]
    names = encoder.named_transformers_["c"].categories_[0]
    scaler = encoder.named_transformers_["n"]
    mean, scale = [Fraction(v) for v in scaler.mean_], [Fraction(v) for v in scaler.scale_]
    fixed = [Fraction(int(name == level)) for name in names] + [(k - mean[0]) / scale[0]]
    if hasattr(last, "tree_"):
        yield from leaves(last, fixed, label, mean[1], scale[1])
        return
    W, b, owner = scores(last)
    at = [sum((w * v for w, v in zip(row, fixed, strict=False)), start) for row, start in zip(W, b, strict=True)]
    for i in np.flatnonzero(owner == label):
        low: Fraction | None = None
        high: Fraction | None = None
        possible = True
        for j in np.flatnonzero(owner != label):
            slope, lead = W[i][-1] - W[j][-1], at[i] - at[j]
            if slope == 0:
                possible &= lead >= 0
            elif slope > 0:
                low = -lead / slope if low is None else max(low, -lead / slope)
            else:
                high = -lead / slope if high is None else min(high, -lead / slope)
        if possible and not (low is not None and high is not None and low > high):
            yield tuple(None if end is None else end * scale[1] + mean[1] for end in (low, high))  # type: ignore[misc]


def leaves(last: Any, fixed: list[Fraction], label: Any, mean: Fraction, scale: Fraction) -> Iterator[Line]:
    """Intervals of leaves; numbers meet thresholds as floats of 32 bits, so that ends are only as exact as those."""
    tree = last.tree_
    todo: list[tuple[int, Line]] = [(0, (None, None))]
    while todo:
        node, (low, high) = todo.pop()
        if tree.children_left[node] < 0:
            if last.classes_[tree.value[node, 0].argmax()] == label:
                yield tuple(None if end is None else end * scale + mean for end in (low, high))  # type: ignore[misc]
            continue
        j, side = int(tree.feature[node]), Fraction(tree.threshold[node])
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if j < len(fixed):
            here = Fraction(float(np.float32(float(fixed[j]))))
            todo.append((left if here <= side else right, (low, high)))
            continue
        if low is None or low < side:
            todo.append((left, (low, side if high is None else min(high, side))))
        if high is None or side < high:
            todo.append((right, (side if low is None else max(low, side), high)))


def cheapest(model: Any, person: pd.Series, label: Any, weights: list[Fraction]) -> float:
    """What the cheapest change costs, by trying all levels and counts."""
    least: Fraction | None = None
    here = Fraction(float(person["z"]))
    for level, k in itertools.product(["p", "q", "r"], range(5)):
        start = weights[0] * (level != person["c"]) + weights[1] * abs(k - int(person["k"]))
        for low, high in lines(model, level, k, label):
            away = Fraction(0)
            if low is not None and here < low:
                away = low - here
            if high is not None and here > high:
                away = here - high
            cost = start + weights[2] * away
            least = cost if least is None else min(least, cost)
    return np.inf if least is None else float(least)


def check_exactly(kind: str, unit: float, offset: float, weights: tuple[float, ...]) -> None:
    model, X = of_mixed_people(kind, unit, offset)
    limits = Actionable(bounds={"k": (0, 4)})
    prices = pd.Series(dict(zip("ckz", weights, strict=True)))
    explainer = Closest(cost=L1(weights=prices), actionable=limits).fit(model, X)
    people = X.iloc[30:38].reset_index(drop=True)
    now = model.predict(people)
    # What rounding decides: singles in trees, and doubles of the size of z everywhere.
    room = weights[2] * unit * ((1e-6 if kind == "tree" else 1e-10) + 1e-11 * offset)
    room += 1e-10 * sum(weights)
    for label in model.classes_:
        found = explainer.explain(people, target=label)
        valid = np.flatnonzero(found.valid)
        assert (model.predict(found.counterfactual.iloc[valid]) == label).all()
        for i in range(len(people)):
            told = f"person {i} -> {label}: {found.status[i]}, cost {found.cost[i]}, gap {found.gap[i]}"
            if now[i] == label:
                assert found.status[i] == "already", told
                continue
            truth = cheapest(model, people.iloc[i], label, [Fraction(weight) for weight in weights])
            told += f"; {truth} is possible"
            if np.isinf(truth):
                assert found.status[i] == "unreachable", told
                continue
            assert found.valid[i], told
            assert found.cost[i] >= truth * (1 - 1e-9) - room, told
            last_digits = room if kind == "tree" else 1e-15 * weights[2] * unit * (1.0 + offset)
            assert found.cost[i] - found.gap[i] <= truth * (1 + 1e-9) + last_digits, told
            assert found.cost[i] <= truth * (1 + 1e-7) + 1e3 * room, told
            if offset < 1e6 and max(weights) < 1e9 * min(weights):  # there a gap may be left, and it holds
                assert found.status[i] == "optimal", told


@pytest.mark.parametrize(("kind", "offset"), in_turn(7, MODELS, [1e3, 1e6, 1e8]))
def test_far_from_zero(kind: str, offset: float) -> None:
    check_exactly(kind, 1.0, offset, (1.0, 0.5, 1.0))


@pytest.mark.parametrize(("kind", "unit", "weight"), in_turn(29, MODELS, [1.0, 1e-9, 1e9], [1.0, 1e-10, 1e10]))
def test_units_and_weights(kind: str, unit: float, weight: float) -> None:
    check_exactly(kind, unit, 0.0, (weight, 0.5 * weight, weight / unit))


@pytest.mark.parametrize(
    ("kind", "weights"),
    in_turn(13, MODELS, [(1.0, 1.0, 1e10), (1e10, 1.0, 1.0), (1.0, 1e10, 1e-10), (1e-10, 1e-10, 1e10)]),
)
def test_weights_far_apart_in_one_problem(kind: str, weights: tuple[float, ...]) -> None:
    check_exactly(kind, 1.0, 0.0, weights)


# --- The same people in other units: numbers throughout ---------------------------------------------------------------


@cache
def smooth() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    y = np.arange(60) % 3
    return 1.5 * np.eye(3)[y] + rng.normal(size=(60, 3)), y


@cache
def of_smooth(kind: str, units: tuple[float, ...], offset: float = 0.0) -> Any:
    X, y = smooth()
    few = FEW if kind == "1nn" else len(X)
    return quietly(make_pipeline(StandardScaler(), MODELS[kind]()), (X * units + offset)[:few], y[:few])


METHODS: dict[str, Any] = {
    "closest": Closest,
    "plausible": lambda cost: Plausible(HighDensity(components=[1]), cost),
}
FAR_APART = (2.0**30, 1.0, 2.0**-30)


@pytest.mark.parametrize(
    ("kind", "method", "units", "weight", "norm"),
    in_turn(
        61,
        MODELS,
        METHODS,
        [(2.0**-30,) * 3, (2.0**30,) * 3, FAR_APART],
        [1.0, 2.0**-33, 2.0**33],
        ["l1", "l2"],
    ),
)
def test_costs_scale_exactly(kind: str, method: str, units: tuple[float, ...], weight: float, norm: str) -> None:
    """Units that are powers of two change no digit of a scaled number: answers are the same, but for the unit."""
    X, y = smooth()
    few = FEW if kind == "1nn" else len(X)
    if (kind, method) == ("1nn", "plausible"):
        few = 9
    scale = np.array(units)

    def told(factor: np.ndarray, price: float) -> Any:
        cost = L1(weights=price / factor) if norm == "l1" else L2(weights=price**2 / factor**2)
        model = quietly(make_pipeline(StandardScaler(), MODELS[kind]()), (X * factor)[:few], y[:few])
        people = X[20:32] * factor
        return METHODS[method](cost).fit(model, X * factor, y).explain(people, target=(model.predict(people) + 1) % 3)

    plain, turned = told(np.ones(3), 1.0), told(scale, weight)
    assert (turned.status == plain.status).all()
    assert plain.valid.all()
    np.testing.assert_allclose(turned.cost / weight, plain.cost, rtol=1e-9)
    np.testing.assert_allclose(turned.gap / weight, plain.gap, atol=1e-9 * np.nanmax(plain.cost))
    if norm == "l2":  # of an l1 cost several points may be cheapest
        np.testing.assert_allclose(np.asarray(turned.counterfactual) / scale, plain.counterfactual, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "method", "offset", "norm"), in_turn(31, MODELS, METHODS, [1e3, 1e6, 1e8], ["l1", "l2"])
)
def test_answers_do_not_depend_on_the_origin(kind: str, method: str, offset: float, norm: str) -> None:
    """People whose numbers all have the same digits wherever they stand: what they are told costs the same."""
    X, y = smooth()
    X = np.round(X * 2**10) / 2**10
    few = {"closest": FEW, "plausible": 9}[method] if kind == "1nn" else len(X)
    cost = L1() if norm == "l1" else L2()

    def told(start: float) -> tuple[Any, np.ndarray]:
        scaler = StandardScaler().fit(X)  # learned once, and moved: no digit of what is scaled changes
        last = quietly(MODELS[kind](), scaler.transform(X)[:few], y[:few])
        scaler.mean_ = np.round(scaler.mean_ * 2**10) / 2**10 + start
        model = make_pipeline(scaler, last)
        people = X[20:32] + start
        found = METHODS[method](cost).fit(model, X + start, y).explain(people, target=(model.predict(people) + 1) % 3)
        assert (model.predict(found.counterfactual[found.valid]) == found.target[found.valid]).all()
        return found, people

    (plain, _), (moved, _) = told(0.0), told(offset)
    assert plain.valid.all()
    assert moved.valid.all(), set(moved.status)
    rounding = 1e-9 * offset if kind == "tree" else 1e-10 * offset
    assert (moved.cost - moved.gap <= plain.cost + 1e-14 * offset).all()
    np.testing.assert_allclose(moved.cost, plain.cost, rtol=1e-7, atol=rounding)


# --- Twins behind PCA -------------------------------------------------------------------------------------------------


def last_digits(n: int) -> np.ndarray:
    """A column that is constant but for rounding."""
    column = np.full((n, 1), 1e6 / 3)
    column[::3] = np.nextafter(column[::3], np.inf)
    return column


OWN_UNITS = ("lda", "gmlvq")  # these divide every component by its own spread


def twins(apart: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Four columns, of which the last is the first, or nearly; or rounding error."""
    X, y = smooth()
    if apart is None:
        return np.hstack([X, last_digits(len(X))]), y
    twin = X[:, :1] + apart * np.random.default_rng(8).normal(size=(len(X), 1))
    return np.hstack([X, twin]), y


@pytest.mark.parametrize(
    ("kind", "method", "apart", "keep", "norm"),
    in_turn(71, MODELS, METHODS, [0.0, 1e-12, 1e-11, 1e-9, None], [3, 4], ["l1", "l2"]),
)
def test_twins_behind_pca(kind: str, method: str, apart: float | None, keep: int, norm: str) -> None:
    """Nobody of the data, and nobody on the way to an answer, is cheaper; who has no answer has none among the data."""
    X, y = twins(apart)
    noise = keep == 4 and (apart is None or (apart == 0.0 and kind in OWN_UNITS))
    few = {"closest": FEW, "plausible": 15}[method] if kind == "1nn" else len(X)
    steps = [StandardScaler(), PCA(keep, random_state=0)]
    model = quietly(make_pipeline(*steps, MODELS[kind]()), X[:few], y[:few])
    cost = {"l1": L1(), "l2": L2()}[norm]
    explainer = METHODS[method](cost).fit(model, X, y)
    people = X[20:32]
    target = (model.predict(people) + 1) % 3
    found = explainer.explain(people, target=target)

    def confirmed(points: np.ndarray) -> np.ndarray:
        good = model.predict(points) == target
        for label in np.unique(target) if method == "plausible" else ():
            rows = np.flatnonzero(good & (target == label))
            if len(rows):
                scores = explainer.densities.score(explainer.view.image(points[rows]), label)
                good[rows] = scores >= explainer.densities.log_threshold(label)
        return good

    floor, points = found.cost - found.gap, np.asarray(found.counterfactual)
    assert confirmed(np.where(found.valid[:, None], points, people))[found.valid].all()
    size = cost(np.abs(people), np.zeros(4))
    for shift in range(len(X)):
        rival = np.roll(X, shift, axis=0)[: len(people)]
        good = confirmed(rival)
        lost = good & ~found.valid
        if noise:  # what the model or the density says there is decided by last digits
            assert np.isin(found.status[lost], ["rejected", "failed"]).all(), found.status[lost]
        else:
            # Nearer to each other than that, rows have entries of 1e11: nothing is proven, and nothing is claimed.
            claimed = ["rejected", "failed"] if apart is not None and 0.0 < apart <= 1e-11 else []
            assert np.isin(found.status[lost], claimed).all(), found.status[lost]
        good &= found.valid
        assert (cost(rival, people)[good] >= (floor - 1e-15 * size)[good]).all()
    for back in range(1, 16):
        rival = people + (np.where(found.valid[:, None], points, people) - people) * (1.0 - 10.0**-back)
        good = confirmed(rival) & found.valid
        assert (cost(rival, people)[good] >= (floor - 1e-15 * size)[good]).all()


# --- A component of rounding error ------------------------------------------------------------------------------------

CONSTANT = {"zero": 0.0, "tenth": 0.1, "large": 1e6 / 3, "last digits": np.nan}


@pytest.mark.parametrize(("kind", "norm", "value"), in_turn(19, MODELS, ["l1", "l2"], CONSTANT))
def test_a_component_of_rounding_error_changes_nothing(kind: str, norm: str, value: str) -> None:
    """A constant column, scaled and turned: the last component is nothing, or noise of the last digits."""
    if value == "last digits" and kind in OWN_UNITS:
        pytest.skip("it measures every component in units of its own, and takes the digits for data")
    X, y = smooth()
    noise = last_digits(len(X)) if value == "last digits" else np.full((len(X), 1), CONSTANT[value])
    few = FEW if kind == "1nn" else len(X)
    cost = {"l1": L1(), "l2": L2()}[norm]

    def told(column: np.ndarray, keep: int) -> np.ndarray:
        people = np.hstack([X, column])
        steps = [StandardScaler(), PCA(keep, svd_solver="full")]
        model = quietly(make_pipeline(*steps, MODELS[kind]()), people[:few], y[:few])
        found = Closest(cost).fit(model).explain(people[20:40], target=2)
        assert found.valid.all(), set(found.status)
        assert (model.predict(found.counterfactual) == 2).all()
        return np.asarray(found.cost)

    # Training of LVQ starts from numbers that are drawn: with another number of components from other ones.
    near = {"rtol": 0.1, "atol": 0.1} if kind in ("glvq", "gmlvq") else {"rtol": 1e-5, "atol": 1e-7}
    np.testing.assert_allclose(told(noise, 4), told(noise, 3), **near)
    np.testing.assert_allclose(told(noise, 4), told(np.zeros((len(X), 1)), 4), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("method", ["closest", "plausible"])
@pytest.mark.parametrize("last", ["centroid", "logistic"])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6, 1e9])
@pytest.mark.parametrize("weighed", [False, True])
def test_amounts_beside_levels_as_ordinals(weighed: bool, unit: float, last: str, method: str) -> None:
    """A level that is next to nothing in a row may still decide where people live: who may do more pays no more."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"c": rng.choice(["ash", "elm", "oak"], 60), "z": (2.0 * rng.normal(size=60)).round() * unit / 2.0}
    )
    y = rng.integers(0, 3, 60)
    steps = ColumnTransformer([("c", OrdinalEncoder(), ["c"])], remainder="passthrough")
    model = quietly(make_pipeline(steps, MODELS[last]()), frame, y)

    own = Schema({"c": Column("categorical", levels=["ash", "elm", "oak"]), "z": Column("numeric")})
    schema = own if weighed else None  # a level costs as much as one of an amount that goes into millions

    def explained(**limits: Any) -> Any:
        actionable, density = Actionable(**limits), HighDensity(components=[1])
        if method == "closest":
            return Closest(actionable=actionable, schema=schema).fit(model, frame).explain(frame, target)
        fitted = Plausible(density, actionable=actionable, schema=schema).fit(model, frame, y)
        return fitted.explain(frame, target)

    target = (model.predict(frame) + 1) % 3
    free, held = explained(), explained(immutable=["c"])
    known = held.valid & np.isin(free.status, ["optimal", "inaccurate", "already"])
    assert (free.cost - free.gap <= held.cost * (1.0 + 1e-9))[known].all()
    assert free.valid[held.valid].all(), free.status[held.valid]
