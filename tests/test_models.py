"""Law 1: the region of a label is where the user's own model predicts it, in raw inputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

from evenhand.models import GLVQ, GMLVQ, View, view
from evenhand.models import prototypes as prototypes_module
from evenhand.models.affine import affine
from evenhand.models.tree import split_sides
from evenhand.sets import Affine
from threads import one_thread  # noqa: F401

Table = tuple[np.ndarray, np.ndarray]


@cache
def data(name: str) -> Table:
    load = {"wine": load_wine, "cancer": load_breast_cancer, "iris": load_iris}[name]
    X, y = load(return_X_y=True)
    return X, y


@cache
def frame(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    load = {"wine": load_wine, "cancer": load_breast_cancer, "iris": load_iris}[name]
    bunch = load(as_frame=True)
    return bunch.data, bunch.target_names[bunch.target.to_numpy()]


def fitted(model: Any, X: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def near_boundaries(seen: View, X: np.ndarray, step: float, rng: np.random.Generator) -> np.ndarray:
    """Points `step` before and behind a change of prediction, found by asking the model only."""
    a, b = X[rng.integers(len(X), size=150)], X[rng.integers(len(X), size=150)]
    start = seen.predict(a)
    differ = start != seen.predict(b)
    a, b, start = a[differ], b[differ], start[differ]
    direction = b - a
    low, high = np.zeros(len(a)), np.ones(len(a))
    for _ in range(45):
        middle = (low + high) / 2
        same = seen.predict(a + middle[:, None] * direction) == start
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.vstack([a + (t + side * step)[:, None] * direction for t, side in ((low, -1.0), (high, 1.0))])


def check_law(model: Any, X: Any, rounding: float = 1e-13) -> View:
    """Contains(tol=0) is predict, apart from points within rounding of a tie; the regions cover everything.

    `rounding` is relative to the largest number in the table.
    """
    seen = view(model)
    raw = np.asarray(X, dtype=np.float64)
    rng = np.random.default_rng(0)
    spread = raw.max(axis=0) - raw.min(axis=0)
    centre = (raw.max(axis=0) + raw.min(axis=0)) / 2
    around = centre + rng.uniform(-1.5, 1.5, size=(300, raw.shape[1])) * spread
    points = np.vstack([raw, around, near_boundaries(seen, raw, 1e-5, rng)])
    predicted = seen.predict(points)
    np.testing.assert_array_equal(predicted[: len(raw)], model.predict(X))

    tol = rounding * np.abs(points).max()
    exact = np.array([seen.region(label).contains(points, tol=0.0) for label in seen.classes])
    loose = np.array([seen.region(label).contains(points, tol=tol) for label in seen.classes])
    expected = predicted[None, :] == seen.classes[:, None]
    tie = loose.sum(axis=0) > 1
    np.testing.assert_array_equal(exact[:, ~tie], expected[:, ~tie])
    assert loose[expected].all(), "a point lies outside the region of its prediction"
    assert tie.mean() < 0.02, "too many points count as ties for the test to mean much"
    return seen


LINEAR: dict[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(max_iter=2000),
    "logistic-cv": lambda: LogisticRegressionCV(
        Cs=2, cv=3, max_iter=500, l1_ratios=(0,), use_legacy_attributes=False, scoring="accuracy"
    ),
    "logistic-no-intercept": lambda: LogisticRegression(fit_intercept=False, max_iter=2000),
    "ridge": RidgeClassifier,
    "ridge-cv": RidgeClassifierCV,
    "svc": lambda: LinearSVC(random_state=0),
    "svc-no-intercept": lambda: LinearSVC(fit_intercept=False, random_state=0),
    "svc-crammer-singer": lambda: LinearSVC(multi_class="crammer_singer", random_state=0, max_iter=200),
    "sgd": lambda: SGDClassifier(random_state=0, average=True),
    "perceptron": lambda: Perceptron(random_state=0),
    "lda": LinearDiscriminantAnalysis,
    "lda-lsqr": lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
}
OTHER: dict[str, Callable[[], Any]] = {
    "tree": lambda: DecisionTreeClassifier(random_state=0),
    "stump": lambda: DecisionTreeClassifier(max_depth=1, random_state=0),
    "pruned": lambda: DecisionTreeClassifier(
        ccp_alpha=0.01, criterion="entropy", class_weight="balanced", random_state=0
    ),
    "extra-tree": lambda: ExtraTreeClassifier(random_state=0),
    "glvq": lambda: GLVQ(prototypes_per_class=2, max_iter=30, random_state=0),
    "gmlvq": lambda: GMLVQ(prototypes_per_class=2, max_iter=30, random_state=0),
    "centroid": NearestCentroid,
    "centroid-shrunken": lambda: NearestCentroid(shrink_threshold=0.3),
    "centroid-empirical": lambda: NearestCentroid(priors="empirical"),
    "1nn": lambda: KNeighborsClassifier(n_neighbors=1),
    "1nn-brute": lambda: KNeighborsClassifier(n_neighbors=1, algorithm="brute", weights="distance"),
    "1nn-ball": lambda: KNeighborsClassifier(n_neighbors=1, algorithm="ball_tree", metric="euclidean"),
}
MODELS = {**LINEAR, **OTHER}
STEPS: dict[str, Callable[[], list[Any]]] = {
    "none": list,
    "standard": lambda: [StandardScaler()],
    "standard-off": lambda: [StandardScaler(with_mean=False), StandardScaler(with_std=False)],
    "minmax": lambda: [MinMaxScaler((-1, 2))],
    "maxabs-robust": lambda: [MaxAbsScaler(), RobustScaler()],
    "robust-off": lambda: [RobustScaler(with_centering=False), RobustScaler(with_scaling=False)],
    "pca": lambda: [StandardScaler(), PCA(3)],
    "pca-whiten": lambda: [RobustScaler(), PCA(3, whiten=True)],
    "ipca": lambda: [StandardScaler(), IncrementalPCA(3, whiten=True)],
    "svd": lambda: [MaxAbsScaler(), TruncatedSVD(3, random_state=0)],
    "select": lambda: [SelectKBest(k=3), "passthrough", StandardScaler()],
    "select-from-model": lambda: [StandardScaler(), SelectFromModel(RidgeClassifier()), None, VarianceThreshold()],
    "nested": lambda: [make_pipeline(StandardScaler(), make_pipeline("passthrough", PCA(3)))],
    "union": lambda: [
        FeatureUnion(
            [("d", "drop"), ("p", PCA(2)), ("s", StandardScaler()), ("raw", "passthrough")],
            transformer_weights={"p": 2.0, "raw": 0.25},
        )
    ],
    "identity": lambda: [FunctionTransformer(), StandardScaler()],
    "columns": lambda: [
        ColumnTransformer(
            [("a", StandardScaler(), [2, 0]), ("b", MinMaxScaler(), slice(1, 2))], remainder="passthrough"
        )
    ],
}


@pytest.mark.parametrize("name", ["wine", "cancer", "iris"])
@pytest.mark.parametrize("kind", MODELS)
def test_region_is_where_the_model_predicts(kind: str, name: str) -> None:
    X, y = data(name)
    if kind.startswith("1nn") and name == "cancer":
        X, y = X[::3], y[::3]
    # Scaled, because the linear solvers want it.
    Z = X if kind in OTHER else StandardScaler().fit_transform(X)
    # Trees are exact to the last bit; nearest centroids and neighbours lose some in |x|^2 - 2xp + |p|^2.
    rounding = 0.0 if "tree" in kind or kind in ("stump", "pruned") else 1e-13 if kind in LINEAR else 1e-11
    check_law(fitted(MODELS[kind](), Z, y), Z, rounding)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("kind", ["logistic", "tree", "gmlvq", "centroid-empirical", "1nn-brute"])
def test_region_through_a_pipeline(kind: str, steps: str) -> None:
    X, y = data("iris")
    # Fewer columns mean repeated points, and only brute force has a rule for them.
    check_law(fitted(make_pipeline(*STEPS[steps](), MODELS[kind]()), X, y), X, 1e-11 if kind == "1nn-brute" else 1e-13)


@pytest.mark.parametrize("steps", STEPS)
def test_binary_region_through_a_pipeline(steps: str) -> None:
    X, y = data("cancer")
    check_law(fitted(make_pipeline(*STEPS[steps](), StandardScaler(), LinearSVC()), X, y), X)


@pytest.mark.parametrize("steps", [name for name in STEPS if name != "none"])
@pytest.mark.parametrize("name", ["wine", "iris"])
def test_affine_is_the_transform(steps: str, name: str) -> None:
    X, y = data(name)
    pipeline = make_pipeline(*STEPS[steps]()).fit(X, y)
    points = np.vstack([X, -3.0 * X, np.random.default_rng(0).normal(size=(50, X.shape[1])) * 1e3])
    expected = np.asarray(pipeline.transform(points))
    np.testing.assert_allclose(
        affine(pipeline, X.shape[1])(points), expected, rtol=1e-9, atol=1e-9 * abs(expected).max()
    )


COLUMNS: dict[str, Callable[[pd.DataFrame], ColumnTransformer]] = {
    "names": lambda X: ColumnTransformer(
        [("a", StandardScaler(), list(X.columns[[4, 1]])), ("b", "passthrough", [X.columns[2]])]
    ),
    "remainder": lambda X: ColumnTransformer([("a", StandardScaler(), list(X.columns[:3]))], remainder="passthrough"),
    "remainder-model": lambda X: ColumnTransformer([("a", PCA(2), list(X.columns[:3]))], remainder=RobustScaler()),
    "drop": lambda X: ColumnTransformer(
        [("a", "drop", [0, 1]), ("b", StandardScaler(), [-1, -2])], remainder=MinMaxScaler()
    ),
    "name-slice": lambda X: ColumnTransformer([("a", StandardScaler(), slice(X.columns[2], X.columns[5]))]),
    "mask": lambda X: ColumnTransformer(
        [("a", StandardScaler(), [j % 2 == 0 for j in range(X.shape[1])])], remainder=PCA(2)
    ),
    "callable": lambda X: ColumnTransformer([("a", StandardScaler(), lambda table: list(table.columns[3:6]))]),
    "selector": lambda X: ColumnTransformer(
        [("a", StandardScaler(), make_column_selector(pattern="a"))], remainder="passthrough"
    ),
    "empty": lambda X: ColumnTransformer([("a", PCA(2), []), ("b", StandardScaler(), list(X.columns))]),
    "overlap-weights": lambda X: ColumnTransformer(
        [("a", StandardScaler(), [0, 1, 2]), ("b", MinMaxScaler(), [1, 2, 3])], transformer_weights={"b": 3.0}
    ),
    "nested": lambda X: ColumnTransformer(
        [
            ("a", make_pipeline(StandardScaler(), PCA(2)), slice(0, 4)),
            ("b", ColumnTransformer([("c", RobustScaler(), [1, 0])]), [5, 6]),
        ]
    ),
}


@pytest.mark.parametrize("kind", ["lda", "tree", "glvq"])
@pytest.mark.parametrize("columns", COLUMNS)
def test_named_columns_and_string_labels(columns: str, kind: str) -> None:
    X, y = frame("wine")
    model = fitted(make_pipeline(COLUMNS[columns](X), MODELS[kind]()), X, y)
    seen = check_law(model, X)
    assert seen.feature_names == tuple(X.columns)
    assert set(seen.classes) == {"class_0", "class_1", "class_2"}


def test_pandas_output_between_the_steps() -> None:
    X, y = frame("wine")
    model = make_pipeline("passthrough", StandardScaler(), PCA(4), LogisticRegression()).set_output(transform="pandas")
    seen = check_law(fitted(model, X, y), X)
    assert seen.feature_names == tuple(X.columns)  # not those of the principal components


def test_nested_pipeline_as_the_last_step() -> None:
    X, y = frame("iris")
    inner = Pipeline([("scale", MinMaxScaler()), ("model", GLVQ(max_iter=20, random_state=0))])
    seen = check_law(fitted(Pipeline([("outer", StandardScaler()), ("inner", inner)]), X, y), X)
    assert seen.encode.matrix.shape == (4, 4)
    assert seen.feature_names == tuple(X.columns)


@pytest.mark.parametrize(
    "search",
    [
        lambda model, grid: GridSearchCV(model, grid, cv=3),
        lambda model, grid: RandomizedSearchCV(model, grid, n_iter=2, cv=3, random_state=0),
        lambda model, grid: HalvingGridSearchCV(model, grid, cv=3, random_state=0),
    ],
)
def test_searches(search: Callable[[Any, Any], Any]) -> None:
    X, y = frame("iris")
    model = search(
        make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0)),
        {"decisiontreeclassifier__max_depth": [1, 3]},
    )
    seen = check_law(model.fit(X, y), X)
    assert seen.model is model
    assert seen.feature_names == tuple(X.columns)


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [7, -3], [2.0, 1.0]])
@pytest.mark.parametrize("kind", MODELS)
def test_kinds_of_labels(labels: list[Any], kind: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    y = np.array(labels)[(X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)]
    seen = check_law(fitted(MODELS[kind](), X, y), X)
    assert seen.region(labels[0]).dim == 2


def test_sparse_coefficients() -> None:
    X, y = data("iris")
    Z = StandardScaler().fit_transform(X)
    check_law(fitted(SGDClassifier(penalty="l1", alpha=0.05, random_state=0), Z, y).sparsify(), Z)
    check_law(fitted(LogisticRegression(C=0.2, l1_ratio=1.0, solver="liblinear"), Z, y == 1).sparsify(), Z)


def test_equal_scores_go_to_the_first_class() -> None:
    model = fitted(LogisticRegression(), *data("iris"))
    model.coef_[1], model.intercept_[1] = model.coef_[0], model.intercept_[0]
    X = data("iris")[0]
    seen = view(model)
    assert len(seen.region(1)) == 0
    np.testing.assert_array_equal(seen.region(0).contains(X, tol=0.0), model.predict(X) == 0)


# ---------------------------------------------------------------- trees and float32

AWKWARD = [0.0, 1e-50, -1e-50, 1e-45, -1e-45, 1e-38, 0.1, -0.1, 0.5, -2.5, 1 / 3, 16777217.0, -16777217.0, 1e30, 3.4e38]
AWKWARD += [float(np.float32(0.1)), float(np.nextafter(np.float32(1), np.float32(2))), 1.00000005960464477539, -1.5]


@given(st.one_of(st.sampled_from(AWKWARD), st.floats(-3.4e38, 3.4e38)))
def test_split_sides_are_neighbours(threshold: float) -> None:
    left, right = (float(side[0]) for side in split_sides([threshold]))
    assert np.nextafter(left, np.inf) == right
    # Not the Python float itself: numpy would round it to float32 for the comparison.
    assert np.float32(left) <= np.float64(threshold)
    assert not np.float32(right) <= np.float64(threshold)


def test_split_sides_beyond_float32() -> None:
    left, right = split_sides([1e300, np.inf, -1e300, -np.inf])
    np.testing.assert_array_equal(left, [np.inf, np.inf, -np.inf, -np.inf])
    np.testing.assert_array_equal(right, left)


def neighbours(value: float) -> np.ndarray:
    found = [value]
    for target in (-np.inf, np.inf):
        step = value
        for _ in range(3):
            step = float(np.nextafter(step, target))
            found.append(step)
    return np.array(found)


@given(
    st.lists(
        st.one_of(st.sampled_from(AWKWARD), st.floats(-(2.0**100), 2.0**100, width=32)),
        min_size=4,
        max_size=12,
        unique=True,
    ),
    st.integers(0, 2**16),
)
def test_tree_is_exact_next_to_every_threshold(values: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.column_stack([values, rng.permutation(values)])
    model = DecisionTreeClassifier(random_state=seed, splitter=rng.choice(["best", "random"])).fit(
        X, rng.integers(0, 3, len(X))
    )
    cuts = model.tree_.threshold[model.tree_.feature >= 0]
    ends = np.concatenate([*split_sides(cuts), cuts, values])
    sides = np.unique(np.concatenate([neighbours(float(end)) for end in ends] + [[0.0]]))
    points = rng.choice(sides, size=(2000, 2))
    seen = view(model)
    predicted = model.predict(points)
    for label in seen.classes:
        np.testing.assert_array_equal(seen.region(label).contains(points, tol=0.0), predicted == label)


def test_tree_boxes_are_disjoint_and_closed_forms_stay_boxes() -> None:
    X, y = data("wine")
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0)).fit(X, y)
    seen = view(model)
    pieces = [piece for label in seen.classes for piece in seen.region(label).pieces]
    assert len(pieces) == model[-1].get_n_leaves()
    assert all(len(piece.halfspaces[0]) == 0 for piece in pieces)
    inside = np.array([piece.contains(X, tol=0.0) for piece in pieces])
    assert (inside.sum(axis=0) == 1).all()


def test_tree_with_missing_values_and_a_label_without_leaf() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    X[:40, 0] = np.nan  # the best split then has threshold infinity: known or missing
    y = np.where(np.isnan(X[:, 0]), "missing", "known")
    seen = view(DecisionTreeClassifier(random_state=0).fit(X, y))
    assert len(seen.region("missing")) == 0
    assert seen.region("missing").dim == 2
    assert seen.region("known").contains(rng.normal(size=(50, 2)), tol=0.0).all()
    single = view(DecisionTreeClassifier().fit(X[40:], y[40:]))
    assert single.region("known").contains(X[40:]).all()


# ---------------------------------------------------------------- prototypes


@pytest.mark.filterwarnings("ignore:divide by zero encountered in log:RuntimeWarning")  # in sklearn's predict
def test_centroid_with_a_prior_of_zero() -> None:
    X, y = data("iris")
    seen = check_law(NearestCentroid(priors=[0.7, 0.3, 0.0]).fit(X, y), X)
    assert len(seen.region(2)) == 0


def test_centroid_with_a_constant_feature() -> None:
    X, y = data("iris")
    X = np.column_stack([X, np.ones(len(X))])
    with pytest.warns(UserWarning, match="zero standard deviation"):
        model = NearestCentroid(priors="empirical").fit(X, y)
    check_law(model, np.column_stack([X[:, :4], np.linspace(0, 2, len(X))]))


def test_cells_have_rows_for_other_labels_only() -> None:
    model = GLVQ.from_prototypes([[0.0, 0.0], [1.0, 0.0], [4.0, 0.0]], ["a", "a", "b"])
    seen = view(model)
    assert [piece.halfspaces[0].shape for piece in seen.region("a").pieces] == [(1, 2), (1, 2)]
    assert [piece.halfspaces[0].shape for piece in seen.region("b").pieces] == [(2, 2)]


@pytest.mark.parametrize("unit", [1e-170, 1e-6, 1e6, 1e170])
def test_units_of_the_prototypes_do_not_matter(unit: float) -> None:
    rng = np.random.default_rng(0)
    prototypes, labels = rng.normal(size=(6, 3)), ["a", "b", "c"] * 2
    points = rng.normal(size=(500, 3)) * 2
    for model in (
        GLVQ.from_prototypes(prototypes * unit, labels),
        GMLVQ.from_prototypes(prototypes * unit, labels, rng.normal(size=(2, 3))),
    ):
        for label in "abc":
            inside = view(model).region(label).contains(points * unit, tol=0.0)
            np.testing.assert_array_equal(inside, model.predict(points * unit) == label)


def test_prototypes_that_the_metric_cannot_tell_apart() -> None:
    model = GMLVQ.from_prototypes([[0.0, 0.0], [5.0, 0.0], [0.0, 3.0]], ["b", "a", "c"], [[0.0, 1.0]])
    points = np.random.default_rng(0).normal(size=(200, 2)) * 4
    seen = view(model)
    assert len(seen.region("a")) == 0
    for label in "abc":
        np.testing.assert_array_equal(seen.region(label).contains(points, tol=0.0), model.predict(points) == label)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_repeated_training_points(named: bool, weights: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(120, 2)).astype(float)
    X[X == 0] = rng.choice([0.0, -0.0], size=int((X == 0).sum()))
    y = rng.choice(["a", "b", "c"], size=120)
    table = pd.DataFrame(X, columns=["u", "v"]) if named else X
    points = np.vstack([X, rng.uniform(-1, 3, size=(500, 2))])
    model = KNeighborsClassifier(n_neighbors=1, algorithm="brute", weights=weights).fit(table, y)
    seen = view(model)
    assert sum(len(seen.region(label)) for label in seen.classes) == 9
    for label in seen.classes:
        np.testing.assert_array_equal(seen.region(label).contains(points, tol=0.0), seen.predict(points) == label)
    with pytest.raises(ValueError, match=r"repeat an earlier point with another label .*algorithm='brute'"):
        view(KNeighborsClassifier(n_neighbors=1, algorithm="kd_tree", weights=weights).fit(table, y))
    # Repetitions of one label are nothing to argue about.
    check_law(KNeighborsClassifier(n_neighbors=1, algorithm="kd_tree").fit(table, X[:, 0] > 1), table)


def test_too_many_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data("iris")
    monkeypatch.setattr(prototypes_module, "LARGEST_REGION", 1e5)
    with pytest.raises(ValueError, match=r"cells x \d+ rows x 4 columns = 0.0 GB.*fewer training points"):
        view(KNeighborsClassifier(n_neighbors=1).fit(X, y))
    # Narrow cells that grow wide when pulled back.
    monkeypatch.setattr(prototypes_module, "LARGEST_REGION", 8 * 50 * 100 * 2)
    seen = view(make_pipeline(PCA(2), KNeighborsClassifier(n_neighbors=1)).fit(X, y))
    with pytest.raises(ValueError, match="Pipeline that ends in KNeighborsClassifier needs"):
        seen.region(0)


# ---------------------------------------------------------------- refusals


def check_refused(model: Any, *parts: str) -> None:
    with pytest.raises(TypeError) as caught:
        view(model)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("make", [SVC, lambda: RandomForestClassifier(n_estimators=3), Ridge, DecisionTreeRegressor])
def test_unsupported_models(make: Callable[[], Any]) -> None:
    X, y = data("iris")
    model = make().fit(X, y)
    check_refused(model, type(model).__name__, "Supported:", "DecisionTreeClassifier")
    check_refused(make_pipeline(StandardScaler(), make()).fit(X, y), type(model).__name__, "Supported:")


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (PolynomialFeatures(), "PolynomialFeatures"),
        (OneHotEncoder(handle_unknown="ignore"), "OneHotEncoder"),
        (MinMaxScaler(clip=True), "MinMaxScaler(clip=True)"),
        (FunctionTransformer(np.log1p), "FunctionTransformer(func=log1p)"),
        (FeatureUnion([("a", PolynomialFeatures())]), "PolynomialFeatures"),
        (ColumnTransformer([("a", OneHotEncoder(handle_unknown="ignore"), [0])]), "OneHotEncoder"),
    ],
)
def test_unsupported_transformers(step: Any, name: str) -> None:
    X, y = data("iris")
    model = fitted(make_pipeline(step, RidgeClassifier()), X, y)
    check_refused(model, name, "Supported steps: StandardScaler")


def test_unsupported_settings() -> None:
    X, y = data("iris")
    check_refused(NearestCentroid(metric="manhattan").fit(X, y), "manhattan", "metric='euclidean'")
    check_refused(KNeighborsClassifier(n_neighbors=5).fit(X, y), "n_neighbors=5", "Supported: n_neighbors=1")
    check_refused(KNeighborsClassifier(n_neighbors=1, p=1).fit(X, y), "manhattan", "Supported: n_neighbors=1")
    weighted = KNeighborsClassifier(n_neighbors=1, metric_params={"w": np.ones(4)}).fit(X, y)
    check_refused(weighted, "minkowski", "Supported: n_neighbors=1")
    check_refused(KNeighborsClassifier(n_neighbors=1, weights=np.exp).fit(X, y), "weights")
    if hasattr(MaxAbsScaler(), "clip"):
        check_refused(make_pipeline(MaxAbsScaler(clip=True), RidgeClassifier()).fit(X, y), "MaxAbsScaler(clip=True)")
    check_refused(make_pipeline(StandardScaler(), "passthrough").fit(X, y), "ends in 'passthrough'", "Supported")


@pytest.mark.parametrize("make", [RidgeClassifier, DecisionTreeClassifier, lambda: KNeighborsClassifier(n_neighbors=1)])
@pytest.mark.parametrize("n_outputs", [2, 3])
def test_several_outputs(make: Callable[[], Any], n_outputs: int) -> None:
    X, y = data("iris")
    outputs = np.column_stack([y == k for k in range(n_outputs)]).astype(int)
    check_refused(make().fit(X, outputs), "outputs per row", "y of shape (n_samples,)")


@pytest.mark.parametrize("kind", MODELS)
def test_unfitted_models(kind: str) -> None:
    with pytest.raises(NotFittedError, match="not fitted yet: call its fit"):
        view(MODELS[kind]())
    with pytest.raises(NotFittedError, match="This Pipeline is not fitted yet"):
        view(make_pipeline(StandardScaler(), MODELS[kind]()))


def test_half_fitted_pipeline_and_searches() -> None:
    X, y = data("iris")
    ridge = RidgeClassifier().fit(X, y)
    with pytest.raises(NotFittedError, match="This StandardScaler is not fitted yet"):
        view(make_pipeline(StandardScaler(), ridge))
    search = GridSearchCV(RidgeClassifier(), {"alpha": [1.0, 2.0]}, cv=3, refit=False)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        view(search)
    with pytest.raises(NotFittedError, match="refit=False"):
        view(search.fit(X, y))
    check_refused(GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, cv=3).fit(X, y), "Ridge", "Supported:")


def test_unknown_label() -> None:
    with pytest.raises(ValueError, match=r"Unknown label 'maybe'; the model knows \[0, 1, 2\]"):
        view(RidgeClassifier().fit(*data("iris"))).region("maybe")


def test_a_transformer_is_one_registration() -> None:
    class Doubler(FunctionTransformer):
        def transform(self, X: Any) -> Any:
            return 2.0 * np.asarray(X)

    @affine.register(Doubler)
    def _doubler(_: Any, n_features: int) -> Affine:
        return Affine(2.0 * np.eye(n_features), np.zeros(n_features))

    X, y = data("iris")
    check_law(fitted(make_pipeline(Doubler(), LogisticRegression(max_iter=1000)), X, y), X)
