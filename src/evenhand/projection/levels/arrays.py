"""The flat arrays that the search reads and works on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenhand.projection._numba import workspace
from evenhand.types import BoolArray, FloatArray, IntArray


class Columns(NamedTuple):
    """What is the same for everybody: what a change of each column costs, and which changes there are."""

    weight: FloatArray  # (numbers,) cost per unit
    step: FloatArray  # (numbers,) 0 for continuous ones
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
) -> Pieces:
    """Pieces with what is looked up for everybody, column by column."""
    start = columns.start
    nearest = np.zeros((start[-1], len(lower)))
    for q in range(len(start) - 1):
        part = slice(start[q], start[q + 1])
        cost = columns.move[part, : start[q + 1] - start[q]]
        nearest[part] = np.where(allowed[:, None, part], cost[None], np.inf).min(axis=2, initial=np.inf).T
    asks = np.logical_or.reduce(np.isfinite(lower) | np.isfinite(upper), axis=0)
    return Pieces(lower, upper, allowed, rows, A, E, b, lower.T, upper.T, nearest, asks)


class Change(NamedTuple):
    """The columns of one person's change towards one piece, `n` of them in use."""

    cost: FloatArray
    whole: BoolArray
    lower: FloatArray
    upper: FloatArray
    block: IntArray  # the category of a level's column, -1 for a number
    of: IntArray  # the number or the category
    kind: IntArray  # 0 up, 1 down, 2 + level
    A: FloatArray  # (rows, n)
    h: FloatArray
    R: FloatArray  # (k, n)
    g: FloatArray
    a: FloatArray
    forced: BoolArray  # categories whose present level is not allowed


@workspace
def make_change(columns: int, rows: int, k: int, categories: int) -> Change:
    """Room for a change."""
    f, i = np.zeros((4, columns)), np.zeros((3, columns), np.int64)
    return Change(
        f[0],
        np.zeros(columns, np.bool_),
        f[1],
        f[2],
        i[0],
        i[1],
        i[2],
        np.zeros((rows, columns)),
        np.zeros(rows),
        np.zeros((k, columns)),
        np.zeros(k),
        f[3],
        np.zeros(categories, np.bool_),
    )


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


@workspace
def make_stack(depth: int, rows: int, columns: int, k: int) -> Stack:
    """Room for a search."""
    both = rows + columns
    return Stack(
        np.zeros((depth, rows, columns)),
        np.zeros((depth, rows)),
        np.zeros((depth, columns)),
        np.zeros((depth, columns)),
        np.zeros((depth, rows), np.int64),
        np.zeros((depth, columns), np.int64),
        np.zeros((depth, both)),
        np.zeros((depth, both)),
        np.zeros((depth, columns)),
        np.zeros(depth),
        np.zeros(depth, np.int64),
        np.zeros(depth, np.int64),
        np.zeros((depth, rows)),
        np.zeros(columns, np.bool_),
        np.zeros(columns),
        np.zeros(columns),
        np.zeros(k),
        np.zeros(columns),
        np.zeros(both, np.bool_),
        np.zeros(columns),
        np.zeros(k, np.int64),
        np.zeros((k, k)),
        np.zeros((k, k)),
        np.zeros((3, k)),
    )
