"""The worst perturbation in raw tables: against everybody there is, against chance, and in every form of table."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from evenhand import Actionable, Closest, Column, External, Penalized, Schema, worst_case
from evenhand.explaining.explainer import Explainer
from mixed_tables import models as pipelines
from mixed_tables import people, schema_of

JOBS, HOMES = ("clerk", "cook", "none"), ("own", "rent")
TINY = Schema(
    {
        "job": Column("categorical", levels=JOBS, weight=0.7),
        "home": Column("categorical", levels=HOMES, weight=0.4),
        "age": Column("integer", weight=0.3, bounds=(0, 6)),
    }
)
ROUNDING = 1 + 1e-12


def everybody() -> pd.DataFrame:
    return pd.DataFrame(list(itertools.product(JOBS, HOMES, range(7))), columns=["job", "home", "age"])


@cache
def tiny(kind: str, seed: int = 0) -> Any:
    X = everybody()
    rng = np.random.default_rng(seed)
    merit = rng.normal(size=3)[X["job"].map(JOBS.index)] + rng.normal(size=2)[X["home"].map(HOMES.index)]
    y = merit + rng.normal() * (X["age"] - 3) + 0.5 * rng.normal(size=len(X)) > 0
    last = DecisionTreeClassifier(random_state=0) if kind == "tree" else LogisticRegression()
    if kind == "forest":
        last = RandomForestClassifier(5, random_state=0)
    encoder = make_column_transformer((OneHotEncoder(), ["job", "home"]), remainder="passthrough")
    return make_pipeline(encoder, last).fit(X, np.where(y, "yes", "no"))


def by_hand(a: pd.Series, b: pd.Series) -> float:
    """The distance of two tiny people, from what the schema's author wrote."""
    return 0.7 * (a["job"] != b["job"]) + 0.4 * (a["home"] != b["home"]) + 0.3 * abs(int(a["age"]) - int(b["age"]))


def farthest(explainer: Explainer, row: pd.DataFrame, radius: float, target: Any, on_flip: str) -> float:
    """Ask about everybody who is near enough; NaN if nobody else may be asked about."""
    X, me = everybody(), row.iloc[0]
    near = X[[0 < by_hand(me, other) <= radius * ROUNDING for _, other in X.iterrows()]].reset_index(drop=True)
    model = explainer.view.model
    own = model.predict(row)[0]
    told = explainer.explain(row, target)
    if not len(near):
        return 0.0
    flipped = model.predict(near) != own
    goal = np.where(flipped & (on_flip == "swap"), own, told.target[0])
    again = explainer.explain(near, goal)
    moved = [
        by_hand(told.counterfactual.iloc[0], again.counterfactual.iloc[i])
        for i in range(len(near))
        if again.valid[i] and not (flipped[i] and on_flip == "skip")
    ]
    return max(moved, default=np.nan)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linear", "tree"])
@pytest.mark.parametrize("on_flip", ["swap", "keep", "skip"])
@pytest.mark.parametrize("radius", [0.3, 0.75, 1.4])
def test_nobody_is_worse_among_everybody(kind: str, on_flip: Any, radius: float) -> None:
    explainer = Closest(schema=TINY).fit(tiny(kind), everybody())
    rows = everybody().iloc[::3].reset_index(drop=True)
    found = worst_case(explainer, rows, radius, on_flip=on_flip)
    assert found.table["exhaustive"].all()
    for i in range(len(rows)):
        if not found.original.valid[i]:
            continue
        true = farthest(explainer, rows.iloc[[i]], radius, None, on_flip)
        assert found.table["distance"][i] == pytest.approx(true, nan_ok=True), i


@pytest.mark.slow
@settings(max_examples=15)
@given(st.integers(0, 40), st.integers(0, 41), st.sampled_from([0.2, 0.4, 0.7, 1.0, 2.5]), st.booleans())
def test_everything_reported_is_true(seed: int, who: int, radius: float, tree: bool) -> None:
    explainer = Closest(schema=TINY).fit(tiny("tree" if tree else "linear", seed), everybody())
    row = everybody().iloc[[who]]
    found = worst_case(explainer, row, radius, target=None)
    line = found.table.iloc[0]
    if not found.original.valid[0]:
        assert np.isnan(line["distance"])
        return
    assert line["input_distance"] == pytest.approx(by_hand(row.iloc[0], found.perturbed.iloc[0]))
    assert line["input_distance"] <= radius * ROUNDING
    assert (found.perturbed.dtypes == row.dtypes).all()
    assert line["distance"] == pytest.approx(farthest(explainer, row, radius, None, "swap"), nan_ok=True)
    own, other = (explainer.view.model.predict(table)[0] for table in (row, found.perturbed))
    assert line["flipped"] == (own != other)
    again = explainer.explain(found.perturbed, own if own != other else found.original.target[0])
    assert again.counterfactual.equals(found.moved.counterfactual)
    assert line["distance"] == pytest.approx(
        by_hand(found.original.counterfactual.iloc[0], again.counterfactual.iloc[0]), nan_ok=True
    )


def at_random(schema: Schema, row: pd.DataFrame, radius: float, count: int, rng: np.random.Generator) -> pd.DataFrame:
    """Possible people within a radius, drawn without the package."""
    rows = []
    for _ in range(count):
        person, rest = row.iloc[0].to_dict(), radius * rng.choice([1.0, rng.random()])
        for name in rng.permutation(list(schema.columns)):
            column = schema.columns[name]
            if rng.random() < 0.5:
                continue
            if column.kind in ("numeric", "integer"):
                step = column.step or 0.0
                amount = rest * rng.random() / column.weight
                amount = step * np.floor(amount / step) if step else amount
                value = person[name] + amount * rng.choice([-1, 1])
                if column.bounds is not None and value < (column.bounds[0] or 0.0):
                    continue
                rest -= column.weight * abs(value - person[name])
                person[name] = value
            else:
                other = column.levels[rng.integers(len(column.levels))]
                apart = abs(column.levels.index(other) - column.levels.index(person[name]))
                price = column.weight * (apart if column.kind == "ordered" else apart > 0)
                if price <= rest:
                    person[name], rest = other, rest - price
        rows.append(person)
    return pd.DataFrame(rows).astype(row.dtypes.to_dict())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["logistic", "tree"])
def test_chance_finds_nothing_worse(kind: str, monkeypatch) -> None:
    """With as many questions chance moves none of these people further, but for rounding, and all of them less."""
    X, y = people(400, 0)
    schema = schema_of(X)
    explainer = Closest(schema=schema).fit(pipelines(X, y)[kind], X, y)
    asked, answer = [0], Explainer.answer

    def counted(self: Explainer, codes: np.ndarray, *args: Any, **options: Any) -> Any:
        asked[0] += len(codes)
        return answer(self, codes, *args, **options)

    monkeypatch.setattr(Explainer, "answer", counted)
    found = worst_case(explainer, X[:4], 0.8, on_flip="keep")
    count = asked[0] // 4
    rng = np.random.default_rng(1)
    by_chance = []
    for i in range(4):
        others = at_random(schema, X.iloc[[i]], 0.8, count, rng)
        codes = explainer.view.read(others)
        told = explainer.view.read(found.original.counterfactual)[[i]]
        assert (explainer.cost(codes, explainer.view.read(X[i : i + 1])) <= 0.8 * (1 + 1e-9)).all()
        again = explainer.explain(others, found.original.target[i])
        points = explainer.view.read(again.counterfactual)[again.valid]
        by_chance.append(explainer.cost(points, np.repeat(told, len(points), axis=0)).max())
    assert (found.table["distance"] >= 0.999 * np.array(by_chance)).all()
    assert found.table["distance"].mean() > np.mean(by_chance)
    assert (found.table["input_distance"] <= 0.8 * ROUNDING).all()


def test_a_radius_of_nothing_moves_nobody() -> None:
    explainer = Closest(schema=TINY).fit(tiny("tree"), everybody())
    found = worst_case(explainer, everybody(), 0.0)
    told = found.original.valid
    assert (found.table["distance"][told] == 0).all()
    assert found.table["amplification"].isna().all()
    assert found.perturbed.equals(everybody())
    assert (found.advice["perturbation"] == "").all()
    small = worst_case(explainer, everybody(), 0.29)  # less than any change costs
    assert (small.table["distance"][told] == 0).all()
    assert small.table["exhaustive"][told].all()


def test_a_person_at_the_corner_stays_inside() -> None:
    explainer = Closest(schema=TINY).fit(tiny("linear"), everybody())
    corner = pd.DataFrame({"job": ["clerk", "none"], "home": ["own", "rent"], "age": [0, 6]})
    found = worst_case(explainer, corner, 5.0)
    assert found.perturbed["age"].between(0, 6).all()
    assert found.perturbed["job"].isin(JOBS).all()
    outside = corner.assign(age=[9, 8])  # beyond the bounds: stays, or comes inside
    moved = worst_case(explainer, outside, 1.1, random_state=3).perturbed["age"]
    assert ((moved == outside["age"]) | moved.between(0, 6)).all()


def test_immutable_columns_are_left_alone() -> None:
    X = everybody()
    for method in (Closest, Penalized):
        explainer = method(schema=TINY, actionable=Actionable(immutable=["home"])).fit(tiny("tree"), X)
        found = worst_case(explainer, X[::5], 1.5, restarts=2, rounds=1)
        assert (found.perturbed["home"] == X["home"][::5]).all()
        assert (found.perturbed["job"] != X["job"][::5]).any()


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("method", [Closest, Penalized])
def test_immutable_numbers_are_left_alone(method: Any, raw: bool) -> None:
    """Whole numbers and flags without an encoder, and the same columns as plain numbers."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(20, 70, 120), "owner": rng.random(120) < 0.5, "income": rng.normal(size=120)})
    model = LogisticRegression(max_iter=1000).fit(X, X["income"] + 0.05 * X["age"] + X["owner"] > 2.8)
    how = {"schema": None if raw else Schema.numbers(X), "actionable": Actionable(immutable=["age", "owner"])}
    if method is Penalized:
        how |= {"optimizer": "descent", "restarts": 1}
    explainer = method(**how).fit(model, X)
    found = worst_case(explainer, X[:2], 0.4, restarts=1, rounds=1)
    perturbed = found.perturbed if raw else pd.DataFrame(found.perturbed, columns=X.columns)
    for name in ("age", "owner"):
        np.testing.assert_array_equal(perturbed[name], X[name][:2])
    assert (perturbed["income"].to_numpy() != X["income"][:2]).all()


@cache
def gaps() -> tuple[Any, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.normal(size=150), "rooms": rng.integers(1, 6, 150).astype(float)})
    X["town"] = pd.Categorical(rng.choice(["a", "b", "c"], 150))
    y = np.where(X["income"] + 0.4 * X["rooms"] + (X["town"] == "b") > 1.6, "yes", "no")
    X.loc[::7, "income"] = np.nan
    X.loc[::11, "town"] = np.nan
    return HistGradientBoostingClassifier(max_iter=10, categorical_features="from_dtype").fit(X, y), X


@pytest.mark.slow
def test_what_is_missing_stays_missing() -> None:
    model, X = gaps()
    explainer = Penalized().fit(model, X)
    few = X.iloc[[0, 7, 11, 77, 5]]
    found = worst_case(explainer, few, 0.8, restarts=3, rounds=4)
    pd.testing.assert_frame_equal(found.perturbed.isna(), few.isna())
    assert (found.perturbed.dtypes == few.dtypes).all()
    assert (found.table["input_distance"] <= 0.8 * ROUNDING).all()
    assert (found.table["distance"] > 0).any()


def test_polars_in_and_polars_out() -> None:
    explainer = Closest(schema=TINY).fit(tiny("tree"), everybody())
    table = pl.DataFrame(everybody()).with_columns(pl.col("age").cast(pl.Int16))
    found = worst_case(explainer, table, 0.8)
    assert isinstance(found.perturbed, pl.DataFrame)
    assert found.perturbed.schema == table.schema
    plain = worst_case(explainer, everybody(), 0.8)
    np.testing.assert_array_equal(found.table["distance"], plain.table["distance"])
    strange = table.with_columns(job=pl.when(pl.col("age") == 3).then(pl.lit("yacht")).otherwise(pl.col("job")))
    found = worst_case(explainer, strange, 0.8)
    assert found.perturbed.schema == table.schema
    assert found.perturbed.filter(strange["age"] == 3).equals(strange.filter(strange["age"] == 3))


def test_one_row_and_any_order_give_the_same() -> None:
    X, y = people(300, 2)
    explainer = Closest(schema=schema_of(X)).fit(pipelines(X, y)["logistic"], X, y)
    some = X.iloc[[4, 9, 30]]
    together = worst_case(explainer, some, 0.6, random_state=7, rounds=3)
    turned = worst_case(explainer, some[::-1], 0.6, random_state=7, rounds=3)
    assert turned.perturbed[::-1].equals(together.perturbed)
    for i in range(3):
        alone = worst_case(explainer, some.iloc[[i]], 0.6, random_state=7, rounds=3)
        assert alone.perturbed.equals(together.perturbed.iloc[[i]])
        assert alone.table["distance"].item() == together.table["distance"][i]
    assert len(worst_case(explainer, some[:0], 0.6).table) == 0


def test_a_category_with_one_level_cannot_move() -> None:
    X = everybody().assign(land="here")
    encoder = make_column_transformer((OneHotEncoder(), ["job", "home", "land"]), remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression()).fit(X, X["age"] > 3)
    found = worst_case(Closest().fit(model, X), X[:5], 1.0)
    assert (found.perturbed["land"] == "here").all()
    assert found.table["distance"].notna().all()


def test_whole_numbers_keep_their_types_and_fractions_are_doubles() -> None:
    X, y = people(300, 3)
    explainer = Closest(schema=schema_of(X)).fit(pipelines(X, y)["logistic"], X, y)
    narrow = X[:6].astype({"income": "float32", "score": "Float32", "age": "Int16"})
    found = worst_case(explainer, narrow, 0.5, rounds=4)
    wide = narrow.dtypes.to_dict() | {"income": np.dtype("float64"), "score": pd.Float64Dtype()}
    assert found.perturbed.dtypes.to_dict() == wide
    away = explainer.cost(explainer.view.read(found.perturbed), explainer.view.read(narrow))
    assert (away <= 0.5 * ROUNDING).all()
    assert (found.table["distance"] > 0).all()
    assert ((found.perturbed["amount"] - narrow["amount"]) % 100 == 0).all()
    free = X[["income", "purpose", "debt"]].round().astype({"debt": int})
    encoder = make_column_transformer((OneHotEncoder(), ["purpose"]), remainder="passthrough")
    model = make_pipeline(encoder, DecisionTreeClassifier(max_depth=4, random_state=0)).fit(free, y)
    schema = Schema.infer(free).with_columns(debt=Column("numeric", weight=0.001))
    found = worst_case(Closest(schema=schema).fit(model, free), free[:5], 0.5, rounds=2)
    assert found.perturbed["debt"].dtype == free["debt"].dtype


def test_a_forest_behind_an_encoder() -> None:
    explainer = Penalized(schema=TINY).fit(tiny("forest"), everybody())
    rows = everybody().iloc[[3, 20, 38]].reset_index(drop=True)
    found = worst_case(explainer, rows, 0.75)
    assert found.table["exhaustive"].all()
    for i in range(3):
        assert found.table["distance"][i] == pytest.approx(farthest(explainer, rows.iloc[[i]], 0.75, None, "swap"))


def test_any_other_tool() -> None:
    """It tells everybody to be the first person with the target who has the same job: only the job matters."""
    X, model = everybody(), tiny("tree")
    answers = model.predict(X)

    def tool(table: pd.DataFrame, label: str) -> pd.DataFrame:
        good = X[answers == label]
        rows = [
            (good[good["job"] == job] if (good["job"] == job).any() else good).iloc[0].to_dict() for job in table["job"]
        ]
        return pd.DataFrame(rows, index=table.index).astype(table.dtypes.to_dict())

    explainer = External(tool, schema=TINY).fit(model, X)
    rows = X.iloc[[0, 9, 33]].reset_index(drop=True)
    for radius in (0.5, 0.9):
        found = worst_case(explainer, rows, radius, on_flip="keep")
        for i in range(3):
            expected = farthest(explainer, rows.iloc[[i]], radius, found.original.target[i], "keep")
            assert found.table["distance"][i] == pytest.approx(expected)


def test_levels_that_an_asked_model_refuses_are_nobodys() -> None:
    X = everybody()
    wider = TINY.with_columns(job=Column("categorical", levels=(*JOBS, "pilot"), weight=0.7))
    model = tiny("forest")
    answers = model.predict(X)
    tool = External(lambda table, label: X[answers == label].iloc[[0] * len(table)].set_axis(table.index), schema=wider)
    found = worst_case(tool.fit(model, X), X[:3], 0.8, restarts=1, rounds=1)
    assert found.perturbed["job"].isin(JOBS).all()
    assert found.table["distance"].notna().all()


def test_people_who_cannot_be_read_are_rows_with_a_reason() -> None:
    explainer = Closest(schema=TINY).fit(tiny("linear"), everybody())
    X = everybody()[:4].set_axis(list("abcd"))
    X.loc["b", "job"] = "yacht"
    found = worst_case(explainer, X, 0.8)
    assert found.table["person"].tolist() == list("abcd")
    assert found.table["status"][1] == "invalid"
    assert np.isnan(found.table.loc[1, ["distance", "input_distance"]].astype(float)).all()
    assert "yacht" in found.original.reason[1]
    assert "yacht" in found.moved.reason[1]
    assert found.perturbed.index.tolist() == list("abcd")
    assert found.perturbed.loc["b"].equals(X.loc["b"])
    rest = worst_case(explainer, X.drop(index="b"), 0.8)
    assert rest.perturbed.equals(found.perturbed.drop(index="b"))
    nobody = worst_case(explainer, X.loc[["b"]], 0.8)
    assert nobody.perturbed.equals(X.loc[["b"]])


def test_of_equally_bad_perturbations_the_smallest_is_told() -> None:
    """The tool's answer depends on the home alone; any age may change as well, for nothing."""
    X, model = everybody(), tiny("tree")
    answers = model.predict(X)

    def tool(table: pd.DataFrame, label: str) -> pd.DataFrame:
        good = X[answers == label].reset_index(drop=True)
        return good.iloc[np.where(table["home"] == "own", 0, len(good) - 1)].set_axis(table.index)

    other_home = X.assign(home=X["home"].map({"own": "rent", "rent": "own"}))
    who = np.flatnonzero(model.predict(other_home) == answers)[:1]  # the home alone does not turn the decision
    found = worst_case(External(tool, schema=TINY).fit(model, X), X.iloc[who], 1.4, on_flip="skip")
    assert found.advice["perturbation"].item() in ("home: own -> rent", "home: rent -> own")
    assert found.table["input_distance"].item() == pytest.approx(0.4)


def test_advice_in_words() -> None:
    explainer = Closest(schema=TINY).fit(tiny("tree"), everybody())
    found = worst_case(explainer, everybody(), 0.8)
    told = found.advice
    for i in np.flatnonzero(found.original.valid & found.moved.valid):
        for when, explained in (("before", found.original), ("after", found.moved)):
            a, b = explained.factual.iloc[i], explained.counterfactual.iloc[i]
            assert told[f"columns_{when}"][i] == tuple(name for name in a.index if a[name] != b[name])
            assert all(f"{name}: " in told[when][i] for name in told[f"columns_{when}"][i])
    numbers = np.random.default_rng(0).normal(size=(40, 2))
    plain = Closest("l2").fit(LogisticRegression().fit(numbers, numbers[:, 0] > 0))
    assert worst_case(plain, numbers[:2], 0.1).advice["columns_before"].tolist() == [("x0", "x1")] * 2


@pytest.mark.parametrize("radius", [-0.1, np.nan, np.inf, [0.1, 0.2], "far"])
def test_bad_radii(radius: Any) -> None:
    explainer = Closest(schema=TINY).fit(tiny("tree"), everybody())
    with pytest.raises(ValueError, match=r"radius must be a finite number >= 0, or one per person \(3\).*got"):
        worst_case(explainer, everybody()[:3], radius)
    assert worst_case(explainer, everybody()[:3], [0.1, 0.3, 0.4]).table["radius"].tolist() == [0.1, 0.3, 0.4]
