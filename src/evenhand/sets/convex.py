"""One convex set: a box, halfspaces and ellipsoids, all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evenhand.costs import Norm, as_cost
from evenhand.sets.affine import Affine, finite_rows, frozen, table
from evenhand.types import FloatArray

DEFAULT_TOLERANCE = 1e-9


class Measure(Protocol):
    """What a margin has to know of a cost."""

    def dual(self, rows: FloatArray) -> FloatArray:
        """How much each ``row @ x`` can change per unit of cost."""
        ...

    def reach(self, matrix: FloatArray) -> float:
        """Largest Euclidean length that ``matrix @ change`` has at cost one."""
        ...


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """The points with ``||matrix @ x - offset||_2 <= radius``.

    The matrix may be wide: then the set is a cylinder, unbounded along its null space.
    """

    matrix: FloatArray
    offset: FloatArray
    radius: float

    def __post_init__(self) -> None:
        matrix = frozen(self.matrix, 2, "Ellipsoid.matrix")
        offset = frozen(self.offset, 1, "Ellipsoid.offset")
        if len(offset) != len(matrix):
            raise ValueError(f"Ellipsoid.matrix has {len(matrix)} rows and offset has {len(offset)} entries.")
        if not np.isfinite(self.radius):
            raise ValueError(f"Ellipsoid.radius must be finite, got {self.radius}.")
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "offset", offset)
        object.__setattr__(self, "radius", float(self.radius))

    def contains(self, X: npt.ArrayLike, tol: float = DEFAULT_TOLERANCE) -> npt.NDArray[np.bool_]:
        """Which rows of `X` lie inside, or outside by a distance of at most `tol`."""
        points, finite = finite_rows(table(X, self.matrix.shape[1]))
        away = np.linalg.norm(points @ self.matrix.T - self.offset, axis=1)
        stretch = float(np.linalg.norm(self.matrix, 2)) if self.matrix.size else 0.0
        inside: npt.NDArray[np.bool_] = finite & (away <= self.radius + tol * stretch) & (self.radius >= 0)
        return inside

    def pullback(self, affine: Affine) -> Ellipsoid:
        """The points that `affine` maps into this ellipsoid."""
        return Ellipsoid(self.matrix @ affine.matrix, self.offset - self.matrix @ affine.offset, self.radius)


@dataclass(frozen=True, eq=False)
class Paraboloid:
    """The points with ``||matrix @ x - offset||^2 / 2 <= room + slope @ x``.

    Where a class is dense, in a table with levels: the matrix looks at the numbers, the slope at the levels, each of
    which adds the logarithm of its frequency to the room that the numbers have.
    """

    matrix: FloatArray
    offset: FloatArray
    room: float
    slope: FloatArray

    def __post_init__(self) -> None:
        matrix = frozen(self.matrix, 2, "Paraboloid.matrix")
        offset = frozen(self.offset, 1, "Paraboloid.offset")
        slope = frozen(self.slope, 1, "Paraboloid.slope")
        if len(offset) != len(matrix) or len(slope) != matrix.shape[1]:
            raise ValueError(
                f"Paraboloid.matrix has shape {matrix.shape}, offset has {len(offset)} and slope {len(slope)} entries."
            )
        for name, array in (("matrix", matrix), ("offset", offset), ("slope", slope)):
            object.__setattr__(self, name, array)
        object.__setattr__(self, "room", float(self.room))

    def contains(self, X: npt.ArrayLike, tol: float = DEFAULT_TOLERANCE) -> npt.NDArray[np.bool_]:
        """Which rows of `X` lie inside, up to `tol` in units of the inequality."""
        points, finite = finite_rows(table(X, self.matrix.shape[1]))
        height = 0.5 * ((points @ self.matrix.T - self.offset) ** 2).sum(axis=1) - points @ self.slope
        inside: npt.NDArray[np.bool_] = finite & (height <= self.room + tol * (1.0 + abs(self.room)))
        return inside

    def pullback(self, affine: Affine) -> Paraboloid:
        """The points that `affine` maps into this set."""
        return Paraboloid(
            self.matrix @ affine.matrix,
            self.offset - self.matrix @ affine.offset,
            self.room + float(self.slope @ affine.offset),
            self.slope @ affine.matrix,
        )


@dataclass(frozen=True, eq=False)
class ConvexSet:
    """A box, halfspaces ``G x <= h`` and ellipsoids, all at once.

    Parameters
    ----------
    dim : int
        Dimension of the space.
    lower, upper : array of shape (dim,), optional
        Sides of the box; infinite where there is none.
    G, h : arrays of shape (n_rows, dim) and (n_rows,), optional
        Halfspaces.
    ellipsoids : sequence of Ellipsoid or Paraboloid
        Further constraints.
    mass : array of shape (n_rows,), optional
        How large the constants are of which each entry of `h` is the difference: what rounding takes from them nobody
        can tell.  Solvers count it in what they prove, and keep as much.  Zeros by default.

    Examples
    --------
    >>> unit = ConvexSet(2, lower=[0.0, 0.0], upper=[1.0, 1.0])
    >>> unit.contains([[0.5, 0.5], [2.0, 0.0]])
    array([ True, False])
    """

    dim: int
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    G: FloatArray | None = None
    h: FloatArray | None = None
    ellipsoids: tuple[Ellipsoid | Paraboloid, ...] = ()
    mass: FloatArray | None = None

    def __post_init__(self) -> None:
        dim = int(self.dim)
        if dim < 1:
            raise ValueError(f"dim must be at least 1, got {self.dim}.")
        if (self.G is None) != (self.h is None):
            raise ValueError("G and h come together: one of them is missing.")
        lower = np.full(dim, -np.inf) if self.lower is None else self.lower
        upper = np.full(dim, np.inf) if self.upper is None else self.upper
        G = np.zeros((0, dim)) if self.G is None else self.G
        h = np.zeros(0) if self.h is None else self.h
        fields = {
            "lower": frozen(lower, 1, "lower", finite=False),
            "upper": frozen(upper, 1, "upper", finite=False),
            "G": frozen(G, 2, "G"),
            "h": frozen(h, 1, "h", finite=False),
            "mass": frozen(np.zeros(len(h)) if self.mass is None else self.mass, 1, "mass"),
        }
        for name, array in fields.items():
            object.__setattr__(self, name, array)
        object.__setattr__(self, "dim", dim)
        object.__setattr__(self, "ellipsoids", tuple(self.ellipsoids))
        widths = [len(fields["lower"]), len(fields["upper"]), fields["G"].shape[1]]
        widths += [e.matrix.shape[1] for e in self.ellipsoids]
        if any(width != dim for width in widths):
            raise ValueError(f"A ConvexSet of dimension {dim} got parts of dimension {widths}.")
        if len(fields["G"]) != len(fields["h"]):
            raise ValueError(f"G has {len(fields['G'])} rows and h has {len(fields['h'])} entries.")
        if len(fields["mass"]) != len(fields["h"]):
            raise ValueError(f"h has {len(fields['h'])} entries and mass has {len(fields['mass'])}.")

    @property
    def box(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper sides, infinite where there is none."""
        assert self.lower is not None
        assert self.upper is not None
        return self.lower, self.upper

    @property
    def halfspaces(self) -> tuple[FloatArray, FloatArray]:
        """``G`` and ``h``, with no rows where there are none."""
        assert self.G is not None
        assert self.h is not None
        return self.G, self.h

    @property
    def masses(self) -> FloatArray:
        """One per halfspace: the size of the constants of which `h` is the difference."""
        assert self.mass is not None
        return self.mass

    def contains(self, X: npt.ArrayLike, tol: float = DEFAULT_TOLERANCE) -> npt.NDArray[np.bool_]:
        """Which rows of `X` lie inside, or break no constraint by a distance of more than `tol`."""
        points, inside = finite_rows(table(X, self.dim))
        lower, upper = self.box
        G, h = self.halfspaces
        inside &= ((points >= lower - tol) & (points <= upper + tol)).all(axis=1)
        inside &= (points @ G.T <= h + tol * np.linalg.norm(G, axis=1)).all(axis=1)
        for ellipsoid in self.ellipsoids:
            inside &= ellipsoid.contains(points, tol)
        return inside

    def pullback(self, affine: Affine) -> ConvexSet:
        """The points that `affine` maps into this set.

        A side of the box that depends on one input only stays a side of the box, so
        that a tree behind a scaler keeps its closed form; the others become rows.
        """
        matrix, offset = affine.matrix, affine.offset
        if len(matrix) != self.dim:
            raise ValueError(f"The map ends in {len(matrix)} dimensions, the set lives in {self.dim}.")
        dim = matrix.shape[1]
        G, h = self.halfspaces
        low, high = (side - offset for side in self.box)
        single = np.count_nonzero(matrix, axis=1) == 1
        lower, upper = np.full(dim, -np.inf), np.full(dim, np.inf)
        for i in np.flatnonzero(single):
            j = int(np.flatnonzero(matrix[i])[0])
            sides = sorted((low[i] / matrix[i, j], high[i] / matrix[i, j]))
            if low[i] > high[i]:
                sides.reverse()
            lower[j], upper[j] = max(lower[j], sides[0]), min(upper[j], sides[1])
        below, above = ~single & np.isfinite(low), ~single & np.isfinite(high)
        nowhere = matrix[~single & ((low == np.inf) | (high == -np.inf))] * 0.0  # 0 x <= -1: still empty
        G = np.vstack([G @ matrix, matrix[above], -matrix[below], nowhere])
        return ConvexSet(
            dim,
            lower,
            upper,
            G,
            np.concatenate([h - self.halfspaces[0] @ offset, high[above], -low[below], np.full(len(nowhere), -1.0)]),
            tuple(e.pullback(affine) for e in self.ellipsoids),
            np.pad(self.masses, (0, len(G) - len(h))),
        )

    def shrink(self, margin: float, cost: Norm | Measure | str = "l2") -> ConvexSet:
        """The points from which a change of cost `margin` never leaves the set.

        Rows and sides move inwards by the dual norm of the cost, which is exact; an
        ellipsoid loses the largest step that the cost allows, which is on the safe side.
        """
        norm = as_cost(cost) if isinstance(cost, str) else cost
        if not (np.isfinite(margin) and margin >= 0):
            raise ValueError(f"margin must be a number >= 0, got {margin}.")
        lower, upper = self.box
        G, h = self.halfspaces
        step = margin * norm.dual(np.eye(self.dim))
        ellipsoids = tuple(_shrunk(e, margin, norm) for e in self.ellipsoids)
        h = h - margin * norm.dual(G)
        return ConvexSet(self.dim, lower + step, upper - step, G, h, ellipsoids, self.mass)

    def __and__(self, other: ConvexSet) -> ConvexSet:
        if not isinstance(other, ConvexSet):
            return NotImplemented
        if self.dim != other.dim:
            raise ValueError(f"Sets of dimension {self.dim} and {other.dim} do not intersect.")
        (low_a, up_a), (low_b, up_b) = self.box, other.box
        (G_a, h_a), (G_b, h_b) = self.halfspaces, other.halfspaces
        return ConvexSet(
            self.dim,
            np.maximum(low_a, low_b),
            np.minimum(up_a, up_b),
            np.vstack([G_a, G_b]),
            np.concatenate([h_a, h_b]),
            self.ellipsoids + other.ellipsoids,
            np.concatenate([self.masses, other.masses]),
        )


def _shrunk(part: Ellipsoid | Paraboloid, margin: float, norm: Any) -> Ellipsoid:
    if isinstance(part, Paraboloid):
        raise TypeError("A margin is kept from decision boundaries; a density with levels has no distance to keep.")
    return Ellipsoid(part.matrix, part.offset, part.radius - margin * norm.reach(part.matrix))
