"""The entry point of the command line, which says what to install if that is missing."""

from __future__ import annotations

import sys

NEEDED = ("altair", "jinja2", "pyarrow", "rich", "typer", "vl_convert")


def main() -> None:
    """Run ``evenhand``."""
    try:
        from evenhand.cli.app import main as run
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        sys.exit(f"The command line needs {error.name}: pip install 'evenhand[audit]'.")
    run()
