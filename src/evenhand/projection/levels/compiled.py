"""From a problem over levels and steps to the flat arrays that the search reads."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from evenhand.projection.levels.arrays import Columns, Density, Pieces, make_pieces
from evenhand.projection.problem import Problem
from evenhand.sets import ConvexSet, Ellipsoid, Paraboloid
from evenhand.table.layout import Layout
from evenhand.table.limits import DOWN, FIXED, FREE, UP, Limits
from evenhand.types import BoolArray, FloatArray

MOST_VARIANTS = 64
COMMENSURATE = 1e4  # effects that are further apart are scaled
LAST_BITS = 2e-15  # what levels of a row are rounded by, relative to the numbers that meet there


class Piece(NamedTuple):
    """A convex set in raw columns: intervals, levels, and rows ``A x + sum of E[level] >= b``."""

    lower: FloatArray
    upper: FloatArray
    allowed: BoolArray
    A: FloatArray
    E: FloatArray
    b: FloatArray
    mass: FloatArray  # of the constants whose difference b is


class Parts(NamedTuple):
    """The pieces of a region, taken apart: what is flat, what is curved, and which of them meet."""

    flat: list[ConvexSet]
    curved: list[Paraboloid]
    meet: list[tuple[int, int]]


def columns_of(problem: Problem) -> Columns:
    """What a change of each column costs, and which changes there are: numbers and levels apart, bins among these."""
    limits, layout = problem.limits, problem.layout
    rates = problem.cost.rates(layout.n_columns)
    start, categories = layout.start, layout.categories
    move = np.full((start[-1], int(np.diff(start).max(initial=1))), np.inf)
    for b, j in enumerate(categories):
        first, count = start[b], start[b + 1] - start[b]
        if b in layout.bins:  # what a bin costs depends on the person
            cost = np.zeros((count, count))
            if limits.directions[j] == FIXED:
                cost[~np.eye(count, dtype=bool)] = np.inf
        else:
            cost = np.where(np.isfinite(limits.moves[int(j)]), problem.cost.moves(int(j)), np.inf)
        cost[:, ~layout.known[first : first + count]] = np.inf
        np.fill_diagonal(cost, 0.0)
        move[first : first + count, :count] = cost
    ways = limits.directions[layout.numbers]
    order = np.empty(layout.n_columns, dtype=np.int64)
    order[layout.numbers] = np.arange(len(layout.numbers))
    order[categories] = -1 - np.arange(len(categories))
    step = np.zeros(layout.n_columns) if limits.step is None else limits.step
    return Columns(
        rates[layout.numbers],
        step[layout.numbers],
        np.ones(len(layout.numbers)),
        (ways == FREE) | (ways == UP),
        (ways == FREE) | (ways == DOWN),
        start,
        move,
        *_ties(limits, layout),
        order,
        *_variants(limits, layout),
    )


def unit_of(columns: Columns) -> float:
    """What a usual change of level or step costs, to a power of two, which rounds nothing."""
    moves = columns.move[np.isfinite(columns.move) & (columns.move > 0)]
    found = np.concatenate([moves, (columns.weight * columns.step)[columns.step > 0]])
    return float(2.0 ** np.round(np.log2(np.median(found)))) if len(found) else 1.0


def scaled(columns: Columns, pieces: Pieces, density: Density) -> Columns:
    """Numbers that may take any value are counted in units whose effect is commensurate with that of levels and steps.

    In units of cost they nearly always are.  Where weights are far apart they are not, and a search would take what has
    an effect for what has none.
    """
    stepped = columns.step > 0
    size = np.abs(pieces.A) * columns.scale
    largest = size[:, stepped].max(axis=1, initial=0.0)
    for first, end in zip(columns.start[:-1], columns.start[1:], strict=True):
        spread = pieces.E[:, first:end]
        largest = np.maximum(largest, spread.max(axis=1, initial=-np.inf) - spread.min(axis=1, initial=np.inf))
    largest = np.where(largest > 0, largest, size.max(axis=1, initial=0.0))
    seen = largest > 0
    effect = (size[seen] / largest[seen, None]).max(axis=0, initial=0.0)
    # Where there is a density, a number is moved by about one deviation, however little levels do beside it in a row.
    deviations = np.abs(density.R).max(axis=(0, 1), initial=0.0) * columns.scale
    effect = np.where(deviations > 0, deviations, effect)
    apart = ~stepped & (effect > 0) & ~((effect > 1 / COMMENSURATE) & (effect < COMMENSURATE))
    factor = np.where(apart, 2.0 ** -np.round(np.log2(np.where(effect > 0, effect, 1.0))), 1.0)
    return columns._replace(scale=columns.scale * factor)


def _ties(limits: Limits, layout: Layout) -> tuple[FloatArray, FloatArray]:
    """Rows over changes that must not be negative; ordered levels count by rank."""
    numbers = np.zeros((len(limits.ties), len(layout.numbers)))
    levels = np.zeros((len(limits.ties), layout.start[-1]))
    for i, tie in enumerate(limits.ties):
        for where, factor in ((tie.column, 1.0), (tie.driver, -tie.ratio)):
            if where in layout.numbers:
                numbers[i, list(layout.numbers).index(where)] = factor
                continue
            b = list(layout.categories).index(where)
            part = slice(layout.start[b], layout.start[b + 1])
            levels[i, part] = factor * np.arange(layout.start[b + 1] - layout.start[b])
    return numbers, levels


def _variants(limits: Limits, layout: Layout) -> tuple[BoolArray, BoolArray]:
    """Every way to hold columns: "if A changes then B stays" is "A stays, or B stays"."""
    variants = sorted({tuple(sorted(set(choice))) for choice in product(*limits.either)})
    variants = [v for v in variants if not any(set(other) < set(v) for other in variants)]
    if len(variants) > MOST_VARIANTS:
        raise ValueError(
            f"{len(limits.either)} rules of IfChanges have {len(variants)} ways to hold columns; at most "
            f"{MOST_VARIANTS} can be searched. Make a column immutable, or use fewer rules."
        )
    width = layout.n_columns
    held = np.array([[j in v for j in range(width)] for v in variants], dtype=bool).reshape(-1, width)
    return held[:, layout.numbers], held[:, layout.categories]


def parts_of(pieces: tuple[ConvexSet, ...]) -> Parts:
    """Pieces that share their flat or their curved part share it here as well, so that each is compiled once."""
    flat: dict[bytes, int] = {}
    curved: dict[bytes, int] = {}
    parts = Parts([], [], [])
    for piece in pieces:
        key = b"|".join(array.tobytes() for array in (*piece.box, *piece.halfspaces, piece.masses))
        if key not in flat:
            flat[key] = len(flat)
            parts.flat.append(piece)
        e = -1
        for part in piece.ellipsoids:  # at most one: see LevelProjector.refusal
            dense = _as_paraboloid(part)
            own = b"|".join(
                (dense.matrix.tobytes(), dense.offset.tobytes(), dense.slope.tobytes(), repr(dense.room).encode())
            )
            if own not in curved:
                curved[own] = len(curved)
                parts.curved.append(dense)
            e = curved[own]
        parts.meet.append((flat[key], e))
    return parts


def _as_paraboloid(part: Ellipsoid | Paraboloid) -> Paraboloid:
    if isinstance(part, Paraboloid):
        return part
    return Paraboloid(part.matrix, part.offset, 0.5 * part.radius**2, np.zeros(part.matrix.shape[1]))


def pieces_of(
    problem: Problem, columns: Columns, parts: Parts, guard: float, least: float = 0.0
) -> tuple[Pieces, Density]:
    """The pieces with bounds and guard, without those in which nobody can be, and the densities that they meet.

    What levels ask for keeps the guard compared with `least` at least: a tie of zeros has no size of its own.
    """
    layout = problem.layout
    # A step is the size of what moves in steps: a guard in units of a wide spread would cut off a whole number.
    unit = np.where(columns.step > 0, columns.step, 1.0 / columns.weight)
    n, total = len(layout.numbers), int(layout.start[-1])
    lower, upper = problem.limits.lower[layout.numbers], problem.limits.upper[layout.numbers]
    kept: list[Piece] = []
    origin: list[int] = []
    for i, flat in enumerate(parts.flat):
        piece = raw_piece(flat, layout, guard, least)
        if piece is None:
            continue
        low = np.maximum(piece.lower + guard * _room(piece.lower, unit), lower)
        high = np.minimum(piece.upper - guard * _room(piece.upper, unit), upper)
        if (low <= high).all():
            kept.append(piece._replace(lower=low, upper=high))
            origin.append(i)
    pieces = make_pieces(
        columns,
        np.array([piece.lower for piece in kept], dtype=np.float64).reshape(len(kept), n),
        np.array([piece.upper for piece in kept], dtype=np.float64).reshape(len(kept), n),
        np.array([piece.allowed for piece in kept], dtype=bool).reshape(len(kept), total),
        np.cumsum([0, *(len(piece.b) for piece in kept)]).astype(np.int64),
        np.vstack([np.zeros((0, n)), *(piece.A for piece in kept)]),
        np.vstack([np.zeros((0, total)), *(piece.E for piece in kept)]),
        np.concatenate([np.zeros(0), *(piece.b for piece in kept)]),
        np.concatenate([np.zeros(0), *(piece.mass for piece in kept)]),
    )
    meet = np.zeros((len(parts.flat), len(parts.curved)), dtype=bool)
    for i, e in parts.meet:
        if e >= 0:
            meet[i, e] = True
    return pieces, _density(parts.curved, meet[origin].reshape(len(kept), len(parts.curved)), n, total)


def kept_from_sides(problem: Problem, columns: Columns, pieces: Pieces, guard: float) -> Pieces:
    """The same pieces with their sides further in for numbers that may take any value.

    Compared with the largest side of the column, so that units do not matter; the middle of what is thinner than that.
    """
    if not len(pieces.lower):
        return pieces
    limits, numbers = problem.limits, problem.layout.numbers
    sides = np.abs(np.stack([pieces.lower, pieces.upper]))
    room = guard * np.where(np.isfinite(sides), sides, 0.0).max(axis=(0, 1)) * (columns.step == 0)
    low = np.where(pieces.lower > limits.lower[numbers], pieces.lower + room, pieces.lower)
    high = np.where(pieces.upper < limits.upper[numbers], pieces.upper - room, pieces.upper)
    thin = low > high
    middle = (pieces.lower[thin] + pieces.upper[thin]) / 2
    low[thin] = high[thin] = middle
    return pieces._replace(lower=low, upper=high)


def _room(side: FloatArray, unit: FloatArray) -> FloatArray:
    """The size of the numbers that meet at the sides of an interval."""
    return np.maximum(np.abs(np.nan_to_num(side, posinf=0, neginf=0)), unit)


def _density(curved: list[Paraboloid], meet: BoolArray, n: int, total: int) -> Density:
    if not curved:
        return Density(np.zeros((0, 0, n)), np.zeros((0, 0)), np.zeros(0), np.zeros(total), meet)
    tall = max(len(part.offset) for part in curved)
    R, m = np.zeros((len(curved), tall, n)), np.zeros((len(curved), tall))
    for e, part in enumerate(curved):
        R[e, : len(part.offset)], m[e, : len(part.offset)] = part.matrix[:, :n], part.offset
    return Density(R, m, np.array([part.room for part in curved]), curved[0].slope[n:].copy(), meet)


def raw_piece(piece: ConvexSet, layout: Layout, guard: float, least: float = 0.0) -> Piece | None:
    """What a convex set asks of raw columns; None if nobody can be there.

    A row over the levels of one category is a set of levels, one over more is a row; a level keeps the guard from a
    row as a number does.
    """
    n = len(layout.numbers)
    low, high = piece.box
    G, h = piece.halfspaces
    real = np.isfinite(h)
    if (h == -np.inf).any() or (low == np.inf).any() or (high == -np.inf).any() or (low[:n] > high[:n]).any():
        return None
    A, E, h, mass = G[real, :n], G[real, n:].copy(), h[real].copy(), piece.masses[real]
    allowed = layout.known.copy()
    varying = np.zeros((len(h), len(layout.categories)), dtype=bool)
    for b in range(len(layout.categories)):
        part = slice(layout.start[b], layout.start[b + 1])
        allowed[part] &= _levels_in_box(low[layout.block(b)], high[layout.block(b)])
        first = int(np.argmax(layout.known[part]))
        varying[:, b] = (E[:, part][:, layout.known[part]] != E[:, part][:, [first]]).any(axis=1)
        # What all levels of a category add alike is no matter of levels.
        alike = ~varying[:, b]
        h[alike] -= E[alike, layout.start[b] + first]
        E[alike, part] = 0.0
    by_number = A.any(axis=1)
    single = ~by_number & (varying.sum(axis=1) == 1)
    for i in np.flatnonzero(single):
        b = int(np.argmax(varying[i]))
        part = slice(layout.start[b], layout.start[b + 1])
        size = np.maximum(np.maximum(np.abs(h[i]), np.abs(E[i, part])) + mass[i], least)
        allowed[part] &= E[i, part] <= h[i] - (guard - LAST_BITS) * size
    constant = ~by_number & ~varying.any(axis=1)
    if (h[constant] < guard * least).any():
        return None
    joint = ~single & ~constant
    return Piece(low[:n], high[:n], allowed, -A[joint], -E[joint], -h[joint], mass[joint])


def _levels_in_box(low: FloatArray, high: FloatArray) -> BoolArray:
    """Which levels of a category are inside of the box, each with a one in its place and zeros elsewhere."""
    as_one = (low <= 1.0) & (high >= 1.0)
    as_zero = (low <= 0.0) & (high >= 0.0)
    others = as_zero.sum() - as_zero
    return np.asarray(as_one & (others == len(low) - 1))
