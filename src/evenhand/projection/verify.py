"""A second opinion on a projection, from outside of the kernels: slow, and meant for samples.

Nothing here is shared with the solvers.  Points are checked against the problem as it was stated.  Bounds come from
Clarabel (numbers without steps: any dual vector proves a bound, whatever its residual) or from HiGHS (steps, levels and
rules, with curved parts replaced by more and more of their tangents, each of which holds for the whole set).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from evenhand.projection.problem import Problem
from evenhand.sets import ConvexSet, Paraboloid, Region
from evenhand.status import Status
from evenhand.table.limits import DOWN, FIXED, UP
from evenhand.types import BoolArray, FloatArray, StatusArray

NEXT_TO_NOTHING = 1e-8  # of a person's own size: what no solver in floating point can tell from nothing
FAR = 1e6  # times a person's own size: what is proven to cost more is out of reach
ROUNDS = 60  # of tangents to a curved part
NODES = 5000  # of a search by HiGHS: what is proven by then counts
FINE = 1e4  # HiGHS misses rows by up to 1e-6: in units of a claim's ten thousandth that is next to nothing
EMPTY, SOLVED = np.inf, ("Solved", "AlmostSolved")


@dataclass(frozen=True, eq=False)
class Verification:
    """What was found about a projection from outside, one row per query.

    Attributes
    ----------
    feasible : array of bool
        The point lies in the region and within the limits; also where no point is claimed.
    priced : array of bool
        Its cost is what is claimed; also where none is.
    bound : array of float
        Proven from outside: nothing is cheaper; infinite where nothing can be reached.
    confirmed : array of bool
        The claimed bound is not above the one from outside, up to the tolerance; of an "unreachable" row, that there is
        no point.
    refuted : array of bool
        A point was found that is cheaper than the claimed bound, or reaches the unreachable: never acceptable.
    """

    feasible: BoolArray
    priced: BoolArray
    bound: FloatArray
    confirmed: BoolArray
    refuted: BoolArray

    def __len__(self) -> int:
        return len(self.bound)

    @property
    def ok(self) -> BoolArray:
        """Which rows hold in every respect."""
        return self.feasible & self.priced & self.confirmed & ~self.refuted


class Claim(NamedTuple):
    """What a projection says about each query."""

    points: FloatArray
    cost: FloatArray
    bound: FloatArray
    status: StatusArray


class Opinion(NamedTuple):
    """What a solver says about one query and one piece: a proven bound, and a point if it has one."""

    bound: float
    point: FloatArray | None = None


Ask = Callable[[Problem, ConvexSet, FloatArray, FloatArray, float], Opinion]


def verify(claim: Claim, problem: Problem, X: FloatArray, tol: float) -> Verification:
    """Check every row of a claim; see :meth:`Projection.verify`."""
    if not isinstance(problem.region, Region):
        raise TypeError(
            f"Only a Region, a union of convex sets, can be verified; got a {type(problem.region).__name__}. Compare "
            "with the projection onto single pieces instead, or sample people for whom the model predicts the target."
        )
    X = np.ascontiguousarray(X, dtype=np.float64)
    if X.shape != claim.points.shape:
        raise ValueError(f"The projection has shape {claim.points.shape}, the people have {X.shape}: pass the same X.")
    ask = _solver_of(problem)
    reached = np.isin(claim.status, (Status.OPTIMAL, Status.INACCURATE))
    judged = reached | (claim.status == Status.UNREACHABLE)
    size = np.array([_size(problem, x) if known else 0.0 for x, known in zip(X, judged, strict=True)])
    feasible, priced = reached | np.isnan(claim.points).all(axis=1), reached | np.isnan(claim.cost)
    bound, refuted = np.zeros(len(X)), np.zeros(len(X), dtype=bool)
    for i in map(int, np.flatnonzero(judged)):
        if reached[i]:
            feasible[i], priced[i] = _holds(claim, problem, X, i, float(size[i]))
        start = claim.points[i] if feasible[i] and reached[i] else X[i]
        target = float(claim.bound[i]) if reached[i] else np.inf
        # A bound above the cost of its own point contradicts itself.
        refuted[i] = bool(reached[i] and feasible[i] and _below(problem, X[i], claim.points[i], target, tol, size[i]))
        if not target <= 0:  # nothing costs less than nothing: there is nothing to prove
            bound[i], cheaper = _bound(problem, X[i], start, target, float(size[i]), tol, ask)
            refuted[i] |= cheaper
    claimed = np.where(reached, claim.bound, np.where(judged, np.inf, 0.0))
    with np.errstate(invalid="ignore"):
        confirmed = (claimed <= bound + tol * claimed + NEXT_TO_NOTHING * size) & ~np.isnan(claimed)
    confirmed = np.where(np.isinf(claimed), np.isinf(bound), confirmed)
    return Verification(feasible, priced, bound, confirmed, refuted)


def _holds(claim: Claim, problem: Problem, X: FloatArray, i: int, size: float) -> tuple[bool, bool]:
    """Whether the point of a row is where it should be, and costs what it is said to cost."""
    point, person = claim.points[[i]], X[[i]]
    if not np.isfinite(point).all():
        return False, False
    room = 1e-9 * (1.0 + float(np.abs([point, person]).max()))
    price, said = float(problem.cost.price(person, point)[0]), float(claim.cost[i])
    return bool(problem.admits(person, point, room)[0]), abs(price - said) <= 1e-7 * price + 1e-9 * size


def _size(problem: Problem, x: FloatArray) -> float:
    """The cost of all that a person's numbers are: what small errors are measured by."""
    numbers = problem.layout.numbers
    units = _units(problem, numbers)
    return float((np.abs(x[numbers]) / units).sum()) if len(numbers) else 1.0


def _units(problem: Problem, columns: Any) -> FloatArray:
    """Per column a change that no point of cost one can exceed, whatever else it changes."""
    rates = problem.cost.rates(problem.n_columns)
    if rates is not None:
        return np.asarray(1.0 / rates[columns])
    weights, matrix = problem.cost.weights, problem.cost.matrix
    if matrix is not None:
        return np.asarray(np.sqrt(np.diagonal(np.linalg.inv(matrix[np.ix_(columns, columns)]))))
    return np.ones(len(columns)) if weights is None else 1.0 / np.sqrt(weights[columns])


def _below(problem: Problem, x: FloatArray, point: FloatArray, bound: float, tol: float, size: float) -> bool:
    """Whether a point that may be reached is cheaper than a claimed bound."""
    room = 1e-9 * (1.0 + float(np.abs([point, x]).max()))
    if not bool(problem.admits(x[None], point[None], room)[0]):
        return False
    price = float(problem.cost.price(x[None], point[None])[0])
    return np.isinf(bound) or price < bound * (1.0 - tol) - NEXT_TO_NOTHING * size


def _bound(
    problem: Problem, x: FloatArray, start: FloatArray, target: float, size: float, tol: float, ask: Ask
) -> tuple[float, bool]:
    """The least bound of all pieces, the promising ones first, and whether any has a point below the target."""
    pieces = problem.region.pieces
    distance = np.array([_to_box(problem, piece, x) for piece in pieces])
    bound, refuted = np.inf, False
    unit = target if np.isfinite(target) else size or 1.0
    for k in np.argsort(distance, kind="stable"):
        if distance[k] >= bound:
            break
        opinion = ask(problem, pieces[k], x, start, unit)
        out_of_reach = opinion.point is None and opinion.bound >= FAR * max(size, unit)
        proven = np.inf if out_of_reach else opinion.bound
        bound = min(bound, max(proven, float(distance[k])))
        refuted |= opinion.point is not None and _below(problem, x, opinion.point, target, tol, size)
    return bound, refuted


def _to_box(problem: Problem, piece: ConvexSet, x: FloatArray) -> float:
    """What the largest single step into the box of a piece costs at least."""
    numbers = problem.layout.numbers
    low, high = (side[: len(numbers)] for side in piece.box)
    away = np.maximum(np.maximum(low - x[numbers], x[numbers] - high), 0.0)
    return float((away / _units(problem, numbers)).max(initial=0.0)) * (1.0 - 1e-9)


def _solver_of(problem: Problem) -> Ask:
    curved = any(isinstance(part, Paraboloid) for piece in problem.region.pieces for part in piece.ellipsoids)
    if not (len(problem.layout.categories) or problem.limits.stepped or curved):
        return _conic
    if problem.cost.rates(problem.n_columns) is None:
        raise TypeError(
            f"Steps, levels and rules are verified for costs that are sums over columns; got {problem.cost!r}. "
            'Use "l1", L1(...) or Gower(schema).'
        )
    return _mixed


def _ways(problem: Problem, x: FloatArray, held: frozenset[int]) -> tuple[FloatArray, FloatArray]:
    """The least and the largest change of every column that limits leave."""
    limits = problem.limits
    least, most = limits.lower - x, limits.upper - x
    least = np.where(limits.directions == UP, np.maximum(least, 0.0), least)
    most = np.where(limits.directions == DOWN, np.minimum(most, 0.0), most)
    if limits.gone is not None:  # what is missing may stay so, whatever its bounds
        stays = x == limits.gone
        least, most = np.where(stays, np.minimum(least, 0.0), least), np.where(stays, np.maximum(most, 0.0), most)
    still = (limits.directions == FIXED) | np.isin(np.arange(len(x)), list(held))
    return np.where(still, 0.0, least), np.where(still, 0.0, most)


# --- Numbers without steps: a conic program, and what its dual vector proves ------------------------------------------


def _conic(problem: Problem, piece: ConvexSet, x: FloatArray, start: FloatArray, unit: float) -> Opinion:  # noqa: ARG001
    """The least norm of a change into a piece, in variables none of which is larger than that norm."""
    columns = np.arange(problem.n_columns)
    least, most = _ways(problem, x, frozenset())
    least, most = np.maximum(least, piece.box[0] - x), np.minimum(most, piece.box[1] - x)
    still = problem.limits.directions == FIXED
    room = 1e-9 * (1.0 + np.abs(x))
    if (least > most + np.where(still, room, 0.0)).any():
        return Opinion(EMPTY)
    free = columns[~still]
    if not len(free):
        inside = bool(piece.contains(x[None])[0])
        return Opinion(0.0, x) if inside else Opinion(EMPTY)
    units = _units(problem, free) * unit
    G, h = piece.halfspaces
    rows = [G[:, free] * units, np.eye(len(free)), -np.eye(len(free))]
    sides = [h - G @ x, most[free] / units, -least[free] / units]
    A, b = np.vstack(rows), np.concatenate(sides)
    length = np.abs(A).max(axis=1)
    # A row without a free column says yes or no: what it misses by rounding is a yes.
    missed = (length == 0) & (b < -1e-9 * (np.concatenate([np.abs(G) @ np.abs(x), np.zeros(2 * len(free))]) + 1e-9))
    if missed.any() or (b == -np.inf).any():
        return Opinion(EMPTY)
    used = (length > 0) & np.isfinite(b)
    A, b = A[used] / length[used, None], b[used] / length[used]
    balls = []
    for part in piece.ellipsoids:
        assert not isinstance(part, Paraboloid)  # see _solver_of
        R, gap = part.matrix[:, free] * units, part.matrix @ x - part.offset
        if part.radius < 0:
            return Opinion(EMPTY)
        long = float(np.linalg.norm(R, axis=0).max(initial=0.0)) or 1.0
        balls.append((R / long, -gap / long, part.radius / long))
    bound, v = _least_norm(A, b, balls, _norm_matrix(problem, free, units / unit))
    if v is None:
        return Opinion(bound * unit)
    point = x.copy()
    point[free] += units * v
    return Opinion(bound * unit, problem.limits.snap(point[None], x[None])[0])


def _norm_matrix(problem: Problem, free: Any, units: FloatArray) -> FloatArray | None:
    """K with cost ``||K v||_2``; None where the cost is the sum of ``|v|``."""
    if problem.cost.order == 1:
        return None
    matrix = problem.cost.matrix
    if matrix is None:
        return np.eye(len(free))
    return np.asarray(np.linalg.cholesky(matrix[np.ix_(free, free)]).T * units)


def _least_norm(
    A: FloatArray, b: FloatArray, balls: list[tuple[FloatArray, FloatArray, float]], K: FloatArray | None
) -> tuple[float, FloatArray | None]:
    """Bound and point of: least norm of v with ``A v <= b`` and ``||R v - g|| <= r`` for every ball."""
    n = A.shape[1]
    ceilings = n if K is None else 1
    flat = np.hstack([A, np.zeros((len(A), ceilings))])
    if K is None:  # a ceiling over every |v|
        norm = np.vstack([np.hstack([np.eye(n), -np.eye(n)]), np.hstack([-np.eye(n), -np.eye(n)])])
        rows, sides = [flat, norm], [b, np.zeros(2 * n)]
        cones: list[Any] = [clarabel.NonnegativeConeT(len(A) + 2 * n)]
        kinds = [(len(A) + 2 * n, False)]
    else:
        norm = -np.vstack([np.append(np.zeros(n), 1.0), np.hstack([K, np.zeros((n, 1))])])
        rows, sides = [flat, norm], [b, np.zeros(n + 1)]
        cones = [clarabel.NonnegativeConeT(len(A)), clarabel.SecondOrderConeT(n + 1)]
        kinds = [(len(A), False), (n + 1, True)]
    for R, g, radius in balls:
        rows.append(np.vstack([np.zeros((1, n + ceilings)), np.hstack([-R, np.zeros((len(R), ceilings))])]))
        sides.append(np.append(radius, -g))
        cones.append(clarabel.SecondOrderConeT(len(R) + 1))
        kinds.append((len(R) + 1, True))
    everything, right = np.vstack(rows), np.concatenate(sides)
    linear = np.append(np.zeros(n), np.ones(ceilings))
    best, point = 0.0, None
    for accuracy in (1e-10, 1e-8):
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = accuracy
        nothing = sparse.csc_matrix((n + ceilings, n + ceilings))
        solution = clarabel.DefaultSolver(
            nothing, linear, sparse.csc_matrix(everything), right, cones, settings
        ).solve()
        best = max(best, _proven(np.array(solution.z), everything, right, linear, kinds))
        if str(solution.status) in SOLVED:
            return best, np.array(solution.x)[:n]
        if np.isinf(best):
            break
    return best, point


def _proven(z: FloatArray, A: FloatArray, b: FloatArray, linear: FloatArray, kinds: list[tuple[int, bool]]) -> float:
    """What any dual vector proves, once it is in its cone: no variable is larger than the cost of its point.

    With ``A v + s = b`` and s in the cone, ``linear @ v >= -b @ z + (A.T z + linear) @ v``; and without the objective,
    ``0 >= -b @ z + (A.T z) @ v``, so that a v has to be long.
    """
    if not np.isfinite(z).all():
        return 0.0
    z, at = z.copy(), 0
    for length, curved in kinds:
        part = z[at : at + length]
        if curved:
            part[0] = max(part[0], float(np.linalg.norm(part[1:])))
        else:
            np.maximum(part, 0.0, out=part)
        at += length
    value = float(-b @ z)
    if not value > 0:
        return 0.0
    slope = A.T @ z
    residual, reach = float(np.abs(slope + linear).sum()), float(np.abs(slope).sum())
    return max(value * (1.0 - residual), value / reach if reach > 0 else np.inf)


# --- Steps, levels and rules: a mixed-integer program, with tangents for what is curved -------------------------------


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


def _mixed(problem: Problem, piece: ConvexSet, x: FloatArray, start: FloatArray, unit: float) -> Opinion:
    """The least bound over every way to keep the rules "if this changes, that stays"."""
    held = {frozenset(choice) for choice in product(*problem.limits.either)}
    opinions = [_milp(problem, piece, x, start, unit / FINE, ways) for ways in sorted(held, key=sorted)]
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
    least, most = _ways(problem, x, held)
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
    least, most = _ways(problem, x, frozenset())
    step = 0.0 if limits.step is None else float(limits.step[j])
    for level in range(len(edges) - 1):
        # A bin has its lower edge, and ends before the next one begins.
        low, high = (
            edges[level],
            edges[level + 1] - (1e-9 * abs(edges[level + 1]) + 1e-12 if level + 2 < len(edges) else 0),
        )
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
