"""The flat arrays that the search reads and works on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenhand.projection.memory import Room
from evenhand.types import BoolArray, FloatArray, IntArray

DEPTH = 160  # nodes on the way from the root
TANGENTS = 80


class Columns(NamedTuple):
    """What is the same for everybody: what a change of each column costs, and which changes there are."""

    weight: FloatArray  # (numbers,) cost per unit
    step: FloatArray  # (numbers,) 0 for continuous ones
    scale: FloatArray  # (numbers,) what the search counts as one: a step, or a change of commensurate effect
    up: BoolArray
    down: BoolArray
    start: IntArray  # (categories + 1,) where the levels of each category begin
    move: FloatArray  # (levels, most) from a level to the l-th of its category; infinite if that is not possible
    tied: FloatArray  # (rules, numbers) what is added up over changes must not be negative
    tied_levels: FloatArray  # (rules, levels)
    order: IntArray  # raw columns in order: a number j as j, a category b as -1 - b
    held: BoolArray  # (variants, numbers) that stay in a variant
    held_levels: BoolArray  # (variants, categories)


class Pieces(NamedTuple):
    """The pieces of one label: intervals, levels and joint rows ``A x + sum of E[level] >= b``."""

    lower: FloatArray  # (pieces, numbers)
    upper: FloatArray
    allowed: BoolArray  # (pieces, levels)
    rows: IntArray  # (pieces + 1,)
    A: FloatArray
    E: FloatArray  # (rows, levels)
    b: FloatArray
    mass: FloatArray  # of the constants whose difference b is
    low: FloatArray  # (numbers, pieces): `lower` column by column, so that all pieces are looked at together
    high: FloatArray
    nearest: FloatArray  # (levels, pieces) from a level to the nearest that each piece allows
    asks: BoolArray  # (numbers,) of which some piece asks something


class Density(NamedTuple):
    """Where a label is dense: ``1/2 |R x - m|^2 - sum of log frequencies <= room`` for one of the components."""

    R: FloatArray  # (components, k, numbers)
    m: FloatArray
    room: FloatArray
    frequency: FloatArray  # (levels,) logarithms
    meet: BoolArray  # (pieces, components) which of them meet


def make_pieces(
    columns: Columns,
    lower: FloatArray,
    upper: FloatArray,
    allowed: BoolArray,
    rows: IntArray,
    A: FloatArray,
    E: FloatArray,
    b: FloatArray,
    mass: FloatArray,
) -> Pieces:
    """Pieces with what is looked up for everybody, column by column."""
    start = columns.start
    nearest = np.zeros((start[-1], len(lower)))
    for q in range(len(start) - 1):
        part = slice(start[q], start[q + 1])
        cost = columns.move[part, : start[q + 1] - start[q]]
        nearest[part] = np.where(allowed[:, None, part], cost[None], np.inf).min(axis=2, initial=np.inf).T
    asks = np.logical_or.reduce(np.isfinite(lower) | np.isfinite(upper), axis=0)
    return Pieces(lower, upper, allowed, rows, A, E, b, mass, lower.T, upper.T, nearest, asks)


class Change(NamedTuple):
    """The columns of one person's change towards one piece, `n` of them in use."""

    cost: FloatArray
    whole: BoolArray
    lower: FloatArray
    upper: FloatArray
    off_lower: FloatArray  # what an answer keeps from these bounds, which the search does not
    off_upper: FloatArray
    block: IntArray  # the category of a level's column, -1 for a number
    of: IntArray  # the number or the category
    kind: IntArray  # 0 up, 1 down, 2 + level
    A: FloatArray  # (rows, n)
    h: FloatArray
    inset: FloatArray  # (rows,) what an answer keeps from each row, which the search does not
    R: FloatArray  # (k, n)
    g: FloatArray
    a: FloatArray
    forced: BoolArray  # categories whose present level is not allowed


def make_change(room: Room, columns: int, rows: int, k: int, categories: int) -> Change:
    """Room for a change."""
    return Change(
        room(columns),
        room(columns, np.bool_),
        room(columns),
        room(columns),
        room(columns),
        room(columns),
        room(columns, np.int64),
        room(columns, np.int64),
        room(columns, np.int64),
        room((rows, columns)),
        room(rows),
        room(rows),
        room((k, columns)),
        room(k),
        room(columns),
        room(categories, np.bool_),
    )


class Denied(NamedTuple):
    """Points that one person is not told again."""

    x: FloatArray  # (points, numbers)
    level: IntArray  # (points, categories)


class Stack(NamedTuple):
    """Tableaus from the root to the present node."""

    T: FloatArray  # (depth, rows, columns)
    basic: FloatArray  # values of basic variables
    price: FloatArray  # reduced costs
    value: FloatArray  # values of nonbasic variables
    row_of: IntArray  # which variable is basic in a row
    column_of: IntArray
    lower: FloatArray
    upper: FloatArray
    fixed: FloatArray  # values of columns that were dropped
    objective: FloatArray
    n_rows: IntArray
    n_columns: IntArray
    cut_scale: FloatArray  # (depth, rows): what a unit of density is worth in a tangent's row, 0 for other rows
    tie: FloatArray  # (1,) ratios that differ by less are equal
    done: BoolArray
    ratio: FloatArray
    t: FloatArray
    u: FloatArray
    gradient: FloatArray
    used: BoolArray
    face: FloatArray  # the columns' values where a face is cheapest
    binding: IntArray  # (k,) tangents that bind
    lean: FloatArray  # (k, k) what their slacks do to R t
    root: FloatArray  # (k, k)
    slack: FloatArray  # (3, k)


def make_stack(room: Room, depth: int, rows: int, columns: int, k: int) -> Stack:
    """Room for a search."""
    both = rows + columns
    return Stack(
        room((depth, rows, columns)),
        room((depth, rows)),
        room((depth, columns)),
        room((depth, columns)),
        room((depth, rows), np.int64),
        room((depth, columns), np.int64),
        room((depth, both)),
        room((depth, both)),
        room((depth, columns)),
        room(depth),
        room(depth, np.int64),
        room(depth, np.int64),
        room((depth, rows)),
        room(1),
        room(columns, np.bool_),
        room(columns),
        room(columns),
        room(k),
        room(columns),
        room(both, np.bool_),
        room(columns),
        room(k, np.int64),
        room((k, k)),
        room((k, k)),
        room((3, k)),
    )


class Memory(NamedTuple):
    """What a search over a whole table works in."""

    to: Change
    stack: Stack
    root: Stack  # one node, in which what was found is settled
    kept: FloatArray  # values of columns
    apart: FloatArray  # (pieces,)
    distance: FloatArray  # (components,)
    x: FloatArray
    level: IntArray
    tally: IntArray


def make_memory(c: Columns, p: Pieces, d: Density) -> Memory:
    """Room for one thread; it is made here, because a kernel that allocates takes longer to compile."""
    room = Room()
    numbers, categories = len(c.weight), len(c.start) - 1
    components, k = len(d.room), d.R.shape[1] if len(d.room) else 0
    rows = int(np.diff(p.rows).max(initial=0)) + len(c.tied)
    width = 2 * numbers + len(c.move) + 1
    high = rows + categories + 2 + (TANGENTS if components else 0)
    return Memory(
        make_change(room, width, rows + 1, k, categories),
        make_stack(room, DEPTH, high, width, k),
        make_stack(room, 1, high, width, k),
        room(width),
        room(len(p.lower)),
        room(max(components, 1)),
        room(numbers),
        room(categories, np.int64),
        room(2, np.int64),
    )


class BoxMemory(NamedTuple):
    """What the closed form works in."""

    apart: FloatArray  # (pieces,)
    x: FloatArray
    level: IntArray


def make_box_memory(c: Columns, p: Pieces) -> BoxMemory:
    """Room for one thread."""
    room = Room()
    return BoxMemory(room(len(p.lower)), room(len(c.weight)), room(len(c.start) - 1, np.int64))
