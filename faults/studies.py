"""Studies whose processes are killed, whose tables change, and that share a folder."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil

from evenhand.workers.running import ATTEMPTS
from evenhand.writing import STAGE
from faults.base import PATIENCE, WRONG, Command, Outcome, contents, gone, judged, kill, until

MOST = ATTEMPTS - 1  # losses of workers that every task bears
RESULTS = ("draws.parquet", "summary.csv", "summary.json")
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

    def start(self, out: Path, jobs: int = 2) -> Command:
        """Run the study."""
        return Command("study", self.file, "--out", out, "--jobs", str(jobs))

    def finish(self, out: Path, jobs: int = 1) -> tuple[int | None, str]:
        """Run the study to its end: exit code, and what it said."""
        command = self.start(out, jobs)
        return command.wait(), command.said

    def judge(self, kind: str, out: Path, code: int | None, said: str, **more: Any) -> Outcome:
        """Whether everything in the folder is as without the fault, with nothing left over, or no results are."""
        found = contents(out) if code == 0 else contents(out, RESULTS)
        return judged(kind, code, said, found, self.reference, **more)

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
        if short:
            yield from _short(study, folder / "out", chance)
            return
        yield from _killed_often(study, folder, chance)
        for i in (0, 9):
            yield _changed(study.copy(folder / f"changed-{i}"), i)
        for with_kill in (False, True):
            yield from _two_runs(study, Path(tempfile.mkdtemp(dir=folder)) / "out", chance, with_kill=with_kill)


# --- Killed -----------------------------------------------------------------------------------------------------------

ANY, CELL, END = "any", "cell", "end"  # moments: any, while a checkpoint is written, while the results are


def _short(study: Folder, out: Path, chance: random.Random) -> Iterator[Outcome]:
    """In one folder: the table changes, then one of two runs is killed, and the other loses its workers."""
    command = study.start(out)
    until((out / "cells").is_dir, command)  # it has read the table, and its workers have not
    study.write_table(study.folder, 2.0)
    yield study.judge("table changed on the way", out, command.wait(), command.said)
    study.write_table(study.folder, 1.0)
    kind, one, other = "two runs into one folder, one killed while writing", study.start(out), study.start(out)
    met = _meet(CELL, one, out, chance)
    ended = _end_workers(other) if _meet(CELL, other, out, chance) else 0
    if stayed := _end(one):
        yield Outcome(kind, WRONG, f"{stayed} processes lived on", met, met)
    code = other.wait()
    yield study.judge(kind, out, code, other.said, refusals=(), kills=met, writing=met)
    kind = "all workers killed while writing"
    yield study.judge(kind, out, code, other.said, refusals=(), kills=ended, writing=ended)


def _killed_often(study: Folder, folder: Path, chance: random.Random) -> Iterator[Outcome]:
    """Parents, workers, and workers until the study gives up."""
    one, two, writing = "study killed, 1 process", "study killed, 2 processes", "study killed while writing"
    yield _killed(one, study, folder / "1", 1, chance, parent=(ANY,) * 4)
    for i in (1, 2):
        yield _killed(f"{writing}, 1 process", study, folder / f"2-{i}", 1, chance, parent=(*(CELL,) * 7, END))
    yield _killed(two, study, folder / "3", 2, chance, parent=(ANY,) * 3)
    kind = f"{writing}, 2 processes"
    for all_of_them in (False, True):
        out = folder / f"4-{all_of_them}"
        yield _killed(kind, study, out, 2, chance, parent=(CELL, CELL, CELL, END), all_of_them=all_of_them)
    yield _killed("worker killed", study, folder / "5", 2, chance, workers=(ANY,) * MOST)
    for i in (6, 7):
        yield _killed("all workers killed while writing", study, folder / f"{i}", 2, chance, workers=(CELL,) * MOST)
    yield _killed_always(study, folder / "8")


def _killed(
    kind: str,
    study: Folder,
    out: Path,
    jobs: int,
    chance: random.Random,
    *,
    parent: tuple[str, ...] = (),
    workers: tuple[str, ...] = (),
    all_of_them: bool = False,
) -> Outcome:
    """Kill the study at these moments, with its workers or without, and then workers of a run that comes to its end."""
    kills = writing = 0
    for moment in parent:
        command = study.start(out, jobs)
        met = _meet(moment, command, out, chance)
        ended = met + (_end_workers(command, resume=False) if all_of_them else 0)
        kills, writing = kills + ended, writing + (ended if moment != ANY else 0)
        if stayed := _end(command):
            return Outcome(kind, WRONG, f"{stayed} processes lived on", kills, writing)
    command = study.start(out, jobs)
    for moment in workers:
        until(command.workers, command)
        met = _meet(moment, command, out, chance)
        ended = _end_workers(command, 1 if moment == ANY else None) if met else 0
        kills, writing = kills + ended, writing + (ended if moment != ANY else 0)
    # Nothing here loses its worker so often that the study may give up.
    code = command.wait()
    return study.judge(kind, out, code, command.said, refusals=(), kills=kills, writing=writing)


def _end(command: Command) -> int:
    """Kill a command, alone; returned is how many of its workers do not notice that."""
    left = command.kill()
    for one in left:
        with suppress(psutil.NoSuchProcess):
            one.resume()
    return len(gone(left, LEAVING))


def _end_workers(command: Command, most: int | None = None, *, resume: bool = True) -> int:
    """Kill workers; returned is how many there were. Whoever was stopped meanwhile goes on."""
    kills = sum(kill(one.pid) for one in command.workers()[:most])
    for one in command.all() if resume else []:
        with suppress(psutil.NoSuchProcess):
            one.resume()
    return kills


def _killed_always(study: Folder, out: Path) -> Outcome:
    """Kill workers until the study gives up and says with what they were lost; the next run goes on from there."""
    kind, kills = "all workers killed, again and again", 0
    command = study.start(out)
    until(lambda: cells_in(out) >= 8, command)
    latest = time.monotonic() + PATIENCE
    while command.running and time.monotonic() < latest:
        kills += _end_workers(command)
        time.sleep(0.1)
    code, said = command.wait(), command.said
    before = cells_in(out)
    first = study.judge(kind, out, code, said, ends=(), kills=kills)
    if first.result != WRONG and f"{ATTEMPTS} workers were lost with it" not in said:
        first = replace(first, result=WRONG, detail=f"it does not say with what they were lost: {said[-500:]}")
    code, said = study.finish(out)
    last = study.judge(kind, out, code, said, refusals=(), kills=kills)
    if f"{before} of them found finished" not in said:
        last = replace(last, result=WRONG, detail=f"{before} cells were finished, and it said: {said[-500:]}")
    return last if first.result != WRONG else first


def _meet(moment: str, command: Command, out: Path, chance: random.Random) -> bool:
    """Wait for a moment, and stop everybody if something is being written then; False if it never came."""
    if moment == ANY:
        return _some_time(command, chance)
    if moment == END:
        return _hold(command, (out / STAGE / "new").exists)
    least, left = cells_in(out) + chance.randrange(6), set(_parts(out))  # by others, who are stopped or dead
    return _hold(command, lambda: not left.issuperset(_parts(out)) and cells_in(out) >= least)


def _some_time(command: Command, chance: random.Random) -> bool:
    """Wait; whether there is somebody to be killed still."""
    latest = time.monotonic() + chance.uniform(0.2, 3.0)
    until(lambda: time.monotonic() > latest, command)
    return command.running


def _hold(command: Command, writing: Callable[[], bool]) -> bool:
    """Wait until something is being written, and stop everybody just then; False if that was never seen."""
    latest = time.monotonic() + PATIENCE
    while command.running and time.monotonic() < latest:
        if not writing():
            time.sleep(0.0002)
            continue
        group = command.all()
        for one in group:
            with suppress(psutil.NoSuchProcess):
                one.suspend()
        if writing():
            return True
        for one in group:
            with suppress(psutil.NoSuchProcess):
                one.resume()
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
        if stayed := _end(one):
            yield Outcome(kind, WRONG, f"{stayed} processes lived on", kills)
    else:
        one.wait()
    code = other.wait()
    for command in (other,) if with_kill else (one, other):
        yield study.judge(kind, out, command.wait() if command is one else code, command.said, kills=kills)


def _parts(out: Path) -> list[Path]:
    """Checkpoints that are being written, or were when somebody died."""
    return list((out / "cells").glob(".evenhand-*.part"))


def cells_in(out: Path) -> int:
    """How many cells are finished."""
    return len(list((out / "cells").glob("*.parquet")))
