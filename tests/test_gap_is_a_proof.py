"""Law: no point that the model confirms costs less than an answer minus its gap, at any offset and in any unit.

The sharpest rivals stand next to an answer: a little back on the way from the person to it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand import GLVQ, L1, L2, Actionable, Closest, Explainer, Explanations
from rotation import in_turn
from threads import one_thread  # noqa: F401

MODELS: dict[str, Any] = {
    "softmax": lambda: LogisticRegression(C=10, max_iter=1000),
    "scaled softmax": lambda: make_pipeline(StandardScaler(), LogisticRegression(C=10)),
    "rotated softmax": lambda: make_pipeline(StandardScaler(), PCA(2), LogisticRegression(C=10)),
    "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
    "scaled tree": lambda: make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=4, random_state=0)),
    "rotated tree": lambda: make_pipeline(PCA(2), DecisionTreeClassifier(max_depth=3, random_state=0)),
    "centroids": NearestCentroid,
    "neighbour": lambda: KNeighborsClassifier(1, algorithm="brute"),
    "scaled neighbour": lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(1, algorithm="brute")),
    "prototypes": lambda: GLVQ(random_state=0),
}
COSTS: dict[str, Any] = {
    "l1": L1(),
    "l2": L2(),
    "l1 far apart": L1(weights=np.array([1e-8, 1.0, 1e8])),
    "l2 far apart": L2(weights=np.array([1e6, 1.0, 1e-6])),
}
LIMITS = {"free": None, "immutable": Actionable(immutable=[0]), "one way": Actionable(increase=[0, 1])}
TABLES = {
    "plain": (1.0, 0.0),
    "at 1e3": (1.0, 1e3),
    "at 1e6": (1.0, 1e6),
    "at 1e8": (1.0, 1e8),
    "in 1e-9": (1e-9, 0.0),
    "in 1e9": (1e9, 0.0),
}


@cache
def people(table: str, whole: bool) -> tuple[np.ndarray, np.ndarray]:
    """Three groups around corners; whole numbers stand on many boundaries exactly."""
    unit, offset = TABLES[table]
    rng = np.random.default_rng(5)
    y = np.arange(45) % 3
    X = 2.0 * np.eye(3)[y] + rng.normal(size=(45, 3))
    return (np.round(2 * X) / 2 if whole else X) * unit + offset, y


def asked(X: np.ndarray, unit: float) -> np.ndarray:
    """The people themselves, and others half-way between them."""
    return np.concatenate([X, (X[:20] + X[10:30]) / 2, X[:10] + 0.25 * unit])


def check(model: Any, explainer: Explainer, found: Explanations, X: np.ndarray, tiny: float) -> None:
    """Nothing on the way to an answer, or in another's place, is cheaper and confirmed; who is there already, stays."""
    here = model.predict(X) == found.target
    assert ((found.status == "already") == here).all()
    valid = np.flatnonzero(found.valid & ~here)
    if not len(valid):
        return
    assert (model.predict(found.counterfactual[valid]) == found.target[valid]).all()
    floor = (found.cost - found.gap)[valid]
    start, end = X[valid], np.asarray(found.counterfactual)[valid]
    for back in 10.0 ** -np.arange(1.0, 16.0):
        rival = start + (end - start) * (1.0 - back)
        confirmed = model.predict(rival) == found.target[valid]
        cost = explainer.cost(rival, start)
        # The cost of a rival is rounded, too: by the last bits of the numbers that it is made of.
        room = tiny * explainer.cost(np.abs(start) + np.abs(end), np.zeros(X.shape[1]))
        assert (cost[confirmed] >= floor[confirmed] - room[confirmed]).all(), f"a part of {back} before the answer"


@pytest.mark.parametrize(
    ("model", "table", "whole", "cost", "limits"), in_turn(7, MODELS, TABLES, [False, True], COSTS, LIMITS)
)
def test_nobody_is_cheaper(model: str, table: str, whole: bool, cost: str, limits: str) -> None:
    X, y = people(table, whole)
    fitted = MODELS[model]().fit(X, y)
    explainer = Closest(cost=COSTS[cost], actionable=LIMITS[limits]).fit(fitted)
    crowd = asked(X, TABLES[table][0])
    target = (fitted.predict(crowd) + np.arange(len(crowd)) % 3) % 3
    found = explainer.explain(crowd, target=target)
    check(fitted, explainer, found, crowd, tiny=1e-15)
    alone = explainer.explain(crowd, target=target, chunk_size=1)
    assert (alone.status == found.status).all()
    assert (np.asarray(alone.counterfactual) == np.asarray(found.counterfactual))[found.valid].all()
    if table == "plain" and limits == "free":
        assert set(found.status) <= {"optimal", "already"}


@pytest.mark.parametrize("weight", [1.0, 1e-10, 1e10])
@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), "passthrough"])
def test_trees_on_raw_tables(scaler: Any, offset: float, unit: float, weight: float) -> None:
    """Numbers beside levels: costs scale with units and weights, and nothing next to an answer is cheaper."""
    if scaler == "passthrough" and unit < 1e-7:
        pytest.skip("to a tree of scikit-learn such a column is constant")
    rng = np.random.default_rng(3)
    z = rng.normal(size=(120, 2)) + offset
    X = pd.DataFrame({"a": z[:, 0] * unit, "b": z[:, 1] * unit, "c": rng.choice(["p", "q"], 120)})
    y = z[:, 0] + (X["c"] == "p") > offset + z[:, 1] - offset
    columns = [("numbers", scaler, ["a", "b"]), ("level", OneHotEncoder(), ["c"])]
    model = make_pipeline(ColumnTransformer(columns), DecisionTreeClassifier(max_depth=5, random_state=0)).fit(X, y)
    cost = L1(weights=np.array([1.0 / unit, 1.0 / unit, 1.0]) * weight)
    explainer = Closest(cost=cost).fit(model, X)
    here = model.predict(X)
    found = explainer.explain(X, target=~here)
    assert (found.status == "optimal").all()
    assert (model.predict(found.counterfactual) != here).all()
    numbers = ["a", "b"]
    moved = (found.counterfactual["c"] == X["c"]).to_numpy()
    for back in 10.0 ** -np.arange(1.0, 16.0):
        rival = found.counterfactual.copy()
        rival[numbers] = X[numbers] + (found.counterfactual[numbers] - X[numbers]) * (1.0 - back)
        confirmed = moved & (model.predict(rival) != here)
        price = np.abs(rival[numbers] - X[numbers]).sum(axis=1).to_numpy() / unit * weight
        room = 1e-15 * np.abs(X[numbers]).sum(axis=1).to_numpy() / unit * weight
        assert (price[confirmed] >= (found.cost - found.gap - room)[confirmed]).all(), f"a part of {back} before"
