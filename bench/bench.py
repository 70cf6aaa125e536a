"""Time the projections against a modelling language: one table, one run, one core.

    python bench/bench.py [--quick] [--markdown]

A pair solve is one query and one piece.  Times are CPU times: the best of three for pair solves, the best of
two for complete counterfactuals (bounds, pruning, all pieces, and the check by the model's own predict).
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

from measure import Effort, Row, measured
from problems import Case, explainer, people

FULL = Effort(seconds=0.3, queries=5000, compared=12, people=100_000)
QUICK = Effort(seconds=0.05, queries=1000, compared=4, people=10_000)

CASES = [
    Case(data, model, method, cost)
    for data, model, method in (
        ("breast cancer", "softmax", "closest"),
        ("digits", "softmax", "closest"),
        ("digits", "GLVQ", "closest"),
        ("wine", "tree", "closest"),
        ("digits", "tree", "closest"),
        ("digits", "softmax", "plausible"),
        ("digits", "GLVQ", "plausible"),
        ("digits", "tree", "plausible"),
        ("wine", "softmax", "plausible"),
        ("breast cancer", "softmax", "plausible"),
    )
    for cost in ("l1", "l2")
]

Wanted = tuple[str, Callable[[Case], bool], Callable[[Row], float], float]
TARGETS: list[Wanted] = [
    ("ratio, closest", lambda c: c.method == "closest", lambda r: r.ratio, 1000),
    ("ratio, plausible l2", lambda c: c.method == "plausible" and c.cost == "l2", lambda r: r.ratio, 1000),
    (
        "ratio, plausible l1, digits",
        lambda c: (c.method, c.cost) == ("plausible", "l1") and c.data == "digits",
        lambda r: r.ratio,
        100,
    ),
    (
        "ratio, plausible l1, wine and breast cancer",
        lambda c: (c.method, c.cost) == ("plausible", "l1") and c.data != "digits",
        lambda r: r.ratio,
        500,
    ),
    *(
        (f"counterfactuals/s, {case}", lambda c, case=case: c == case, lambda r: r.complete, rate)
        for case, rate in (
            (Case("digits", "softmax", "closest", "l1"), 100_000),
            (Case("digits", "GLVQ", "closest", "l1"), 30_000),
            (Case("digits", "softmax", "plausible", "l1"), 1500),
            (Case("digits", "softmax", "plausible", "l2"), 8000),
        )
    ),
]
LARGEST_GAP = 1e-7

HEAD = (
    "problem",
    "pair solves/s",
    "cvxpy + Clarabel, ms",
    "ratio",
    "counterfactuals/s",
    "largest gap",
    "difference to cvxpy",
    "not optimal",
)

START = """
import time
import evenhand
began = time.process_time()
box = evenhand.sets.ConvexSet(1, lower=[1.0])
halfspace = evenhand.sets.ConvexSet(1, G=[[-1.0]], h=[-1.0])
for piece in (box, halfspace):
    evenhand.projection.project([[0.0]], evenhand.sets.Region([piece]))
print(time.process_time() - began)
"""


def main() -> None:
    """Run the benchmark."""
    options = _options()
    began = time.perf_counter()
    effort = QUICK if options.quick else FULL
    rows = []
    for number, case in enumerate(CASES, start=1):
        print(f"{number}/{len(CASES)} {case}", file=sys.stderr)
        rows.append(measured(case, effort))
    _print_table([_cells(row) for row in rows], markdown=options.markdown)
    handed_over = ", ".join(f"{row.case} {row.unsolved:.2%}" for row in rows if row.unsolved > 0)
    print(f"\nPair solves that the kernels would hand to a library: {handed_over or 'none'}.")
    print(_start_times())
    print(_threads(effort))
    print("\nTargets:")
    for line in _verdicts(rows):
        print(f"- {line}")
    print(f"\nTook {time.perf_counter() - began:.0f} s.")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer queries: a look, not a measurement")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    return parser.parse_args()


def _cells(row: Row) -> tuple[str, ...]:
    return (
        str(row.case),
        f"{row.pairs:,.0f}",
        f"{1e3 * row.reference:.1f}",
        f"{row.ratio:,.0f}",
        f"{row.complete:,.0f}",
        f"{row.gap:.0e}",
        f"{row.difference:.0e}",
        f"{row.not_optimal:.3%}",
    )


def _print_table(rows: Sequence[Sequence[str]], *, markdown: bool) -> None:
    widths = [max(map(len, column)) for column in zip(HEAD, *rows, strict=True)]
    left, between, right = ("| ", " | ", " |") if markdown else ("", "  ", "")
    rule = ["-" * widths[0]] + ["-" * (width - markdown) + ":" * markdown for width in widths[1:]]
    for cells in (HEAD, rule, *rows):
        padded = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
        padded[0] = cells[0].ljust(widths[0])
        print(left + between.join(padded) + right)


def _verdicts(rows: list[Row]) -> list[str]:
    """One line per target, decided by the worst row that it is about."""
    lines = []
    for name, about, measure, least in TARGETS:
        worst = min((row for row in rows if about(row.case)), key=measure)
        verdict = "met" if measure(worst) >= least else f"MISSED by {worst.case}"
        lines.append(f"{name}: at least {least:,}; got {measure(worst):,.0f}: {verdict}")
    widest = max(rows, key=lambda row: row.gap)
    verdict = "met" if widest.gap <= LARGEST_GAP else f"MISSED by {widest.case}"
    return [*lines, f"relative certified gap: at most {LARGEST_GAP:.0e}; got {widest.gap:.0e}: {verdict}"]


def _start_times() -> str:
    """What the first projection of a process waits for the kernels."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        cold, cached = (
            float(subprocess.check_output([sys.executable, "-c", START], env=environment, text=True)) for _ in range(2)
        )
    return f"First projection of a process: {cold:.1f} s to compile the kernels, {cached:.1f} s from disk (CPU)."


def _threads(effort: Effort) -> str:
    """Wall time of one thread against all, the best of two each."""
    case = Case("digits", "GLVQ", "closest", "l1")
    explain, crowd = explainer(case), people(case.data, effort.people)
    explain.explain(crowd[:1000], target="random", random_state=0)
    seconds = {1: float("inf"), -1: float("inf")}
    for n_jobs in (1, -1, 1, -1):
        start = time.perf_counter()
        explain.explain(crowd, target="random", random_state=0, n_jobs=n_jobs)
        seconds[n_jobs] = min(seconds[n_jobs], time.perf_counter() - start)
    return (
        f"Threads, {case}: {len(crowd) / seconds[1]:,.0f} counterfactuals/s with one, "
        f"{len(crowd) / seconds[-1]:,.0f} with all {os.cpu_count()} cores ({seconds[1] / seconds[-1]:.2f}x, wall time)."
    )


if __name__ == "__main__":
    main()
