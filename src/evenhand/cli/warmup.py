"""``evenhand warmup``; what it needs is imported when it runs, not for a help text."""

from __future__ import annotations

import os
import time

from rich.console import Console
from rich.progress import Progress

from evenhand.cli.options import Jobs
from evenhand.cli.progress import STAGE_COLUMNS, say


def warmup(jobs: Jobs = None) -> None:
    """Compile all solvers now, so that nobody waits for a compiler later; in images and before CI jobs, for example."""
    from evenhand.projection import compile_kernels
    from evenhand.projection._cache import folder
    from evenhand.projection.warmup import KERNELS
    from evenhand.workers import Task, backend, run_all

    console = Console(stderr=True)
    began = time.perf_counter()
    parts = [Task(compile_kernels, ([name],), name) for name in KERNELS]  # the slowest first
    columns = Progress(*STAGE_COLUMNS, console=console, disable=not console.is_terminal, transient=True)
    with columns as bar, backend(jobs or os.cpu_count() or 1, None):
        task = bar.add_task("compiling solvers", total=len(parts))
        for _ in run_all(parts, ordered=False):
            bar.advance(task)
    seconds = time.perf_counter() - began
    say(console, f"{len(KERNELS)} solvers are ready ({seconds:.0f} s). They are kept in {folder()}.")
