"""Whole tables of people with numbers and levels, onto pieces: nearest pieces first."""

from __future__ import annotations

import numpy as np

from evenhand.projection._numba import entry, kernel
from evenhand.projection.levels.arrays import Columns, Denied, Density, Memory, Pieces
from evenhand.projection.levels.branch import PROVEN, search_piece
from evenhand.projection.levels.change import level_columns, number_columns, right_sides
from evenhand.projection.levels.closed import ceiling, distances, first_limit
from evenhand.types import FloatArray, IntArray


@kernel
def least_of(values: FloatArray) -> int:
    """Where the least is, of equals the first."""
    found = 0
    for i in range(len(values)):
        if values[i] < values[found]:
            found = i
    return found


@entry
def search_mixed(
    c: Columns, p: Pieces, inner: Pieces, d: Density | None, X: FloatArray, L: IntArray, own: FloatArray, guard: float,
    inset: float, max_nodes: int, cutoff: FloatArray, denied: Denied, points: FloatArray, levels: IntArray,
    cost: FloatArray, bound: FloatArray, outcome: IntArray, nodes: IntArray, w: Memory,
) -> None:  # fmt: skip
    """The cheapest change of every person into one of the pieces.

    The search keeps `guard` from every row, and a bound is about that; what is told keeps `inset` more where it can,
    and stays in the same piece of `inner`, whose sides are further in.
    Nobody is told a point that was `denied`: arrays of points for every person.
    """
    numbers = X.shape[1]
    variants = len(c.held)
    components = len(d.room) if d is not None else 0
    to, apart, distance, tally = w.to, w.apart, w.distance, w.tally
    for q in range(len(X)):
        x, level, mine = X[q], L[q], own[q]
        best, least, ended, spent = first_limit(cutoff[q]), np.inf, PROVEN, 0
        tally[1] = 0
        for v in range(variants):
            distances(c, p, v, x, level, mine, apart)
            while True:
                k = least_of(apart)
                cut = ceiling(best, d is not None)
                if not apart[k] < np.inf or apart[k] > cut:
                    break
                apart[k] = np.inf
                rows = p.rows[k + 1] - p.rows[k]
                for e in range(max(components, 1)):
                    total = 0.0
                    if d is not None:
                        for i in range(d.R.shape[1]):
                            value = d.m[e, i]
                            for j in range(numbers):
                                value -= d.R[e, i, j] * x[j]
                            total += 0.5 * value * value
                        total = total - d.room[e] if d.meet[k, e] else np.inf
                    distance[e] = total
                for _ in range(max(components, 1)):
                    e = least_of(distance)
                    if distance[e] == np.inf:
                        break
                    distance[e] = np.inf
                    n = number_columns(c, p, inner, k, v, x, d, e, to)
                    if n >= 0:
                        n = level_columns(c, p, k, v, level, d, mine, to, n)
                    if n < 0:
                        continue
                    room = right_sides(c, p, k, x, level, d, e, guard, inset, to, n)
                    tally[0] = 0
                    best, here, how = search_piece(
                        c, x, level, to, n, rows + len(c.tied), d, room, w.stack, w.root, w.kept, best,
                        max_nodes - spent, Denied(denied.x[q], denied.level[q]), points[q], levels[q], w.x, w.level,
                        tally,
                    )  # fmt: skip
                    spent += tally[0]
                    least = min(least, here)
                    ended = max(ended, how)
        found = tally[1] == 1
        nodes[q], outcome[q] = spent, ended
        cost[q] = best if found else np.inf
        bound[q] = min(least, min(best, ceiling(best, d is not None))) if found else least
