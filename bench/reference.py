"""The way of the paper's code: state every projection anew in a modelling language, solve by interior points."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from evenhand.sets import ConvexSet

TIGHT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


def nearest(x: npt.NDArray[np.float64], piece: ConvexSet, cost: str, **settings: float) -> float:
    """Cost ("l1" or "l2") of the nearest point of one piece, infinity if it is empty."""
    point = cp.Variable(piece.dim)
    lower, upper = piece.box
    G, h = piece.halfspaces
    below, above = np.isfinite(lower), np.isfinite(upper)
    constraints = [cp.norm(e.matrix @ point - e.offset) <= e.radius for e in piece.ellipsoids]
    if below.any():
        constraints.append(point[below] >= lower[below])
    if above.any():
        constraints.append(point[above] <= upper[above])
    if len(h):
        constraints.append(G @ point <= h)
    objective = cp.norm1(point - x) if cost == "l1" else cp.norm(point - x)
    problem = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")  # where TIGHT asks for too much
        problem.solve(solver=cp.CLARABEL, **settings)
    return float(problem.value)
