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

from itertools import chain, combinations
from math import comb, pi, sqrt
from numbers import Integral

import numpy as np
import numpy.typing as npt
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import chi2, norm

from evenhand.costs import L1, L2
from evenhand.types import FloatArray

ROUNDING = 1e-9  # numbers closer than this, relatively, count as equal
MOST_SIGNS = 22
MOST_SUBSETS = 200_000


# Any model, and binary linear models in any norm (rows 1 and 2)


def movement_bound(cost: float, eps: float, *, swapped: bool = False, plausible: bool = False) -> float:
    """The farthest that a counterfactual moves, for any model and any norm.

    Parameters
    ----------
    cost : float
        Distance from the original person to its counterfactual.
    eps : float
        Distance between the two people, in the same norm.
    swapped : bool
        Whether the perturbed person got another prediction, and so the original's label as its target.  If so,
        the original person is feasible, and the bound is sharper.  That takes closest counterfactuals without a
        margin or limits on what may change; then the bound without a swap covers both cases.
    plausible : bool
        Whether the counterfactuals have to be plausible too.  The original person need not be, so that no
        such bound holds after a swap.
    """
    near, step = _at_least(0, cost=cost), _at_least(0, eps=eps)
    if swapped and plausible:
        raise ValueError(
            "Got swapped=True and plausible=True: no bound holds, because the original person need not be plausible. "
            "Bounded are plausible counterfactuals towards the same target, and closest ones in any case."
        )
    return near + 2 * step if swapped else 2 * step + 2 * near


def boundary_distance(w: npt.ArrayLike, b: float, x: npt.ArrayLike, p: float = 2) -> float:
    """Distance of `x` to the boundary in the p-norm: ``|w @ x + b|`` over the *dual* norm of `w`."""
    normal = _normal(w)
    return abs(float(normal @ _like(normal, x=x)) + _number(b=b)) / float(np.linalg.norm(normal, _dual(p)))


def linear_bound(w: npt.ArrayLike, b: float, x: npt.ArrayLike, eps: float, p: float = 2) -> float:
    """:func:`movement_bound` of a binary linear model, also where several counterfactuals are equally close."""
    return movement_bound(boundary_distance(w, b, x, p), eps)


def unique_minimiser_bound(w: npt.ArrayLike, eps: float, p: float = 2) -> float:
    """The farthest that the counterfactual of a binary linear model moves, where there is only one closest.

    ``eps`` for p = 2, ``(1 + second / first) * eps`` for p = 1, with the two largest ``|w|``, and ``2 * eps`` for
    every other p.  The first two are attained.
    """
    normal, step, dual = _normal(w), _at_least(0, eps=eps), _dual(p)
    if dual == np.inf:
        first = _mover(normal, None)
        return float(1 + np.delete(np.abs(normal), first).max(initial=0.0) / abs(normal[first])) * step
    if dual == 1 and not normal.all():
        raise ValueError(
            f"w is 0 for feature {np.flatnonzero(normal == 0)[0]}, so that with p = inf many points are equally close. "
            "Use linear_bound, or a w without zeros."
        )
    return step if dual == 2 else 2 * step


# Gaussian noise (rows 3 to 5)


def gaussian_mean(w: npt.ArrayLike, covariance: npt.ArrayLike, mean: npt.ArrayLike | None = None) -> float:
    """Mean of D under noise of this covariance: ``tr S - w @ S @ w`` for a unit `w`.

    The noise need not be Gaussian.  A `mean` of the noise adds the square of its part along the boundary.
    """
    normal = _unit(w)
    S = _covariance(covariance, len(normal))
    drift = 0.0 if mean is None else float(_squares(_along(normal) @ _like(normal, mean=mean)))
    return _trace_along(normal, S) + drift


def gaussian_mean_with_margin(
    w: npt.ArrayLike, b: float, x: npt.ArrayLike, covariance: npt.ArrayLike, margin: float
) -> float:
    """Mean of D if counterfactuals keep a `margin` from the boundary: who crosses it lands on the other side."""
    normal, S, t, s = _setting(w, b, x, covariance)
    return _trace_along(normal, S) + 4 * _at_least(0, margin=margin) ** 2 * _crossing(t, s)


def gaussian_mean_target_kept(w: npt.ArrayLike, b: float, x: npt.ArrayLike, covariance: npt.ArrayLike) -> float:
    """Mean of D if the target stays the same: who crosses the boundary is its own counterfactual."""
    normal, S, t, s = _setting(w, b, x, covariance)
    beyond = (t**2 + s**2) * _crossing(t, s) - (t * s * float(norm.pdf(t / s)) if s > 0 else 0.0)
    return _trace_along(normal, S) + beyond


def gaussian_variance(w: npt.ArrayLike, covariance: npt.ArrayLike) -> float:
    """Variance of D under Gaussian noise."""
    normal = _unit(w)
    product = _along(normal) @ _covariance(covariance, len(normal))
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
    normal, threshold = _unit(w), _at_least(0, strictly=True, delta=delta)
    S = _covariance(covariance, len(normal))
    if _one_of("method", method, "exact", "markov") == "markov":
        return min(1.0, _trace_along(normal, S) / threshold)
    M = _along(normal)
    weights = np.linalg.eigvalsh(M @ S @ M)
    return imhof(np.where(weights > 1e-14 * np.abs(S).max(), weights, 0.0), threshold)  # one at least is rounding


def imhof(weights: npt.ArrayLike, x: float) -> float:
    """How probable it is that a weighted sum of squares of independent standard normals is at least `x`.

    Imhof's integral oscillates; here it runs through the saddle point along a hyperbola, where it does not.  Small
    probabilities are accurate relatively, not only absolutely.
    """
    given, threshold = _vector("weights", weights), _number(x=x)
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


# Uniform noise and masked features (rows 6 to 8)


def uniform_mean(w: npt.ArrayLike, radius: npt.ArrayLike) -> float:
    """Mean of D under uniform noise: ``radius**2 * (d - 1) / 3`` if all radii are the same."""
    normal = _unit(w)
    return float(_radii(radius, len(normal)) ** 2 @ (1 - normal**2)) / 3


def uniform_variance(w: npt.ArrayLike, radius: npt.ArrayLike) -> float:
    """Variance of D under uniform noise."""
    normal = _unit(w)
    squares, M = _radii(radius, len(normal)) ** 2, _along(normal)
    return float(2 / 9 * squares @ M**2 @ squares - 2 / 15 * np.diagonal(M) ** 2 @ squares**2)


def uniform_largest(w: npt.ArrayLike, radius: npt.ArrayLike) -> float:
    """The largest D that uniform noise can reach: the corner of the box that is most along the boundary."""
    normal = _unit(w)
    radii = _radii(radius, len(normal))
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
    return float(_squares(radii) - np.abs(sums).min() ** 2)


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
    mean, threshold = uniform_mean(w, radius), _at_least(0, strictly=True, delta=delta)
    if _one_of("method", method, "markov", "cantelli") == "markov":
        return min(1.0, mean / threshold)
    if threshold <= mean:
        return 1.0
    variance = uniform_variance(w, radius)
    return variance / (variance + (threshold - mean) ** 2)


def _printed_uniform_tail(w: npt.ArrayLike, radius: float, delta: float) -> float:
    """The bound that the paper prints.  It is FALSE: `delta` belongs below the line, see :func:`uniform_tail`."""
    return delta * radius**2 * (len(_unit(w)) - 1) / 3


def masking_mean(w: npt.ArrayLike, x: npt.ArrayLike, k: int, baseline: npt.ArrayLike = 0.0) -> float:
    """Mean of D if `k` features of `x`, chosen at random, are set to the `baseline`."""
    normal = _unit(w)
    z, d = _lost(normal, x, baseline), len(normal)
    share = _count(k, d) / d
    pair = k * (k - 1) / (d * (d - 1)) if d > 1 else 0.0
    weighted = normal * z
    return float(share * (z**2 @ (1 - normal**2)) - pair * (weighted.sum() ** 2 - _squares(weighted)))


# Other costs (rows 9 and 10)


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
    normal = _unit(w)
    S, d = _covariance(covariance, len(normal)), len(normal)
    vector = np.ndim(omega) < 2
    frame = (L2(weights=np.asarray(omega)) if vector else L2(matrix=np.asarray(omega))).frame(d, np.arange(d))
    root = np.diag(frame) if frame.ndim == 1 else frame
    u = root @ (root.T @ normal)
    a, crossing = float(normal @ u), float(normal @ S @ normal)
    if _one_of("measured", measured, "l2", "cost") == "cost":
        return float(np.trace(np.linalg.inv(root @ root.T) @ S)) - crossing / a
    return float(np.trace(S) - 2 * normal @ S @ u / a + _squares(u) * crossing / a**2)


def l1_gaussian_mean(w: npt.ArrayLike, covariance: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """Mean l1 distance between the counterfactuals under Gaussian noise, if the cost is ``L1(weights)``.

    One feature only changes, the one with the largest ``|w| / weights``.  Here and below it has to be unique.
    """
    normal = _unit(w)
    S, j = _covariance(covariance, len(normal)), _mover(normal, weights)
    others = np.delete(normal, j)
    S_others = np.delete(np.delete(S, j, 0), j, 1)
    moved = np.sqrt(max(float(others @ S_others @ others), 0.0)) / abs(normal[j])
    return float(sqrt(2 / pi) * (np.sqrt(np.diagonal(S_others)).sum() + moved))


def l1_uniform_mean(w: npt.ArrayLike, radius: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    """Mean l1 distance between the counterfactuals under uniform noise, if the cost is ``L1(weights)``."""
    normal = _unit(w)
    j = _mover(normal, weights)
    others = np.delete(_radii(radius, len(normal)), j)
    return float(others.sum()) / 2 + _mean_absolute_sum(np.abs(np.delete(normal, j) / normal[j]) * others)


def l1_masking_mean(
    w: npt.ArrayLike, x: npt.ArrayLike, k: int, weights: npt.ArrayLike | None = None, baseline: npt.ArrayLike = 0.0
) -> float:
    """Mean l1 distance between the counterfactuals if `k` features are masked and the cost is ``L1(weights)``."""
    normal = _unit(w)
    z, d, j = _lost(normal, x, baseline), len(normal), _mover(normal, weights)
    outcomes = comb(d, _count(k, d))
    if outcomes > MOST_SUBSETS:
        raise ValueError(
            f"Masking {k} of {d} features has {outcomes} outcomes; possible are {MOST_SUBSETS}. Simulate instead: "
            "average over some thousand random choices of features."
        )
    z[j] = 0.0  # the noise of the feature that moves is taken back by its move
    subsets = np.fromiter(chain.from_iterable(combinations(range(d), k)), dtype=np.intp).reshape(outcomes, k)
    moved = np.abs((normal * z / normal[j])[subsets].sum(axis=1))
    return float(k / d * np.abs(z).sum() + moved.mean())


def _mean_absolute_sum(sizes: FloatArray) -> float:
    """Mean of ``|sum(sizes * U)|`` for independent U, uniform on [-1, 1]."""
    a = np.sort(sizes[sizes > 0])[::-1]
    if not len(a):
        return 0.0
    if a[1:].sum() <= a[0]:  # the others never outweigh the largest: a polynomial, and the integral decays slowly
        return float(a[0] / 2 + _squares(a[1:]) / (6 * a[0]))
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


# Convex targets, preprocessing and curvature (rows 11 to 14)


def convex_bound(eps: float) -> float:
    """The farthest that a counterfactual moves if its target is one convex set and the cost is l2: `eps` itself."""
    return _at_least(0, eps=eps)


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
        return float(np.trace(_covariance(given, len(given))))
    projectors = np.asarray(faces, dtype=np.float64)
    if projectors.ndim != 3 or projectors.shape[1] != projectors.shape[2] or not projectors.size:
        raise ValueError(f"faces must be an array of shape (n, d, d), got {projectors.shape}.")
    symmetric = np.allclose(projectors, projectors.transpose(0, 2, 1), rtol=0, atol=1e-8)
    if not symmetric or not np.allclose(projectors @ projectors, projectors, rtol=0, atol=1e-8):
        raise ValueError("faces must be orthogonal projectors, symmetric and equal to their squares; got others.")
    return float(np.sum(projectors.mean(axis=0) * _covariance(covariance, projectors.shape[1])))


def input_normal(w: npt.ArrayLike, matrix: npt.ArrayLike) -> FloatArray:
    """The `w` of a linear model behind ``z = matrix @ (x - m)``, in terms of the inputs x.

    It goes into every function above: behind a PCA from d to k features, the mean of D is still ``d - 1``.
    """
    rows, normal = _matrix(matrix), _vector("w", w)
    if len(normal) != len(rows):
        raise ValueError(f"w has {len(normal)} entries, matrix has {len(rows)} rows; they must be the same.")
    seen: FloatArray = rows.T @ normal
    return seen


def latent_floor(matrix: npt.ArrayLike, sigma: float = 1.0) -> float:
    """The least that the mean of D can be, whatever is demanded of ``z = matrix @ (x - m)``.

    The noise has covariance ``sigma**2 * I``, the cost is l2, and the rows of `matrix` (k, d) are orthonormal, as in
    a PCA without whitening.
    """
    rows = _matrix(matrix)
    if not np.allclose(rows @ rows.T, np.eye(len(rows)), rtol=0, atol=1e-8):
        raise ValueError(
            f"The {len(rows)} rows of matrix must be orthonormal, got rows @ rows.T of distance "
            f"{np.abs(rows @ rows.T - np.eye(len(rows))).max():.2g} to the identity."
        )
    spread = _at_least(0, sigma=sigma)
    return float(spread**2 * (rows.shape[1] - len(rows)))


def most_features_moved(matrix: npt.ArrayLike) -> int:
    """How many features some closest counterfactual in l1 changes at most, behind ``z = matrix @ (x - m)``."""
    return int(np.linalg.matrix_rank(_matrix(matrix)))


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
    kappa = _vector("curvatures", curvatures)
    if (kappa < 0).any():
        raise ValueError(f"The curvatures of a convex set are >= 0, got {kappa.min()}.")
    shrunk = _at_least(0, sigma=sigma) / (1 + _at_least(0, distance=distance) * kappa)
    return _squares(shrunk)


# Arguments


def _number(**named: float) -> float:
    ((name, value),) = named.items()
    if np.ndim(value) or not np.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value}.")
    return float(value)


def _at_least(low: float, *, strictly: bool = False, **named: float) -> float:
    ((name, value),) = named.items()
    if np.ndim(value) or not np.isfinite(value) or value < low or (strictly and value == low):
        raise ValueError(f"{name} must be a number {'>' if strictly else '>='} {low}, got {value}.")
    return float(value)


def _one_of(name: str, value: str, *choices: str) -> str:
    if value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}.")
    return value


def _count(k: int, d: int) -> int:
    if not isinstance(k, Integral) or not 0 <= k <= d:
        raise ValueError(f"k must be a whole number from 0 to {d}, the number of features, got {k}.")
    return int(k)


def _vector(name: str, values: npt.ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be a vector of finite numbers, got {array} of shape {array.shape}.")
    return array


def _normal(w: npt.ArrayLike) -> FloatArray:
    normal = _vector("w", w)
    if not normal.any():
        raise ValueError(f"w must have an entry that is not 0, got {normal}: the model has no boundary.")
    return normal


def _unit(w: npt.ArrayLike) -> FloatArray:
    normal = _normal(w)
    scaled = normal / np.abs(normal).max()  # squares of very small or large numbers would not be finite
    unit: FloatArray = scaled / np.linalg.norm(scaled)
    return unit


def _like(normal: FloatArray, **named: npt.ArrayLike) -> FloatArray:
    ((name, values),) = named.items()
    array = _vector(name, values)
    if len(array) != len(normal):
        raise ValueError(f"{name} has {len(array)} entries, w has {len(normal)}; they must be the same.")
    return array


def _per_feature(name: str, values: npt.ArrayLike, d: int) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape not in {(), (d,)} or not np.isfinite(array).all():
        raise ValueError(f"{name} must be one finite number or {d}, one per feature, got {array}.")
    return np.broadcast_to(array, d)


def _radii(radius: npt.ArrayLike, d: int) -> FloatArray:
    radii = _per_feature("radius", radius, d)
    if (radii < 0).any():
        raise ValueError(f"radius must be >= 0, got {radii.min()}.")
    return radii


def _covariance(covariance: npt.ArrayLike, d: int) -> FloatArray:
    given = np.asarray(covariance, dtype=np.float64)
    if given.shape not in {(), (d,), (d, d)} or not np.isfinite(given).all():
        raise ValueError(
            f"covariance must be finite, and one variance, {d} variances or a {d} x {d} matrix; "
            f"got shape {given.shape}."
        )
    matrix = given if given.ndim == 2 else np.diag(np.broadcast_to(given, d))
    size = float(np.abs(matrix).max())
    if not np.allclose(matrix, matrix.T, rtol=0, atol=ROUNDING * size):
        raise ValueError("covariance must be symmetric; got a matrix that is not.")
    least = float(np.linalg.eigvalsh(matrix)[0])
    if least < -ROUNDING * size:
        raise ValueError(f"covariance must have no negative eigenvalue (or variance), got {least:.3g}.")
    return (matrix + matrix.T) / 2


def _matrix(matrix: npt.ArrayLike) -> FloatArray:
    rows = np.asarray(matrix, dtype=np.float64)
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise ValueError(f"matrix must be finite and have shape (k, d), got shape {rows.shape}.")
    return rows


def _dual(p: float) -> float:
    if np.isnan(p) or p < 1:
        raise ValueError(f"p must be a number from 1 to infinity, got {p}.")
    if p == 1:
        return np.inf
    return 1.0 if p == np.inf else float(p / (p - 1))


def _mover(normal: FloatArray, weights: npt.ArrayLike | None) -> int:
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


def _lost(normal: FloatArray, x: npt.ArrayLike, baseline: npt.ArrayLike) -> FloatArray:
    """What masking takes from each feature."""
    lost: FloatArray = _like(normal, x=x) - _per_feature("baseline", baseline, len(normal))
    return lost


def _setting(
    w: npt.ArrayLike, b: float, x: npt.ArrayLike, covariance: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, float, float]:
    """Unit normal, covariance, distance to the boundary and standard deviation across it."""
    normal = _unit(w)
    S = _covariance(covariance, len(normal))
    return normal, S, boundary_distance(w, b, x), sqrt(max(float(normal @ S @ normal), 0.0))


def _crossing(t: float, s: float) -> float:
    """How probable it is that noise of standard deviation s crosses a boundary at distance t."""
    return float(norm.sf(t / s)) if s > 0 else 0.0


def _along(normal: FloatArray) -> FloatArray:
    """Projector onto the directions along the boundary."""
    projector: FloatArray = np.eye(len(normal)) - np.outer(normal, normal)
    return projector


def _trace_along(normal: FloatArray, S: FloatArray) -> float:
    return float(np.trace(S) - normal @ S @ normal)


def _squares(vector: FloatArray) -> float:
    return float(vector @ vector)
