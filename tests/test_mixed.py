"""Tables with categories, ordered levels, whole numbers and continuous ones: as cheap as the oracles say, and valid."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder
from sklearn.tree import DecisionTreeClassifier

import mixed_tables
from evenhand import Actionable, Closest, Column, Explanations, HighDensity, IfChanges, Plausible, RisesWith, Schema
from mixed_oracles import Dense, brute_force, changed_cost, leaves, milp, plausible
from mixed_problems import (
    GUARD,
    NUMBERS,
    WORDS,
    Problem,
    agree,
    check,
    compare,
    encoders,
    few,
    fitted,
    loans,
    problems,
    refused,
)
from threads import one_thread  # noqa: F401


@given(problem=problems(["logistic", "centroid", "tree"], smooth=[0]))
@few(30)
def test_nothing_is_cheaper_among_all_combinations_of_levels_and_steps(problem: Problem) -> None:
    found = problem.explain()
    check(problem, found)
    for i, label in enumerate(problem.target):
        best = brute_force(problem.model, problem.schema, problem.people.iloc[[i]], label, problem.actionable)
        compare(found.cost[i], best, best, 1e-9)


@given(problem=problems(["logistic", "centroid"], smooth=[1, 2]))
@few(25)
def test_nothing_is_cheaper_with_continuous_numbers_by_linear_programs(problem: Problem) -> None:
    found = problem.explain()
    check(problem, found)
    for i, label in enumerate(problem.target):
        row = problem.people.iloc[[i]]

        def oracle(guard: float, row: Any = row, label: Any = label) -> float:
            return brute_force(problem.model, problem.schema, row, label, problem.actionable, guard=guard)

        agree(found.cost[i], oracle, -GUARD, GUARD, 1e-7)


@pytest.mark.slow
@given(problem=problems(["tree"], smooth=[1, 2], ties=False))
@few(20)
def test_nothing_is_cheaper_with_continuous_numbers_among_the_leaves_of_a_tree(problem: Problem) -> None:
    found = problem.explain()
    check(problem, found)
    for i, label in enumerate(problem.target):
        row = problem.people.iloc[[i]]

        def oracle(slack: float, row: Any = row, label: Any = label) -> float:
            return leaves(problem.model, problem.schema, row, label, problem.actionable, slack=slack)

        agree(found.cost[i], oracle, 1e-6, -1e-6, 1e-7)


@pytest.mark.slow
@given(
    problem=problems(["logistic", "centroid"], smooth=[1], ties=False) | problems(["tree"], smooth=[0], ties=False),
    quantile=st.sampled_from([0.1, 0.5, 0.9]),
)
@few(30)
def test_nothing_plausible_is_cheaper(problem: Problem, quantile: float) -> None:
    recipe = HighDensity(quantile=quantile, components=[1, 2], folds=2)
    method = Plausible(recipe, schema=problem.schema, actionable=problem.actionable)
    explainer = method.fit(problem.model, problem.X, problem.y)
    found = explainer.explain(problem.people, target=problem.target)
    check(problem, found, gap=1e-4)  # where a density only just reaches its threshold, the threshold's guard is felt
    for i, label in enumerate(problem.target):
        row, mixture = problem.people.iloc[[i]], explainer.densities.mixtures[label]
        parts = [] if mixture is None else zip(mixture.weights_, mixture.means_, mixture.covariances_, strict=True)
        dense = Dense.of(problem.schema, problem.X[problem.y == label], list(parts), quantile)

        def oracle(slack: float, row: Any = row, label: Any = label, dense: Dense = dense) -> float:
            return plausible(problem.model, problem.schema, row, label, dense, problem.actionable, slack=slack)

        agree(found.cost[i], oracle, 1e-6, -1e-6, 1e-6)


@pytest.mark.parametrize("away", [0.3, 0.03, 0.003])
def test_a_level_that_is_dense_only_just_around_the_mean_is_searched_as_well(away: float) -> None:
    """Whoever has the rare level and is `away` standard deviations from the mean is the threshold."""
    rng, n = np.random.default_rng(3), 120
    X = pd.DataFrame({"kind": np.where(np.arange(n) % 6 == 0, "rare", "usual"), "income": rng.normal(size=n)})
    X["income"] += np.repeat([0.0, 6.0], n // 2)
    y = np.repeat(["no", "yes"], n // 2)
    X.loc[[66, 72], "income"] = X["income"][60:].mean() + away * X["income"][60:].std()
    encode = ColumnTransformer([("names", OneHotEncoder(), ["kind"]), ("numbers", StandardScaler(), ["income"])])
    model = make_pipeline(encode, LogisticRegression()).fit(X, y)
    schema = Schema({"kind": Column("categorical", ["rare", "usual"], weight=5.0), "income": Column("numeric")})

    def fit(quantile: float) -> tuple[Any, Dense]:
        explainer = Plausible(HighDensity(quantile=quantile, components=[1]), schema=schema).fit(model, X, y)
        mixture = explainer.densities.mixtures["yes"]
        parts = list(zip(mixture.weights_, mixture.means_, mixture.covariances_, strict=True))
        return explainer, Dense.of(schema, X[60:], parts, quantile)

    rank = int(np.argsort(np.argsort(fit(0.0)[1].scores(X[60:])))[72 - 60])
    explainer, dense = fit(rank / 59.0)
    people = X[:60][X["kind"][:60] == "rare"]
    found = explainer.explain(people, "yes")
    for i in range(len(people)):

        def oracle(slack: float, row: Any = people.iloc[[i]]) -> float:
            return plausible(model, schema, row, "yes", dense, slack=slack)

        agree(found.cost[i], oracle, 1e-6, -1e-6, 1e-6)
    assert (found.counterfactual["kind"] == "rare").all()


@pytest.mark.slow
@given(problem=problems(["logistic"], smooth=[0, 1, 2]), max_nodes=st.sampled_from([1, 2, 4, 16]))
@few(10)
def test_a_search_that_stops_early_claims_only_what_it_has_proven(problem: Problem, max_nodes: int) -> None:
    def explain(nodes: int) -> Explanations:
        method = Closest(actionable=problem.actionable, schema=problem.schema, max_nodes=nodes)
        return method.fit(problem.model, problem.X, problem.y).explain(problem.people, target=problem.target)

    short, full = explain(max_nodes), explain(100_000)
    assert set(short.status) <= {"optimal", "already", "unreachable", "inaccurate", "failed"}
    for mine, gap, best, status in zip(short.cost, short.gap, full.cost, short.status, strict=True):
        room = 1e-7 * (1.0 + np.nan_to_num(best))
        if status in ("optimal", "already"):
            assert abs(mine - best) <= room
        elif status == "inaccurate":
            assert mine >= best - room
            assert mine - gap <= best + room
        else:
            assert status == "failed" or np.isnan(best)
        event(status)


# --- the oracles ------------------------------------------------------------------------------------------------------


@given(problem=problems(["logistic", "centroid"], smooth=[1, 2]))
@few(10)
def test_the_two_oracles_for_linear_models_agree(problem: Problem) -> None:
    row, label = problem.people.iloc[[0]], problem.target[0]
    question = (problem.model, problem.schema, row, label, problem.actionable)
    tried, solved = brute_force(*question, guard=GUARD), milp(*question, guard=GUARD)
    assert solved == tried or abs(solved - tried) <= 1e-7 * (1.0 + tried)


@given(problem=problems(["tree"], smooth=[0], ties=False))
@few(10)
def test_the_two_oracles_for_trees_agree(problem: Problem) -> None:
    row, label = problem.people.iloc[[0]], problem.target[0]
    question = (problem.model, problem.schema, row, label, problem.actionable)
    tried, looked_up = brute_force(*question), leaves(*question)
    assert looked_up == tried or abs(looked_up - tried) <= 1e-9 * (1.0 + tried)


# --- twenty columns ---------------------------------------------------------------------------------------------------


@cache
def many(classes: int) -> tuple[pd.DataFrame, np.ndarray, dict[str, Any]]:
    X, y = mixed_tables.people(1500, 0, classes)
    return X, y, mixed_tables.models(X, y)


LIMITS = {
    "free": None,
    "limited": Actionable(
        immutable=["sex", "age"],
        increase=["education", "tenure"],
        decrease=["debt"],
        bounds={"duration": (6, 60), "utilisation": (0.05, 0.95), "dependents": (0, 6)},
        levels={"purpose": ["car", "house", "repairs"]},
        rules=[IfChanges("job", stays="region"), RisesWith("expenses", "income", 0.25)],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("limits", "n"), [("free", 20), ("limited", 10)])
@pytest.mark.parametrize("classes", [2, 3])
def test_twenty_columns_cost_what_highs_says(classes: int, limits: str, n: int) -> None:
    X, y, models = many(classes)
    schema, model, target = mixed_tables.schema_of(X), models["logistic"], mixed_tables.LABELS[classes][0]
    other = X[model.predict(X) != target].iloc[:n]
    problem = Problem(X, y, model, schema, LIMITS[limits], X.index.get_indexer(other.index), np.repeat(target, n))
    found = problem.explain()
    check(problem, found)
    assert (found.status == "optimal").all()
    for i in range(n):

        def oracle(guard: float, row: Any = other.iloc[[i]]) -> float:
            return milp(model, schema, row, target, LIMITS[limits], guard=guard)

        agree(found.cost[i], oracle, -GUARD, GUARD, 1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(("limits", "n"), [("free", 15), ("limited", 10)])
@pytest.mark.parametrize("classes", [2, 3])
def test_twenty_columns_cost_what_the_leaves_of_a_tree_say(classes: int, limits: str, n: int) -> None:
    X, y, models = many(classes)
    schema, model, target = mixed_tables.schema_of(X), models["tree"], mixed_tables.LABELS[classes][0]
    limited = LIMITS[limits]
    if limited is not None:
        limited = dataclasses.replace(limited, rules=[IfChanges("job", stays="region")])  # what leaves can ask
    other = X[model.predict(X) != target].iloc[:n]
    problem = Problem(X, y, model, schema, limited, X.index.get_indexer(other.index), np.repeat(target, n))
    found = problem.explain()
    check(problem, found)
    for i in range(n):

        def oracle(slack: float, row: Any = other.iloc[[i]]) -> float:
            return leaves(model, schema, row, target, limited, slack=slack)

        agree(found.cost[i], oracle, 1e-6, -1e-6, 1e-7)


@pytest.mark.parametrize("kind", ["logistic", "tree"])
@pytest.mark.parametrize("classes", [2, 3])
def test_limits_are_honoured_to_the_last_digit(classes: int, kind: str) -> None:
    X, y, models = many(classes)
    schema, model, target = mixed_tables.schema_of(X), models[kind], mixed_tables.LABELS[classes][0]
    problem = Problem(X, y, model, schema, LIMITS["limited"], np.arange(len(X)), np.repeat(target, len(X)))
    found = problem.explain()
    check(problem, found)
    assert (found.status == "optimal").any()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["logistic", "tree"])
@pytest.mark.parametrize("classes", [2, 3])
def test_plausible_answers_to_twenty_columns_are_proven_valid_and_cost_no_less(classes: int, kind: str) -> None:
    X, y, models = many(classes)
    schema, model, target = mixed_tables.schema_of(X), models[kind], mixed_tables.LABELS[classes][0]
    other = X[model.predict(X) != target].iloc[:20]
    closest = Closest(schema=schema).fit(model, X, y).explain(other, target=target)
    last = closest.cost
    for quantile in (0.05, 0.5):
        recipe = HighDensity(quantile=quantile, components=[2])
        found = Plausible(recipe, schema=schema).fit(model, X, y).explain(other, target=target)
        assert (found.status == "optimal").all()
        assert (model.predict(found.counterfactual) == target).all()
        assert (found.cost >= last * (1.0 - 1e-7)).all()
        assert (found.cost > last * (1.0 + 1e-3)).any()
        last = found.cost


@pytest.mark.parametrize("kind", ["logistic", "tree"])
@pytest.mark.parametrize("method", ["closest", "plausible"])
def test_the_answer_depends_neither_on_the_order_of_people_nor_on_chunks(method: str, kind: str) -> None:
    X, y, models = many(3)
    schema = mixed_tables.schema_of(X)
    recipe = Closest(schema=schema) if method == "closest" else Plausible(HighDensity(components=[2]), schema=schema)
    explainer = recipe.fit(models[kind], X, y)
    people = X.iloc[:45]
    whole = explainer.explain(people, target="accept")
    order = np.random.default_rng(0).permutation(len(people))
    for other, back in (
        (explainer.explain(people, target="accept", chunk_size=7), np.arange(len(people))),
        (explainer.explain(people.iloc[order], target="accept"), np.argsort(order)),
        (explainer.explain(people, target="accept", n_jobs=2, chunk_size=11), np.arange(len(people))),
    ):
        pd.testing.assert_frame_equal(other.counterfactual.iloc[back], whole.counterfactual, check_exact=True)
        np.testing.assert_array_equal(other.cost[back], whole.cost)
        np.testing.assert_array_equal(other.status[back], whole.status)


def test_without_a_target_the_cheapest_other_label_is_taken() -> None:
    X, y, models = many(3)
    explainer = Closest(schema=mixed_tables.schema_of(X)).fit(models["logistic"], X, y)
    people = X.iloc[:30]
    present = models["logistic"].predict(people)
    found = explainer.explain(people)
    costs = {label: explainer.explain(people, target=label).cost for label in mixed_tables.LABELS[3]}
    best = np.min([np.where(present == label, np.inf, cost) for label, cost in costs.items()], axis=0)
    np.testing.assert_allclose(found.cost, best, rtol=1e-9)
    np.testing.assert_array_equal(models["logistic"].predict(found.counterfactual), found.target)
    assert (found.target != present).all()


# --- encoders and bins ------------------------------------------------------------------------------------------------


PIPELINES: dict[str, Any] = {
    "usual": lambda: [encoders()],
    "dropped levels": lambda: [encoders(words=OneHotEncoder(drop="first", sparse_output=False))],
    "flags by names": lambda: [encoders(flags=OneHotEncoder(drop="if_binary"))],
    "flags by rank": lambda: [encoders(flags=OrdinalEncoder())],
    "pca": lambda: [encoders(words=OneHotEncoder(sparse_output=False)), PCA(6)],
    "scaled pca": lambda: [
        encoders(words=OneHotEncoder(sparse_output=False)),
        StandardScaler(),
        PCA(8),
        StandardScaler(),
    ],
    "target encoder": lambda: [encoders(words=TargetEncoder(random_state=0))],
    "infrequent levels": lambda: [
        encoders(words=OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=0.22))
    ],
    "most levels": lambda: [encoders(words=OneHotEncoder(max_categories=3, handle_unknown="infrequent_if_exist"))],
    "selector": lambda: [
        make_column_transformer(
            (OneHotEncoder(), make_column_selector(dtype_include=["str"])),
            (
                OrdinalEncoder(categories=[["none", "few", "some", "many"]]),
                make_column_selector(dtype_include="category"),
            ),
            (StandardScaler(), make_column_selector(dtype_include="number")),
            remainder="passthrough",
        )
    ],
    "nested": lambda: [
        make_pipeline(
            encoders(
                numbers=make_pipeline(SimpleImputer(), make_pipeline(StandardScaler(), "passthrough")),
                words=make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
            ),
            "passthrough",
        )
    ],
    "dropped columns": lambda: [encoders(flags="drop", ranks="drop")],
    "columns left over": lambda: [
        ColumnTransformer([("words", OneHotEncoder(), WORDS), ("numbers", StandardScaler(), NUMBERS[:3])])
    ],
}


@pytest.mark.parametrize(
    ("name", "classes"),
    [*((name, 2) for name in PIPELINES), *((name, 3) for name in ("usual", "pca", "target encoder"))],
)
def test_through_every_encoder_costs_are_those_of_highs(name: str, classes: int) -> None:
    X, y = loans(classes)
    model = fitted(make_pipeline(*PIPELINES[name](), LogisticRegression(max_iter=1000)), X, y)
    schema, people = Schema.infer(X), refused(model, X, 5)
    found = Closest(schema=schema).fit(model, X, y).explain(people, target="yes")
    assert (found.status == "optimal").all()
    assert (model.predict(found.counterfactual) == "yes").all()
    pd.testing.assert_series_equal(found.counterfactual.dtypes, X.dtypes)
    np.testing.assert_allclose(changed_cost(schema, people, found.counterfactual), found.cost, rtol=1e-9)
    for i in range(len(people)):
        best = milp(model, schema, people.iloc[[i]], "yes", guard=GUARD)
        assert abs(found.cost[i] - best) <= 1e-7 * (1.0 + best)
    if "column" in name:
        used = set(np.concatenate([part[2] for part in model[0].transformers_ if part[1] != "drop"]).tolist())
        unused = [column for column in X.columns if column not in used]
        assert unused
        pd.testing.assert_frame_equal(found.counterfactual[unused], people[unused])


BINS = ["income", "debt"]
BIN_LIMITS = {
    "free": None,
    "one way": Actionable(increase=["income"], decrease=["debt"]),
    "immutable": Actionable(immutable=["income"]),
    "bounds": Actionable(bounds={"debt": (None, 800.0)}),
    "either": Actionable(rules=[IfChanges("income", stays="purpose")]),
}


@cache
def binned(kind: str, encode: str) -> tuple[pd.DataFrame, np.ndarray, Any]:
    X, y = loans()
    X = X[["purpose", "months", *BINS]].assign(months=X["months"] // 6)
    parts = ColumnTransformer(
        [
            ("words", OneHotEncoder(), ["purpose"]),
            ("bins", KBinsDiscretizer(4, encode=encode), BINS),
            ("numbers", StandardScaler(), ["months"]),
        ]
    )
    last = LogisticRegression(C=10.0) if kind == "logistic" else DecisionTreeClassifier(max_depth=5, random_state=0)
    return X, y, make_pipeline(parts, last).fit(X, y)


@pytest.mark.parametrize("limits", BIN_LIMITS)
@pytest.mark.parametrize("encode", ["onehot", "ordinal"])
@pytest.mark.parametrize("kind", ["logistic", "tree"])
def test_binned_numbers_move_just_into_the_next_bin(kind: str, encode: str, limits: str) -> None:
    X, y, model = binned(kind, encode)
    schema = Schema.infer(X)
    schema = schema.with_columns(months=dataclasses.replace(schema["months"], bounds=(1.0, 8.0)))
    people, edges = refused(model, X, 6), model[0].named_transformers_["bins"].bin_edges_
    target = np.repeat("yes", len(people))
    problem = Problem(X, y, model, schema, BIN_LIMITS[limits], X.index.get_indexer(people.index), target)
    found = problem.explain()
    check(problem, found)
    cuts = {
        name: [edge * (1.0 + off) for edge in some[1:-1] for off in (-1e-8, 1e-8)]
        for name, some in zip(BINS, edges, strict=True)
    }
    for i in range(len(people)):
        best = brute_force(model, schema, people.iloc[[i]], "yes", BIN_LIMITS[limits], cuts=cuts)
        compare(found.cost[i], best, best, 1e-6)
