"""The flat arrays that the kernels read: one region in the coordinates of one cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.types import FloatArray


class Rows(NamedTuple):
    """Polyhedra in the coordinates of one cost, as the kernels read them."""

    order: int  # 1 or 2: which norm
    A: FloatArray  # all polyhedra's rows on xi, each of Euclidean length one
    on_x: FloatArray  # the same rows on the raw query: h = b - on_x @ x0
    b: FloatArray
    absolute: FloatArray  # 1 for rows on the answer, 0 for rows on the change: these only take their size from on_x
    lost: FloatArray  # what rounding may have taken from b, whoever asks
    guarded: FloatArray  # 1 for rows that keep a distance from rounding, 0 for limits that are met exactly
    size: FloatArray  # dual norm of each row of A
    start: npt.NDArray[np.int64]
    frame: FloatArray  # matrix S with change = S xi
    gram: FloatArray  # products of each row with those of its polyhedron (l2 without ellipsoids; else no rows)


class Curves(NamedTuple):
    """Ellipsoids in the same coordinates, and which piece is what."""

    R: FloatArray  # all ellipsoids' rows on xi, in their own axes and of norm at most one
    on_x: FloatArray
    centre: FloatArray
    radius: FloatArray
    start: npt.NDArray[np.int64]
    gram: FloatArray  # R'R of each ellipsoid
    axes: FloatArray  # orthogonal matrix whose columns are each ellipsoid's axes
    stretch: FloatArray  # R = diag(stretch) axes'
    rotated: FloatArray  # per piece: rows of its polyhedron in the axes of its ellipsoid (l2 only)
    rotated_start: npt.NDArray[np.int64]
    polyhedron: npt.NDArray[np.int64]  # of each piece
    ellipsoid: npt.NDArray[np.int64]
    shared: npt.NDArray[np.int64]  # how many pieces use each ellipsoid


class Boxes(NamedTuple):
    """A region whose pieces are boxes only, for costs that weigh each column by itself."""

    order: int
    lower: FloatArray
    upper: FloatArray
    weight: FloatArray  # xi = weight * change
    movable: npt.NDArray[np.int64]  # 0 fixed, 1 both ways, 2 only up, 3 only down
    floor: FloatArray  # limits that hold in every box and are met exactly
    ceiling: FloatArray
