"""What workers do in tests; it imports little, because every worker has to."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any


def square(x: int) -> int:
    """Nothing that could go wrong."""
    return x * x


def fatal(x: int, folder: Path, times: int) -> int:
    """The square, after so many processes that were killed by it."""
    before = len(list(folder.glob(f"{x}-*")))
    if before < times:
        (folder / f"{x}-{before}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return x * x


def late(x: int, folder: Path) -> int:
    """The square; of 0 half a second after that of 5."""
    if x == 5:
        (folder / "done").touch()
    until = time.monotonic() + 30
    while x == 0 and not (folder / "done").exists() and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.5 * (x == 0))
    return x * x


class TwoPartsError(Exception):
    """One that pickle cannot make again."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}, {why}")


def failing(x: int, error: str) -> int:
    """The square, if there is one."""
    if x == 3:
        raise {"plain": ValueError("no 3"), "odd": TwoPartsError("no 3", "because"), "key": KeyError("no 3")}[error]
    return x * x


def n_jobs() -> int:
    """How many workers a model would start."""
    import joblib

    return int(joblib.effective_n_jobs(-1))


class Deadly:
    """A perturbation that kills the process of a worker, so many times."""

    def __init__(self, folder: Path, times: int) -> None:
        self.folder, self.times, self.parent = folder, times, os.getpid()

    def __call__(self, X: Any, rng: Any) -> Any:
        if os.getpid() != self.parent:
            fatal(0, self.folder, self.times)
        return X + 0.01 * rng.standard_normal(X.shape)

    def __repr__(self) -> str:
        return "Deadly()"
