"""``python -m faults``: the whole campaign; ``--short`` for a few cases of each kind."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

from faults.base import Outcome, report

CAMPAIGNS = ("audits", "studies", "cluster", "disks", "checkpoints")  # the longest first
AT_ONCE = min(2, os.cpu_count() or 1)  # campaigns: much of each is waiting


def outcomes(short: bool, names: tuple[str, ...] = CAMPAIGNS) -> Iterator[Outcome]:
    """What came of every fault, campaign by campaign as they end."""
    with ProcessPoolExecutor(AT_ONCE) as pool:
        for ended in as_completed([pool.submit(run, name, short) for name in names]):
            name, found, seconds = ended.result()
            print(f"{name}: {seconds:.0f} s", flush=True)
            yield from found


def run(name: str, short: bool) -> tuple[str, list[Outcome], float]:
    """One campaign: its outcomes, and how long it took."""
    began = time.monotonic()
    return name, list(importlib.import_module(f"faults.{name}").campaign(short)), time.monotonic() - began


def main() -> int:
    """Run what the command line names, everything by default; exit code 1 if anything was wrong."""
    named = tuple(word for word in sys.argv[1:] if word != "--short")
    unknown = [name for name in named if name not in CAMPAIGNS]
    if unknown:
        print(f"There is no campaign {unknown[0]!r}; there are {', '.join(CAMPAIGNS)}.")
        return 2
    began = time.monotonic()
    good = report(outcomes("--short" in sys.argv, named or CAMPAIGNS))
    print(f"{time.monotonic() - began:.0f} s in all")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
