r"""What estimators of learning vector quantization share: the cost, its minimisation, and the nearest prototype.

Both estimators minimise the cost of Sato and Yamada (1996), the mean over the samples of

.. math:: \mu(x) = \frac{d_+(x) - d_-(x)}{d_+(x) + d_-(x)},

where :math:`d_+` is the squared distance to the nearest prototype of the sample's own class and
:math:`d_-` that to the nearest prototype of any other class.  GLVQ measures with the Euclidean metric, GMLVQ learns
one global linear map besides (Schneider, Biehl and Hammer, 2009).
"""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand.types import FloatArray

if TYPE_CHECKING:
    from typing import Self

IntArray: TypeAlias = npt.NDArray[np.intp]

# In units of the data, squared distances below this are rounding error: the sample sits on two prototypes.
_ZERO = 1e-30
# So far out (in units of the prototypes) all distances round to the same number, and squares must not overflow.
_FAR = 1e140


def _unit(values: FloatArray, axis: int | None) -> FloatArray:
    """Power of two near the largest magnitude: dividing by it is exact, and squares stay in range."""
    exponent = np.frexp(np.abs(values).max(axis=axis))[1]
    return np.asarray(np.ldexp(1.0, exponent - 1))


def _cost(flat: FloatArray, X: FloatArray, own: npt.NDArray[np.bool_]) -> tuple[float, FloatArray]:
    """Mean of mu and its gradient.

    `flat` holds the prototypes, then Omega if there is one; ``own[i, k]`` says whether prototype `k` has
    the class of sample `i`.
    """
    (n, m), d = own.shape, X.shape[1]
    prototypes, omega = flat[: m * d].reshape(m, d), flat[m * d :].reshape(-1, d)
    if len(omega):
        distances = cdist(X @ omega.T, prototypes @ omega.T, "sqeuclidean")
    else:
        distances = cdist(X, prototypes, "sqeuclidean")
    rows = np.arange(n)
    plus = np.where(own, distances, np.inf).argmin(axis=1)
    minus = np.where(own, np.inf, distances).argmin(axis=1)
    d_plus, d_minus = distances[rows, plus], distances[rows, minus]
    total = d_plus + d_minus
    # On two prototypes at once mu has no value; 0 is the middle of its range, and no direction is better.
    inverse = np.divide(1.0, total, out=np.zeros(n), where=total > _ZERO)
    cost = float(np.mean((d_plus - d_minus) * inverse))

    slope_plus = 2.0 / n * (d_minus * inverse) * inverse
    slope_minus = -2.0 / n * (d_plus * inverse) * inverse
    slopes = np.zeros((n, m))
    slopes[rows, plus], slopes[rows, minus] = slope_plus, slope_minus
    pull = 2.0 * (slopes.sum(axis=0)[:, None] * prototypes - slopes.T @ X)
    if not len(omega):
        return cost, pull.ravel()
    to_plus, to_minus = X - prototypes[plus], X - prototypes[minus]
    scatter = to_plus.T @ (slope_plus[:, None] * to_plus) + to_minus.T @ (slope_minus[:, None] * to_minus)
    return cost, np.concatenate([(pull @ omega.T @ omega).ravel(), (2.0 * omega @ scatter).ravel()])


class LVQ(ClassifierMixin, BaseEstimator):
    """What GLVQ and GMLVQ have in common: training, and answering with the nearest prototype."""

    _learns_omega: ClassVar[bool]

    def __init__(
        self, prototypes_per_class: int = 1, max_iter: int = 500, tol: float = 1e-5, random_state: Any = None
    ) -> None:
        self.prototypes_per_class = prototypes_per_class
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Train on finite inputs `X` (n_samples, n_features) and labels `y` of at least two classes.

        Returns
        -------
        self
        """
        self._check_parameters()
        points, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_, encoded = np.unique(labels, return_inverse=True)
        self._check_classes(self.classes_)

        # L-BFGS wants a problem of unit size. GLVQ may only divide by one number, or its metric would change;
        # in GMLVQ each feature has its own, which Omega absorbs.
        unit = _unit(points, 0 if self._learns_omega else None)
        Z = points / unit
        centre = Z[0] + (Z - Z[0]).mean(axis=0)  # exact if all are the same, which a plain mean is not
        Z -= centre
        variance = np.mean(Z**2, axis=0)
        spread = np.sqrt(variance if self._learns_omega else variance.sum())
        varies = spread > 10.0 * np.finfo(np.float64).eps  # less is rounding error
        spread = np.where(varies, spread, 1.0)
        Z /= spread

        start, owner = self._initial_prototypes(Z, encoded)
        flat = start.ravel()
        if self._learns_omega:
            # The data say nothing about a constant feature, so Omega ignores it: its column stays zero.
            active = varies | ~varies.any()
            flat = np.concatenate([flat, np.diag(active.astype(np.float64)).ravel()])
        result = minimize(
            _cost,
            flat,
            args=(Z, encoded[:, None] == owner),
            jac=True,
            method="L-BFGS-B",
            # Never stopped by the number of evaluations: the user can only set that of iterations.
            options={"maxiter": self.max_iter, "maxfun": 100 * self.max_iter, "ftol": self.tol, "gtol": 1e-8},
        )
        self.n_iter_ = int(result.nit)
        if result.status == 1:
            message = f"{type(self).__name__} stopped at max_iter={self.max_iter} before it reached tol={self.tol}."
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        self.labels_ = self.classes_[owner]
        with np.errstate(over="ignore"):
            # A prototype may leave the range of the data; next to the largest float that must not be infinity.
            self.prototypes_ = np.nan_to_num((result.x[: start.size].reshape(start.shape) * spread + centre) * unit)
            if self._learns_omega:
                scale = np.where(active, unit, np.inf)
                omega = result.x[start.size :].reshape(-1, Z.shape[1]) / spread / (scale / scale.min())
                omega /= np.abs(omega).max()  # so that no square underflows in the norm
                self.omega_ = omega / np.linalg.norm(omega)
        return self

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Label of the nearest prototype; of several at the same distance the first decides."""
        nearest = self._distances(X).argmin(axis=1)
        return np.asarray(self.labels_[nearest])

    def decision_function(self, X: npt.ArrayLike) -> FloatArray:
        """How much nearer each class is than its best rival, from -1 (far) to 1 (on a prototype).

        For class `c` this is ``(other - d) / (other + d)``: `d` is the squared distance to the nearest
        prototype of `c`, `other` that to the nearest of the other classes.  Only the predicted class is
        positive; 0 is a tie.

        Returns
        -------
        array of shape (n_samples, n_classes), or (n_samples,) with two classes
            With two classes the score of ``classes_[1]``.
        """
        distances = self._distances(X)
        nearest = np.stack([distances[:, self.labels_ == label].min(axis=1) for label in self.classes_], axis=1)
        first, second = np.sort(nearest, axis=1)[:, :2].T[:, :, None]
        wins = np.arange(len(self.classes_)) == nearest.argmin(axis=1)[:, None]
        other = np.where(wins, second, first)
        total = other + nearest
        scores: FloatArray = np.divide(other - nearest, total, out=np.zeros_like(total), where=total > 0.0)
        return scores[:, 1] if len(self.classes_) == 2 else scores

    def _distances(self, X: npt.ArrayLike) -> FloatArray:
        """Squared distances from samples to prototypes, all divided by one number to keep them in range."""
        check_is_fitted(self)
        points = validate_data(self, X, dtype=np.float64, reset=False)
        unit = _unit(self.prototypes_, 0 if self._learns_omega else None)
        prototypes = self.prototypes_ / unit
        with np.errstate(over="ignore"):
            points = np.clip(points / unit, -_FAR, _FAR)
        if self._learns_omega:
            omega = self.omega_ / np.abs(self.omega_).max() * unit
            omega /= np.abs(omega).max()
            # Omega x - Omega p would cancel badly far from the origin.
            centre = prototypes.mean(axis=0)
            points, prototypes = (points - centre) @ omega.T, (prototypes - centre) @ omega.T
        return np.asarray(cdist(points, prototypes, "sqeuclidean"))

    def _initial_prototypes(self, Z: FloatArray, encoded: IntArray) -> tuple[FloatArray, IntArray]:
        """Centres of k-means in each class, and the class index of each."""
        rng = check_random_state(self.random_state)
        found, owner = [], []
        for k in range(len(self.classes_)):
            members = Z[encoded == k]
            size = 1
            if self.prototypes_per_class > 1:
                size = min(self.prototypes_per_class, len(np.unique(members, axis=0)))
            if size == 1:
                centres = members.mean(axis=0, keepdims=True)
            else:
                seed = rng.randint(np.iinfo(np.int32).max)
                centres = KMeans(size, n_init=3, random_state=seed).fit(members).cluster_centers_
            found.append(centres)
            owner.append(np.full(size, k))
        start = np.concatenate(found)
        # Classes with the same centre would start in a saddle point; a little noise moves them off it.
        return start + 1e-3 * Z.std(axis=0) * rng.standard_normal(start.shape), np.concatenate(owner)

    def _check_parameters(self) -> None:
        for name in ("prototypes_per_class", "max_iter"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.")
        if isinstance(self.tol, bool) or not isinstance(self.tol, Real) or not 0.0 <= self.tol < np.inf:
            raise ValueError(f"tol must be a finite number of at least 0, got {self.tol!r}.")

    @classmethod
    def _check_classes(cls, classes: npt.NDArray[Any]) -> None:
        if len(classes) < 2:
            raise ValueError(f"{cls.__name__} needs at least 2 classes, got 1 class: {classes.tolist()}.")

    @classmethod
    def _fitted(cls, prototypes: npt.ArrayLike, labels: npt.ArrayLike) -> Self:
        """Build a fitted estimator without training; GMLVQ adds its metric."""
        points = check_array(prototypes, dtype=np.float64, copy=True, input_name="prototypes")
        owners = np.array(labels)
        if owners.shape != (len(points),):
            raise ValueError(f"labels must hold one label for each of {len(points)} prototypes, got {owners.shape}.")
        check_classification_targets(owners)
        classes, counts = np.unique(owners, return_counts=True)
        cls._check_classes(classes)
        model = cls(prototypes_per_class=int(counts.max()))
        # Counts the features, and takes their names from a data frame.
        validate_data(model, prototypes if hasattr(prototypes, "columns") else points, skip_check_array=True)
        model.classes_, model.prototypes_, model.labels_, model.n_iter_ = classes, points, owners, 0
        return model
