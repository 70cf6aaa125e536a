"""Random small tables of every kind of column, with models and limits; what every answer to them has to satisfy."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand import Actionable, Closest, Column, Explanations, IfChanges, RisesWith, Schema
from mixed_oracles import changed_cost
from strategies import seeds

LABELS = {2: np.array(["no", "yes"]), 3: np.array(["no", "perhaps", "yes"])}
GUARD = 1e-9  # counterfactuals keep 1e-10 from the boundary
SLOW = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def few(count: int) -> settings:
    """As many problems as fit into a test run, or thirty times as many for a thorough one."""
    return settings(SLOW, max_examples=count * (30 if os.environ.get("EVENHAND_HYPOTHESIS") == "thorough" else 1))


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


# --- a table of loans -------------------------------------------------------------------------------------------------


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
