"""Ties, one query at a time: of all l1 optima DAQP picks the canonical one, and of several pieces the first."""

from __future__ import annotations

import daqp
import numpy as np
import numpy.typing as npt

from evenhand.projection.norms.compiled import Compiled
from evenhand.projection.norms.instance import Answer, Instance, dual_vector, feasible
from evenhand.projection.norms.query import TIE
from evenhand.types import FloatArray


def canonical(problem: Instance, answer: Answer) -> FloatArray:
    """Of all l1 optima the one with the least l2 length.

    The optima form a face: coordinates with |v_j| < ||v|| stay at zero, the others keep the sign
    of -v_j, rows with a multiplier stay tight, and so does R xi, since an ellipsoid is curved.
    """
    v = dual_vector(problem, answer.mult, answer.ball_mult)
    size = np.abs(v).max(initial=0.0)
    if problem.order == 2 or size == 0:
        return answer.xi
    face = np.flatnonzero(np.abs(v) >= (1 - TIE) * size)
    sign = -np.sign(v[face])
    A = problem.A[:, face] * sign
    tight = answer.mult > TIE * answer.mult.max(initial=0.0)
    lower = np.where(tight, problem.h, -1e30)
    fixed = [R for (R, _, _), y in zip(problem.balls, answer.ball_mult, strict=True) if np.linalg.norm(y) > TIE * size]
    if fixed:
        kept, target = _independent(np.vstack(fixed)[:, face] * sign, sign * answer.xi[face])
        A = np.vstack([A, kept])
        lower = np.concatenate([lower, target])
        upper = np.concatenate([problem.h, target])
        tight = np.concatenate([tight, np.ones(len(target), dtype=bool)])
    else:
        upper = problem.h
    sense = np.concatenate([np.zeros(len(face)), np.where(tight, 5, 0)]).astype(np.int32)
    scale = max(float(np.abs(answer.xi).max(initial=0.0)), 1e-300)
    solution, _, flag, _ = daqp.solve(
        np.eye(len(face)),
        np.zeros(len(face)),
        np.ascontiguousarray(A),
        np.concatenate([np.full(len(face), 1e30), upper / scale]),
        np.concatenate([np.zeros(len(face)), np.maximum(lower / scale, -1e30)]),
        sense,
        primal_tol=1e-10,
    )
    xi = np.zeros_like(answer.xi)
    xi[face] = sign * np.maximum(solution, 0.0) * scale
    return xi if flag > 0 and _as_good(problem, answer, xi) else answer.xi


def _independent(rows: FloatArray, point: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows with the same row space and full rank, and their values at a point."""
    _, values, basis = np.linalg.svd(rows, full_matrices=False)
    kept = basis[values > 1e-11 * values.max(initial=0.0)]
    return kept, kept @ point


def _as_good(problem: Instance, answer: Answer, xi: FloatArray) -> bool:
    return feasible(problem, xi) and float(np.abs(xi).sum()) <= answer.cost * (1 + TIE)


def first(problem: Compiled, candidates: list[tuple[int, FloatArray, float]]) -> tuple[int, FloatArray, float]:
    """The canonical one among candidates (piece, xi, cost): cost, then length, then the point itself."""
    cheapest = min(cost for _, _, cost in candidates)
    tied = [c for c in candidates if c[2] <= cheapest * (1 + TIE)]
    lengths = [float(np.linalg.norm(xi)) for _, xi, _ in tied]
    tied = [c for c, length in zip(tied, lengths, strict=True) if length <= min(lengths) * (1 + TIE)]
    changes = [problem.changes(xi[None])[0] for _, xi, _ in tied]
    room = TIE * max(float(np.abs(change).max(initial=0.0)) for change in changes)
    order: npt.NDArray[np.bool_] = np.ones(len(tied), dtype=bool)
    for column in np.array(changes).T:
        order &= column <= column[order].min() + room
    return tied[int(np.flatnonzero(order)[0])]
