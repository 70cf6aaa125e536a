"""Tables with categories, ordered levels, whole numbers and continuous ones: as cheap as the oracles say, and valid."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    TargetEncoder,
)
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import mixed_tables
from evenhand import (
    L1,
    Actionable,
    Closest,
    Column,
    Explanations,
    HighDensity,
    IfChanges,
    Plausible,
    RisesWith,
    Schema,
)
from mixed_oracles import Dense, brute_force, changed_cost, leaves, milp, plausible
from strategies import seeds

LABELS = {2: np.array(["no", "yes"]), 3: np.array(["no", "perhaps", "yes"])}
GUARD = 1e-9  # counterfactuals keep 1e-10 from the boundary
SLOW = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def few(count: int) -> settings:
    """As many problems as fit into a test run, or thirty times as many for a thorough one."""
    return settings(SLOW, max_examples=count * (30 if os.environ.get("EVENHAND_HYPOTHESIS") == "thorough" else 1))


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Many small predictions: threads that wait for each other cost more than they bring."""
    with threadpool_limits(1):
        yield


def fitted(model: Any, X: pd.DataFrame, y: np.ndarray) -> Any:
    """Fit; that training stopped early, or that a centroid has no spread, is of no interest here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


# --- small random problems -------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, repr=False)
class Problem:
    X: pd.DataFrame
    y: np.ndarray
    model: Any
    schema: Schema
    actionable: Actionable | None
    rows: np.ndarray
    target: np.ndarray

    def __repr__(self) -> str:
        steps = [(name, step, columns) for name, step, columns in self.model[0].transformers]
        return (
            f"Problem({self.schema.columns}, {self.actionable}, {steps}, {self.model[-1]}, "
            f"people={self.people.to_dict('records')}, target={self.target.tolist()})"
        )

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    @property
    def people(self) -> pd.DataFrame:
        return self.X.iloc[self.rows]

    def explain(self) -> Explanations:
        method = Closest(actionable=self.actionable, schema=self.schema)
        return method.fit(self.model, self.X, self.y).explain(self.people, target=self.target)


CLASSIFIERS = {
    "logistic": lambda C: LogisticRegression(C=C, max_iter=500),
    "centroid": lambda C: NearestCentroid(),
    "tree": lambda C: DecisionTreeClassifier(max_depth=3, random_state=0),
}


@st.composite
def columns_of(draw: Any, smooth: int) -> tuple[dict[str, Column], dict[str, float]]:
    """Columns with at most some thousand combinations, and the units of those without steps."""
    rng = np.random.default_rng(draw(seeds))
    found: dict[str, Column] = {}
    for i in range(draw(st.integers(1, 3))):
        levels = tuple("abcd"[: draw(st.integers(2, 4))])
        found[f"name{i}"] = Column("categorical", levels, weight=rng.uniform(0.3, 3.0), costs=draw(costs_of(levels)))
    for i in range(draw(st.integers(0, 2))):
        levels = ("low", "middle", "high", "top")[: draw(st.integers(2, 4))]
        found[f"rank{i}"] = Column("ordered", levels, weight=rng.uniform(0.3, 3.0), costs=draw(costs_of(levels)))
    for i in range(draw(st.integers(0, 2))):
        most, step = draw(st.integers(2, 6)), draw(st.sampled_from([1.0, 2.0]))
        found[f"count{i}"] = Column("integer", step=step, weight=rng.uniform(0.2, 2.0), bounds=(0.0, float(most)))
    sizes = {name: len(c.levels) or c.bounds[1] + 1 for name, c in found.items()}
    while np.prod(list(sizes.values())) > 3000:
        name = max(sizes, key=sizes.__getitem__)
        del sizes[name], found[name]
    units = {f"number{i}": 10.0 ** draw(st.integers(-2, 3)) for i in range(smooth)}
    for name, unit in units.items():
        found[name] = Column("numeric", weight=rng.uniform(0.3, 3.0) / unit)
    order = rng.permutation(len(found))
    return {list(found)[i]: list(found.values())[i] for i in order}, units


@st.composite
def costs_of(draw: Any, levels: Sequence[str]) -> Any:
    kind = draw(st.sampled_from(["default", "default", "own", "own, some impossible"]))
    if kind == "default":
        return None
    rng = np.random.default_rng(draw(seeds))
    costs = rng.uniform(0.2, 3.0, (len(levels), len(levels)))
    if "impossible" in kind:
        costs[rng.random(costs.shape) < 0.3] = np.inf
    return costs


@st.composite
def limits_of(draw: Any, columns: dict[str, Column], X: pd.DataFrame, ties: bool) -> Actionable | None:
    """What may change; most columns are free."""
    if draw(st.integers(0, 3)) == 0:
        return None
    rng = np.random.default_rng(draw(seeds))
    found: dict[str, Any] = {"immutable": [], "increase": [], "decrease": [], "bounds": {}, "levels": {}}
    for name, column in columns.items():
        ways = ["", "", "", "immutable"]
        ways += ["increase", "decrease"] if column.kind != "categorical" else []
        ways += ["bounds", "increase, bounds"] if column.is_number else ["levels"]
        for way in filter(None, draw(st.sampled_from(ways)).split(", ")):
            if way == "bounds":
                low, high = np.quantile(X[name], np.sort(rng.random(2)))
                if column.kind == "integer":
                    low, high = np.floor(low), np.ceil(high)
                found["bounds"][name] = (low, high) if rng.random() < 0.5 else (None, high)
            elif way == "levels":
                found["levels"][name] = rng.choice(column.levels, rng.integers(1, len(column.levels)), replace=False)
            else:
                found[way].append(name)
    rules: list[Any] = []
    if len(columns) > 1 and draw(st.booleans()):
        a, b = rng.choice(list(columns), 2, replace=False).tolist()
        rules.append(IfChanges(a, stays=b))
    if ties and draw(st.booleans()):
        risen = [name for name, c in columns.items() if c.kind != "categorical" and name not in found["immutable"]]
        if len(risen) > 1:
            a, b = rng.choice(risen, 2, replace=False).tolist()
            if not (a in found["decrease"] and b in found["increase"]):
                rules.append(
                    RisesWith(a, b, ratio=float(rng.choice([0.5, 1.0])) / _unit(columns[b]) * _unit(columns[a]))
                )
    return Actionable(**found, rules=rules)


def _unit(column: Column) -> float:
    return 1.0 / column.weight if column.kind == "numeric" else 1.0


@st.composite
def problems(draw: Any, kinds: Sequence[str], smooth: Sequence[int], ties: bool = True) -> Problem:
    columns, units = draw(columns_of(draw(st.sampled_from(smooth))))
    kind, classes = draw(st.sampled_from(kinds)), draw(st.integers(2, 3))
    rng = np.random.default_rng(draw(seeds))
    n = draw(st.integers(60, 120))
    X, merit = pd.DataFrame(index=pd.RangeIndex(n)), rng.normal(size=n) * draw(st.sampled_from([0.1, 1.0]))
    for name, column in columns.items():
        if column.kind == "numeric":
            values = rng.normal(size=n) * units[name] + rng.normal() * units[name] * 3
            X[name], signal = values, (values - values.mean()) / values.std() * rng.normal()
        else:
            size = len(column.levels) or int(column.bounds[1]) + 1
            codes = np.concatenate([np.arange(size), rng.integers(size, size=n - size)])
            codes = rng.permutation(codes)
            signal = rng.normal(size=size)[codes] if column.levels else codes * rng.normal() / size
            if column.kind == "integer":
                X[name] = codes
            elif column.kind == "ordered":
                X[name] = pd.Categorical.from_codes(codes, categories=list(column.levels), ordered=True)
            else:
                X[name] = np.array(column.levels)[codes]
        merit = merit + signal
    y = LABELS[classes][np.searchsorted(np.quantile(merit, np.arange(1, classes) / classes), merit)]
    numbers = [name for name, column in columns.items() if column.is_number]
    scaled = [name for name in numbers if units.get(name, 1.0) != 1.0 or draw(st.booleans())]
    parts = [
        (
            "names",
            OneHotEncoder(drop=draw(st.sampled_from([None, "first", "if_binary"]))),
            _kind(columns, "categorical"),
        ),
        (
            "ranks",
            OrdinalEncoder(categories=[list(columns[name].levels) for name in _kind(columns, "ordered")]),
            _kind(columns, "ordered"),
        ),
        ("scaled", StandardScaler(), scaled),
        ("kept", "passthrough", [name for name in numbers if name not in scaled]),
    ]
    encoders = ColumnTransformer([part for part in parts if part[2]])
    model = fitted(make_pipeline(encoders, CLASSIFIERS[kind](draw(st.sampled_from([0.01, 1.0, 100.0])))), X, y)
    actionable = draw(limits_of(columns, X, ties))
    rows = rng.choice(n, 3, replace=False)
    target = rng.choice(model.classes_, 3)
    for i, present in enumerate(model.predict(X.iloc[rows[:2]])):  # two of them have to change
        target[i] = rng.choice(model.classes_[model.classes_ != present])
    return Problem(X, y, model, Schema(columns), actionable, rows, target)


def _kind(columns: dict[str, Column], kind: str) -> list[str]:
    return [name for name, column in columns.items() if column.kind == kind]


def check(problem: Problem, found: Explanations, gap: float = 1e-7) -> None:
    """What has to be true of every answer, whatever it costs; with a larger gap it may be called inaccurate."""
    people, after = problem.people, found.counterfactual
    assert list(after.columns) == list(people.columns)
    assert after.index.equals(people.index)
    if found.valid.all():
        pd.testing.assert_series_equal(after.dtypes, people.dtypes)
    assert set(found.status) <= {"optimal", "already", "unreachable", *(["inaccurate"] if gap > 1e-7 else [])}
    np.testing.assert_array_equal(found.valid, found.status != "unreachable")
    np.testing.assert_array_equal(np.isnan(found.cost), ~found.valid)
    assert after[~found.valid].isna().all(axis=None)
    moved = found.valid & (found.status != "already")
    before, after = people[moved], after[moved].astype(people.dtypes)
    if not len(after):
        return
    np.testing.assert_array_equal(problem.model.predict(after), problem.target[moved])
    np.testing.assert_allclose(changed_cost(problem.schema, before, after), found.cost[moved], rtol=1e-9, atol=1e-12)
    assert (found.gap[moved] <= gap * (1.0 + found.cost[moved])).all()
    for name, column in problem.schema.columns.items():
        if column.step is not None:
            steps = (after[name].to_numpy(float) - before[name].to_numpy(float)) / column.step
            np.testing.assert_array_equal(steps, np.round(steps), err_msg=name)
        if column.bounds is not None:
            assert within(after[name], column.bounds), name
    if problem.actionable is not None:
        check_limits(problem.actionable, problem.schema, before, after)


def within(values: pd.Series, interval: tuple[float | None, float | None]) -> bool:
    low, high = interval
    return bool(values.between(-np.inf if low is None else low, np.inf if high is None else high).all())


def check_limits(actionable: Actionable, schema: Schema, before: pd.DataFrame, after: pd.DataFrame) -> None:
    """Exactly: no tolerance but in the ties."""

    def ranks(name: str, frame: pd.DataFrame) -> np.ndarray:
        values = frame[name]
        return (values.cat.codes if isinstance(values.dtype, pd.CategoricalDtype) else values).to_numpy(float)

    for name in actionable.immutable:
        assert after[name].equals(before[name]), name
    for name in actionable.increase:
        assert (ranks(name, after) >= ranks(name, before)).all(), name
    for name in actionable.decrease:
        assert (ranks(name, after) <= ranks(name, before)).all(), name
    for name, interval in actionable.bounds.items():
        assert within(after[name], interval), name
    for name, levels in actionable.levels.items():
        assert (after[name].isin(levels) | (after[name] == before[name])).all(), name
    for rule in actionable.rules:
        if isinstance(rule, IfChanges):
            both = (after[rule.column] != before[rule.column]) & (after[rule.stays] != before[rule.stays])
            assert not both.any(), rule
        else:
            up, driver = (ranks(name, after) - ranks(name, before) for name in (rule.column, rule.driver))
            assert (up - rule.ratio * driver >= -1e-9 * (1.0 + np.abs(up))).all(), rule


def compare(found: float, least: float, most: float, tolerance: float) -> None:
    """A cost between those of a slightly larger and a slightly smaller region; NaN is none."""
    if np.isnan(found):
        assert most == np.inf, f"unreachable, but there is a change of cost {most}"
        return
    assert least <= most
    assert found >= least - tolerance * (1.0 + least), f"cost {found} is too good: {least} is proven"
    assert found <= most + tolerance * (1.0 + most), f"cost {found}, but there is a change of cost {most}"


def agree(found: float, oracle: Any, loose: float, tight: float, tolerance: float) -> None:
    """The oracle is asked twice only where a slightly smaller region does not give the same cost."""
    most = oracle(tight)
    if np.isnan(found) or not abs(found - most) <= tolerance * (1.0 + most):
        compare(found, oracle(loose), most, tolerance)


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


# --- types, encoders and what goes wrong ------------------------------------------------------------------------------


@cache
def loans(classes: int = 2) -> tuple[pd.DataFrame, np.ndarray]:
    """Eight columns, one of every kind."""
    rng, n = np.random.default_rng(7), 240
    X = pd.DataFrame(
        {
            "purpose": rng.choice(["business", "car", "holiday", "house", "yacht"], n, p=[0.2, 0.3, 0.2, 0.25, 0.05]),
            "housing": rng.choice(["free", "own", "rent"], n),
            "savings": pd.Categorical.from_codes(
                rng.integers(4, size=n), ["none", "few", "some", "many"], ordered=True
            ),
            "employed": rng.random(n) < 0.6,
            "age": rng.integers(20, 70, n),
            "months": rng.integers(6, 49, n),
            "income": np.round(np.exp(rng.normal(7.3, 0.4, n)), 2),
            "debt": rng.exponential(900.0, n),
        }
    )
    merit = (
        X["purpose"].map({"business": -0.5, "car": 0.3, "holiday": -1.0, "house": 0.8, "yacht": -0.8}).to_numpy(float)
        + X["housing"].map({"free": 0.0, "own": 0.7, "rent": -0.4}).to_numpy(float)
        + 0.4 * X["savings"].cat.codes.to_numpy()
        + 0.8 * X["employed"].to_numpy()
        + 0.02 * X["age"].to_numpy()
        - 0.04 * X["months"].to_numpy()
        + 0.0008 * X["income"].to_numpy()
        - 0.0006 * X["debt"].to_numpy()
        + 0.5 * rng.normal(size=n)
    )
    codes = np.searchsorted(np.quantile(merit, np.arange(1, classes) / classes), merit)
    return X, LABELS[classes][codes]


WORDS, RANKS, FLAGS = ["purpose", "housing"], ["savings"], ["employed"]
NUMBERS = ["age", "months", "income", "debt"]


def encoders(**instead: Any) -> ColumnTransformer:
    """The usual ones; a keyword replaces those of one kind of column."""
    ranked = OrdinalEncoder(categories=[["none", "few", "some", "many"]])
    usual = {"words": OneHotEncoder(), "ranks": ranked, "flags": "passthrough", "numbers": StandardScaler()}
    columns = {"words": WORDS, "ranks": RANKS, "flags": FLAGS, "numbers": NUMBERS}
    return ColumnTransformer([(name, step, columns[name]) for name, step in (usual | instead).items()])


def refused(model: Any, X: pd.DataFrame, n: int = 12, label: str = "yes") -> pd.DataFrame:
    return X[model.predict(X) != label].iloc[:n]


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


def test_a_search_over_parameters_is_explained_like_its_best_model() -> None:
    X, y = loans()
    search = GridSearchCV(make_pipeline(encoders(), LogisticRegression()), {"logisticregression__C": [0.1, 1.0]}, cv=2)
    search.fit(X, y)
    people = refused(search, X)
    schema = Schema.infer(X)
    found, best = (Closest(schema=schema).fit(m, X, y).explain(people, "yes") for m in (search, search.best_estimator_))
    pd.testing.assert_frame_equal(found.counterfactual, best.counterfactual)
    assert found.valid.all()


def test_the_schema_is_inferred_where_none_is_given() -> None:
    X, y = loans()
    model = make_pipeline(encoders(), LogisticRegression()).fit(X, y)
    people = refused(model, X)
    found, given_one = (Closest(schema=s).fit(model, X, y).explain(people, "yes") for s in (None, Schema.infer(X)))
    pd.testing.assert_frame_equal(found.counterfactual, given_one.counterfactual)
    np.testing.assert_array_equal(found.cost, given_one.cost)


BINS = ["income", "debt"]
BIN_LIMITS = {
    "free": None,
    "one way": Actionable(increase=["income"], decrease=["debt"]),
    "immutable": Actionable(immutable=["income"]),
    "bounds": Actionable(bounds={"debt": (None, 800.0)}),
    "either": Actionable(rules=[IfChanges("income", stays="purpose")]),
}


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


CONVERSIONS: dict[str, dict[str, Any]] = {
    "categories": {"purpose": "category", "housing": "category"},
    "objects": {"purpose": object, "housing": object},
    "strings": {"purpose": "string", "housing": "string"},
    "nullable flag": {"employed": "boolean"},
    "nullable integers": {"age": "Int64", "months": "Int16"},
    "small integers": {"age": np.int8, "months": np.uint8},
    "nullable floats": {"income": "Float64"},
    "ranks without order": {"savings": pd.CategoricalDtype(["none", "few", "some", "many"])},
}


@cache
def plainly() -> tuple[np.ndarray, Explanations]:
    """Who is refused, and what they are told if columns have the usual types."""
    X, y = loans()
    model = make_pipeline(encoders(), LogisticRegression()).fit(X, y)
    where = model.predict(X) != "yes"
    return where, Closest(schema=Schema.infer(X)).fit(model, X, y).explain(X[where], "yes")


@pytest.mark.parametrize("name", CONVERSIONS)
def test_types_come_back_as_they_were_and_change_no_answer(name: str) -> None:
    (plain, y), (where, expected) = loans(), plainly()
    X, schema = plain.astype(CONVERSIONS[name]), Schema.infer(plain)
    model = make_pipeline(encoders(), LogisticRegression()).fit(X, y)
    found = Closest(schema=schema).fit(model, X, y).explain(X[where], "yes")
    pd.testing.assert_series_equal(found.counterfactual.dtypes, X.dtypes)
    np.testing.assert_allclose(found.cost, expected.cost, rtol=1e-7)
    assert (model.predict(found.counterfactual) == "yes").all()
    pd.testing.assert_frame_equal(found.counterfactual.astype(plain.dtypes), expected.counterfactual, rtol=1e-6)
    again = Closest().fit(model, X, y).explain(X[where], "yes")
    pd.testing.assert_series_equal(again.counterfactual.dtypes, X.dtypes)
    assert again.valid.all()


def test_unused_categories_are_nobodys_goal_and_stay_in_the_type() -> None:
    X, y = loans()
    kind = pd.CategoricalDtype(["business", "car", "holiday", "house", "rocket", "yacht"])
    X = X.astype({"purpose": kind})
    model = make_pipeline(encoders(), LogisticRegression()).fit(X, y)
    found = Closest(schema=Schema.infer(X)).fit(model, X, y).explain(refused(model, X), "yes")
    assert found.counterfactual["purpose"].dtype == kind
    assert found.valid.all()
    assert not (found.counterfactual["purpose"] == "rocket").any()


def test_polars_in_polars_out() -> None:
    polars = pytest.importorskip("polars")
    X, y = loans()
    model = make_pipeline(encoders(), LogisticRegression()).fit(X, y)
    people = refused(model, X)
    explainer = Closest(schema=Schema.infer(X)).fit(model, X, y)
    expected = explainer.explain(people, "yes")
    table = polars.from_pandas(people)
    found = explainer.explain(table, "yes")
    assert isinstance(found.counterfactual, polars.DataFrame)
    assert found.counterfactual.schema == table.schema
    np.testing.assert_allclose(found.cost, expected.cost, rtol=1e-12)


def test_a_missing_number_counts_as_imputed_and_stays_missing_if_it_does_not_change() -> None:
    X, y = loans()
    holes = X.copy()
    rng = np.random.default_rng(0)
    for name in ("income", "debt"):
        holes.loc[rng.random(len(X)) < 0.3, name] = np.nan
    model = make_pipeline(
        encoders(numbers=make_pipeline(SimpleImputer(strategy="median"), StandardScaler())), LogisticRegression()
    ).fit(holes, y)
    schema, people = Schema.infer(holes), refused(model, holes, 80)
    explainer = Closest(schema=schema).fit(model, holes, y)
    found = explainer.explain(people, "yes")
    assert (found.status == "optimal").all()
    assert (model.predict(found.counterfactual) == "yes").all()
    medians = holes[["income", "debt"]].median()
    filled = explainer.explain(people.fillna(medians), "yes")
    np.testing.assert_allclose(found.cost, filled.cost, rtol=1e-12)
    for name in ("income", "debt"):
        stays = people[name].isna() & (filled.counterfactual[name] == medians[name])
        assert stays.any()
        np.testing.assert_array_equal(found.counterfactual[name].isna(), stays)
    best = [milp(model, schema, people.fillna(medians).iloc[[i]], "yes", guard=GUARD) for i in range(8)]
    np.testing.assert_allclose(found.cost[:8], best, rtol=1e-7)


def test_a_missing_number_that_nothing_stands_for_is_invalid() -> None:
    X, y = loans()
    model = make_pipeline(encoders(), LogisticRegression()).fit(X, y)
    people = X.iloc[:6].copy()
    people.loc[people.index[2], "income"] = np.nan
    found = Closest(schema=Schema.infer(X)).fit(model, X, y).explain(people, "yes")
    np.testing.assert_array_equal(found.status == "invalid", np.arange(6) == 2)
    assert "income" in found.reason[2]
    assert "missing" in found.reason[2]


@pytest.mark.parametrize("kind", ["str", "object", "category"])
def test_a_missing_level_is_left_but_never_a_goal(kind: str) -> None:
    X, y = loans()
    holes = X.astype({"purpose": kind})
    holes.loc[np.random.default_rng(0).random(len(X)) < 0.3, "purpose"] = None
    assert (y[holes["purpose"].isna()] == "yes").any()
    y = np.where(holes["purpose"].isna(), "yes", y)  # the best purpose is not to say one
    model = make_pipeline(encoders(), LogisticRegression()).fit(holes, y)
    schema = Schema.infer(holes)
    people = holes[(model.predict(holes) != "yes") & (y == "no")].iloc[:40]
    found = Closest(schema=schema).fit(model, holes, y).explain(people, "yes")
    assert found.valid.all()
    assert not (found.counterfactual["purpose"].isna() & people["purpose"].notna()).any()
    pd.testing.assert_series_equal(found.counterfactual.dtypes, holes.dtypes)
    back = Closest(schema=schema).fit(model, holes, y).explain(holes[holes["purpose"].isna()], "no")
    assert back.counterfactual["purpose"].notna().any()
    assert back.valid.all()
    assert (model.predict(back.counterfactual) == "no").all()


def test_who_has_the_target_already_stays_exactly_as_it_is() -> None:
    X, y = loans()
    model = make_pipeline(encoders(), LogisticRegression()).fit(X, y)
    there = X[model.predict(X) == "yes"].iloc[:20]
    limits = Actionable(bounds={"age": (0, 1)}, levels={"purpose": ["yacht"]})
    found = Closest(schema=Schema.infer(X), actionable=limits).fit(model, X, y).explain(there, "yes")
    assert (found.status == "already").all()
    assert (found.cost == 0).all()
    pd.testing.assert_frame_equal(found.counterfactual, there, check_exact=True)


@pytest.mark.parametrize("knows", ["schema and encoder do not", "only the encoder does not"])
def test_a_level_that_the_encoder_never_saw_is_named(knows: str) -> None:
    X, y = loans()
    seen = X["purpose"] != "yacht"
    model = make_pipeline(encoders(), LogisticRegression()).fit(X[seen], y[seen])
    schema = Schema.infer(X[seen] if knows.startswith("schema") else X)
    explainer = Closest(schema=schema).fit(model, X[seen], y[seen])
    people = pd.concat([X[seen].iloc[:5], X[~seen].iloc[:2], X[seen].iloc[5:30]])
    found = explainer.explain(people, "yes")
    unseen = (people["purpose"] == "yacht").to_numpy()
    np.testing.assert_array_equal(found.status == "invalid", unseen)
    for reason in found.reason[unseen]:
        assert "purpose" in reason
        assert "yacht" in reason
    assert found.valid[~unseen].all()
    assert not (found.counterfactual["purpose"][~unseen] == "yacht").any()


def test_a_fraction_in_a_column_of_whole_numbers_is_named() -> None:
    X, y = loans()
    model = make_pipeline(encoders(), LogisticRegression()).fit(X, y)
    people = refused(model, X).astype({"age": float})
    people.loc[people.index[3], "age"] = 30.5
    found = Closest(schema=Schema.infer(X)).fit(model, X, y).explain(people, "yes")
    np.testing.assert_array_equal(found.status == "invalid", np.arange(len(people)) == 3)
    assert "age" in found.reason[3]
    assert "30.5" in found.reason[3]
    assert np.isnan(found.cost[3])


def test_columns_that_are_missing_or_unknown_are_named() -> None:
    X, y = loans()
    model = make_pipeline(encoders(), LogisticRegression()).fit(X, y)
    schema = Schema.infer(X)
    with pytest.raises(ValueError, match="ghost"):
        Closest(schema=Schema({**schema.columns, "ghost": Column("numeric")})).fit(model, X, y)
    with pytest.raises(ValueError, match="income"):
        Closest(schema=Schema({n: c for n, c in schema.columns.items() if n != "income"})).fit(model, X, y)
    explainer = Closest(schema=schema).fit(model, X, y)
    with pytest.raises(ValueError, match="debt"):
        explainer.explain(X.drop(columns="debt"), "yes")
    with pytest.raises(ValueError, match="stars"):
        explainer.explain(X.assign(stars=1.0), "yes")


@pytest.mark.parametrize("kind", ["logistic", "tree"])
def test_allowed_levels_that_leave_no_way_out_are_named(kind: str) -> None:
    X, y = loans()
    X = X[["purpose", "housing"]]
    y = np.where(X["purpose"] == "house", "yes", "no")
    last = LogisticRegression() if kind == "logistic" else DecisionTreeClassifier(random_state=0)
    model = make_pipeline(ColumnTransformer([("words", OneHotEncoder(), WORDS)]), last).fit(X, y)
    schema, people = Schema.infer(X), refused(model, X)
    limits = Actionable(levels={"purpose": ["car", "holiday"], "housing": ["own", "rent"]})
    found = Closest(schema=schema, actionable=limits).fit(model, X, y).explain(people, "yes")
    assert (found.status == "unreachable").all()
    for reason in found.reason:
        assert "purpose" in reason
        assert "housing" not in reason
    opened = Closest(schema=schema, actionable=Actionable(levels={"purpose": ["house"]})).fit(model, X, y)
    assert (opened.explain(people, "yes").cost == 1.0).all()


def test_an_immutable_column_that_leaves_no_way_out_is_named() -> None:
    X, y = loans()
    y = np.where(X["purpose"] == "house", "yes", "no")
    model = make_pipeline(encoders(), DecisionTreeClassifier(random_state=0)).fit(X, y)
    people = refused(model, X)
    limits = Actionable(immutable=["purpose", "age"])
    found = Closest(schema=Schema.infer(X), actionable=limits).fit(model, X, y).explain(people, "yes")
    assert (found.status == "unreachable").all()
    assert all("purpose" in reason and "age" not in reason.replace("stage", "") for reason in found.reason)


def test_weights_by_name_are_those_of_the_schema_and_other_norms_are_refused() -> None:
    X, y = loans()
    model = make_pipeline(encoders(), LogisticRegression()).fit(X, y)
    schema, people = Schema.infer(X), refused(model, X)
    weights = {name: 0.5 + i for i, name in enumerate(X.columns)}
    by_cost = Closest(L1(pd.Series(weights)), schema=schema).fit(model, X, y).explain(people, "yes")
    by_schema = Closest(schema=schema.weighted(weights)).fit(model, X, y).explain(people, "yes")
    pd.testing.assert_frame_equal(by_cost.counterfactual, by_schema.counterfactual)
    np.testing.assert_array_equal(by_cost.cost, by_schema.cost)
    with pytest.raises(ValueError, match="l1"):
        Closest("l2", schema=schema).fit(model, X, y)


class Squares(TransformerMixin, BaseEstimator):
    """A step that nobody understands."""

    def fit(self, X: Any, y: Any = None) -> Squares:
        self.n_features_in_ = np.shape(X)[1]
        return self

    def transform(self, X: Any) -> Any:
        return np.asarray(X) ** 2


def test_a_step_that_is_not_understood_is_named() -> None:
    X, y = loans()
    model = make_pipeline(encoders(numbers=Squares()), LogisticRegression(max_iter=5))
    with pytest.raises(TypeError, match="Squares"):
        Closest(schema=Schema.infer(X)).fit(fitted(model, X, y), X, y)
