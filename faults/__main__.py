"""``python -m faults``: the whole campaign; ``--short`` for a few cases of each kind."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator

from faults.base import Outcome, report

CAMPAIGNS = ("checkpoints", "studies", "disks", "cluster", "audits")


def outcomes(short: bool, names: tuple[str, ...] = CAMPAIGNS) -> Iterator[Outcome]:
    """What came of every fault, campaign by campaign."""
    for name in names:
        began = time.monotonic()
        yield from importlib.import_module(f"faults.{name}").campaign(short)
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)


def main() -> int:
    """Run what the command line names, everything by default; exit code 1 if anything was wrong."""
    named = tuple(word for word in sys.argv[1:] if word != "--short")
    unknown = [name for name in named if name not in CAMPAIGNS]
    if unknown:
        print(f"There is no campaign {unknown[0]!r}; there are {', '.join(CAMPAIGNS)}.")
        return 2
    return 0 if report(outcomes("--short" in sys.argv, named or CAMPAIGNS)) else 1


if __name__ == "__main__":
    sys.exit(main())
