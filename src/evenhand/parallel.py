"""Where work is done: in chunks and threads; in processes and on clusters, see :mod:`evenhand.workers`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

CHUNK = 16384
CACHED = 4 * 2**20  # bytes of a chunk's table: a few copies of it stay near the processor
TRIAL = 256  # rows that are worked on by one thread first, to know how long the others will take
WORTH = 0.05  # seconds of work that are left: below, threads gain nothing
LEAST = 0.01  # seconds of work in a chunk: below, what a chunk takes to begin with counts
Progress = Callable[[int, int], object]
T = TypeVar("T")


def chunk_of(n_columns: int) -> int:
    """How many rows at a time are fastest: as many as stay in the cache, and enough to make calls worth it."""
    return min(CHUNK, max(2048, CACHED // (8 * max(n_columns, 1))))


def in_chunks(
    work: Callable[[slice], T], n: int, n_jobs: int | None, chunk_size: int, progress: Progress | None
) -> Iterator[tuple[slice, T]]:
    """Yield ``rows, work(rows)`` for chunks of `n` rows, in order, on as many threads as asked for."""
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, got {chunk_size}.")
    threads = count_jobs(n_jobs)
    done, began = 0, time.perf_counter()
    if threads > 1 and n >= 32 * TRIAL:  # how long does it take? Below, to ask costs what threads gain
        done = min(TRIAL, chunk_size)
        yield from _reported([slice(0, done)], map(work, [slice(0, done)]), n, progress)
    left = n - done
    pace = (time.perf_counter() - began) / done if done else 0.0  # seconds for a row
    if pace * left > WORTH:
        even = -(-left // (4 * threads))  # work for every thread until the end
        chunk_size = min(chunk_size, max(even, int(LEAST / pace)), -(-left // threads))
    else:
        threads = 1
    chunks = [slice(start, min(start + chunk_size, n)) for start in range(done, n, chunk_size)]
    if threads == 1:
        yield from _reported(chunks, map(work, chunks), n, progress)
    else:
        with ThreadPoolExecutor(threads) as pool:
            yield from _reported(chunks, pool.map(work, chunks), n, progress)


def _reported(
    chunks: list[slice], results: Iterator[T], n: int, progress: Progress | None
) -> Iterator[tuple[slice, T]]:
    for rows, result in zip(chunks, results, strict=True):
        yield rows, result
        if progress is not None:
            progress(rows.stop, n)


def count_jobs(n_jobs: int | None) -> int:
    """Number of threads, in scikit-learn's convention: None is one, -1 is all cores."""
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: use None for one thread or -1 for all cores.")
    return n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)
