"""``evenhand reproduce``; what it needs is imported when it runs, not for a help text."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console

from evenhand.cli.options import Cluster, Jobs, Only, Out, Seed, refusing
from evenhand.cli.progress import say
from evenhand.cli.study import run_with_progress


def reproduce(
    out: Out = Path("results/paper"),
    only: Only = None,
    jobs: Jobs = None,
    seed: Seed = None,
    cluster: Cluster = None,
) -> None:
    """Run the evaluation of the founding paper (Artelt 2021), and put every published number next to ours on one page.

    Parts for --only: table1, curse, masking, sensitivity, theorems.
    """
    from evenhand.reproduce.paper import EXPERIMENTS, cells_of, paper_study, possible_files
    from evenhand.reproduce.paper import reproduce as write_paper
    from evenhand.study import StudyError
    from evenhand.writing import check_writable

    console = Console(stderr=True)
    began = time.perf_counter()
    with refusing("reproduce", console, StudyError):
        for name in only or []:
            if name not in EXPERIMENTS:
                raise StudyError(f"--only: there is no {name!r}; there are {', '.join(EXPERIMENTS)}.")
        check_writable(out, possible_files())
        wanted = paper_study(seed)
        parts = cells_of(tuple(only or []))
        nothing_but_theorems = bool(only) and not parts
        outcome = (
            None if nothing_but_theorems else run_with_progress(wanted, out, list(parts), jobs, None, cluster, console)
        )
        with console.status("writing tables, figures and the page"):
            summary = write_paper(wanted, outcome, out, tuple(only or []))
    run = summary["run"]
    text = f"{run['cells']:,} cells, {run['counterfactuals']:,} counterfactuals, {time.perf_counter() - began:.0f} s"
    if "table1" in summary:
        cells = summary["table1"]
        text += (
            f". Table 1: {cells['same_order']} of {cells['cells']} cells keep the paper's order, "
            f"{cells['closest_close']} of {cells['cells']} closest medians are within 5 %"
        )
    say(console, f"{text}.")
    say(console, f"Page: {out / 'report.html'}")
