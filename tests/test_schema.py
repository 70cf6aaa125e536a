"""Schemas, regions of pipelines with encoders, rules that contradict each other, measurements with levels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import mixed_tables
from evenhand import (
    Actionable,
    Closest,
    Column,
    Gaussian,
    Gower,
    HighDensity,
    IfChanges,
    Mixed,
    Plausible,
    RisesWith,
    Schema,
    Steady,
    certify,
    compare,
    instability,
)
from evenhand.models import view_of
from evenhand.perturbations import Categorical


@pytest.fixture(scope="module", params=[2, 3])
def loans(request):
    X, y = mixed_tables.people(1500, 5, classes=request.param)
    return X, y, mixed_tables.models(X, y)


def test_a_table_comes_back_as_it_was(loans) -> None:
    X, _, _ = loans
    schema = Schema.infer(X)
    pd.testing.assert_frame_equal(schema.decode(schema.encode(X), X), X)


def test_a_row_that_is_lost_is_missing_throughout(loans) -> None:
    X, _, _ = loans
    schema = Schema.infer(X)
    codes = schema.encode(X.iloc[:5])
    codes[2] = np.nan
    found = schema.decode(codes, X.iloc[:5])
    assert found.iloc[2].isna().all()
    assert found.drop(index=found.index[2]).notna().all().all()


@pytest.mark.parametrize("kind", ["logistic", "tree"])
def test_regions_hold_whom_the_pipeline_gives_the_label(loans, kind) -> None:
    """Law 1, through encoders: a person is in the region of a label exactly if predict says that label."""
    X, _, models = loans
    view = view_of(models[kind], X)
    codes = view.read(X)
    said = view.positions(models[kind].predict(X))
    image = view.image(codes)
    for k in range(len(view.classes)):
        np.testing.assert_array_equal(view.latent(k).contains(image, tol=0.0), said == k)
    np.testing.assert_array_equal(view.positions(view.predict(codes)), said)


def test_gower_is_a_distance_with_the_weights_of_the_schema(loans) -> None:
    X, _, _ = loans
    schema = Schema.infer(X)
    codes = schema.encode(X)
    distance = Gower(schema)
    a, b, c = codes[:500], codes[500:1000], codes[1000:1500]
    assert (distance(a, a) == 0).all()
    np.testing.assert_allclose(distance(a, b), distance(b, a))
    assert (distance(a, c) <= distance(a, b) + distance(b, c) + 1e-9).all()
    one = X.iloc[[0]].copy()
    other = one.copy()
    other["purpose"] = next(level for level in schema["purpose"].levels if level != one["purpose"].iloc[0])
    assert distance(schema.encode(one), schema.encode(other))[0] == schema["purpose"].weight


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Column("word"), "kind must be one of"),
        (lambda: Column("categorical"), "needs its levels"),
        (lambda: Column("categorical", ["a", "a"]), "twice"),
        (lambda: Column("categorical", ["a", "b"], step=1), "no step"),
        (lambda: Column("numeric", ["a"]), "has no levels"),
        (lambda: Column("numeric", step=0), "positive"),
        (lambda: Column("integer", step=0.5), "whole"),
        (lambda: Column("numeric", weight=-1), "positive"),
        (lambda: Column("numeric", bounds=(2, 1)), "leave no value"),
        (lambda: Column("categorical", ["a", "b"], costs=[[0, 0], [1, 0]]), "more than 0"),
        (lambda: Column("categorical", ["a", "b"], costs=[[0, 1]]), "2 x 2"),
        (lambda: RisesWith("a", "a"), "itself"),
        (lambda: IfChanges("a", stays="a"), "twice"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_written_down(make, text) -> None:
    with pytest.raises(ValueError, match=text):
        make()


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"levels": {"purpose": ["yacht"]}}, "not a level"),
        ({"levels": {"purpose": []}}, "empty"),
        ({"levels": {"income": [1]}}, "holds numbers"),
        ({"levels": {"purpose": ["car"]}, "immutable": ["purpose"]}, "immutable"),
        ({"increase": ["purpose"]}, "no order"),
        ({"bounds": {"purpose": (0, 1)}}, "has levels"),
        ({"rules": [RisesWith("purpose", "income")]}, "no order"),
        ({"rules": [RisesWith("age", "income")], "immutable": ["age"], "increase": ["income"]}, "contradicts"),
        ({"rules": [IfChanges("ghost", stays="age")]}, "does not exist"),
    ],
)
def test_rules_that_contradict_the_table_or_each_other_are_refused(limits, text) -> None:
    people = pd.DataFrame(
        {"age": [20, 30, 40, 50], "income": [1.0, 2.0, 3.0, 4.0], "purpose": ["car", "house", "car", "house"]}
    )
    encoder = make_column_transformer((OneHotEncoder(), ["purpose"]), remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression()).fit(people, [0, 0, 1, 1])
    with pytest.raises(ValueError, match=text):
        Closest(actionable=Actionable(**limits)).fit(model, people)


def test_of_equally_costly_answers_the_first_is_told() -> None:
    """Two categories do the same for the same cost: the first column stays, the other moves to its first level."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({name: rng.choice(["x", "y", "z"], 300) for name in ("b", "a")})
    granted = ((people != "x").sum(axis=1) >= 1).to_numpy()
    encoder = make_column_transformer((OneHotEncoder(), ["b", "a"]))
    model = make_pipeline(encoder, LogisticRegression()).fit(people, granted)
    # The same strength for every way out, so that only the order decides.
    model[-1].coef_[:] = [[-2.0, 1.0, 1.0, -2.0, 1.0, 1.0]]
    model[-1].intercept_[:] = 2.0
    asked = pd.DataFrame({"b": ["x"], "a": ["x"]})
    assert model.predict(asked)[0] == False  # noqa: E712 - a numpy bool
    found = Closest().fit(model, people).explain(asked, target=True)
    assert found.describe(0) == "a: x -> y"
    turned = Closest(schema=Schema({"b": Column("categorical", "xyz"), "a": Column("categorical", ["z", "x", "y"])}))
    assert turned.fit(model, people).explain(asked, target=True).describe(0) == "a: x -> z"


def test_instability_is_measured_with_levels(loans) -> None:
    X, y, models = loans
    people = X.iloc[:60]
    closest = Closest().fit(models["logistic"], X, y)
    plausible = Plausible(HighDensity(components=[1])).fit(models["logistic"], X, y)
    noise = Mixed.default(closest.view.schema)
    a = instability(closest, people, noise, draws=4, random_state=0, reference=X)
    again = instability(closest, people.iloc[::-1], noise, draws=4, random_state=0, reference=X)
    merged = a.table.merge(again.table, on=["person", "draw"], suffixes=("", "_again"))
    np.testing.assert_allclose(merged["distance"], merged["distance_again"])
    assert (a.table["input_distance"] > 0).mean() > 0.9
    assert a.table["jaccard"].between(0, 1).all()
    still = instability(closest, people, Mixed({}), random_state=0, reference=X)
    assert (still.table["distance"] == 0).all()
    assert (still.table["change_distance"] == 0).all()
    b = instability(plausible, people, noise, draws=4, random_state=0, reference=X)
    assert "people" in compare(a, b, names=("closest", "plausible")).sentence


def test_what_is_not_there_for_levels_says_so(loans) -> None:
    X, y, models = loans
    closest = Closest().fit(models["tree"], X, y)
    for make in (
        lambda: certify(closest, X),
        lambda: Steady().fit(models["tree"], X, y),
    ):
        with pytest.raises(TypeError, match="instability"):
            make()
    with pytest.raises(TypeError, match="Mixed"):
        instability(closest, X, Gaussian(0.1))
    with pytest.raises(ValueError, match="Gower"):
        instability(closest, X, Mixed({"purpose": Categorical(0.1)}), distance="l2")
    with pytest.raises(ValueError, match="use positions"):
        Closest(actionable=Actionable(levels={"a": ["b"]})).fit(LogisticRegression().fit([[0.0], [1.0]], [0, 1]))


def test_a_whole_number_on_the_edge_of_a_bin_is_in_the_bin() -> None:
    X = pd.DataFrame({"age": np.arange(91)})
    bins = make_column_transformer((KBinsDiscretizer(3, strategy="uniform", encode="onehot-dense"), ["age"]))
    model = make_pipeline(bins, DecisionTreeClassifier(random_state=0)).fit(X, np.where(X["age"] >= 30, "yes", "no"))
    found = Closest(schema=Schema({"age": Column("integer")})).fit(model, X).explain(X.iloc[[20, 70]], ["yes", "no"])
    assert found.counterfactual["age"].tolist() == [30, 29]
    assert found.cost.tolist() == [10.0, 41.0]
