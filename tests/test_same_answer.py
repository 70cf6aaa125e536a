"""The same question gets the same answer, to the last bit: whatever the cutoff, batch, order, chunk and threads."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import mixed_tables
from evenhand import (
    GLVQ,
    L1,
    L2,
    Actionable,
    Closest,
    Column,
    Explainer,
    Explanations,
    HighDensity,
    Plausible,
    Schema,
    Steady,
)
from threads import one_thread, threads_at_once  # noqa: F401

DENSITY = HighDensity(components=[2])


@cache
def numbers(name: str) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    X, y = {"iris": load_iris, "wine": load_wine}[name](return_X_y=True)
    steps = {
        "logistic": [LogisticRegression(max_iter=500)],
        "tree": [DecisionTreeClassifier(max_depth=5, random_state=0)],
        "glvq": [GLVQ(prototypes_per_class=2, max_iter=30, random_state=0)],
        "turned tree": [PCA(3), DecisionTreeClassifier(max_depth=4, random_state=0)],
    }
    return X, y, {kind: make_pipeline(StandardScaler(), *last).fit(X, y) for kind, last in steps.items()}


@cache
def over_numbers(name: str, kind: str, cost: str, method: str) -> tuple[Explainer, np.ndarray]:
    X, y, models = numbers(name)
    norm = {"l1": L1.mad(X), "l2": L2(weights=1 / X.var(axis=0)), "mahalanobis": L2.mahalanobis(X)}[cost]
    if method == "closest":
        return Closest(norm).fit(models[kind]), X
    if method == "limited":
        limits = Actionable(immutable=[0], increase=[1], bounds={2: (None, float(X[:, 2].max()))})
        return Closest(norm, actionable=limits).fit(models[kind]), X
    if method == "steady":
        return Steady(DENSITY, norm).fit(models[kind], X, y), X
    return Plausible(DENSITY, norm).fit(models[kind], X, y), X[::3]


@cache
def over_levels(kind: str, method: str) -> tuple[Explainer, pd.DataFrame]:
    X, y = mixed_tables.people(1500, 5, classes=3)
    if kind == "bins":
        names = [*mixed_tables.NAMES, *mixed_tables.RANKS]
        binned = make_column_transformer(
            (OneHotEncoder(), names), (KBinsDiscretizer(5), ["age", "income"]), remainder=StandardScaler()
        )
        model = make_pipeline(binned, LogisticRegression(max_iter=2000)).fit(X, y)
    else:
        model = mixed_tables.models(X, y)[kind]
    if method == "closest":
        return Closest().fit(model, X, y), X
    return Plausible(DENSITY).fit(model, X, y), X.iloc[:150]


def of(table: Any, rows: Any) -> Any:
    return table.iloc[rows] if isinstance(table, pd.DataFrame) else table[rows]


def assert_same(a: Explanations, b: Explanations, rows: Any = slice(None), *, gap: bool = True) -> None:
    """Row by row the same bits; of a what stands at `rows`."""
    pd.testing.assert_frame_equal(
        pd.DataFrame(of(a.counterfactual, rows)), pd.DataFrame(b.counterfactual), check_exact=True
    )
    for name in ("target", "status", "cost", *(["gap"] if gap else [])):
        np.testing.assert_array_equal(getattr(a, name)[rows], getattr(b, name))


def check(explainer: Explainer, X: Any) -> None:
    found = explainer.explain(X)
    # The label that was found, named as the target: no other label's cost cuts the search short.
    asked = np.flatnonzero(found.valid)
    assert len(asked) > 0.5 * len(X)
    named = explainer.explain(of(X, asked), target=found.target[asked])
    assert_same(found, named, asked, gap=False)  # what is proven about all labels is more than about one
    shuffled = np.random.default_rng(0).permutation(len(X))
    assert_same(found, explainer.explain(of(X, shuffled)), shuffled)
    some = slice(0, 150)  # a call for each chunk takes a while with encoders
    assert_same(found, explainer.explain(of(X, some), chunk_size=7), some)
    assert_same(found, explainer.explain(of(X, some), chunk_size=32, n_jobs=2), some)
    for row in range(0, len(X), max(1, len(X) // 12)):
        assert_same(found, explainer.explain(of(X, [row])), [row])


@pytest.mark.parametrize("method", ["closest", "plausible", "limited"])
@pytest.mark.parametrize("cost", ["l1", "l2", "mahalanobis"])
@pytest.mark.parametrize("kind", ["logistic", "tree", "glvq", "turned tree"])
def test_tables_of_numbers(kind: str, cost: str, method: str) -> None:
    check(*over_numbers("wine", kind, cost, method))


@pytest.mark.parametrize("cost", ["l1", "l2", "mahalanobis"])
@pytest.mark.parametrize("kind", ["logistic", "tree", "glvq"])
def test_whatever_else_is_in_memory(kind: str, cost: str) -> None:
    """Loops of vectors are not taken where arrays lie side by side, and go number by number instead."""
    explainer, X = over_numbers("wine", kind, cost, "plausible")
    found = explainer.explain(X)
    rng = np.random.default_rng(0)
    beside = []
    for row in range(len(X)):
        beside.append([np.empty(size) for size in rng.integers(1, 40, 20)])  # moves what is allocated next
        beside[-1] = beside[-1][::2]
        assert_same(found, explainer.explain(of(X, [row])), [row])


@pytest.mark.parametrize("cost", ["l2", "mahalanobis"])
@pytest.mark.parametrize("kind", ["logistic", "glvq"])
def test_steady(kind: str, cost: str) -> None:
    check(*over_numbers("wine", kind, cost, "steady"))


@pytest.mark.parametrize("method", ["closest", "plausible"])
@pytest.mark.parametrize("kind", ["logistic", "tree", "bins"])
def test_raw_tables(kind: str, method: str) -> None:
    check(*over_levels(kind, method))


@pytest.mark.parametrize("method", ["closest", "plausible"])
@pytest.mark.parametrize("kind", ["logistic", "tree"])
def test_answers_of_a_raw_table_do_not_depend_on_the_cutoff(kind: str, method: str) -> None:
    explainer, X = over_levels(kind, method)
    codes = explainer.view.read(X)
    label = explainer.view.positions(explainer.view.predict(codes))
    for k in range(3):
        people = codes[label != k][:100]
        whole = explainer._toward(people, k, np.full(len(people), np.inf))
        for room in (1.0, 1.0 + 1e-9, 1.001, 1.2, 3.0):
            cut = explainer._toward(people, k, whole.cost * room)
            np.testing.assert_array_equal(whole.points, cut.points)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["closest", "plausible"]), st.sampled_from(["l1", "l2"]))
def test_numbers_that_tie(seed: int, method: str, cost: str) -> None:
    """Small whole numbers, so that costs and lengths of different answers are equal."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (40, 3)).astype(float)
    y = rng.integers(0, 3, 40)
    y[:3] = range(3)
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    explainer = Closest(cost).fit(model) if method == "closest" else Plausible(DENSITY, cost).fit(model, X, y)
    check_ties(explainer, X)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_levels_that_tie(seed: int, tree: bool) -> None:
    """Every change of a level costs the same, and numbers count."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.choice(["x", "y", "z"], 60),
            "b": rng.choice(["p", "q"], 60),
            "c": rng.integers(0, 4, 60),
            "d": rng.normal(size=60).round(1),
        }
    )
    y = rng.integers(0, 3, 60)
    y[:3] = range(3)
    last = DecisionTreeClassifier(max_depth=4, random_state=0) if tree else LogisticRegression()
    encoder = make_column_transformer((OneHotEncoder(), ["a", "b"]), remainder="passthrough")
    check_ties(Closest().fit(make_pipeline(encoder, last).fit(X, y), X), X)


def check_ties(explainer: Explainer, X: Any) -> None:
    found = explainer.explain(X)
    asked = np.flatnonzero(found.valid)
    if len(asked):
        assert_same(found, explainer.explain(of(X, asked), target=found.target[asked]), asked, gap=False)
    assert_same(found, explainer.explain(of(X, slice(None, None, -1))), slice(None, None, -1))


@pytest.mark.parametrize("names", [("1 two columns", "2 one column"), ("2 two columns", "1 one column")])
@pytest.mark.parametrize("tree", [True, False])
def test_of_labels_that_cost_the_same_the_one_with_fewer_columns_wins(names: tuple[str, str], tree: bool) -> None:
    """Whatever the order of the labels: two changes of 1 lead to one label, a single change of 2 to another."""
    X = pd.DataFrame([(a, b, c) for a in "xy" for b in "xy" for c in "xy"], columns=list("abc"))
    both, other = (X["a"] == "y") & (X["b"] == "y") & (X["c"] == "x"), X["c"] == "y"
    y = np.select([both, other], names, "0 nobody's")
    last = DecisionTreeClassifier(random_state=0) if tree else LogisticRegression(C=1e3)
    model = make_pipeline(make_column_transformer((OneHotEncoder(), list("abc"))), last).fit(X, y)
    assert (model.predict(X) == y).all()
    level = {name: Column("categorical", levels="xy", weight=2.0 if name == "c" else 1.0) for name in "abc"}
    found = Closest(schema=Schema(level)).fit(model, X).explain(X.iloc[:1])
    assert found.describe(0) == "c: x -> y"
    assert found.cost[0] == 2.0
