"""Parts of kernels are compiled in a cheaper way; the answers are those of the usual way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier

from evenhand import Closest
from evenhand.projection import _numba, _parts, boxes

SCRIPT = """
import sys, types
if sys.argv[1] == "usual":
    plain = types.ModuleType("evenhand.projection._parts")
    plain.PartCompiler = plain.EntryCompiler = None
    sys.modules[plain.__name__] = plain
import numpy as np
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier
from evenhand import Closest
from evenhand.projection import _numba
assert ("pipeline_class" in _numba._PART) == (sys.argv[1] != "usual")
X, y = load_wine(return_X_y=True)
found = Closest("l1").fit(DecisionTreeClassifier(random_state=0).fit(X, y)).explain(X)
sys.stdout.write(found.counterfactual.tobytes().hex())
"""

PARTS = """
import sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from evenhand import Closest, HighDensity, Plausible
from evenhand.projection import _numba
sys.path.insert(0, sys.argv[1])
import mixed_tables
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
dense = HighDensity(components=[1])
X, y = load_wine(return_X_y=True)
if sys.argv[2] == "numbers":
    Plausible(dense).fit(LogisticRegression(max_iter=9).fit(X, y), X, y).explain(X[:1])
else:
    X, y = mixed_tables.people(200, seed=0)
    schema = mixed_tables.schema_of(X)
    method = Plausible(dense, schema=schema) if sys.argv[2] == "dense levels" else Closest(schema=schema)
    method.fit(mixed_tables.models(X, y)["logistic"], X, y).explain(X[:1])
found = {}
for name, module in sorted(sys.modules.items()):
    if name.startswith("evenhand.projection"):
        for value in vars(module).values():
            if isinstance(value, Dispatcher):
                found[f"{value.py_func.__module__}.{value.py_func.__name__}"] = len(value.signatures)
print(*(f"{name} {count}" for name, count in found.items()), sep="\\n")
"""


def answers(way: str, cache: Path) -> str:
    """What a fresh process with an empty cache answers."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, way], env=environment, check=True, capture_output=True, text=True
    ).stdout


def test_this_numba_has_what_the_part_compiler_needs() -> None:
    assert _parts.PartCompiler is not None


@pytest.mark.slow
def test_a_numba_without_it_gives_the_same_answers(tmp_path: Path) -> None:
    cheaper, usual = answers("cheaper", tmp_path / "a"), answers("usual", tmp_path / "b")
    assert len(cheaper) > 0
    assert cheaper == usual


def test_a_part_has_no_machine_code_of_its_own() -> None:
    X, y = load_wine(return_X_y=True)
    Closest("l1").fit(DecisionTreeClassifier(random_state=0).fit(X, y)).explain(X[:1])
    parts = [compiled for name in ("_distance", "_coordinate") for compiled in getattr(boxes, name).overloads.values()]
    for compiled in parts:  # none where the entry point came from the cache
        assert isinstance(compiled.library, _parts.PartLibrary)
    assert boxes._distance.targetoptions["no_cpython_wrapper"]
    assert _numba._PART["pipeline_class"] is _parts.PartCompiler


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "least"), [("numbers", 40), ("levels", 30), ("dense levels", 35)])
def test_a_part_is_compiled_once(problem: str, least: int, tmp_path: Path) -> None:
    """One signature for a problem: no constant, no layout and no type of its own makes numba compile a part again."""
    # Optimised or not, the signatures are the same.
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_OPT": "0"}
    tests = str(Path(__file__).parent)
    output = subprocess.run(
        [sys.executable, "-c", PARTS, tests, problem], env=environment, check=True, capture_output=True, text=True
    ).stdout
    counts = {name: int(count) for name, count in (line.split() for line in output.splitlines())}
    assert sum(count == 1 for count in counts.values()) >= least
    assert {name: count for name, count in counts.items() if count > 1} == {}
