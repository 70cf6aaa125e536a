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
from dataclasses import replace
from pathlib import Path

from evenhand.auditing.result import FILES
from faults.audits import Place
from faults.base import PATIENCE, REFUSED, WRONG, Command, Outcome, contents, judged, kill, until
from faults.studies import Folder, cells_in

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

    def lose(self, workers: int = 0) -> None:
        """Kill so many of the workers that are there, or all."""
        for worker in self.workers[: workers or None]:
            kill(worker.pid)
            worker.wait()
        del self.workers[: workers or None]

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
cluster.PATIENCE, cluster.REMIND = 2.0, 0.9
sys.argv[:] = ["evenhand", *sys.argv[sys.argv.index("evenhand") + 1 :]]
from evenhand.cli.command import main
main()
"""
WAITING = "has no workers; waiting for some"
Loss = Callable[[Dask, Command], object]


def campaign(short: bool) -> Iterator[Outcome]:
    """Every loss at several moments of studies, and, unless it is to be short, of an audit."""
    chance = random.Random(3)
    with tempfile.TemporaryDirectory(prefix="evenhand-faults-") as name:
        folder = Path(name)
        study = Folder(folder / "study")
        for i in range(1 if short else 2):
            yield from _studies(study, folder / str(i), chance)
        if not short:
            yield from _audits(folder)


def _studies(study: Folder, folder: Path, chance: random.Random) -> Iterator[Outcome]:
    """A study that bears what it can, and one that gives up twice; without a cluster the next run does the rest."""
    with dask(folder / "dask") as cluster:
        command, out = _study(study, folder / "first", cluster), folder / "first"
        _when(command, out, chance.randrange(10))
        cluster.lose(1)
        _when(command, out, chance.randrange(10, 30))
        _all_then_another(cluster, command)
        kind, code = "study: one Dask worker lost, then the other, then there is a third", command.wait()
        yield study.judge(kind, out, code, command.said, refusals=())
        outcomes, out = [], folder / "second"
        for lose in (_all, _scheduler):
            command = _study(study, out, cluster, impatient=lose is _all)
            _when(command, out, cells_in(out) + chance.randrange(15))
            lose(cluster, command)
            outcomes.append(study.judge(f"study: {KINDS[lose]}", out, command.wait(), command.said))
            cluster.add() if lose is _all else None
    before, (code, said) = cells_in(out), study.finish(out)
    last = study.judge("study without its cluster", out, code, said, refusals=())
    if f"{before} of them found finished" not in said and before > 0:
        last = replace(last, result=WRONG, detail=f"{before} cells were finished, and it said: {said[-500:]}")
    yield from (*outcomes, last)


def _study(study: Folder, out: Path, cluster: Dask, *, impatient: bool = False) -> Command:
    prefix = (sys.executable, "-c", IMPATIENT) if impatient else ()
    return Command("study", study.file, "--out", out, "--cluster", cluster.address, prefix=prefix)


def _when(command: Command, out: Path, cells: int) -> None:
    """Wait until so many cells are finished."""
    until(lambda: cells_in(out) >= cells, command)


def _audits(folder: Path) -> Iterator[Outcome]:
    """An audit, with the losses that it can go on from, and with the others."""
    place = Place(folder / "audit")
    wanted = place.reference()
    for lose, kind in KINDS.items():
        place.begin({})
        with dask(folder / f"audit-{lose.__name__}") as cluster:
            prefix = (sys.executable, "-c", IMPATIENT) if lose is _all else ()
            command = Command("audit", place.file, "--seed", "0", "--cluster", cluster.address, prefix=prefix)
            until(lambda command=command: "explaining" in command.said, command)
            lose(cluster, command)
            code = command.wait()
            refusals = (REFUSED,) if lose in (_all, _scheduler) else ()
            yield judged(f"audit: {kind}", code, command.said, contents(place.out, FILES), wanted, refusals=refusals)


def _one(cluster: Dask, _: Command) -> None:
    cluster.lose(1)


def _all_then_another(cluster: Dask, command: Command) -> None:
    cluster.lose()
    until(lambda: WAITING in command.said, command, every=0.1)
    cluster.add()


def _all(cluster: Dask, _: Command) -> None:
    cluster.lose()


def _scheduler(cluster: Dask, _: Command) -> None:
    cluster.lose_scheduler()


KINDS: dict[Loss, str] = {
    _one: "one Dask worker lost",
    _all_then_another: "all Dask workers lost, then there is another",
    _all: "all Dask workers lost",
    _scheduler: "Dask scheduler lost",
}
