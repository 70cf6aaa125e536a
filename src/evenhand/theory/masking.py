"""Masked features of a linear model (row 8, and the l1 part of row 10)."""

from __future__ import annotations

from itertools import chain, combinations
from math import comb

import numpy as np
import numpy.typing as npt

from evenhand.theory.arguments import feature_count
from evenhand.theory.boundary import changed_feature, masked_away, sum_of_squares, unit_normal

MOST_SUBSETS = 200_000  # more would not fit into memory


def masking_mean(w: npt.ArrayLike, x: npt.ArrayLike, k: int, baseline: npt.ArrayLike = 0.0) -> float:
    """Mean of D if `k` features of `x`, chosen at random, are set to the `baseline`."""
    normal = unit_normal(w)
    z, d = masked_away(normal, x, baseline), len(normal)
    share = feature_count(k, d) / d
    pair = k * (k - 1) / (d * (d - 1)) if d > 1 else 0.0
    weighted = normal * z
    return float(share * (z**2 @ (1 - normal**2)) - pair * (weighted.sum() ** 2 - sum_of_squares(weighted)))


def l1_masking_mean(
    w: npt.ArrayLike, x: npt.ArrayLike, k: int, weights: npt.ArrayLike | None = None, baseline: npt.ArrayLike = 0.0
) -> float:
    """Mean l1 distance between the counterfactuals if `k` features are masked and the cost is ``L1(weights)``."""
    normal = unit_normal(w)
    z, d, j = masked_away(normal, x, baseline), len(normal), changed_feature(normal, weights)
    outcomes = comb(d, feature_count(k, d))
    if outcomes > MOST_SUBSETS:
        raise ValueError(
            f"Masking {k} of {d} features has {outcomes} outcomes; possible are {MOST_SUBSETS}. Simulate instead: "
            "average over some thousand random choices of features."
        )
    z[j] = 0.0  # the noise of the feature that moves is taken back by its move
    subsets = np.fromiter(chain.from_iterable(combinations(range(d), k)), dtype=np.intp).reshape(outcomes, k)
    moved = np.abs((normal * z / normal[j])[subsets].sum(axis=1))
    return float(k / d * np.abs(z).sum() + moved.mean())
