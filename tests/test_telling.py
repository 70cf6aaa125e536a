"""Law: what a person is told, typed back as it stands, leads to the target."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand import Actionable, Closest, Penalized, Plausible
from evenhand.explaining.telling import rounded_away, word
from threads import one_thread  # noqa: F401

SIZES = {"income": (2e4, 3e3), "share": (0.3, 1e-3), "far": (1e6, 1.0), "tiny": (3e-7, 1e-7)}


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.normal(*size, 120) for name, size in SIZES.items()})
    return X.assign(age=rng.integers(18, 80, 120), job=rng.choice(["a", "b", "c"], 120))


def typed(row: pd.DataFrame, text: str) -> pd.DataFrame:
    """A person after somebody has typed what was said."""
    row = row.copy()
    for part in text.split("; "):
        name, change = part.split(": ")
        then: Any = change.split(" -> ")[1]
        row[name] = [then if name == "job" else float(then)]
    return row


@pytest.mark.parametrize("final", [LogisticRegression(C=100), DecisionTreeClassifier(max_depth=5, random_state=0)])
@pytest.mark.parametrize("method", [Closest, Plausible, Penalized])
@pytest.mark.parametrize("raw", [True, False])
def test_typed_back(final: Any, method: Any, raw: bool) -> None:
    X = people() if raw else people().drop(columns=["job"]).astype(float)
    scores = (X[list(SIZES)] - X[list(SIZES)].mean()) / X[list(SIZES)].std()
    y = (scores.sum(axis=1) + (X["age"] - 50) / 20 > 0).to_numpy()
    numbers = [*SIZES, "age"]
    kinds = [("numbers", StandardScaler(), numbers), *([("job", OneHotEncoder(), ["job"])] if raw else [])]
    model = make_pipeline(ColumnTransformer(kinds), final) if raw else make_pipeline(StandardScaler(), final)
    model.fit(X, y)
    limits = Actionable(bounds={"income": (1.5e4, 2.1e4)})
    found = method(actionable=limits).fit(model, X, y).explain(X[:40], target=True)
    told = [i for i in range(40) if found.status[i] not in ("already", "unreachable", "missing")]
    assert len(told) > 8
    short = 0
    for i in told:
        text = found.describe(i)
        person = typed(X.iloc[[i]], text)
        assert model.predict(person)[0], text
        assert 1.5e4 <= person["income"].iloc[0] <= 2.1e4 or "income" not in text
        short += len(text) <= 40 * text.count(" -> ")
    assert short > 0.6 * len(told)  # few digits do
    again = pickle.loads(pickle.dumps(found)).describe(told[0])  # nobody is there to ask: all digits are told
    assert model.predict(typed(X.iloc[[told[0]]], again))[0]


@given(st.floats(-1e18, 1e18).filter(lambda x: x == 0 or abs(x) > 1e-18), st.integers(1, 12), st.booleans())
def test_rounding_goes_away_from_the_person(value: float, digits: int, up: bool) -> None:
    rounded = float(rounded_away(value, digits, up=up))
    assert rounded >= value if up else rounded <= value
    assert abs(rounded - value) <= max(10.0 ** (1 - digits) * abs(value), 1e-12 * abs(value)) * (1 + 1e-9)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_words_are_read_as_what_they_say(value: float) -> None:
    assert float(word(value)) == value


def test_whole_numbers_have_all_their_digits() -> None:
    assert word(20031) == "20031"
    assert word(np.int64(-1234567)) == "-1234567"
    assert word(1e300) == "1e+300"
    assert word(True) == "True"
    assert word(None) == "missing"
