"""Law: "valid" is what the model's own predict says of counterfactuals as they are returned, whatever their types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand import Closest, Explanations, Penalized, Plausible
from evenhand.models import View
from rotation import in_turn
from threads import one_thread  # noqa: F401

N = 240
WIDTHS = {"int8": 100, "uint8": 200, "int16": 30_000, "uint16": 60_000, "int32": 10**9, "int64": 10**9}


def arrow(kind: pa.DataType) -> pd.ArrowDtype:
    return pd.ArrowDtype(kind)


COUNTS: dict[str, Any] = {
    **{kind: kind for kind in WIDTHS},
    **{kind: kind for kind in ("Int8", "UInt8", "Int16", "Int64")},
    "int8[arrow]": arrow(pa.int8()),
    "uint8[arrow]": arrow(pa.uint8()),
    "int64[arrow]": arrow(pa.int64()),
}
AMOUNTS: dict[str, Any] = {
    "float32": "float32",
    "float64": "float64",
    "Float32": "Float32",
    "Float64": "Float64",
    "float[arrow]": arrow(pa.float32()),
    "double[arrow]": arrow(pa.float64()),
}
LEVELS: dict[str, Any] = {
    "object": object,
    "str": "str",
    "string": "string",
    "string[arrow]": arrow(pa.string()),
    "category": "category",
}
FLAGS: dict[str, Any] = {
    "bool": "bool",
    "boolean": "boolean",
    "bool[arrow]": arrow(pa.bool_()),
    "int8": "int8",
    "Int8": "Int8",
    "float32": "float32",
}


def table(top: int = 200) -> pd.DataFrame:
    """People with a count up to `top`, an amount, a level of three and a flag."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "count": rng.integers(0, top + 1, N),
            "amount": rng.normal(2e4, 3e3, N),
            "level": rng.choice(["a", "b", "c"], N),
            "flag": rng.random(N) < 0.5,
        }
    )


def labels(X: pd.DataFrame) -> np.ndarray:
    """Three of them: at the top of the count, at a level, and all others."""
    top = X["count"].max()
    rich = (X["level"] == "c") & (X["amount"] > 2e4)
    return np.where(X["count"] + top * X["flag"] / 8 > top, 2, rich.astype(int))


def encoded(model: Any, levels: Any) -> Any:
    """A pipeline that names levels, and scales numbers."""
    columns = [("levels", levels, ["level"]), ("numbers", StandardScaler(), ["count", "amount", "flag"])]
    return make_pipeline(ColumnTransformer(columns), model)


MODELS = {
    "linear": lambda: encoded(LogisticRegression(C=100, max_iter=2000), OneHotEncoder()),
    "tree": lambda: encoded(DecisionTreeClassifier(max_depth=6, random_state=0), OneHotEncoder()),
    "ordinal tree": lambda: encoded(DecisionTreeClassifier(max_depth=6, random_state=0), OrdinalEncoder()),
}


def check(model: Any, found: Explanations) -> None:
    """Who is valid has the target, as returned and as the caller's predict sees it; and somebody is."""
    returned: Any = found.counterfactual
    returned = returned.to_pandas() if isinstance(returned, pl.DataFrame) else returned
    valid = np.asarray(found.valid)
    assert valid.mean() > 0.9
    assert (model.predict(returned[valid]) == found.target[valid]).all()


def explained(name: str, X: pd.DataFrame, people: Any, target: Any) -> None:
    model = MODELS[name]().fit(X, labels(X.astype({"flag": bool}) if X["flag"].dtype != bool else X))
    check(model, Closest().fit(model, X).explain(people, target=target))


@pytest.mark.parametrize(("model", "target"), in_turn(2, MODELS, [0, 1, 2]))
class TestTypes:
    @pytest.mark.parametrize("kind", COUNTS)
    def test_count(self, model: str, target: int, kind: str) -> None:
        X = table(100 if kind.lower().startswith("int8") else 200)
        explained(model, X, X.astype({"count": COUNTS[kind]}), target)

    @pytest.mark.parametrize("kind", AMOUNTS)
    def test_amount(self, model: str, target: int, kind: str) -> None:
        X = table().astype({"amount": AMOUNTS[kind]})
        explained(model, X, X, target)

    @pytest.mark.parametrize("kind", LEVELS)
    def test_level(self, model: str, target: int, kind: str) -> None:
        X = table()
        same = X[X.level == "a"].astype({"level": LEVELS[kind]})  # a table that has not seen the other levels
        explained(model, X, same, target)

    @pytest.mark.parametrize("kind", FLAGS)
    def test_flag(self, model: str, target: int, kind: str) -> None:
        X = table()
        explained(model, X, X.astype({"flag": FLAGS[kind]}), target)

    @pytest.mark.parametrize("kind", [pl.Int8, pl.UInt8, pl.Int64, pl.Float32])
    def test_polars(self, model: str, target: int, kind: Any) -> None:
        X = table(100 if kind == pl.Int8 else 200)
        people = pl.from_pandas(X).with_columns(pl.col("count").cast(kind), pl.col("amount").cast(pl.Float32))
        explained(model, X, people, target)

    @pytest.mark.parametrize("kind", [pl.Enum(["a"]), pl.Enum(["c", "b", "a"]), pl.Categorical, pl.String])
    def test_polars_levels(self, model: str, target: int, kind: Any) -> None:
        X = table()
        people = pl.from_pandas(X[X.level == "a"]).with_columns(pl.col("level").cast(kind))
        explained(model, X, people, target)


@pytest.mark.parametrize("kind", ["int8", "uint8", "Int8", "int8[arrow]"])
def test_more_than_a_type_holds(kind: str) -> None:
    """Advice beyond what the table's own type can say widens the type; it used to wrap around."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(-100, 100, N), "b": rng.integers(0, 120, N)})
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, X.a + 2 * X.b > 300)
    people = X.clip(lower=0).astype(dict.fromkeys(X, COUNTS[kind]))
    found = Closest().fit(model, X).explain(people, target=True)
    check(model, found)
    assert found.counterfactual.to_numpy(dtype=float).max() > 127


@pytest.mark.parametrize("method", [Plausible, Penalized])
def test_other_methods(method: Any) -> None:
    X = table().astype({"count": "uint8", "amount": "float32", "level": "category"})
    model = MODELS["linear"]().fit(X, labels(X))
    people = X[X.level == "a"].copy()
    people["level"] = people["level"].cat.remove_unused_categories()
    args = () if method is Penalized else (labels(X),)
    found = method().fit(model, X, *args).explain(people[:40], target=1)
    check(model, found)


def test_categories_of_the_model_itself() -> None:
    """Boosting with native categories needs the type; a table of one level gets all of them."""
    X = table().astype({"level": "category"})
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=30).fit(X, labels(X))
    people = X[X.level == "a"][:30].copy()
    people["level"] = people["level"].cat.remove_unused_categories()
    found = Penalized().fit(model, X).explain(people, target=1)
    check(model, found)
    assert list(found.counterfactual["level"].cat.categories) == ["a", "b", "c"]


def test_written_is_read_again() -> None:
    """Whatever the codes, a table that was written reads as them."""
    X = table()
    seen: View = Closest().fit(MODELS["linear"]().fit(X, labels(X)), X).view
    rng = np.random.default_rng(1)
    codes = seen.read(X).copy()
    codes[:, 0] = rng.integers(-(10**6), 10**6, N)
    codes[:, 1] *= rng.normal(size=N)
    codes[:, 2], codes[:, 3] = rng.integers(0, 3, N), rng.integers(0, 2, N)
    for count in COUNTS.values():
        for amount in AMOUNTS.values():
            for level in LEVELS.values():
                given = X.assign(count=X["count"].clip(upper=100)).astype({"count": count, "amount": amount})
                given["level"] = pd.Series(["a"] * N).astype(level)
                assert (seen.read(seen.reader.write(codes, given)) == codes).all()
