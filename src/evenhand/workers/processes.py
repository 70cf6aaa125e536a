"""Processes on this machine: each ends when the one that has started it does, whether busy or not.

Each has a pipe of its own.  So it is known what a lost one was at, and its colleagues lose nothing.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any

import cloudpickle
from joblib.externals.loky.backend import get_context
from joblib.externals.loky.backend import resource_tracker as loky_tracker

from evenhand.workers.base import Crew, Finished, Lost, Task, WorkersError, do

GRACE = 10.0  # seconds to end
# More threads than cores only get in each other's way, and add up in another order.
ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)


class Processes(Crew):
    """As many processes as asked for, started when there is work for them."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._workers: list[_Worker] = []

    def room(self) -> bool:
        """Whether somebody has nothing to do: nobody waits behind a long task while others are idle."""
        return len(self._workers) < self.jobs or any(one.ticket is None for one in self._workers)

    def give(self, ticket: int, task: Task) -> None:
        """To somebody who has nothing to do."""
        packed = task.packed()
        for idle in [one for one in self._workers if one.ticket is None and one.has_ended(0.0)]:
            self._workers.remove(idle)  # lost with nothing
            idle.close()
        free = next((one for one in self._workers if one.ticket is None), None)
        if free is None:
            free = _Worker()
            self._workers.append(free)
        free.ticket = ticket
        with suppress(OSError):  # who is gone is noticed when waiting
            free.connection.send_bytes(packed)

    def wait(self) -> list[Finished | Lost]:
        """What came through any pipe; one that is closed belongs to a worker who is gone."""
        found: list[Finished | Lost] = []
        busy = {one.connection: one for one in self._workers if one.ticket is not None}
        for connection in wait(list(busy)):
            one = busy[connection]
            ticket, one.ticket = one.ticket, None
            assert ticket is not None
            try:
                content = one.connection.recv_bytes()
            except (EOFError, OSError):
                self._workers.remove(one)
                one.close()
                found.append(Lost(ticket, one.end, alone=True))
            else:
                value, error = cloudpickle.loads(content)
                found.append(Finished(ticket, value, error))
        return found

    def forget(self) -> None:
        """What they are at is finished, and nobody looks at it."""

    def close(self) -> None:
        """They end when their pipes do."""
        for one in self._workers:
            one.connection.close()
        until = time.monotonic() + GRACE  # for all of them together
        for one in self._workers:
            one.close(max(until - time.monotonic(), 0.0))
        self._workers.clear()


class _Worker:
    """A process, seen from the one that has started it."""

    def __init__(self) -> None:
        context: Any = get_context("loky")  # it does not run the user's script again
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), env=ONE_THREAD)
        try:
            with _undisturbed():
                self.process.start()
        except OSError as error:
            self.connection.close()
            raise WorkersError(
                f"No process can be started: {error.strerror or error}. Use fewer of them (--jobs), or make room."
            ) from None
        finally:
            theirs.close()
        self.ticket: int | None = None  # of what it is at

    @property
    def end(self) -> str:
        """How it ended."""
        code = self.process.exitcode
        if code is None or code >= 0:
            return "leaving" if code is None else f"exit code {code}"
        return signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"

    def has_ended(self, seconds: float) -> bool:
        """Whether it is gone, at the latest after so many seconds; also if somebody else was told of its end."""
        return bool(wait([self.process.sentinel], seconds))

    def close(self, seconds: float = GRACE) -> None:
        """Wait for its end, for a while, and then not any more."""
        self.connection.close()
        if not self.has_ended(seconds):
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
            self.has_ended(GRACE)
        self.process.join(GRACE)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C comes later: a worker that is starting would show a traceback for it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    for tracker in (resource_tracker, loky_tracker):  # they would let the signal through when they start
        tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection) -> None:
    """The life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that has started it, which then goes
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    tasks: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(connection, tasks), daemon=True).start()
    while True:
        answer = _answer(tasks.get())
        try:
            connection.send_bytes(answer)
        except OSError:
            _leave()


def _listen(connection: Connection, tasks: SimpleQueue[bytes]) -> None:
    """Take tasks, and notice, in the middle of one too, that there is nobody any more who wants its result."""
    while True:
        try:
            tasks.put(connection.recv_bytes())
        except (EOFError, OSError):
            _leave()


def _leave() -> None:
    os._exit(0)  # at once: other threads may be in the middle of something


def _answer(packed: bytes) -> bytes:
    """The result of a task, or its error, as bytes."""
    try:
        content: bytes = cloudpickle.dumps((do(packed), None))
    except Exception as error:  # noqa: BLE001 - raised again by who asked
        error.add_note("In a worker:\n" + traceback.format_exc())
        try:
            content = cloudpickle.dumps((None, error))
            cloudpickle.loads(content)
        except Exception:  # noqa: BLE001 - one that does not travel, whatever its own code says of it
            content = cloudpickle.dumps((None, RuntimeError(traceback.format_exc())))
    return content
