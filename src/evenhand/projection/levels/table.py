"""Whole tables of people with numbers and levels, onto pieces: nearest pieces first."""

from __future__ import annotations

import numpy as np

from evenhand.projection._numba import entry
from evenhand.projection.levels.arrays import Columns, Density, Pieces, make_change, make_stack
from evenhand.projection.levels.branch import PROVEN, search_piece
from evenhand.projection.levels.change import level_columns, number_columns, right_sides
from evenhand.projection.levels.closed import ceiling, distances, first_limit
from evenhand.types import FloatArray, IntArray

DEPTH = 160
TANGENTS = 80


@entry
def search_mixed(
    c: Columns, p: Pieces, d: Density, X: FloatArray, L: IntArray, own: FloatArray, guard: float, max_nodes: int,
    cutoff: FloatArray, points: FloatArray, levels: IntArray, cost: FloatArray, bound: FloatArray, outcome: IntArray,
    nodes: IntArray,
) -> None:  # fmt: skip
    """The cheapest change of every person into one of the pieces."""
    people, numbers, categories = len(X), X.shape[1], L.shape[1]
    n_pieces, variants, components = len(p.lower), len(c.held), len(d.room)
    quadratic = components > 0
    most = 0
    for k in range(n_pieces):
        most = max(most, p.rows[k + 1] - p.rows[k])
    m_most = most + len(c.tied)
    width = 2 * numbers + len(c.move) + 1
    dim = d.R.shape[1] if quadratic else 0
    to = make_change(width, m_most + 1, dim, categories)
    high = m_most + categories + 2 + (TANGENTS if quadratic else 0)
    s, r = make_stack(DEPTH, high, width, dim), make_stack(1, high, width, dim)
    kept = np.empty(width)
    apart, distance = np.empty(n_pieces), np.empty(max(components, 1))
    new_x, new_level = np.empty(numbers), np.empty(categories, np.int64)
    tally = np.zeros(2, np.int64)
    for q in range(people):
        x, level = X[q], L[q]
        mine = own[q] if len(own) else own[:0].ravel()
        best, least, ended, spent = first_limit(cutoff[q]), np.inf, PROVEN, 0
        tally[1] = 0
        for v in range(variants):
            distances(c, p, v, x, level, mine, apart)
            while True:
                k = int(np.argmin(apart))
                cut = ceiling(best, quadratic)
                if not apart[k] < np.inf or apart[k] > cut:
                    break
                apart[k] = np.inf
                rows = p.rows[k + 1] - p.rows[k]
                for e in range(max(components, 1)):
                    distance[e] = 0.0
                    if quadratic:
                        for i in range(dim):
                            value = d.m[e, i]
                            for j in range(numbers):
                                value -= d.R[e, i, j] * x[j]
                            distance[e] += 0.5 * value * value
                        distance[e] -= d.room[e]
                        if not d.meet[k, e]:
                            distance[e] = np.inf
                for _ in range(max(components, 1)):
                    e = int(np.argmin(distance))
                    if distance[e] == np.inf:
                        break
                    distance[e] = np.inf
                    n = number_columns(c, p, k, v, x, d, e, quadratic, to)
                    if n >= 0:
                        n = level_columns(c, p, k, v, level, d, quadratic, mine, to, n)
                    if n < 0:
                        continue
                    room = right_sides(c, p, k, x, level, d, e, quadratic, guard, to, n)
                    tally[0] = 0
                    best, here, how = search_piece(
                        c, x, level, to, n, rows + len(c.tied), quadratic, room, s, r, kept, best,
                        max_nodes - spent, points[q], levels[q], new_x, new_level, tally,
                    )  # fmt: skip
                    spent += tally[0]
                    least = min(least, here)
                    ended = max(ended, how)
        found = tally[1] == 1
        nodes[q], outcome[q] = spent, ended
        cost[q] = best if found else np.inf
        bound[q] = min(least, min(best, ceiling(best, quadratic))) if found else least
