"""Stable by construction: the factor 1 holds in every draw, and its price is told."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand import GLVQ, L1, L2, Actionable, Closest, Gaussian, HighDensity, Relative, Steady, instability
from evenhand.methods import base, steady
from evenhand.models import view_of
from evenhand.projection import project
from evenhand.sets import Region

DATA = {"wine": (load_wine, 6), "breast cancer": (load_breast_cancer, 5), "digits": (load_digits, 20)}
MODELS = {
    "softmax": lambda: LogisticRegression(max_iter=500),
    "tree": lambda: DecisionTreeClassifier(max_depth=7, random_state=0),
    "glvq": lambda: GLVQ(prototypes_per_class=3, random_state=0),
}


def fitted(data: str, kind: str, pca: bool = False):
    load, k = DATA[data]
    X, y = load(return_X_y=True)
    steps = [StandardScaler(), *([PCA(k, random_state=0)] if pca else []), MODELS[kind]()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make_pipeline(*steps).fit(X, y), X, y


@pytest.mark.slow
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("data", DATA)
def test_nobody_moves_further_than_they_do(data, kind, dense) -> None:
    """At least 100,000 draws per data set, small and large, with the target kept, in the norm of the cost."""
    model, X, y = fitted(data, kind, pca=data != "wine")
    spread = X.std(axis=0)
    cost = L2(weights=1 / np.where(spread > 0, spread, 1.0) ** 2)
    explainer = Steady(HighDensity(components=[2]) if dense else None, cost=cost).fit(model, X, y)
    people = X[:: max(1, len(X) // 100)]
    worst = 0.0
    for variance in (1e-4, 0.04, 1.0):
        found = instability(
            explainer,
            people,
            Relative(Gaussian(variance)),
            target="random",
            draws=max(1, 18_000 // len(people) // 3) + 1,
            distance=cost,
            on_flip="keep",
            random_state=0,
            reference=X,
        ).table
        assert found["status"].isin(["optimal", "already"]).all()
        worst = max(worst, found["amplification"].max())
    assert 0.3 < worst <= 1 + 1e-9


@pytest.mark.parametrize("kind", MODELS)
def test_the_chosen_piece_is_the_cheapest_for_people(kind) -> None:
    """Against brute force over all pieces, and the price against the closest counterfactual."""
    model, X, _ = fitted("wine", kind)
    explainer = Steady().fit(model, X)
    closest = Closest("l2").fit(model)
    for label in explainer.view.classes:
        others = X[model.predict(X) != label]
        pieces = explainer.view.region(label).pieces
        costs = np.array([project(others, Region([piece]), "l2").cost for piece in pieces])
        costs = np.where(np.isnan(costs), np.inf, costs)
        assert explainer.price.loc[label, "chosen"] == np.argmin(costs.mean(axis=1))
        told = explainer.explain(others, target=label)
        assert told.valid.all()
        assert_allclose(
            told.cost,
            costs.min(axis=0) if len(pieces) == 1 else costs[np.argmin(costs.mean(axis=1))],
            rtol=1e-5,
            atol=1e-5,
        )
        ratio = told.cost / closest.explain(others, target=label).cost
        row = explainer.price.loc[label]
        assert_allclose(row[["median", "p90", "max"]].astype(float), np.quantile(ratio, [0.5, 0.9, 1.0]), rtol=1e-4)
        assert_allclose(explainer.price_of(others, label), ratio, rtol=1e-6)
        assert (ratio >= 1 - 1e-6).all()
        assert row["pieces"] == len(pieces)


def test_the_price_is_moderate() -> None:
    """In standardised units the median stays near 1, and a region of one piece has no price at all."""
    for data in DATA:
        for kind in MODELS:
            model, X, _ = fitted(data, kind)
            spread = X.std(axis=0)
            price = Steady(cost=L2(1 / np.where(spread > 0, spread, 1.0) ** 2)).fit(model, X).price
            assert price["median"].between(1 - 1e-6, 1.6).all(), (data, kind, price)
            if kind == "softmax":
                assert_allclose(price["max"], 1.0, rtol=1e-5)


def test_a_person_with_the_target_is_projected_too() -> None:
    """Otherwise the explanation would jump where a person crosses the boundary of another piece."""
    X = np.array([[-2.0], [-1.5], [-0.5], [0.5], [1.5], [2.0], [2.5]])
    model = DecisionTreeClassifier(random_state=0).fit(X, [1, 1, 0, 0, 1, 1, 1])
    explainer = Steady().fit(model, X)
    told = explainer.explain([[-3.0], [-1.01], [-0.99], [-0.01], [0.01], [0.99], [1.01], [3.0]], target=1)
    assert told.valid.all()
    assert (np.abs(np.diff(told.counterfactual[:, 0])) <= np.diff(told.factual[:, 0]) + 1e-9).all()
    assert (told.cost > 1e-6).sum() >= 2  # somebody who has the target is told to move, all the same
    stays = Closest("l2").fit(model).explain(told.factual, target=1)
    assert (np.abs(np.diff(stays.counterfactual[:, 0])) > np.diff(told.factual[:, 0]) + 1).any()


def test_immutable_columns_and_bounds() -> None:
    model, X, _ = fitted("wine", "glvq")
    explainer = Steady(actionable=Actionable(immutable=[0], bounds={4: (70, 160)})).fit(model, X)
    told = explainer.explain(X[::7], target=1)
    assert (told.counterfactual[told.valid, 0] == X[::7][told.valid, 0]).all()
    assert told.counterfactual[told.valid, 4].max() <= 160
    assert (explainer.price["reached"] > 0).all()


def test_bad_input() -> None:
    model, X, _ = fitted("wine", "tree")
    with pytest.raises(ValueError, match="l2 cost"):
        Steady(cost=L1()).fit(model, X)
    with pytest.raises(ValueError, match="training data"):
        Steady().fit(model)
    with pytest.raises(ValueError, match="only increase"):
        Steady(actionable=Actionable(increase=[0])).fit(model, X)
    with pytest.raises(ValueError, match="Nobody can reach"):
        Steady(actionable=Actionable(immutable=list(range(13)))).fit(model, X)
    with pytest.raises(ValueError, match="without missing values"):
        Steady().fit(model, np.full((2, 13), np.nan))


def test_a_label_that_is_never_predicted_does_not_stop_the_others() -> None:
    X, y = load_wine(return_X_y=True)
    stump = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    explainer = Steady().fit(stump, X)
    never = [label for label in range(3) if label not in stump.predict(X)]
    assert len(never) == 1
    assert explainer.explain(X[:3], target=never[0]).status.tolist() == ["unreachable"] * 3
    assert explainer.explain(X[:3], target=(never[0] + 1) % 3).valid.all()
    assert explainer.price.loc[never[0]].isna().sum() == 3


def test_the_model_is_viewed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To see a pipeline with encoders takes a prediction per level and number."""
    seen = []
    for module in (base, steady):
        monkeypatch.setattr(module, "view_of", lambda *given: seen.append(given) or view_of(*given))
    X, y = load_wine(return_X_y=True)
    Steady().fit(DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y), X)
    assert len(seen) == 1
