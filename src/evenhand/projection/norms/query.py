"""One query: memory to work in, right-hand sides, and first bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.projection._numba import kernel, workspace
from evenhand.projection.norms.compiled import Tables
from evenhand.projection.norms.pivot import PivotWork, pivot_work
from evenhand.projection.norms.simplex import SimplexWork, simplex_work
from evenhand.projection.norms.sweep import PathWork, path_work
from evenhand.types import FloatArray

ROUNDING = 1e-12
SLOP = 1e-13  # a point on an ellipsoid is inside of it, whatever the last digits say
ALL_ROWS = 48  # polyhedra with more rows enter the path with the rows that matter


class Work(NamedTuple):
    """Memory of one thread."""

    simplex: SimplexWork
    pivot: PivotWork
    path: PathWork
    h: FloatArray
    g: FloatArray
    rho: FloatArray
    tol: FloatArray  # rounding level of each row
    slop: FloatArray  # and of each ellipsoid
    vertex: FloatArray  # answer without the ellipsoid, per polyhedron
    vertex_mult: FloatArray
    bound_poly: FloatArray
    bound_ell: FloatArray
    solved_poly: npt.NDArray[np.int64]  # -1 not yet, else status
    solved_ell: npt.NDArray[np.int64]
    bound: FloatArray  # per piece
    open: npt.NDArray[np.bool_]
    rows: npt.NDArray[np.int64]
    z: FloatArray
    mult: FloatArray
    away: FloatArray
    dual: FloatArray
    turned: FloatArray
    candidate: FloatArray
    empty: FloatArray


@workspace
def make_work(t: Tables) -> Work:
    """Memory for one thread that solves the problems of `t`."""
    f = t.A.shape[1]
    n_poly, n_ell, n_pieces = len(t.row_start) - 1, len(t.radius), len(t.piece_poly)
    most = 1
    for p in range(n_poly):
        most = max(most, t.row_start[p + 1] - t.row_start[p])
    widest = 1
    for e in range(n_ell):
        widest = max(widest, t.ell_start[e + 1] - t.ell_start[e])
    path_rows = 0
    path_f = 1
    turned = 0
    if n_ell > 0 and t.order == 1:
        path_f = f
        path_rows = min(most, max(ALL_ROWS, f + 64))
    if n_ell > 0 and t.order == 2 and len(t.rotated) == 0:
        turned = most
    return Work(
        simplex_work(f, most),
        pivot_work(f, most),
        path_work(path_f, path_rows),
        np.empty(len(t.b)),
        np.empty(len(t.centre)),
        np.empty(n_ell),
        np.empty(len(t.b)),
        np.empty(n_ell),
        np.empty((n_poly, f)),
        np.empty(len(t.b)),
        np.empty(n_poly),
        np.empty(n_ell),
        np.empty(n_poly, np.int64),
        np.empty(n_ell, np.int64),
        np.empty(n_pieces),
        np.empty(n_pieces, np.bool_),
        np.empty(most, np.int64),
        np.empty(f),
        np.empty(most),
        np.empty(widest),
        np.empty(f),
        np.empty((turned, f)),
        np.empty(f),
        np.empty(0),
    )


@kernel
def load_query(t: Tables, x: FloatArray, guard: float, w: Work) -> None:
    """Right-hand sides for the query `x`, with room for rounding, and first bounds."""
    for p in range(len(w.bound_poly)):
        bound = 0.0
        for i in range(t.row_start[p], t.row_start[p + 1]):
            total = 0.0
            magnitude = 0.0
            for j in range(len(x)):
                product = t.on_x[i, j] * x[j]
                total += product
                magnitude += abs(product)
            magnitude += abs(t.b[i])
            w.h[i] = t.b[i] - t.absolute[i] * total - guard * t.guarded[i] * magnitude
            w.tol[i] = ROUNDING * magnitude
            if w.h[i] < 0.0:
                bound = max(bound, -w.h[i] / t.size[i])
        if bound < np.inf:  # a change of this size has rounding errors of its own
            for i in range(t.row_start[p], t.row_start[p + 1]):
                w.tol[i] = max(w.tol[i], ROUNDING * bound)
        w.bound_poly[p] = bound
        w.solved_poly[p] = -1
    for e in range(len(w.rho)):
        top = 0.0
        for i in range(t.ell_start[e], t.ell_start[e + 1]):
            total = 0.0
            magnitude = abs(t.centre[i])
            for j in range(len(x)):
                product = t.R_on_x[i, j] * x[j]
                total += product
                magnitude += abs(product)
            w.g[i] = t.centre[i] - total
            top = max(top, magnitude)
        w.rho[e] = max(t.radius[e] * (1.0 - 100.0 * guard) - guard * top, 0.5 * t.radius[e])
        w.slop[e] = SLOP * top
        w.bound_ell[e] = _tangent_bound(t, e, w)
        w.solved_ell[e] = -1


@kernel
def _tangent_bound(t: Tables, e: int, w: Work) -> float:
    """Distance to the ellipsoid at least that to its supporting halfspace across the centre."""
    start, stop = t.ell_start[e], t.ell_start[e + 1]
    length = 0.0
    for i in range(start, stop):
        length += w.g[i] * w.g[i]
    length = np.sqrt(length)
    if length <= w.rho[e] + w.slop[e]:
        return 0.0
    w.dual[:] = 0.0
    for i in range(start, stop):
        for j in range(len(w.dual)):
            w.dual[j] += t.R[i, j] * w.g[i]
    norm = dual_norm(t.order, w.dual)
    return (length - w.rho[e]) * length / norm if norm > 0.0 else np.inf


@kernel
def dual_norm(order: int, v: FloatArray) -> float:
    """The norm that bounds the cost: largest entry for l1, length for l2."""
    largest = 0.0
    squares = 0.0
    for j in range(len(v)):
        largest = max(largest, abs(v[j]))
        squares += v[j] * v[j]
    return largest if order == 1 else np.sqrt(squares)
