"""Tables of other types, with missing values or unknown levels: types come back, and what is wrong is named."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand import L1, Actionable, Closest, Column, Explanations, Schema
from mixed_oracles import milp
from mixed_problems import (
    GUARD,
    WORDS,
    encoders,
    fitted,
    loans,
    refused,
)
from threads import one_thread  # noqa: F401


@cache
def usual() -> tuple[pd.DataFrame, np.ndarray, Any]:
    X, y = loans()
    return X, y, make_pipeline(encoders(), LogisticRegression()).fit(X, y)


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
    X, y, model = usual()
    people = refused(model, X)
    found, given_one = (Closest(schema=s).fit(model, X, y).explain(people, "yes") for s in (None, Schema.infer(X)))
    pd.testing.assert_frame_equal(found.counterfactual, given_one.counterfactual)
    np.testing.assert_array_equal(found.cost, given_one.cost)


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
    X, y, model = usual()
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
    X, y, model = usual()
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
    X, y, model = usual()
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
    X, y, model = usual()
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
    X, y, model = usual()
    people = refused(model, X).astype({"age": float})
    people.loc[people.index[3], "age"] = 30.5
    found = Closest(schema=Schema.infer(X)).fit(model, X, y).explain(people, "yes")
    np.testing.assert_array_equal(found.status == "invalid", np.arange(len(people)) == 3)
    assert "age" in found.reason[3]
    assert "30.5" in found.reason[3]
    assert np.isnan(found.cost[3])


def test_columns_that_are_missing_or_unknown_are_named() -> None:
    X, y, model = usual()
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
    X, y, model = usual()
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
