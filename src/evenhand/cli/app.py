"""The command line: evenhand audit, init, reproduce, study and warmup."""

from __future__ import annotations

import logging
import os
import sys
from typing import Annotated

import typer

import evenhand
from evenhand.cli.audit import audit, init
from evenhand.cli.reproduce import reproduce
from evenhand.cli.study import study, write_results
from evenhand.cli.warmup import warmup

__all__ = ["app", "main", "write_results"]

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help=__doc__, rich_markup_mode=None, pretty_exceptions_enable=False
)


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


for command in (audit, init, study, reproduce, warmup):
    app.command()(command)


def main() -> None:
    """Run the command line."""
    os.environ["EVENHAND_SPEAKER"] = str(os.getpid())  # of several processes that compile, only this one says so
    if not sys.stderr.isatty():
        logging.getLogger("evenhand").setLevel(logging.ERROR)
    sys.exit(app())
