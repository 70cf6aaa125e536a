"""Convex targets, what stands in front of a model, and curvature (rows 11 to 14)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.theory.arguments import at_least, covariance_matrix, finite_matrix, finite_vector
from evenhand.theory.boundary import sum_of_squares
from evenhand.types import FloatArray


def convex_bound(eps: float) -> float:
    """The farthest that a counterfactual moves if its target is one convex set and the cost is l2: `eps` itself."""
    return at_least(0, eps=eps)


def convex_gaussian_bound(covariance: npt.ArrayLike, faces: npt.ArrayLike | None = None) -> float:
    """A bound on the mean of D if the target is one convex set, the cost is l2 and the noise Gaussian.

    Parameters
    ----------
    covariance : array
        One variance for all features, which needs `faces` to know how many there are, one per feature, or a matrix.
    faces : array of shape (n, d, d), optional
        For some perturbed people, the projector onto the directions along which their counterfactuals can slide:
        the face they lie on, or everything inside the set.  The bound is then their mean of ``tr(face @ S)``,
        without them it is ``tr S``.
    """
    if faces is None:
        given = np.asarray(covariance, dtype=np.float64)
        if given.ndim == 0:
            raise ValueError(f"Got one variance, {given}, for an unknown number of features: give one per feature.")
        return float(np.trace(covariance_matrix(given, len(given))))
    projectors = np.asarray(faces, dtype=np.float64)
    if projectors.ndim != 3 or projectors.shape[1] != projectors.shape[2] or not projectors.size:
        raise ValueError(f"faces must be an array of shape (n, d, d), got {projectors.shape}.")
    symmetric = np.allclose(projectors, projectors.transpose(0, 2, 1), rtol=0, atol=1e-8)
    if not symmetric or not np.allclose(projectors @ projectors, projectors, rtol=0, atol=1e-8):
        raise ValueError("faces must be orthogonal projectors, symmetric and equal to their squares; got others.")
    return float(np.sum(projectors.mean(axis=0) * covariance_matrix(covariance, projectors.shape[1])))


def input_normal(w: npt.ArrayLike, matrix: npt.ArrayLike) -> FloatArray:
    """The `w` of a linear model behind ``z = matrix @ (x - m)``, in terms of the inputs x.

    It goes into every function above: behind a PCA from d to k features, the mean of D is still ``d - 1``.
    """
    rows, normal = finite_matrix(matrix), finite_vector("w", w)
    if len(normal) != len(rows):
        raise ValueError(f"w has {len(normal)} entries, matrix has {len(rows)} rows; they must be the same.")
    in_inputs: FloatArray = rows.T @ normal
    return in_inputs


def latent_floor(matrix: npt.ArrayLike, sigma: float = 1.0) -> float:
    """The least that the mean of D can be, whatever is demanded of ``z = matrix @ (x - m)``.

    The noise has covariance ``sigma**2 * I``, the cost is l2, and the rows of `matrix` (k, d) are orthonormal, as in
    a PCA without whitening.
    """
    rows = finite_matrix(matrix)
    if not np.allclose(rows @ rows.T, np.eye(len(rows)), rtol=0, atol=1e-8):
        raise ValueError(
            f"The {len(rows)} rows of matrix must be orthonormal, got rows @ rows.T of distance "
            f"{np.abs(rows @ rows.T - np.eye(len(rows))).max():.2g} to the identity."
        )
    spread = at_least(0, sigma=sigma)
    return float(spread**2 * (rows.shape[1] - len(rows)))


def most_features_moved(matrix: npt.ArrayLike) -> int:
    """How many features some closest counterfactual in l1 changes at most, behind ``z = matrix @ (x - m)``."""
    return int(np.linalg.matrix_rank(finite_matrix(matrix)))


def curved_mean(distance: float, curvatures: npt.ArrayLike, sigma: float) -> float:
    """Mean of D for a smooth convex target, the cost l2 and noise of covariance ``sigma**2 * I``, as sigma goes to 0.

    Parameters
    ----------
    distance : float
        From the person to its counterfactual.
    curvatures : array of shape (d - 1,)
        Principal curvatures of the target at the counterfactual: 0 where it is flat, ``1 / r`` on a ball.
    sigma : float
        Standard deviation of the noise.
    """
    kappa = finite_vector("curvatures", curvatures)
    if (kappa < 0).any():
        raise ValueError(f"The curvatures of a convex set are >= 0, got {kappa.min()}.")
    shrunk = at_least(0, sigma=sigma) / (1 + at_least(0, distance=distance) * kappa)
    return sum_of_squares(shrunk)
