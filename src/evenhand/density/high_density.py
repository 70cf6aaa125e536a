"""How the densities of the classes are learned, and how dense is dense enough."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold

from evenhand.density.class_densities import ClassDensities, weighted_log_densities
from evenhand.table.layout import Layout
from evenhand.types import BoolArray, FloatArray

# Lowers log t: after rounding, the training point on the boundary is still inside, and at quantile=1 the radius
# of the last ellipsoid is still positive.
_SLACK = 1e-9
# A spread below this share of the largest number is rounding error, as in a superfluous principal component.
# Taken for data, it would make an ellipsoid that no solver can handle.
_ROUNDING = 1e-12
_REGULARISATIONS = (1e-9, 1e-6, 1e-3)  # tried in turn if EM fails with a smaller reg_covar
# The squares of larger numbers overflow in the covariances, and those of smaller spreads than its inverse underflow.
_LARGEST = 1e100


@dataclass(frozen=True)
class HighDensity:
    """Recipe for the densities of the classes, and for how dense is dense enough to be plausible.

    Parameters
    ----------
    quantile : float in [0, 1]
        At least a share of ``1 - quantile`` of a class's training points lies inside its region.
    components : sequence of int
        Numbers of mixture components to choose from, by the likelihood of held-out points.
    folds : int
        Folds of that cross-validation.
    reg_covar : float
        Added to each variance, in units of the column's variance within the class.  If EM still meets a
        covariance without inverse, 1e-9, 1e-6 and 1e-3 are tried, as far as they are larger.
    random_state : int
        Seed of the folds and of EM: the same data always give the same region.

    Notes
    -----
    EM runs on columns that are standardised within the class, and the mixture is then put back into the units of
    `Z`: neither its start nor `reg_covar` depends on whether these are 1e-6 or 1e8.  A column that is constant in
    the class takes its unit from all classes, and if it is constant there too, from the widest column.  Its
    standard deviation becomes ``sqrt(reg_covar)`` of that unit.
    A component needs two different points: a class with few points gets fewer components than asked for.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = np.vstack([rng.normal(0.0, 1.0, (100, 2)), rng.normal(6.0, 1.0, (100, 2))])
    >>> fitted = HighDensity(quantile=0.5).fit(Z, np.repeat(["no", "yes"], 100), ["no", "yes"])
    >>> fitted.region("yes").contains([[6.0, 6.0], [0.0, 0.0]])
    array([ True, False])
    """

    quantile: float = 0.5
    components: Sequence[int] = range(1, 10)
    _: KW_ONLY
    folds: int = 5
    reg_covar: float = 1e-6
    random_state: int = 0

    def __post_init__(self) -> None:
        self._check("quantile", Real, 0, 1)
        self._check("folds", Integral, 2, np.inf)
        self._check("reg_covar", Real, 0, _LARGEST)
        self._check("random_state", Integral, 0, 2**32 - 1)
        counts = tuple(self.components) if np.iterable(self.components) else ()
        if not counts or not all(isinstance(k, Integral) and k >= 1 for k in counts):
            got = counts or self.components
            raise ValueError(f"components must list whole numbers >= 1, such as range(1, 10) or [3], got {got!r}.")
        object.__setattr__(self, "components", tuple(sorted({int(k) for k in counts})))

    def _check(self, name: str, kind: Any, low: float, high: float) -> None:
        value = getattr(self, name)
        if not (isinstance(value, kind) and low <= value <= high):
            what = "number" if kind is Real else "whole number"
            raise ValueError(f"{name} must be a {what} from {low:g} to {high:g}, got {value!r}.")

    def fit(
        self, Z: npt.ArrayLike, labels: npt.ArrayLike, classes: npt.ArrayLike, layout: Layout | None = None
    ) -> ClassDensities:
        """Density of each class.

        A class with too few points raises a ``ValueError`` only when its density is asked for: it may never be a
        target.

        Parameters
        ----------
        Z : array of shape (n, k)
            Training points, in the space of the model's last step.
        labels : array of shape (n,)
            Their classes.
        classes : array
            All labels of the model.
        layout : Layout, optional
            If given, `Z` are rows of codes: then the density is a mixture over the numbers times the frequencies of the
            levels, with one joint threshold.
        """
        if layout is not None:
            return self._over_levels(np.asarray(Z, dtype=np.float64), np.asarray(labels), np.asarray(classes), layout)
        names = np.asarray(classes).tolist()
        points, own_label = _checked(Z, labels, names)
        spread, floor = points.std(axis=0), max(_ROUNDING * np.abs(points).max(), 1 / _LARGEST)
        unit = np.where(spread > floor, spread, spread.max() if spread.max() > floor else np.inf)

        mixtures, thresholds, missing = {}, {}, {}
        for name in names:
            own = points[own_label == name]
            found = self._mixture(own, unit, floor)
            if isinstance(found, str):
                missing[name] = found
                continue
            # "lower" is the value of a point: one between two points would leave too few of them inside.
            reached = weighted_log_densities(found, own).max(axis=1)
            log_threshold = np.quantile(reached, self.quantile, method="lower") - _SLACK
            mixtures[name], thresholds[name] = found, float(log_threshold)
        return ClassDensities(mixtures, thresholds, missing)

    def _over_levels(
        self, codes: FloatArray, labels: npt.NDArray[Any], classes: npt.NDArray[Any], layout: Layout
    ) -> ClassDensities:
        numbers = codes[:, layout.numbers]
        fitted = self.fit(numbers, labels, classes) if len(layout.numbers) else None
        levels = layout.start[:-1] + layout.levels(codes)
        size = np.repeat(np.diff(layout.start), np.diff(layout.start))
        mixtures: dict[Any, GaussianMixture | None] = {}
        thresholds, frequency = {}, {}
        missing: dict[Any, str] = {} if fitted is None else dict(fitted.missing)
        for name in classes.tolist():
            own: BoolArray = np.asarray(labels == name)
            if not own.any():
                missing[name] = "it has no training points"
            if name in missing:
                continue
            mixtures[name] = None if fitted is None else fitted.mixtures[name]
            count = np.bincount(levels[own].ravel(), minlength=int(layout.start[-1])).astype(np.float64)
            # A level that nobody has is rare, not impossible.
            frequency[name] = np.log((count + 1.0) / (own.sum() + size))
            reached = frequency[name][levels[own]].sum(axis=1)
            mixture = mixtures[name]
            if mixture is not None:
                reached = reached + weighted_log_densities(mixture, numbers[own]).max(axis=1)
            thresholds[name] = float(np.quantile(reached, self.quantile, method="lower")) - _SLACK
        return ClassDensities(mixtures, thresholds, missing, frequency, layout)

    def _mixture(self, own: FloatArray, unit: FloatArray, floor: float) -> GaussianMixture | str:
        """The mixture of one class, or why there is none; `unit` is for the columns that are constant in it."""
        if not len(own):
            return "it has no training points"
        centre, spread = own.mean(axis=0), own.std(axis=0)
        scale = np.where(spread > floor, spread, unit)
        standard = (own - centre) / scale
        # Rounded, because equal rows need not stay equal to the last bit in a pipeline; + 0.0 removes -0.0.
        different = len(np.unique(np.round(standard, 9) + 0.0, axis=0))
        if different < 2:
            return f"it has {len(own)} training point(s), of which no two differ by more than rounding ({floor:.0e})"
        counts = [k for k in self.components if k <= different // 2] or [different // 2]
        for reg_covar in (self.reg_covar, *(r for r in _REGULARISATIONS if r > self.reg_covar)):
            # Of equally good numbers the smallest; a single one needs no comparison.
            scores = [self._held_out(standard, k, reg_covar) for k in counts] if len(counts) > 1 else [0.0]
            mixture = self._em(standard, counts[int(np.argmax(scores))], reg_covar) if max(scores) > -np.inf else None
            if mixture is not None:
                return _rescaled(mixture, centre, scale)
        return f"its {len(own)} training points have no invertible covariance, even with reg_covar={reg_covar}"

    def _held_out(self, points: FloatArray, k: int, reg_covar: float) -> float:
        """Log likelihood of the held-out points, or -inf if a fold has no mixture of `k` components."""
        total, folds = 0.0, KFold(min(self.folds, len(points)), shuffle=True, random_state=self.random_state)
        for train, test in folds.split(points):
            mixture = self._em(points[train], k, reg_covar)
            if mixture is None:
                return -np.inf
            total += float(mixture.score_samples(points[test]).sum())
        return total

    def _em(self, points: FloatArray, k: int, reg_covar: float) -> GaussianMixture | None:
        with warnings.catch_warnings():
            # EM that stopped early is still a density, and the held-out points tell what it is worth.
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                return GaussianMixture(k, reg_covar=reg_covar, random_state=self.random_state).fit(points)
            except ValueError:  # for finite points there is one cause: a covariance without inverse
                return None


def _rescaled(mixture: GaussianMixture, centre: FloatArray, scale: FloatArray) -> GaussianMixture:
    """Turn the density of z into that of ``centre + scale * z``, in place; only EM's log of bounds stays."""
    mixture.means_ = centre + scale * mixture.means_
    mixture.covariances_ = scale[:, None] * mixture.covariances_ * scale
    mixture.precisions_cholesky_ = mixture.precisions_cholesky_ / scale[:, None]
    mixture.precisions_ = mixture.precisions_ / scale[:, None] / scale
    return mixture


def _checked(Z: npt.ArrayLike, labels: npt.ArrayLike, names: list[Any]) -> tuple[FloatArray, npt.NDArray[Any]]:
    points, own_label = np.asarray(Z, dtype=np.float64), np.asarray(labels)
    if points.ndim != 2 or 0 in points.shape:
        raise ValueError(f"Z must be a table with at least one row and one column, got shape {points.shape}.")
    if own_label.shape != points.shape[:1]:
        raise ValueError(f"Z has {len(points)} rows and labels has shape {own_label.shape}: give one label per row.")
    bad = np.flatnonzero(~(np.abs(points) < _LARGEST).all(axis=1))
    if len(bad):
        raise ValueError(
            f"Z must hold finite numbers below {_LARGEST:g}, but {len(bad)} of its {len(points)} rows hold NaN, "
            f"infinity or more; the first is row {bad[0]}. Drop, impute or rescale them."
        )
    strange = own_label[~sum((own_label == name for name in names), np.zeros(len(points), dtype=np.bool_))].tolist()
    if strange:
        raise ValueError(
            f"{len(strange)} of {len(points)} labels are not among the classes {names}, the first is {strange[0]!r}. "
            "Drop those rows, or give the labels as the model knows them."
        )
    return points, own_label
