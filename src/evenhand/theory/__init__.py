r"""How far a counterfactual moves when the person moves a little: what is proven.

The model says :math:`\mathrm{sign}(w \cdot x + b)` unless a row says otherwise, and the perturbed person gets a
counterfactual towards the other label than its own: one that crosses the boundary is explained back to where the
original person was.  :math:`D` is the squared Euclidean distance between the two counterfactuals.

*paper* is Artelt et al., "Evaluating Robustness of Counterfactual Explanations" (2021); *corrected* is stated there
and wrong as printed; *new* is not stated there.

====  ===================================================================  =========================
row   function                                                             status
====  ===================================================================  =========================
1     :func:`movement_bound`                                               paper, proof patched
1b    :func:`movement_bound` with ``plausible=True``                       new
2     :func:`boundary_distance`, :func:`linear_bound`,                     corrected
      :func:`unique_minimiser_bound`
3, 4  :func:`gaussian_mean`                                                paper, generalised
3b    :func:`gaussian_mean_with_margin`                                    new
3c    :func:`gaussian_mean_target_kept`                                    new
5     :func:`gaussian_variance`, :func:`gaussian_tail`, :func:`imhof`      paper, sharpened
6     :func:`uniform_mean`                                                 paper
7     :func:`uniform_tail`, :func:`uniform_variance`,                      corrected
      :func:`uniform_largest`
8     :func:`masking_mean`                                                 new
9     :func:`weighted_mean`                                                new
10    :func:`l1_gaussian_mean`, :func:`l1_uniform_mean`,                   new
      :func:`l1_masking_mean`
11    :func:`convex_bound`                                                 new
12    :func:`convex_gaussian_bound`                                        new
13    :func:`input_normal`, :func:`latent_floor`,                          new
      :func:`most_features_moved`
14    :func:`curved_mean`                                                  new
====  ===================================================================  =========================

Arguments mean the same everywhere.  `w` and `b` need not be normalised.  A `covariance` is one variance for all
features, one per feature, or a matrix.  A `radius` is the half-width of uniform noise, one for all features or one per
feature.  `eps` is the largest distance between the two people, `x` the original person, `delta` a threshold for `D`.

Examples
--------
Standard normal noise on four features moves the counterfactual by ``4 - 1`` on average:

>>> gaussian_mean([1.0, -2.0, 0.0, 3.0], 1.0)
3.0
>>> round(gaussian_tail([1.0, -2.0, 0.0, 3.0], 1.0, delta=9.0), 4)
0.0293
>>> gaussian_tail([1.0, -2.0, 0.0, 3.0], 1.0, delta=9.0, method="markov")
0.3333333333333333
"""

from __future__ import annotations

from evenhand.theory.arguments import ROUNDING
from evenhand.theory.bounds import boundary_distance, linear_bound, movement_bound, unique_minimiser_bound
from evenhand.theory.convex import (
    convex_bound,
    convex_gaussian_bound,
    curved_mean,
    input_normal,
    latent_floor,
    most_features_moved,
)
from evenhand.theory.gaussian import (
    gaussian_mean,
    gaussian_mean_target_kept,
    gaussian_mean_with_margin,
    gaussian_tail,
    gaussian_variance,
    imhof,
)
from evenhand.theory.masking import MOST_SUBSETS, l1_masking_mean, masking_mean
from evenhand.theory.uniform import MOST_SIGNS, uniform_largest, uniform_mean, uniform_tail, uniform_variance
from evenhand.theory.weighted import l1_gaussian_mean, l1_uniform_mean, weighted_mean

__all__ = [
    "MOST_SIGNS",
    "MOST_SUBSETS",
    "ROUNDING",
    "boundary_distance",
    "convex_bound",
    "convex_gaussian_bound",
    "curved_mean",
    "gaussian_mean",
    "gaussian_mean_target_kept",
    "gaussian_mean_with_margin",
    "gaussian_tail",
    "gaussian_variance",
    "imhof",
    "input_normal",
    "l1_gaussian_mean",
    "l1_masking_mean",
    "l1_uniform_mean",
    "latent_floor",
    "linear_bound",
    "masking_mean",
    "most_features_moved",
    "movement_bound",
    "uniform_largest",
    "uniform_mean",
    "uniform_tail",
    "uniform_variance",
    "unique_minimiser_bound",
    "weighted_mean",
]
