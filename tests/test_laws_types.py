"""Laws of types: whatever a table is made of, the same people get the same answers, and `predict` confirms them.

Every type of pandas, polars and pyarrow that holds numbers, flags or levels, with and without missing values of every
kind; what holds none of these is refused in a sentence.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from evenhand import Closest, Explainer, Penalized, Plausible
from evenhand.density import HighDensity
from raw_laws import FEW, MODELS, quietly
from rotation import in_turn
from threads import one_thread  # noqa: F401

N = 90
ENCODERS: dict[str, Any] = {
    "one-hot": lambda: OneHotEncoder(handle_unknown="ignore"),
    "ordinal": lambda: OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
}


@cache
def people() -> tuple[pd.DataFrame, np.ndarray]:
    """A count, an amount in quarters that singles hold, a level and a flag; 0 and 1, and most of small types."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {
            "count": rng.integers(0, 100, N),
            "amount": np.round(4 * rng.normal(0, 8, N)) / 4,
            "level": rng.choice(["a", "b", "c"], N),
            "flag": rng.random(N) < 0.5,
        }
    )
    merit = X["count"] / 30 + X["amount"] / 8 + (X["level"] == "c") + X["flag"] + rng.normal(size=N) / 3
    return X, (merit > merit.median()).astype(int).to_numpy()


@cache
def fitted(kind: str, encoder: str) -> Any:
    X, y = people()
    numbers = ["count", "amount", "flag"]
    steps = ColumnTransformer([("level", ENCODERS[encoder](), ["level"]), ("numbers", StandardScaler(), numbers)])
    few = FEW if kind == "1nn" else N
    return quietly(make_pipeline(steps, MODELS[kind]()), X.iloc[:few], y[:few])


@cache
def explainer(kind: str, encoder: str, method: str) -> Explainer:
    X, y = people()
    recipe: Any = {
        "closest": Closest(),
        "plausible": Plausible(HighDensity(components=[1])),
        "penalized": Penalized(restarts=1),
    }[method]
    return recipe.fit(fitted(kind, encoder), X, y)


def dictionary(values: pa.DataType, index: pa.DataType | None = None) -> pa.DataType:
    return pa.dictionary(pa.int8() if index is None else index, values)


ARROW: dict[str, list[Any]] = {
    "count": [
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float32(), pa.float64(), pa.decimal128(10, 2), pa.decimal256(40, 0)),
    ],
    "amount": [pa.float16(), pa.float32(), pa.float64(), pa.decimal128(10, 3)],
    "level": [pa.string(), pa.large_string(), pa.string_view(), dictionary(pa.string())],
    "flag": [pa.bool_(), pa.int8(), pa.float32()],
}
PANDAS: dict[str, list[Any]] = {
    "count": [
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"),
        *("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64", object),
    ],
    "amount": ["float16", "float32", "float64", "longdouble", "Float32", "Float64", object],
    "level": [
        object,
        "str",
        "string",
        "string[python]",
        "category",
        pd.CategoricalDtype(["c", "b", "a"], ordered=True),
    ],
    "flag": ["bool", "boolean", "int8", "uint8", "Int8", "float32", "Float64", object],
}
POLARS: dict[str, list[Any]] = {
    "count": [
        *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
        *(pl.Float32, pl.Float64, pl.Decimal(10, 2)),
    ],
    "amount": [pl.Float32, pl.Float64, pl.Decimal(10, 3)],
    "level": [pl.String, pl.Categorical, pl.Enum(["a", "b", "c"]), pl.Enum(["c", "a", "b", "z"])],
    "flag": [pl.Boolean, pl.Int8, pl.Float64],
}
FORMS: list[tuple[str, str, Any]] = [
    *[("pandas", column, kind) for column, kinds in PANDAS.items() for kind in kinds],
    *[("arrow in pandas", column, kind) for column, kinds in ARROW.items() for kind in kinds],
    *[("arrow", column, kind) for column, kinds in ARROW.items() for kind in kinds],
    *[("polars", column, kind) for column, kinds in POLARS.items() for kind in kinds],
]
NAMES = [f"{library}-{column}-{kind if isinstance(kind, str) else str(kind)[:24]}" for library, column, kind in FORMS]


def as_form(X: pd.DataFrame, library: str, column: str, kind: Any) -> Any:
    """The table with one column of a type, or the table of another library."""
    if library == "pandas":
        return X.assign(**{column: X[column].astype(kind)})
    if library == "polars":
        values = X[column].astype(int) if column == "flag" and kind != pl.Boolean else X[column]
        return pl.from_pandas(X.assign(**{column: values})).with_columns(pl.col(column).cast(kind))
    values = as_arrow(X[column], kind)
    if library == "arrow in pandas":
        return X.assign(**{column: pd.Series(values, index=X.index, dtype=pd.ArrowDtype(kind))})
    table = pa.Table.from_pandas(X, preserve_index=False)
    return table.set_column(table.column_names.index(column), column, values)


def as_arrow(values: pd.Series[Any], kind: pa.DataType) -> pa.Array:
    """One by one: not every type casts to every other."""
    given = [None if pd.isna(value) else value for value in values.tolist()]
    if pa.types.is_decimal(kind):
        return pa.array([None if value is None else Decimal(str(value)) for value in given], kind)
    if pa.types.is_float16(kind):
        return pa.array([None if value is None else np.float16(value) for value in given], kind)
    if pa.types.is_dictionary(kind):
        return pa.array(given, kind.value_type).dictionary_encode().cast(kind)
    if not pa.types.is_boolean(kind) and isinstance(next(v for v in given if v is not None), bool):
        given = [None if value is None else int(value) for value in given]
    if pa.types.is_integer(kind):
        given = [None if value is None else int(value) for value in given]
    return pa.array(given, kind)


def as_pandas(X: Any) -> pd.DataFrame:
    if isinstance(X, pl.DataFrame):  # Arrow, on the way to pandas, has no such integers
        X = X.with_columns(pl.col(pl.Int128).cast(pl.Int64))
    return X if isinstance(X, pd.DataFrame) else X.to_pandas()


def plain_levels(X: Any) -> pd.DataFrame:
    """What a table says, whatever its types."""
    frame = as_pandas(X)
    return pd.DataFrame(
        {
            "count": frame["count"].astype(float).to_numpy(),
            "amount": frame["amount"].astype(float).to_numpy(),
            "level": frame["level"].astype(object).to_numpy(),
            "flag": frame["flag"].astype(float).to_numpy(),
        }
    )


def check(model: Any, found: Any, same: Any, given: Any) -> None:
    """The same answers as the plain table's, in the form that was given, and confirmed as they are returned."""
    assert found.status.tolist() == same.status.tolist(), list(zip(found.status, found.reason, strict=True))[:3]
    np.testing.assert_array_equal(found.cost, same.cost)
    returned = found.counterfactual
    if isinstance(given, pl.DataFrame):
        assert isinstance(returned, pl.DataFrame)
    after, valid = as_pandas(returned), np.asarray(found.valid)
    assert valid.any()
    assert list(after.columns) == list(as_pandas(given).columns)
    assert (model.predict(after[valid]) == found.target[valid]).all()
    pd.testing.assert_frame_equal(
        plain_levels(returned)[valid], plain_levels(same.counterfactual)[valid], check_dtype=False, check_exact=True
    )


CASES = [(kind, encoder, method) for kind in MODELS for encoder in ENCODERS for method in ("closest", "plausible")]


@pytest.mark.parametrize(("position", "form"), in_turn(11, [0, 1], range(len(FORMS))))
def test_every_type(position: int, form: int) -> None:
    """A type changes what a table looks like, and nothing of what people are told; families take turns."""
    library, column, kind = FORMS[form]
    family, encoder, method = CASES[(7 * form + 5 * position) % len(CASES)]
    if family == "1nn" and method == "plausible":
        method = "closest"
    X, _ = people()
    asked = X.iloc[30:42].reset_index(drop=True)
    explain, model = explainer(family, encoder, method), fitted(family, encoder)
    given = as_form(asked, library, column, kind)
    target = 1 - model.predict(asked)
    check(model, explain.explain(given, target=target), explain.explain(asked, target=target), given)


@pytest.mark.slow
@pytest.mark.parametrize("form", [pytest.param(i, id=NAMES[i]) for i in range(0, len(FORMS), 11)])
def test_searches_take_them_too(form: int) -> None:
    X, _ = people()
    asked = X.iloc[30:33].reset_index(drop=True)
    explain, model = explainer("tree", "one-hot", "penalized"), fitted("tree", "one-hot")
    given = as_form(asked, *FORMS[form])
    check(model, explain.explain(given, target=1), explain.explain(asked, target=1), given)


@pytest.mark.parametrize("form", in_turn(11, range(len(FORMS))))
def test_tables_to_fit_with(form: int) -> None:
    """What a method learns of a table is the same, whatever the types: it answers, and the model confirms it."""
    library, column, kind = FORMS[form]
    X, y = people()
    model = fitted(["logistic", "tree", "centroid"][form % 3], "one-hot")
    given = as_form(X, library, column, kind)
    asked = X.iloc[30:36].reset_index(drop=True)
    found = Closest().fit(model, given, y).explain(asked, target=1)
    assert found.valid.all(), found.reason
    assert (model.predict(found.counterfactual) == 1).all()
    straight = Closest().fit(model, X, y).explain(asked, target=1)
    same_kinds = column in ("level", "amount") or not ("float" in str(kind).lower() or "decimal" in str(kind).lower())
    if same_kinds and kind is not object:  # a count of fractions is a number like others
        np.testing.assert_allclose(found.cost, straight.cost, rtol=1e-9)


@pytest.mark.parametrize(("kind", "library"), in_turn(5, MODELS, ["pandas", "arrow in pandas", "arrow", "polars"]))
def test_numbers_without_encoders(kind: str, library: str) -> None:
    """Nothing but numbers: singles and small counts of every library, for the model alone."""
    X, y = people()
    X = X[["count", "amount"]]
    few = FEW if kind == "1nn" else N
    model = quietly(MODELS[kind](), X.iloc[:few], y[:few])
    asked = X.iloc[30:42].reset_index(drop=True)
    given: Any = {
        "pandas": lambda: asked.astype({"count": "uint8", "amount": "float32"}),
        "arrow in pandas": lambda: asked.astype(
            {"count": pd.ArrowDtype(pa.int8()), "amount": pd.ArrowDtype(pa.float32())}
        ),
        "arrow": lambda: pa.table({"amount": asked["amount"], "count": pa.array(asked["count"], pa.uint8())}),
        "polars": lambda: pl.DataFrame({"amount": asked["amount"].tolist(), "count": asked["count"].tolist()}),
    }[library]()
    for explain in (Closest().fit(model, X), Closest().fit(model)):
        target = 1 - model.predict(asked)
        found, same = explain.explain(given, target=target), explain.explain(asked, target=target)
        assert found.status.tolist() == same.status.tolist()
        np.testing.assert_array_equal(found.cost, same.cost)
        after = as_pandas(found.counterfactual)[["count", "amount"]]
        assert (model.predict(after[found.valid]) == target[found.valid]).all()


# --- What is missing --------------------------------------------------------------------------------------------------

WAYS: dict[str, Any] = {
    "pandas nan": lambda X: X.astype({"count": float}),
    "pandas None": lambda X: X.astype(object).where(X.notna(), None),
    "pandas NA": lambda X: X.astype({"count": "Int64", "amount": "Float64", "level": "string", "flag": "boolean"}),
    "pandas category": lambda X: X.astype({"level": "category"}),
    "arrow in pandas": lambda X: X.convert_dtypes(dtype_backend="pyarrow"),
    "arrow": lambda X: pa.Table.from_pandas(X.convert_dtypes(), preserve_index=False),
    "arrow dictionary": lambda X: pa.Table.from_pandas(X.astype({"level": "category"}), preserve_index=False),
    "polars null": lambda X: pl.from_pandas(X),
    "polars nan": lambda X: pl.from_pandas(X).with_columns(pl.col("amount").fill_null(float("nan"))),
    "polars enum": lambda X: pl.from_pandas(X).with_columns(pl.col("level").cast(pl.Enum(["a", "b", "c"]))),
}


@cache
def with_gaps() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """People of whom something is missing, each something else, and whom nothing is."""
    X, y = people()
    X = X.astype({"count": "Int64", "flag": object, "level": object}).copy()
    for j, column in enumerate(("count", "amount", "level")):
        X.loc[X.index[j::7], column] = None if column != "amount" else np.nan
    X["flag"] = X["flag"].astype(bool)
    return X, y, X.notna().all(axis=1).to_numpy()


@cache
def imputed(kind: str) -> tuple[Any, pd.DataFrame]:
    """A pipeline that fills numbers, and knows a missing level as one of its own; and the table it learned from."""
    X, y, _ = with_gaps()
    X = X.astype({"count": float}).assign(level=X["level"].fillna(np.nan))
    steps = ColumnTransformer(
        [
            ("level", OneHotEncoder(), ["level"]),
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["count", "amount", "flag"]),
        ]
    )
    few = FEW if kind == "1nn" else N
    return quietly(make_pipeline(steps, MODELS[kind]()), X.iloc[:few], y[:few]), X


@pytest.mark.parametrize(("kind", "way"), in_turn(13, MODELS, WAYS))
def test_missing_in_every_way(kind: str, way: str) -> None:
    """Who is valid is confirmed as returned; who is not is told what is missing; and missing stays, or is filled."""
    model, X = imputed(kind)
    _, _, whole = with_gaps()
    asked, known = X.iloc[28:44].reset_index(drop=True), whole[28:44]
    explain = Closest().fit(model, X)
    given = WAYS[way](with_gaps()[0].iloc[28:44].reset_index(drop=True))
    plain = explain.explain(asked, target=1)
    assert plain.valid.all()
    found = explain.explain(given, target=1)
    assert found.valid[known].all()
    np.testing.assert_array_equal(found.cost[known], plain.cost[known])
    for i in np.flatnonzero(~found.valid):
        assert found.status[i] == "invalid"
        assert "missing" in found.reason[i]
    after, valid = as_pandas(found.counterfactual), np.asarray(found.valid)
    # NA and None as the pipeline takes them: a float's NaN, and the level that stands for what is missing.
    after = after.astype({"count": float, "amount": float, "flag": float, "level": object})
    after["level"] = after["level"].where(after["level"].notna(), np.nan)
    assert (model.predict(after[valid]) == 1).all()
    # Whoever is read at all is told what the plain table's person is.
    np.testing.assert_allclose(found.cost[valid], plain.cost[valid], rtol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_missing_numbers_without_imputer(way: str) -> None:
    """Nothing says what stands for a missing number: that person is invalid, and all others are not."""
    model = fitted("logistic", "one-hot")
    X, _ = people()
    _, _, whole = with_gaps()
    given = WAYS[way](with_gaps()[0].iloc[28:44].reset_index(drop=True))
    found = Closest().fit(model, X).explain(given, target=1)
    assert (found.valid == whole[28:44]).all()
    assert all("missing" in found.reason[i] or "level" in found.reason[i] for i in np.flatnonzero(~found.valid))


# --- What is no number and no level -----------------------------------------------------------------------------------

STRANGE: dict[str, Any] = {
    "moments": pd.date_range("2020-01-01", periods=N),
    "moments in a zone": pd.date_range("2020-01-01", periods=N, tz="UTC"),
    "durations": pd.to_timedelta(np.arange(N), unit="h"),
    "periods": pd.period_range("2020-01", periods=N, freq="M"),
    "intervals": pd.arrays.IntervalArray.from_breaks(np.arange(N + 1)),
    "complex": np.arange(N) * 1j,
    "days of Arrow": pd.array([datetime.date(2020, 1, 1)] * N, dtype=pd.ArrowDtype(pa.date32())),
    "lists": pd.Series([[1, 2]] * N, dtype=object),
}


@pytest.mark.parametrize("strange", STRANGE)
def test_what_is_no_number_is_refused_in_a_sentence(strange: str) -> None:
    """In a column of numbers it makes nobody's answer wrong: the table is refused, or its people are invalid."""
    model = fitted("logistic", "one-hot")
    X, _ = people()
    given = X.assign(count=pd.Series(STRANGE[strange], index=X.index)).iloc[:6]
    explain = Closest().fit(model, X)
    try:
        found = explain.explain(given, target=1)
    except (TypeError, ValueError) as error:
        assert "count" in str(error)  # noqa: PT017 - either is an answer
        return
    assert (found.status == "invalid").all()
    assert all("count" in reason for reason in found.reason)
