"""Time the whole reproduction of the paper as a new user meets it: nothing compiled, nothing computed yet.

    python bench/paper.py

Wall time on all cores; memory is that of all processes together, sampled.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from processes import report, watched

MINUTES, GIGABYTES = 3.0, 2.0


def main() -> None:
    """Run the benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        # One BLAS thread per process, as `make reproduce` has it; compiled kernels of earlier runs are not found.
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "NUMBA_CACHE_DIR": str(Path(folder) / "numba")}
        out = Path(folder) / "paper"
        command = [sys.executable, "-m", "evenhand", "reproduce", "--out", str(out)]
        code, minutes, gigabytes = watched(command, environment)
        if code:
            sys.exit(f"evenhand reproduce failed with exit code {code}.")
        run = json.loads((out / "summary.json").read_text(encoding="utf-8"))["run"]
    print(
        f"The paper, from nothing: {run['counterfactuals']:,} counterfactuals in {run['cells']:,} cells, "
        f"{os.cpu_count()} cores, compilation included."
    )
    report("minutes", MINUTES, minutes)
    report("memory of all processes, GB", GIGABYTES, gigabytes)


if __name__ == "__main__":
    main()
