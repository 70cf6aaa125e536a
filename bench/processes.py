"""Run a command, and watch how long it takes and how much memory it and its children use together."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Mapping, Sequence

import psutil


def watched(command: Sequence[str], env: Mapping[str, str] | None = None) -> tuple[int, float, float]:
    """Exit code, minutes, and the largest sum of memory in GB, shared memory counted once."""
    began, peak = time.perf_counter(), 0
    with subprocess.Popen(command, env=env) as process:
        while process.poll() is None:
            peak = max(peak, _memory(process.pid))
            time.sleep(0.5)
    return process.returncode, (time.perf_counter() - began) / 60, peak / 1e9


def _memory(pid: int) -> int:
    total = 0
    try:
        family = [parent := psutil.Process(pid), *parent.children(recursive=True)]
    except psutil.NoSuchProcess:  # it ended while we looked
        return 0
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):  # so did this one
            total += process.memory_full_info().pss
    return total


def report(name: str, most: float, got: float) -> None:
    """One line per target."""
    print(f"- {name}: at most {most:g}; got {got:.2f}: {'met' if got <= most else 'MISSED'}")
