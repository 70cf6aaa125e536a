"""What campaigns share: commands that are started and killed, folders that are compared, outcomes that are counted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

SAME, NONE, WRONG = "same bytes", "none and said so", "wrong"
PATIENCE = 240.0  # seconds after which a command counts as one that does not end
REFUSED = 2  # the exit code of a command that says why it cannot go on
TRACEBACK = "Traceback (most recent call last)"


@dataclass(frozen=True)
class Outcome:
    """How one fault ended.

    Attributes
    ----------
    kind : str
        Of fault: a line of the table that is printed.
    result : {"same bytes", "none and said so", "wrong"}
    detail : str
        What was wrong.
    kills : int
        Processes of studies and audits that were killed on the way.
    writing : int
        So many of them while something was being written.
    """

    kind: str
    result: Literal["same bytes", "none and said so", "wrong"]
    detail: str = ""
    kills: int = 0
    writing: int = 0


class Command:
    """``evenhand`` in a process and a group of its own; what it says goes into a file, which cannot block."""

    def __init__(self, *arguments: str | Path, prefix: Sequence[str] = (), folder: Path | None = None) -> None:
        self._said = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed when nobody needs it
        command = [*prefix, sys.executable, "-m", "evenhand", *map(str, arguments)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            cwd=folder,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            start_new_session=True,
        )

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    @property
    def said(self) -> str:
        """All that it has said so far."""
        self._said.flush()
        with os.fdopen(os.dup(self._said.fileno()), encoding="utf-8", errors="replace") as copy:
            copy.seek(0)
            return copy.read()

    def wait(self, seconds: float = PATIENCE) -> int | None:
        """The exit code; None, and everything it started killed, if it takes longer than that."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.end()
            return None

    def workers(self) -> list[psutil.Process]:
        """The processes that work for it, without those that keep count of memory, or are only about to work."""
        return [child for child in self.started() if "popen_loky" in _command_of(child)]

    def started(self) -> list[psutil.Process]:
        """All processes below it."""
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def all(self) -> list[psutil.Process]:
        """It and its workers."""
        try:
            return [psutil.Process(self.process.pid), *self.workers()]
        except psutil.NoSuchProcess:
            return []

    def kill(self) -> list[psutil.Process]:
        """SIGKILL to the command alone; returned are the processes that it leaves behind."""
        left = self.started()
        kill(self.process.pid)
        self.process.wait()
        return left

    def end(self) -> None:
        """Kill it with all that it started."""
        left = self.started()
        for pid in (self.process.pid, *(one.pid for one in left)):
            kill(pid)
        self.process.wait()
        gone(left, 10)


def _command_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def kill(pid: int) -> bool:
    """SIGKILL, which nobody can prepare for; False if there was nobody any more."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def gone(processes: Iterable[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait for processes to end; returned, and killed then, are those that live longer."""
    _, alive = psutil.wait_procs(list(processes), timeout=seconds)
    alive = [one for one in alive if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    for one in alive:
        kill(one.pid)
    return alive


def until(holds: Callable[[], object], command: Command, seconds: float = PATIENCE, every: float = 0.001) -> bool:
    """Wait until something holds; False if the command ends before, or if it takes too long."""
    latest = time.monotonic() + seconds
    while time.monotonic() < latest:
        if holds():
            return True
        if not command.running:
            return bool(holds())
        time.sleep(every)
    return False


def contents(folder: Path, names: Iterable[str] | None = None) -> dict[str, bytes]:
    """The files of a folder, or those of these names that are there."""
    if not folder.is_dir():
        return {}
    paths = (path for path in folder.rglob("*") if path.is_file())
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    return found if names is None else {name: found[name] for name in names if name in found}


def judged(
    kind: str,
    code: int | None,
    said: str,
    found: Mapping[str, bytes],
    reference: Mapping[str, bytes],
    *,
    ends: Iterable[int] = (0,),
    refusals: Iterable[int] = (REFUSED,),
    kills: int = 0,
    writing: int = 0,
) -> Outcome:
    """Judge the end of a command: the same files as without the fault, or none of them and a sentence.

    Parameters
    ----------
    kind : str
        Of fault.
    code, said
        How the command ended, and its last words.
    found, reference
        Its files, and those of an undisturbed run.
    ends, refusals
        Exit codes of a command that came to its end, and of one that says why it cannot.
    """

    def outcome(result: Literal["same bytes", "none and said so", "wrong"], detail: str = "") -> Outcome:
        return Outcome(kind, result, detail, kills, writing)

    if code is None:
        return outcome(WRONG, f"it did not end; it said: {said[-500:]}")
    if TRACEBACK in said:
        return outcome(WRONG, f"a traceback, exit code {code}: {said[-1500:]}")
    if code in ends:
        other = [name for name in sorted({*found, *reference}) if found.get(name) != reference.get(name)]
        return outcome(WRONG, f"other bytes in {', '.join(other)}") if other else outcome(SAME)
    if code not in refusals or not said.strip():
        return outcome(WRONG, f"exit code {code}: {said[-500:]}")
    return outcome(WRONG, f"files in spite of exit code {code}: {', '.join(found)}") if found else outcome(NONE)


def report(outcomes: Iterable[Outcome]) -> bool:
    """Print every failure as it comes, and a table at the end or when interrupted; whether nothing was wrong."""
    counts: dict[str, Counter[str]] = {}
    kills = writing = 0
    try:
        for outcome in outcomes:
            counts.setdefault(outcome.kind, Counter())[outcome.result] += 1
            kills += outcome.kills
            writing += outcome.writing
            if outcome.result == WRONG:
                print(f"WRONG, {outcome.kind}: {outcome.detail}", flush=True)
    finally:
        width = max(map(len, counts), default=0)
        print(f"{'fault':{width}}  tried  {SAME}  {NONE}  {WRONG}")
        for kind, count in counts.items():
            cells = "  ".join(f"{count[result]:{len(result)}d}" for result in (SAME, NONE, WRONG))
            print(f"{kind:{width}}  {sum(count.values()):5d}  {cells}")
        print(f"{kills} kills, {writing} of them while something was being written.", flush=True)
    return bool(counts) and not any(count[WRONG] for count in counts.values())
