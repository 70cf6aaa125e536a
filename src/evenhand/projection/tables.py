"""Projecting whole tables, in chunks and threads."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.costs import Cost, as_cost
from evenhand.parallel import CHUNK, Progress, in_chunks
from evenhand.projection.problem import Problem
from evenhand.projection.result import Projection
from evenhand.projection.solver import solver
from evenhand.sets import Region
from evenhand.status import statuses
from evenhand.table.people import as_table


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
    >>> from evenhand.projection import project
    >>> from evenhand.sets import ConvexSet, Region
    >>> corner = Region([ConvexSet(2, lower=[1.0, 2.0])])
    >>> project([[0.0, 0.0], [3.0, 3.0]], corner).cost
    array([3., 0.])
    """
    table = as_table(X, region.dim)
    projector = solver(Problem.of_numbers(region, as_cost(cost)))
    n = len(table)
    points, cost_of, bound = np.empty((n, region.dim)), np.empty(n), np.empty(n)
    piece, status = np.empty(n, dtype=np.int64), statuses(n)
    for rows, part in in_chunks(lambda rows: projector.project(table[rows]), n, n_jobs, chunk_size, progress):
        points[rows], cost_of[rows], bound[rows] = part.points, part.cost, part.bound
        piece[rows], status[rows] = part.piece, part.status
    return Projection(points, cost_of, bound, piece, status)
