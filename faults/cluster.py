"""Studies and audits on a Dask scheduler with two workers, of which one, both or the scheduler are lost."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from evenhand.auditing.result import FILES
from faults.audits import Place
from faults.base import NONE, PATIENCE, WRONG, Command, Outcome, contents, judged, kill, until
from faults.studies import Folder

ADDRESS = "127.0.0.1"


class Dask:
    """A scheduler, and workers with one thread each."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--host", ADDRESS, "--port", "0", "--no-show")
        self.workers: list[subprocess.Popen[bytes]] = []
        try:
            for _ in range(workers):
                self.add()
            self._wait(workers)
        except BaseException:
            self.end()
            raise

    @property
    def address(self) -> str:
        """Where the scheduler listens."""
        return str(json.loads(self._file.read_text())["address"])

    def add(self) -> None:
        """Another worker, which nobody starts again."""
        options = ("--no-nanny", "--nthreads", "1", "--host", ADDRESS, "--local-directory", str(self.folder))
        self.workers.append(self._start("worker", *options))

    def _start(self, kind: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--scheduler-file", str(self._file)]
        return subprocess.Popen(
            [*command, "--no-dashboard", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def _wait(self, workers: int) -> None:
        from dask.distributed import Client

        latest = time.monotonic() + PATIENCE
        while not self._is_there() and time.monotonic() < latest:
            time.sleep(0.05)
        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=PATIENCE)

    def _is_there(self) -> bool:
        try:
            return bool(self.address)
        except (FileNotFoundError, ValueError):  # not whole yet
            return False

    def lose(self, worker: int) -> None:
        """Kill a worker."""
        kill(self.workers[worker].pid)
        self.workers[worker].wait()

    def lose_scheduler(self) -> None:
        """Kill the scheduler; its workers are left alone."""
        kill(self.scheduler.pid)
        self.scheduler.wait()

    def end(self) -> None:
        """Kill whoever is left."""
        for process in (*self.workers, self.scheduler):
            kill(process.pid)
            process.wait()


@contextmanager
def dask(folder: Path, workers: int = 2) -> Iterator[Dask]:
    """A cluster that is gone afterwards."""
    cluster = Dask(folder, workers)
    try:
        yield cluster
    finally:
        cluster.end()


# Less patient than the command line, which waits for minutes.
IMPATIENT = """
import sys
from evenhand.workers import cluster
cluster.PATIENCE, cluster.REMIND = 4.0, 1.5
sys.argv[:] = ["evenhand", *sys.argv[sys.argv.index("evenhand") + 1 :]]
from evenhand.cli.command import main
main()
"""
WAITING = "has no workers; waiting for some"
Loss = Callable[[Dask, Command], int]


def campaign(short: bool) -> Iterator[Outcome]:
    """Every loss at several moments of a study, and of an audit."""
    chance = random.Random(3)
    with tempfile.TemporaryDirectory(prefix="evenhand-faults-") as name:
        folder = Path(name)
        study = Folder(folder / "study")
        for i in range(1 if short else 2):
            for kind, lose in LOSSES.items():
                place = folder / f"{i}-{lose.__name__}"
                with dask(place / "dask") as cluster:
                    yield _lost(study, place / "out", cluster, kind, lose, chance.randrange(30))
        if not short:
            yield from _audits(folder)


def _lost(study: Folder, out: Path, cluster: Dask, kind: str, lose: Loss, cells: int) -> Outcome:
    """Lose something when so many cells are finished; without a cluster the next run does the rest."""
    prefix = (sys.executable, "-c", IMPATIENT) if lose is _all_for_good else ()
    command = Command("study", study.file, "--out", out, "--cluster", cluster.address, prefix=prefix)
    until(lambda: len(list((out / "cells").glob("*.parquet"))) >= cells, command)
    kills = lose(cluster, command)
    outcome = study.judge(f"study: {kind}", out, command.wait(), command.said, kills=kills)
    if outcome.result == NONE:
        last = study.judge(f"study: {kind}", out, *study.finish(out))
        outcome = last if last.result == WRONG else outcome
    return outcome


def _audits(folder: Path) -> Iterator[Outcome]:
    """An audit, with the losses that it can go on from, and with the others."""
    place = Place(folder / "audit")
    wanted = place.reference()
    for kind, lose in LOSSES.items():
        place.begin({})
        with dask(folder / f"audit-{lose.__name__}") as cluster:
            prefix = (sys.executable, "-c", IMPATIENT) if lose is _all_for_good else ()
            command = Command("audit", place.file, "--seed", "0", "--cluster", cluster.address, prefix=prefix)
            until(lambda command=command: "explaining" in command.said, command)
            kills = lose(cluster, command)
            code = command.wait()
            yield judged(f"audit: {kind}", code, command.said, contents(place.out, FILES), wanted, kills=kills)


def _one(cluster: Dask, _: Command) -> int:
    cluster.lose(0)
    return 1


def _all(cluster: Dask, command: Command) -> int:
    cluster.lose(0)
    cluster.lose(1)
    until(lambda: WAITING in command.said, command, every=0.1)
    cluster.add()
    return 2


def _all_for_good(cluster: Dask, _: Command) -> int:
    cluster.lose(0)
    cluster.lose(1)
    return 2


def _scheduler(cluster: Dask, _: Command) -> int:
    cluster.lose_scheduler()
    return 1


LOSSES: dict[str, Loss] = {
    "one Dask worker lost": _one,
    "all Dask workers lost, then another": _all,
    "all Dask workers lost": _all_for_good,
    "Dask scheduler lost": _scheduler,
}
