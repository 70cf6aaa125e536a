"""Affine maps, and what sets ask of arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.types import FloatArray


@dataclass(frozen=True, eq=False)
class Affine:
    """The map ``x -> matrix @ x + offset``.

    Examples
    --------
    >>> Affine([[2.0, 0.0]], [1.0])([[3.0, 5.0]])
    array([[7.]])
    """

    matrix: FloatArray
    offset: FloatArray

    def __post_init__(self) -> None:
        matrix = frozen(self.matrix, 2, "Affine.matrix")
        offset = frozen(self.offset, 1, "Affine.offset")
        if len(offset) != len(matrix):
            raise ValueError(f"Affine.matrix has {len(matrix)} rows and offset has {len(offset)} entries.")
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "offset", offset)

    @classmethod
    def identity(cls, dim: int) -> Affine:
        """The map that changes nothing."""
        return cls(np.eye(dim), np.zeros(dim))

    def __call__(self, X: npt.ArrayLike) -> FloatArray:
        """Map each row of `X`."""
        mapped: FloatArray = table(X, self.matrix.shape[1]) @ self.matrix.T + self.offset
        return mapped

    def then(self, after: Affine) -> Affine:
        """First this map, then `after`."""
        return Affine(after.matrix @ self.matrix, after.matrix @ self.offset + after.offset)


def frozen(values: npt.ArrayLike, ndim: int, name: str, *, finite: bool = True) -> FloatArray:
    """A read-only copy of an array of numbers, or an error that says what is wrong with it."""
    array = np.array(values, dtype=np.float64, ndmin=1)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {array.shape}.")
    if np.isnan(array).any() or (finite and not np.isfinite(array).all()):
        raise ValueError(f"{name} contains {'NaN' if np.isnan(array).any() else 'infinity'}.")
    array.setflags(write=False)
    return array


def finite_rows(points: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """The points with zeros in place of rows with NaN or infinity, which no set contains, and which are not."""
    finite: npt.NDArray[np.bool_] = np.asarray(np.isfinite(points).all(axis=1))
    return (points if finite.all() else np.where(finite[:, None], points, 0.0)), finite


def table(X: npt.ArrayLike, dim: int) -> FloatArray:
    """A table of points as floats, or an error that says what it is instead."""
    points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != dim:
        raise ValueError(f"Expected a table with {dim} columns, got shape {points.shape}.")
    return points
