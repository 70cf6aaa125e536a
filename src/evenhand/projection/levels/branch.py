"""The cheapest change of one person over numbers, steps and levels: branch and bound with a proof.

A change is a vector t >= 0: every number that may move has a column up and a column down (whole numbers count their
steps), and every level that a person does not have has a column z with 0 <= z <= 1, at most one of them per category.
What is asked for is linear, ``A t >= h``, and for plausible answers one convex quadratic,
``1/2 |R t - g|^2 - a t <= r``, which tangents approach from outside.  A node solves the linear relaxation by a dual
simplex on a condensed tableau; a child changes one bound, so it starts where its parent ended.
"""

from __future__ import annotations

import numpy as np

from evenhand.projection._numba import part
from evenhand.projection.levels.arrays import Change, Columns, Denied, Density, Stack
from evenhand.projection.levels.change import write_change
from evenhand.projection.levels.closed import TIE, ceiling, comes_first, nearest_whole
from evenhand.projection.levels.tableau import (
    SOLVED,
    STUCK,
    WORSE,
    branch_on_tie,
    copy_node,
    copy_to,
    fractional,
    into_bounds,
    narrow,
    read_point,
    relax,
    start_tableau,
)
from evenhand.projection.levels.tangents import DENSE, add_tangent, drop_loose_tangents, excess_of, face_point, shift_of
from evenhand.types import FloatArray, IntArray

WHOLE = 1e-9  # further from a whole number a column is branched on
ROUNDS = 400  # of tangents in a node
MET = 1e-11  # a point whose cost exceeds the objective by less, relative to one plus it, is the cheapest
EARLY = 16  # rounds of tangents where columns are not whole yet: fewer leave weak bounds, more are lost on branches
TIES = 64  # branches that are spent on equally cheap answers, per person and piece
PROVEN, LIMIT, TROUBLE = 0, 1, 2


@part
def _meet(
    c: Change, n: int, base: int, d: Density | None, room: float, cut: float, early: int, s: Stack, depth: int
) -> tuple[int, float]:
    """Solve the relaxation of a node: how it ended, and the objective; the columns' values go into ``s.t``.

    After `early` rounds of tangents a point that is not whole yet is good enough to branch on.
    """
    objective, face = s.objective[depth], np.inf
    limit = cut + 1e-6 * (1.0 + cut) if d is not None else cut
    for turn in range(ROUNDS + 1):
        ended, objective = relax(s, depth, objective, limit)
        s.objective[depth] = objective
        if ended != SOLVED:
            return ended, objective
        if objective - (shift_of(s, depth, n) if d is not None else 0.0) > cut:
            return WORSE, objective
        if face <= objective + MET * (1.0 + objective):
            for j in range(n):
                s.t[j] = s.face[j]
            return SOLVED, objective
        read_point(s, depth, n)
        if d is None:
            return SOLVED, objective
        excess, left = excess_of(c, n, room, s)
        if excess <= 0.5 * DENSE:
            return SOLVED, objective
        if turn >= early and fractional(c, n, s, 1e-3) >= 0:
            return SOLVED, objective
        if s.n_rows[depth] >= s.T.shape[1]:
            drop_loose_tangents(s, depth, n + base)
        if s.n_rows[depth] >= s.T.shape[1]:
            return STUCK, objective
        left, face = face_point(c, n, left, objective, s, depth)
        add_tangent(c, n, room, left, s, depth)
    return STUCK, objective


@part
def _bar_way_back(c: Change, n: int, s: Stack, depth: int, v: int) -> None:
    """A number that goes one way does not go the other: both cost, and only what is left of them counts."""
    for w in (v - 1, v + 1):  # up and down of a number stand next to each other
        if 0 <= w < n and c.block[v] < 0 and c.block[w] < 0 and c.of[w] == c.of[v]:
            s.upper[depth, w] = s.lower[depth, w]
            into_bounds(s, depth, w)


@part
def _settle(
    to: Change, n: int, m: int, categories: int, d: Density | None, room: float, t: FloatArray, r: Stack
) -> bool:
    """The numbers that go with levels and steps, solved for anew with a distance from every row; False if that fails.

    A search arrives at the same levels and steps along different paths, which a cutoff, for example, makes shorter, and
    every path rounds in its own way.  From here on only what was found counts: the columns that are whole keep their
    values in `t`, all others start from the root.  The answer is in ``r.t``.
    """
    base = start_tableau(to, n, m, categories, d, room, r)
    objective = r.objective[0]
    for j in range(n):  # in the root every column is nonbasic, in its own place
        if to.whole[j]:
            value = nearest_whole(t[j])
            step = value - r.value[0, j]
            r.lower[0, j] = r.upper[0, j] = r.value[0, j] = value
            if step != 0.0:
                objective += r.price[0, j] * step
                for i in range(r.n_rows[0]):
                    r.basic[0, i] -= r.T[0, i, j] * step
    r.objective[0] = objective
    return _keep_off(to, n, m, base, d, room, r)


@part
def _keep_off(to: Change, n: int, m: int, base: int, d: Density | None, room: float, r: Stack) -> bool:
    """Keep what is told from every row and side: a slack is no longer zero at least, but what is to be kept."""
    for i in range(m):
        r.lower[0, n + i] = to.inset[i]
        into_bounds(r, 0, n + i)
    for j in range(n):
        if not to.whole[j] and r.lower[0, j] + to.off_lower[j] <= r.upper[0, j] - to.off_upper[j]:
            r.lower[0, j] += to.off_lower[j]
            r.upper[0, j] -= to.off_upper[j]
            into_bounds(r, 0, j)
    ended, _ = _meet(to, n, base, d, room, np.inf, ROUNDS, r, 0)
    return ended == SOLVED


@part
def _write_settled(
    c: Columns, to: Change, n: int, m: int, base: int, d: Density | None, room: float, t: FloatArray, first: bool,
    s: Stack, r: Stack, x: FloatArray, level: IntArray, to_x: FloatArray, to_level: IntArray,
) -> None:  # fmt: skip
    """The person after a change, the same to the last bit for the same levels and steps.

    To what the `first` node finds only one path leads, so it need not be solved for anew.  Where a distance cannot be
    kept, as between levels and steps alone, what was found is told as it is, and the model says whether it will do.
    """
    settled = False
    for j in range(n):  # a number that stays where it is would move for the distance alone, by a step's worth of cost
        settled = settled or (not to.whole[j] and t[j] > 0.0)
    if settled and first:
        copy_to(s, 0, n, r, 0)
        settled = _keep_off(to, n, m, base, d, room, r)
    elif settled:
        settled = _settle(to, n, m, len(level), d, room, t, r)
    if settled:
        write_change(c, to, n, r.t, x, level, to_x, to_level)
    else:
        write_change(c, to, n, t, x, level, to_x, to_level)


@part
def _is_denied(
    c: Columns, to: Change, n: int, t: FloatArray, x: FloatArray, level: IntArray, denied: Denied, new_x: FloatArray,
    new_level: IntArray,
) -> bool:  # fmt: skip
    """Whether a change of levels and steps alone leads to a point that the model has denied."""
    for j in range(n):
        if not to.whole[j] and t[j] != 0.0:
            return False
    write_change(c, to, n, t, x, level, new_x, new_level)
    for p in range(len(denied.x)):
        same = True
        for j in range(len(x)):
            same = same and abs(new_x[j] - denied.x[p, j]) <= 0.5 * c.step[j]
        for b in range(len(level)):
            same = same and new_level[b] == denied.level[p, b]
        if same:
            return True
    return False


@part
def _around(c: Change, n: int, s: Stack, depth: int) -> bool:
    """Part a node in two along a column of its point, which one of them keeps; False if the point is all there is."""
    for v in range(n):
        if c.whole[v] and s.upper[depth, v] > s.lower[depth, v]:
            value = nearest_whole(s.t[v])
            down = value - 1.0 if value > s.lower[depth, v] else value
            copy_node(s, depth, n)
            s.lower[depth + 1, v], s.upper[depth, v] = down + 1.0, down
            into_bounds(s, depth, v)
            into_bounds(s, depth + 1, v)
            return True
    return False


@part
def search_piece(
    c: Columns, x: FloatArray, level: IntArray, to: Change, n: int, m: int, d: Density | None, room: float, s: Stack,
    r: Stack, kept: FloatArray, limit: float, nodes_left: int, denied: Denied, best_x: FloatArray,
    best_level: IntArray, new_x: FloatArray, new_level: IntArray, tally: IntArray,
) -> tuple[float, float, int]:  # fmt: skip
    """Branch and bound over one piece; returns the best cost so far, a lower bound on this piece, and how it ended."""
    base = start_tableau(to, n, m, len(level), d, room, s)
    depth, best, bound, outcome, ties = 0, limit, np.inf, PROVEN, 0
    pending = False  # whether the best change is in `kept`, not yet written
    while depth >= 0:
        if tally[0] >= nodes_left:
            outcome = LIMIT
            break
        cut = ceiling(best, d is not None)
        tally[0] += 1
        ended, objective = _meet(to, n, base, d, room, cut, EARLY, s, depth)
        shift = shift_of(s, depth, n) if d is not None else 0.0
        if ended != SOLVED:
            if ended == STUCK:
                outcome = TROUBLE
                bound = min(bound, objective - shift)
            depth -= 1
            continue
        v = fractional(to, n, s, WHOLE)
        if v < 0 and len(denied.x) > 0 and _is_denied(c, to, n, s.t, x, level, denied, new_x, new_level):
            if depth + 1 >= len(s.objective):
                outcome = TROUBLE
                bound = min(bound, objective - shift)
                depth -= 1
            elif _around(to, n, s, depth):
                depth += 1
            else:
                depth -= 1
            continue
        if v < 0:
            bound = min(bound, objective - shift)
            tie = abs(objective - best) <= TIE * (1.0 + best) if best < np.inf else False
            first = tally[0] == 1 and fractional(to, n, s, 1e-12) < 0
            if tie and tally[1] == 1:
                if pending:
                    _write_settled(c, to, n, m, base, d, room, kept, False, s, r, x, level, best_x, best_level)
                    pending = False
                _write_settled(c, to, n, m, base, d, room, s.t, first, s, r, x, level, new_x, new_level)
                best = min(objective, best)
                if comes_first(c, x, level, new_x, new_level, best_x, best_level):
                    for j in range(len(x)):
                        best_x[j] = new_x[j]
                    for b in range(len(level)):
                        best_level[b] = new_level[b]
            elif not tie and objective < best:
                best, pending = objective, not first
                if first:  # at once: its node is about to be branched on
                    _write_settled(c, to, n, m, base, d, room, s.t, first, s, r, x, level, best_x, best_level)
                for j in range(n):
                    kept[j] = s.t[j]
                tally[1] = 1
            cut = ceiling(best, d is not None)
            # An equally cheap answer may hide behind a column that moves for nothing.
            room_above = ties < TIES and depth + 1 < len(s.objective) and d is None
            if room_above and branch_on_tie(to, n, s, depth, objective, cut):
                ties += 1
                depth += 1
            else:
                depth -= 1
            continue
        narrow(to, n, s, depth, objective - shift, cut, v)
        if depth + 1 >= len(s.objective):
            outcome = TROUBLE
            bound = min(bound, objective - shift)
            depth -= 1
            continue
        if d is not None and s.n_rows[depth] > base + 12:
            drop_loose_tangents(s, depth, n + base)
        value = s.t[v]
        copy_node(s, depth, n)
        down = np.floor(value)
        if value - down > 0.5:  # the nearer child on top, to be looked at first
            s.lower[depth + 1, v], s.upper[depth, v] = down + 1.0, down
        else:
            s.upper[depth + 1, v], s.lower[depth, v] = down, down + 1.0
        up_child = depth if s.lower[depth, v] > down else depth + 1
        into_bounds(s, depth, v)
        into_bounds(s, depth + 1, v)
        _bar_way_back(to, n, s, up_child, v)
        depth += 1
    if outcome == LIMIT:
        for open_node in range(depth + 1):
            bound = min(bound, s.objective[open_node])
    if pending:
        _write_settled(c, to, n, m, base, d, room, kept, False, s, r, x, level, best_x, best_level)
    return best, bound, outcome
