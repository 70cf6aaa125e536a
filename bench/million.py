"""Explain one million people, and ask predict about every answer again.

    python bench/million.py [--people N]

Every family of models, on tables of numbers and on raw ones, by every method, with several costs and limits.  An answer
that is called valid has to get the target from the user's own ``predict``, as it is returned, and to keep to the
limits; a person without an answer has to have a reason.  Of those who are called unreachable some are searched for
once more, with thousands of people whom the limits admit: nobody of them may have the target.  Prints a row per family
and method, and what must be 0.  One core; slow methods get fewer people.
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1")
)

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from evenhand import (
    GLVQ,
    GMLVQ,
    Actionable,
    Closest,
    Explainer,
    HighDensity,
    Penalized,
    Plausible,
    Steady,
)

MODELS: dict[str, Any] = {
    "logistic": lambda: LogisticRegression(max_iter=2000),
    "ridge": RidgeClassifier,
    "svc": lambda: LinearSVC(random_state=0),
    "sgd": lambda: SGDClassifier(random_state=0, average=True),
    "perceptron": lambda: Perceptron(random_state=0),
    "lda": LinearDiscriminantAnalysis,
    "tree": lambda: DecisionTreeClassifier(max_depth=7, random_state=0),
    "glvq": lambda: GLVQ(prototypes_per_class=2, max_iter=30, random_state=0),
    "gmlvq": lambda: GMLVQ(max_iter=30, random_state=0),
    "centroid": NearestCentroid,
    "1nn": lambda: KNeighborsClassifier(n_neighbors=1, algorithm="brute"),
    "forest": lambda: RandomForestClassifier(20, max_depth=6, random_state=0, n_jobs=1),
}
NUMBERS, RAW = ("iris", "wine", "cancer", "far"), ("counts", "loans", "gaps", "bins")
PURPOSES = ["car", "house", "business", "holiday"]
CELLS, DENSE_CELLS = 40, 12  # people that 1-NN learns from; fewer where each of their cells meets a density
TRAINING = 600  # people of a synthetic table that the other models learn from
BATCH = 20_000  # people at a time
TRIED, RIVALS = 5, 4000  # unreachable people of a case, and whom they are compared with
ASKED = {"closest": 100, "steady": 100}  # of those without an answer who are asked for their reason, of a case,
ASKED_SLOW = 10  # and by methods of which a reason costs as much as dozens of answers

# How many people a case gets, of a million: what a second is worth of each method.
SHARES = {
    ("numbers", "closest"): 7_400,
    ("numbers", "steady"): 2_000,
    ("numbers", "plausible"): 400,
    ("raw", "closest"): 900,
    ("raw", "plausible"): 12,
    ("numbers", "penalized"): 2,
    ("raw", "penalized"): 2,
}
FAST_RAW = {"tree": 12.0, "1nn": 0.05, "glvq": 0.3, "gmlvq": 0.5}  # times the share of others


@dataclass(frozen=True)
class Case:
    """Some people, and what they are asked."""

    family: str
    table: str
    method: str
    cost: str
    limits: str
    people: int

    @property
    def raw(self) -> bool:
        """Whether levels, whole numbers or gaps are in the table."""
        return self.table in RAW


@dataclass
class Tally:
    """What came of the people of a family and a method."""

    status: Counter[str] = field(default_factory=Counter)
    denied: int = 0
    beyond: int = 0
    unexplained: int = 0
    refuted: int = 0
    tried: int = 0
    seconds: float = 0.0

    @property
    def faults(self) -> int:
        """What must not happen."""
        return self.denied + self.beyond + self.unexplained + self.refuted


# --- Tables -----------------------------------------------------------------------------------------------------------


@cache
def table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """People to learn from, and their labels."""
    loaders = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}
    if name in loaders:
        X, y = loaders[name](return_X_y=True, as_frame=True)
        return X, y.to_numpy()
    rng, n = np.random.default_rng(7), TRAINING
    age, income = rng.integers(18, 80, n), rng.normal(2000.0, 600.0, n)
    if name == "far":  # years, moments and small units
        X = pd.DataFrame(
            {"year": 2000.0 + age / 4, "moment": 1.7e9 + 1e5 * income, "dose": 1e-9 * rng.gamma(2.0, 3.0, n)}
        )
        merit = X["year"] / 8 + X["moment"] / 1e8 + X["dose"] * 2e8 + rng.normal(size=n)
    else:
        X = pd.DataFrame(
            {
                "age": age,
                "children": rng.poisson(1.2, n),
                "months": 6 * rng.integers(1, 11, n),
                "owner": rng.random(n) < 0.4,
                "purpose": rng.choice(PURPOSES, n, p=[0.4, 0.3, 0.2, 0.1]),
                "savings": pd.Categorical.from_codes(
                    rng.integers(0, 4, n), ["none", "few", "some", "many"], ordered=True
                ),
                "income": np.round(income, 2),
                "debt": np.round(rng.exponential(900.0, n), 2),
            }
        )
        merit = X["income"] / 500 - X["debt"] / 900 + X["owner"] + (X["purpose"] == "house") - X["months"] / 30
        merit = merit + 0.4 * X["savings"].cat.codes + X["age"] / 60 - 0.2 * X["children"] + 0.5 * rng.normal(size=n)
        if name == "counts":
            X = X[["age", "children", "months", "owner"]]
            merit = X["age"] / 15 + X["children"] - X["months"] / 20 + X["owner"] + 0.5 * rng.normal(size=n)
        if name == "gaps":
            for j, column in enumerate(("income", "children")):
                X.loc[X.index[j::7], column] = np.nan
            X["purpose"] = X["purpose"].where(np.arange(n) % 9 > 0, np.nan)
    return X, np.searchsorted(np.quantile(merit, [0.4, 0.75]), merit)


def steps_of(name: str) -> list[Any]:
    """What stands in front of a model."""
    if name in NUMBERS:
        return [StandardScaler(), PCA(5)] if name == "cancer" else [StandardScaler()]
    if name == "counts":
        return [StandardScaler()]
    ranks = OrdinalEncoder(categories=[["none", "few", "some", "many"]])
    bins = KBinsDiscretizer(5, encode="onehot-dense", quantile_method="averaged_inverted_cdf")
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    age = (bins, ["age"]) if name == "bins" else (numbers, ["age"])
    rest = (numbers, ["children", "months", "owner", "income", "debt"])
    words = OneHotEncoder(categories=[[*sorted(PURPOSES), *([np.nan] if name == "gaps" else [])]])
    return [make_column_transformer((words, ["purpose"]), (ranks, ["savings"]), age, rest)]


@cache
def model(family: str, name: str, cells: int) -> Any:
    """A fitted pipeline."""
    X, y = table(name)
    rows = np.arange(len(X))
    if family == "1nn":
        rows = np.concatenate([np.flatnonzero(y == label)[: cells // len(np.unique(y))] for label in np.unique(y)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # collinear levels and training that stops early: the model is what it is
        return make_pipeline(*steps_of(name), MODELS[family]()).fit(X.iloc[rows], y[rows])


def crowd(name: str, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """People like those of a table: some of them moved, some put together of several."""
    X, _ = table(name)
    found = X.iloc[rng.integers(len(X), size=n)].reset_index(drop=True)
    mixed = rng.random(n) < 0.5
    for column in X:
        values = found[column]
        if name not in NUMBERS and rng.random() < 0.7:
            values = values.where(~mixed, X[column].sample(n, replace=True, random_state=rng).set_axis(values.index))
        if pd.api.types.is_float_dtype(values.dtype) and not (X[column].dropna() % 1 == 0).all():
            spread = float(X[column].std())
            values = values + np.where(rng.random(n) < 0.8, rng.normal(0.0, 0.3 * spread, n), 0.0)
        found[column] = values.astype(X[column].dtype)
    if name in NUMBERS:  # of a few something is missing
        found.loc[rng.random(n) < 0.002, X.columns[-1]] = np.nan
    return found


# --- Questions --------------------------------------------------------------------------------------------------------


def limits_of(name: str, kind: str) -> Actionable | None:
    """What may change; half of the people of "tight" can hardly do anything."""
    X, _ = table(name)
    columns = list(X.columns)
    if kind == "free":
        return None
    if kind == "held":
        return Actionable(immutable=columns[:1])
    numbers = [column for column in columns if pd.api.types.is_numeric_dtype(X[column]) and X[column].dtype != bool]
    if kind == "one way":
        return Actionable(
            immutable=columns[1:2], increase=numbers[:1], decrease=[c for c in numbers[-1:] if c != columns[1]]
        )
    low, high = X[numbers].min(), X[numbers].quantile(0.6)
    return Actionable(
        immutable=columns[: len(columns) // 2],
        bounds={c: (float(low[c]), float(high[c])) for c in numbers if c in columns[len(columns) // 2 :]},
    )


@cache
def explainer(family: str, name: str, method: str, cost: str, limits: str) -> Explainer:
    """A fitted method."""
    X, y = table(name)
    fitted = model(family, name, DENSE_CELLS if method == "plausible" else CELLS)
    limit = limits_of(name, limits)
    recipe: Any = {
        "closest": lambda: Closest(cost, actionable=limit),
        "plausible": lambda: Plausible(HighDensity(components=[1]), cost, actionable=limit),
        "steady": lambda: Steady(cost=cost, actionable=limit),
        "penalized": lambda: Penalized(cost=cost, restarts=1, actionable=limit),
    }[method]()
    found: Explainer = recipe.fit(fitted, X, y)
    return found


def cases(total: int) -> Iterator[Case]:
    """All of them; costs and limits take turns within a family, a table and a method."""
    turn = 0
    wanted: list[tuple[Case, float]] = []
    for family in MODELS:
        for name in (*NUMBERS, *RAW):
            kind = "raw" if name in RAW else "numbers"
            for method in ("closest", "plausible", "steady", "penalized"):
                if (family == "forest" and method != "penalized") or (kind, method) not in SHARES:
                    continue
                costs = ["l2"] if method == "steady" else ["l1", "l2"] if kind == "numbers" else ["l1"]
                ways = ["free", "held"] if method == "steady" else ["free", "held", "one way", "tight"]
                if kind == "raw" and method == "plausible" and family not in ("logistic", "tree", "centroid", "gmlvq"):
                    ways = ways[:1]
                if method == "penalized":
                    ways = [ways[turn % 4]]
                for way in ways:
                    turn += 1
                    share = SHARES[kind, method] * (FAST_RAW.get(family, 1.0) if kind == "raw" else 1.0)
                    wanted.append((Case(family, name, method, costs[turn % len(costs)], way, 0), share))
    whole = sum(share for _, share in wanted)
    for case, share in wanted:
        n = max(round(total * share / whole), 2)
        yield Case(case.family, case.table, case.method, case.cost, case.limits, n)


def run(case: Case, tally: Tally, seed: int) -> None:
    """Explain the people of a case, and check what they are told."""
    rng = np.random.default_rng(seed)
    explain = explainer(case.family, case.table, case.method, case.cost, case.limits)
    fitted = explain.view.model
    tried, left = 0, ASKED.get(case.method, ASKED_SLOW)
    for start in range(0, case.people, BATCH):
        people = crowd(case.table, min(BATCH, case.people - start), rng)
        target = rng.choice(fitted.classes_, len(people))
        began = time.process_time()
        found = explain.explain(people, target=target)
        tally.seconds += time.process_time() - began
        tally.status.update(found.status.tolist())
        valid = np.flatnonzero(found.valid)
        after = found.counterfactual.iloc[valid]
        if len(valid):
            tally.denied += int((fitted.predict(after) != target[valid]).sum())
            tally.beyond += int(beyond(people.iloc[valid], after, limits_of(case.table, case.limits)).sum())
        lost = np.flatnonzero(~found.valid)
        if not len(lost):
            continue
        asked, left = lost[:left], left - len(lost[:left])
        if len(asked):
            reasons = explain.explain(people.iloc[asked], target=target[asked]).reason
            tally.unexplained += sum(not reason for reason in reasons)
        for i in np.flatnonzero(found.status == "unreachable")[: TRIED - tried]:
            tried += 1
            tally.refuted += int(reachable(case, explain, people.iloc[[i]], target[i], rng))
    tally.tried += tried


def beyond(before: pd.DataFrame, after: pd.DataFrame, limits: Actionable | None) -> np.ndarray:
    """Who changes what may not change; nobody can be blamed for standing out of bounds."""
    bad = np.zeros(len(before), dtype=bool)
    if limits is None:
        return bad
    for column in limits.immutable:
        a, b = before[column].to_numpy(dtype=object), after[column].to_numpy(dtype=object)
        bad |= (a != b) & ~(pd.isna(a) & pd.isna(b))
    for column, sign in [*((c, 1.0) for c in limits.increase), *((c, -1.0) for c in limits.decrease)]:
        gone = before[column].isna().to_numpy()
        change = after[column].to_numpy(dtype=float, na_value=np.nan) - before[column].to_numpy(
            dtype=float, na_value=np.nan
        )
        bad |= (sign * change < 0) & ~gone
    for column, (low, high) in limits.bounds.items():
        values, own = after[column].to_numpy(dtype=float), before[column].to_numpy(dtype=float)
        bad |= ((values < low) | (values > high)) & (values != own)
    return bad


def reachable(case: Case, explain: Explainer, person: pd.DataFrame, target: Any, rng: np.random.Generator) -> bool:
    """Whether somebody whom the limits admit has the target after all: people of the table, mixtures, and strangers."""
    X, _ = table(case.table)
    n = RIVALS
    rivals = X.iloc[rng.integers(len(X), size=n)].reset_index(drop=True)
    strange = rng.random(n)
    for column in X:
        mixture = X[column].sample(n, replace=True, random_state=rng).set_axis(rivals.index)
        values = rivals[column].where(strange < 0.3, mixture)
        if pd.api.types.is_float_dtype(X[column].dtype):
            low, high = float(X[column].min()), float(X[column].max())
            wide = rng.uniform(2.0 * low - high, 2.0 * high - low, n)
            whole = bool((X[column].dropna() % 1 == 0).all()) and case.raw
            values = values.where(strange < 0.6, np.floor(np.maximum(wide, 0.0)) if whole else wide)
        rivals[column] = values.fillna(values.mode().iloc[0]).astype(X[column].dtype)
        same = rng.random(n) < 0.3  # of everybody a part stays
        rivals[column] = rivals[column].where(~same, person[column].iloc[0])
    limits = limits_of(case.table, case.limits)
    if limits is not None:
        for column in limits.immutable:
            rivals[column] = pd.Series([person[column].iloc[0]] * n).astype(X[column].dtype)
        for column, (low, high) in limits.bounds.items():
            inner = rivals[column].clip(low, high)
            rivals[column] = inner if pd.api.types.is_float_dtype(inner.dtype) else np.floor(inner)
        rivals = rivals.astype(X.dtypes)
        people = person.iloc[[0] * n].reset_index(drop=True)
        rivals = rivals[~beyond(people, rivals, limits)]
        if not len(rivals):
            return False
    good = explain.view.model.predict(rivals) == target
    exact = explain.exact
    if good.any() and exact is not None and exact.densities is not None:
        view, dense = exact.view, exact.densities
        codes = view.read(rivals)
        finite = np.isfinite(codes).all(axis=1)
        where = codes if dense.layout is not None else view.image(codes)
        good[finite] &= dense.score(where[finite], target) >= dense.log_threshold(target)
        good &= finite
    if case.method == "steady":  # one piece of all that have the target
        return False
    return bool(good.any())


def main() -> int:
    """Print the table, and return whether something must not have happened."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--verbose", action="store_true", help="a line per case, with its rate")
    options = parser.parse_args()
    began = time.perf_counter()
    tallies: dict[tuple[str, str], Tally] = {}
    for seed, case in enumerate(cases(options.people)):
        tally = tallies.setdefault((case.family, case.method), Tally())
        before, faults, start = tally.seconds, tally.faults, time.process_time()
        run(case, tally, seed)
        if options.verbose or tally.faults > faults:
            whole = time.process_time() - start
            print(
                f"{case}: {tally.seconds - before:.2f} s of {whole:.2f} s, {tally.faults - faults} faults",
                file=sys.stderr,
                flush=True,
            )
    rows = []
    for (family, method), tally in tallies.items():
        checks = {
            "denied": tally.denied,
            "past limits": tally.beyond,
            "no reason": tally.unexplained,
            "refuted": f"{tally.refuted} of {tally.tried}",
            "seconds": round(tally.seconds, 1),
        }
        rows.append({"family": family, "method": method, **tally.status, **checks})
    shown = pd.DataFrame(rows)
    known = [str(status) for tally in tallies.values() for status in tally.status]
    counts = [status for status, _ in Counter(known).most_common()]
    shown[counts] = shown[counts].fillna(0).astype(int)
    ends = ["denied", "past limits", "no reason", "refuted", "seconds"]
    print(shown[["family", "method", *counts, *ends]].to_string(index=False))
    total = Counter[str]()
    for tally in tallies.values():
        total.update(tally.status)
    people = sum(total.values())
    told = ", ".join(f"{count:,} {status}" for status, count in total.most_common())
    seconds = sum(tally.seconds for tally in tallies.values())
    print(f"\n{people:,} people in {seconds:.0f} s of explaining, {time.perf_counter() - began:.0f} s in all: {told}.")
    faults = sum(tally.faults for tally in tallies.values())
    verdict = "MISSED" if faults else "met"
    print(f"- denied by predict, past limits, without a reason or refuted: 0; got {faults}: {verdict}")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
