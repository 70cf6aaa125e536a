"""The command line: evenhand audit, init, reproduce and study."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

import evenhand
from evenhand.auditing import Audit, AuditError
from evenhand.auditing.audit_file import read_audit
from evenhand.auditing.commands import audit_demo, audit_files, write_first_file
from evenhand.auditing.result import MARKS
from evenhand.parallel import WorkersError
from evenhand.reproduce.paper import EXPERIMENTS, cells_of, paper_study
from evenhand.reproduce.paper import reproduce as write_paper
from evenhand.study import Done, Outcome, Study, StudyError, combined, read_study, run_study
from evenhand.study.summaries import medians

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__, rich_markup_mode=None)
WRONG_USE, INCOMPLETE = 2, 3

Out = Annotated[Path, typer.Option("--out", help="Folder for results and checkpoints.")]
Only = Annotated[list[str] | None, typer.Option("--only", help="Run only this experiment; may be given again.")]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Processes; all cores if left out.", min=1)]
Seed = Annotated[int | None, typer.Option("--seed", help="Instead of the seed in the file.", min=0)]
Trust = Annotated[bool, typer.Option("--trust-pickle", help="Open pickle and joblib files, which can run any code.")]
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
def audit(
    file: Annotated[Path | None, typer.Argument(help="An audit in TOML; `evenhand init` writes one.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Audit synthetic loan applications; needs no file.")] = False,
    clean: Annotated[bool, typer.Option("--clean", help="With --demo: without the planted problems.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the report, instead of the file's.")] = None,
    trust_pickle: Trust = False,
    redact: Annotated[bool, typer.Option("--redact", help="Leave ids and values out of the report.")] = False,
    jobs: Jobs = None,
    seed: Seed = None,
    cluster: Cluster = None,
) -> None:
    """Audit a model's explanations: one command to a report and a pass or fail.

    Exit code: 0 passed, 1 a gate failed, 2 wrong usage or configuration, 3 undecided.
    """
    console = Console(stderr=True)
    began = time.perf_counter()
    changes = ({"redact": True} if redact else {}) | ({} if seed is None else {"seed": seed})
    with _refusing("audit", console, AuditError), _completing(console):
        if demo == (file is not None):
            raise AuditError("Name either an audit file or --demo; `evenhand init` writes a first file.")
        if clean and not demo:
            raise AuditError("--clean is a variant of --demo.")
        workers = _workers(jobs, cluster, AuditError)
        with _stages(console) as report:
            if file is None:
                folder = out or Path("results/audit")
                found = audit_demo(folder, clean=clean, jobs=workers, cluster=cluster, progress=report, changes=changes)
            else:
                wanted = read_audit(file)
                wanted = replace(wanted, out=out or wanted.out)
                folder = wanted.out
                found = audit_files(
                    wanted,
                    trust_pickle=trust_pickle,
                    jobs=workers,
                    cluster=cluster,
                    progress=report,
                    warn=lambda text: _say(console, text, "yellow"),
                    changes=changes,
                )
            report("writing the report", 0, 0)
            paths = found.write(folder)
    _show_gates(found, console)
    _say(console, f"Report: {paths[0]} ({time.perf_counter() - began:.0f} s)")
    raise typer.Exit(found.exit_code)


@app.command()
def init(
    model: Annotated[str, typer.Argument(help="A model: .skops, .onnx, a pickle, or module:attribute.")],
    data: Annotated[Path, typer.Argument(help="People: .csv or .parquet.")],
    out: Annotated[Path, typer.Option("--out", help="The file to write.")] = Path("audit.toml"),
    trust_pickle: Trust = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Write a commented audit file for a model and a table."""
    console = Console(stderr=True)
    with _refusing("init", console, AuditError):
        loaded = write_first_file(model, data, out, trust_pickle=trust_pickle, force=force)
    if loaded.warning:
        _say(console, loaded.warning, "yellow")
    _say(console, f"Wrote {out}. Look through it, then run: evenhand audit {out}")


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
    with _refusing("study", console, StudyError):
        wanted = read_study(file)
        outcome = _run(wanted, out, only or [], jobs, seed, cluster, console)
    paths = write_results(outcome, out)
    again = f", {outcome.reused} of them found finished" if outcome.reused else ""
    _say(
        console,
        f"{outcome.cells} cells{again}; {outcome.explained:,} counterfactuals in all; {outcome.seconds:.0f} s. "
        f"Results: {', '.join(str(path) for path in paths)}",
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
    with _refusing("reproduce", console, StudyError):
        for name in only or []:
            if name not in EXPERIMENTS:
                raise StudyError(f"--only: there is no {name!r}; there are {', '.join(EXPERIMENTS)}.")
        wanted = paper_study(seed)
        parts = cells_of(tuple(only or []))
        nothing_but_theorems = bool(only) and not parts
        outcome = None if nothing_but_theorems else _run(wanted, out, list(parts), jobs, None, cluster, console)
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
    _say(console, f"{text}.")
    _say(console, f"Page: {out / 'report.html'}")


def _say(console: Console, text: str, style: str | None = None) -> None:
    """A sentence as it is: no markup in it, and no line broken inside of a path."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _refusing(command: str, console: Console, error: type[ValueError]) -> Iterator[None]:
    """Wrong use and wrong files end with a sentence and exit code 2."""
    try:
        yield
    except (error, WorkersError) as found:
        _say(console, f"evenhand {command}: {found}", "red")
        raise typer.Exit(WRONG_USE) from None


def _workers(jobs: int | None, cluster: str | None, error: type[ValueError]) -> int:
    if cluster is not None and jobs is not None:
        raise error("--jobs and --cluster exclude each other: a cluster has as many workers as it has.")
    return (os.cpu_count() or 1) if jobs is None else jobs


@contextmanager
def _completing(console: Console) -> Iterator[None]:
    """What nobody expected ends with its traceback and exit code 3: 1 would say that a gate failed."""
    try:
        yield
    except (AuditError, WorkersError, typer.Exit):
        raise
    except Exception:  # noqa: BLE001 - shown in full
        console.print_exception()
        _say(console, "evenhand audit: the audit is incomplete because of a defect in evenhand or in the model.", "red")
        raise typer.Exit(INCOMPLETE) from None


@contextmanager
def _stages(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """A bar per stage of an audit; without a terminal a line when a stage begins."""
    with Progress(*STAGE_COLUMNS, console=console, disable=not console.is_terminal, transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                if not console.is_terminal:
                    _say(console, f"{stage} ...")
                for task in tasks.values():
                    bar.update(task, visible=False)
                tasks[stage] = bar.add_task(stage, total=total or None)
            bar.update(tasks[stage], completed=done, total=total or None)

        yield report


def _show_gates(found: Audit, console: Console) -> None:
    verdict = found.content["verdict"]
    table = Table(box=None, pad_edge=False)
    for name in ("", "gate", "value", "95% interval", "of"):
        table.add_column(name, overflow="fold", no_wrap=name in ("", "gate"))
    styles = {"pass": "green", "fail": "bold red", "undecided": "yellow"}
    for one in found.content["gates"]:
        low, value, high = (one["interval"][end] for end in ("low", "value", "high"))
        shown = ["–" if end is None else f"{end:.3g}" for end in (value, low, high)]
        cells = (one["gate"], shown[0], f"{shown[1]} to {shown[2]}", one["of"] or one["why"] or "")
        table.add_row(Text(MARKS[one["result"]], style=styles[one["result"]]), *(Text(cell) for cell in cells))
    console.print(table)
    for note in found.content["notes"]:
        _say(console, f"Note: {note}")
    _say(
        console,
        f"{found.result.capitalize()}: {verdict['passed']} gates passed, {verdict['failed']} failed, "
        f"{verdict['undecided']} undecided. {verdict['title']}.",
        "bold",
    )


def _run(
    study: Study, out: Path, only: list[str], jobs: int | None, seed: int | None, cluster: str | None, console: Console
) -> Outcome:
    known = list(dict.fromkeys(spec.name for spec in study.experiments))
    for name in only:
        if name not in known:
            raise StudyError(f"--only: there is no experiment {name!r}; there are {', '.join(known)}.")
    if seed is not None:
        study = replace(study, seed=seed)
    workers = _workers(jobs, cluster, StudyError)
    with Progress(*COLUMNS, console=console, disable=not console.is_terminal, transient=True) as bar:
        watch = _Watch(bar, out / "cells")

        def warn(text: str) -> None:
            _say(console, text, "yellow")

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


STAGE_COLUMNS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())


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
