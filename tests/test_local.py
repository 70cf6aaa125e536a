"""Searches of any model on any table: valid, within all limits, on the lattice, never dearer than a real person."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mixed_tables
from evenhand import (
    Actionable,
    Closest,
    Column,
    External,
    IfChanges,
    Mixed,
    Penalized,
    RisesWith,
    Schema,
    Status,
    audit,
    compare,
    instability,
)
from evenhand.perturbations import Categorical, Count

LEVELS = [*mixed_tables.NAMES, *mixed_tables.RANKS]


@cache
def loans() -> tuple[pd.DataFrame, np.ndarray]:
    return mixed_tables.people(600, 5)


def encoded(last: Any, X: pd.DataFrame, y: np.ndarray, *, scaled: bool = False) -> Any:
    rest = StandardScaler() if scaled else "passthrough"
    return make_pipeline(make_column_transformer((OneHotEncoder(), LEVELS), remainder=rest), last).fit(X, y)


@cache
def model(kind: str) -> Any:
    X, y = loans()
    forest = RandomForestClassifier(10, random_state=0)
    if kind == "boosting":
        return encoded(HistGradientBoostingClassifier(max_iter=20, random_state=0), X.copy(), y)
    if kind == "native categories":
        typed = X.astype(dict.fromkeys(LEVELS, "category"))
        return HistGradientBoostingClassifier(max_iter=20, categorical_features="from_dtype").fit(typed, y)
    if kind == "vote":
        return encoded(VotingClassifier([("forest", forest), ("bayes", GaussianNB())]), X, y)
    if kind == "calibrated":
        return encoded(CalibratedClassifierCV(forest, cv=2), X, y)
    if kind == "network":
        return encoded(MLPClassifier((8,), random_state=0, max_iter=40, tol=0.1), X, y, scaled=True)
    return encoded(forest, X, y)


def table(kind: str) -> pd.DataFrame:
    X, _ = loans()
    return X.astype(dict.fromkeys(LEVELS, "category")) if kind == "native categories" else X


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["forest", "boosting", "native categories", "vote", "calibrated", "network"])
def test_any_model_on_a_raw_table(kind: str) -> None:
    X, fitted = table(kind), model(kind)
    people = X[fitted.predict(X) == "bad"].iloc[:6]
    found = Penalized().fit(fitted, X).explain(people, target="good")
    assert set(found.status) == {Status.LOCAL}
    assert found.counterfactual.dtypes.equals(people.dtypes)
    assert (fitted.predict(found.counterfactual) == "good").all()  # as returned, types and all
    again = Penalized().fit(fitted, X).explain(people.iloc[::-1], target="good")
    pd.testing.assert_frame_equal(again.counterfactual.iloc[::-1], found.counterfactual)  # nothing is random
    never_dearer_than_a_real_person(fitted, X, people, found.cost, None)


def never_dearer_than_a_real_person(
    fitted: Any, X: pd.DataFrame, people: pd.DataFrame, cost: np.ndarray, free: list[str] | None
) -> None:
    """From the definition: Gower's distance with the inferred weights, row by row; only `free` columns may differ."""
    schema = Schema.infer(X)
    granted = X[fitted.predict(X) == "good"]
    for (_, person), price in zip(people.iterrows(), cost, strict=True):
        total = np.zeros(len(granted))
        for name, column in schema.columns.items():
            if column.kind == "ordered":
                rank = {level: i for i, level in enumerate(column.levels)}
                total += (granted[name].map(rank).astype(float) - rank[person[name]]).abs().to_numpy()
            elif column.is_number:
                total += column.weight * (granted[name] - person[name]).abs().to_numpy()
            else:
                total += (granted[name] != person[name]).to_numpy()
            if free is not None and name not in free:
                total[(granted[name] != person[name]).to_numpy()] = np.inf
        assert price <= total.min() * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["forest", "boosting"])
def test_every_part_of_the_limits_is_obeyed(kind: str) -> None:
    X, fitted = table(kind), model(kind)
    people = X[fitted.predict(X) == "bad"].iloc[:25]
    limits = Actionable(
        immutable=["sex", "age"],
        increase=["income", "education"],
        decrease=["debt"],
        bounds={"amount": (500, 5000)},
        levels={"purpose": ["car", "house"]},
        rules=[RisesWith("expenses", "income", ratio=0.1), IfChanges("job", stays="region")],
    )
    schema = mixed_tables.schema_of(X)  # amounts in hundreds
    found = Penalized(actionable=limits, schema=schema).fit(fitted, X).explain(people, target="good")
    assert found.valid.mean() > 0.5
    before, after = people[found.valid], found.counterfactual[found.valid]
    assert (fitted.predict(after) == "good").all()
    assert (after[["sex", "age"]] == before[["sex", "age"]]).all().all()
    assert (after["income"] >= before["income"]).all()
    assert (after["education"] >= before["education"]).all()
    assert (after["debt"] <= before["debt"]).all()
    assert after["amount"].between(500, 5000).all()
    assert ((after["amount"] - before["amount"]) % 100 == 0).all()
    assert ((after["purpose"] == before["purpose"]) | after["purpose"].isin(["car", "house"])).all()
    rises = after["expenses"] - before["expenses"] - 0.1 * (after["income"] - before["income"])
    assert (rises >= -1e-6).all()
    assert ((after["job"] == before["job"]) | (after["region"] == before["region"])).all()
    assert (after[["dependents", "duration"]] == after[["dependents", "duration"]].round()).all().all()


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_never_better_than_brute_force_and_often_as_good(seed: int) -> None:
    """A small lattice, every point of which is asked: no answer is cheaper, and none is missing without a reason."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.integers(0, 5, 60), "b": rng.choice(["x", "y", "z"], 60), "c": rng.random(60) < 0.5})
    y = rng.integers(0, 2, 60)
    y[:2] = 0, 1
    encoder = make_column_transformer((OneHotEncoder(), ["b"]), remainder="passthrough")
    fitted = make_pipeline(encoder, RandomForestClassifier(3, random_state=0)).fit(X, y)
    schema = Schema(
        {"a": Column("integer", weight=0.7), "b": Column("categorical", levels="xyz"), "c": Column("boolean")}
    )
    grid = pd.DataFrame(itertools.product(range(5), "xyz", [False, True]), columns=["a", "b", "c"])
    granted = grid[fitted.predict(grid) == 1]
    people = X[fitted.predict(X) == 0].iloc[:8]
    if not len(people):
        return
    found = Penalized(schema=schema).fit(fitted, X).explain(people, target=1)
    for (_, person), cost, status in zip(people.iterrows(), found.cost, found.status, strict=True):
        price = 0.7 * (granted["a"] - person["a"]).abs() + (granted["b"] != person["b"]) + (granted["c"] != person["c"])
        if status == Status.LOCAL:
            assert cost >= price.min() - 1e-9
            assert cost <= 2.5 * price.min() + 1e-9


@pytest.mark.slow
def test_missing_values_go_through_the_users_own_pipeline() -> None:
    X, y = loans()
    X = X.copy()
    X.loc[X.index[::5], "income"] = np.nan
    X["job"] = X["job"].astype(object)
    X.loc[X.index[::7], "job"] = None
    numbers = [name for name in X if name not in LEVELS]
    words = make_pipeline(SimpleImputer(strategy="most_frequent", missing_values=None), OneHotEncoder())
    steps = make_column_transformer((words, LEVELS), (SimpleImputer(), numbers))
    pipeline = make_pipeline(steps, RandomForestClassifier(10, random_state=0)).fit(X, y)
    typed = X.astype(dict.fromkeys(LEVELS, "category"))
    native = HistGradientBoostingClassifier(max_iter=20, categorical_features="from_dtype").fit(typed, y)
    for fitted, frame in ((pipeline, X), (native, typed)):
        people = frame[(fitted.predict(frame) == "bad") & frame["income"].isna()].iloc[:4]
        assert len(people) == 4
        found = Penalized().fit(fitted, frame).explain(people, target="good")
        assert (found.status == Status.LOCAL).all()
        assert (fitted.predict(found.counterfactual) == "good").all()
        stays = found.counterfactual["income"].isna()
        assert stays.any()  # what is missing may stay missing
        assert "income" not in found.describe(int(np.argmax(stays)))


def test_whole_numbers_and_flags_of_a_table_of_numbers_stay_what_they_are() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"open": rng.integers(0, 6, 200), "flag": rng.random(200) < 0.5, "rate": rng.normal(size=200)})
    fitted = RandomForestClassifier(10, random_state=0).fit(X, X["open"] + 2 * X["flag"] + X["rate"] > 3)
    found = Penalized().fit(fitted, X).explain(X[~fitted.predict(X)].iloc[:20], target=True)
    assert found.valid.all()
    assert found.counterfactual.dtypes.equals(X.dtypes)
    as_numbers = Penalized(schema=Schema.numbers(X)).fit(fitted, X.astype(float)).view
    assert as_numbers.reader.plain


def test_one_immutable_column_asks_no_more_of_the_model() -> None:
    """Predictions are counted: with a limit the search must not fall back to something slower."""
    X, fitted = table("forest"), model("forest")
    people = X[fitted.predict(X) == "bad"].iloc[:20]

    class Counted:
        classes_, n_features_in_, feature_names_in_ = (
            fitted.classes_,
            X.shape[1],
            np.array(list(X.columns), dtype=object),
        )
        rows = 0

        def predict(self, part: pd.DataFrame) -> np.ndarray:
            Counted.rows += len(part)
            return fitted.predict(part)

    asked = []
    for limits in (None, Actionable(immutable=["income"])):
        explainer = Penalized(actionable=limits).fit(Counted(), X)
        Counted.rows = 0
        assert explainer.explain(people, target="good").valid.all()
        asked.append(Counted.rows)
    assert asked[1] <= 1.5 * asked[0]


def test_another_tool_on_a_raw_table() -> None:
    X, fitted = table("forest"), model("forest")
    people = X[fitted.predict(X) == "bad"].iloc[:10]
    granted = X[fitted.predict(X) == "good"]

    def somebody(asked: pd.DataFrame, label: Any) -> pd.DataFrame:
        answer = pd.concat([granted.iloc[:1]] * len(asked)).set_axis(asked.index)
        answer = answer.astype({"duration": float, "age": float, "dependents": float, "amount": float})
        answer.iloc[0] = None  # this one has none
        return answer

    found = External(somebody).fit(fitted, X).explain(people, target="good")
    assert found.status.tolist() == ["missing"] + ["local"] * 9
    assert (found.cost[1:] > 0).all()
    assert (fitted.predict(found.counterfactual.iloc[1:]) == "good").all()
    with pytest.raises(TypeError, match="DataFrame"):
        External(lambda asked, label: asked.to_numpy()).fit(fitted, X).explain(people, target="good")


@pytest.mark.slow
def test_everything_that_is_built_on_explainers_runs() -> None:
    X, fitted = table("forest"), model("forest")
    _, y = loans()
    people = X[fitted.predict(X) == "bad"].iloc[:8]
    noise = Mixed({"dependents": Count(1), "purpose": Categorical(0.5)})
    searched = Penalized().fit(fitted, X)
    nobody = External(lambda asked, label: X[fitted.predict(X) == label].iloc[: len(asked)].set_axis(asked.index))
    options: dict[str, Any] = {"draws": 3, "random_state": 0, "reference": X, "target": "good"}
    a = instability(searched, people, noise, **options)
    b = instability(nobody.fit(fitted, X), people, noise, **options)
    assert (a.people["floor"] == 0).all()  # the same question, the same answer
    assert "people" in compare(a, b).sentence
    found = audit(fitted, X, y, target="good", sensitive=["sex"], draws=2, people=6, explain=30, lookup=2)
    assert found.result in ("passed", "failed", "undecided")
    assert any("searched by a local method" in note for note in found.content["notes"])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Penalized(optimizer="bfgs").fit(model("forest"), table("forest")), "follows numbers"),
        (lambda: Penalized(cost="l2").fit(model("forest"), table("forest")), "sum over columns"),
        (lambda: Penalized().fit(model("forest"), table("forest").drop(columns="sex")), "no column 'sex'"),
        (lambda: Penalized(schema=Schema({"x": Column("numeric")})).fit(model("forest"), table("forest")), "names"),
        (lambda: Closest().fit(model("forest"), table("forest")), "Penalized"),
    ],
)
def test_what_cannot_be_says_what_can(make: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        make()


def test_a_linear_model_is_searched_nearly_as_well_as_it_is_solved() -> None:
    X, y = loans()
    fitted = encoded(LogisticRegression(max_iter=2000), X, y, scaled=True)
    people = X[fitted.predict(X) == "bad"].iloc[:25]
    exact = Closest().fit(fitted, X).explain(people, target="good")
    found = Penalized().fit(fitted, X).explain(people, target="good")
    ratio = found.cost / exact.cost
    assert (ratio >= 1 - 1e-6).all()
    assert np.median(ratio) < 1.3


def test_missing_is_nobodys_goal() -> None:
    """The label says whether a number is missing, so there is no advice that leads to it."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200)})
    X.loc[::2, "a"] = np.nan
    fitted = HistGradientBoostingClassifier(max_iter=10).fit(X, X["a"].isna())
    found = Penalized().fit(fitted, X).explain(X[~X["a"].isna()].iloc[:20], target=True)
    assert (found.status == Status.MISSING).all()
    back = Penalized().fit(fitted, X).explain(X[X["a"].isna()].iloc[:20], target=False)
    assert back.valid.all()
    assert not fitted.predict(back.counterfactual).any()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_whole_numbers_with_gaps_stay_whole(library: str) -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": pd.array(rng.integers(0, 12, 200), dtype="Int64"), "b": rng.normal(size=200)})
    X.loc[::7, "a"] = pd.NA
    y = X["a"].fillna(3).astype(float) + X["b"] > 7
    fitted = HistGradientBoostingClassifier(max_iter=20).fit(X, y)
    asked: Any = X[~fitted.predict(X)].iloc[:30]
    table: Any = X
    if library == "polars":
        table, asked = (polars.from_pandas(part) for part in (X, asked))
    found = Penalized().fit(fitted, table).explain(asked, target=True)
    assert found.valid.all()
    told = found.counterfactual
    assert str(told["a"].dtype) == "Int64"  # both libraries call it so
    assert fitted.predict(told if library == "pandas" else told.to_pandas()).all()


def test_integer_names_and_gaps() -> None:
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(100, 2)))
    X.iloc[::5, 1] = np.nan
    fitted = HistGradientBoostingClassifier(max_iter=10).fit(X.to_numpy(), X[0] > 0)
    found = Penalized().fit(fitted, X).explain(X[X[0] < -0.5].iloc[:5], target=True)
    assert found.valid.all()
    assert fitted.predict(found.counterfactual.to_numpy()).all()
    as_array = Penalized().fit(fitted, X).explain(X[X[0] < -0.5].iloc[:5].to_numpy(), target=True)
    np.testing.assert_array_equal(as_array.counterfactual, found.counterfactual.to_numpy())


def test_limits_that_contradict_a_person_have_no_answer() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 2))
    fitted = LogisticRegression().fit(X, X[:, 0] + X[:, 1] < 0)
    limits = Actionable(increase=[0], bounds={0: (-10, 3)})
    found = Penalized(actionable=limits).fit(fitted, X).explain(np.array([[5.0, 1.0]]), target=True)
    assert found.status.tolist() == ["missing"]


def test_every_rule_counts_also_the_second_on_the_same_columns() -> None:
    X, fitted = table("forest"), model("forest")
    people = X[fitted.predict(X) == "bad"].iloc[:15]
    limits = Actionable(rules=[RisesWith("expenses", "income", 0.1), RisesWith("expenses", "income", 3.0)])
    found = Penalized(actionable=limits).fit(fitted, X).explain(people, target="good")
    change = (found.counterfactual[["expenses", "income"]] - people[["expenses", "income"]])[found.valid]
    assert (change["expenses"] >= 3.0 * change["income"] - 1e-6).all()


class OwnCategories:
    """A model with categories of its own, as boosting libraries have: it refuses words that are plain objects."""

    classes_ = np.array(["no", "yes"])

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        assert isinstance(X["job"].dtype, pd.CategoricalDtype), X["job"].dtype
        assert list(X["job"].cat.categories) == ["full", "none", "part"]
        return np.where((X["job"] == "full") & (X["children"] < 3), "yes", "no")


def test_models_with_categories_of_their_own_are_shown_them() -> None:
    people = pd.DataFrame({"job": ["none", "part", "full"] * 5, "children": [0, 1, 2, 3, 4] * 3})
    people["job"] = people["job"].astype("category")
    found = Penalized().fit(OwnCategories(), people).explain(people, target="yes")
    assert found.valid.all()
    assert found.counterfactual["job"].dtype == people["job"].dtype
    assert (found.counterfactual["children"] < 3).all()
