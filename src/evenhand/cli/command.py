"""The entry point of the command line, which says what to install if that is missing."""

from __future__ import annotations

import sys

from evenhand.cli.ending import run

NEEDED = ("altair", "jinja2", "pyarrow", "rich", "typer", "vl_convert")


def main() -> None:
    """Run ``evenhand``."""
    run(_command)


def _command() -> None:
    try:
        from evenhand.cli.app import main as command
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        sys.exit(f"The command line needs {error.name}: pip install 'evenhand[audit]'.")
    command()
