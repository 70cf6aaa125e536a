"""Law: everything that is fitted pickles, and answers afterwards as before, to the last bit."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from evenhand import Actionable, Closest, Explainer, Penalized, Plausible, Steady
from evenhand.models import GMLVQ
from rotation import in_turn
from test_gap_is_a_proof import MODELS, people
from threads import one_thread  # noqa: F401

METHODS: dict[str, Any] = {
    "closest": Closest(),
    "limited": Closest(actionable=Actionable(increase=[0]), margin=0.01),
    "plausible": Plausible(cost="l2"),
    "steady": Steady(cost="l2"),
    "penalized": Penalized(),
}


def check(explainer: Explainer, X: Any) -> None:
    """Before it has answered for the first time, and after."""
    early = pickle.loads(pickle.dumps(explainer))
    found = explainer.explain(X)
    for other in (early, pickle.loads(pickle.dumps(explainer)), copy.deepcopy(explainer)):
        again = other.explain(X)
        assert np.array_equal(again.cost, found.cost, equal_nan=True)
        assert (again.status == found.status).all()
        assert pd.DataFrame(again.counterfactual).equals(pd.DataFrame(found.counterfactual))
    kept = pickle.loads(pickle.dumps(found))
    assert kept.to_frame().equals(found.to_frame())


@pytest.mark.parametrize(("model", "method"), in_turn(7, [*MODELS, "metric", "machine"], METHODS))
def test_tables_of_numbers(model: str, method: str) -> None:
    X, y = people("plain", False)
    kinds = MODELS | {"metric": lambda: GMLVQ(random_state=0), "machine": lambda: SVC()}
    if model == "machine" and method != "penalized":
        pytest.skip("it has no regions")
    check(METHODS[method].fit(kinds[model]().fit(X, y), X, y), X[: 2 if method == "penalized" else 8])


@pytest.mark.parametrize("method", ["closest", "plausible", "penalized"])
@pytest.mark.parametrize("model", [LogisticRegression(), DecisionTreeClassifier(max_depth=3, random_state=0)])
@pytest.mark.parametrize("binned", [True, False])
def test_raw_tables(model: Any, method: str, binned: bool) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"z": rng.normal(size=90), "k": rng.integers(0, 9, 90), "c": rng.choice(["a", "b"], 90)})
    y = (X["z"] + X["k"] / 4 + (X["c"] == "a") > 1.5).to_numpy()
    number = KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf") if binned else StandardScaler()
    columns = [("z", number, ["z"]), ("k", "passthrough", ["k"]), ("c", OneHotEncoder(), ["c"])]
    fitted = make_pipeline(ColumnTransformer(columns, sparse_threshold=0), model).fit(X, y)
    recipe = Plausible() if method == "plausible" else METHODS[method]  # with levels the cost is a sum
    check(recipe.fit(fitted, X, y), X[:8])


def test_a_forest_behind_an_encoder() -> None:
    X = pd.DataFrame({"k": np.arange(60), "c": ["a", "b", "c"] * 20})
    columns = [("k", "passthrough", ["k"]), ("c", OneHotEncoder(), ["c"])]
    model = make_pipeline(ColumnTransformer(columns), RandomForestClassifier(5, random_state=0))
    check(Penalized().fit(model.fit(X, X["k"] > 30), X), X[:4])
