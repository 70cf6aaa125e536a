"""Law: a missing value is what the model makes of it, however it is written, or the person is told why not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, OneHotEncoder, OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier

from evenhand import Actionable, Closest, Gower, Penalized, Plausible, Status
from evenhand.table.column import Column
from evenhand.table.schema import Schema
from rotation import in_turn
from threads import one_thread  # noqa: F401

N = 180
WAYS: dict[str, list[Any]] = {
    "None": [None],
    "nan": [np.nan],
    "None and nan": [None, np.nan],
    "nan and None": [np.nan, None],
    "NA": [pd.NA],
}
ENCODERS = {
    "one-hot": OneHotEncoder,
    "one-hot, unknown ignored": lambda: OneHotEncoder(handle_unknown="ignore"),
    "ordinal": lambda: OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
    "imputed": lambda: make_pipeline(SimpleImputer(strategy="most_frequent", missing_values=None), OneHotEncoder()),
    "imputed nan": lambda: make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
}
MODELS = {"linear": lambda: LogisticRegression(C=100), "tree": lambda: DecisionTreeClassifier(random_state=0)}


def people(gaps: list[Any]) -> pd.DataFrame:
    """A column of objects in which every second value is missing, in the ways given in turn."""
    rng = np.random.default_rng(0)
    values: list[Any] = [gaps[i // 2 % len(gaps)] if i % 2 else "ab"[i // 2 % 2] for i in range(N)]
    return pd.DataFrame({"c": pd.Series(values, dtype=object), "z": rng.normal(size=N)})


def check(model: Any, X: pd.DataFrame, found: Any) -> None:
    """Everybody: what is said of them now is what predict says, and what they are told leads where it should."""
    now = model.predict(X)
    invalid = found.status == Status.INVALID
    assert ((found.status == Status.ALREADY) == ((now == found.target) & ~invalid)).all()
    valid = found.valid
    assert (model.predict(found.counterfactual[valid]) == found.target[valid]).all()
    assert all("missing" in found.reason[i] for i in np.flatnonzero(invalid))
    assert found.valid.sum() >= len(X) / 4  # whoever has nothing missing, at least


@pytest.mark.parametrize(("shown", "told", "encoder", "model"), in_turn(3, WAYS, WAYS, ENCODERS, MODELS))
def test_missing_levels(shown: str, told: str, encoder: str, model: str) -> None:
    """Fitted with some ways to say that nothing is known, asked with others."""
    X, asked = people(WAYS[shown]), people(WAYS[told])
    steps = ColumnTransformer([("c", ENCODERS[encoder](), ["c"]), ("z", "passthrough", ["z"])])
    y = np.array([value is None for value in X["c"]]) | (X["z"].to_numpy() > 1.5)
    try:
        fitted = make_pipeline(steps, MODELS[model]()).fit(X, y)
        fitted.predict(asked)
    except (TypeError, ValueError) as error:
        pytest.skip(f"scikit-learn does not take that: {error}")
    for target in (False, True):
        check(fitted, asked, Closest().fit(fitted, X).explain(asked, target=target))


IMPUTERS = {
    "mean": [SimpleImputer()],
    "constant": [SimpleImputer(strategy="constant", fill_value=-5)],
    "mean and constant": [SimpleImputer(), SimpleImputer(strategy="constant", fill_value=-5)],
    "constant and mean": [SimpleImputer(strategy="constant", fill_value=-5), SimpleImputer()],
    "with an indicator": [SimpleImputer(add_indicator=True)],
    "binned": [make_pipeline(SimpleImputer(), KBinsDiscretizer(4, encode="onehot-dense"))],
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["float64", "float32", "Int64", "Float64", "object"])
@pytest.mark.parametrize("imputers", IMPUTERS)
def test_missing_numbers(imputers: str, kind: str, model: str) -> None:
    rng = np.random.default_rng(0)
    numbers = pd.Series(np.round(rng.normal(0, 20, N)))
    numbers[::3] = np.nan
    X = pd.DataFrame({"x": numbers.astype(kind), "z": rng.normal(size=N), "q": ["p", "q"] * (N // 2)})
    parts = [(str(i), imputer, ["x"]) for i, imputer in enumerate(IMPUTERS[imputers])]
    steps = ColumnTransformer([*parts, ("z", "passthrough", ["z"]), ("q", OneHotEncoder(), ["q"])])
    y = numbers.fillna(-5).to_numpy() + 10 * X["z"].to_numpy() > 0
    try:
        fitted = make_pipeline(steps, MODELS[model]()).fit(X, y)
    except (TypeError, ValueError) as error:
        pytest.skip(f"scikit-learn does not take that: {error}")
    explainer = Closest().fit(fitted, X)
    for target in (False, True):
        check(fitted, X, explainer.explain(X, target=target))


@pytest.mark.parametrize("gaps", [[None, np.nan], [np.nan, None]])
def test_missing_for_any_model(gaps: list[Any]) -> None:
    """A model that is only asked may tell ways to be missing apart, too."""
    X = people(gaps)
    y = np.array([value is None for value in X["c"]])
    apart = FunctionTransformer(lambda T: np.array([[v is None, v == "a"] for v in T["c"]], dtype=float))
    fitted = make_pipeline(apart, LogisticRegression()).fit(X, y)
    found = Penalized().fit(fitted, X).explain(X[:60], target=False)
    check(fitted, X[:60], found)


class TestCodes:
    """An encoder that names numbers knows no others, whatever a schema says of them."""

    @staticmethod
    def table() -> pd.DataFrame:
        return pd.DataFrame({"g": [1, 2, 5] * 100, "z": np.linspace(-4, 4, 300)})

    @pytest.mark.parametrize("method", [Closest, Plausible])
    @pytest.mark.parametrize("schema", [True, False])
    @pytest.mark.parametrize(
        "encoder",
        [
            OrdinalEncoder(),
            OneHotEncoder(),
            OneHotEncoder(handle_unknown="ignore"),
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        ],
    )
    def test_only_what_is_known(self, encoder: Any, schema: bool, method: Any) -> None:
        X = self.table()
        steps = ColumnTransformer([("g", encoder, ["g"]), ("z", "passthrough", ["z"])])
        y = (X["z"] + X["g"] > 2).to_numpy()
        model = make_pipeline(steps, LogisticRegression(C=100)).fit(X, y)
        still = Actionable(immutable=["z"])
        explainer = method(actionable=still, schema=Schema.infer(X) if schema else None).fit(model, X, y)
        found = explainer.explain(X, target=True)
        held = pd.concat([X.assign(g=g) for g in (1, 2, 5)])
        possible = model.predict(held).reshape(3, -1).any(axis=0)
        if method is Closest:
            assert (found.valid == possible).all()
        assert set(found.status) <= {"optimal", "already", "unreachable"}
        assert set(found.counterfactual["g"].dropna()) <= {1, 2, 5}
        assert (model.predict(found.counterfactual[found.valid])).all()

    def test_costs_of_numbers(self) -> None:
        """A schema says what codes cost as numbers, and so does its Gower; out of bounds nobody is sent."""
        X = self.table()
        steps = ColumnTransformer([("g", OneHotEncoder(), ["g"]), ("z", "passthrough", ["z"])])
        model = make_pipeline(steps, LogisticRegression(C=100)).fit(X, X["g"] >= 2)
        schema = Schema({"g": Column("integer", weight=2.0, bounds=(None, 4)), "z": Column("numeric")})
        for cost in ("l1", Gower(schema)):
            found = Closest(cost=cost, schema=schema).fit(model, X).explain(X[:3], target=True)
            assert found.counterfactual["g"].tolist() == [2, 2, 5]
            assert found.cost.tolist() == [2.0, 0.0, 0.0]


class TestRefused:
    """What one person has is one person's status."""

    def test_one_of_many(self) -> None:
        def shy(T: np.ndarray) -> np.ndarray:
            if (np.abs(T[:, 0]) > 50).any():
                raise ValueError("too far out")
            return T

        X = np.random.default_rng(0).normal(size=(300, 2))
        model = make_pipeline(FunctionTransformer(shy), LogisticRegression()).fit(X, X[:, 0] > 0)
        asked = X[:40].copy()
        asked[[7, 33], 0] = 99.0
        found = Penalized().fit(model, X).explain(asked, target=True)
        assert np.flatnonzero(found.status == "invalid").tolist() == [7, 33]
        assert "too far out" in found.reason[7]
        assert np.delete(found.valid, [7, 33]).all()

    def test_everybody(self) -> None:
        """A model that takes nobody is broken, and says so itself."""

        class Broken(DummyClassifier):
            def predict(self, X: Any) -> Any:
                raise ValueError("no license")

        X = np.random.default_rng(0).normal(size=(100, 2))
        with pytest.raises(ValueError, match="no license"):
            Penalized().fit(Broken().fit(X, X[:, 0] > 0), X).explain(X, target=True)
