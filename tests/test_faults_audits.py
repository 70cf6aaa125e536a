"""Audits under faults, a few of each kind; ``python -m faults audits`` has the others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at in /proc")
def test_a_report_is_whole_or_the_old_one() -> None:
    command = [sys.executable, "-m", "faults", "--short", "audits"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "audit killed while writing" in done.stdout
    assert "audit stopped by SIGTERM" in done.stdout
