"""Studies whose processes are killed, whose tables change, and that share a folder."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import psutil

from faults.base import PATIENCE, WRONG, Command, Outcome, contents, gone, judged, kill, until

RESULTS = ("draws.parquet", "summary.csv", "summary.json")
PAGE = 4096  # bytes
LEAVING = 15.0  # seconds in which workers have to notice that nobody is left who wants their results
STUDY = """
seed = 5
folds = 4

[data.people]
source = "people.csv"
label = "granted"

[data.blobs]
source = "blobs"
dim = [2, 3]
samples = 120

[models.softmax]
kind = "softmax"

[models.tree]
kind = "tree"
max_depth = 3

[methods.closest]
kind = "closest"

[perturbations.noise]
kind = "gaussian"
covariance = 1.0

[perturbations.masking]
kind = "mask"
features = [1, 2]

[[experiments]]
name = "small"
data = ["people", "blobs"]
models = ["softmax", "tree"]
methods = ["closest"]
perturbations = ["noise", "masking"]
scale = ["raw", "standardised"]
"""


class Folder:
    """A study, its table, and what an undisturbed run makes of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "study.toml"
        folder.mkdir(parents=True, exist_ok=True)
        self.file.write_text(STUDY)
        self.write_table(folder, 1.0)
        code, said = self.finish(folder / "reference")
        if code != 0:
            raise RuntimeError(f"An undisturbed study ended with exit code {code}: {said}")
        self.reference = contents(folder / "reference")

    @staticmethod
    def write_table(folder: Path, scale: float) -> None:
        """Write the table, in one go as editors do."""
        rng = np.random.default_rng(0)
        table = pd.DataFrame(rng.normal(size=(120, 4)), columns=list("abcd"))
        table["granted"] = np.where(table["a"] + table["b"] > 0, "yes", "no")
        table["c"] *= scale
        table.to_csv(folder / "people.new", index=False)
        (folder / "people.new").replace(folder / "people.csv")

    def start(self, out: Path, jobs: int = 2, *more: str) -> Command:
        """Run the study."""
        return Command("study", self.file, "--out", out, "--jobs", str(jobs), *more)

    def finish(self, out: Path, jobs: int = 2, *more: str) -> tuple[int | None, str]:
        """Run the study to its end: exit code, and what it said."""
        command = self.start(out, jobs, *more)
        return command.wait(), command.said

    def judge(
        self, kind: str, out: Path, code: int | None, said: str, *, kills: int = 0, writing: bool = False
    ) -> Outcome:
        """Whether everything in the folder is as without the fault, with nothing left over, or no results are."""
        found = contents(out) if code == 0 else contents(out, RESULTS)
        return judged(kind, code, said, found, self.reference, kills=kills, writing=writing)

    def copy(self, folder: Path) -> Folder:
        """The same study with a table of its own."""
        other = object.__new__(Folder)
        other.folder, other.file, other.reference = folder, folder / self.file.name, self.reference
        folder.mkdir(parents=True)
        for name in (self.file.name, "people.csv"):
            (folder / name).write_bytes((self.folder / name).read_bytes())
        return other


def campaign(short: bool) -> Iterator[Outcome]:
    """Kills at random moments and while something is written; `short` has one of each kind."""
    chance = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="evenhand-faults-") as name:
        folder = Path(name)
        study = Folder(folder / "study")
        for i in range(1 if short else 3):
            for jobs in (2,) if short else (1, 2):
                for writing in (False, True):
                    out = folder / f"killed-{i}-{jobs}-{writing}"
                    yield _killed(study, out, jobs, 1 if short else 3, chance, writing=writing, all_of_them=i % 2 == 1)
            for writing in (False, True):
                out = folder / f"workers-{i}-{writing}"
                yield _workers_killed(study, out, 1 if short else 3, chance, writing=writing)
        for i in (2,) if short else (0, 2, 8, 20):
            yield _changed(study.copy(folder / f"changed-{i}"), i)
        for with_kill in (True,) if short else (False, True, False, True):
            yield from _two_runs(study, Path(tempfile.mkdtemp(dir=folder)) / "out", chance, with_kill=with_kill)


# --- Killed -----------------------------------------------------------------------------------------------------------


def _killed(
    study: Folder, out: Path, jobs: int, times: int, chance: random.Random, *, writing: bool, all_of_them: bool
) -> Outcome:
    """Kill the study again and again, with its workers or without, and then let it come to its end."""
    kind = f"study killed{' while writing' if writing else ''}, {jobs} {'process' if jobs == 1 else 'processes'}"
    kills = 0
    for _ in range(times):
        command = study.start(out, jobs)
        held = _hold(command, out) if writing else _some_time(command, chance)
        kills += held
        left = command.kill()
        for one in left:
            with suppress(psutil.NoSuchProcess):
                one.kill() if all_of_them else one.resume()
        if stayed := gone(left, LEAVING):
            return Outcome(kind, WRONG, f"{len(stayed)} processes lived on", kills, writing)
    code, said = study.finish(out, jobs)
    return study.judge(kind, out, code, said, kills=kills, writing=writing)


def _workers_killed(study: Folder, out: Path, times: int, chance: random.Random, *, writing: bool) -> Outcome:
    """Kill workers while the study goes on."""
    command = study.start(out)
    kills = 0
    for _ in range(times):
        held = _hold(command, out) if writing else _some_time(command, chance)
        workers = command.workers()
        for one in workers if writing else workers[:1]:
            kills += held and kill(one.pid)
        with suppress(psutil.NoSuchProcess):
            psutil.Process(command.process.pid).resume()
    kind = f"worker killed{' while writing' if writing else ''}"
    return study.judge(kind, out, command.wait(), command.said, kills=kills, writing=writing)


def _some_time(command: Command, chance: random.Random) -> bool:
    """Wait; whether there is somebody to be killed still."""
    latest = time.monotonic() + chance.uniform(0.2, 4.0)
    until(lambda: time.monotonic() > latest, command)
    return command.running


def _hold(command: Command, out: Path) -> bool:
    """Wait until something is being written, and stop everybody just then; False if that was never seen."""
    latest = time.monotonic() + PATIENCE
    while command.running and time.monotonic() < latest:
        if not _unfinished(out):
            time.sleep(0.0002)
            continue
        group = command.all()
        for one in group:
            with suppress(psutil.NoSuchProcess):
                one.suspend()
        if _unfinished(out):
            return True
        for one in group:
            with suppress(psutil.NoSuchProcess):
                one.resume()
    return False


def _unfinished(out: Path) -> bool:
    """Whether there are files that nobody is to see."""
    for folder in (out, out / "cells"):
        with suppress(FileNotFoundError), os.scandir(folder) as entries:
            if any(entry.name.startswith(".") for entry in entries):
                return True
    return False


# --- A table that changes, and somebody else in the same folder -------------------------------------------------------


def _changed(study: Folder, cells: int) -> Outcome:
    """Change the table when so many cells are finished; every result belongs to one table, and says to which."""
    kind, out = "table changed on the way", study.folder / "out"
    command = study.start(out)
    began = time.monotonic()
    until(lambda: cells_in(out) >= cells if cells else time.monotonic() > began + 2.5, command)
    study.write_table(study.folder, 2.0)
    code, said = command.wait(), command.said
    first = judged(kind, code, said, contents(out, RESULTS), {name: study.reference[name] for name in RESULTS})
    if first.result == WRONG and code == 0:  # it may have begun with the new table
        study.finish(study.folder / "new")
        new = contents(study.folder / "new", RESULTS)
        first = judged(kind, code, said, contents(out, RESULTS), new)
    study.write_table(study.folder, 1.0)
    code, said = study.finish(out)
    last = judged(kind, code, said, contents(out, study.reference), study.reference)
    return last if first.result != WRONG else first


def _two_runs(study: Folder, out: Path, chance: random.Random, *, with_kill: bool) -> Iterator[Outcome]:
    """Two runs at the same time; one of them may be killed."""
    kind = f"two runs into one folder{', one killed' if with_kill else ''}"
    one, other = study.start(out), study.start(out)
    kills = 0
    if with_kill:
        kills += _some_time(one, chance)
        if stayed := gone(one.kill(), LEAVING):
            yield Outcome(kind, WRONG, f"{len(stayed)} processes lived on", kills)
    else:
        one.wait()
    code = other.wait()
    for command in (other,) if with_kill else (one, other):
        yield study.judge(kind, out, command.wait() if command is one else code, command.said, kills=kills)


def cells_in(out: Path) -> int:
    """How many cells are finished."""
    return len(list((out / "cells").glob("*.parquet")))
