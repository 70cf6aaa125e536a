"""Audits that are killed or stopped, whose disk is full or read-only, whose files change, and that share a folder."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evenhand.auditing.result import FILES
from evenhand.writing import STAGE
from faults.base import NONE, REFUSED, TRACEBACK, WRONG, Command, Outcome, contents, gone, judged, kill, until

PAGE = 4096  # bytes
LAST = "audit.json"  # which is there only if all others are
LEAVING = 15.0  # seconds in which workers have to notice that nobody is left who wants their results
STOPS = {signal.SIGINT: 130, signal.SIGTERM: 143}
AUDIT = """
model = "model.skops"
data = "{data}"
label = "granted"
methods = ["closest"]
people = 20
draws = 2
lookup = 3
gates = ["not_found_rate <= 0.1"]
out = "out"
"""
Files = Mapping[str, bytes]


class Place:
    """A folder with an audit, and what undisturbed runs make of it."""

    def __init__(self, folder: Path, data: str = "people.csv") -> None:
        self.folder, self.data = folder, folder / data
        folder.mkdir(parents=True)
        self.file, self.out = folder / "audit.toml", folder / "out"
        self.file.write_text(AUDIT.format(data=data))
        write_table(self.data, 0)
        write_model(folder / "model.skops", 0)

    def start(self, seed: int = 0, jobs: int = 2, out: Path | None = None) -> Command:
        """Run the audit; of another seed, another report comes."""
        where = ("--out", out) if out else ()
        return Command("audit", self.file, "--jobs", str(jobs), "--seed", str(seed), *where)

    def finish(self, seed: int = 0, jobs: int = 1, out: Path | None = None) -> tuple[int | None, str]:
        """Run the audit to its end: exit code, and what it said."""
        command = self.start(seed, jobs, out)
        return command.wait(), command.said

    def reference(self, seed: int = 0, jobs: int = 1) -> Files:
        """The files of an undisturbed run."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            code, said = self.finish(seed, jobs, Path(name) / "out")
            found = contents(Path(name) / "out")
        if code != 0 or sorted(found) != sorted(FILES):
            raise RuntimeError(f"An undisturbed audit ended with exit code {code}: {said}")
        return found

    def begin(self, files: Files) -> None:
        """Leave the report of an earlier run, and somebody's notes."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir()
        for name, content in {**files, "notes.txt": b"mine"}.items():
            (self.out / name).write_bytes(content)


def write_table(path: Path, version: int, *, at_once: bool = True) -> None:
    """Write the table; at once, as good programs do, or in place, bit by bit."""
    _replace(path, _table(path.suffix, version), at_once=at_once)


def write_model(path: Path, version: int, *, at_once: bool = True) -> None:
    """Write the model."""
    _replace(path, _model(version), at_once=at_once)


@cache
def _table(suffix: str, version: int) -> bytes:
    rng = np.random.default_rng(version)
    table = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    table["granted"] = np.where(table["a"] + table["b"] > 0, "yes", "no")
    return table.to_csv(index=False).encode() if suffix == ".csv" else table.to_parquet(index=False)


@cache  # the file has a date inside, and another hash the next time
def _model(version: int) -> bytes:
    rng = np.random.default_rng(version + 100)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    y = np.where(X["a"] + X["b"] + 0.3 * rng.normal(size=200) > 0, "yes", "no")
    return skops.io.dumps(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y))


def _replace(path: Path, content: bytes, *, at_once: bool) -> None:
    if at_once:
        made = path.with_name(f"new-{path.name}")
        made.write_bytes(content)
        made.replace(path)
        return
    with path.open("r+b", buffering=0) as file:
        for start in range(0, len(content), 256):
            file.write(content[start : start + 256])
        file.truncate()


def campaign(short: bool) -> Iterator[Outcome]:
    """All faults of audits; `short` has one of each kind, except for the dearest."""
    chance = random.Random(2)
    with tempfile.TemporaryDirectory(prefix="evenhand-faults-") as name:
        folder = Path(name)
        place = Place(folder / "audit")
        after = place.reference()
        if short:
            yield from _short(place, folder / "disk", after, chance)
            return
        before = place.reference(seed=1)
        for i in range(8):
            yield _killed(place, before, after, chance, writing=True, old=i % 3 != 2)
        for i in range(3):
            yield _killed(place, before, after, chance, writing=False, old=i % 2 == 0)
        for number in tuple(STOPS) * 2:
            yield _stopped(place, before, after, number, chance)
        for _ in range(4):
            yield _worker_killed(place, before, after, chance)
        for share in (0.1, 0.9, 0.99):
            yield from _full(place, folder / f"disk-{share}", before, after, share)
        yield from _read_only(place, folder / "fixed", before)
        for _ in range(2):
            yield _removed(place, after, chance)
            yield _two_audits(place, before, after, chance)
        yield from _changed(folder, chance)


def _short(place: Place, folder: Path, after: Files, chance: random.Random) -> Iterator[Outcome]:
    """Killed while writing, stopped, and with a disk that is read-only or full."""
    before = {name: content[::-1] for name, content in after.items()}  # nobody reads it, so it need not be a report
    yield _killed(place, before, after, chance, writing=True, old=True, jobs=1)
    yield _stopped(place, before, after, signal.SIGTERM, chance)
    with _disk(folder, f"size={_room(before, after, 0.9)}") as remount:
        if remount is None:
            return  # not permitted here
        out = _old_report(folder, before)
        code, said = place.finish(out=out)
        yield _refused("full disk", code, said, contents(out), before)
        remount("ro")
        code, said = place.finish(out=out)
        yield _refused("read-only disk", code, said, contents(out), before)


# --- Killed and stopped -----------------------------------------------------------------------------------------------


def _killed(
    place: Place, before: Files, after: Files, chance: random.Random, *, writing: bool, old: bool, jobs: int = 2
) -> Outcome:
    """Kill the audit: the report is the old one, or the new one, or can be seen not to be whole; and then run it."""
    kind = f"audit killed{' while writing' if writing else ''}, {'old report' if old else 'none'} there"
    outcome = partial(Outcome, kind, kills=1, writing=int(writing))
    before = before if old else {}
    place.begin(before)
    command = place.start(jobs=jobs)
    held = _hold(command, place.out) if writing else _some_time(command, chance)
    left = command.kill()
    if stayed := gone(left, LEAVING):
        return outcome(WRONG, f"{len(stayed)} processes lived on")
    if not held:  # it came to its end before
        return judged(kind, command.wait(), command.said, _of_folder(place), after, refusals=())
    if trouble := _mixed(place.out, before, after):
        return outcome(WRONG, trouble)
    code, said = place.finish()
    return judged(kind, code, said, _of_folder(place), after, refusals=(), kills=1, writing=int(writing))


def _stopped(place: Place, before: Files, after: Files, number: signal.Signals, chance: random.Random) -> Outcome:
    """Ask the audit and all of its workers to end, as a terminal does: a sentence, and the old report."""
    kind = f"audit stopped by {number.name}"
    place.begin(before)
    command = place.start()
    until(lambda: _heeds(command.process.pid), command)
    latest = time.monotonic() + chance.uniform(0.0, 4.0)
    until(lambda: time.monotonic() > latest, command)
    left = command.started()
    if command.running:
        os.killpg(command.process.pid, number)
    code, said = command.wait(30), command.said
    if stayed := gone(left, LEAVING):
        return Outcome(kind, WRONG, f"{len(stayed)} processes lived on")
    found = _of_folder(place)
    if code == 0 and found != before:  # it came too late
        return judged(kind, code, said, found, after)
    last = said.strip().rsplit("\n", 1)[-1]
    if code != STOPS[number] or TRACEBACK in said or not last.startswith("evenhand: stopped by"):
        return Outcome(kind, WRONG, f"exit code {code}: {said[-1500:]}")
    if found != before or (place.out / STAGE).exists():
        return Outcome(kind, WRONG, f"files after it was stopped: {sorted(found)}")
    return Outcome(kind, NONE)


def _worker_killed(place: Place, before: Files, after: Files, chance: random.Random) -> Outcome:
    """Kill a worker; the audit goes on."""
    place.begin(before)
    command = place.start()
    until(command.workers, command)
    latest = time.monotonic() + chance.uniform(0.0, 3.0)
    until(lambda: time.monotonic() > latest, command)
    kills = sum(kill(one.pid) for one in command.workers()[:1])
    code, said = command.wait(), command.said
    return judged("audit, worker killed", code, said, _of_folder(place), after, refusals=(), kills=kills)


def _some_time(command: Command, chance: random.Random) -> bool:
    """Wait; whether there is somebody to be killed still."""
    latest = time.monotonic() + chance.uniform(0.2, 5.0)
    until(lambda: time.monotonic() > latest, command)
    return command.running


def _hold(command: Command, out: Path) -> bool:
    """Wait until the report is being written, and stop everybody just then; False if that was never seen."""
    while until((out / STAGE / "new").exists, command, every=0.0002):
        try:
            psutil.Process(command.process.pid).suspend()
        except psutil.NoSuchProcess:
            return False
        if (out / STAGE / "new").exists():
            return True
        psutil.Process(command.process.pid).resume()
    return False


def _has_said(command: Command, text: str) -> bool:
    return text in command.said


def _heeds(pid: int) -> bool:
    """Whether a process has something to do when it is told to end."""
    with suppress(FileNotFoundError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    return False


def _visible(out: Path) -> dict[str, bytes]:
    """The files of a folder, without what is hidden and without the notes."""
    return {
        name: content for name, content in contents(out).items() if not name.startswith(STAGE) and name != "notes.txt"
    }


def _of_folder(place: Place) -> dict[str, bytes]:
    """The files of the output folder; everything that should not be there counts, and notes that are gone as well."""
    found = contents(place.out)
    return found if found.pop("notes.txt", None) == b"mine" else {**found, "notes.txt": b"changed"}


def _mixed(out: Path, before: Files, after: Files) -> str:
    """What is wrong with what a kill has left: files of two runs, torn ones, or some that look like all."""
    seen = _visible(out)
    for run in (before, after):
        if all(run.get(name) == content for name, content in seen.items()):
            return "" if seen.keys() == run.keys() or LAST not in seen else f"only {sorted(seen)} are there"
    return f"files of no single run: {sorted(seen)}"


# --- Disks ------------------------------------------------------------------------------------------------------------


def _full(place: Place, folder: Path, before: Files, after: Files, share: float) -> Iterator[Outcome]:
    """A disk that has the old report and room for a part of the new one, and then for all of it."""
    with _disk(folder, f"size={_room(before, after, share)}") as remount:
        if remount is None:
            return  # not permitted here
        out = _old_report(folder, before)
        code, said = place.finish(out=out)
        yield _refused("full disk", code, said, contents(out), before)
        remount("size=100m")
        code, said = place.finish(out=out)
        yield judged("full disk, then room", code, said, contents(out), after)


def _read_only(place: Place, folder: Path, before: Files) -> Iterator[Outcome]:
    """A disk that is read-only from the beginning, and one that becomes so on the way."""
    with _disk(folder, "size=100m") as remount:
        if remount is None:
            return
        out = _old_report(folder, before)
        for late in (False, True):
            remount("rw")
            if late:
                command = place.start(out=out)
                until(partial(_has_said, command, "everybody"), command)
                remount("ro")
                code, said = command.wait(), command.said
            else:
                remount("ro")
                code, said = place.finish(out=out)
            kind = f"read-only disk{', on the way' if late else ''}"
            yield _refused(kind, code, said, contents(out), before)


def _room(before: Files, after: Files, share: float) -> int:
    """Bytes of a disk for the old report and a part of the new one; each file takes whole pages."""
    pages = [sum(-(-len(content) // PAGE) for content in files.values()) for files in (before, after)]
    return (pages[0] + max(1, int(share * pages[1]))) * PAGE


def _old_report(folder: Path, before: Files) -> Path:
    (folder / "out").mkdir()
    for name, content in before.items():
        (folder / "out" / name).write_bytes(content)
    return folder / "out"


def _refused(kind: str, code: int | None, said: str, found: Files, before: Files) -> Outcome:
    """Judge a run that cannot write: a sentence, and the old report as it was."""
    if code != REFUSED or TRACEBACK in said or "cannot be written" not in said:
        return Outcome(kind, WRONG, f"exit code {code}: {said[-1500:]}")
    return (
        Outcome(kind, NONE) if found == before else Outcome(kind, WRONG, f"the old report is changed: {sorted(found)}")
    )


@contextmanager
def _disk(folder: Path, option: str) -> Iterator[Callable[[str], object] | None]:
    """A small disk, and what changes it; None if this user may not have one."""
    folder.mkdir()

    def mount(options: str) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    mounted = shutil.which("mount") is not None and mount(option)
    try:
        yield (lambda options: mount(f"remount,{options}")) if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


# --- Others who use the same files ------------------------------------------------------------------------------------


def _removed(place: Place, after: Files, chance: random.Random) -> Outcome:
    """Somebody removes the output folder on the way: it is made again."""
    place.begin({})
    command = place.start()
    _some_time(command, chance)
    running = command.running
    shutil.rmtree(place.out, ignore_errors=True)
    code, said = command.wait(), command.said
    kind = "folder removed on the way"
    return judged(kind, code, said, contents(place.out), after if running or place.out.exists() else {})


def _two_audits(place: Place, before: Files, after: Files, chance: random.Random) -> Outcome:
    """Two audits into one folder: the report is that of one of them."""
    place.begin({})
    one = place.start(seed=1)
    latest = time.monotonic() + chance.uniform(0.0, 1.0)
    until(lambda: time.monotonic() > latest, one)
    two = place.start()
    ends = [(command.wait(), command.said) for command in (one, two)]
    found = _of_folder(place)
    code, said = max(ends, key=lambda end: (end[0] is None, end[0] or 0))
    return judged("two audits into one folder", code, said, found, before if found == before else after)


def _changed(folder: Path, chance: random.Random) -> Iterator[Outcome]:
    """Table and model change on the way: the report is that of the files whose hashes it names, or there is none."""
    for data in ("people.csv", "people.parquet"):
        place = Place(folder / f"changed-{data}", data)
        writers = (partial(write_table, place.data), partial(write_model, place.folder / "model.skops"))
        references: dict[tuple[str, str], Files] = {}
        for i in range(4):
            writers[0](0)
            writers[1](0)
            place.begin({})
            command = place.start()
            # Most of the time is spent on importing; files are read soon after.
            until(partial(_has_said, command, "preparing"), command) if i < 2 else None
            _some_time(command, chance)
            for writer in writers:
                writer(1, at_once=i % 2 == 0)
            how = "at once" if i % 2 == 0 else "in place"
            yield _told(f"{data} and model changed {how}", command, place, references)


def _told(kind: str, command: Command, place: Place, references: dict[tuple[str, str], Files]) -> Outcome:
    code, said = command.wait(), command.said
    found = _of_folder(place)
    if not found:
        return judged(kind, code, said, {}, {LAST: b""})
    audited = json.loads(found.get(LAST, b'{"audited": {"data": {"sha256": ""}, "model": {"sha256": ""}}}'))["audited"]
    named = audited["data"]["sha256"], audited["model"]["sha256"]
    for version in range(4):
        write_table(place.data, version % 2)
        write_model(place.folder / "model.skops", version // 2)
        if named not in references and named == (_hash(place.data), _hash(place.folder / "model.skops")):
            references[named] = place.reference()
    if named not in references:
        return Outcome(kind, WRONG, "the report names the hash of no version")
    return judged(kind, code, said, found, references[named])


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
