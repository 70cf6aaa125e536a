"""From a region and a cost to the flat arrays that the kernels read.

Every cost becomes a plain norm of xi, where ``x = x0 + frame xi`` on the columns that may
change.  Pieces that share a polyhedron or an ellipsoid share its rows here, so that a bound
found for one of them serves all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.costs import Norm, by_row
from evenhand.projection.norms.arrays import Boxes, Curves, Rows
from evenhand.projection.norms.query import LAST_BITS
from evenhand.sets import ConvexSet, Ellipsoid, Region
from evenhand.types import FloatArray

NO_ELLIPSOID, SEVERAL = -1, -2
KEPT = 2**24  # floats kept of what can be made per query: products of rows, rows in the ellipsoids' own axes


@dataclass(frozen=True, eq=False)
class Compiled:
    """A compiled region.

    Attributes
    ----------
    rows : Rows
        The polyhedra of all pieces.
    curves : Curves or None
        The ellipsoids of all pieces, if there are any; without them the polyhedra are the pieces.
    boxes : Boxes or None
        The closed form, where all pieces are boxes.
    index : array
        Piece of the region that each compiled piece came from; pieces that are empty
        whatever the query (a box side past the other), or the same as another, are not compiled.
    free : array
        Columns that may change.
    several : mapping
        The ellipsoids of pieces that have more than one, which only the library takes.
    """

    rows: Rows
    curves: Curves | None
    boxes: Boxes | None
    index: npt.NDArray[np.int64]
    free: npt.NDArray[np.intp]
    dim: int
    scale: FloatArray | None  # the frame's diagonal, if that is all of it
    several: dict[int, tuple[int, ...]]

    def changes(self, xi: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """The change of the free columns that `xi` stands for, written into `out` if that is possible."""
        return by_row(xi, self.rows.frame) if self.scale is None else np.multiply(xi, self.scale, out=out)

    def polyhedron(self, piece: int) -> slice:
        """The rows of a piece."""
        p = piece if self.curves is None else self.curves.polyhedron[piece]
        return slice(int(self.rows.start[p]), int(self.rows.start[p + 1]))

    def ellipsoids(self, piece: int) -> tuple[int, ...]:
        """The ellipsoids of a piece."""
        if self.curves is None:
            return ()
        e = int(self.curves.ellipsoid[piece])
        return self.several.get(piece, (e,) if e >= 0 else ())


def compile_region(
    region: Region, cost: Norm, directions: npt.NDArray[np.int64], within: ConvexSet | None = None
) -> Compiled:
    """Flatten a region.

    Parameters
    ----------
    region : Region
        Where to project.
    cost : L1 or L2
        The norm of the change.
    directions : array of shape (dim,)
        Per column: 0 may not change, 1 may, 2 may only grow, 3 may only fall.
    within : ConvexSet, optional
        A box that all answers lie in, its sides included.
    """
    dim = region.dim
    limits = ConvexSet(dim) if within is None else within
    free = np.flatnonzero(directions)
    scale = cost.frame(dim, free)
    frame = np.diag(scale) if scale.ndim == 1 else scale
    alive = _different([(i, piece) for i, piece in enumerate(region.pieces) if not _trivially_empty(piece)])
    polyhedra: dict[bytes, tuple[int, ConvexSet]] = {}
    ellipsoids: dict[bytes, tuple[int, Ellipsoid]] = {}
    piece_poly, piece_ell = [], []
    several: dict[int, tuple[int, ...]] = {}
    for number, (_, piece) in enumerate(alive):
        piece_poly.append(polyhedra.setdefault(_polyhedron_key(piece), (len(polyhedra), piece))[0])
        found = [ellipsoids.setdefault(_ellipsoid_key(e), (len(ellipsoids), e))[0] for e in _curved(piece)]
        piece_ell.append(found[0] if len(found) == 1 else SEVERAL if found else NO_ELLIPSOID)
        if len(found) > 1:
            several[number] = tuple(found)
    rows = [_rows(piece, frame, free, directions, limits) for _, piece in polyhedra.values()]
    curves = None
    if ellipsoids:
        turned = [_axes(ellipsoid, frame, free) for _, ellipsoid in ellipsoids.values()]
        home = np.array(piece_poly, dtype=np.int64), np.array(piece_ell, dtype=np.int64)
        curves = _curves(cost.order, rows, turned, *home, len(free), dim)
    boxes = None
    if scale.ndim == 1 and not any(piece.ellipsoids or len(piece.halfspaces[1]) for _, piece in alive):
        weight = np.ones(dim)
        weight[free] = 1.0 / scale
        lower = np.array([piece.box[0] for _, piece in alive]).reshape(-1, dim)
        upper = np.array([piece.box[1] for _, piece in alive]).reshape(-1, dim)
        boxes = Boxes(cost.order, lower, upper, weight, directions, *limits.box)
    index = np.array([i for i, _ in alive], dtype=np.int64)
    diagonal = scale if scale.ndim == 1 else None
    return Compiled(
        _stacked(cost.order, rows, frame, dim, curved=bool(ellipsoids)),
        curves,
        boxes,
        index,
        free,
        dim,
        diagonal,
        several,
    )


def _different(pieces: list[tuple[int, ConvexSet]]) -> list[tuple[int, ConvexSet]]:
    """The pieces without those that are the same as another."""
    first: dict[bytes, tuple[int, ConvexSet]] = {}
    for i, piece in pieces:
        first.setdefault(b"|".join([_polyhedron_key(piece), *map(_ellipsoid_key, _curved(piece))]), (i, piece))
    return list(first.values())


def _trivially_empty(piece: ConvexSet) -> bool:
    lower, upper = piece.box
    G, h = piece.halfspaces
    crossed = (lower > upper).any() or (lower == np.inf).any() or (upper == -np.inf).any()
    impossible = ((h < 0) & ~G.any(axis=1)).any() or (h == -np.inf).any()
    return bool(crossed or impossible or any(e.radius < 0 for e in _ellipsoids(piece)))


def _ellipsoids(piece: ConvexSet) -> list[Ellipsoid]:
    return [part for part in piece.ellipsoids if isinstance(part, Ellipsoid)]  # the solver refuses all others


def _curved(piece: ConvexSet) -> list[Ellipsoid]:
    return [e for e in _ellipsoids(piece) if e.radius > 0]


def _flat(piece: ConvexSet) -> list[Ellipsoid]:
    """Ellipsoids without a width: equations, which are rows to the solvers."""
    return [e for e in _ellipsoids(piece) if e.radius == 0]


def _polyhedron_key(piece: ConvexSet) -> bytes:
    rows = b"|".join(array.tobytes() for array in (*piece.box, *piece.halfspaces, piece.masses))
    return b"|".join([rows, *map(_ellipsoid_key, _flat(piece))])


def _ellipsoid_key(ellipsoid: Ellipsoid) -> bytes:
    return b"|".join((ellipsoid.matrix.tobytes(), ellipsoid.offset.tobytes(), repr(ellipsoid.radius).encode()))


class _Rows(NamedTuple):
    """One polyhedron's rows, each of length one on xi."""

    A: FloatArray
    on_x: FloatArray
    b: FloatArray
    absolute: FloatArray
    lost: FloatArray
    guarded: FloatArray


def _sides(box: ConvexSet) -> tuple[FloatArray, FloatArray]:
    """The finite sides of a box as rows."""
    lower, upper = box.box
    unit = np.eye(box.dim)
    above, below = np.isfinite(upper), np.isfinite(lower)
    return np.vstack([unit[above], -unit[below]]), np.concatenate([upper[above], -lower[below]])


def _rows(
    piece: ConvexSet,
    frame: FloatArray,
    free: npt.NDArray[np.intp],
    directions: npt.NDArray[np.int64],
    limits: ConvexSet,
) -> _Rows:
    """Halfspaces, box sides, limits and one-way columns of a piece as rows on xi and on the query."""
    G, h = piece.halfspaces
    real = np.isfinite(h)
    sides, limit_sides = _sides(piece), _sides(limits)
    equations = [part for e in _flat(piece) for part in ((e.matrix, e.offset), (-e.matrix, -e.offset))]
    on_x = np.vstack([G[real], sides[0], limit_sides[0], *(matrix for matrix, _ in equations)])
    b = np.concatenate([h[real], sides[1], limit_sides[1], *(offset for _, offset in equations)])
    guarded = np.zeros(len(b))
    guarded[: real.sum() + len(sides[1])] = 1.0  # limits and equations have no inner side to keep to
    way = directions[free]
    one_way = np.vstack([-frame[way == 2], frame[way == 3]])
    A = np.vstack([on_x[:, free] @ frame, one_way])
    on_x = np.vstack([on_x, -np.eye(piece.dim)[free[way == 2]], np.eye(piece.dim)[free[way == 3]]])
    b = np.concatenate([b, np.zeros(len(one_way))])
    absolute = np.concatenate([np.ones(len(guarded)), np.zeros(len(one_way))])
    guarded = np.concatenate([guarded, np.zeros(len(one_way))])
    length = np.linalg.norm(A, axis=1)
    length[length == 0] = 1.0
    lost = LAST_BITS * np.pad(piece.masses[real], (0, len(b) - real.sum()))
    return _Rows(A / length[:, None], on_x / length[:, None], b / length, absolute, lost / length, guarded)


class _Axes(NamedTuple):
    """One ellipsoid in its own axes, scaled so that its longest row has length one."""

    R: FloatArray
    on_x: FloatArray
    centre: FloatArray
    radius: float
    axes: FloatArray
    stretch: FloatArray


def _axes(ellipsoid: Ellipsoid, frame: FloatArray, free: npt.NDArray[np.intp]) -> _Axes:
    on_xi = ellipsoid.matrix[:, free] @ frame
    left, values, axes = np.linalg.svd(on_xi, full_matrices=True)
    largest = values.max(initial=0.0)
    scale = 1.0 / largest if largest > 0 else 1.0
    stretch = np.zeros(len(free))
    stretch[: len(values)] = values * scale
    return _Axes(
        left.T @ on_xi * scale,
        left.T @ ellipsoid.matrix * scale,
        left.T @ ellipsoid.offset * scale,
        ellipsoid.radius * scale,
        axes.T,
        stretch,
    )


def _stacked(order: int, rows: list[_Rows], frame: FloatArray, dim: int, *, curved: bool) -> Rows:
    A = _stack([r.A for r in rows], frame.shape[1])
    widest = max((len(r.b) for r in rows), default=0)
    known = order == 2 and not curved and widest <= 2 * frame.shape[1]  # no more memory than the rows themselves
    products = [np.pad(r.A @ r.A.T, ((0, 0), (0, widest - len(r.b)))) for r in rows] if known else []
    return Rows(
        order=order,
        A=A,
        on_x=_stack([r.on_x for r in rows], dim),
        b=np.concatenate([np.zeros(0), *[r.b for r in rows]]),
        absolute=np.concatenate([np.zeros(0), *[r.absolute for r in rows]]),
        lost=np.concatenate([np.zeros(0), *[r.lost for r in rows]]),
        guarded=np.concatenate([np.zeros(0), *[r.guarded for r in rows]]),
        size=np.abs(A).max(axis=1, initial=0.0) if order == 1 else np.linalg.norm(A, axis=1),
        start=np.cumsum([0] + [len(r.b) for r in rows]).astype(np.int64),
        frame=np.ascontiguousarray(frame),
        gram=_stack(products, widest),
    )


def _curves(
    order: int,
    rows: list[_Rows],
    turned: list[_Axes],
    polyhedron: npt.NDArray[np.int64],
    ellipsoid: npt.NDArray[np.int64],
    f: int,
    dim: int,
) -> Curves:
    axes = np.ascontiguousarray([t.axes for t in turned])
    rotated, rotated_start = _rotated(order, rows, axes, polyhedron, ellipsoid, f)
    return Curves(
        R=_stack([t.R for t in turned], f),
        on_x=_stack([t.on_x for t in turned], dim),
        centre=np.concatenate([t.centre for t in turned]),
        radius=np.array([t.radius for t in turned], dtype=np.float64),
        start=np.cumsum([0] + [len(t.centre) for t in turned]).astype(np.int64),
        gram=np.array([t.R.T @ t.R for t in turned]).reshape(len(turned), f, f),
        axes=axes,
        stretch=_stack([t.stretch[None] for t in turned], f),
        rotated=rotated,
        rotated_start=rotated_start,
        polyhedron=polyhedron,
        ellipsoid=ellipsoid,
        shared=np.bincount(ellipsoid[ellipsoid >= 0], minlength=len(turned)).astype(np.int64),
    )


def _rotated(
    order: int,
    rows: list[_Rows],
    axes: FloatArray,
    piece_poly: npt.NDArray[np.int64],
    piece_ell: npt.NDArray[np.int64],
    f: int,
) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    counts = [len(rows[p].b) if e >= 0 else 0 for p, e in zip(piece_poly, piece_ell, strict=True)]
    start = np.cumsum([0, *counts]).astype(np.int64)
    if order == 1 or start[-1] * f > KEPT:
        return np.zeros((0, f)), start
    parts = [rows[p].A @ axes[e] for p, e in zip(piece_poly, piece_ell, strict=True) if e >= 0]
    return _stack(parts, f), start


def _stack(parts: list[FloatArray], width: int) -> FloatArray:
    return np.ascontiguousarray(np.vstack([np.zeros((0, width)), *parts]))
