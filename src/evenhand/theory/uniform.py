"""Uniform noise on the inputs of a linear model (rows 6 and 7)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.theory.arguments import at_least, half_widths, one_of
from evenhand.theory.boundary import along_boundary, sum_of_squares, unit_normal

MOST_SIGNS = 22  # all signs of more features would take too long


def uniform_mean(w: npt.ArrayLike, radius: npt.ArrayLike) -> float:
    """Mean of D under uniform noise: ``radius**2 * (d - 1) / 3`` if all radii are the same."""
    normal = unit_normal(w)
    return float(half_widths(radius, len(normal)) ** 2 @ (1 - normal**2)) / 3


def uniform_variance(w: npt.ArrayLike, radius: npt.ArrayLike) -> float:
    """Variance of D under uniform noise."""
    normal = unit_normal(w)
    squares, M = half_widths(radius, len(normal)) ** 2, along_boundary(normal)
    return float(2 / 9 * squares @ M**2 @ squares - 2 / 15 * np.diagonal(M) ** 2 @ squares**2)


def uniform_largest(w: npt.ArrayLike, radius: npt.ArrayLike) -> float:
    """The largest D that uniform noise can reach: the corner of the box that is most along the boundary."""
    normal = unit_normal(w)
    radii = half_widths(radius, len(normal))
    across = np.abs(normal * radii)
    across = across[across > 0]
    if len(across) > MOST_SIGNS:
        raise ValueError(
            f"The largest D needs all signs of the {len(across)} features with noise and weight; possible are "
            f"{MOST_SIGNS}. sum(radius**2) is always at least as large."
        )
    sums = np.zeros(1)
    for i, size in enumerate(across):  # the first sign can stay: only the absolute value of the sum counts
        sums = np.concatenate([sums + size, sums - size]) if i else sums + size
    return float(sum_of_squares(radii) - np.abs(sums).min() ** 2)


def uniform_tail(w: npt.ArrayLike, radius: npt.ArrayLike, delta: float, method: str = "markov") -> float:
    """A bound on how probable ``D >= delta`` is under uniform noise.

    Parameters
    ----------
    w, radius, delta
        See the module.
    method : {"markov", "cantelli"}
        From the mean only, or from mean and variance.  Cantelli's says nothing (1) below the mean, and is the
        smaller one far above it.
    """
    mean, threshold = uniform_mean(w, radius), at_least(0, strictly=True, delta=delta)
    if one_of("method", method, "markov", "cantelli") == "markov":
        return min(1.0, mean / threshold)
    if threshold <= mean:
        return 1.0
    variance = uniform_variance(w, radius)
    return variance / (variance + (threshold - mean) ** 2)


def _printed_uniform_tail(w: npt.ArrayLike, radius: float, delta: float) -> float:
    """The bound that the paper prints.  It is FALSE: `delta` belongs below the line, see :func:`uniform_tail`."""
    return delta * radius**2 * (len(unit_normal(w)) - 1) / 3
