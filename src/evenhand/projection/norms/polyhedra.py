"""The best of many polyhedra for one query after another: bound, prune, solve, certify.

Pieces are visited in the order of their lower bounds, at first the largest distance to a single row.  What is bounded
above the best cost found is never solved.  Ties go to the smaller l2 length, then to the lexicographically smaller
point, so that the answer does not depend on the order in which pieces were visited.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.projection._numba import entry, kernel
from evenhand.projection.norms.arrays import Rows
from evenhand.projection.norms.pivot import l2_halfspaces
from evenhand.projection.norms.proof import (
    bound_of,
    cancels,
    holding,
    judge,
    moving,
    weigh_columns,
    weigh_rows,
    without_guard,
)
from evenhand.projection.norms.query import (
    FOUND,
    NOTHING,
    PRUNED,
    TIED,
    UNRESOLVED,
    Leader,
    Query,
    challenged,
    load_rows,
    most_promising,
    norm,
    worth,
)
from evenhand.projection.norms.simplex import FAILED, INFEASIBLE, OPTIMAL, l1_halfspaces
from evenhand.types import FloatArray


@kernel
def solve_polyhedron(solve: Any, t: Rows, p: int, q: Query) -> tuple[int, float, float, bool, float]:
    """Project onto polyhedron p, into ``q.xi`` and ``q.lam``; `solve` is the solver of the norm.

    Returns status, cost, proven bound, whether ties are possible, and what the cost owes to the guard, at most.
    """
    start, stop = t.start[p], t.start[p + 1]
    A, gram = t.A[start:stop], t.gram[start:stop]
    status = solve(A, gram, q.h[start:stop], q.tol[start:stop], q.solver, q.xi, q.lam)
    if status == FAILED:
        return FAILED, np.inf, 0.0, False, 0.0
    cost = norm(t.order, q.xi)
    q.dual[:] = 0.0
    value, noise, violation, mass, owed = weigh_rows(t, p, q, q.xi, q.lam)
    bound, noise, cancelled = bound_of(t.order, q, value, noise, mass)
    proven = without_guard(t.order, q, value, owed)
    ties = t.order == 1 and moving(q) > holding(q.lam, stop - start)
    status = judge(t.order, status, cost, bound, noise, violation, cancelled, proven)
    if status == INFEASIBLE:
        weigh_columns(t, p, q)
        if not cancels(q):
            return FAILED, np.inf, 0.0, False, 0.0
    return status, cost, proven, ties, bound - proven


@kernel
def _search(
    solve: Any, t: Rows, x: FloatArray, guard: float, cutoff: float, only: int, q: Query, best: FloatArray,
    mult: FloatArray,
) -> tuple[int, float, float, int, float]:  # fmt: skip
    """The nearest point over all polyhedra (or `only` one), written to `best`.

    Returns outcome, cost, proven bound, polyhedron, and what the cost owes to the guard, at most; the multipliers go to
    `mult` if it has room for them.
    """
    load_rows(t, x, guard, q)
    for k in range(len(q.open)):
        q.open[k] = only < 0 or only == k
    leader = Leader(np.inf, -1, False, 0.0)
    proven = np.inf  # the least bound of what was solved
    missing = np.inf  # the least bound of what could not be solved here
    while True:
        p, least = most_promising(q.open, q.bound)
        if p < 0 or least > worth(leader.cost, cutoff):
            break
        q.open[p] = False
        status, cost, bound, ties, owed = solve_polyhedron(solve, t, p, q)
        if status == FAILED:
            missing = min(missing, max(least, bound))
        elif status == OPTIMAL:
            proven = min(proven, bound)
            leader = challenged(t, q, leader, cost, ties, p, owed, best, mult)
    if missing < np.inf and missing <= worth(leader.cost, cutoff):
        return UNRESOLVED, leader.cost, min(proven, missing), leader.piece, leader.owed
    if leader.piece < 0:
        return (NOTHING if cutoff == np.inf else PRUNED), np.inf, np.inf, -1, 0.0
    return (TIED if leader.tied else FOUND), leader.cost, min(proven, leader.cost), leader.piece, leader.owed


@kernel
def _search_all(
    solve: Any, t: Rows, X: FloatArray, guard: float, cutoff: FloatArray, only: int, q: Query, xi: FloatArray,
    mult: FloatArray, cost: FloatArray, bound: FloatArray, piece: npt.NDArray[np.int64],
    outcome: npt.NDArray[np.int64], owed: FloatArray,
) -> None:  # fmt: skip
    for i in range(len(X)):
        outcome[i], cost[i], bound[i], piece[i], owed[i] = _search(
            solve, t, X[i], guard, cutoff[i], only, q, xi[i], mult[i]
        )


@entry
def nearest_polyhedron_l1(
    t: Rows, X: FloatArray, guard: float, cutoff: FloatArray, only: int, q: Query, xi: FloatArray, mult: FloatArray,
    cost: FloatArray, bound: FloatArray, piece: npt.NDArray[np.int64], outcome: npt.NDArray[np.int64], owed: FloatArray,
) -> None:  # fmt: skip
    """Search in l1 for every row of `X`; `mult` has one row per query, of width 0 if nobody wants it."""
    _search_all(l1_halfspaces, t, X, guard, cutoff, only, q, xi, mult, cost, bound, piece, outcome, owed)


@entry
def nearest_polyhedron_l2(
    t: Rows, X: FloatArray, guard: float, cutoff: FloatArray, only: int, q: Query, xi: FloatArray, mult: FloatArray,
    cost: FloatArray, bound: FloatArray, piece: npt.NDArray[np.int64], outcome: npt.NDArray[np.int64], owed: FloatArray,
) -> None:  # fmt: skip
    """The same in l2."""
    _search_all(l2_halfspaces, t, X, guard, cutoff, only, q, xi, mult, cost, bound, piece, outcome, owed)
