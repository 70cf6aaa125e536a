"""The command line: evenhand reproduce, and evenhand study FILE.toml."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import evenhand
from evenhand.reproduce.paper import EXPERIMENTS, cells_of, paper_study
from evenhand.reproduce.paper import reproduce as write_paper
from evenhand.study import Done, Outcome, Study, StudyError, combined, read_study, run_study
from evenhand.study.summaries import medians

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__, rich_markup_mode=None)
WRONG_USE = 2

Out = Annotated[Path, typer.Option("--out", help="Folder for results and checkpoints.")]
Only = Annotated[list[str] | None, typer.Option("--only", help="Run only this experiment; may be given again.")]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Processes; all cores if left out.", min=1)]
Seed = Annotated[int | None, typer.Option("--seed", help="Instead of the seed in the file.", min=0)]
Cluster = Annotated[str | None, typer.Option("--cluster", help="Address of a Dask scheduler to send the work to.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(evenhand.__version__)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Measure whether people who are almost alike get almost the same explanation."""


@app.command()
def study(
    file: Annotated[Path, typer.Argument(help="A study in TOML; studies/paper.toml is one.")],
    out: Out = Path("results/study"),
    only: Only = None,
    jobs: Jobs = None,
    seed: Seed = None,
    cluster: Cluster = None,
) -> None:
    """Run a grid of data sets, models, methods and perturbations; finished cells are never run again."""
    console = Console(stderr=True)
    try:
        wanted = read_study(file)
        outcome = _run(wanted, out, only or [], jobs, seed, cluster, console)
    except StudyError as error:
        console.print(f"evenhand study: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(WRONG_USE) from None
    paths = write_results(outcome, out)
    again = f", {outcome.reused} of them found finished" if outcome.reused else ""
    console.print(
        f"{outcome.cells} cells{again}; {outcome.explained:,} counterfactuals in all; {outcome.seconds:.0f} s. "
        f"Results: {', '.join(str(path) for path in paths)}",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )


@app.command()
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
    console = Console(stderr=True)
    try:
        for name in only or []:
            if name not in EXPERIMENTS:
                raise StudyError(f"--only: there is no {name!r}; there are {', '.join(EXPERIMENTS)}.")
        wanted = paper_study(seed)
        parts = cells_of(tuple(only or []))
        nothing_but_theorems = bool(only) and not parts
        outcome = None if nothing_but_theorems else _run(wanted, out, list(parts), jobs, None, cluster, console)
    except StudyError as error:
        console.print(f"evenhand reproduce: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(WRONG_USE) from None
    with console.status("writing tables, figures and the page"):
        found = write_paper(wanted, outcome, out, tuple(only or []))
    run = found["run"]
    text = f"{run['cells']:,} cells, {run['counterfactuals']:,} counterfactuals, {run['seconds']:.0f} s"
    if "table1" in found:
        cells = found["table1"]
        text += (
            f". Table 1: {cells['same_order']} of {cells['cells']} cells keep the paper's order, "
            f"{cells['closest_close']} of {cells['cells']} closest medians are within 5 %"
        )
    console.print(f"{text}.", soft_wrap=True, highlight=False, markup=False)
    console.print(f"Page: {out / 'report.html'}", soft_wrap=True, highlight=False, markup=False)


def _run(
    study: Study, out: Path, only: list[str], jobs: int | None, seed: int | None, cluster: str | None, console: Console
) -> Outcome:
    known = list(dict.fromkeys(spec.name for spec in study.experiments))
    for name in only:
        if name not in known:
            raise StudyError(f"--only: there is no experiment {name!r}; there are {', '.join(known)}.")
    if seed is not None:
        study = replace(study, seed=seed)
    if cluster is not None and jobs is not None:
        raise StudyError("--jobs and --cluster exclude each other: a cluster has as many workers as it has.")
    workers = (os.cpu_count() or 1) if jobs is None else jobs
    with Progress(*COLUMNS, console=console, disable=not console.is_terminal, transient=True) as bar:
        watch = _Watch(bar, out / "cells")

        def warn(text: str) -> None:
            console.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)

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


COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(),
    MofNCompleteColumn(),
    TextColumn("{task.fields[rate]}"),
    TimeRemainingColumn(),
)


class _Watch:
    """Keeps the bar alive between reports: workers report in groups, but every finished cell is a file at once."""

    def __init__(self, bar: Progress, folder: Path) -> None:
        self.bar, self.folder = bar, folder
        self.task = bar.add_task("compiling solvers, fitting densities", total=None, rate="")
        self.began, self.before = time.perf_counter(), len(list(folder.glob("*.parquet")))
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._poll, daemon=True)

    def report(self, done: Done, number: int, total: int) -> None:
        """A cell is finished."""
        self.bar.update(self.task, description=str(done.cell), completed=number, total=total)

    def _poll(self) -> None:
        while not self.stopped.wait(0.5):
            files = sorted(self.folder.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
            new = len(files) - self.before
            if new > 0:
                rate = f"{new / (time.perf_counter() - self.began):.1f} cells/s"
                self.bar.update(self.task, description=files[-1].stem.rsplit("-", 1)[0], rate=rate)

    def __enter__(self) -> _Watch:
        if not self.bar.disable:
            self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        if self.thread.is_alive():
            self.thread.join()


def write_results(outcome: Outcome, out: Path) -> list[Path]:
    """The draws as Parquet, medians with intervals as CSV, and how it was run as JSON."""
    out.mkdir(parents=True, exist_ok=True)
    table = combined(outcome.tables)
    table.to_parquet(out / "draws.parquet", index=False)
    medians(table).to_csv(out / "summary.csv", index=False, lineterminator="\n")
    models = [{**cell.keys(), **info} for cell, info in outcome.info.items()]
    content = {"version": evenhand.__version__, "cells": models, "damaged": outcome.damaged}
    (out / "summary.json").write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return [out / name for name in ("draws.parquet", "summary.csv", "summary.json")]


def main() -> None:
    """Run the command line."""
    sys.exit(app())
