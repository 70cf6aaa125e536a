"""One query: memory to work in, right-hand sides, first bounds, and what comes before what."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.projection._numba import copy, kernel
from evenhand.projection.memory import Room
from evenhand.projection.norms.arrays import Rows
from evenhand.types import FloatArray

FOUND, NOTHING, UNRESOLVED, TIED, PRUNED = 0, 1, 2, 3, 4  # how a search ended

ROUNDING = 3e-14  # by which a row may be missed, relative to the numbers that meet there: less than the first guard
LAST_BITS = 2e-15  # what products of a row with a person are rounded by, relative to the numbers that meet there
TIE = 1e-9  # relative difference of costs that counts as none


class Query(NamedTuple):
    """Right-hand sides of all polyhedra for one query, and memory to solve one of them.

    Memory is allocated in Python: a kernel that allocates takes longer to compile.
    """

    h: FloatArray
    tol: FloatArray  # how much solvers may miss each row by
    room: FloatArray  # how much of that is rounding of the numbers that meet there
    inset: FloatArray  # what the guard takes from each row, and what rounding may
    bound: FloatArray  # of each polyhedron
    open: npt.NDArray[np.bool_]  # pieces that may still hold the answer
    xi: FloatArray
    lam: FloatArray
    dual: FloatArray
    solver: Any  # memory of the solver of polyhedra


def query_memory(room: Room, t: Rows, n_pieces: int, solver: Any) -> Query:
    """Memory for one thread; `solver` makes that of a solver, for some coordinates and rows at most."""
    f, most = t.A.shape[1], most_rows(t)
    return Query(
        room(len(t.b)),
        room(len(t.b)),
        room(len(t.b)),
        room(len(t.b)),
        room(len(t.start) - 1),
        room(n_pieces, np.bool_),
        room(f),
        room(most),
        room(f),
        solver(room, f, most),
    )


def most_rows(t: Rows) -> int:
    """Rows of the largest polyhedron, at least one."""
    return int(np.diff(t.start).max(initial=1))


@kernel
def _four(table: FloatArray, i: int, x: FloatArray, total: FloatArray, size: FloatArray) -> None:
    """Products of the rows i to i + 3 of a table with `x`, and the sums of their parts' sizes.

    Four at a time, each number of `x` is read once, and sums do not wait for each other.
    """
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    size_a, size_b, size_c, size_d = 0.0, 0.0, 0.0, 0.0
    for j in range(len(x)):
        value = x[j]
        part_a, part_b = table[i, j] * value, table[i + 1, j] * value
        part_c, part_d = table[i + 2, j] * value, table[i + 3, j] * value
        a += part_a
        b += part_b
        c += part_c
        d += part_d
        size_a += abs(part_a)
        size_b += abs(part_b)
        size_c += abs(part_c)
        size_d += abs(part_d)
    total[i], total[i + 1], total[i + 2], total[i + 3] = a, b, c, d
    size[i], size[i + 1], size[i + 2], size[i + 3] = size_a, size_b, size_c, size_d


@kernel
def products(table: FloatArray, x: FloatArray, total: FloatArray, size: FloatArray) -> None:
    """Products of all rows of a table with `x`, and the sums of their parts' sizes."""
    n = len(table)
    even = n - n % 4
    for i in range(0, even, 4):
        _four(table, i, x, total, size)
    for i in range(even, n):
        product = 0.0
        magnitude = 0.0
        for j in range(len(x)):
            part = table[i, j] * x[j]
            product += part
            magnitude += abs(part)
        total[i], size[i] = product, magnitude


@kernel
def load_rows(t: Rows, x: FloatArray, guard: float, q: Query) -> None:
    """Right-hand sides for the query `x`, with room for rounding, and first bounds: those of the region as it is."""
    products(t.on_x, x, q.h, q.tol)
    for p in range(len(q.bound)):
        bound = 0.0
        for i in range(t.start[p], t.start[p + 1]):
            magnitude = q.tol[i] + abs(t.b[i])
            side = t.b[i] - t.absolute[i] * q.h[i]
            kept = guard * t.guarded[i] * magnitude
            if guard > 0.0:  # nearer than that the model says one thing alone and another in company
                kept = max(kept, t.lost[i])
            q.h[i] = side - kept
            q.inset[i] = kept + LAST_BITS * magnitude + t.lost[i]
            q.tol[i] = q.room[i] = ROUNDING * magnitude
            if q.h[i] + q.inset[i] < 0.0:
                bound = max(bound, -(q.h[i] + q.inset[i]) / t.size[i])
        if bound < np.inf:  # a change of this size has rounding errors of its own
            for i in range(t.start[p], t.start[p + 1]):
                q.tol[i] = max(q.tol[i], ROUNDING * bound)
        q.bound[p] = bound


@kernel
def norm(order: int, xi: FloatArray) -> float:
    """The l1 or the l2 norm."""
    total = 0.0
    squares = 0.0
    for j in range(len(xi)):
        total += abs(xi[j])
        squares += xi[j] * xi[j]
    return total if order == 1 else np.sqrt(squares)


@kernel
def dual_norm(order: int, v: FloatArray) -> float:
    """The norm that bounds the cost: largest entry for l1, length for l2."""
    largest = 0.0
    squares = 0.0
    for j in range(len(v)):
        largest = max(largest, abs(v[j]))
        squares += v[j] * v[j]
    return largest if order == 1 else np.sqrt(squares)


@kernel
def most_promising(is_open: npt.NDArray[np.bool_], bound: FloatArray) -> tuple[int, float]:
    """The open piece of the least bound, -1 if none is open."""
    piece = -1
    least = np.inf
    for k in range(len(bound)):
        if is_open[k] and bound[k] < least:
            least = bound[k]
            piece = k
    return piece, least


@kernel
def worth(cost: float, cutoff: float) -> float:
    """Bounds above this are of no interest: what is known is cheaper, and no tie."""
    limit = min(cost, cutoff)
    return limit + TIE * limit


@kernel
def _coordinate(t: Rows, i: int, xi: FloatArray) -> float:
    """The change of column i that `xi` stands for."""
    total = 0.0
    for j in range(len(xi)):
        total += t.frame[i, j] * xi[j]
    return total


@kernel
def before(t: Rows, a: FloatArray, cost_a: float, b: FloatArray, cost_b: float) -> bool:
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


class Leader(NamedTuple):
    """The best piece so far: its cost, which one it is (-1: none), and whether ties with it are possible.

    Also what its cost owes to the guard, at most.
    """

    cost: float
    piece: int
    tied: bool
    owed: float


@kernel
def challenged(
    t: Rows,
    q: Query,
    leader: Leader,
    cost: float,
    ties: bool,
    piece: int,
    owed: float,
    best: FloatArray,
    mult: FloatArray,
) -> Leader:
    """Who leads after a piece was solved, into ``q.xi`` and ``q.lam``; its point and multipliers are kept."""
    tied = leader.tied
    if leader.piece >= 0 and abs(cost - leader.cost) <= TIE * max(cost, leader.cost):
        tied = tied or ties
    elif cost < leader.cost:
        tied = ties
    if leader.piece >= 0 and not before(t, q.xi, cost, best, leader.cost):
        return Leader(leader.cost, leader.piece, tied, leader.owed)
    copy(q.xi, best)
    copy(q.lam, mult)
    return Leader(cost, piece, tied, owed)
