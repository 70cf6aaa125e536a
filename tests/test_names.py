"""Law: what has names is matched by them, or refused; nothing goes by position that could go by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand import L1, L2, Closest, Gaussian, HighDensity, Plausible, audit, instability
from evenhand.auditing import AuditError


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(150, 3)) * [1.0, 100.0, 1e4], columns=list("abc"))


def model() -> LogisticRegression:
    X = people()
    return LogisticRegression(C=1e3, max_iter=5000).fit(X, X["a"] > X["b"] / 100)


@pytest.mark.parametrize("cost", [L1.mad, L2.mahalanobis])
def test_costs_follow_the_names_of_their_table(cost: Any) -> None:
    X = people()
    straight = Closest(cost=cost(X)).fit(model()).explain(X, target=True)
    for turned in (X[["c", "a", "b"]], X[["b", "c", "a"]]):
        found = Closest(cost=cost(turned)).fit(model()).explain(X, target=True)
        np.testing.assert_allclose(found.cost, straight.cost, rtol=1e-9)
    with pytest.raises(ValueError, match="different names"):
        Closest(cost=cost(X.rename(columns={"a": "z"}))).fit(model())
    by_position = Closest(cost=cost(X.to_numpy())).fit(model()).explain(X, target=True)
    np.testing.assert_allclose(by_position.cost, straight.cost, rtol=1e-9)


@pytest.mark.parametrize("as_given", [lambda X: X, pl.from_pandas])
def test_tables_of_people_go_by_name(as_given: Any) -> None:
    X = people()
    straight = Closest().fit(model()).explain(X, target=True)
    turned = Closest().fit(model()).explain(as_given(X[["c", "b", "a"]]), target=True)
    assert (turned.status == straight.status).all()
    np.testing.assert_array_equal(np.asarray(turned.counterfactual)[:, ::-1], np.asarray(straight.counterfactual))
    with pytest.raises(ValueError, match="columns are not the model's"):
        Closest().fit(model()).explain(as_given(X.rename(columns={"a": "z"})), target=True)


def test_targets_go_by_the_index() -> None:
    X = people().set_axis([f"p{i}" for i in range(150)])
    wanted = pd.Series(np.arange(150) % 2 == 0, index=X.index)
    explainer = Closest().fit(model())
    straight, turned = explainer.explain(X, target=wanted), explainer.explain(X, target=wanted[::-1])
    assert (straight.target == turned.target).all()
    numbered = X.reset_index(drop=True)
    with pytest.raises(ValueError, match="in another order"):
        explainer.explain(numbered, target=wanted.reset_index(drop=True)[::-1])
    assert (explainer.explain(numbered, target=wanted).target == straight.target).all()  # other labels: by position


def test_labels_for_densities_go_by_the_index() -> None:
    X = people().set_axis([f"p{i}" for i in range(150)])
    y = pd.Series(model().predict(X), index=X.index)
    recipe = Plausible(density=HighDensity(components=[1]))
    straight, turned = (recipe.fit(model(), X, labels).explain(X[:20], target=True) for labels in (y, y[::-1]))
    np.testing.assert_array_equal(straight.cost, turned.cost)


def test_groups_go_by_the_index() -> None:
    X = people().set_axis([f"p{i}" for i in range(150)])
    found = instability(Closest().fit(model()), X, Gaussian(0.01), draws=3, random_state=0)
    group = pd.Series(np.where(X["c"] > 0, "high", "low"), index=X.index)
    pd.testing.assert_frame_equal(found.summary(by=group), found.summary(by=group[::-1]))


def test_what_stands_beside_an_audit_goes_by_the_index() -> None:
    X = people().set_axis([f"p{i}" for i in range(150)])
    sensitive = pd.DataFrame({"sex": np.where(X["c"] > 0, "f", "m")}, index=X.index)
    y = pd.Series(model().predict(X), index=X.index)
    common: dict[str, Any] = {"target": True, "people": 100, "draws": 2}
    straight = audit(model(), X, y, sensitive=sensitive, **common)
    turned = audit(model(), X, y[::-1], sensitive=sensitive[::-1], **common)
    assert straight.to_json() == turned.to_json()
    with pytest.raises(AuditError, match="in another order"):
        audit(model(), X.reset_index(drop=True), y.reset_index(drop=True)[::-1], sensitive=sensitive, **common)
