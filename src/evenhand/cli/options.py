"""Options that several commands have, and how wrong use ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from evenhand.cli.ending import WRONG_USE
from evenhand.cli.progress import say

Out = Annotated[Path, typer.Option("--out", help="Folder for results and checkpoints.")]
Only = Annotated[list[str] | None, typer.Option("--only", help="Run only this experiment; may be given again.")]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Processes; all cores if left out.", min=1)]
Seed = Annotated[int | None, typer.Option("--seed", help="Instead of the seed in the file.", min=0)]
Trust = Annotated[bool, typer.Option("--trust-pickle", help="Open pickle and joblib files, which can run any code.")]
Cluster = Annotated[str | None, typer.Option("--cluster", help="Address of a Dask scheduler to send the work to.")]


@contextmanager
def refusing(command: str, console: Console, error: type[ValueError]) -> Iterator[None]:
    """Wrong use, wrong files and what cannot be written end with a sentence and exit code 2."""
    from evenhand.workers import WorkersError
    from evenhand.writing import WritingError

    try:
        yield
    except (error, WorkersError, WritingError) as refusal:
        say(console, f"evenhand {command}: {refusal}", "red")
        raise typer.Exit(WRONG_USE) from None
    except (EOFError, BrokenPipeError) as broken:  # of code that was called: to a command line they mean "aborted"
        raise RuntimeError(f"{type(broken).__name__}: {broken}") from broken


def workers_of(jobs: int | None, cluster: str | None, error: type[ValueError]) -> int:
    """How many processes to use; a cluster has its own."""
    if cluster is not None and jobs is not None:
        raise error("--jobs and --cluster exclude each other: a cluster has as many workers as it has.")
    return (os.cpu_count() or 1) if jobs is None else jobs
