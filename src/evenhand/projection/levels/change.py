"""One person's change towards one piece as the columns and rows of a program, and back."""

from __future__ import annotations

import numpy as np

from evenhand.projection._numba import part
from evenhand.projection.levels.arrays import Change, Columns, Density, Pieces
from evenhand.projection.levels.closed import level_price, may_stay, missing_in_row, nearest_whole
from evenhand.projection.levels.tangents import DENSE
from evenhand.types import FloatArray, IntArray

LAST_BITS = 2e-15  # what sums of a row are rounded by, relative to the sizes of all that is added
LEAST = 1e-3  # of the cost of a usual change: what a row is a part of at least


@part
def number_columns(
    c: Columns, p: Pieces, inner: Pieces, k: int, v: int, x: FloatArray, d: Density | None, e: int, to: Change
) -> int:
    """Columns of the numbers; -1 if a number cannot get where it must."""
    n, rows, rules = 0, p.rows[k + 1] - p.rows[k], len(c.tied)
    for j in range(len(x)):
        scale = c.scale[j]
        if c.held[v, j] or not (c.up[j] or c.down[j]):
            if x[j] < p.lower[k, j] or x[j] > p.upper[k, j]:
                return -1
            continue
        for way in range(2):
            sign = 1.0 - 2.0 * way
            room = (p.upper[k, j] - x[j] if way == 0 else x[j] - p.lower[k, j]) / scale
            must = (p.lower[k, j] - x[j] if way == 0 else x[j] - p.upper[k, j]) / scale
            if c.step[j] > 0.0:
                room, must = np.floor(room + 1e-9), np.ceil(must - 1e-9)
            must = max(must, 0.0)
            if not (c.up[j] if way == 0 else c.down[j]):
                if must > 0.0:
                    return -1
                continue
            if must > room:
                if must > 0.0:
                    return -1
                continue
            if room <= 0.0:
                continue
            useful = d is not None or must > 0.0
            for i in range(rules):
                useful = useful or c.tied[i, j] * sign > 0.0
            for i in range(p.rows[k], p.rows[k + 1]):
                useful = useful or p.A[i, j] * sign > 0.0
            if not useful:  # it helps nothing, so the cheapest answer leaves it alone
                continue
            to.cost[n], to.whole[n], to.lower[n], to.upper[n] = c.weight[j] * scale, c.step[j] > 0.0, must, room
            low, high = inner.lower[k, j] - p.lower[k, j], p.upper[k, j] - inner.upper[k, j]
            near, far = (low, high) if way == 0 else (high, low)
            to.off_lower[n] = near / scale if must > 0.0 and near > 0.0 else 0.0
            to.off_upper[n] = far / scale if far > 0.0 else 0.0
            to.block[n], to.of[n], to.kind[n], to.a[n] = -1, j, way, 0.0
            for i in range(rows):
                to.A[i, n] = p.A[p.rows[k] + i, j] * scale * sign
            for i in range(rules):
                to.A[rows + i, n] = c.tied[i, j] * scale * sign
            if d is not None:
                for i in range(len(to.g)):
                    to.R[i, n] = d.R[e, i, j] * scale * sign
            n += 1
    return n


@part
def _worse_level(
    c: Columns,
    p: Pieces,
    k: int,
    d: Density | None,
    own: FloatArray,
    first: int,
    count: int,
    present: int,
    to: int,
) -> bool:
    """Whether another level costs no more and is at least as good for every row, rule and the density."""
    price = level_price(c, own, first, present, to)
    for other in range(count):
        if other == to or not p.allowed[k, first + other]:
            continue
        if other == present and not may_stay(p, k, own, first, present):
            continue
        rival = 0.0 if other == present else level_price(c, own, first, present, other)
        if rival > price:
            continue
        as_good, better = True, rival < price
        for i in range(p.rows[k], p.rows[k + 1]):
            if p.E[i, first + other] < p.E[i, first + to]:
                as_good = False
                break
            better = better or p.E[i, first + other] > p.E[i, first + to]
        for i in range(len(c.tied)):
            if c.tied_levels[i, first + other] < c.tied_levels[i, first + to]:
                as_good = False
        if d is not None:
            if d.frequency[first + other] < d.frequency[first + to]:
                as_good = False
            better = better or d.frequency[first + other] > d.frequency[first + to]
        if as_good and (better or other < to):
            return True
    return False


@part
def level_columns(
    c: Columns,
    p: Pieces,
    k: int,
    v: int,
    level: IntArray,
    d: Density | None,
    own: FloatArray,
    to: Change,
    n: int,
) -> int:
    """Columns of the levels, without those that are never needed; -1 if a category has no level left."""
    rows, rules = p.rows[k + 1] - p.rows[k], len(c.tied)
    for b in range(len(level)):
        first, count, present = c.start[b], c.start[b + 1] - c.start[b], level[b]
        to.forced[b] = not may_stay(p, k, own, first, present)
        begin = n
        if not c.held_levels[v, b]:
            for other in range(count):
                if other == present or not p.allowed[k, first + other]:
                    continue
                price = level_price(c, own, first, present, other)
                if not price < np.inf:
                    continue
                if _worse_level(c, p, k, d, own, first, count, present, other):
                    continue
                to.cost[n], to.whole[n], to.lower[n], to.upper[n] = price, True, 0.0, 1.0
                to.block[n], to.of[n], to.kind[n] = b, b, 2 + other
                to.a[n] = d.frequency[first + other] - d.frequency[first + present] if d is not None else 0.0
                for i in range(rows):
                    to.A[i, n] = p.E[p.rows[k] + i, first + other] - p.E[p.rows[k] + i, first + present]
                for i in range(rules):
                    to.A[rows + i, n] = c.tied_levels[i, first + other] - c.tied_levels[i, first + present]
                for i in range(len(to.g)):
                    to.R[i, n] = 0.0
                n += 1
        if to.forced[b] and n == begin:
            return -1
    return n


@part
def right_sides(
    c: Columns,
    p: Pieces,
    k: int,
    x: FloatArray,
    level: IntArray,
    d: Density | None,
    e: int,
    guard: float,
    inset: float,
    to: Change,
    n: int,
) -> float:
    """What is missing in every row, in rows whose entries go up to one; returns the room of the quadratic.

    The search keeps `guard` from a row, or looks as far beyond as rounding may hide; what is told keeps `inset` more.
    """
    rows = p.rows[k + 1] - p.rows[k]
    for i in range(rows + len(c.tied)):
        missing, size = 0.0, 0.0
        if i < rows:
            missing, size = missing_in_row(c, p, p.rows[k] + i, x, level)
        largest = 0.0
        for j in range(n):
            largest = max(largest, abs(to.A[i, j]))
        if largest > 0.0:
            for j in range(n):
                to.A[i, j] /= largest
            missing /= largest
            size /= largest
        rounded = LAST_BITS * size if i < rows else 0.0
        room = max(size, LEAST) if i < rows else 0.0  # people at the very origin meet rows without a size
        to.h[i] = missing - rounded + guard * room
        to.inset[i] = rounded + inset * room
    room = 0.0
    if d is not None:
        room = d.room[e] - DENSE
        for b in range(len(level)):
            room += d.frequency[c.start[b] + level[b]]
        for i in range(len(to.g)):
            value = d.m[e, i]
            for j in range(len(x)):
                value -= d.R[e, i, j] * x[j]
            to.g[i] = value
    return room


@part
def write_change(
    c: Columns, to: Change, n: int, t: FloatArray, x: FloatArray, level: IntArray, to_x: FloatArray, to_level: IntArray
) -> None:
    """The person after a change."""
    for j in range(len(x)):
        to_x[j] = x[j]
    for b in range(len(level)):
        to_level[b] = level[b]
    for j in range(n):
        if to.kind[j] >= 2:
            if t[j] > 0.5:
                to_level[to.of[j]] = to.kind[j] - 2
        elif t[j] != 0.0:
            v = to.of[j]
            scale = c.scale[v]
            amount = nearest_whole(t[j]) if to.whole[j] else t[j]
            to_x[v] += amount * scale if to.kind[j] == 0 else -amount * scale
