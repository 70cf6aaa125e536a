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
    import joblib

    from evenhand.projection import compile_kernels
    from evenhand.projection._cache import folder
    from evenhand.projection.warmup import KERNELS

    console = Console(stderr=True)
    began = time.perf_counter()
    calls = (joblib.delayed(compile_kernels)([name]) for name in KERNELS)  # the slowest first
    workers = joblib.Parallel(jobs or os.cpu_count() or 1, return_as="generator_unordered", batch_size=1)
    with Progress(*STAGE_COLUMNS, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("compiling solvers", total=len(KERNELS))
        for _ in workers(calls):
            bar.advance(task)
    seconds = time.perf_counter() - began
    say(console, f"{len(KERNELS)} solvers are ready ({seconds:.0f} s). They are kept in {folder()}.")
