"""What the laws on raw tables share: models of every family, costs, and small tables in which everybody can be tried.

What is tried by brute force is not asked of the package: predictions are the model's own, costs are added up from what
was written into the schema, and densities are computed from the people themselves.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import mixed_tables
from evenhand import (
    GLVQ,
    GMLVQ,
    L1,
    Closest,
    Explainer,
    Explanations,
    External,
    Gower,
    HighDensity,
    Penalized,
    Plausible,
    Schema,
)

MODELS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(max_iter=2000),
    "ridge": RidgeClassifier,
    "svc": lambda: LinearSVC(random_state=0),
    "sgd": lambda: SGDClassifier(random_state=0, average=True),
    "perceptron": lambda: Perceptron(random_state=0),
    "lda": LinearDiscriminantAnalysis,
    "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
    "glvq": lambda: GLVQ(prototypes_per_class=2, max_iter=20, random_state=0),
    "gmlvq": lambda: GMLVQ(max_iter=20, random_state=0),
    "centroid": NearestCentroid,
    "1nn": lambda: KNeighborsClassifier(n_neighbors=1, algorithm="brute"),
}
COSTS = ["l1", "weights", "gower"]
METHODS = ["closest", "plausible", "penalized", "external"]
FEW = 24  # people that 1-NN learns from: a cell for each
PEOPLE = 10  # of a small table, who are explained


def quietly(model: Any, X: Any, y: Any) -> Any:
    """Fit; collinear levels and training that stops early are of no interest here: the model is what it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def told(schema: Schema, cost: str) -> tuple[Any, Schema]:
    """A cost as a user gives it, and the schema with the prices that are meant: changes cost what is written there."""
    if cost == "l1":
        return "l1", schema
    if cost == "weights":
        weights = np.linspace(0.5, 2.0, len(schema))
        named = dict(zip(schema.names, weights.tolist(), strict=True))
        meant = Schema({name: replace(column, weight=named[name]) for name, column in schema.columns.items()})
        return L1(pd.Series(named)[::-1]), meant
    words = {name: column for name, column in schema.columns.items() if column.kind == "categorical"}
    own = {name: replace(column, costs=_own_costs(len(column.levels))) for name, column in words.items()}
    numbers = {name: replace(column, weight=0.7 * column.weight) for name, column in schema.columns.items()}
    meant = Schema({**numbers, **own})
    return Gower(meant), meant


def _own_costs(n: int) -> np.ndarray:
    """To each level from each other, dearer one way than the other."""
    return 1.0 + np.abs(np.subtract.outer(np.arange(n), 2.0 * np.arange(n))) / 4.0


def made(method: str, model: Any, X: pd.DataFrame, y: np.ndarray, cost: Any, schema: Schema | None) -> Explainer:
    """A method, fitted."""
    if method == "closest":
        recipe: Any = Closest(cost, schema=schema)
    elif method == "plausible":
        recipe = Plausible(HighDensity(components=[1]), cost, schema=schema)
    elif method == "penalized":
        recipe = Penalized(cost=cost, restarts=1, schema=schema)
    else:
        answers, whole = model.predict(X), X.notna().all(axis=1).to_numpy()

        def somebody(people: pd.DataFrame, label: Any) -> pd.DataFrame:
            """The first of the data who has the label; nobody where there is none."""
            known = np.flatnonzero((answers == label) & whole)
            if not len(known):
                return people.astype(object).mask(np.ones(people.shape, dtype=bool))
            return X.iloc[known[[0] * len(people)]].set_axis(people.index)

        recipe = External(somebody, cost=cost, schema=schema)
    return recipe.fit(model, X, y)


def assert_same_bytes(a: Explanations, b: Explanations, order: Any = slice(None)) -> None:
    """Two explanations of the same people, of which the second were asked about in another order."""
    pd.testing.assert_frame_equal(a.counterfactual, b.counterfactual.iloc[order], check_exact=True)
    for name in ("target", "cost", "gap", "status", "valid"):
        mine, other = getattr(a, name), getattr(b, name)[order]
        assert mine.dtype == other.dtype
        assert mine.tolist() == other.tolist() or mine.tobytes() == np.ascontiguousarray(other).tobytes(), name


# --- Tables in which everybody can be tried ---------------------------------------------------------------------------

LATTICES = ["levels", "encoders", "counts"]
GAPS = "dependents"  # the column of "encoders" in which some are missing


@cache
def small(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Words with an order and without; words, bins and gaps behind other encoders; counts and flags without any."""
    X, y = mixed_tables.people(160, 2, classes=3 if name == "levels" else 2)
    if name == "levels":
        return X[["housing", "job", "savings", "phone", "dependents"]], y
    if name == "encoders":
        X = X[["region", "education", "age", "dependents"]].astype({"dependents": float})
        X.loc[X.index[::9], GAPS] = np.nan
        return X, y
    flags = {"phone": X["phone"] == "yes", "single": (X["sex"] == "male").astype(int)}
    return X[["dependents", "duration"]].assign(**flags), y


@cache
def small_schema(name: str) -> Schema:
    """What the columns are, with an end to every count."""
    X, _ = small(name)
    known = Schema.infer(X)
    ends = {"dependents": (0.0, 6.0), "age": (18.0, 85.0), "duration": (4.0, 72.0)}
    return Schema({n: replace(c, bounds=ends[n]) if n in ends else c for n, c in known.columns.items()})


@cache
def small_model(kind: str, name: str) -> Any:
    """A model behind encoders; of the counts it is the model alone."""
    X, y = small(name)
    ranks = {column: list(values) for column, values in mixed_tables.RANKS.items()}
    steps: list[Any] = []
    if name == "levels":
        steps = [
            make_column_transformer(
                (OneHotEncoder(), ["housing", "job"]),
                (OneHotEncoder(drop="if_binary"), ["phone"]),
                (OrdinalEncoder(categories=[ranks["savings"]]), ["savings"]),
                (StandardScaler(), ["dependents"]),
            )
        ]
    elif name == "encoders":
        bins = KBinsDiscretizer(4, encode="onehot-dense", strategy="quantile", quantile_method="averaged_inverted_cdf")
        steps = [
            make_column_transformer(
                (make_pipeline(TargetEncoder(random_state=0), StandardScaler()), ["region"]),
                (OrdinalEncoder(categories=[ranks["education"]]), ["education"]),
                (bins, ["age"]),
                (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), ["dependents"]),
            )
        ]
    few = FEW if kind == "1nn" else len(X)
    last = MODELS[kind]()
    return quietly(make_pipeline(*steps, last) if steps else last, X.iloc[:few], y[:few])


@cache
def asked(method: str, name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Some people, each towards every label; a search takes longer, and is asked about fewer."""
    X, y = small(name)
    labels, n = np.unique(y), 2 if method == "penalized" else PEOPLE
    people = X.iloc[np.repeat(np.arange(3, 3 + n), len(labels))].reset_index(drop=True)
    return people, np.tile(labels, n)


@cache
def small_explainer(method: str, kind: str, name: str, cost: str) -> Explainer:
    X, y = small(name)
    given, _ = told(small_schema(name), cost)
    return made(method, small_model(kind, name), X, y, given, small_schema(name))


@cache
def small_answers(method: str, kind: str, name: str, cost: str) -> Explanations:
    people, goal = asked(method, name)
    return small_explainer(method, kind, name, cost).explain(people, target=goal)


class Lattice(NamedTuple):
    """Everybody there can be: values of each column, positions of them, and the table."""

    values: dict[str, list[Any]]
    places: np.ndarray
    table: pd.DataFrame


@cache
def lattice(name: str) -> Lattice:
    X, _ = small(name)
    values: dict[str, list[Any]] = {}
    for column, known in small_schema(name).columns.items():
        if known.kind == "integer":
            values[column] = list(range(int(known.bounds[0]), int(known.bounds[1]) + 1))
        else:
            values[column] = [level for level in known.levels if level is not None]
    places = np.array(list(itertools.product(*[range(len(some)) for some in values.values()])))
    columns = {
        column: pd.Series([some[i] for i in places[:, j]], dtype=X[column].dtype)
        for j, (column, some) in enumerate(values.items())
    }
    return Lattice(values, places, pd.DataFrame(columns))


def place(name: str, person: pd.Series) -> int:
    """Where a person without gaps stands in the lattice; an error if nobody there is like that."""
    values = lattice(name).values
    at = [some.index(person[column]) for column, some in values.items()]
    return int(np.ravel_multi_index(at, [len(some) for some in values.values()]))


def filled(name: str, people: pd.DataFrame) -> pd.DataFrame:
    """People with what the imputer puts for what is missing."""
    return people.fillna({GAPS: small(name)[0][GAPS].median()}) if name == "encoders" else people


def prices(name: str, meant: Schema, person: pd.Series) -> np.ndarray:
    """What it costs a person, without gaps, to become each of the lattice."""
    everybody = lattice(name)
    total = np.zeros(len(everybody.places))
    for j, (column, some) in enumerate(everybody.values.items()):
        known, own = meant.columns[column], person[column]
        if known.kind == "integer":
            cost = known.weight * np.abs(np.array(some, dtype=float) - float(own))
        else:
            i = list(known.levels).index(own)
            others = np.arange(len(some))
            cost = np.abs(others - i) if known.kind == "ordered" else 1.0 * (others != i)
            cost = known.weight * (np.asarray(known.costs)[i] if known.costs is not None else cost)
        total += cost[everybody.places[:, j]]
    return total


@cache
def said(kind: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """What the model says of everybody, and whether no other label comes close: rounding may decide a tie."""
    model, table = small_model(kind, name), lattice(name).table
    last = model[-1] if hasattr(model, "steps") else model
    seen = model[:-1].transform(table) if hasattr(model, "steps") else table
    seen = np.asarray(seen.toarray() if hasattr(seen, "toarray") else seen, dtype=float)
    answers = model.predict(table)
    if kind == "tree":
        return answers, np.ones(len(table), dtype=bool)
    if hasattr(last, "coef_"):
        scores = np.asarray(last.decision_function(seen if name != "counts" else table))
        scores = np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores
    else:
        labels = last.classes_
        points, owner = {
            "centroid": lambda: (last.centroids_, labels),
            "1nn": lambda: (last._fit_X, labels[last._y]),
        }.get(kind, lambda: (last.prototypes_, last.labels_))()
        apart = seen[:, None] - np.asarray(points)
        apart = apart @ last.omega_.T if kind == "gmlvq" else apart
        distance = (apart**2).sum(axis=2)
        scores = -np.array([distance[:, owner == label].min(axis=1) for label in labels]).T
    top = np.sort(scores, axis=1)[:, -2:]
    return answers, top[:, 1] - top[:, 0] > 1e-7 * (1.0 + np.abs(scores).max(axis=1))


@cache
def dense(kind: str, name: str, label: Any) -> tuple[np.ndarray, np.ndarray]:
    """Whether everybody is where half of a label's people are, and whether they are clearly inside or outside.

    The density is a Gaussian of the numbers, times the frequencies of levels and bins; one more of each is added.
    """
    X, y = filled(name, small(name)[0]), small(name)[1]
    table, schema = lattice(name).table, small_schema(name)
    own, everybody = np.zeros((y == label).sum()), np.zeros(len(table))
    numbers = []
    for column, known in schema.columns.items():
        if known.kind == "integer" and not (name == "encoders" and column == "age"):
            numbers.append(column)
            continue
        mine, theirs = X[column][y == label], table[column]
        levels = list(known.levels)
        if column == "age":
            edges = small_model(kind, name)[0].named_transformers_["kbinsdiscretizer"].bin_edges_[0]
            mine, theirs = (np.searchsorted(edges[1:-1], values, side="right") for values in (mine, theirs))
            levels = list(range(len(edges) - 1))
        count = pd.Series(mine).value_counts()
        share = {v: np.log((count.get(v, 0) + 1) / (len(own) + len(levels))) for v in levels}
        own += [share[v] for v in mine]
        everybody += [share[v] for v in theirs]
    Z = X.loc[y == label, numbers].to_numpy(float)
    spread = np.cov(Z.T, bias=True).reshape(len(numbers), -1)
    spread = spread + 1e-6 * np.diag(np.diag(spread))
    mean, precision = Z.mean(axis=0), np.linalg.inv(spread)
    for rows, total in ((Z, own), (table[numbers].to_numpy(float), everybody)):
        np.subtract(total, 0.5 * np.einsum("ij,jk,ik->i", rows - mean, precision, rows - mean), out=total)
    threshold = np.quantile(own, 0.5, method="lower")
    return everybody >= threshold, np.abs(everybody - threshold) > 1e-5
