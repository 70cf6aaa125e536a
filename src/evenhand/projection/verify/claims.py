"""What a projection claims about each query, and what is found about that from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenhand.projection.problem import Problem
from evenhand.projection.verify.conic import conic_opinion
from evenhand.projection.verify.mixed import mixed_opinion
from evenhand.projection.verify.opinion import Ask, units_of
from evenhand.sets import Affine, ConvexSet, Paraboloid, Region
from evenhand.status import Status
from evenhand.types import BoolArray, FloatArray, StatusArray

NEXT_TO_NOTHING = 1e-8  # of a person's own size: what no solver in floating point can tell from nothing
FAR = 1e6  # times a person's own size: what is proven to cost more is out of reach


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
    units = units_of(problem, numbers)
    return float((np.abs(x[numbers]) / units).sum()) if len(numbers) else 1.0


def _below(problem: Problem, x: FloatArray, point: FloatArray, bound: float, tol: float, size: float) -> bool:
    """Whether a point that may be reached is cheaper than a claimed bound.

    What it may miss by is measured in each column's own numbers: next to a large one a small one seems to be nothing.
    """
    room = 1e-9 * (1.0 + float(np.abs([point, x]).max()))
    if not bool(problem.limits.admits(point[None], x[None], room)[0]):
        return False
    rows = problem.layout.expand(np.vstack([point, x]))
    own = np.abs(rows).max(axis=0)
    own[own == 0.0] = 1.0
    if not bool(problem.region.pullback(Affine(np.diag(own), np.zeros(len(own)))).contains(rows[:1] / own, 1e-9)[0]):
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
    return float((away / units_of(problem, numbers)).max(initial=0.0)) * (1.0 - 1e-9)


def _solver_of(problem: Problem) -> Ask:
    curved = any(isinstance(part, Paraboloid) for piece in problem.region.pieces for part in piece.ellipsoids)
    if not (len(problem.layout.categories) or problem.limits.stepped or curved):
        return conic_opinion
    if problem.cost.rates(problem.n_columns) is None:
        raise TypeError(
            f"Steps, levels and rules are verified for costs that are sums over columns; got {problem.cost!r}. "
            'Use "l1", L1(...) or Gower(schema).'
        )
    return mixed_opinion
