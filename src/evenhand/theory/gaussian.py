"""Gaussian noise on the inputs of a linear model (rows 3 to 5)."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
import numpy.typing as npt
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import chi2, norm

from evenhand.theory.arguments import at_least, covariance_matrix, finite_number, finite_vector, one_of
from evenhand.theory.boundary import along_boundary, as_long_as, sum_of_squares, trace_along, unit_normal
from evenhand.theory.bounds import boundary_distance
from evenhand.types import FloatArray


def gaussian_mean(w: npt.ArrayLike, covariance: npt.ArrayLike, mean: npt.ArrayLike | None = None) -> float:
    """Mean of D under noise of this covariance: ``tr S - w @ S @ w`` for a unit `w`.

    The noise need not be Gaussian.  A `mean` of the noise adds the square of its part along the boundary.
    """
    normal = unit_normal(w)
    S = covariance_matrix(covariance, len(normal))
    drift = 0.0 if mean is None else float(sum_of_squares(along_boundary(normal) @ as_long_as(normal, mean=mean)))
    return trace_along(normal, S) + drift


def gaussian_mean_with_margin(
    w: npt.ArrayLike, b: float, x: npt.ArrayLike, covariance: npt.ArrayLike, margin: float
) -> float:
    """Mean of D if counterfactuals keep a `margin` from the boundary: who crosses it lands on the other side."""
    normal, S, t, s = _setting(w, b, x, covariance)
    return trace_along(normal, S) + 4 * at_least(0, margin=margin) ** 2 * _crossing(t, s)


def gaussian_mean_target_kept(w: npt.ArrayLike, b: float, x: npt.ArrayLike, covariance: npt.ArrayLike) -> float:
    """Mean of D if the target stays the same: who crosses the boundary is its own counterfactual."""
    normal, S, t, s = _setting(w, b, x, covariance)
    beyond = (t**2 + s**2) * _crossing(t, s) - (t * s * float(norm.pdf(t / s)) if s > 0 else 0.0)
    return trace_along(normal, S) + beyond


def gaussian_variance(w: npt.ArrayLike, covariance: npt.ArrayLike) -> float:
    """Variance of D under Gaussian noise."""
    normal = unit_normal(w)
    product = along_boundary(normal) @ covariance_matrix(covariance, len(normal))
    return float(2 * np.trace(product @ product))


def gaussian_tail(w: npt.ArrayLike, covariance: npt.ArrayLike, delta: float, method: str = "exact") -> float:
    """How probable ``D >= delta`` is under Gaussian noise.

    Parameters
    ----------
    w, covariance, delta
        See the module.
    method : {"exact", "markov"}
        The probability itself, or the bound ``mean / delta``, which is what the paper has.
    """
    normal, threshold = unit_normal(w), at_least(0, strictly=True, delta=delta)
    S = covariance_matrix(covariance, len(normal))
    if one_of("method", method, "exact", "markov") == "markov":
        return min(1.0, trace_along(normal, S) / threshold)
    M = along_boundary(normal)
    weights = np.linalg.eigvalsh(M @ S @ M)
    return imhof(np.where(weights > 1e-14 * np.abs(S).max(), weights, 0.0), threshold)  # one at least is rounding


def imhof(weights: npt.ArrayLike, x: float) -> float:
    """How probable it is that a weighted sum of squares of independent standard normals is at least `x`.

    Imhof's integral oscillates; here it runs through the saddle point along a hyperbola, where it does not.  Small
    probabilities are accurate relatively, not only absolutely.
    """
    given, threshold = finite_vector("weights", weights), finite_number(x=x)
    if (given < 0).any():
        raise ValueError(f"weights must be >= 0, got {given.min()}.")
    lam = given[given > 1e-14 * given.max(initial=0.0)]
    if threshold <= 0 or not len(lam):
        return float(threshold <= 0)
    largest, total, n = float(lam.max()), float(lam.sum()), len(lam)
    if np.ptp(lam) <= 1e-12 * largest:
        return float(chi2.sf(threshold / largest, n))

    def slope(c: float) -> float:
        return threshold - float((lam / (1 + 2 * lam * c)).sum()) - 1 / c

    # Left of the pole at 0 the integral is the upper tail, right of it the lower one: take the smaller.
    upper = threshold > total
    if upper:
        edge = largest / (threshold + 4 * largest)
        saddle = brentq(slope, (edge - 1) / (2 * largest), -1 / (4 * total), xtol=1e-300)
    else:
        saddle = brentq(slope, 1 / threshold, (n / 2 + 1) / threshold, xtol=1e-300)
    sizes = lam / (1 + 2 * lam * saddle)
    step = 1 / sqrt(2 * float((sizes**2).sum()) + 1 / saddle**2)
    # As steep as the descent is at the saddle, but never so flat that the Gaussian part grows again.
    bend = min(max((8 * float((sizes**3).sum()) + 2 / saddle**3) * step**3 / 3, 0.3), 0.8)

    def integrand(v: float) -> float:
        away = sqrt(1 + v * v)
        s = step * complex(bend * (1 - away), v)  # from the saddle, relative to which everything is computed
        exponent = s * threshold - 0.5 * np.log1p(2 * sizes * s).sum() - np.log1p(s / saddle)
        return float((np.exp(exponent) * complex(1, bend * v / away)).real)

    area = quad(integrand, 0, np.inf, epsabs=1e-11, epsrel=1e-10, limit=200)[0]
    peak = saddle * threshold - 0.5 * float(np.log1p(2 * lam * saddle).sum())
    tail = float(np.exp(peak) * step / abs(saddle) * area / pi)
    return min(max(tail if upper else 1 - tail, 0.0), 1.0)


def _setting(
    w: npt.ArrayLike, b: float, x: npt.ArrayLike, covariance: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, float, float]:
    """Unit normal, covariance, distance to the boundary and standard deviation across it."""
    normal = unit_normal(w)
    S = covariance_matrix(covariance, len(normal))
    return normal, S, boundary_distance(w, b, x), sqrt(max(float(normal @ S @ normal), 0.0))


def _crossing(t: float, s: float) -> float:
    """How probable it is that noise of standard deviation s crosses a boundary at distance t."""
    return float(norm.sf(t / s)) if s > 0 else 0.0
