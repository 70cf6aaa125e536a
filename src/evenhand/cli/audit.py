"""``evenhand audit`` and ``evenhand init``; what they need is imported when they run, not for a help text."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evenhand.cli.options import Cluster, Jobs, Seed, Trust, refusing, workers_of
from evenhand.cli.progress import say, stages

if TYPE_CHECKING:
    from evenhand.auditing import Audit


NARROW = 60  # columns of a terminal in which no table has room


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

    Exit code: 0 passed, 1 a gate failed, 2 wrong use, files or surroundings, 3 undecided, 4 a defect.
    """
    from evenhand.auditing import AuditError
    from evenhand.auditing.audit_file import read_audit
    from evenhand.auditing.commands import audit_demo, audit_files

    console = Console(stderr=True)
    began = time.perf_counter()
    changes = ({"redact": True} if redact else {}) | ({} if seed is None else {"seed": seed})
    with refusing("audit", console, AuditError):
        if demo == (file is not None):
            raise AuditError("Name either an audit file or --demo; `evenhand init` writes a first file.")
        if clean and not demo:
            raise AuditError("--clean is a variant of --demo.")
        workers = workers_of(jobs, cluster, AuditError)
        with stages(console) as report:
            if file is None:
                folder = out or Path("results/audit")
                result = audit_demo(
                    folder, clean=clean, jobs=workers, cluster=cluster, progress=report, changes=changes
                )
            else:
                wanted = read_audit(file)
                wanted = replace(wanted, out=out or wanted.out)
                folder = wanted.out
                result = audit_files(
                    wanted,
                    trust_pickle=trust_pickle,
                    jobs=workers,
                    cluster=cluster,
                    progress=report,
                    warn=lambda text: say(console, text, "yellow"),
                    changes=changes,
                )
            report("writing the report", 0, 0)
            paths = result.write(folder)
    _show_gates(result, console)
    say(console, f"Report: {paths[0]} ({time.perf_counter() - began:.0f} s)")
    raise typer.Exit(result.exit_code)


def init(
    model: Annotated[str, typer.Argument(help="A model: .skops, .onnx, a pickle, or module:attribute.")],
    data: Annotated[Path, typer.Argument(help="People: .csv or .parquet.")],
    out: Annotated[Path, typer.Option("--out", help="The file to write.")] = Path("audit.toml"),
    trust_pickle: Trust = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Write a commented audit file for a model and a table."""
    from evenhand.auditing import AuditError
    from evenhand.auditing.commands import write_first_file

    console = Console(stderr=True)
    with refusing("init", console, AuditError):
        loaded = write_first_file(model, data, out, trust_pickle=trust_pickle, force=force)
    if loaded.warning:
        say(console, loaded.warning, "yellow")
    say(console, f"Wrote {out}. Look through it, then run: evenhand audit {out}")


def _show_gates(result: Audit, console: Console) -> None:
    from evenhand.auditing.result import MARKS

    verdict = result.content["verdict"]
    table = Table(box=None, pad_edge=False)
    for name in ("", "gate", "value", "95% interval", "of"):
        table.add_column(name, overflow="fold", no_wrap=name in ("", "gate"))
    narrow = console.width < NARROW
    styles = {"pass": "green", "fail": "bold red", "undecided": "yellow"}
    for gate in result.content["gates"]:
        low, value, high = (gate["interval"][end] for end in ("low", "value", "high"))
        shown = ["–" if end is None else f"{end:.3g}" for end in (value, low, high)]
        cells = (gate["gate"], shown[0], f"{shown[1]} to {shown[2]}", gate["of"] or gate["why"] or "")
        if narrow:
            say(console, " ".join([MARKS[gate["result"]], *cells]), styles[gate["result"]])
        table.add_row(Text(MARKS[gate["result"]], style=styles[gate["result"]]), *(Text(cell) for cell in cells))
    if not narrow:
        console.print(table)
    for note in result.content["notes"]:
        say(console, f"Note: {note}")
    say(
        console,
        f"{result.result.capitalize()}: {verdict['passed']} gates passed, {verdict['failed']} failed, "
        f"{verdict['undecided']} undecided. {verdict['title']}.",
        "bold",
    )
