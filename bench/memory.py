"""Peak memory of explaining a million people: digits, softmax, closest, l1.

Run as ``python bench/memory.py``, with another number of people behind it if you like.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import resource
import sys
import time

import numpy as np
from problems import Case, FloatArray, explainer, split

from evenhand import Explainer

LIMIT = 2.0  # GB


def main() -> None:
    """Explain a million people twice and report the peak."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    explain = explainer(Case("digits", "softmax", "closest", "l1"))
    explain.explain(split("digits")[2][:100])  # compiles the kernels
    print(f"Before: peak {_peak():.2f} GB.")
    crowd = _crowd(n)
    print(f"With {n:,} people of {crowd.shape[1]} features in memory: peak {_peak():.2f} GB.")
    _run(explain, crowd, 3)
    _run(explain, crowd, None)
    verdict = "met" if _peak() < LIMIT else "MISSED"
    print(f"Target: below {LIMIT:g} GB; got {_peak():.2f} GB: {verdict}")


def _crowd(n: int) -> FloatArray:
    """Test points plus noise, made in place."""
    rng = np.random.default_rng(0)
    test = split("digits")[2]
    crowd = np.empty((n, test.shape[1]))
    rng.standard_normal(out=crowd)
    for start in range(0, n, len(test)):
        part = crowd[start : start + len(test)]
        part += test[: len(part)]
    return crowd


def _run(explain: Explainer, crowd: FloatArray, target: int | None) -> None:
    start = time.process_time()
    found = explain.explain(crowd, target=target, progress=_progress)
    seconds = time.process_time() - start
    print(
        f"target={target}: {len(crowd) / seconds:,.0f} counterfactuals/s, {np.mean(found.valid):.3%} valid, "
        f"peak {_peak():.2f} GB."
    )


def _progress(done: int, total: int) -> None:
    print(f"\r{done / total:6.1%}", end="\n" if done == total else "", file=sys.stderr, flush=True)


def _peak() -> float:
    """Largest resident memory of the process so far, in GB; Linux counts in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main()
