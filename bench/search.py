"""Time searches of models without a region, on a raw table, beside DiCE.

    python bench/search.py [--quick]

One core, CPU times.  The people are those of tests/mixed_tables.py: twenty columns, eight of them with levels, four
that count.  A forest of 100 trees and HistGradientBoosting, each behind a OneHotEncoder; everybody is refused and aims
at "good".  DiCE takes seconds a person, so it gets fewer people; its answers are priced and confirmed as ours are.
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1")
)

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import dice

import mixed_tables
from evenhand import Actionable, Penalized

TRAINING, PEOPLE, DICE = 5000, 200, 10
SECONDS = 30.0  # for the forest and all people


def main() -> None:
    """Print a line per model, and whether the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer people, no DiCE")
    quick = parser.parse_args().quick
    X, y = mixed_tables.people(TRAINING, 5)
    crowd, _ = mixed_tables.people(2000, 1)
    targets = []
    for name, last in _models().items():
        levels = [*mixed_tables.NAMES, *mixed_tables.RANKS]
        encoder = make_column_transformer((OneHotEncoder(), levels), remainder="passthrough")
        model = make_pipeline(encoder, last).fit(X, y)
        people = crowd[model.predict(crowd) == "bad"].iloc[: 20 if quick else PEOPLE]
        seconds, found = _timed(Penalized().fit(model, X), people)
        limited, _ = _timed(Penalized(actionable=Actionable(immutable=["income"])).fit(model, X), people)
        explainer = Penalized().fit(model, X)
        cost = float(np.nanmedian(found.cost))
        print(
            f"{name}: {len(people)} people in {seconds:.1f} s ({limited / seconds:.2f} times that with one immutable "
            f"column), {found.valid.mean():.1%} valid, median cost {cost:.3g}"
        )
        if name == "forest":
            targets.append((f"seconds, {name}, {len(people)} people: at most {SECONDS:g}", seconds, seconds <= SECONDS))
        targets.append((f"valid, {name}: all", float(found.valid.mean()), bool(found.valid.all())))
        if quick or not dice.installed():
            continue
        few = people.iloc[:DICE]
        ours = float(np.median(found.cost[:DICE]))
        for method in ("random", "genetic"):
            theirs = dice.run(X, y, model, few, explainer.view.schema, method)
            print(
                f"  DiCE ({method}), {len(few)} people: {theirs.seconds:.2f} s each, {theirs.valid.mean():.0%} valid, "
                f"median cost {theirs.median:.3g} against {ours:.3g} on the same people"
            )
            targets.append((f"median cost, {name}: at most DiCE's ({method})", ours, not ours > theirs.median))
    if not dice.installed():
        print("DiCE: not installed (pip install evenhand[dice]).")
    print("\nTargets:")
    for what, value, met in targets:
        print(f"- {what}; got {value:.3g}: {'met' if met else 'MISSED'}")


def _models() -> dict[str, Any]:
    return {
        "forest": RandomForestClassifier(100, random_state=0, n_jobs=1),
        "boosting": HistGradientBoostingClassifier(random_state=0),
    }


def _timed(explainer: Any, people: Any) -> tuple[float, Any]:
    began = time.process_time()
    found = explainer.explain(people, target="good")
    return time.process_time() - began, found


if __name__ == "__main__":
    main()
