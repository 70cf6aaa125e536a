"""Weighted l2 and l1 costs (rows 9 and 10)."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
import numpy.typing as npt

from evenhand.costs import L2
from evenhand.theory.arguments import covariance_matrix, half_widths, one_of
from evenhand.theory.boundary import changed_feature, sum_of_squares, unit_normal
from evenhand.types import FloatArray


def weighted_mean(w: npt.ArrayLike, covariance: npt.ArrayLike, omega: npt.ArrayLike, measured: str = "l2") -> float:
    """Mean of D if the cost is ``L2(matrix=omega)``, or ``L2(weights=omega)`` for a vector.

    Parameters
    ----------
    w, covariance
        See the module.
    omega : array of shape (d,) or (d, d)
        The cost.
    measured : {"l2", "cost"}
        Whether D is the square of the plain Euclidean distance or of the cost.
    """
    normal = unit_normal(w)
    S, d = covariance_matrix(covariance, len(normal)), len(normal)
    vector = np.ndim(omega) < 2
    frame = (L2(weights=np.asarray(omega)) if vector else L2(matrix=np.asarray(omega))).frame(d, np.arange(d))
    root = np.diag(frame) if frame.ndim == 1 else frame
    u = root @ (root.T @ normal)
    a, crossing = float(normal @ u), float(normal @ S @ normal)
    if one_of("measured", measured, "l2", "cost") == "cost":
        return float(np.trace(np.linalg.inv(root @ root.T) @ S)) - crossing / a
    return float(np.trace(S) - 2 * normal @ S @ u / a + sum_of_squares(u) * crossing / a**2)


def l1_gaussian_mean(w: npt.ArrayLike, covariance: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """Mean l1 distance between the counterfactuals under Gaussian noise, if the cost is ``L1(weights)``.

    One feature only changes, the one with the largest ``|w| / weights``.  Here and below it has to be unique.
    """
    normal = unit_normal(w)
    S, j = covariance_matrix(covariance, len(normal)), changed_feature(normal, weights)
    others = np.delete(normal, j)
    S_others = np.delete(np.delete(S, j, 0), j, 1)
    moved = np.sqrt(max(float(others @ S_others @ others), 0.0)) / abs(normal[j])
    return float(sqrt(2 / pi) * (np.sqrt(np.diagonal(S_others)).sum() + moved))


def l1_uniform_mean(w: npt.ArrayLike, radius: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """Mean l1 distance between the counterfactuals under uniform noise, if the cost is ``L1(weights)``."""
    normal = unit_normal(w)
    j = changed_feature(normal, weights)
    others = np.delete(half_widths(radius, len(normal)), j)
    return float(others.sum()) / 2 + _mean_absolute_sum(np.abs(np.delete(normal, j) / normal[j]) * others)


def _mean_absolute_sum(sizes: FloatArray) -> float:
    """Mean of ``|sum(sizes * U)|`` for independent U, uniform on [-1, 1]."""
    a = np.sort(sizes[sizes > 0])[::-1]
    if not len(a):
        return 0.0
    if a[1:].sum() <= a[0]:  # the others never outweigh the largest: a polynomial, and the integral decays slowly
        return float(a[0] / 2 + sum_of_squares(a[1:]) / (6 * a[0]))
    unit, a = float(a[0]), a / a[0]
    end = 16.0
    while np.prod(np.minimum(1.0, 1 / (a * end))) / end > 1e-11:
        end *= 2
    nodes, masses = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(0, end, int(end * a.sum() / (2 * pi)) + 2)  # less than one oscillation each
    half = (edges[1] - edges[0]) / 2
    t = edges[:-1, None] + half * (1 + nodes)
    characteristic = np.ones_like(t)
    for size in a:
        characteristic *= np.sinc(size * t / pi)
    area = half * float((((1 - characteristic) / t**2) @ masses).sum()) + 1 / end
    return float(unit * 2 / pi * area)
