"""Steps, levels and rules: a mixed-integer program for HiGHS, with tangents for what is curved."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from evenhand.projection.problem import Problem
from evenhand.projection.verify.opinion import EMPTY, Opinion, ways
from evenhand.sets import ConvexSet, Paraboloid
from evenhand.types import FloatArray

ROUNDS = 60  # of tangents to a curved part
NODES = 5000  # of a search by HiGHS: what is proven by then counts
FINE = 1e4  # HiGHS misses rows by up to 1e-6: in units of a claim's ten thousandth that is next to nothing


class _Program(NamedTuple):
    """Variables v with costs and bounds; expanded rows and changes of columns are affine in them."""

    cost: FloatArray
    lower: FloatArray
    upper: FloatArray
    whole: FloatArray
    expanded: tuple[FloatArray, FloatArray]  # matrix and offset
    change: tuple[FloatArray, FloatArray]
    groups: list[list[int]]  # exactly one variable of a group is 1
    values: FloatArray  # of a binned number: what the column becomes with the variable


def mixed_opinion(problem: Problem, piece: ConvexSet, x: FloatArray, start: FloatArray, unit: float) -> Opinion:
    """The least bound over every way to keep the rules "if this changes, that stays"."""
    held = {frozenset(choice) for choice in product(*problem.limits.either)}
    opinions = [_milp(problem, piece, x, start, unit / FINE, columns) for columns in sorted(held, key=sorted)]
    return min(opinions, key=lambda opinion: (opinion.bound, opinion.point is None))


def _milp(
    problem: Problem, piece: ConvexSet, x: FloatArray, start: FloatArray, unit: float, held: frozenset[int]
) -> Opinion:
    program = _program(problem, piece, x, unit, held)
    if program is None or (piece.halfspaces[1] == -np.inf).any():
        return Opinion(EMPTY)
    rows, sides = _rows(problem, piece, program)
    matrix, offset = program.expanded
    for part in piece.ellipsoids:
        for row, side in _around(part, problem.layout.expand(start[None])[0]):
            rows, sides = np.vstack([rows, row @ matrix]), np.append(sides, side - row @ offset)
    groups = np.zeros((len(program.groups), len(program.cost)))
    for i, group in enumerate(program.groups):
        groups[i, group] = 1.0
    best = 0.0
    for _ in range(ROUNDS if piece.ellipsoids else 1):
        length = np.abs(rows).max(axis=1, initial=0.0)
        if (sides[length == 0] < -1e-9).any():
            return Opinion(EMPTY)
        used = (length > 0) & np.isfinite(sides)
        constraints = [LinearConstraint(rows[used] / length[used, None], ub=sides[used] / length[used])]
        if len(groups):
            constraints.append(LinearConstraint(groups, 1.0, 1.0))
        solved = milp(
            program.cost,
            integrality=program.whole.astype(np.int64),
            bounds=Bounds(program.lower, program.upper),
            constraints=constraints,
            options={"mip_rel_gap": 1e-9, "node_limit": NODES},
        )
        if int(solved.status) == 2:
            return Opinion(EMPTY)
        if solved.x is None:
            return Opinion(best * unit)
        proven = solved.mip_dual_bound if program.whole.any() else solved.fun
        best = max(best, 0.0 if proven is None else float(proven))
        if int(solved.status) == 1:  # out of nodes: what is proven by then stays proven
            return Opinion(best * unit)
        reached = matrix @ solved.x + offset
        away = [(part, part.matrix @ reached - part.offset) for part in piece.ellipsoids]
        cuts = [cut for part, direction in away if (cut := _tangent(part, reached, direction)) is not None]
        broken = [(row, side) for row, side in cuts if row @ reached > side + 1e-9 * (1.0 + abs(side))]
        if not broken:
            return Opinion(best * unit, _written(problem, program, x, solved.x))
        rows = np.vstack([rows, *(row @ matrix for row, _ in broken)])
        sides = np.append(sides, [side - row @ offset for row, side in broken])
    return Opinion(best * unit)


def _program(problem: Problem, piece: ConvexSet, x: FloatArray, unit: float, held: frozenset[int]) -> _Program | None:
    """The variables of one person; None where a column is left nothing."""
    layout, limits = problem.layout, problem.limits
    rates = problem.cost.rates(problem.n_columns)
    least, most = ways(problem, x, held)
    steps = np.zeros(len(x)) if limits.step is None else limits.step
    listed: list[tuple[float, float, float, int, int, float, int, float, float]] = []
    for e, j in enumerate(layout.numbers):
        low, high = max(least[j], piece.box[0][e] - x[j]), min(most[j], piece.box[1][e] - x[j])
        room = 1e-9 * (1.0 + abs(x[j]))
        if least[j] == most[j] == 0.0 and low - room <= 0.0 <= high + room:
            continue
        size, whole = (steps[j], 1) if steps[j] > 0 else (unit / rates[j], 0)
        low, high = low / size, high / size
        if whole:
            low, high = np.ceil(low - 1e-9), np.floor(high + 1e-9)
        if low > high:
            return None
        for sign, a, b in ((1.0, max(low, 0.0), max(high, 0.0)), (-1.0, max(-high, 0.0), max(-low, 0.0))):
            listed.append((rates[j] * size / unit, a, b, whole, e, sign * size, int(j), sign * size, np.nan))
    groups = []
    for b, j in enumerate(layout.categories):
        choices = list(_levels(problem, b, x, float(rates[j]), bool(least[j] == most[j] == 0.0)))
        block = range(layout.block(b).start, layout.block(b).stop)
        own = int(layout.position(b, x[[j]])[0])
        groups.append(list(range(len(listed), len(listed) + len(choices))))
        for level, price, value in choices:
            low, high = max(0.0, piece.box[0][block[level]]), min(1.0, piece.box[1][block[level]])
            if low > high:
                return None
            rank = 0.0 if b in layout.bins else float(level - own)
            listed.append((price / unit, low, high, 1, block[level], 1.0, int(j), rank, value))
        absent = set(range(len(block))) - {level for level, _, _ in choices}
        if any(piece.box[0][block[level]] > 0 for level in absent):
            return None
    if not listed:  # HiGHS wants a variable
        listed.append((1.0, 0.0, 0.0, 0, 0, 0.0, 0, 0.0, np.nan))
    table = np.array(listed)
    expanded, change = np.zeros((layout.width, len(table))), np.zeros((len(x), len(table)))
    at = np.arange(len(table))
    expanded[table[:, 4].astype(int), at], change[table[:, 6].astype(int), at] = table[:, 5], table[:, 7]
    origin = np.concatenate([x[layout.numbers], np.zeros(int(layout.start[-1]))])
    return _Program(
        table[:, 0], table[:, 1], table[:, 2], table[:, 3], (expanded, origin), (change, np.zeros(len(x))), groups,
        table[:, 8],
    )  # fmt: skip


def _levels(problem: Problem, b: int, x: FloatArray, rate: float, still: bool) -> Iterator[tuple[int, float, float]]:
    """Levels of a category that a person may have: position, cost, and for a bin the nearest number in it."""
    layout, limits, j = problem.layout, problem.limits, int(problem.layout.categories[b])
    own = int(layout.position(b, x[[j]])[0])
    if b not in layout.bins:
        prices = np.where(np.isfinite(limits.moves[j][own]), problem.cost.moves(j)[own], np.inf)
        prices = np.where(layout.known[layout.start[b] : layout.start[b + 1]], prices, np.inf)
        prices[own] = 0.0
        for level in range(len(prices)):
            if np.isfinite(prices[level]) and (level == own or not still):
                yield level, float(prices[level]), np.nan
        return
    edges = np.concatenate([[-np.inf], layout.bins[b][1:-1], [np.inf]])
    least, most = ways(problem, x, frozenset())
    step = 0.0 if limits.step is None else float(limits.step[j])
    for level in range(len(edges) - 1):
        # A bin has its lower edge, and ends before the next one begins.
        low, high = edges[level], np.nextafter(edges[level + 1], -np.inf) if level + 2 < len(edges) else np.inf
        low, high = (max(low - x[j], least[j]), min(high - x[j], most[j])) if not still else (0.0, 0.0)
        if step > 0:
            low, high = step * np.ceil(low / step - 1e-9), step * np.floor(high / step + 1e-9)
        if still and level == own:
            yield level, 0.0, float(x[j])
        elif not still and low <= high:
            move = min(max(0.0, low), high)
            yield level, rate * abs(move), float(x[j] + move)


def _rows(problem: Problem, piece: ConvexSet, program: _Program) -> tuple[FloatArray, FloatArray]:
    """The halfspaces of a piece and the ties between columns, as rows over the variables."""
    (matrix, offset), (change, _) = program.expanded, program.change
    G, h = piece.halfspaces
    rows, sides = [G @ matrix], [h - G @ offset]
    for tie in problem.limits.ties:
        rows.append((tie.ratio * change[tie.driver] - change[tie.column])[None])
        sides.append(np.zeros(1))
    return np.vstack(rows), np.concatenate(sides)


def _around(part: Any, point: FloatArray) -> Iterator[tuple[FloatArray, float]]:
    """Tangents to begin with: near a point, and at both ends of every axis, without which a search has no bounds."""
    axes = np.eye(len(part.offset))
    for direction in (part.matrix @ point - part.offset, *axes, *-axes):
        tangent = _tangent(part, point, direction)
        if tangent is not None:
            yield tangent


def _tangent(part: Any, point: FloatArray, direction: FloatArray) -> tuple[FloatArray, float] | None:
    """A row and a side that hold for all of a curved part, and touch it in a direction; None where that is none.

    How far out the tangent of a paraboloid is best depends on the levels: those of the point are taken.
    """
    length = float(np.linalg.norm(direction))
    if length == 0.0:
        return None
    normal = direction / length
    if not isinstance(part, Paraboloid):
        return normal @ part.matrix, part.radius + float(normal @ part.offset)
    touch = normal * max(np.sqrt(2.0 * max(part.room + float(part.slope @ point), 0.0)), 1e-3)
    # |y|^2 / 2 >= touch @ y - |touch|^2 / 2, wherever it touches
    return touch @ part.matrix - part.slope, part.room + 0.5 * float(touch @ touch) + float(touch @ part.offset)


def _written(problem: Problem, program: _Program, x: FloatArray, v: FloatArray) -> FloatArray:
    """The row of codes that the variables stand for."""
    v = np.where(program.whole > 0, np.rint(v), v)
    point = x + program.change[0] @ v
    for b, group in enumerate(program.groups):
        chosen = group[int(np.argmax(v[group]))] if group else -1
        if b in problem.layout.bins and chosen >= 0:
            point[problem.layout.categories[b]] = program.values[chosen]
    return np.asarray(problem.limits.snap(point[None], x[None])[0])
