"""A Dask cluster: its scheduler gives the tasks of lost workers to others; here is said when there are none."""

from __future__ import annotations

import logging
import time
from asyncio import CancelledError
from concurrent.futures import CancelledError as Cancelled
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from evenhand.workers.base import Crew, Finished, Lost, Task, WorkersError, do, tell

LOOK = 1.0  # seconds between two looks at the cluster
REMIND = 60.0  # seconds until it is said once more that there are no workers
NAMED = 10  # tasks in a sentence: one of them may have ended the workers
PATIENCE = 300.0  # seconds without any worker
_LOGS = ("distributed", "distributed.client", "asyncio")


class Cluster(Crew):
    """The workers of a Dask scheduler, as many as there are."""

    def __init__(self, address: str) -> None:
        from dask import distributed

        self.address = address
        self._futures: dict[Any, tuple[int, Task]] = {}
        self._looked = self._told = 0.0
        self._alone: float | None = None  # since when there is no worker
        connect: Any = distributed.Client
        # What is logged of a lost scheduler or worker, with tracebacks, is here a sentence and an error.
        self._levels = {name: logging.getLogger(name).level for name in _LOGS}
        self._log(dict.fromkeys(self._levels, logging.CRITICAL))
        try:
            # Before there is a client: one without an address takes a minute to go.
            whole = distributed.comm.normalize_address(address)
            distributed.comm.resolve_address(whole)
            if not whole.startswith("inproc:"):
                distributed.comm.get_address_host_port(whole, strict=True)
            self._client = connect(address, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            self._log(self._levels)
            raise WorkersError(
                f"--cluster: no Dask scheduler answers at {address!r} ({error}). An address looks like tcp://host:8786."
            ) from None
        self._threads = 0
        self._ended: SimpleQueue[tuple[Any, Any, Any]] = SimpleQueue()
        self._killed = distributed.scheduler.KilledWorker
        self._closed = distributed.client.ClosedClientError

    def room(self) -> bool:
        """Two tasks for each thread: the scheduler keeps what is too much."""
        return len(self._futures) < 2 * max(1, self._threads)

    def give(self, ticket: int, task: Task) -> None:
        """To the scheduler."""
        packed = task.packed()
        try:
            future = self._client.submit(do, packed, key=f"evenhand-{ticket}-{time.time_ns()}", pure=False)
        except (OSError, self._closed):
            raise self._gone() from None
        self._futures[future] = (ticket, task)
        future.add_done_callback(self._ends)

    def wait(self) -> list[Finished | Lost]:
        """What is finished; meanwhile the cluster is looked at."""
        while True:
            if time.monotonic() - self._looked >= LOOK:
                self._look()
            with suppress(Empty):
                event = self._event(*self._ended.get(timeout=LOOK))
                if event is not None:
                    return [event]

    def _ends(self, future: Any) -> None:
        """Fetch a result; in a thread of the client, so that it may wait for one that is lost and made again."""
        try:
            self._ended.put((future, future.result(), None))
        except (Exception, CancelledError) as error:  # noqa: BLE001 - looked at by who waits
            self._ended.put((future, None, error))

    def _event(self, future: Any, value: Any, error: Any) -> Finished | Lost | None:
        """What has come of a task; None if nobody is interested any more."""
        if future not in self._futures:
            return None
        if error is not None and future.status != "error":  # of the connection, not of the task
            raise self._gone()
        ticket, _ = self._futures.pop(future)
        if isinstance(error, self._killed):
            return Lost(ticket, "ending", alone=not self._futures)
        return Finished(ticket, value, error)

    def _look(self) -> None:
        """Count threads; without any, say so, now and then again, and give up after a while."""
        self._looked = now = time.monotonic()
        try:
            self._threads = sum(self._client.nthreads().values())
        except (OSError, RuntimeError, CancelledError, Cancelled, self._closed):
            raise self._gone() from None
        if self._threads:
            self._alone = None
            return
        if self._alone is None:
            self._alone, self._told = now, -REMIND
        if now - self._alone > PATIENCE:
            raise WorkersError(
                f"The Dask scheduler at {self.address} has had no workers for {PATIENCE:g} seconds. What waits for "
                f"them: {self._at()}. Start some and run the command again; if they were lost, see whether that ended "
                "them."
            )
        if now - self._told >= REMIND:
            self._told = now
            tell(
                f"The Dask scheduler at {self.address} has no workers; waiting for some, "
                f"{PATIENCE - (now - self._alone):.0f} seconds at most. What waits for them: {self._at()}."
            )

    def _at(self) -> str:
        names = [task.at for _, task in self._futures.values()]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        return "; ".join(names[:NAMED]) + more if names else "nothing yet"

    def _gone(self) -> WorkersError:
        return WorkersError(
            f"The Dask scheduler at {self.address} is lost. Start it, with workers, and run the command again."
        )

    def forget(self) -> None:
        """Nobody begins with what is not begun."""
        for future in self._futures:
            future.release()
        self._futures.clear()

    def close(self) -> None:
        """Leave the cluster; it stays."""
        self._client.close(timeout=LOOK)
        self._log(self._levels)

    @staticmethod
    def _log(levels: dict[str, int]) -> None:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
