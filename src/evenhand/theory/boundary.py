"""The boundary of a linear model: its normal, and what lies along it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.costs import L1
from evenhand.theory.arguments import ROUNDING, finite_vector, per_feature
from evenhand.types import FloatArray


def nonzero_normal(w: npt.ArrayLike) -> FloatArray:
    """The weights of a linear model that has a boundary."""
    normal = finite_vector("w", w)
    if not normal.any():
        raise ValueError(f"w must have an entry that is not 0, got {normal}: the model has no boundary.")
    return normal


def unit_normal(w: npt.ArrayLike) -> FloatArray:
    """The weights of a linear model, scaled to length 1."""
    normal = nonzero_normal(w)
    scaled = normal / np.abs(normal).max()  # squares of very small or large numbers would not be finite
    unit: FloatArray = scaled / np.linalg.norm(scaled)
    return unit


def as_long_as(normal: FloatArray, **named: npt.ArrayLike) -> FloatArray:
    """A vector with one entry per feature, given by its name."""
    ((name, values),) = named.items()
    array = finite_vector(name, values)
    if len(array) != len(normal):
        raise ValueError(f"{name} has {len(array)} entries, w has {len(normal)}; they must be the same.")
    return array


def along_boundary(normal: FloatArray) -> FloatArray:
    """Projector onto the directions along the boundary."""
    projector: FloatArray = np.eye(len(normal)) - np.outer(normal, normal)
    return projector


def trace_along(normal: FloatArray, S: FloatArray) -> float:
    """The variance along the boundary, over all directions."""
    return float(np.trace(S) - normal @ S @ normal)


def sum_of_squares(vector: FloatArray) -> float:
    """The squared Euclidean length."""
    return float(vector @ vector)


def changed_feature(normal: FloatArray, weights: npt.ArrayLike | None) -> int:
    """The feature that an l1 cost changes."""
    d = len(normal)
    gains = np.abs(normal) * L1(weights=None if weights is None else np.asarray(weights)).frame(d, np.arange(d))
    best = np.flatnonzero(gains >= (1 - ROUNDING) * gains.max())
    if len(best) > 1:
        raise ValueError(
            f"Features {best.tolist()} all have the largest |w| / weight, so that the closest point in l1 is not "
            "unique. Possible is a w with one largest; linear_bound covers ties too."
        )
    return int(best[0])


def masked_away(normal: FloatArray, x: npt.ArrayLike, baseline: npt.ArrayLike) -> FloatArray:
    """What masking takes from each feature."""
    lost: FloatArray = as_long_as(normal, x=x) - per_feature("baseline", baseline, len(normal))
    return lost
