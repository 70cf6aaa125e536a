"""The laws of design.md on raw tables: levels, whole numbers, flags and gaps, with encoders and without."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import mixed_tables
from evenhand import (
    L1,
    L2,
    Actionable,
    Closest,
    Explainer,
    HighDensity,
    Penalized,
    Plausible,
    Schema,
    Status,
    Steady,
)
from evenhand.explaining.blockers import Blockers
from evenhand.explaining.exact import ExactExplainer
from raw_laws import COSTS, METHODS, MODELS, assert_same_bytes, made, quietly, told
from threads import one_thread, threads_at_once  # noqa: F401

TABLES = ["encoded", "gaps", "counts"]
WORDS, COUNTS, AMOUNTS = ["housing", "job"], ["age", "dependents"], ["income", "debt"]


@cache
def data(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Words with an order and without, counts and amounts; the same with gaps; counts, flags and an amount only."""
    whole, y = mixed_tables.people(160, 2)
    if name == "counts":
        table = whole[[*COUNTS, "duration", "income"]].assign(phone=whole["phone"] == "yes")
        return table.assign(single=(whole["sex"] == "male").astype(int)), y
    table = whole[[*WORDS, "savings", *COUNTS, *AMOUNTS]].copy()
    if name == "gaps":
        for j, column in enumerate(("income", "dependents")):
            table.loc[table.index[j::9], column] = np.nan
    return table, y


@cache
def fitted(kind: str, name: str) -> Any:
    X, y = data(name)
    if kind == "1nn":
        X, y = X.iloc[:24], y[:24]  # a cell per person
    steps: list[Any] = [StandardScaler()]
    if name != "counts":
        numbers = [SimpleImputer(strategy="median")] if name == "gaps" else []
        levels = OneHotEncoder(handle_unknown="ignore")
        steps = [
            make_column_transformer(
                (levels, [*WORDS, "savings"]), (make_pipeline(*numbers, StandardScaler()), [*COUNTS, *AMOUNTS])
            )
        ]
    return quietly(make_pipeline(*steps, MODELS[kind]()), X, y)


@cache
def explainer(method: str, kind: str, name: str, cost: str = "l1") -> Explainer:
    X, y = data(name)
    schema = Schema.infer(X)
    given, _ = told(schema, cost)
    return made(method, fitted(kind, name), X, y, given, schema if cost == "gower" or method == "external" else None)


def people_of(name: str, n: int = 6) -> pd.DataFrame:
    return data(name)[0].iloc[3 : 3 + n]


# --- Law 1: regions are where predict says so -------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("kind", MODELS)
def test_a_region_contains_exactly_whom_predict_gives_the_label(kind: str, name: str) -> None:
    seen, model = explainer("closest", kind, name).view, fitted(kind, name)
    X, _ = data(name)
    rng = np.random.default_rng(0)
    strangers = pd.DataFrame({column: rng.permutation(X[column].to_numpy()) for column in X}).astype(X.dtypes)
    said = model.predict(strangers)
    expanded = seen.columns.expand(seen.read(strangers))
    for label in seen.classes:
        region = seen.region(label)
        inside, just = region.contains(expanded, 1e-7), region.contains(expanded, -1e-7)
        sure = inside == just  # whoever is on the boundary itself may be given either label
        assert sure.mean() > 0.95
        np.testing.assert_array_equal(inside[sure], (said == label)[sure])


# --- Laws 3 and 5 -----------------------------------------------------------------------------------------------------


# Every family x cost x method; the tables take turns, so that each meets every family, cost and method.
EVERYTHING = [
    (METHODS[m], kind, TABLES[(m + k + c) % 3], COSTS[c])
    for m, (k, kind), c in product(range(len(METHODS)), enumerate(MODELS), range(len(COSTS)))
]
# With a density for each of the cells of 1-NN, one per person, there are too many pieces for a short test.
EXACT = [case for case in EVERYTHING if case[0] in ("closest", "plausible") and case[:2] != ("plausible", "1nn")]


@pytest.mark.parametrize(("method", "kind", "name", "cost"), EXACT)
def test_answers_are_feasible_proven_and_beaten_by_nobody(method: str, kind: str, name: str, cost: str) -> None:
    model, people = fitted(kind, name), people_of(name)
    explain = explainer(method, kind, name, cost)
    assert isinstance(explain, ExactExplainer)
    codes, everybody = explain.view.read(people), explain.view.read(data(name)[0])
    present = explain.view.decide(codes)
    for k, label in enumerate(explain.view.classes):
        rows = np.flatnonzero(present != k)
        if not len(rows):
            continue
        found = explain.explain(people.iloc[rows], target=label)
        check_told(found, model, label)
        problem = explain.projector(k).problem
        reached = np.flatnonzero(found.valid)
        points = explain.view.read(found.counterfactual.iloc[reached])
        asked = codes[rows[reached]]
        assert problem.admits(asked, points, 1e-7 * np.abs(points).max(initial=1.0)).all()
        np.testing.assert_allclose(found.cost[reached], explain.cost.price(asked, points), rtol=1e-9)
        # Of an answer that the model confirms only further inside, the gap is larger, and the status says so.
        larger = np.where(found.status[reached] == Status.OPTIMAL, 1e-7, 1e-5)
        assert (found.gap[reached] <= larger * found.cost[reached] + 1e-9).all()
        # Projecting once more changes nothing.
        again = explain.projector(k).project(points, 0.0)
        assert (again.cost <= 1e-6 * (1.0 + found.cost[reached])).all()
        # Nobody of the data who is inside is nearer.
        for i, x in enumerate(codes[rows]):
            others = everybody[problem.admits(np.repeat(x[None], len(everybody), axis=0), everybody, 0.0)]
            price = explain.cost.price(np.repeat(x[None], len(others), axis=0), others)
            if len(price):
                assert found.valid[i]
                assert found.cost[i] <= price.min() * (1 + 1e-6) + 1e-9


def check_told(found: Any, model: Any, label: Any) -> None:
    """Whoever has an answer is confirmed by the user's own model; whoever has none is told why."""
    if found.valid.any():
        assert (model.predict(found.counterfactual[found.valid]) == label).all()
    assert (found.reason[~found.valid] != "").all()
    assert np.isnan(found.cost[~found.valid]).all()


@pytest.mark.parametrize("kind", ["logistic", "tree"])
def test_answers_are_verified_from_outside(kind: str) -> None:
    explain = explainer("closest", kind, "encoded", "gower")
    assert isinstance(explain, ExactExplainer)
    codes = explain.view.read(people_of("encoded", 4))
    for k in range(2):
        projector = explain.projector(k)
        assert projector.project(codes).verify(projector.problem, codes).ok.all()


# A search takes long where numbers may have any value; test_laws_lattice.py has every family x cost for it.
SEARCHES = [case for case in EVERYTHING if case not in EXACT and (case[0] != "penalized" or case[3] == "l1")]


@pytest.mark.parametrize(("method", "kind", "name", "cost"), SEARCHES)
def test_searches_are_confirmed_by_the_model_or_say_why_not(method: str, kind: str, name: str, cost: str) -> None:
    model, people = fitted(kind, name), people_of(name, 2 if method == "penalized" else 4)
    found = explainer(method, kind, name, cost).explain(people, target="good")
    check_told(found, model, "good")
    assert found.valid.any()
    if method != "plausible":
        least = explainer("closest", kind, name, cost).explain(people, target="good")
        whole = people.notna().all(axis=1).to_numpy()  # an imputer is not known to a search
        assert (found.cost >= least.cost * (1 - 1e-6))[whole & found.valid & least.valid].all()


# --- Law 6: order, chunks and threads ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "kind", "name", "cost"),
    [case for case in EVERYTHING if case[0] != "penalized" or (case[1] in ("logistic", "tree") and case in SEARCHES)],
)
def test_order_chunks_and_threads_change_no_byte(method: str, kind: str, name: str, cost: str) -> None:
    explain, people = explainer(method, kind, name, cost), people_of(name, 2 if method == "penalized" else 5)
    found = explain.explain(people)
    turned = explain.explain(people.iloc[::-1], chunk_size=2, n_jobs=2)
    assert_same_bytes(found, turned, slice(None, None, -1))


@pytest.mark.parametrize("kind", MODELS)
def test_steady_takes_continuous_tables_and_names_what_is_none(kind: str) -> None:
    X, y = data("counts")
    model, people = fitted(kind, "counts"), people_of("counts")
    numbers = Schema.numbers(X)
    for cost in ("l2", L2(weights=pd.Series(np.linspace(0.5, 2.0, X.shape[1]), index=X.columns))):
        steady = Steady(cost=cost, schema=numbers).fit(model, X, y)
        found = steady.explain(people, target="good")
        check_told(found, model, "good")
        turned = steady.explain(people.iloc[::-1], target="good", chunk_size=2, n_jobs=2)
        assert_same_bytes(found, turned, slice(None, None, -1))
        # It is one piece of all, and nobody moves further than they do.
        least = Closest(cost, schema=numbers).fit(model, X, y).explain(people, target="good")
        assert (found.cost >= least.cost * (1 - 1e-9)).all()
        before, after = steady.view.read(people), steady.view.read(found.counterfactual)
        moved, apart = steady.cost(after[1:], after[:-1]), steady.cost(before[1:], before[:-1])
        assert (moved <= apart * (1 + 1e-6) + 1e-9).all()
    with pytest.raises(TypeError, match=r"Schema\.numbers"):
        Steady().fit(model, X, y)
    for cost in ("l1", L1()):
        with pytest.raises(ValueError, match="Steady needs an l2 cost"):
            Steady(cost=cost, schema=numbers).fit(model, X, y)


# --- Whole numbers stay whole -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [Closest(), Plausible(HighDensity(components=[1])), Penalized(restarts=1)])
def test_a_count_never_gets_a_fraction(method: Any) -> None:
    X, y = data("counts")
    counts = ["age", "dependents", "duration", "single"]
    for kind in ("logistic", "tree"):
        model, people = fitted(kind, "counts"), people_of("counts")
        found = method.fit(model, X, y).explain(people)
        table = found.counterfactual[found.valid]
        assert found.valid.any()
        assert (table[counts] == table[counts].round()).all(axis=None)
        assert (table[counts] >= 0).all(axis=None)
        assert table["single"].isin([0, 1]).all()


def test_numbers_throughout_are_asked_for_and_arrays_have_them() -> None:
    X, y = data("counts")
    model, people = fitted("logistic", "counts"), people_of("counts")
    free = Closest(schema=Schema.numbers(X)).fit(model, X, y).explain(people)
    assert (free.counterfactual != free.counterfactual.round()).any(axis=None)
    array = X.to_numpy(dtype=float)
    bare = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(array, y)
    found = Closest().fit(bare, array, y).explain(array[3:9])
    assert isinstance(found.counterfactual, np.ndarray)
    np.testing.assert_allclose(found.cost, free.cost, rtol=1e-6)


# --- What blocks it ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [False, True])
def test_rules_that_block_are_named_alone_and_in_pairs_and_only_when_asked(
    raw: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=80), "b": rng.normal(size=80), "c": rng.normal(size=80)})
    steps: list[Any] = []
    if raw:
        X["word"] = rng.choice(["x", "y"], 80)
        steps = [make_column_transformer((OneHotEncoder(), ["word"]), remainder="passthrough")]
    y = np.where((X["a"] > 0) & (X["b"] > 0), "yes", "no")
    model = make_pipeline(*steps, DecisionTreeClassifier(max_depth=2, random_state=0)).fit(X, y)
    assert (model.predict(X) == y).all()
    people = pd.concat([X[(X["a"] < 0) & (X["b"] > 0)].iloc[:2], X[(X["a"] < 0) & (X["b"] < 0)].iloc[:2]])
    limits = Actionable(immutable=["a", "b", "c"])
    asked: list[int] = []
    reasons = Blockers.reasons
    monkeypatch.setattr(Blockers, "reasons", lambda self: asked.append(1) or reasons(self))
    found = Closest(actionable=limits).fit(model, X, y).explain(people, target="yes")
    assert (found.status == Status.UNREACHABLE).all()
    assert not asked
    told = found.reason
    assert asked
    assert all("'a' is immutable" in reason and "'b'" not in reason for reason in told[:2])
    assert all("'a' is immutable together with 'b' is immutable" in reason for reason in told[2:])
    assert not any("'c'" in reason for reason in told)
