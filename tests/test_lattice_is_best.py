"""Law: on whole numbers and bins the answer is the best value that the model confirms, with a gap of nothing.

Against everything that there is to choose from: thresholds fall on whole numbers, people stand on edges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand import L1, Actionable, Closest, Column, Schema
from rotation import in_turn
from threads import one_thread  # noqa: F401

SCALERS = {"plain": None, "standard": StandardScaler, "min-max": MinMaxScaler, "robust": RobustScaler}


def table(offset: float, spacing: int) -> pd.DataFrame:
    """A count in steps, so that trees split at whole numbers between them, and a level."""
    k = int(offset) + spacing * np.tile(np.arange(20), 4)
    return pd.DataFrame({"k": k, "c": np.repeat(["p", "q"], 40)})


def model_of(X: pd.DataFrame, scaler: Any, model: Any, encoder: bool) -> Any:
    y = (X["k"] - X["k"].min()) // 3 % 2 == (X["c"] == "q" if "c" in X else False)
    steps = [] if scaler is None else [scaler()]
    if encoder:
        kept = make_pipeline(*steps) if steps else "passthrough"
        steps = [ColumnTransformer([("k", kept, ["k"]), ("c", OneHotEncoder(), ["c"])])]
    return make_pipeline(*steps, model).fit(X, y)


def check(model: Any, explainer: Any, people: pd.DataFrame, column: str, values: np.ndarray) -> None:
    """Everybody against every value of a column, the others held."""
    now = model.predict(people)
    found = explainer.explain(people, target=~now)
    for i in range(len(people)):
        rivals = pd.concat([people.iloc[[i]]] * len(values), ignore_index=True).assign(**{column: values})
        good = model.predict(rivals) != now[i]
        away = np.abs(values - people[column].iloc[i])[good]
        if not len(away):
            assert found.status[i] == "unreachable"
            continue
        told = abs(found.counterfactual[column].iloc[i] - people[column].iloc[i])
        assert found.status[i] == "optimal"
        assert told == pytest.approx(away.min(), rel=1e-9)
        assert found.gap[i] <= 1e-7 * found.cost[i]


@pytest.mark.parametrize(
    ("scaler", "offset", "spacing", "encoder", "weight"),
    in_turn(7, SCALERS, [0, -37, 10**4, 10**5, 10**6], [1, 2, 4], [True, False], [1.0, 1e-10, 1e10]),
)
def test_trees(scaler: str, offset: int, spacing: int, encoder: bool, weight: float) -> None:
    X = table(offset, spacing)
    X = X if encoder else X[["k"]]
    model = model_of(X, SCALERS[scaler], DecisionTreeClassifier(random_state=0), encoder)
    held = Actionable(immutable=["c"]) if encoder else None
    cost = L1(weights=np.full(X.shape[1], weight))
    explainer = Closest(cost=cost, actionable=held).fit(model, X)
    low, high = int(X["k"].min()), int(X["k"].max())
    people = X.iloc[::7].copy()
    people["k"] += np.arange(len(people)) % spacing
    check(model, explainer, people, "k", np.arange(max(low - 30, 0) if low >= 0 else low - 30, high + 31))


@pytest.mark.parametrize("top", [40, 90])
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("encode", ["onehot-dense", "ordinal"])
@pytest.mark.parametrize("final", [LogisticRegression(C=100), DecisionTreeClassifier(random_state=0)])
@pytest.mark.parametrize(("kind", "unit"), [(int, 1), (float, 1.0), (float, 1e-6), (float, 1e9)])
def test_bins(top: int, strategy: str, encode: str, final: Any, kind: Any, unit: float) -> None:
    """People stand on the edges themselves; fractions end just before the next bin begins."""
    X = pd.DataFrame({"age": np.arange(top + 1) * unit}).astype(kind)
    bins = KBinsDiscretizer(
        4 if top == 40 else 3, strategy=strategy, encode=encode, quantile_method="averaged_inverted_cdf"
    )
    model = make_pipeline(bins, final).fit(X, (X["age"] >= 20 * unit) & (X["age"] < 30 * unit))
    values = np.arange(-5.0, top + 9.0, 1.0 if kind is int else 0.125) * unit
    values = np.unique(np.concatenate([values, np.nextafter(values, -np.inf)])) if kind is float else values
    explainer = Closest(cost=L1(weights=np.ones(1))).fit(model, X)
    now = model.predict(X)
    found = explainer.explain(X, target=~now)
    values = values[values >= 0]  # no age is negative in the table
    for i in range(len(X)):
        good = values[model.predict(X.iloc[[0] * len(values)].assign(age=values)) != now[i]]
        if not len(good):
            assert found.status[i] == "unreachable"
            continue
        best = np.abs(good - X["age"].iloc[i]).min()
        assert found.valid[i]
        assert found.cost[i] <= best * (1 + 1e-14)
        assert found.cost[i] - found.gap[i] <= best
        assert found.status[i] == "optimal"
        if kind is int:
            assert found.cost[i] == best


@pytest.mark.parametrize("weight", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("wins", [False, True])
@pytest.mark.parametrize("top", [0.0, 0.5, np.inf])
def test_a_number_beside_whole_ones_leads_off_a_boundary(top: float, wins: bool, weight: float) -> None:
    """Scores tie on lattice points, which predict may deny; a little of a number that may move is enough then."""
    X = pd.DataFrame({"n": np.arange(60) % 7, "z": np.linspace(0.0, 1.0, 60)})
    model = LogisticRegression().fit(X, X["n"] + X["z"] > 4)
    model.coef_, model.intercept_ = np.array([[1.0, 1.0]]), np.array([-4.0])  # a score of zero is False
    people = pd.DataFrame({"n": np.arange(7), "z": 0.0})
    schema = Schema({"n": Column("integer", bounds=(0, 6)), "z": Column("numeric", weight=weight, bounds=(0.0, top))})
    found = Closest(schema=schema).fit(model, X).explain(people, target=not wins)
    for i, n in enumerate(people["n"]):
        if (n > 4) == (not wins):
            assert found.status[i] == "already"
            continue
        to = np.arange(7)
        rest = 4.0 - to  # what the number has to make up for, or a little more
        able = (rest <= 0.0) if wins else (rest < top) | (rest < 0.0)
        price = np.abs(to - n) + weight * np.maximum(rest, 0.0)
        if wins:  # False needs a score of at most zero, and the number is at its lowest already
            able, price = to <= 4, np.abs(to - n).astype(float)
        assert found.valid[i]
        assert found.cost[i] - found.gap[i] <= price[able].min() * (1 + 1e-12)
        assert found.cost[i] <= price[able].min() * (1 + 1e-7) + 1e-7
