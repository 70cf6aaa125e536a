"""The laws of design.md over every model, pipeline, cost and method, on real data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from evenhand import GLVQ, GMLVQ, L1, L2, Closest, Explainer, Explanations, HighDensity, Plausible, Status
from evenhand.density import ClassDensities
from evenhand.models import view
from evenhand.projection import project
from evenhand.sets import Region
from oracle import UndecidedError, nearest_of
from threads import one_thread, threads_at_once  # noqa: F401


class Remembered(HighDensity):
    """Fits each table once: most models below see the same ones, through the same pipelines."""

    def fit(self, Z: Any, labels: Any, classes: Any) -> ClassDensities:
        key = tuple(np.asarray(part).tobytes() for part in (Z, labels, classes))
        if key not in _fits:
            _fits[key] = super().fit(Z, labels, classes)
        return _fits[key]


_fits: dict[tuple[bytes, ...], ClassDensities] = {}
DENSITY = Remembered(components=[1, 2])

MODELS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(max_iter=2000),
    "ridge": RidgeClassifier,
    "svc": lambda: LinearSVC(random_state=0),
    "sgd": lambda: SGDClassifier(random_state=0, average=True),
    "perceptron": lambda: Perceptron(random_state=0),
    "lda": LinearDiscriminantAnalysis,
    "tree": lambda: DecisionTreeClassifier(random_state=0),
    "glvq": lambda: GLVQ(prototypes_per_class=2, max_iter=30, random_state=0),
    "gmlvq": lambda: GMLVQ(prototypes_per_class=2, max_iter=30, random_state=0),
    "centroid": NearestCentroid,
    # Fewer columns make repeated points, and only brute force has a rule for them.
    "1nn": lambda: KNeighborsClassifier(n_neighbors=1, algorithm="brute"),
}
PIPELINES: dict[str, Callable[[], list[Any]]] = {
    "none": list,
    "standard": lambda: [StandardScaler()],
    "minmax": lambda: [MinMaxScaler()],
    "robust": lambda: [RobustScaler()],
    "maxabs": lambda: [MaxAbsScaler()],
    "pca": lambda: [StandardScaler(), PCA(2)],
    "whiten": lambda: [PCA(3, whiten=True)],
    "svd": lambda: [TruncatedSVD(2, random_state=0)],
    "select": lambda: [SelectKBest(k=3)],
    "columns": lambda: [
        ColumnTransformer([("a", StandardScaler(), [2, 0]), ("b", MinMaxScaler(), [1])], remainder="passthrough")
    ],
    "nested": lambda: [make_pipeline(RobustScaler(), make_pipeline("passthrough", PCA(3))), StandardScaler()],
}
METHODS = ["closest", "plausible"]
COSTS = ["l1", "l2", "mad", "mahalanobis"]


@cache
def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Small tables: three classes and four columns, three and thirteen, two and thirty (every fourth row)."""
    X, y = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}[name](return_X_y=True)
    return (X[::4], y[::4]) if name == "cancer" else (X, y)


def quietly(model: Any, X: Any, y: Any) -> Any:
    """Fit; that training stopped early is of no interest here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


@cache
def fitted(kind: str, steps: str, name: str) -> Any:
    X, y = data(name)
    few = 3 if kind == "1nn" else 1  # a cell per training point: the oracle visits them one by one
    return quietly(make_pipeline(*PIPELINES[steps](), MODELS[kind]()), X[::few], y[::few])


@cache
def density(kind: str, steps: str, name: str) -> ClassDensities:
    """The density once more, as the documentation describes it: in the space of the model's last step."""
    X, y = data(name)
    seen = view(fitted(kind, steps, name))
    return DENSITY.fit(seen.encode(X), y, seen.classes)


@cache
def region(kind: str, steps: str, name: str, method: str, label: Any) -> Region:
    """Where the counterfactuals of a label may lie, put together here."""
    seen = view(fitted(kind, steps, name))
    if method == "closest":
        return seen.region(label)
    return seen.region(label) & density(kind, steps, name).region(label).pullback(seen.encode)


@cache
def cost_of(cost: str, name: str) -> L1 | L2:
    X, _ = data(name)
    return {"l1": L1, "l2": L2, "mad": lambda: L1.mad(X), "mahalanobis": lambda: L2.mahalanobis(X)}[cost]()


@cache
def explainer(kind: str, steps: str, name: str, cost: str, method: str) -> Explainer:
    norm, model = cost_of(cost, name), fitted(kind, steps, name)
    if method == "closest":
        return Closest(norm).fit(model)
    return Plausible(DENSITY, norm).fit(model, *data(name))


def queries(name: str, n: int) -> np.ndarray:
    """People of every class, some of them moved off the data, some of them far away."""
    X, _ = data(name)
    rng = np.random.default_rng(1)
    people = X[np.linspace(0, len(X) - 1, n).astype(int)].copy()
    people[1::3] += rng.normal(size=people[1::3].shape) * X.std(axis=0)
    people[2] = X.mean(axis=0) + 4 * X.std(axis=0)
    return people


def check(found: Explanations, model: Any, X: np.ndarray, cost: L1 | L2) -> None:
    """What holds for all explanations: laws 3 and 5."""
    np.testing.assert_array_equal(np.asarray(found.factual), X)
    np.testing.assert_array_equal(found.valid, found.status != Status.UNREACHABLE)
    assert set(found.status) <= {Status.OPTIMAL, Status.ALREADY, Status.UNREACHABLE}
    assert np.isnan(np.asarray(found.counterfactual)[~found.valid]).all()
    assert np.isnan(found.cost[~found.valid]).all()
    points, target, people = np.asarray(found.counterfactual)[found.valid], found.target[found.valid], X[found.valid]
    if not len(points):
        return
    # The user's own model, on the whole table and on one person at a time.
    np.testing.assert_array_equal(model.predict(points), target)
    np.testing.assert_array_equal(np.concatenate([model.predict(point[None]) for point in points]), target)
    price, gap = found.cost[found.valid], found.gap[found.valid]
    size = cost(np.abs(X), np.zeros_like(X)).max()
    assert (gap >= 0).all()
    assert (gap <= 1e-7 * price + 1e-12 * size).all()
    np.testing.assert_allclose(price, cost(points, people), rtol=1e-7, atol=1e-9 * size)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("steps", PIPELINES)
@pytest.mark.parametrize("kind", MODELS)
def test_every_counterfactual_is_valid_and_optimal(kind: str, steps: str, method: str) -> None:
    check_all(kind, steps, "iris", method, COSTS, n=8)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", MODELS)
def test_two_classes_and_thirty_columns(kind: str, method: str) -> None:
    check_all(kind, "pca", "cancer", method, ["l1", "l2", "mad"], n=6)
    check_all(kind, "standard", "cancer", method, ["l1", "l2"], n=4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", MODELS)
def test_three_classes_in_very_different_units(kind: str, method: str) -> None:
    check_all(kind, "none", "wine", method, ["mad", "l2"], n=5)
    check_all(kind, "standard", "wine", method, ["l1", "mahalanobis"], n=5)


def check_all(kind: str, steps: str, name: str, method: str, costs: list[str], n: int) -> None:
    model, X = fitted(kind, steps, name), queries(name, n)
    seen = view(model)
    present = model.predict(X)
    for turn, cost in enumerate(costs):
        norm = cost_of(cost, name)
        explain = explainer(kind, steps, name, cost, method).explain
        toward = {label: explain(X, target=label) for label in seen.classes}
        free = explain(X)
        for found in (*toward.values(), free):
            check(found, model, X, norm)
            check_plausible(found, kind, steps, name, method)
        assert free.valid.all()
        assert (free.target != present).all()
        for label, found in toward.items():
            np.testing.assert_array_equal(found.status == Status.ALREADY, present == label)
            np.testing.assert_array_equal(found.cost == 0, present == label)
            assert seen.region(label).contains(np.asarray(found.counterfactual)[found.valid]).all()
            if method == "plausible":
                least = explainer(kind, steps, name, cost, "closest").explain(X, target=label).cost
                assert not (found.cost < least - 1e-9 * (1 + least)).any()
        # None is the cheapest other label.
        prices = np.array([np.where(present == label, np.nan, found.cost) for label, found in toward.items()])
        np.testing.assert_allclose(free.cost, np.nanmin(prices, axis=0), rtol=1e-9)
        # Another person and another label for each cost.
        q = (2 * turn) % n
        others = [label for label in seen.classes if label != present[q]]
        check_by_oracle(
            toward,
            X[q],
            q,
            others[turn % len(others)],
            norm,
            region(kind, steps, name, method, others[turn % len(others)]),
        )


def check_by_oracle(
    toward: dict[Any, Explanations], x: np.ndarray, q: int, label: Any, norm: L1 | L2, region: Region
) -> None:
    try:
        truth = nearest_of(x, region, norm)
    except UndecidedError:
        return
    found = toward[label]
    if np.isinf(truth):
        assert found.status[q] == Status.UNREACHABLE
        return
    size = float(norm(np.abs(x[None]), np.zeros((1, len(x))))[0])
    assert found.cost[q] == pytest.approx(truth, rel=1e-6, abs=1e-8 * size)
    assert found.cost[q] - found.gap[q] <= truth * (1 + 1e-6) + 1e-9 * size


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["iris", "wine", "cancer"])
def test_the_oracle_decides(name: str, method: str) -> None:
    """The tests above skip what their oracle cannot solve; that must be next to nothing."""
    X = queries(name, 12)
    undecided = 0
    for kind in ("logistic", "glvq"):
        for q, x in enumerate(X):
            label = view(fitted(kind, "standard", name)).classes[q % 2]
            try:
                nearest_of(x, region(kind, "standard", name, method, label), cost_of(["l1", "mad"][q % 2], name))
            except UndecidedError:
                undecided += 1
    assert undecided <= 1


def check_plausible(found: Explanations, kind: str, steps: str, name: str, method: str) -> None:
    if method != "plausible":
        return
    model, known = fitted(kind, steps, name), density(kind, steps, name)
    moved = found.status == Status.OPTIMAL  # who is there already stays where they are
    points = np.asarray(found.counterfactual)
    for label in np.unique(found.target[moved]):
        rows = moved & (found.target == label)
        scores = known.score(view(model).encode(points[rows]), label)
        assert (scores >= known.log_threshold(label)).all()
        # And through the user's own transformers, which round differently.
        latent = np.asarray(model[:-1].transform(points[rows])) if len(model) > 1 else points[rows]
        assert (known.mixtures[label].score_samples(latent) >= known.log_threshold(label) - 1e-8).all()


# --- Data that nobody chose -------------------------------------------------------------------------------------------


@st.composite
def tables(draw: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training points, their labels, and queries: integers that tie, or real numbers in very different units."""
    n, dim, classes = draw(st.integers(12, 40)), draw(st.integers(1, 5)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if draw(st.booleans()):
        X, Q = rng.integers(-4, 5, (n, dim)).astype(float), rng.integers(-6, 7, (4, dim)).astype(float)
    else:
        units = 10.0 ** rng.integers(-3, 4, dim)
        X, Q = rng.normal(size=(n, dim)) * units, rng.normal(size=(4, dim)) * 2 * units
    y = (
        rng.integers(0, classes, n)
        if draw(st.booleans())
        else np.argsort(np.argsort(X @ rng.normal(size=dim))) * classes // n
    )
    y[:classes] = np.arange(classes)
    return X, y, Q


def has_twins(last: Any) -> bool:
    """Whether two labels have the same score up to rounding, so that noise decides what `predict` says."""
    if hasattr(last, "coef_") and len(last.classes_) > 2:
        scores, owner = np.column_stack([last.coef_, last.intercept_]), np.arange(len(last.classes_))
    elif hasattr(last, "centroids_"):
        scores, owner = last.centroids_, np.arange(len(last.classes_))
    elif hasattr(last, "prototypes_"):
        scores, owner = last.prototypes_, last.labels_
    else:
        return False
    apart = np.abs(scores[:, None] - scores).max(axis=2)
    return bool((apart[owner[:, None] != owner] < 1e-9 * max(1.0, np.abs(scores).max())).any())


@settings(max_examples=80)
@given(
    tables(),
    st.sampled_from(list(MODELS)),
    st.sampled_from(["l1", "l2", "mad"]),
    st.sampled_from(METHODS),
    st.booleans(),
)
def test_any_data(table: Any, kind: str, cost: str, method: str, scaled: bool) -> None:
    X, y, Q = table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # collinear columns, no convergence: the model is what it is
        model = make_pipeline(*([StandardScaler()] if scaled else []), MODELS[kind]()).fit(X, y)
    assume(not has_twins(model[-1]))
    norm = {"l1": L1, "l2": L2, "mad": lambda: L1.mad(X)}[cost]()
    seen = view(model)
    present = model.predict(Q)
    recipe = HighDensity(components=[1])
    explain = (Closest(norm) if method == "closest" else Plausible(recipe, norm)).fit(model, X, y).explain
    dense = recipe.fit(seen.encode(X), y, seen.classes)
    if method == "plausible":
        # Needles have tests of their own: the oracle itself gets lost in them.
        roots = [P.T @ seen.encode.matrix for mixture in dense.mixtures.values() for P in mixture.precisions_cholesky_]
        assume(all(np.linalg.norm(R, 2) * np.abs(X).max() < 1e7 for R in roots))
    for label in seen.classes:
        if method == "plausible" and label in dense.missing:
            continue
        found = explain(Q, target=label)
        event(f"{kind} {method} {', '.join(sorted(set(found.status)))}")
        moved = (found.status == Status.OPTIMAL) | (found.status == Status.INACCURATE)
        assert set(found.status) <= {Status.OPTIMAL, Status.INACCURATE, Status.ALREADY, Status.UNREACHABLE}
        np.testing.assert_array_equal(found.status == Status.ALREADY, present == label)
        if moved.any():
            np.testing.assert_array_equal(model.predict(found.counterfactual[moved]), label)
        where = seen.region(label)
        if method == "plausible":
            where = where & dense.region(label).pullback(seen.encode)
            for point in found.counterfactual[moved]:
                assert dense.score(seen.encode(point[None]), label)[0] >= dense.log_threshold(label)
        q = int(np.argmax(present != label))
        if present[q] == label or len(where) > 12:
            continue
        try:
            truth = nearest_of(Q[q], where, norm)
        except UndecidedError:
            event("the oracle is undecided")
            continue
        size = float(norm(np.abs(Q[q][None]) + X.std(axis=0), np.zeros((1, len(Q[q]))))[0])
        if np.isinf(truth):
            assert found.status[q] == Status.UNREACHABLE
            continue
        price = np.inf if found.status[q] == Status.UNREACHABLE else found.cost[q]
        assert price >= truth * (1 - 1e-6) - 1e-7 * size
        if price > truth * (1 + 1e-6) + 1e-7 * size:
            # Closed sets that touch in a point or a side only have no room for rounding: look at what has.
            roomy = nearest_of(Q[q], where.shrink(1e-7 * size, norm), norm)
            assert price <= roomy * (1 + 1e-6) + 1e-7 * size


@pytest.mark.parametrize("cost", ["l1", "l2", "mad"])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_class_of_few_points_in_very_different_units(n: int, cost: str) -> None:
    """Fewer points than columns: the class's ellipsoid is a needle, and still has to be reached."""
    rng = np.random.default_rng(n)
    units = np.array([1e-3, 1e3, 1e2])
    X = rng.normal(size=(30 + n, 3)) * units
    y = np.where(np.arange(30 + n) < 30, X[:, 1] > 0, 2).astype(int)
    X[y == 2] += 3 * units
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
        raw = NearestCentroid().fit(X, y)
    norm = {"l1": L1, "l2": L2, "mad": lambda: L1.mad(X)}[cost]()
    for classifier in (model, raw):
        seen = view(classifier)
        dense = DENSITY.fit(seen.encode(X), y, seen.classes)
        found = Plausible(DENSITY, norm).fit(classifier, X, y).explain(X[:30:3], target=2)
        assert found.valid.all(), found.reason
        np.testing.assert_array_equal(classifier.predict(found.counterfactual), 2)
        moved = found.status != Status.ALREADY
        assert (dense.score(seen.encode(found.counterfactual[moved]), 2) >= dense.log_threshold(2)).all()


@pytest.mark.parametrize("cost", ["l1", "l2"])
@pytest.mark.parametrize("shift", [0.0, 1e3, 1e5])
@pytest.mark.parametrize("kind", ["logistic", "tree", "glvq", "centroid"])
def test_certificate_counts_what_was_kept_for_rounding(kind: str, shift: float, cost: str) -> None:
    """Nothing cheaper than cost - gap exists, but for the hair's breadth (one part in 10^11) that `predict` needs.

    Columns far from zero (years, timestamps) are where that hair is widest.
    """
    X, y = data("iris")
    X = X + shift
    model = quietly(make_pipeline(StandardScaler(), MODELS[kind]()) if kind == "logistic" else MODELS[kind](), X, y)
    people = X[::10]
    for label in (0, 1, 2):
        found = Closest(cost).fit(model).explain(people, target=label)
        assert found.valid.all()
        moved = found.status != Status.ALREADY
        truth = project(people, view(model).region(label), cost).cost
        rounding = 1e-9 * np.abs(people).max()
        assert (found.cost - found.gap <= truth * (1 + 1e-7) + rounding)[moved].all()
        accurate = found.status == Status.OPTIMAL
        assert (found.cost <= truth * (1 + 1e-6) + rounding)[moved & accurate].all()


# --- Law 6 ------------------------------------------------------------------------------------------------------------


def assert_same(a: Explanations, b: Explanations) -> None:
    np.testing.assert_array_equal(a.status, b.status)
    np.testing.assert_array_equal(a.target, b.target)
    np.testing.assert_array_equal(a.valid, b.valid)
    size = np.abs(np.asarray(a.factual)).max(axis=0)
    difference = np.asarray(a.counterfactual) - np.asarray(b.counterfactual)
    assert not (np.abs(difference) > 1e-9 * size).any()
    np.testing.assert_allclose(a.cost, b.cost, rtol=1e-9)


def rows_of(found: Explanations, order: np.ndarray) -> Explanations:
    names = ("factual", "counterfactual", "target", "cost", "gap", "status", "valid")
    return Explanations(**{name: np.asarray(getattr(found, name))[order] for name in names})


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("steps", ["none", "pca"])
@pytest.mark.parametrize("kind", MODELS)
def test_order_chunks_and_threads_change_nothing(kind: str, steps: str, method: str) -> None:
    X = queries("iris", 20)
    for cost in ("l1", "l2"):
        explain = explainer(kind, steps, "iris", cost, method).explain
        for options in ({}, {"target": "random", "random_state": 3}):
            expected = explain(X, **options)
            assert_same(expected, explain(X, **options, chunk_size=1))
            assert_same(expected, explain(X, **options, chunk_size=7))
            assert_same(expected, explain(X, **options, chunk_size=3, n_jobs=2))
            again = explain(X, **options)
            for a, b in zip(vars(expected).values(), vars(again).values(), strict=True):
                np.testing.assert_array_equal(a, b)
        order = np.random.default_rng(0).permutation(len(X))
        assert_same(explain(X), rows_of(explain(X[order]), np.argsort(order)))


# --- Tables and labels ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [Closest(), Plausible(DENSITY)])
@pytest.mark.parametrize("kind", ["logistic", "tree", "gmlvq", "1nn"])
def test_frame_in_frame_out(kind: str, method: Closest | Plausible) -> None:
    bunch = load_wine(as_frame=True)
    X, y = bunch.data, bunch.target_names[bunch.target]
    columns = ColumnTransformer(
        [
            ("a", StandardScaler(), ["proline", "alcohol", "hue"]),
            ("b", make_pipeline(RobustScaler(), PCA(2)), ["flavanoids", "ash"]),
        ],
        remainder=MinMaxScaler(),
    )
    model = quietly(make_pipeline(columns, MODELS[kind]()), X, y)
    people = X.iloc[::20].set_index(pd.Index([f"person {i}" for i in range(len(X.iloc[::20]))], name="who"))
    explainer = method.fit(model, X, y)
    found = explainer.explain(people)
    assert found.valid.all()
    for table in (found.factual, found.counterfactual, found.changes):
        assert isinstance(table, pd.DataFrame)
        pd.testing.assert_index_equal(table.index, people.index)
        pd.testing.assert_index_equal(table.columns, people.columns)
    pd.testing.assert_frame_equal(found.factual, people)
    np.testing.assert_array_equal(model.predict(found.counterfactual), found.target)
    # The same numbers as from an array, which is taken in the model's order of columns.
    plain = explainer.explain(people.to_numpy())
    assert isinstance(plain.counterfactual, np.ndarray)
    np.testing.assert_array_equal(plain.counterfactual, found.counterfactual)
    # Columns belong to their names, wherever they stand.
    turned = explainer.explain(people[people.columns[::-1]])
    pd.testing.assert_frame_equal(turned.counterfactual[people.columns], found.counterfactual)
    pd.testing.assert_frame_equal(turned.factual[people.columns], people)


def test_frame_comes_out_ordered_as_it_went_in() -> None:
    X, y = load_iris(as_frame=True, return_X_y=True)
    model = LogisticRegression(max_iter=2000).fit(X, y)
    people = X[X.columns[[2, 0, 3, 1]]].iloc[[0, 70, 140]]
    found = Closest().fit(model).explain(people)
    pd.testing.assert_frame_equal(found.factual, people)
    pd.testing.assert_index_equal(found.counterfactual.columns, people.columns)


LABELS = {
    "strings": np.array(["setosa", "versicolor", "virginica"]),
    "unequal strings": np.array(["a", "bb", "a much longer label"]),
    "negative ints": np.array([7, -3, 0]),
    "floats": np.array([5.0, 2.0, 1.0]),
    "objects": np.array(["x", "y", "z"], dtype=object),
}


@pytest.mark.parametrize("kind", ["logistic", "svc", "tree", "glvq", "centroid", "1nn"])
@pytest.mark.parametrize("labels", LABELS)
def test_labels_of_any_kind(labels: str, kind: str) -> None:
    X, y = data("iris")
    names = LABELS[labels]
    people = queries("iris", 9)
    base = Closest().fit(fitted(kind, "none", "iris"))
    model = quietly(MODELS[kind](), X, names[y])
    explainer = Closest().fit(model)
    found = explainer.explain(people)
    assert found.valid.all()
    assert set(found.target.tolist()) <= set(names.tolist())
    np.testing.assert_array_equal(model.predict(found.counterfactual), found.target)
    for position, name in enumerate(names):
        one = explainer.explain(people, target=name)
        assert (one.target == name).all()
        assert one.valid.all()
        np.testing.assert_array_equal(one.target, explainer.explain(people, target=[name] * len(people)).target)
        if kind == "tree":  # the only one whose fit does not depend on the order of the classes
            np.testing.assert_allclose(one.cost, base.explain(people, target=position).cost)


@pytest.mark.parametrize("kind", ["logistic", "svc", "tree", "gmlvq", "centroid", "1nn"])
def test_boolean_labels(kind: str) -> None:
    X, y = data("cancer")
    model = quietly(make_pipeline(StandardScaler(), MODELS[kind]()), X, y == 1)
    for target in (True, False, np.True_, None):
        found = Closest().fit(model).explain(X[:20], target=target)
        assert found.valid.all()
        np.testing.assert_array_equal(model.predict(found.counterfactual), found.target)
        assert target is None or (found.target == target).all()
