"""The best of many pieces with ellipsoids for one query after another: bound, prune, solve, certify.

As in `polyhedra`, pieces are visited in the order of their lower bounds, which sharpen on the way: first the
largest single-constraint distance, then the polyhedron alone and the ellipsoid alone (each bounds
every piece that shares it), last the piece itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.projection._numba import copy, entry, kernel
from evenhand.projection.norms.arrays import Curves, Rows
from evenhand.projection.norms.curved import (
    CurvedQuery,
    inside_ellipsoid,
    inside_rows,
    l1_curved,
    l2_curved,
    load_curves,
    solve_curved,
)
from evenhand.projection.norms.query import (
    FOUND,
    NOTHING,
    PRUNED,
    TIED,
    UNRESOLVED,
    Leader,
    challenged,
    load_rows,
    most_promising,
    worth,
)
from evenhand.projection.norms.simplex import ABANDONED, FAILED, INFEASIBLE, OPTIMAL
from evenhand.types import FloatArray

_POLYHEDRON, _ELLIPSOID, _PAIR, _NOT_HERE = 0, 1, 2, 3


@kernel
def _raise_bounds(c: Curves, w: CurvedQuery, p: int, e: int, bound: float) -> None:
    """A new bound for everything that lies in polyhedron p or in ellipsoid e."""
    for k in range(len(w.bound)):
        if c.polyhedron[k] == p or (e >= 0 and c.ellipsoid[k] == e):
            w.bound[k] = max(w.bound[k], bound)


@kernel
def _stage(c: Curves, w: CurvedQuery, p: int, e: int) -> int:
    """What to solve next for a piece: the cheap bounds first, where they are not yet known."""
    if w.solved_poly[p] < 0:
        return _POLYHEDRON
    if e < -1 or w.solved_poly[p] == FAILED:
        return _NOT_HERE
    if e >= 0 and c.shared[e] > 1 and w.solved_ell[e] < 0 and w.bound_ell[e] > 0.0:
        return _ELLIPSOID
    return _PAIR


@kernel
def _home_of(t: Rows, c: Curves, w: CurvedQuery, e: int, xi: FloatArray) -> int:
    """An open piece of ellipsoid e whose polyhedron holds the point; -1 if none does."""
    for k in range(len(w.bound)):
        if w.rows.open[k] and c.ellipsoid[k] == e and inside_rows(t, c.polyhedron[k], w.rows, xi):
            return k
    return -1


@kernel
def _load(t: Rows, c: Curves, x: FloatArray, guard: float, cutoff: float, only: int, w: CurvedQuery) -> None:
    """Right-hand sides and first bounds, and which pieces are asked for."""
    load_rows(t, x, guard, w.rows)
    prunes = cutoff < np.inf or (only < 0 and len(w.bound) > 1)
    load_curves(t, c, x, guard, prunes, w)
    for p in range(len(w.solved_poly)):
        w.solved_poly[p] = -1
    for k in range(len(w.bound)):
        w.bound[k] = w.rows.bound[c.polyhedron[k]]
        if c.ellipsoid[k] >= 0:
            w.bound[k] = max(w.bound[k], w.bound_ell[c.ellipsoid[k]])
        w.rows.open[k] = only < 0 or only == k


@kernel
def _search(
    solve: Any, t: Rows, c: Curves, x: FloatArray, guard: float, cutoff: float, only: int,
    w: CurvedQuery, best: FloatArray, mult: FloatArray,
) -> tuple[int, float, float, int, float, float]:  # fmt: skip
    """The nearest point over all pieces (or `only` one), written to `best`.

    `solve` is the solver of the norm.  Returns outcome, cost, proven bound, piece, the ellipsoid's multiplier,
    and what the cost owes to the guard, at most; the rows' multipliers go to `mult` if it has room for them.
    """
    q = w.rows
    _load(t, c, x, guard, cutoff, only, w)
    leader = Leader(np.inf, -1, False, 0.0)
    its_weight = 0.0  # of the leader's ellipsoid
    proven = np.inf  # the least bound of what was solved
    missing = np.inf  # the least bound of what could not be solved here
    while True:
        piece, least = most_promising(q.open, w.bound)
        limit = worth(leader.cost, cutoff)
        if piece < 0 or least > limit:
            break
        p, e = c.polyhedron[piece], c.ellipsoid[piece]
        stage = _stage(c, w, p, e)
        if stage == _NOT_HERE:
            q.open[piece] = False
            missing = min(missing, w.bound[piece])
            continue
        home = -1 if stage == _ELLIPSOID else p
        curve = -1 if stage == _POLYHEDRON else e
        status, cost, bound, ties, weight, owed = solve_curved(solve, t, c, piece, home, curve, w, limit)
        if status == INFEASIBLE:
            bound = np.inf
        if stage == _POLYHEDRON:
            w.solved_poly[p] = status
            copy(q.xi, w.vertex[p])
            copy(q.lam, w.vertex_lam[t.start[p] : t.start[p + 1]])
            _raise_bounds(c, w, p, -1, bound)
            if e != -1 and not (status == OPTIMAL and e >= 0 and inside_ellipsoid(c, e, w, q.xi)):
                continue
        elif stage == _ELLIPSOID:
            w.solved_ell[e] = status
            _raise_bounds(c, w, -1, e, bound)
            piece = _home_of(t, c, w, e, q.xi) if status == OPTIMAL else -1
            if piece < 0:
                continue
            q.lam[:] = 0.0
            for k in range(len(w.bound)):
                q.open[k] = q.open[k] and c.ellipsoid[k] != e
        q.open[piece] = False
        w.bound[piece] = max(w.bound[piece], bound)
        if status == FAILED:
            missing = min(missing, w.bound[piece])
        elif status == ABANDONED:  # dearer than what is known, but for what the guard costs
            proven = min(proven, bound)
        elif status == OPTIMAL:
            proven = min(proven, bound)
            leader = challenged(t, q, leader, cost, ties, piece, owed, best, mult)
            if leader.piece == piece:
                its_weight = weight
    if missing < np.inf and missing <= worth(leader.cost, cutoff):
        return UNRESOLVED, leader.cost, min(proven, missing), leader.piece, its_weight, leader.owed
    if leader.piece < 0:
        return (NOTHING if cutoff == np.inf else PRUNED), np.inf, np.inf, -1, 0.0, 0.0
    return (
        (TIED if leader.tied else FOUND),
        leader.cost,
        min(proven, leader.cost),
        leader.piece,
        its_weight,
        leader.owed,
    )


@kernel
def _search_all(
    solve: Any, t: Rows, c: Curves, X: FloatArray, guard: float, cutoff: FloatArray, only: int,
    w: CurvedQuery, xi: FloatArray, mult: FloatArray, weight: FloatArray, cost: FloatArray, bound: FloatArray,
    piece: npt.NDArray[np.int64], outcome: npt.NDArray[np.int64], owed: FloatArray,
) -> None:  # fmt: skip
    for i in range(len(X)):
        outcome[i], cost[i], bound[i], piece[i], weight[i], owed[i] = _search(
            solve, t, c, X[i], guard, cutoff[i], only, w, xi[i], mult[i]
        )


@entry
def nearest_piece_l1(
    t: Rows, c: Curves, X: FloatArray, guard: float, cutoff: FloatArray, only: int, w: CurvedQuery, xi: FloatArray,
    mult: FloatArray, weight: FloatArray, cost: FloatArray, bound: FloatArray, piece: npt.NDArray[np.int64],
    outcome: npt.NDArray[np.int64], owed: FloatArray,
) -> None:  # fmt: skip
    """Search in l1 for every row of `X`; `mult` has one row per query, of width 0 if nobody wants it."""
    _search_all(l1_curved, t, c, X, guard, cutoff, only, w, xi, mult, weight, cost, bound, piece, outcome, owed)


@entry
def nearest_piece_l2(
    t: Rows, c: Curves, X: FloatArray, guard: float, cutoff: FloatArray, only: int, w: CurvedQuery, xi: FloatArray,
    mult: FloatArray, weight: FloatArray, cost: FloatArray, bound: FloatArray, piece: npt.NDArray[np.int64],
    outcome: npt.NDArray[np.int64], owed: FloatArray,
) -> None:  # fmt: skip
    """The same in l2."""
    _search_all(l2_curved, t, c, X, guard, cutoff, only, w, xi, mult, weight, cost, bound, piece, outcome, owed)
