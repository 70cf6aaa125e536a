"""Norms of the change: ``cost(x, x') = ||x' - x||``.

A change of variables turns each of them into a plain l1 or l2 norm, which is all that the solvers have to know (see
:meth:`L1.frame` and :meth:`L2.frame`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.types import FloatArray

TIE = 1e-9  # relative difference of lengths that counts as none


@dataclass(frozen=True, eq=False)
class L1:
    r"""Weighted Manhattan distance :math:`\sum_j w_j |a_j - b_j|`.

    Parameters
    ----------
    weights : array of shape (n_features,), optional
        Positive weights; all one when left out.

    Examples
    --------
    >>> float(L1(weights=[1.0, 10.0])([[0.0, 0.0]], [[3.0, 1.0]])[0])
    13.0
    """

    weights: FloatArray | None = None
    names: tuple[str, ...] | None = field(default=None, init=False)  # of the columns, if the weights came with names

    order: ClassVar[int] = 1
    metric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", _names(self.weights))
        object.__setattr__(self, "weights", _checked_weights(self.weights))

    def __repr__(self) -> str:
        return "L1()" if self.weights is None else f"L1({len(self.weights)} weights)"

    def __call__(self, a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
        """Distance between the rows of `a` and the rows of `b`."""
        change = _difference(a, b)
        return by_row(np.abs(change, out=change), _weights(self.weights, change.shape[1]))

    def price(self, people: FloatArray, points: FloatArray) -> FloatArray:
        """Cost of changing people into others."""
        return self(points, people)

    def rates(self, dim: int) -> FloatArray:
        """Cost per unit of each of `dim` columns."""
        return _weights(self.weights, dim)

    @classmethod
    def mad(cls, X: npt.ArrayLike) -> L1:
        """Weights 1 / MAD, the median absolute deviation of each column of `X`.

        A column with MAD 0 (half of its values are the same) gets weight 1.  Weights follow the names of a DataFrame.
        """
        table = _finite_table(X)
        mad = np.median(np.abs(table - np.median(table, axis=0)), axis=0)
        return cls(weights=_named(1.0 / np.where(mad > 0, mad, 1.0), X))

    def frame(self, dim: int, free: npt.NDArray[np.intp]) -> FloatArray:
        """Diagonal S with ``change[free] = S * xi`` and cost ``||xi||_1``."""
        scale: FloatArray = 1.0 / _weights(self.weights, dim)[free]
        return scale

    def before(self, a: FloatArray, b: FloatArray) -> bool:
        """Which of two equally costly changes comes first: by length in the cost's units, then lexicographically."""
        return _shorter(self.frame(len(a), np.arange(len(a))), a, b)

    def dual(self, rows: FloatArray) -> FloatArray:
        """Dual norm of each row: how much ``row @ x`` can change per unit of cost."""
        scaled = np.abs(rows) / _weights(self.weights, rows.shape[1])
        size: FloatArray = np.asarray(scaled.max(axis=1, initial=0.0))
        return size

    def reach(self, matrix: FloatArray) -> float:
        """Largest Euclidean length that ``matrix @ change`` has at cost one."""
        scaled = matrix / _weights(self.weights, matrix.shape[1])
        return float(np.sqrt((scaled**2).sum(axis=0)).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class L2:
    r"""Euclidean distance, weighted or generalized.

    :math:`\sqrt{\sum_j w_j (a_j - b_j)^2}` with `weights`, or
    :math:`\sqrt{(a-b)^\top \Omega (a-b)}` with a `matrix` :math:`\Omega`.

    Parameters
    ----------
    weights : array of shape (n_features,), optional
        Positive weights; all one when left out.
    matrix : array of shape (n_features, n_features), optional
        Symmetric positive definite; at most one of the two may be given.

    Examples
    --------
    >>> float(L2()([[0.0, 0.0]], [[3.0, 4.0]])[0])
    5.0
    """

    weights: FloatArray | None = None
    matrix: FloatArray | None = None
    names: tuple[str, ...] | None = field(default=None, init=False)  # of the columns, if the weights came with names

    order: ClassVar[int] = 2
    metric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", _names(self.weights if self.matrix is None else self.matrix))
        if self.weights is not None and self.matrix is not None:
            raise ValueError("L2 takes weights or a matrix, not both; put the weights on the matrix's diagonal.")
        object.__setattr__(self, "weights", _checked_weights(self.weights))
        object.__setattr__(self, "matrix", _checked_matrix(self.matrix))

    def __repr__(self) -> str:
        if self.matrix is not None:
            return f"L2({len(self.matrix)} x {len(self.matrix)} matrix)"
        return "L2()" if self.weights is None else f"L2({len(self.weights)} weights)"

    def __call__(self, a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
        """Distance between the rows of `a` and the rows of `b`."""
        change = _difference(a, b)
        if self.matrix is None:
            return np.sqrt(by_row(np.square(change, out=change), _weights(self.weights, change.shape[1])))
        squares: FloatArray = np.einsum("ij,ij->i", by_row(change, self._omega(change.shape[1])), change)
        return np.sqrt(squares)

    def price(self, people: FloatArray, points: FloatArray) -> FloatArray:
        """Cost of changing people into others."""
        return self(points, people)

    def rates(self, dim: int) -> None:  # noqa: ARG002 - one interface
        """None: the cost is no sum over columns."""
        return

    @classmethod
    def mahalanobis(cls, X: npt.ArrayLike) -> L2:
        """The Mahalanobis distance of the rows of `X`: the inverse of their covariance."""
        table = _finite_table(X)
        spread = table.std(axis=0, ddof=1) if len(table) > 1 else np.zeros(table.shape[1])
        units = np.where(spread > 0, spread, 1.0)  # in units of their spread columns of any scale are comparable
        scaled = (table - table.mean(axis=0)) / units
        correlation = scaled.T @ scaled / max(len(table) - 1, 1)
        if not (spread > 0).all() or not np.linalg.eigvalsh(correlation)[0] > 1e-12:
            raise ValueError(
                f"The covariance of these {len(table)} rows is singular, so it has no Mahalanobis distance: a column "
                "is constant or a combination of others. Leave that column out, or pass L2(weights=...)."
            )
        inverse: FloatArray = np.linalg.inv(correlation)
        return cls(matrix=_named((inverse + inverse.T) / 2 / np.outer(units, units), X))

    def frame(self, dim: int, free: npt.NDArray[np.intp]) -> FloatArray:
        """S (a diagonal, or a matrix) with ``change[free] = S xi`` and cost ``||xi||_2``."""
        if self.matrix is None:
            scale: FloatArray = 1.0 / np.sqrt(_weights(self.weights, dim)[free])
            return scale
        factor = np.linalg.cholesky(self._omega(dim)[np.ix_(free, free)])
        inverse: FloatArray = np.linalg.inv(factor).T
        return inverse

    def before(self, a: FloatArray, b: FloatArray) -> bool:
        """Which of two equally costly changes comes first: by length in the cost's units, then lexicographically."""
        return _shorter(self.frame(len(a), np.arange(len(a))), a, b)

    def dual(self, rows: FloatArray) -> FloatArray:
        """Dual norm of each row: how much ``row @ x`` can change per unit of cost."""
        size: FloatArray = np.linalg.norm(self._plain(rows), axis=1)
        return size

    def reach(self, matrix: FloatArray) -> float:
        """Largest Euclidean length that ``matrix @ change`` has at cost one."""
        return float(np.linalg.norm(self._plain(matrix), 2)) if matrix.size else 0.0

    def _plain(self, rows: FloatArray) -> FloatArray:
        dim = rows.shape[1]
        frame = self.frame(dim, np.arange(dim))
        return rows * frame if frame.ndim == 1 else rows @ frame

    def _omega(self, dim: int) -> FloatArray:
        if self.matrix is None or len(self.matrix) != dim:
            got = 0 if self.matrix is None else len(self.matrix)
            raise ValueError(f"The cost's matrix is {got} x {got}, the data has {dim} columns.")
        return self.matrix


def _shorter(frame: FloatArray, a: FloatArray, b: FloatArray) -> bool:
    lengths = [float(np.linalg.norm(change / frame)) for change in (a, b)] if frame.ndim == 1 else [0.0, 0.0]
    if abs(lengths[0] - lengths[1]) > TIE * max(lengths):
        return lengths[0] < lengths[1]
    apart = np.flatnonzero(np.abs(a - b) > TIE * np.abs(a).max())
    return bool(len(apart)) and bool(a[apart[0]] < b[apart[0]])


def _named(values: FloatArray, X: Any) -> Any:
    """Weights or a matrix with the names of a table's columns, if it has names."""
    names = getattr(X, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        return values
    return pd.Series(values, index=list(names)) if values.ndim == 1 else pd.DataFrame(values, index=list(names))


def _names(values: object) -> tuple[str, ...] | None:
    """Names that came with weights or a matrix; numbers in place of names say nothing."""
    labels = getattr(values, "index", None)
    if values is None or callable(labels) or labels is None:
        return None
    names = tuple(labels)
    return names if all(isinstance(name, str) for name in names) else None


def _checked_weights(weights: npt.ArrayLike | None) -> FloatArray | None:
    if weights is None:
        return None
    array = np.array(weights, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"weights must be one number per column, got an array of shape {array.shape}.")
    bad = np.flatnonzero(~(np.isfinite(array) & (array > 0)))
    if len(bad):
        raise ValueError(
            f"weights must be positive and finite, got {array[bad[0]]} for column {bad[0]}. "
            "A column that may change for free has no closest answer; one that may not change belongs in "
            "Actionable(immutable=...)."
        )
    array.setflags(write=False)
    return array


def _checked_matrix(matrix: npt.ArrayLike | None) -> FloatArray | None:
    if matrix is None:
        return None
    array = np.array(matrix, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ValueError(f"matrix must be square, got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError("matrix must be finite and symmetric.")
    units = np.sqrt(np.abs(np.diagonal(array)))
    units = np.where(units > 0, units, 1.0)
    scaled = array / np.outer(units, units)  # judged free of the columns' units
    if not np.allclose(scaled, scaled.T, rtol=0, atol=1e-10):
        raise ValueError("matrix must be finite and symmetric.")
    array = (array + array.T) / 2
    if not np.linalg.eigvalsh((scaled + scaled.T) / 2)[0] > 1e-14:
        raise ValueError("matrix must be positive definite: a direction that costs nothing has no closest answer.")
    array.setflags(write=False)
    return array


def _weights(weights: FloatArray | None, dim: int) -> FloatArray:
    if weights is None:
        return np.ones(dim)
    if len(weights) != dim:
        raise ValueError(f"The cost has {len(weights)} weights, the data has {dim} columns.")
    return weights


def _difference(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    left = np.asarray(a, dtype=np.float64)
    right = np.asarray(b, dtype=np.float64)
    return np.ascontiguousarray(np.atleast_2d(left - right))


def by_row(table: FloatArray, factor: FloatArray) -> FloatArray:
    """``table @ factor``, or ``table @ factor.T`` for a matrix, in which a row does not depend on the others.

    BLAS rounds a row differently in tables of different length, and the same question gets the same answer in any
    company.
    """
    return np.asarray(np.einsum("ij,j->i" if factor.ndim == 1 else "ij,kj->ik", table, factor))


def _finite_table(X: npt.ArrayLike) -> FloatArray:
    table = np.asarray(X, dtype=np.float64)
    if table.ndim != 2 or len(table) == 0:
        raise ValueError(f"A table of people is needed, one row each; got shape {table.shape}.")
    if not np.isfinite(table).all():
        raise ValueError("The table contains NaN or infinity; drop or impute these rows first.")
    return table
