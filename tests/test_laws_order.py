"""Laws of order: of labels, columns, people, chunks and threads, none changes what a person is told.

Of several answers of one cost that with the fewest changed columns is told, whatever label it has; and the point is a
function of the person, the target and the problem.
"""

from __future__ import annotations

import copy
import itertools
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

from evenhand import L1, L2, Actionable, Closest, Explanations, HighDensity, Plausible, Steady
from raw_laws import FEW, MODELS, quietly
from rotation import in_turn
from threads import one_thread, threads_at_once  # noqa: F401

N = 66
METHODS: dict[str, Any] = {
    "closest": lambda cost: Closest(cost),
    "limited": lambda cost: Closest(cost, actionable=Actionable(increase=["k"], bounds={"z": (-2.0, 2.0)})),
    "plausible": lambda cost: Plausible(HighDensity(components=[1]), cost),
}
TABLES = ["numbers", "counts", "levels", "bins"]
WEIGHTS = {"numbers": "kzv", "counts": "kmf", "levels": "ckz", "bins": "ckz"}


@cache
def data(table: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Three labels; whole numbers and levels make many answers of one cost."""
    rng = np.random.default_rng(12)
    X = pd.DataFrame({"k": 2 * rng.integers(0, 4, N), "z": np.round(4 * rng.normal(size=N)) / 4})
    if table == "numbers":
        X = X.assign(v=np.round(4 * rng.normal(size=N)) / 4).astype(float)
    elif table == "counts":
        X = X[["k"]].assign(m=2 * rng.integers(0, 4, N), f=rng.random(N) < 0.5)
    else:
        X = X.assign(c=rng.choice(["p", "q", "r"], N))[["c", "k", "z"]]
    merit = X["k"] / 3 + (X["z"] if "z" in X else X["m"] / 3) + rng.normal(size=N) / 3
    merit += (X["c"] == "q") * 1.0 if "c" in X else 0.0
    return X, np.searchsorted(np.quantile(merit, [0.35, 0.7]), merit)


def steps_of(table: str) -> list[Any]:
    if table == "counts":
        return []
    if table == "numbers":
        return [StandardScaler()]
    numbers = StandardScaler() if table == "levels" else "passthrough"
    parts = [("c", OneHotEncoder(), ["c"]), ("z", numbers, ["z"])]
    bins = KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform")
    return [ColumnTransformer([*parts, ("k", bins if table == "bins" else "passthrough", ["k"])])]


def few(kind: str, method: str = "closest") -> int:
    return (12 if method == "plausible" else FEW) if kind == "1nn" else N


@cache
def fitted(kind: str, table: str, n: int) -> Any:
    X, y = data(table)
    rows = np.sort(np.concatenate([np.flatnonzero(y == label)[: n // 3] for label in range(3)])) if n < N else slice(N)
    model = make_pipeline(*steps_of(table), MODELS[kind]()) if steps_of(table) else MODELS[kind]()
    quietly(model, X.iloc[rows], y[rows])
    if kind == "tree":  # of two labels as frequent in a leaf the first would win, whatever its name
        last_of(model).tree_.value[:] += np.array([2e-6, 1e-6, 0.0])
    if hasattr(last_of(model), "coef_"):  # and so it would of equal scores, which whole numbers have
        last_of(model).intercept_ = last_of(model).intercept_ + np.array([2e-6, 1e-6, 0.0])
    return model


def last_of(model: Any) -> Any:
    return model[-1] if isinstance(model, Pipeline) else model


# --- Labels -----------------------------------------------------------------------------------------------------------

ORDERS = [(1, 0, 2), (2, 0, 1)]


def renamed(model: Any, order: tuple[int, ...]) -> Any:
    """The same model with other names for its labels: what was k is now order[k], and stands where that belongs."""
    model = copy.deepcopy(model)
    last, back = last_of(model), np.argsort(order)
    if hasattr(last, "coef_"):
        last.coef_, last.intercept_ = last.coef_[back], last.intercept_[back]
    elif hasattr(last, "tree_"):
        last.tree_.value[:] = last.tree_.value[:, :, back]
    elif hasattr(last, "centroids_"):
        last.centroids_ = last.centroids_[back]
    elif hasattr(last, "prototypes_"):
        last.labels_ = np.array(order)[last.labels_]
        sort = np.argsort(last.labels_, kind="stable")
        last.labels_, last.prototypes_ = last.labels_[sort], last.prototypes_[sort]
    else:
        last._y = np.array(order)[last._y]
    return model


def costs(table: str, kind: str) -> Any:
    """Prices at which many answers cost the same."""
    if kind == "l2":
        return L2()
    return L1(weights=pd.Series(dict(zip(WEIGHTS[table], (1.0, 0.5, 1.0), strict=True))))


def changed(found: Explanations) -> np.ndarray:
    before, after = found.factual, found.counterfactual
    return np.asarray((before.to_numpy(dtype=object) != after.to_numpy(dtype=object)).sum(axis=1))


@pytest.mark.parametrize(
    ("kind", "table", "method", "order"), in_turn(29, MODELS, TABLES, ["closest", "limited", "plausible"], ORDERS)
)
def test_names_of_labels(kind: str, table: str, method: str, order: tuple[int, ...]) -> None:
    X, y = data(table)
    if method == "limited" and "z" not in X:
        pytest.skip("it limits a column that this table does not have")
    model = fitted(kind, table, few(kind, method))
    other = renamed(model, order)
    names = np.array(order)
    sure = names[model.predict(X)] == other.predict(X)  # on a boundary the first label wins
    assert sure.mean() > 0.9
    people = X[sure].iloc[:20]
    cost = costs(table, "l1")
    plain = METHODS[method](cost).fit(model, X, y).explain(people)
    turned = METHODS[method](cost).fit(other, X, names[y]).explain(people)
    assert (plain.status == turned.status).all()
    np.testing.assert_allclose(turned.cost, plain.cost, rtol=1e-9)
    valid = np.flatnonzero(plain.valid)
    np.testing.assert_array_equal(changed(turned)[valid], changed(plain)[valid])
    named = names[plain.target[valid].astype(int)] == turned.target[valid]
    np.testing.assert_allclose(
        numbers(turned.counterfactual.iloc[valid[named]]),
        numbers(plain.counterfactual.iloc[valid[named]]),
        rtol=1e-7,
        atol=1e-7,
    )


def numbers(X: pd.DataFrame) -> np.ndarray:
    """A table as numbers, levels by their letter."""
    codes = {name: X[name].map({"p": 0, "q": 1, "r": 2}) if name == "c" else X[name] for name in X}
    return pd.DataFrame(codes).to_numpy(dtype=float)


@pytest.mark.parametrize(("kind", "table"), in_turn(5, MODELS, ["counts", "levels"]))
def test_cost_first_then_fewest_columns(kind: str, table: str) -> None:
    """Against everybody there can be, whatever label they have."""
    X, _ = data(table)
    model = fitted(kind, table, few(kind))
    held = {"counts": [], "levels": ["z"]}[table]
    ends = {"k": (0, 7), **({"m": (0, 7)} if table == "counts" else {})}
    limits = Actionable(bounds=ends, immutable=held)
    cost = L1(weights=pd.Series(1.0, index=X.columns))
    people = X.iloc[:12].reset_index(drop=True)
    found = Closest(cost, actionable=limits).fit(model, X).explain(people)
    now = model.predict(people)
    for i in range(len(people)):
        own = people.iloc[i]
        third = {"f": [False, True]} if table == "counts" else {"c": ["p", "q", "r"]}
        second = {"m": range(8)} if table == "counts" else {"z": [own["z"]]}
        choices = {"k": range(8), **second, **third}
        everybody = pd.DataFrame(itertools.product(*choices.values()), columns=list(choices))[list(X.columns)]
        moves = np.abs(numbers(everybody) - numbers(people.iloc[[i]]))
        if table == "levels":
            moves[:, 0] = moves[:, 0] > 0
        price, good = moves.sum(axis=1), model.predict(everybody.astype(X.dtypes)) != now[i]
        if not good.any():
            assert found.status[i] == "unreachable"
            continue
        least = price[good].min()
        assert found.cost[i] == pytest.approx(least, rel=1e-9), found.status[i]
        fewest = (moves > 0).sum(axis=1)[good & (price <= least * (1 + 1e-9))].min()
        assert changed(found)[i] == fewest


# --- Columns ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "table", "method"), in_turn(17, MODELS, TABLES, ["closest", "plausible"]))
def test_columns_go_by_name(kind: str, table: str, method: str) -> None:
    """Whoever asks may have them in another order, and so may the table that a method was fitted with."""
    X, y = data(table)
    model = fitted(kind, table, few(kind, method))
    cost, turned = costs(table, "l1"), list(X.columns)[::-1]
    plain = METHODS[method](cost).fit(model, X, y).explain(X[:16])
    for given in (X[turned], pl.from_pandas(X[turned])):
        other = METHODS[method](cost).fit(model, given, y).explain(given[:16])
        after = other.counterfactual
        after = after.to_pandas() if isinstance(after, pl.DataFrame) else after
        assert (other.status == plain.status).all()
        np.testing.assert_array_equal(other.cost, plain.cost)
        rows = np.flatnonzero(plain.valid)
        np.testing.assert_array_equal(
            numbers(after[list(X.columns)].iloc[rows]), numbers(plain.counterfactual.iloc[rows])
        )


@pytest.mark.parametrize(("kind", "table", "norm"), in_turn(17, MODELS, TABLES, ["l1", "l2"]))
def test_a_model_of_other_columns_says_the_same(kind: str, table: str, norm: str) -> None:
    """The same model of the same columns in another order: the same costs, and as few changes."""
    if norm == "l2" and table != "numbers":
        pytest.skip("levels and steps have costs that are sums")
    X, _ = data(table)
    model, turned = fitted(kind, table, few(kind)), list(X.columns)[::-1]
    other = copy.deepcopy(model)
    if table == "counts":  # the model alone: its own columns turn
        turn_columns(other)
        other.feature_names_in_ = np.array(turned, dtype=object)
    elif table == "numbers":
        scaler = other[0]
        for name in ("mean_", "scale_", "var_"):
            setattr(scaler, name, getattr(scaler, name)[::-1])
        scaler.feature_names_in_ = np.array(turned, dtype=object)
        turn_columns(other[-1])
    cost = costs(table, norm)
    plain = Closest(cost).fit(model, X).explain(X[:16])
    found = Closest(cost).fit(other, X[turned]).explain(X[turned][:16])
    sure = model.predict(X[:16]) == other.predict(X[turned][:16])
    assert sure.mean() > 0.9
    assert (found.status == plain.status)[sure].all()
    np.testing.assert_allclose(found.cost[sure], plain.cost[sure], rtol=1e-9)
    if table in ("counts", "bins"):  # where it matters: nothing takes any value
        rows = np.flatnonzero(plain.valid & sure)
        np.testing.assert_array_equal(changed(found)[rows], changed(plain)[rows])


def turn_columns(last: Any) -> None:
    """The columns of a fitted model in the opposite order."""
    for name in ("coef_", "centroids_", "prototypes_", "_fit_X", "omega_"):
        if hasattr(last, name):
            setattr(last, name, np.ascontiguousarray(getattr(last, name)[:, ::-1]))
    if hasattr(last, "tree_"):
        inner = last.tree_.feature
        inner[inner >= 0] = last.n_features_in_ - 1 - inner[inner >= 0]


# --- People, chunks and threads ---------------------------------------------------------------------------------------


def assert_same(a: Explanations, b: Explanations, rows: Any, gap: bool = True) -> None:
    """Row by row the same bits; of a what stands at `rows`."""
    left = a.counterfactual.iloc[rows].reset_index(drop=True)
    # Among whole numbers the rows of who has no answer make a difference of type, not of value.
    right = b.counterfactual.reset_index(drop=True)
    pd.testing.assert_frame_equal(left, right, check_exact=True, check_dtype=False)
    for name in ("target", "status", "cost", *(["gap"] if gap else [])):
        np.testing.assert_array_equal(getattr(a, name)[rows], getattr(b, name), err_msg=name)


@pytest.mark.parametrize(
    ("kind", "table", "method", "norm"),
    in_turn(53, MODELS, TABLES, ["closest", "limited", "plausible", "steady"], ["l1", "l2"]),
)
def test_the_same_question_gets_the_same_bits(kind: str, table: str, method: str, norm: str) -> None:
    if (norm == "l2" and table != "numbers") or (method == "steady" and norm == "l1"):
        pytest.skip("levels and steps have costs that are sums, and Steady has none")
    if method == "limited" and table in ("counts", "bins"):
        pytest.skip("it limits a column that this table does not have, or has in bins")
    X, y = data(table)
    model = fitted(kind, table, few(kind, method))
    recipe = Steady(cost=L2()) if method == "steady" else METHODS[method](costs(table, norm))
    explainer = recipe.fit(model, X, y)
    people = X.iloc[:24]
    found = explainer.explain(people)
    everybody = np.arange(len(people))
    valid = np.flatnonzero(found.valid)
    assert_same(found, explainer.explain(people.iloc[valid], target=found.target[valid]), valid, gap=False)
    assert_same(found, explainer.explain(people, chunk_size=1), everybody)
    assert_same(found, explainer.explain(people, chunk_size=5, n_jobs=2), everybody)
    order = np.random.default_rng(1).permutation(np.repeat(everybody, 2))  # some of them twice
    assert_same(found, explainer.explain(people.iloc[order], chunk_size=7), order)
    assert_same(found, recipe.fit(model, X, y).explain(people.iloc[::-1]), everybody[::-1])
    alone = np.flatnonzero(everybody % 5 == 0)
    assert_same(found, explainer.explain(people.iloc[alone]), alone)
