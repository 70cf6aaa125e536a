"""Law: what is proven about people who are perturbed is true of the answers that they get, wherever they stand.

`certify` speaks of answers as they are returned: with what is kept from boundaries for rounding, and with what a second
attempt adds where the model's own `predict` denies the first.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from evenhand import L1, L2, Actionable, Closest, HighDensity, Plausible, Steady, certify
from raw_laws import FEW, MODELS, quietly
from rotation import in_turn
from threads import one_thread  # noqa: F401

OFFSETS = [0.0, 1e3, 1e6, 1e8]
STEPS: dict[str, Any] = {
    "none": list,
    "standard": lambda: [StandardScaler()],
    "min-max": lambda: [MinMaxScaler()],
    "pca": lambda: [StandardScaler(), PCA(2)],
}
COSTS: dict[str, Any] = {
    "l2": L2(),
    "l2 weights": L2(weights=np.array([4.0, 1.0, 0.25])),
    "l2 matrix": L2(matrix=np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])),
    "l1": L1(),
}
METHODS: dict[str, Any] = {
    "closest": Closest,
    "limited": lambda cost: Closest(cost, actionable=Actionable(immutable=[2])),
    "margin": lambda cost: Closest(cost, 0.1),
    "plausible": lambda cost: Plausible(HighDensity(components=[1]), cost),
    "steady": lambda cost: Steady(cost=cost),
}
# Every method at every offset; steps and costs take turns, so that each meets every offset and method.
CASES = [
    (list(STEPS)[(i + j) % 4], offset, list(COSTS)[(2 * i + j) % (3 if method == "steady" else 4)], method)
    for i, offset in enumerate(OFFSETS)
    for j, method in enumerate(METHODS)
]
SIZES = (1e-6, 1e-4, 1e-2, 0.1, 0.5)


@cache
def data(offset: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    return 2.0 * np.eye(3)[y] + rng.normal(size=(60, 3)) + offset, y


def explained(kind: str, steps: str, offset: float, cost: str, method: str) -> tuple[Any, np.ndarray]:
    X, y = data(offset)
    few = {"plausible": 9}.get(method, FEW) if kind == "1nn" else len(X)
    model = quietly(make_pipeline(*STEPS[steps](), MODELS[kind]()), X[:few], y[:few])
    return METHODS[method](COSTS[cost]).fit(model, X, y), X


@pytest.mark.parametrize(("kind", "case"), in_turn(19, MODELS, CASES))
def test_nobody_moves_further_than_the_bound(kind: str, case: tuple[str, float, str, str]) -> None:
    steps, offset, cost, method = case
    explainer, X = explained(kind, steps, offset, cost, method)
    people = X[::5]
    target = (explainer.view.predict(people) + 1) % 3
    proven, told = certify(explainer, people, target), explainer.explain(people, target)
    rng = np.random.default_rng(1)
    # What rounding does to numbers of this size, on the way there and back.
    digits = 64 * np.finfo(float).eps * COSTS[cost](np.abs(people), np.zeros(3))
    checked = 0
    for eps in SIZES:
        bound = proven.bound(eps, on_flip="keep")
        for _ in range(4):
            step = rng.normal(size=people.shape)
            step[:, 2] *= method != "limited"  # statements are for perturbations that leave what is immutable alone
            moved = people + 0.999 * eps * step / COSTS[cost](step, np.zeros(3))[:, None]
            size = COSTS[cost](moved, people)  # at these offsets a step is rounded
            known = np.isfinite(bound) & told.valid & (size <= eps)
            again = explainer.explain(moved, target)
            assert again.valid[known].all(), again.status[known & ~again.valid]
            away = COSTS[cost](np.asarray(again.counterfactual), np.asarray(told.counterfactual))
            worst = np.max((away - bound - digits)[known], initial=-1.0)
            assert worst <= 1e-9 * eps, f"eps {eps}: {worst} further than the bound of {bound[known].min()}"
            checked += int(known.sum())
    assert checked or not told.valid.any() or (proven.label_radius <= SIZES[0]).any()


@pytest.mark.parametrize(("kind", "steps", "offset"), in_turn(29, MODELS, STEPS, OFFSETS))
def test_within_the_radius_answers_move_as_people_do(kind: str, steps: str, offset: float) -> None:
    """The statement itself, just inside of the radii."""
    explainer, X = explained(kind, steps, offset, "l2", "closest")
    people = X[::4]
    target = (explainer.view.predict(people) + 1) % 3
    proven, told = certify(explainer, people, target), explainer.explain(people, target)
    radius = 0.99 * np.minimum(proven.stability_radius, proven.label_radius)
    able = np.isfinite(radius) & (radius > 1e-9 * (1.0 + offset)) & told.valid
    step = np.random.default_rng(2).normal(size=people.shape)
    radius = np.where(able, radius, 0.0)
    moved = people + (radius / np.linalg.norm(step, axis=1))[:, None] * step
    again = explainer.explain(moved, target)
    assert again.valid[able].all()
    away = COSTS["l2"](np.asarray(again.counterfactual), np.asarray(told.counterfactual))[able]
    size = COSTS["l2"](moved, people)[able]
    # The promise is about exact points; returned ones keep what rounding needs.
    room = 1e-12 * (1.0 + offset) + 1e-6 * size
    assert (away <= size + room).all(), (away - size).max()


@pytest.mark.parametrize(("kind", "steps", "offset"), in_turn(23, MODELS, STEPS, OFFSETS))
def test_nobody_has_another_label_within_the_label_radius(kind: str, steps: str, offset: float) -> None:
    explainer, X = explained(kind, steps, offset, "l2", "closest")
    people = X[::4]
    proven, now = certify(explainer, people), explainer.view.predict(people)
    rng = np.random.default_rng(3)
    assert (proven.label_radius > 0).any() or len(np.unique(now)) == 1 or "nothing is proven" in proven.statement
    for part in (0.5, 0.99, 0.999999):
        for _ in range(5):
            step = rng.normal(size=people.shape)
            reach = part * proven.label_radius - 4 * np.spacing(1.0 + offset)
            reach = np.where(np.isfinite(reach), np.maximum(reach, 0.0), 0.0)
            moved = people + (reach / np.linalg.norm(step, axis=1))[:, None] * step
            inside = COSTS["l2"](moved, people) < part * proven.label_radius
            assert (explainer.view.predict(moved) == now)[inside].all()
    # Towards the nearest other label, where it is.
    nearest = explainer.explain(people)
    back = np.asarray(nearest.counterfactual) - people
    length = np.linalg.norm(back, axis=1)
    reach = 0.999999 * proven.label_radius - 4 * np.spacing(1.0 + offset)
    moved = (
        people + back * np.where(length > 0, np.maximum(reach, 0.0) / np.where(length > 0, length, 1.0), 0.0)[:, None]
    )
    inside = (COSTS["l2"](moved, people) < proven.label_radius) & nearest.valid
    assert (explainer.view.predict(moved) == now)[inside].all()


SPREADS = {"even": [1.0, 1.0, 1.0, 1.0], "apart": [1e-2, 1e3, 1e2, 1e2], "far apart": [1e-4, 1e4, 1e-4, 1.0]}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("kind", "spread", "offset"), in_turn(31, ["logistic", "tree", "glvq"], SPREADS, OFFSETS))
def test_densities_that_are_needles_keep_to_the_bound(kind: str, spread: str, offset: float, seed: int) -> None:
    """Columns of very different spread, far from zero: what no kernel resolves is told as exactly as all the rest."""
    rng = np.random.default_rng(seed)
    unit, y = np.array(SPREADS[spread]), np.arange(46) % 2
    X = unit * (rng.normal(size=(46, 4)) @ rng.normal(size=(4, 4)) + y[:, None] + offset)
    model = quietly(make_pipeline(StandardScaler(), MODELS[kind]()), X, y)
    explainer = Plausible(HighDensity(components=[1]), "l2").fit(model, X, y)
    people, cost = X[:3], explainer.cost
    target = 1 - explainer.view.predict(people)
    told, proven = explainer.explain(people, target), certify(explainer, people, target)
    digits = 1e-12 * cost(np.abs(people), np.zeros(4))
    for part in (1e-6, 1e-4, 1e-2):
        eps = part * np.where(told.valid, told.cost, 1.0)
        step = rng.normal(size=people.shape) * unit
        moved = people + step * (eps / cost(step, np.zeros(4)))[:, None]
        size = cost(moved, people)
        again = explainer.explain(moved, target)
        bound = proven.bound(size, on_flip="keep")
        away = cost(np.asarray(again.counterfactual), np.asarray(told.counterfactual))
        known = np.isin(again.status, ["optimal", "already"]) & np.isin(told.status, ["optimal", "already"])
        assert (away <= bound * (1.0 + 1e-9) + digits)[known].all(), (away - bound)[known].max()
