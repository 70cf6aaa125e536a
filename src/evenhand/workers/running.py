"""Tasks given to workers, and given again if they are lost; one that loses its worker every time is named."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import Any

import joblib

from evenhand.workers.base import Crew, Finished, Lost, Task, WorkersError, called, tell
from evenhand.workers.cluster import Cluster
from evenhand.workers.processes import Processes

ATTEMPTS = 3  # how often a worker may be lost with the same task: what ends its process each time is not tried forever
AHEAD = 4  # results that may wait for one before them, per task that is given: they are kept in memory

_tickets = count()  # never the same one twice: what is forgotten may come to its end later


class Here(Crew):
    """The process that asks."""

    def __init__(self) -> None:
        self._given: list[tuple[int, Task]] = []

    def room(self) -> bool:
        """One task at a time."""
        return not self._given

    def give(self, ticket: int, task: Task) -> None:
        """Keep it until it is waited for."""
        self._given.append((ticket, task))

    def wait(self) -> list[Finished | Lost]:
        """Do it."""
        ticket, task = self._given.pop()
        with joblib.parallel_config(backend="sequential"):
            return [Finished(ticket, called(task.function, task.arguments))]

    def forget(self) -> None:
        """Do nothing of it."""
        self._given.clear()

    def close(self) -> None:
        """Nobody has to be sent home."""


_crew: ContextVar[Crew | None] = ContextVar("_crew", default=None)


@contextmanager
def backend(jobs: int | None, cluster: str | None) -> Iterator[None]:
    """Who does what is given to :func:`run_all` inside of this context.

    Parameters
    ----------
    jobs : int or None
        Processes; one is this process, and None leaves it to a context around this one.
    cluster : str or None
        Address of a Dask scheduler, which goes before `jobs`.

    Raises
    ------
    WorkersError
        If no scheduler answers.
    """
    if cluster is None and jobs is None:
        yield
        return
    crew = Cluster(cluster) if cluster is not None else _on_this_machine(jobs or 0)
    before = _crew.set(crew)
    try:
        # What is called in this process, such as a model, does not start workers of its own.
        with joblib.parallel_config(backend="sequential"):
            yield
    finally:
        _crew.reset(before)
        crew.close()


def _on_this_machine(jobs: int) -> Crew:
    """As many processes as asked for, -1 for all cores; a process that may have no children works itself."""
    if jobs == 0:
        raise WorkersError("jobs must not be 0: use 1 for this process, or -1 for all cores.")
    count = jobs if jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + jobs)
    return Processes(count) if count > 1 and not multiprocessing.current_process().daemon else Here()


def run_all(tasks: Iterable[Task], *, ordered: bool = True) -> Iterator[Any]:
    """Results of tasks, as they come; tasks are taken from their iterable when somebody can do them.

    Parameters
    ----------
    tasks : iterable of Task
    ordered : bool
        Whether results have to wait for those of the tasks before.

    Raises
    ------
    WorkersError
        If a task has lost its worker :data:`ATTEMPTS` times, or if there are no workers any more.
    """
    crew = _crew.get() or Here()
    new = enumerate(tasks)
    again: deque[tuple[int, Task]] = deque()
    suspects: deque[tuple[int, Task]] = deque()  # each is done alone, to know whether it was that one
    given: dict[int, tuple[int, Task]] = {}
    losses: Counter[str] = Counter()
    results: dict[int, Any] = {}
    due, most = 0, 1

    def taken() -> tuple[int, Task] | None:
        """Another task, unless too many results wait already, for one that takes long."""
        return next(new, None) if not ordered or len(results) < AHEAD * most else None

    try:
        while True:
            while crew.room():
                following = again.popleft() if again else taken()
                if following is None and suspects and not given:
                    following = suspects.popleft()
                if following is None:
                    break
                ticket = next(_tickets)
                given[ticket] = following
                most = max(most, len(given))
                crew.give(ticket, following[1])
            # Only now, when everybody is busy: who asked may take their time.
            told = False
            while results and (not ordered or due in results):
                yield results.pop(due if ordered else next(iter(results)))
                due += 1
                told = True
            if told and crew.room():
                continue  # what waited is gone: there may be more to do
            if not again and (following := taken()) is not None:
                again.append(following)  # at hand when somebody is free
            if not (given or again or suspects):
                return
            for event in crew.wait():
                if event.ticket not in given:  # of tasks that somebody has forgotten
                    continue
                place, task = given.pop(event.ticket)
                if isinstance(event, Finished):
                    if event.error is not None:
                        raise event.error
                    results[place] = event.value
                elif event.alone:
                    _count(losses, task.at, event.why)
                    again.append((place, task))
                else:
                    suspects.append((place, task))
    finally:
        crew.forget()


def _count(losses: Counter[str], name: str, why: str) -> None:
    """Say that a worker was lost, unless that was once too often."""
    losses[name] += 1
    if losses[name] >= ATTEMPTS:
        raise WorkersError(
            f"{name}: {losses[name]} workers were lost with it, one after the other, the last one by {why}. If memory "
            "is short there, use fewer workers; if not, something in it ends the process, such as a model's own "
            "compiled code."
        )
    tell(f"A worker was lost, by {why}. What it was at is done again: {name}.")
