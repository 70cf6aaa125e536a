"""What a person can change is honoured exactly, by both methods, inside the optimisation."""

from __future__ import annotations

import dataclasses
import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand import GLVQ, L1, L2, Actionable, Closest, Explainer, HighDensity, Plausible, Status
from evenhand.models import view
from evenhand.table.schema import Schema
from oracle import UndecidedError, nearest_of

NAMES = ["sepal length", "sepal width", "petal length", "petal width"]
DENSITY = HighDensity(quantile=0.0, components=[1])  # a wide region, so that constrained people still reach it
METHODS = ["closest", "plausible"]
COSTS = {"l1": L1(), "l2": L2(), "mad": L1.mad(load_iris().data), "mahalanobis": L2.mahalanobis(load_iris().data)}


@cache
def iris() -> tuple[pd.DataFrame, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    return pd.DataFrame(X, columns=NAMES), y


@cache
def model(kind: str = "logistic") -> Any:
    made = {
        "logistic": lambda: LogisticRegression(max_iter=2000),
        "pipeline": lambda: make_pipeline(StandardScaler(), PCA(3), LogisticRegression()),
        "tree": lambda: DecisionTreeClassifier(random_state=0),
        "tree behind pca": lambda: make_pipeline(PCA(3), DecisionTreeClassifier(random_state=0)),
        "glvq": lambda: GLVQ(prototypes_per_class=2, max_iter=30, random_state=0),
    }[kind]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return made.fit(*iris())


KINDS = ["logistic", "pipeline", "tree", "tree behind pca", "glvq"]


@cache
def latent_density(kind: str) -> Any:
    X, y = iris()
    seen = view(model(kind))
    return DENSITY.fit(seen.encode(X.to_numpy()), y, seen.classes)


def fit(method: str, kind: str, actionable: Actionable | None, cost: Any = "l1", margin: float = 0.0) -> Explainer:
    recipe = Closest(cost, margin, actionable) if method == "closest" else Plausible(DENSITY, cost, margin, actionable)
    return recipe.fit(model(kind), *iris())


def people(n: int = 12) -> np.ndarray:
    X, _ = iris()
    return X.to_numpy()[np.linspace(0, len(X) - 1, n).astype(int)]


def honours(actionable: Actionable, factual: np.ndarray, counterfactual: np.ndarray) -> bool:
    """Exactly: no tolerance anywhere."""

    def at(column: Any) -> int:
        return NAMES.index(column) if isinstance(column, str) else column

    same = all((counterfactual[:, at(c)] == factual[:, at(c)]).all() for c in actionable.immutable)
    more = all((counterfactual[:, at(c)] >= factual[:, at(c)]).all() for c in actionable.increase)
    less = all((counterfactual[:, at(c)] <= factual[:, at(c)]).all() for c in actionable.decrease)
    within = all(
        (counterfactual[:, at(c)] >= (-np.inf if low is None else low)).all()
        and (counterfactual[:, at(c)] <= (np.inf if high is None else high)).all()
        for c, (low, high) in actionable.bounds.items()
    )
    return same and more and less and within


def oracle(x: np.ndarray, method: str, kind: str, label: int, actionable: Actionable, cost: Any) -> float:
    seen = view(model(kind))
    region = seen.region(label)
    if method == "plausible":
        region = region & latent_density(kind).region(label).pullback(seen.encode)
    limits = actionable

    def at(column: Any) -> int:
        return NAMES.index(column) if isinstance(column, str) else column

    def allowed(point):
        for column in limits.immutable:
            yield point[at(column)] == x[at(column)]
        for column in limits.increase:
            yield point[at(column)] >= x[at(column)]
        for column in limits.decrease:
            yield point[at(column)] <= x[at(column)]
        for column, (low, high) in limits.bounds.items():
            if low is not None:
                yield point[at(column)] >= low
            if high is not None:
                yield point[at(column)] <= high

    return nearest_of(x, region, cost, allowed)


RULES = {
    "immutable": Actionable(immutable=["petal length"]),
    "two immutable": Actionable(immutable=["petal length", "sepal length"]),
    "increase": Actionable(increase=["sepal length", "petal width"]),
    "decrease": Actionable(decrease=["sepal width", "petal length"]),
    "bounds": Actionable(bounds={"petal length": (2.0, 5.0), "petal width": (None, 1.9), "sepal width": (2.5, None)}),
    "bounds met by none": Actionable(bounds={"sepal length": (5.95, 6.05)}),
    "one value": Actionable(bounds={"sepal length": (6.0, 6.0)}),
    "everything": Actionable(
        immutable=["sepal length"],
        increase=["sepal width"],
        decrease=[2],
        bounds={3: (0.1, 2.5), "petal length": (1.0, 6.9)},
    ),
    "one-way with bounds": Actionable(increase=["petal width"], bounds={"petal width": (0.0, 2.0)}),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", RULES)
def test_rules_are_honoured_exactly_and_inside_the_optimisation(rule: str, kind: str, method: str) -> None:
    actionable, X = RULES[rule], people(8)
    present = model(kind).predict(pd.DataFrame(X, columns=NAMES))
    for turn, (name, cost) in enumerate(COSTS.items()):
        explainer = fit(method, kind, actionable, cost)
        plain = fit(method, kind, None, cost)
        for label in (0, 1, 2):
            found = explainer.explain(X, target=label)
            moved = found.status == Status.OPTIMAL
            assert set(found.status) <= {Status.OPTIMAL, Status.UNREACHABLE, Status.ALREADY}, name
            assert honours(actionable, X[moved], found.counterfactual[moved])
            if moved.any():
                predicted = model(kind).predict(pd.DataFrame(found.counterfactual[moved], columns=NAMES))
                np.testing.assert_array_equal(predicted, label)
                np.testing.assert_allclose(
                    found.cost[moved], cost(found.counterfactual, X)[moved], rtol=1e-7, atol=1e-9
                )
                assert (found.cost[moved] >= plain.explain(X[moved], target=label).cost * (1 - 1e-9) - 1e-9).all()
            q = (2 * turn + label) % len(X)
            if present[q] == label:
                continue
            try:
                truth = oracle(X[q], method, kind, label, actionable, cost)
            except UndecidedError:
                continue
            if np.isinf(truth):
                assert found.status[q] == Status.UNREACHABLE
            else:
                assert found.status[q] == Status.OPTIMAL
                assert found.cost[q] == pytest.approx(truth, rel=1e-6, abs=1e-7)


@settings(max_examples=60)
@given(st.data())
def test_any_rules_against_the_oracle(data) -> None:
    columns = data.draw(st.permutations(range(4)))
    parts = data.draw(st.lists(st.sampled_from(["immutable", "increase", "decrease", "free"]), min_size=4, max_size=4))
    chosen = {
        way: [c for c, part in zip(columns, parts, strict=True) if part == way]
        for way in ("immutable", "increase", "decrease")
    }
    bounds = {}
    for column in range(4):
        if column not in chosen["immutable"] and data.draw(st.booleans()):
            low = data.draw(st.integers(0, 8)) / 2
            bounds[column] = (low, low + data.draw(st.integers(0, 8)) / 2)
    actionable = Actionable(**chosen, bounds=bounds)
    method, kind = data.draw(st.sampled_from(METHODS)), data.draw(st.sampled_from(["logistic", "tree", "glvq"]))
    cost = COSTS[data.draw(st.sampled_from(list(COSTS)))]
    X = people(12)[[data.draw(st.integers(0, 11))]]
    present = model(kind).predict(pd.DataFrame(X, columns=NAMES))[0]
    label = data.draw(st.sampled_from([k for k in range(3) if k != present]))
    found = fit(method, kind, actionable, cost).explain(X, target=label)
    try:
        truth = oracle(X[0], method, kind, label, actionable, cost)
    except UndecidedError:
        return
    if np.isinf(truth):
        assert found.status[0] == Status.UNREACHABLE
        return
    assert found.status[0] == Status.OPTIMAL
    assert honours(actionable, X, found.counterfactual)
    assert found.cost[0] == pytest.approx(truth, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_names_and_positions_mean_the_same(method: str) -> None:
    X = people()
    by_name = Actionable(immutable=["sepal width"], increase=["petal length"], bounds={"petal width": (0.0, 2.0)})
    for other in (
        Actionable(immutable=[1], increase=[2], bounds={3: (0.0, 2.0)}),
        Actionable(immutable=(-3,), increase=(np.int64(-2),), bounds={-1: (0, 2)}),
        Actionable(
            immutable=np.array([1]), increase=pd.Index(["petal length"]).tolist(), bounds={"petal width": [0.0, 2.0]}
        ),
        Actionable(immutable=[1, "sepal width"], increase=[2], bounds={3: (0.0, 2.0)}),
    ):
        a, b = (fit(method, "logistic", rule).explain(X, target=1) for rule in (by_name, other))
        np.testing.assert_array_equal(a.counterfactual, b.counterfactual)


def test_names_of_the_table_serve_a_model_without_names() -> None:
    X, y = iris()
    nameless = LogisticRegression(max_iter=2000).fit(X.to_numpy(), y)
    rule = Actionable(immutable=["petal length"])
    found = Closest(actionable=rule).fit(nameless, X).explain(people(), target=1)
    assert found.valid.all()
    assert honours(rule, people(), found.counterfactual)
    with pytest.raises(ValueError, match="'petal length' is a name, but neither the model nor the data"):
        Closest(actionable=rule).fit(nameless)
    with pytest.raises(ValueError, match="'petal length' is a name"):
        Closest(actionable=rule).fit(nameless, X.to_numpy())


def test_integer_column_names_are_names() -> None:
    X, y = iris()
    numbered = X.set_axis([3, 2, 1, 0], axis=1)
    nameless = LogisticRegression(max_iter=2000).fit(X.to_numpy(), y)
    explainer = Closest("l2", actionable=Actionable(immutable=[3])).fit(nameless, numbered)
    changes = explainer.explain(numbered.iloc[::10]).changes
    assert (changes[3] == 0).all()
    assert (changes[[2, 1, 0]] != 0).all(axis=None)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            Actionable(immutable=["petal width"], increase=["petal width"]),
            "'petal width' is both immutable and increase",
        ),
        (Actionable(increase=["petal width"], decrease=[3]), "3 is both increase and decrease"),
        (Actionable(immutable=[3], decrease=[-1]), "-1 is both immutable and decrease"),
        (Actionable(immutable=[0], bounds={"sepal length": (1, 2)}), "'sepal length' is immutable and has bounds"),
        (Actionable(bounds={0: (2.0, 1.0)}), r"bounds\[0\] = \(2.0, 1.0\) leave no value"),
        (Actionable(bounds={0: (np.nan, 1.0)}), "leave no value"),
        (Actionable(bounds={0: (1.0, np.nan)}), "leave no value"),
        (Actionable(bounds={0: 3.0}), "must be a pair"),
        (Actionable(bounds={0: (1, 2, 3)}), "must be a pair"),
        (Actionable(bounds={0: ("low", "high")}), "must be a pair"),
        (Actionable(immutable=["age"]), "'age' does not exist. Columns: sepal length, sepal width"),
        (Actionable(bounds={"age": (0, 1)}), "'age' does not exist"),
        (Actionable(increase=[4]), "Column 4 does not exist: the table has 4 columns, 0 to 3"),
        (Actionable(decrease=[-5]), "Column -5 does not exist"),
        (Actionable(immutable=[True]), "True does not exist"),
        (Actionable(immutable=[1.0]), "1.0 does not exist"),
    ],
)
def test_contradictory_and_unknown_columns(rule: Actionable, message: str, method: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(method, "logistic", rule)


def test_bounds_that_name_a_column_twice_contradict_or_meet() -> None:
    """By name and by position: the second must not silently replace the first."""
    twice = Actionable(bounds={"sepal length": (5.0, 8.0), 0: (4.0, 6.0)})
    try:
        explainer = fit("closest", "logistic", twice)
    except ValueError:
        return
    found = explainer.explain(people(), target=1)
    moved = found.status == Status.OPTIMAL
    assert moved.any()
    assert honours(twice, people()[moved], found.counterfactual[moved])


@pytest.mark.parametrize("name", ["immutable", "increase", "decrease"])
@pytest.mark.parametrize("columns", ["age", 3, None])
def test_columns_come_in_lists(name: str, columns) -> None:
    with pytest.raises(TypeError, match=f"{name} is a list of columns"):
        Actionable(**{name: columns})


def test_actionable_is_a_value() -> None:
    columns, bounds = ["a"], {"b": (0, 1)}
    rule = Actionable(immutable=columns, bounds=bounds)
    columns.append("c")
    bounds["d"] = (0, 1)
    assert rule == Actionable(immutable=("a",), bounds={"b": (0, 1)})
    with pytest.raises(dataclasses.FrozenInstanceError):
        rule.immutable = ()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_with_everything_immutable_one_is_there_already_or_never(method: str, kind: str) -> None:
    X = people()
    already = model(kind).predict(pd.DataFrame(X, columns=NAMES)) == 1
    for cost in COSTS.values():
        found = fit(method, kind, Actionable(immutable=NAMES), cost).explain(X, target=1)
        np.testing.assert_array_equal(found.status, np.where(already, "already", "unreachable"))
        np.testing.assert_array_equal(found.counterfactual[already], X[already])
        assert np.isnan(found.counterfactual[~already]).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_one_value_pins_a_column_like_the_oracle(method: str, kind: str) -> None:
    """Bounds with lower == upper: every counterfactual has exactly this value."""
    rule = Actionable(bounds={"sepal width": (3.0, 3.0)})
    X = people()
    found = fit(method, kind, rule).explain(X)
    assert (found.status == Status.OPTIMAL).all()
    assert (found.counterfactual[:, 1] == 3.0).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_person_outside_the_bounds_moves_into_them(method: str, kind: str) -> None:
    X = people()
    rule = Actionable(bounds={"sepal width": (3.6, 4.0)})
    assert (X[:, 1] < 3.6).any()
    found = fit(method, kind, rule).explain(X)
    moved = found.status == Status.OPTIMAL
    assert moved.all()
    assert honours(rule, X, found.counterfactual)
    assert (found.cost >= np.maximum(3.6 - X[:, 1], 0) - 1e-9).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_person_on_the_wrong_side_of_a_one_way_bound_is_stuck(method: str, kind: str) -> None:
    """Who may only grow and is above the upper bound cannot come back."""
    X = people()
    found = fit(method, kind, Actionable(increase=["sepal width"], bounds={"sepal width": (None, 2.95)})).explain(X)
    above = X[:, 1] > 2.95
    assert above.any()
    assert not above.all()
    assert (found.status[above] == Status.UNREACHABLE).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_bound_that_a_person_meets_exactly_costs_nothing(method: str, kind: str) -> None:
    """A column that stands on its bound and has no reason to move stays, to the last bit."""
    X = people()
    plain = fit(method, kind, None).explain(X)
    bounds = {}
    for j in range(4):
        # No counterfactual goes beyond these sides, and some people stand on them.
        bounds[NAMES[j]] = (
            min(X[:, j].min(), plain.counterfactual[:, j].min()),
            max(X[:, j].max(), plain.counterfactual[:, j].max()),
        )
    found = fit(method, kind, Actionable(bounds=bounds)).explain(X)
    np.testing.assert_allclose(found.cost, plain.cost, rtol=1e-6)
    unmoved = plain.changes == 0
    assert unmoved.any()
    np.testing.assert_array_equal(found.counterfactual[unmoved], X[unmoved])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_one_way_column_on_its_bound_stays_there(method: str, kind: str) -> None:
    """Who may only grow and stands on the upper bound is not stuck: that column just stays."""
    X = people(1)
    top = float(X[0, 1])
    found = fit(method, kind, Actionable(increase=["sepal width"], bounds={"sepal width": (None, top)})).explain(X)
    fixed = fit(method, kind, Actionable(immutable=["sepal width"])).explain(X)
    assert fixed.status[0] == found.status[0] == Status.OPTIMAL
    assert found.counterfactual[0, 1] == top
    assert found.cost[0] == pytest.approx(fixed.cost[0], rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_bounds_that_bind_nobody_change_nothing(method: str) -> None:
    X = people()
    wide = Actionable(bounds={0: (-100.0, 100.0), 1: (None, None), 2: (-np.inf, np.inf), 3: (None, 1e6)})
    for kind in ("logistic", "tree"):
        a, b = fit(method, kind, wide).explain(X), fit(method, kind, None).explain(X)
        np.testing.assert_allclose(a.counterfactual, b.counterfactual, atol=1e-7)
        np.testing.assert_array_equal(a.target, b.target)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_rules_and_margin_together(method: str, kind: str) -> None:
    rule = Actionable(immutable=["sepal length"], increase=["sepal width"], bounds={"petal width": (0.0, 2.4)})
    X, margin = people(), 0.03
    found = fit(method, kind, rule, L2(), margin).explain(X, target=1)
    moved = found.status == Status.OPTIMAL
    assert moved.any()
    assert honours(rule, X[moved], found.counterfactual[moved])
    shrunk = view(model(kind)).region(1).shrink(margin, "l2")
    assert shrunk.contains(found.counterfactual[moved]).all()


@pytest.mark.parametrize("method", METHODS)
def test_rules_chunks_and_threads(method: str) -> None:
    X = people(20)
    for rule in (RULES["everything"], RULES["bounds"]):
        explainer = fit(method, "logistic", rule)
        expected = explainer.explain(X)
        for options in ({"chunk_size": 1}, {"chunk_size": 7, "n_jobs": 2}):
            found = explainer.explain(X, **options)
            np.testing.assert_array_equal(found.status, expected.status)
            np.testing.assert_allclose(found.counterfactual, expected.counterfactual, rtol=1e-9)


def test_frame_out_of_order_keeps_its_rules() -> None:
    X, _ = iris()
    rule = Actionable(immutable=["petal length"], increase=[0])
    explainer = fit("closest", "logistic", rule)
    straight = explainer.explain(X.iloc[::10], target=1)
    turned = explainer.explain(X[NAMES[::-1]].iloc[::10], target=1)
    pd.testing.assert_frame_equal(turned.counterfactual[NAMES], straight.counterfactual)
    assert (turned.counterfactual["petal length"][turned.valid] == X["petal length"].iloc[::10][turned.valid]).all()


def test_what_rounding_alone_moves_stays() -> None:
    """A change of the last bits is none, unless the person stands out of bounds; a change of more is one."""
    X = np.array([[3.0, 0.1, -7.0, 5.0]])
    limits = Actionable(bounds={0: (0.0, 10.0), 3: (None, 4.0)}).over(Schema.numbers(4), named=False)
    nudged = X * (1.0 + 4.0 * np.finfo(float).eps)
    np.testing.assert_array_equal(limits.snap(nudged, X), [[3.0, 0.1, -7.0, 4.0]])
    moved = X * (1.0 - 1e-13)
    np.testing.assert_array_equal(limits.snap(moved, X)[0, :3], moved[0, :3])
