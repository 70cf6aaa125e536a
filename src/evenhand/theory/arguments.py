"""What the arguments of the theorems have to be."""

from __future__ import annotations

from numbers import Integral

import numpy as np
import numpy.typing as npt

from evenhand.types import FloatArray

ROUNDING = 1e-9  # numbers closer than this, relatively, count as equal


def finite_number(**named: float) -> float:
    """One finite number, given by its name."""
    ((name, value),) = named.items()
    if np.ndim(value) or not np.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value}.")
    return float(value)


def at_least(low: float, *, strictly: bool = False, **named: float) -> float:
    """One number that is not below `low`, given by its name."""
    ((name, value),) = named.items()
    if np.ndim(value) or not np.isfinite(value) or value < low or (strictly and value == low):
        raise ValueError(f"{name} must be a number {'>' if strictly else '>='} {low}, got {value}.")
    return float(value)


def one_of(name: str, value: str, *choices: str) -> str:
    """One of some words."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}.")
    return value


def feature_count(k: int, d: int) -> int:
    """How many of `d` features."""
    if not isinstance(k, Integral) or not 0 <= k <= d:
        raise ValueError(f"k must be a whole number from 0 to {d}, the number of features, got {k}.")
    return int(k)


def finite_vector(name: str, values: npt.ArrayLike) -> FloatArray:
    """A vector of finite numbers."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be a vector of finite numbers, got {array} of shape {array.shape}.")
    return array


def per_feature(name: str, values: npt.ArrayLike, d: int) -> FloatArray:
    """One number for each of `d` features, or the same for all."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape not in {(), (d,)} or not np.isfinite(array).all():
        raise ValueError(f"{name} must be one finite number or {d}, one per feature, got {array}.")
    return np.broadcast_to(array, d)


def half_widths(radius: npt.ArrayLike, d: int) -> FloatArray:
    """How far uniform noise moves each of `d` features."""
    radii = per_feature("radius", radius, d)
    if (radii < 0).any():
        raise ValueError(f"radius must be >= 0, got {radii.min()}.")
    return radii


def covariance_matrix(covariance: npt.ArrayLike, d: int) -> FloatArray:
    """The covariance as a matrix, from one variance, one per feature, or a matrix."""
    given = np.asarray(covariance, dtype=np.float64)
    if given.shape not in {(), (d,), (d, d)} or not np.isfinite(given).all():
        raise ValueError(
            f"covariance must be finite, and one variance, {d} variances or a {d} x {d} matrix; "
            f"got shape {given.shape}."
        )
    matrix = given if given.ndim == 2 else np.diag(np.broadcast_to(given, d))
    size = float(np.abs(matrix).max())
    if not np.allclose(matrix, matrix.T, rtol=0, atol=ROUNDING * size):
        raise ValueError(
            "covariance must be symmetric; got a matrix that is not. Where only rounding is wrong, (S + S.T) / 2 is."
        )
    least = float(np.linalg.eigvalsh(matrix)[0])
    if least < -ROUNDING * size:
        raise ValueError(f"covariance must have no negative eigenvalue (or variance), got {least:.3g}.")
    return (matrix + matrix.T) / 2


def finite_matrix(matrix: npt.ArrayLike) -> FloatArray:
    """A matrix of finite numbers with at least one entry."""
    rows = np.asarray(matrix, dtype=np.float64)
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise ValueError(f"matrix must be finite and have shape (k, d), got shape {rows.shape}.")
    return rows


def dual_order(p: float) -> float:
    """The q with ``1 / p + 1 / q == 1``."""
    if np.isnan(p) or p < 1:
        raise ValueError(f"p must be a number from 1 to infinity, got {p}.")
    if p == 1:
        return np.inf
    return 1.0 if p == np.inf else float(p / (p - 1))
