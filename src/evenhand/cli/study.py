"""``evenhand study``; what it needs is imported when it runs, not for a help text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress

import evenhand
from evenhand.cli.options import Cluster, Jobs, Only, Out, Seed, refusing, workers_of
from evenhand.cli.progress import COLUMNS, Watch, say

if TYPE_CHECKING:
    from evenhand.study import Outcome, Study


def study(
    file: Annotated[Path, typer.Argument(help="A study in TOML; studies/paper.toml is one.")],
    out: Out = Path("results/study"),
    only: Only = None,
    jobs: Jobs = None,
    seed: Seed = None,
    cluster: Cluster = None,
) -> None:
    """Run a grid of data sets, models, methods and perturbations; finished cells are never run again."""
    from evenhand.study import StudyError, read_study

    console = Console(stderr=True)
    with refusing("study", console, StudyError):
        wanted = read_study(file)
        outcome = run_with_progress(wanted, out, only or [], jobs, seed, cluster, console)
        paths = write_results(outcome, out)
    again = f", {outcome.reused} of them found finished" if outcome.reused else ""
    say(
        console,
        f"{outcome.cells} cells{again}; {outcome.explained:,} counterfactuals in all; {outcome.seconds:.0f} s. "
        f"Results: {', '.join(str(path) for path in paths)}",
    )


def run_with_progress(
    study: Study, out: Path, only: list[str], jobs: int | None, seed: int | None, cluster: str | None, console: Console
) -> Outcome:
    """Run a study with a bar; `only` and `seed` are as on the command line."""
    from evenhand.study import StudyError, run_study

    known = list(dict.fromkeys(spec.name for spec in study.experiments))
    for name in only:
        if name not in known:
            raise StudyError(f"--only: there is no experiment {name!r}; there are {', '.join(known)}.")
    if seed is not None:
        study = replace(study, seed=seed)
    workers = workers_of(jobs, cluster, StudyError)
    with Progress(*COLUMNS, console=console, disable=not console.is_terminal, transient=True) as bar:
        watch = Watch(bar, out / "cells")

        def warn(text: str) -> None:
            say(console, text, "yellow")

        with watch:
            return run_study(
                study,
                out,
                version=evenhand.__version__,
                only=tuple(only),
                jobs=workers,
                cluster=cluster,
                report=watch.report,
                warn=warn,
            )


def write_results(outcome: Outcome, out: Path) -> list[Path]:
    """The draws as Parquet, medians with intervals as CSV, and what there is to know of the models as JSON.

    They are the same files however the results came about: in one run or several, on whichever workers.
    """
    from evenhand.study import StudyError, combined
    from evenhand.study.summaries import medians
    from evenhand.writing import WritingError, write_together

    table = combined(outcome.tables)
    models = [{**cell.keys(), **info} for cell, info in outcome.info.items()]
    contents: dict[str, str | bytes] = {
        "draws.parquet": table.to_parquet(index=False),
        "summary.csv": medians(table).to_csv(index=False, lineterminator="\n"),
        "summary.json": json.dumps({"version": evenhand.__version__, "cells": models}, indent=1, sort_keys=True) + "\n",
    }
    try:
        return write_together(out, contents)
    except WritingError as error:
        raise StudyError(f"{error} Cells that are finished are kept in {out / 'cells'}.") from None
