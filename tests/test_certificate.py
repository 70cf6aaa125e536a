"""Certificates hold against search, brute force and the theory, and are not vacuous."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand import (
    GLVQ,
    L1,
    L2,
    Actionable,
    Closest,
    Gaussian,
    HighDensity,
    IfChanges,
    Penalized,
    Plausible,
    Steady,
    certify,
    instability,
    worst_case,
)
from evenhand.projection import project
from evenhand.sets import Region

DATA = {"wine": (load_wine, 6), "breast cancer": (load_breast_cancer, 5), "digits": (load_digits, 20)}
MODELS = {
    "softmax": lambda: LogisticRegression(max_iter=500),
    "tree": lambda: DecisionTreeClassifier(max_depth=7, random_state=0),
    "glvq": lambda: GLVQ(prototypes_per_class=3, random_state=0),
}


@functools.cache
def fitted(data: str, kind: str, pca: bool):
    load, k = DATA[data]
    X, y = load(return_X_y=True)
    steps = [StandardScaler(), *([PCA(k, random_state=0)] if pca else []), MODELS[kind]()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make_pipeline(*steps).fit(X, y), X, y


@functools.cache
def explained(data: str, kind: str, pca: bool, method: str):
    """An explainer whose cost is in standard deviations."""
    model, X, y = fitted(data, kind, pca)
    spread = X.std(axis=0)
    cost = L2(weights=1 / np.where(spread > 0, spread, 1.0) ** 2)
    if method == "closest":
        return Closest(cost).fit(model), X
    if method == "steady":
        return Steady(cost=cost).fit(model, X), X
    return Plausible(HighDensity(components=[2]), cost).fit(model, X, y), X


# Every model on the smallest data, and with the others what more columns and labels do.
CASES = [
    pytest.param(data, kind, pca, marks=[pytest.mark.slow] if data != "wine" else [])
    for data in DATA
    for kind in MODELS
    for pca in (False, True)
]


@pytest.mark.parametrize("method", ["closest", "plausible"])
@pytest.mark.parametrize(("data", "kind", "pca"), CASES)
def test_no_search_beats_a_certificate(data, kind, pca, method) -> None:
    """Law 8: 36 cases x 56 people x 8 radii, 16,128 pairs, of which more than 10,000 have a finite bound."""
    explainer, X = explained(data, kind, pca, method)
    people = X[:: max(1, len(X) // 56)][:56]
    proven = certify(explainer, people)
    assert np.isfinite(proven.cost).all()
    reached = 0
    for i, radius in enumerate((0.01, 0.03, 0.06, 0.1, 0.2, 0.4, 0.8, 1.5)):
        found = worst_case(explainer, people, radius, restarts=4, rounds=4, random_state=i).table
        bound = found["bound"].to_numpy()
        distance = found["distance"].to_numpy()
        assert_allclose(bound, proven.bound(radius))
        size = explainer.cost(people, np.zeros(people.shape[1]))
        assert (distance <= bound + 1e-9 * size + 1e-7 * radius).all()
        # Past the label's radius nothing is promised, and only there a prediction may change.
        assert np.isinf(bound[found["flipped"]]).all()
        assert (np.isinf(bound) == (radius >= proven.label_radius)).all()
        reached += int(np.isfinite(bound).sum())
        if radius not in (0.1, 0.8):
            continue
        kept = worst_case(explainer, people, radius, on_flip="keep", restarts=3, rounds=2, random_state=i).table
        limit = proven.bound(radius, on_flip="keep")
        assert (kept["distance"] <= limit + 1e-9 * size + 1e-7 * radius).all()
    assert reached >= 100


@pytest.mark.parametrize(("data", "kind", "pca"), CASES)
def test_certificates_are_not_vacuous(data, kind, pca) -> None:
    """Within the stability radius at least half of the people have a worst case of 90 % of the bound."""
    explainer, X = explained(data, kind, pca, "closest")
    people = X[:: max(1, len(X) // 60)][:60]
    proven = certify(explainer, people)
    radius = 0.5 * np.minimum(proven.stability_radius, proven.label_radius)
    able = radius > 1e-9
    assert able.mean() > 0.9
    found = worst_case(explainer, people[able], radius[able], random_state=0).table
    assert_allclose(found["bound"], radius[able], rtol=1e-6)
    assert (found["reached"] >= 0.9).mean() >= 0.9


@pytest.mark.parametrize("kind", MODELS)
def test_a_rival_piece_is_what_ends_the_radius(kind) -> None:
    """The radius against brute force over pieces, each projected onto by itself."""
    explainer, X = explained("wine", kind, False, "closest")
    people = X[::9]
    proven = certify(explainer, people, target=1)
    region = explainer.view.region(1)
    costs, points = [], []
    for piece in region.pieces:
        found = project(people, Region([piece]), explainer.cost)
        costs.append(found.cost)
        points.append(found.points)
    costs, points = np.array(costs), np.array(points)
    for q in range(len(people)):
        if proven.status[q] != "optimal":
            continue
        order = np.argsort(costs[:, q])
        best = order[0]
        others = [k for k in order[1:] if explainer.cost(points[k, q], points[best, q])[0] > 1e-6]
        lead = min((costs[k, q] for k in others), default=np.inf) - costs[best, q]
        assert proven.stability_radius[q] == pytest.approx(lead / 2, rel=1e-6, abs=1e-8)
        for eps in (0.01, 0.3, 1.0, 5.0):
            near = [k for k in order if costs[k, q] <= costs[best, q] + 2 * eps]
            jump = max(explainer.cost(points[k, q], points[best, q])[0] for k in near)
            expected = min(eps + jump, 2 * eps + 2 * costs[best, q])
            assert proven.bound(eps, "skip")[q] == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_label_radius_is_the_closest_counterfactual_of_all_labels() -> None:
    for kind in MODELS:
        explainer, X = explained("wine", kind, False, "plausible")
        closest, _ = explained("wine", kind, False, "closest")
        people = X[::11]
        proven = certify(explainer, people, target="random", random_state=0)
        assert_allclose(proven.label_radius, closest.explain(people).cost, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("cost", ["l1", "mad"])
def test_l1_certifies_the_piece_and_says_so(cost) -> None:
    model, X, _ = fitted("wine", "tree", False)
    norm = L1() if cost == "l1" else L1.mad(X)
    explainer = Closest(norm).fit(model)
    people = X[::5]
    proven = certify(explainer, people)
    assert "piece" in proven.statement
    assert "no factor 1" in proven.statement
    region = {label: explainer.view.region(label) for label in explainer.view.classes}
    rng = np.random.default_rng(0)
    for eps in (0.01, 0.1, 1.0, 10.0):
        assert_allclose(proven.bound(eps, "skip"), 2 * eps + 2 * proven.cost)
        found = worst_case(explainer, people, eps, random_state=0).table
        assert (found["distance"] <= found["bound"] * (1 + 1e-9)).all()
        for q in np.flatnonzero(np.minimum(proven.stability_radius, proven.label_radius) > eps):
            direction = rng.normal(size=(20, X.shape[1]))
            moved = people[q] + eps * direction / norm(direction, np.zeros(X.shape[1]))[:, None]
            there = project(np.vstack([people[q], moved]), region[proven.target[q]], norm)
            assert (there.piece == there.piece[0]).all()


def test_every_model_and_method_can_be_certified() -> None:
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    models = [*(make() for make in MODELS.values()), NearestCentroid(), KNeighborsClassifier(1)]
    for model in models:
        model.fit(X, y)
        for method in (Closest("l2"), Plausible(HighDensity(components=[1]), "l2"), Steady(), Closest("l1")):
            proven = certify(method.fit(model, X, y), X[::20])
            assert (proven.stability_radius >= 0).all()
            assert (proven.label_radius >= 0).all()
            assert (proven.bound(0.05)[proven.label_radius > 0.05] >= 0.05 * (1 - 1e-12)).all()


def test_steady_is_certified_at_any_distance() -> None:
    explainer, X = explained("wine", "tree", False, "steady")
    proven = certify(explainer, X[::10])
    assert np.isinf(proven.stability_radius).all()
    assert_allclose(proven.bound(7.0, on_flip="keep"), 7.0, rtol=1e-6)


def test_immutable_columns() -> None:
    """The certificate is for perturbations of the other columns, and so is the search."""
    model, X, _ = fitted("wine", "glvq", False)
    explainer = Closest("l2", actionable=Actionable(immutable=[0, 5, 12])).fit(model)
    people = X[::9]
    proven = certify(explainer, people)
    assert "immutable" in proven.statement
    for radius in (0.1, 0.5, 3.0):
        found = worst_case(explainer, people, radius, random_state=1)
        rows = (found.table["status"] == "optimal").to_numpy()
        assert (found.perturbed[:, [0, 5, 12]] == people[:, [0, 5, 12]]).all()
        assert (found.table["distance"][rows] <= found.table["bound"][rows] + 1e-7 * radius).all()


def test_people_who_need_no_change_and_people_who_have_no_explanation() -> None:
    model, X, _ = fitted("wine", "softmax", False)
    people = X[:4].copy()
    people[2, 3] = np.nan
    frame = pd.DataFrame(people, index=list("abcd"))
    for method in (Closest("l2"), Plausible(HighDensity(components=[1]), "l2")):
        explainer = method.fit(model, X)
        proven = certify(explainer, frame, target=model.predict(X[:1])[0])
        assert list(proven.person) == list("abcd")
        assert proven.status[2] == "invalid"
        assert np.isnan(proven.bound(0.1)[2])
        assert np.isnan(proven.stability_radius[2])
        assert proven.status[0] == "already"
        small = 0.5 * proven.label_radius[0]
        assert proven.bound(small)[0] == pytest.approx(small)
        assert proven.share(0.0) == 0.75
        assert list(proven.to_frame().index) == list("abcd")
        assert "<table" in proven._repr_html_()


def test_what_can_be_certified_is_known_before_anything_is_compiled() -> None:
    model, X, y = fitted("wine", "softmax", False)
    for method in (Closest("l2"), Plausible(HighDensity(components=[1])), Steady()):
        explainer = method.fit(model, X, y)
        assert explainer.exact is explainer
        assert explainer.certifiable
        assert not explainer._projectors
    stepped = Closest("l1", actionable=Actionable(rules=[IfChanges(0, 1)])).fit(model)
    assert not stepped.certifiable
    assert not stepped._projectors
    searching = Penalized(restarts=0).fit(model, X)
    assert searching.exact is None
    assert not searching.certifiable


def test_what_cannot_be_certified_says_why() -> None:
    model, X, _ = fitted("wine", "softmax", False)
    with pytest.raises(ValueError, match="only increase"):
        certify(Closest("l2", actionable=Actionable(increase=[0])).fit(model), X[:2])
    forest = Penalized(restarts=0).fit(model, X)
    with pytest.raises(TypeError, match="Closest, Plausible, Steady"):
        certify(forest, X[:2])
    proven = certify(Closest("l2").fit(model), X[:2])
    for eps in (-1.0, np.nan, [0.1, 0.1, 0.1]):
        with pytest.raises(ValueError, match="eps"):
            proven.bound(eps)
    with pytest.raises(ValueError, match="on_flip"):
        proven.bound(0.1, on_flip="never")


def test_worst_case_finds_a_jump_that_is_known() -> None:
    """Two boxes on either side: a person just left of the middle is led to the left one, until it is pushed over."""
    X = np.array([[-2.0], [-1.5], [-0.5], [0.5], [1.5], [2.0]])
    model = DecisionTreeClassifier(random_state=0).fit(X, [1, 1, 0, 0, 1, 1])
    explainer = Closest("l2").fit(model)
    for at in (-0.05, 0.05):
        person = np.array([[at]])
        proven = certify(explainer, person)
        assert proven.stability_radius[0] == pytest.approx(0.05)
        # Just below the radius rounding may call it a tie; the bound knows.
        for eps in (0.05 * (1 - 1e-9), 0.05 * (1 - 1e-10), proven.stability_radius[0] * (1 - 1e-15)):
            moved = explainer.explain(person - np.sign(at) * eps).counterfactual
            assert abs(moved - explainer.explain(person).counterfactual).item() <= proven.bound(eps)[0] + 1e-12
        small = worst_case(explainer, person, 0.04).table
        large = worst_case(explainer, person, 0.06).table
        assert small["distance"].item() == pytest.approx(0.0, abs=1e-9)
        assert large["distance"].item() == pytest.approx(2.0)
    assert large["bound"].item() == pytest.approx(2 * 0.06 + 2 * 0.95)  # less than 0.06 + 2


@pytest.mark.slow
def test_worst_case_of_any_method() -> None:
    """A method that proves nothing has no bound, and two runs agree whatever the order."""
    model, X, _ = fitted("wine", "softmax", True)
    explainer = Penalized(cost="l2", restarts=1, strength=0.1).fit(model, X)
    found = worst_case(explainer, X[:2], 0.5, restarts=2, rounds=1).table
    assert found["bound"].isna().all()
    assert (found["distance"] > 0).all()
    exact = Closest("l2").fit(model)
    frame = pd.DataFrame(X[:6], index=list("abcdef"))
    one = worst_case(exact, frame, 0.5, random_state=4).table.set_index("person")
    other = worst_case(exact, frame[::-1], 0.5, random_state=4).table.set_index("person").loc[one.index]
    assert_allclose(one["distance"], other["distance"], rtol=1e-9)


@pytest.mark.parametrize("options", [{"radius": -0.1}, {"radius": [1.0, 2.0]}, {"restarts": 0}, {"on_flip": "x"}])
def test_bad_searches(options) -> None:
    model, X, _ = fitted("wine", "softmax", False)
    with pytest.raises(ValueError, match=r"radius|restarts|on_flip"):
        worst_case(Closest("l2").fit(model), X[:3], **{"radius": 0.1} | options)


def test_nobody_to_certify() -> None:
    model, X, _ = fitted("wine", "softmax", False)
    assert len(certify(Closest("l2").fit(model), X[:0])) == 0
    assert len(worst_case(Closest("l2").fit(model), X[:0], 0.1).table) == 0


def test_a_search_that_may_not_flip() -> None:
    """Near the boundary steps of full size would flip: smaller ones are tried, and nobody is said not to move."""
    model, X, _ = fitted("wine", "tree", False)
    explainer = Closest("l2").fit(model)
    found = worst_case(explainer, X, 30.0, on_flip="skip", restarts=6, rounds=3).table
    assert not found["flipped"].any()
    assert ((found["distance"] > 0) | found["distance"].isna()).mean() > 0.95


def test_a_search_looks_inside_the_ball_too() -> None:
    """One feature; the target's piece is at 1, another one at -1.2; only the middle of the ball leads there."""
    X = np.array([[-3.0], [-2.0], [-1.0], [0.0], [1.0], [2.0], [3.0]])
    model = DecisionTreeClassifier(random_state=0).fit(X, [0, 1, 0, 0, 0, 1, 0])
    explainer = Closest("l2").fit(model)
    person = np.array([[0.6]])
    inside = [explainer.explain([[0.6 - step]], target=1).counterfactual.item() for step in np.linspace(0, 5.0, 400)]
    farthest = np.abs(np.array(inside) - explainer.explain(person, target=1).counterfactual.item()).max()
    found = worst_case(explainer, person, 5.0, target=1, on_flip="keep", restarts=60, rounds=10).table
    assert found["distance"].item() >= 0.8 * farthest


def test_the_same_random_target_everywhere() -> None:
    model, X, _ = fitted("wine", "tree", False)
    explainer = Closest("l2").fit(model)
    frame = pd.DataFrame(X, index=[f"p{i}" for i in range(len(X))])
    told = explainer.explain(frame, "random", random_state=3).target
    assert (certify(explainer, frame, "random", random_state=3).target == told).all()
    assert (
        worst_case(explainer, frame, 0.1, target="random", random_state=3, restarts=1, rounds=0).table["target"] == told
    ).all()
    measured = instability(explainer, frame[::-1], Gaussian(0.0), target="random", random_state=3, on_flip="keep")
    assert (measured.people["target"].to_numpy()[::-1] == told).all()
    assert len(set(told)) == 3
