"""The best of many pieces for one query after another: bound, prune, solve, certify.

Pieces are visited in the order of their lower bounds, which sharpen on the way: first the
largest single-constraint distance, then the polyhedron alone and the ellipsoid alone (each bounds
every piece that shares it), last the piece itself.  What is bounded above the best cost found is
never solved.  Ties go to the smaller l2 length, then to the lexicographically smaller point, so
that the answer does not depend on the order in which pieces were visited.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.projection._numba import copy, entry, kernel
from evenhand.projection.norms.compiled import Tables
from evenhand.projection.norms.pieces import TIE, inside_ellipsoid, inside_rows, norm, solve_piece
from evenhand.projection.norms.query import Work, load_query, make_work
from evenhand.projection.norms.simplex import FAILED, INFEASIBLE, OPTIMAL
from evenhand.types import FloatArray

FOUND, NOTHING, UNRESOLVED, TIED, PRUNED = 0, 1, 2, 3, 4
_POLYHEDRON, _ELLIPSOID, _PAIR, _NOT_HERE = 0, 1, 2, 3


@kernel
def _coordinate(t: Tables, i: int, xi: FloatArray) -> float:
    """The change of column i that `xi` stands for."""
    total = 0.0
    for j in range(len(xi)):
        total += t.frame[i, j] * xi[j]
    return total


@kernel
def _before(t: Tables, a: FloatArray, cost_a: float, b: FloatArray, cost_b: float) -> bool:
    """Whether a comes before b: by cost, then by length, then lexicographically."""
    if abs(cost_a - cost_b) > TIE * max(cost_a, cost_b):
        return cost_a < cost_b
    length_a, length_b = norm(2, a), norm(2, b)
    if abs(length_a - length_b) > TIE * max(length_a, length_b):
        return length_a < length_b
    room = 0.0  # what counts as different: relative to the whole change, since a coordinate may be 0 up to rounding
    for i in range(t.frame.shape[0]):
        room = max(room, TIE * abs(_coordinate(t, i, a)))
    for i in range(t.frame.shape[0]):
        left, right = _coordinate(t, i, a), _coordinate(t, i, b)
        if abs(left - right) > room:
            return left < right
    return False


@kernel
def _raise_bounds(t: Tables, w: Work, p: int, e: int, bound: float) -> None:
    """A new bound for everything that lies in polyhedron p or in ellipsoid e."""
    for k in range(len(w.bound)):
        if t.piece_poly[k] == p or (e >= 0 and t.piece_ell[k] == e):
            w.bound[k] = max(w.bound[k], bound)


@kernel
def _most_promising(w: Work) -> tuple[int, float]:
    piece = -1
    least = np.inf
    for k in range(len(w.bound)):
        if w.open[k] and w.bound[k] < least:
            least = w.bound[k]
            piece = k
    return piece, least


@kernel
def _stage(t: Tables, w: Work, p: int, e: int) -> int:
    """What to solve next for a piece: the cheap bounds first, where they are not yet known."""
    if w.solved_poly[p] < 0:
        return _POLYHEDRON
    if e < -1 or w.solved_poly[p] == FAILED:
        return _NOT_HERE
    if e >= 0 and t.per_ell[e] > 1 and w.solved_ell[e] < 0 and w.bound_ell[e] > 0.0:
        return _ELLIPSOID
    return _PAIR


@kernel
def _home_of(t: Tables, w: Work, e: int, xi: FloatArray) -> int:
    """An open piece of ellipsoid e whose polyhedron holds the point; -1 if none does."""
    for k in range(len(w.open)):
        if w.open[k] and t.piece_ell[k] == e and inside_rows(t, t.piece_poly[k], w, xi):
            return k
    return -1


@kernel
def _search(
    t: Tables, x: FloatArray, guard: float, cutoff: float, only: int, w: Work, best: FloatArray, mult: FloatArray
) -> tuple[int, float, float, int, float]:
    """The nearest point over all pieces (or `only` one), written to `best`.

    Returns outcome, cost, proven bound, piece, and the ellipsoid's multiplier; the rows' multipliers
    go to `mult` if it has room for them.
    """
    load_query(t, x, guard, w)
    for k in range(len(w.bound)):
        w.bound[k] = w.bound_poly[t.piece_poly[k]]
        if t.piece_ell[k] >= 0:
            w.bound[k] = max(w.bound[k], w.bound_ell[t.piece_ell[k]])
        w.open[k] = only < 0 or only == k
    cost = np.inf
    proven = np.inf  # the least bound of what was solved
    missing = np.inf  # the least bound of what could not be solved here
    chosen = -1
    chosen_weight = 0.0
    tied = False
    none = -1
    while True:
        piece, least = _most_promising(w)
        limit = min(cost, cutoff)
        limit += TIE * limit
        if piece < 0 or least > limit:
            break
        p, e = t.piece_poly[piece], t.piece_ell[piece]
        stage = _stage(t, w, p, e)
        if stage == _NOT_HERE:
            w.open[piece] = False
            missing = min(missing, w.bound[piece])
            continue
        rows_of = none if stage == _ELLIPSOID else p
        ell_of = none if stage == _POLYHEDRON else e
        status, found, bound, ties, weight = solve_piece(t, piece, rows_of, ell_of, w, limit, w.candidate, w.mult)
        if status == INFEASIBLE:
            bound = np.inf
        if stage == _POLYHEDRON:
            w.solved_poly[p] = status
            start = t.row_start[p]
            copy(w.candidate, w.vertex[p])
            copy(w.mult, w.vertex_mult[start : t.row_start[p + 1]])
            _raise_bounds(t, w, p, none, bound)
            if e != -1 and not (status == OPTIMAL and e >= 0 and inside_ellipsoid(t, e, w, w.candidate)):
                continue
        elif stage == _ELLIPSOID:
            w.solved_ell[e] = status
            _raise_bounds(t, w, none, e, bound)
            piece = _home_of(t, w, e, w.candidate) if status == OPTIMAL else none
            if piece < 0:
                continue
            w.mult[:] = 0.0
            for k in range(len(w.open)):
                w.open[k] = w.open[k] and t.piece_ell[k] != e
        w.open[piece] = False
        w.bound[piece] = max(w.bound[piece], bound)
        if status == FAILED:
            missing = min(missing, w.bound[piece])
        elif status == OPTIMAL:
            proven = min(proven, bound)
            if chosen >= 0 and abs(found - cost) <= TIE * max(found, cost):
                tied = tied or ties
            elif found < cost:
                tied = ties
            if chosen < 0 or _before(t, w.candidate, found, best, cost):
                copy(w.candidate, best)
                copy(w.mult, mult)
                cost, chosen, chosen_weight = found, piece, weight
    limit = min(cost, cutoff)
    if missing < np.inf and missing <= limit + TIE * limit:
        return UNRESOLVED, cost, min(proven, missing), chosen, chosen_weight
    if chosen < 0:
        return (NOTHING if cutoff == np.inf else PRUNED), np.inf, np.inf, none, 0.0
    return (TIED if tied else FOUND), cost, min(proven, cost), chosen, chosen_weight


@entry
def search_table(
    t: Tables,
    X: FloatArray,
    guard: float,
    cutoff: FloatArray,
    only: int,
    xi: FloatArray,
    mult: FloatArray,
    weight: FloatArray,
    cost: FloatArray,
    bound: FloatArray,
    piece: npt.NDArray[np.int64],
    outcome: npt.NDArray[np.int64],
) -> None:
    """Search for every row of `X`; `mult` has one row per query, of width 0 if nobody wants it."""
    w = make_work(t)
    for q in range(len(X)):
        outcome[q], cost[q], bound[q], piece[q], weight[q] = _search(t, X[q], guard, cutoff[q], only, w, xi[q], mult[q])
