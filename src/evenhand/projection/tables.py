"""Projecting whole tables, in chunks and threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.distances import Cost, FloatArray
from evenhand.projection.engine import Projector
from evenhand.projection.result import Projection
from evenhand.sets import ConvexSet, Region

CHUNK = 16384
Progress = Callable[[int, int], object]
T = TypeVar("T")


def project(
    X: npt.ArrayLike,
    region: Region,
    cost: Cost | str = "l1",
    *,
    n_jobs: int | None = None,
    chunk_size: int = CHUNK,
    progress: Progress | None = None,
) -> Projection:
    """The nearest point of a region for every row of a table, with a proof of how near.

    Parameters
    ----------
    X : array of shape (n, dim)
        Queries.  A row with NaN or infinity gets the status "invalid".
    region : Region
        Where to project.
    cost : {"l1", "l2"}, L1 or L2
        The cost of a change.
    n_jobs : int, optional
        Threads; -1 uses all cores.  The answer does not depend on it.
    chunk_size : int
        Rows at a time; bounds the memory, not the answer.
    progress : callable, optional
        Called as ``progress(done, total)`` after each chunk.

    Returns
    -------
    Projection

    Examples
    --------
    >>> from evenhand import ConvexSet, Region, project
    >>> corner = Region([ConvexSet(2, lower=[1.0, 2.0])])
    >>> project([[0.0, 0.0], [3.0, 3.0]], corner).cost
    array([3., 0.])
    """
    table = as_table(X, region.dim)
    projector = Projector(region, cost)
    n = len(table)
    points, cost_of, gap = np.empty((n, region.dim)), np.empty(n), np.empty(n)
    piece, status = np.empty(n, dtype=np.int64), np.empty(n, dtype="<U11")
    for rows, part in in_chunks(lambda rows: projector.project(table[rows]), n, n_jobs, chunk_size, progress):
        points[rows], cost_of[rows], gap[rows] = part.points, part.cost, part.gap
        piece[rows], status[rows] = part.piece, part.status
    return Projection(points, cost_of, gap, piece, status)


def compile_kernels() -> None:
    """Have every kernel compiled, or loaded from disk, before it is needed."""
    box = ConvexSet(2, lower=np.zeros(2))
    halfspace = ConvexSet(2, G=np.ones((1, 2)), h=np.zeros(1))
    for piece in (box, halfspace):
        project(np.ones((1, 2)), Region((piece,)))


def as_table(X: npt.ArrayLike, dim: int) -> FloatArray:
    """`X` as a float table with `dim` columns, or an error that says what it is instead."""
    try:
        table = _numbers(X)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Expected a table of numbers with {dim} columns: {error}") from error
    if table.ndim != 2 or table.shape[1] != dim:
        hint = " One person is a table with one row: X[None, :]." if table.ndim == 1 else ""
        raise ValueError(f"Expected a table with {dim} columns, got shape {table.shape}.{hint}")
    return table


def _numbers(X: npt.ArrayLike) -> FloatArray:
    if isinstance(X, pd.DataFrame) and any(pd.api.types.is_extension_array_dtype(kind) for kind in X.dtypes):
        return X.to_numpy(dtype=np.float64, na_value=np.nan)  # pandas' own missing values are NaN here
    return np.asarray(X, dtype=np.float64)


def in_chunks(
    work: Callable[[slice], T], n: int, n_jobs: int | None, chunk_size: int, progress: Progress | None
) -> Iterator[tuple[slice, T]]:
    """Yield ``rows, work(rows)`` for chunks of `n` rows, in order, on as many threads as asked for."""
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, got {chunk_size}.")
    threads = count_jobs(n_jobs)
    if threads > 1:  # enough chunks for every thread to have work until the end
        chunk_size = min(chunk_size, max(256, -(-n // (4 * threads))))
    chunks = [slice(start, min(start + chunk_size, n)) for start in range(0, n, chunk_size)]
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
