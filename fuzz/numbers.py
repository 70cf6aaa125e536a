"""Tables of numbers at offsets, in units and with weights of all sizes, through affine pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from fuzz.base import generator
from fuzz.numbers_question import Limit, NumberQuestion
from fuzz.sameness import VARIANTS
from fuzz.scripted import ScriptedCase, array_text

KINDS = ("numbers linear", "numbers trees", "numbers prototypes")
METHODS = ("numbers plausible", "numbers steady")
LASTS = {
    "numbers linear": (
        "LogisticRegression(C=1.0, max_iter=300)",
        "LogisticRegression(C=1000.0, max_iter=300)",
        "RidgeClassifier()",
        "LinearSVC(random_state=0)",
        "LinearDiscriminantAnalysis()",
        "Perceptron(random_state=0)",
        "SGDClassifier(random_state=0)",
    ),
    "numbers trees": (
        "DecisionTreeClassifier(max_depth=3, random_state=0)",
        "DecisionTreeClassifier(random_state=0)",
    ),
    "numbers prototypes": (
        "NearestCentroid()",
        "KNeighborsClassifier(1, algorithm='brute')",
        "GLVQ(random_state=0, max_iter=30)",
        "GLVQ(prototypes_per_class=3, random_state=0, max_iter=30)",
        "GMLVQ(random_state=0, max_iter=20)",
    ),
}


def cases(seed: int) -> Iterator[ScriptedCase]:
    """Endlessly, kind by kind."""
    for i in count():
        for kind in KINDS:
            yield ScriptedCase(kind, partial(drawn, generator(seed, kind, i), kind))
        for kind in METHODS:
            yield ScriptedCase(kind, partial(_with_method, generator(seed, kind, i), kind))


def _with_method(rng: np.random.Generator, kind: str) -> NumberQuestion:
    """The same tables, with answers that end where the target is dense."""
    question = drawn(rng, str(rng.choice(KINDS)))
    if kind.endswith("steady") and question.order == 1:
        question = replace(question, cost='"l2"', order=2, weights=None)
    limits = question.limits
    if kind.endswith("steady"):
        limits = tuple(limit for limit in limits if limit.way in ("immutable", "bounds"))
    return replace(question, method=kind.split()[1].capitalize(), limits=limits)


def drawn(rng: np.random.Generator, kind: str) -> NumberQuestion:
    """A table, labels in groups, a pipeline, a cost, limits, and people who ask."""
    dim, n = int(rng.integers(1, 6)), int(rng.integers(20, 50))
    k = int(rng.integers(2, 4))
    y = np.arange(n) % k
    centres = rng.normal(size=(k, dim)) * rng.choice([0.5, 2.0])
    Z = centres[y] + rng.normal(size=(n, dim))
    if rng.random() < 0.3:
        Z = np.round(2 * Z) / 2
    unit = 10.0 ** float(rng.choice([0, 0, 0, -9, -3, 3, 9])) * np.ones(dim)
    if rng.random() < 0.3:
        unit = 10.0 ** rng.integers(-4, 5, dim)
    offset = float(rng.choice([0, 0, 0, 1, 1e3, 1e6, 1e8]))
    X = (Z + offset) * unit
    steps = _steps(rng, dim)
    if dim > 1 and rng.random() < 0.1 and not any("PCA" in step for step in steps):
        X[:, -1] = X[:, 0]  # behind a PCA it would be a component of rounding error
    form = str(rng.choice(["array", "array", "frame", "frame32", "float32"])) if offset <= 1e3 else "array"
    if form in ("float32", "frame32"):
        X = X.astype(np.float32).astype(float)
    labels = [np.arange(k), np.array(["b", "c", "a"])[:k], np.array([3, 1, 2])[:k]][rng.integers(3)]
    people = np.concatenate([X[rng.choice(n, 6)], (X[rng.choice(n, 6)] + X[rng.choice(n, 6)]) / 2])
    if form in ("float32", "frame32"):
        people = people.astype(np.float32).astype(float)
    target = None if rng.random() < 0.25 else labels[rng.integers(k, size=len(people))]
    question = NumberQuestion(
        X, labels[y], steps, str(rng.choice(LASTS[kind])), '"l1"', 1, None, None, (), people, target, form
    )
    question = _priced(rng, question)
    if rng.random() < 0.5:
        question = replace(question, limits=_limits(rng, X))
    if rng.random() < 0.25:
        question = replace(question, variant=str(rng.choice(VARIANTS)))
    return question


def _steps(rng: np.random.Generator, dim: int) -> tuple[str, ...]:
    scalers = ["StandardScaler()", "StandardScaler()", "MinMaxScaler()", "RobustScaler()", "MaxAbsScaler()"]
    found: list[str] = []
    if rng.random() < 0.7:
        found.append(str(rng.choice(scalers)))
    if dim > 1 and rng.random() < 0.3:
        found.append(f"PCA({rng.integers(1, dim + 1)}, random_state=0)")
        if rng.random() < 0.3:
            found.append("StandardScaler()")
    elif dim > 2 and rng.random() < 0.1:
        found.append(f"SelectKBest(k={rng.integers(1, dim)})")
    return tuple(found)


def _priced(rng: np.random.Generator, question: NumberQuestion) -> NumberQuestion:
    """A cost, as a text and as numbers."""
    X, dim = question.X, question.dim
    table = X.astype(np.float32) if question.form in ("float32", "frame32") else X
    kind = rng.choice(["l1", "l2", "units", "units", "apart", "mad", "mahalanobis"])
    order = int(rng.integers(1, 3))
    said: dict[str, Any] = {"order": order}
    if kind in ("l1", "l2"):
        said = {"cost": f'"{kind}"', "order": 1 if kind == "l1" else 2}
    elif kind in ("units", "apart"):
        spread = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        weights = 1.0 / spread ** (1 if order == 1 else 2)
        if kind == "apart":
            weights = weights * 10.0 ** rng.integers(-10, 11, dim)
        said |= {"weights": weights, "cost": f"L{order}(weights={array_text(weights)})"}
    elif kind == "mad":
        mad = np.median(np.abs(table - np.median(table, axis=0)), axis=0).astype(float)
        said = {"cost": "L1.mad(X)", "order": 1, "weights": 1.0 / np.where(mad > 0, mad, 1.0)}
        if question.form in ("float32", "frame32"):
            said = {"cost": '"l1"', "order": 1}
    else:
        spread = X.std(axis=0, ddof=1)
        if not (spread > 0).all():
            return question
        correlation = np.cov(((X - X.mean(axis=0)) / spread).T).reshape(dim, dim)
        if np.linalg.cond(correlation) > 1e4 or question.form in ("float32", "frame32"):
            return replace(question, cost='"l2"', order=2)
        matrix = np.linalg.inv(correlation) / np.outer(spread, spread)
        said = {"cost": "L2.mahalanobis(X)", "order": 2, "matrix": (matrix + matrix.T) / 2}
    return replace(question, **said)


def _limits(rng: np.random.Generator, X: np.ndarray) -> tuple[Limit, ...]:
    found = []
    for j in range(X.shape[1]):
        way = str(rng.choice(["", "", "immutable", "increase", "decrease", "bounds"]))
        if way == "bounds":
            low, high = np.quantile(X[:, j], np.sort(rng.random(2))).tolist()
            ends = [(low, high), (-np.inf, high), (low, np.inf)][rng.integers(3)]
            found.append(Limit(j, way, *ends))
        elif way:
            found.append(Limit(j, way))
    return tuple(found)
