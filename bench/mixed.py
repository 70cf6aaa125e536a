"""Time counterfactuals over levels, steps and numbers, from DataFrame to DataFrame, beside HiGHS and DiCE.

    python bench/mixed.py [--quick]

One core, CPU times, the best of three.  The people are those of tests/mixed_tables.py: twenty columns, eight of them
with levels, four that count.  Everybody aims at a label that the model does not give them, so that all need a change.
Every rate includes reading the table, the check of every answer by the pipeline's own predict, and writing the table;
HiGHS only solves, with the model's coefficients at hand.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.optimize

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import dice

import mixed_oracles
import mixed_tables
from evenhand import Closest, HighDensity, Plausible
from evenhand.projection import Projector

TRAINING = 5000
COUNTED = 5000  # people whose nodes are counted
COMPARED = 20  # people whose optimum HiGHS finds as well
DICE = 5  # people for DiCE
SEED = 1  # of the people who are explained; those of the training table have another
TARGETS = {
    ("closest", "logistic", 2): 50_000,
    ("closest", "logistic", 3): 20_000,
    ("closest", "tree", 2): 150_000,
    ("plausible", "logistic", 2): 3000,
    ("plausible", "logistic", 3): 3000,
    ("plausible", "tree", 2): 2000,
}


@dataclass(frozen=True)
class Row:
    """What one problem took.

    Attributes
    ----------
    name : str
        The problem.
    people : int
        Who were explained; all of them need a change.
    rate : float
        Counterfactuals per second.
    predict : float
        Rows per second of the pipeline's own predict on the same table: every counterfactual pays for it twice, once
        for the label that the person has and once for the check.
    proven : float
        Share of the people with status "optimal".
    nodes : int
        Most nodes that one of the first people took; -1 if the projector does not say.
    highs, difference : float
        Median milliseconds of HiGHS for one person, and the largest relative difference of costs to it; NaN where
        HiGHS has no such problem.
    """

    name: str
    people: int
    rate: float
    predict: float
    proven: float
    nodes: int
    highs: float
    difference: float


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer people: a look, not a measurement")
    quick = parser.parse_args().quick
    began = time.perf_counter()
    rows = {}
    for case in TARGETS:
        print(f"{len(rows) + 1}/{len(TARGETS)} {_name(case)}", file=sys.stderr)
        rows[case] = _measured(*case, people=_crowd_size(case[0], quick))
    for row in rows.values():
        print(_line(row))
    print()
    print(_dice())
    print("\nTargets:")
    for case, least in TARGETS.items():
        got = rows[case].rate
        print(f"- counterfactuals/s, {_name(case)}: at least {least:,}; got {got:,.0f}: {_verdict(got >= least)}")
    worst = min(rows.values(), key=lambda row: row.proven)
    print(f"- proven optimal: 100 %; got {worst.proven:.3%} ({worst.name}): {_verdict(worst.proven == 1.0)}")
    print(f"\nTook {time.perf_counter() - began:.0f} s.")


def _crowd_size(method: str, quick: bool) -> int:
    most = 50_000 if method == "closest" else 5000
    return most // 10 if quick else most


def _name(case: tuple[str, str, int]) -> str:
    method, kind, classes = case
    return f"{method}, {kind}, {classes} classes"


@cache
def _training(classes: int) -> tuple[pd.DataFrame, npt.NDArray[Any], dict[str, Any]]:
    X, y = mixed_tables.people(TRAINING, seed=0, classes=classes)
    return X, y, mixed_tables.models(X, y)


@cache
def _explainer(method: str, kind: str, classes: int) -> Any:
    X, y, models = _training(classes)
    schema = mixed_tables.schema_of(X)
    if method == "closest":
        return Closest(schema=schema).fit(models[kind], X, y)
    return Plausible(HighDensity(components=[3]), schema=schema).fit(models[kind], X, y)


def _measured(method: str, kind: str, classes: int, people: int) -> Row:
    model = _training(classes)[2][kind]
    explain = _explainer(method, kind, classes)
    X, _ = mixed_tables.people(people, SEED, classes)
    explain.explain(X.iloc[:50], "random", random_state=0)  # compiles
    seconds, found = _best(lambda: explain.explain(X, "random", random_state=0))
    asked, _ = _best(lambda: model.predict(X))
    with _counting() as counted:
        explain.explain(X.iloc[:COUNTED], "random", random_state=0)
    highs, difference = (np.nan, np.nan)
    if method == "closest":
        some = slice(0, COMPARED)
        highs, difference = _compared(model, explain.view.schema, X[some], found.target[some], found.cost[some], kind)
    return Row(
        _name((method, kind, classes)),
        people,
        people / seconds,
        people / asked,
        float(np.mean(found.status == "optimal")),
        max(counted, default=-1),
        highs,
        difference,
    )


def _best(work: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """CPU seconds, the best of three, and the last result."""
    best = np.inf
    for _ in range(times):
        began = time.process_time()
        result = work()
        best = min(best, time.process_time() - began)
    return best, result


@contextmanager
def _counting() -> Iterator[list[int]]:
    """The most nodes of every search inside, if the projector tells them."""
    counts: list[int] = []
    original = Projector.project

    def project(*arguments: Any, **options: Any) -> Any:
        found = original(*arguments, **options)
        nodes = getattr(found, "nodes", None)
        if nodes is not None and len(nodes):
            counts.append(int(np.max(nodes)))
        return found

    Projector.project = project  # type: ignore[method-assign]
    try:
        yield counts
    finally:
        Projector.project = original  # type: ignore[method-assign]


def _compared(
    model: Any, schema: Any, X: pd.DataFrame, target: npt.NDArray[Any], cost: npt.NDArray[np.float64], kind: str
) -> tuple[float, float]:
    """Median milliseconds of HiGHS per person, and the largest relative difference of costs.

    A tree is no mixed-integer program worth comparing with: there the optimum is that of its leaves, one by one.
    """
    oracle = mixed_oracles.milp if kind == "logistic" else mixed_oracles.leaves
    seconds: list[float] = []
    original = scipy.optimize.milp

    def timed(*arguments: Any, **options: Any) -> Any:
        began = time.process_time()
        found = original(*arguments, **options)
        seconds.append(time.process_time() - began)
        return found

    scipy.optimize.milp = timed
    try:
        optimum = np.array([oracle(model, schema, X.iloc[[i]], target[i]) for i in range(len(X))])
    finally:
        scipy.optimize.milp = original
    difference = float(np.max(np.abs(cost - optimum) / (1.0 + optimum)))
    return (1e3 * float(np.median(seconds)) if seconds else np.nan), difference


def _line(row: Row) -> str:
    parts = [
        f"{row.name}: {row.rate:,.0f} counterfactuals/s ({row.people:,} people; predict alone "
        f"{row.predict:,.0f} rows/s)",
        f"{row.proven:.3%} proven",
    ]
    if row.nodes >= 0:
        parts.append(f"at most {row.nodes:,} nodes ({min(row.people, COUNTED):,} people)")
    if not np.isnan(row.highs):
        parts.append(f"HiGHS {row.highs:.1f} ms per person")
    if not np.isnan(row.difference):
        parts.append(f"largest difference of costs {row.difference:.0e} on {COMPARED} people")
    return ", ".join(parts)


def _dice() -> str:
    """DiCE on the same people and the same pipeline: what it finds, what that costs, and how long it takes."""
    if not dice.installed():
        return "DiCE: not installed (pip install evenhand[dice])."
    X, y, models = _training(2)
    explain = _explainer("closest", "logistic", 2)
    crowd, _ = mixed_tables.people(200, SEED)
    crowd = crowd[models["logistic"].predict(crowd) != "good"].iloc[:DICE]
    ours = explain.explain(crowd, target="good")
    theirs = dice.run(X, y, models["logistic"], crowd, explain.view.schema, "random")
    return (
        f"DiCE (random), {len(crowd)} people: {theirs.seconds:.2f} s per person, {theirs.valid.mean():.0%} valid, "
        f"median cost {theirs.median:.3g}; the cheapest change costs {float(np.median(ours.cost)):.3g}."
    )


def _verdict(met: bool) -> str:
    return "met" if met else "MISSED"


if __name__ == "__main__":
    main()
