"""Raw tables: words, ranks, flags, codes, counts and amounts through encoders, against everybody there could be.

The oracle knows what was drawn, not what the package made of it.  It writes down whom a person could become for less
than an answer claims to be possible, and asks the model's own ``predict`` about all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import pandas as pd

from fuzz.base import generator
from fuzz.raw_columns import Part
from fuzz.raw_drawing import N, drawn_columns, inferred, limited, pick, written
from fuzz.raw_question import RawQuestion
from fuzz.sameness import VARIANTS
from fuzz.scripted import ScriptedCase

KINDS: dict[str, dict[str, Any]] = {
    "raw lattice": {"amounts": False},
    "raw amounts": {"amounts": True},
    "raw plausible": {"amounts": False, "method": "Plausible"},
    "raw plausible amounts": {"amounts": True, "method": "Plausible"},
    "raw searched": {"amounts": True, "method": "Penalized"},
}


def cases(seed: int) -> Iterator[ScriptedCase]:
    """Endlessly, kind by kind."""
    for i in count():
        for kind, options in KINDS.items():
            yield ScriptedCase(kind, partial(_drawn, generator(seed, kind, i), **options))


def _drawn(rng: np.random.Generator, amounts: bool, method: str = "Closest") -> RawQuestion:
    return drawn_question(rng, drawn_columns(rng, amounts, searched=method == "Penalized"), method)


MODELS = (
    "LogisticRegression(C=1.0, max_iter=500)",
    "LogisticRegression(C=100.0, max_iter=500)",
    "DecisionTreeClassifier(max_depth=3, random_state=0)",
    "DecisionTreeClassifier(max_depth=6, random_state=0)",
    "RidgeClassifier()",
    "LinearSVC(random_state=0)",
    "LinearDiscriminantAnalysis()",
    "NearestCentroid()",
    "KNeighborsClassifier(1, algorithm='brute')",
    "GLVQ(prototypes_per_class=2, max_iter=20, random_state=0)",
    "GMLVQ(max_iter=10, random_state=0)",
)
FORESTS = ("RandomForestClassifier(10, random_state=0)", "HistGradientBoostingClassifier(max_iter=5, random_state=0)")
DENSE = "OneHotEncoder(sparse_output=False, "
LABELS = (["no", "yes"], [0, 1], [False, True], [3, 1, 2], ["b", "a", "c"])


def drawn_question(rng: np.random.Generator, columns: list[Part], method: str = "Closest") -> RawQuestion:
    """Labels by a noisy rule, a model, limits, and some people who ask."""
    merit = sum((part.signal for part in columns), start=rng.normal(size=N) * pick(rng, 0.05, 0.5))
    labels = pick(rng, *LABELS)
    k = len(labels)
    y = np.array(labels)[np.searchsorted(np.quantile(merit, np.arange(1, k) / k), merit)]
    y[:k] = labels
    schema = bool(rng.random() < 0.6)
    parts = [written(rng, part) if schema else inferred(part, part.values) for part in columns]
    if all("'drop'" in part.through for part in parts):
        parts[0] = replace(parts[0], through="OneHotEncoder()")
    model = pick(rng, *MODELS, *(FORESTS if method == "Penalized" else ()))
    if model.startswith(("GLVQ", "GMLVQ", "Linear", "Hist")):  # these take no sparse tables, and encoders may make one
        parts = [replace(part, through=part.through.replace("OneHotEncoder(", DENSE)) for part in parts]
    limits = rng.random() < 0.5
    parts = [limited(rng, part) if limits else part for part in parts]
    rows = rng.choice(N, 4 if method == "Penalized" else 16, replace=False)
    table = pd.DataFrame({part.name: part.values for part in parts})
    people = table.iloc[rows]
    if rng.random() < 0.5:
        people = people.reset_index(drop=True)
    target = None if rng.random() < 0.25 else rng.choice(np.array(labels), len(rows))
    rules = _rules(rng, parts) if limits else ()
    variant = pick(rng, *VARIANTS) if method != "Penalized" and rng.random() < 0.15 else ""
    return RawQuestion(tuple(parts), y, model, people, target, schema, rules=rules, method=method, variant=variant)


def _rules(rng: np.random.Generator, parts: list[Part]) -> tuple[tuple[str, str, str, float], ...]:
    if len(parts) < 2 or rng.random() < 0.5:
        return ()
    a, b = (parts[i] for i in rng.permutation(len(parts))[:2])
    found = []
    if rng.random() < 0.6:
        found.append(("IfChanges", a.name, b.name, 1.0))
    ordered = [part for part in parts if (part.number or part.kind == "ordered") and "Bins" not in part.through]
    if len(ordered) > 1 and rng.random() < 0.6:
        a, b = (ordered[i] for i in rng.permutation(len(ordered))[:2])
        if not (a.way in ("immutable", "decrease") and b.way == "increase"):
            ratio = float(pick(rng, 0.5, 1.0, 2.0)) * _unit(a) / _unit(b)
            found.append(("RisesWith", a.name, b.name, ratio))
    return tuple(found)


def _unit(part: Part) -> float:
    return float(part.values.dropna().astype(float).std()) or 1.0 if part.kind == "numeric" else 1.0
