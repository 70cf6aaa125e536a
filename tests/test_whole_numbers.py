"""Whole numbers and flags of a DataFrame, without encoders: against brute force, in every type that they come in."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand import Actionable, Closest, Column, Gower, HighDensity, Penalized, Plausible, Schema, Status
from evenhand.costs import cost_for
from evenhand.models.base import blackbox


def heavy_tailed() -> tuple[pd.DataFrame, np.ndarray]:
    """Gains that are small for most and huge for a few: the spread is ten thousand times a step."""
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(400) < 0.1, rng.integers(50_000, 100_000, 400), rng.integers(0, 10, 400))
    X = pd.DataFrame({"gain": gain, "age": rng.integers(20, 70, 400)})
    return X, np.where((X["gain"] <= 5) & (X["age"] > 30), "yes", "no")


@pytest.mark.parametrize("immutable", [(), ("gain",)])
def test_a_wide_spread_cuts_off_no_whole_number(immutable: tuple[str, ...]) -> None:
    X, y = heavy_tailed()
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    explainer = Closest(actionable=Actionable(immutable=immutable)).fit(model, X)
    people = X[model.predict(X) == "no"][:40]
    found = explainer.explain(people, "yes")
    gains = () if immutable else range(101)
    for i in range(len(people)):
        own = people.iloc[i]
        grid = pd.DataFrame(itertools.product({*gains, own["gain"]}, range(111)), columns=["gain", "age"])
        reachable = grid[model.predict(grid) == "yes"]
        price = explainer.cost(reachable.to_numpy(float), np.tile(own.to_numpy(float), (len(reachable), 1)))
        if len(reachable):
            assert found.cost[i] == pytest.approx(price.min(), rel=1e-9)
        else:
            assert found.status[i] == Status.UNREACHABLE


def test_a_flag_is_the_same_in_every_type() -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"owner": rng.random(200) < 0.5, "income": rng.normal(size=200)})
    y = (X["income"] + X["owner"] > 0.8).to_numpy()
    explainer = Closest().fit(LogisticRegression().fit(X, y), X)
    plain = explainer.explain(X[:20], True)
    assert plain.counterfactual["owner"].dtype == bool
    for same in (X[:20].astype(int), X[:20].astype({"owner": float}), X[:20].to_numpy(float)):
        found = explainer.explain(same, True)
        if isinstance(same, pd.DataFrame) and same["income"].dtype == int:
            assert not (found.status == Status.INVALID).any()
            continue
        np.testing.assert_array_equal(found.status, plain.status)
        np.testing.assert_allclose(found.cost, plain.cost)


@pytest.mark.parametrize("dtype", ["float64", "Int64"])
def test_an_imputed_fraction_does_not_count_in_steps(dtype: str) -> None:
    rng = np.random.default_rng(2)
    age = rng.integers(20, 70, 200)
    X = pd.DataFrame({"age": pd.Series(age).astype(dtype)})
    X.loc[[0, 7, 9], "age"] = pd.NA if dtype == "Int64" else np.nan
    model = make_pipeline(SimpleImputer(), LogisticRegression()).fit(X.astype("float64"), age > 50)
    explainer = Closest().fit(model, X)
    found = explainer.explain(X[:20], True)
    assert found.valid.all()
    assert explainer.explain(found.counterfactual, True).valid.all()


def test_the_columns_of_a_cost_follow_those_of_the_table() -> None:
    X, y = heavy_tailed()
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X.to_numpy(), y)
    schema = Schema.infer(X)
    turned = Schema({name: schema[name] for name in reversed(schema.names)})
    costs = [Closest(Gower(given)).fit(model, X).explain(X[:30], "yes").cost for given in (schema, turned)]
    np.testing.assert_array_equal(*costs)
    with pytest.raises(ValueError, match="other columns than the table has"):
        cost_for(Gower(Schema.infer(X.rename(columns={"age": "years"}))), schema)


def test_a_held_column_may_stay_out_of_bounds() -> None:
    X = pd.DataFrame({"a": [0, 1, 2, 3] * 5, "b": [0, 1, 2, 3, 4] * 4})
    explainer = Closest().fit(LogisticRegression().fit(X, X["b"] > 2), X)
    held = explainer.projector(1).project(np.array([[-3.0, 0.0]]), 1e-10, held=(0,))
    assert held.status.tolist() == ["optimal"]
    assert held.points[0, 0] == -3.0


@pytest.mark.parametrize("flags", [False, True])
@pytest.mark.parametrize(
    "last", [LogisticRegression(max_iter=1000), DecisionTreeClassifier(max_depth=4, random_state=0)]
)
def test_arrays_are_read_by_position_where_there_are_no_words(last: Any, flags: bool) -> None:
    """A model that was fitted on a DataFrame of whole numbers and flags takes its people as an array as well."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"age": rng.integers(20, 70, 150), "rooms": rng.integers(1, 7, 150)})
    if flags:
        X["owner"] = rng.random(150) < 0.5
    y = X["age"] / 20 + X["rooms"] + (2 * X["owner"] if flags else 0) > 6.5
    model = make_pipeline(StandardScaler(), clone(last)).fit(X, y)
    for method in (Closest(), Plausible(HighDensity(components=[1])), Penalized(restarts=1)):
        explainer = method.fit(model, X, y)
        if flags and isinstance(method, Penalized):  # of a model that is only asked nobody knows that it takes numbers
            with pytest.raises(TypeError, match=r"A table with named columns is needed.*got ndarray"):
                explainer.explain(X[:15].to_numpy(dtype=float))
            continue
        named, bare = explainer.explain(X[:15]), explainer.explain(X[:15].to_numpy(dtype=float))
        assert isinstance(bare.counterfactual, np.ndarray)
        np.testing.assert_array_equal(bare.counterfactual.astype(float), named.counterfactual.astype(float))
        np.testing.assert_array_equal(bare.cost, named.cost)
        np.testing.assert_array_equal(bare.status, named.status)
        with pytest.raises(ValueError, match=rf"Expected a table with {X.shape[1]} columns, got shape \(15, 1\)"):
            explainer.explain(X[["age"]][:15].to_numpy())


def test_arrays_are_refused_where_there_are_words() -> None:
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"job": rng.choice(["cook", "clerk"], 80), "age": rng.integers(20, 70, 80)})
    encoder = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    model = make_pipeline(encoder, DecisionTreeClassifier(max_depth=3, random_state=0)).fit(X, X["age"] > 40)
    for method in (Closest(), Penalized(restarts=1)):
        with pytest.raises(TypeError, match=r"A table with named columns is needed.*got ndarray"):
            method.fit(model, X).explain(X.to_numpy())


class Seen:
    """A model that remembers what it was shown."""

    classes_ = np.array([0, 1])
    n_features_in_ = 2

    def __init__(self) -> None:
        self.rows: list[pd.DataFrame] = []

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        self.rows.append(X)
        return (np.asarray(X["amount"], dtype=float) > 0).astype(int)


@pytest.mark.parametrize(
    ("dtype", "levels", "value"),
    [
        ("int64", (1, 2, 2.5, 3), 2.5),  # would be another person as a whole number
        ("int64", (1, 2, 3, None), None),
        ("int8", (1, 2, 3, 300), 300),
        ("float32", (1, 2, 3), 3),
    ],
)
def test_a_level_that_does_not_fit_the_type_of_the_table_is_shown_as_it_is(
    dtype: str, levels: tuple[Any, ...], value: Any
) -> None:
    table = pd.DataFrame({"grade": np.array([1, 2, 3], dtype=dtype), "amount": [0.5, -1.0, 2.0]})
    schema = Schema({"grade": Column("categorical", levels=levels), "amount": Column("numeric")})
    model = Seen()
    model.feature_names_in_ = np.array(["grade", "amount"], dtype=object)  # type: ignore[attr-defined]
    seen = blackbox(model, table, schema)
    person = pd.DataFrame({"grade": pd.Series([value], dtype=object), "amount": [1.0]})
    np.testing.assert_array_equal(seen.decide(seen.read(person)), [1])
    shown = model.rows[-1]["grade"].iloc[0]
    assert pd.isna(shown) if value is None else shown == value
