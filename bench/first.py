"""Time the first answer of a new installation: from an empty cache, and the import.

    python bench/first.py [--parts]

Each answer is that of a fresh process with an empty cache of kernels; CPU seconds, of `fit` and `explain` alone, and
whole with the imports of scikit-learn and pandas.  The import of evenhand is measured above scikit-learn and pandas,
and `evenhand --help` as a whole; both are the median of several processes.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
GOALS = {"tree": 3.0, "linear": 8.0, "plausible": 20.0, "raw": 15.0}  # CPU seconds
IMPORT, HELP = 0.2, 0.5  # seconds
TIMES = 7  # processes that are timed for an import

ANSWER = """
import sys, time
import numpy as np, pandas as pd, sklearn.linear_model, sklearn.tree
from sklearn.datasets import load_breast_cancer
sys.path.insert(0, sys.argv[2])
import evenhand
from evenhand import Closest, Plausible
began = time.process_time()
kind = sys.argv[1]
X, y = load_breast_cancer(return_X_y=True)
if kind == "tree":
    model = sklearn.tree.DecisionTreeClassifier(random_state=0).fit(X, y)
else:
    model = sklearn.linear_model.LogisticRegression(C=1e-3, max_iter=9).fit(X / X.std(0), y)
if kind == "raw":
    import mixed_tables
    X, y = mixed_tables.people(300, 0)
    model = mixed_tables.models(X, y)["logistic"]
    began = time.process_time()
    explainer = Closest(schema=mixed_tables.schema_of(X)).fit(model, X, y)
elif kind == "plausible":
    began = time.process_time()
    explainer = Plausible(cost="l1").fit(model, X / X.std(0), y)
    X = X / X.std(0)
else:
    began = time.process_time()
    explainer = Closest("l1").fit(model)
found = explainer.explain(X[:5], "random", random_state=0)
assert found.valid.all()
print("seconds", time.process_time() - began, time.process_time())
"""

PARTS = """
import atexit, collections
from numba.core import event
class Listener(event.Listener):
    def __init__(self): self.stack, self.own, self.count = [], collections.Counter(), collections.Counter()
    def on_start(self, e):
        name = e.data["dispatcher"].py_func.__qualname__
        self.stack.append([name, time.process_time(), 0.0])
    def on_end(self, e):
        name, began, inner = self.stack.pop()
        whole = time.process_time() - began
        self.own[name] += whole - inner
        self.count[name] += 1
        if self.stack: self.stack[-1][2] += whole
import time
listener = Listener()
event.register("numba:compile", listener)
@atexit.register
def report():
    for name, own in listener.own.most_common(45):
        print(f"    {own:6.2f} s  {listener.count[name]} x  {name}")
    print(f"    {sum(listener.count.values())} compilations")
"""


def main() -> None:
    """Print what each first answer takes, and whether the goals are met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", action="store_true", help="say what is compiled, and how long that takes")
    parser.add_argument("kinds", nargs="*", help=f"some of {', '.join(GOALS)}; all of them unless named")
    options = parser.parse_args()
    for kind in options.kinds or GOALS:
        alone, whole, parts = first_answer(kind, options.parts)
        verdict = verdict_of(alone <= GOALS[kind])
        print(f"first answer, {kind}: {alone:.1f} s CPU, {whole:.1f} with imports; at most {GOALS[kind]:g}: {verdict}")
        print(parts, end="")
    if not options.kinds:
        above = timed("import sklearn, pandas, evenhand") - timed("import sklearn, pandas")
        verdict = verdict_of(above <= IMPORT)
        print(f"import evenhand, above sklearn and pandas: {above:.2f} s; at most {IMPORT}: {verdict}")
        helped = timed("import sys; sys.argv = ['evenhand', '--help']; from evenhand.cli.command import main; main()")
        print(f"evenhand --help: {helped:.2f} s; at most {HELP}: {verdict_of(helped <= HELP)}")


def verdict_of(met: bool) -> str:
    """How a goal ended."""
    return "met" if met else "MISSED"


def first_answer(kind: str, parts: bool) -> tuple[float, float, str]:
    """CPU seconds of a first answer, the same with all imports, and what was compiled."""
    cache = tempfile.mkdtemp()
    try:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "OPENBLAS_NUM_THREADS": "1"}
        source = PARTS + ANSWER if parts else ANSWER
        command = [sys.executable, "-c", source, kind, str(ROOT / "tests")]
        output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    finally:
        shutil.rmtree(cache)
    found = re.search(r"^seconds (\S+) (\S+)\n", output, re.MULTILINE)
    assert found is not None, output
    return float(found[1]), float(found[2]), output.replace(found[0], "")


def timed(source: str) -> float:
    """Median seconds of a process that runs `source`, its start included."""
    seconds = []
    for _ in range(TIMES):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", source], check=True, capture_output=True)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


if __name__ == "__main__":
    main()
