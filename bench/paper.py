"""Time the whole reproduction of the paper as a new user meets it: nothing compiled, nothing computed yet.

    python bench/paper.py

Wall time on all cores; memory is that of all processes together, sampled.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

MINUTES, GIGABYTES = 3.0, 2.0


def main() -> None:
    """Run the benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        # One BLAS thread per process, as `make reproduce` has it; compiled kernels of earlier runs are not found.
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "NUMBA_CACHE_DIR": str(Path(folder) / "numba")}
        out = Path(folder) / "paper"
        began, peak = time.perf_counter(), 0
        command = [sys.executable, "-m", "evenhand", "reproduce", "--out", str(out)]
        with subprocess.Popen(command, env=environment) as process:
            while process.poll() is None:
                peak = max(peak, _memory(process.pid))
                time.sleep(0.5)
        minutes = (time.perf_counter() - began) / 60
        if process.returncode:
            sys.exit(f"evenhand reproduce failed with exit code {process.returncode}.")
        run = json.loads((out / "summary.json").read_text(encoding="utf-8"))["run"]
    print(
        f"The paper, from nothing: {run['counterfactuals']:,} counterfactuals in {run['cells']:,} cells, "
        f"{os.cpu_count()} cores, compilation included."
    )
    print(f"- minutes: at most {MINUTES:g}; got {minutes:.2f}: {_verdict(minutes <= MINUTES)}")
    gigabytes = peak / 1e9
    print(
        f"- memory of all processes: at most {GIGABYTES:g} GB; got {gigabytes:.2f}: {_verdict(gigabytes <= GIGABYTES)}"
    )


def _memory(pid: int) -> int:
    """Bytes of a process and its children, shared ones counted once."""
    total = 0
    try:
        family = [parent := psutil.Process(pid), *parent.children(recursive=True)]
    except psutil.NoSuchProcess:  # it ended while we looked
        return 0
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):  # so did this one
            total += process.memory_full_info().pss
    return total


def _verdict(met: bool) -> str:
    return "met" if met else "MISSED"


if __name__ == "__main__":
    main()
