"""Perturbations: what could have been slightly different about a person.

Each is a frozen dataclass and a function ``perturbation(X, rng) -> X'``.  It takes its random numbers row by row,
so that the first rows of a larger table get the same noise as those of a smaller one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.spatial import KDTree

from evenhand.types import FloatArray

Perturbation: TypeAlias = Callable[[FloatArray, np.random.Generator], FloatArray]
Bounds: TypeAlias = tuple[npt.ArrayLike, npt.ArrayLike]


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Normal noise with mean zero.

    Parameters
    ----------
    covariance : float, array of shape (n_features,) or (n_features, n_features)
        A variance for all features, one for each, or the whole covariance matrix.
    bounds : pair (lower, upper), optional
        Numbers, or one per feature; what falls outside is put on the bound.

    Examples
    --------
    >>> Gaussian(0.0)(np.ones((1, 2)), np.random.default_rng(0))
    array([[1., 1.]])
    """

    covariance: float | FloatArray = 1.0
    _: KW_ONLY
    bounds: Bounds | None = None

    def __post_init__(self) -> None:
        covariance = _numbers(self.covariance, "covariance")
        square = covariance.ndim == 2 and covariance.shape[0] == covariance.shape[1]
        if not covariance.size or not (covariance.ndim < 2 or square):
            raise ValueError(
                "covariance must be one variance, one per feature, or a square matrix; "
                f"got an array of shape {covariance.shape}."
            )
        object.__setattr__(self, "covariance", covariance)
        object.__setattr__(self, "bounds", _checked_bounds(self.bounds))
        _ = self._factor  # an impossible covariance fails here, not in the middle of a study

    @cached_property
    def _factor(self) -> FloatArray:
        """Standard deviations, or a matrix F with ``F @ F.T`` the covariance."""
        covariance = np.asarray(self.covariance)
        if covariance.ndim < 2:
            if (covariance < 0).any():
                raise ValueError(f"A variance cannot be negative, got covariance = {_short(covariance)}")
            deviations: FloatArray = np.sqrt(covariance)
            return deviations
        units = np.sqrt(np.abs(np.diagonal(covariance)))
        units = np.where(units > 0, units, 1.0)
        scaled = covariance / np.outer(units, units)  # judged free of the features' units
        if not np.allclose(scaled, scaled.T, rtol=0, atol=1e-8):
            raise ValueError("covariance is not symmetric. A covariance has the same number for (i, j) and (j, i).")
        values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
        if values[0] < -1e-8 * max(values[-1], 1.0):
            raise ValueError(
                f"covariance is not positive semi-definite: as a correlation it has the eigenvalue {values[0]:.3g}. "
                "No noise has this covariance; np.cov of real data, or a vector of variances, always works."
            )
        factor: FloatArray = units[:, None] * (vectors * np.sqrt(np.maximum(values, 0.0)))
        return factor

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of `X` plus noise of its own."""
        noise = rng.standard_normal(X.shape)
        factor = self._factor
        _check_width(factor[..., :1].T if factor.ndim == 2 else factor, X, "covariance")
        if factor.ndim == 2:  # not by BLAS, which rounds differently for different numbers of rows
            noise = np.einsum("ij,kj->ik", noise, factor)
        elif factor.ndim or factor != 1.0:
            noise *= factor
        noise += X
        return _bounded(noise, self.bounds)


@dataclass(frozen=True, eq=False)
class Uniform:
    """Noise that is equally likely anywhere from ``-radius`` to ``radius``, in each feature by itself.

    Parameters
    ----------
    radius : float or array of shape (n_features,)
        How far a feature can move.
    bounds : pair (lower, upper), optional
        As for :class:`Gaussian`.

    Examples
    --------
    >>> moved = Uniform(radius=0.5)(np.ones((1000, 2)), np.random.default_rng(0))
    >>> bool((np.abs(moved - 1) <= 0.5).all())
    True
    """

    radius: float | FloatArray
    _: KW_ONLY
    bounds: Bounds | None = None

    def __post_init__(self) -> None:
        radius = _numbers(self.radius, "radius")
        if radius.ndim > 1 or (radius < 0).any():
            raise ValueError(f"radius must be a number >= 0, or one per feature; got {_short(radius)}.")
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "bounds", _checked_bounds(self.bounds))

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of `X` plus noise of its own."""
        _check_width(np.asarray(self.radius), X, "radius")
        return _bounded(X + (2.0 * rng.random(X.shape) - 1.0) * self.radius, self.bounds)


@dataclass(frozen=True, eq=False)
class Mask:
    """Some features, chosen at random for every row, are replaced by a baseline.

    Parameters
    ----------
    n_features : int
        How many.
    baseline : float, array of shape (n_features,) or "mean"
        What they are replaced by; "mean" is learned from the data by :func:`instability`, or by :meth:`fit`.
    bounds : pair (lower, upper), optional
        As for :class:`Gaussian`; a baseline outside of them is an error.

    Examples
    --------
    >>> Mask(1)(np.ones((1, 3)), np.random.default_rng(0)).sum()
    np.float64(2.0)
    """

    n_features: int
    baseline: float | FloatArray | str = 0.0
    _: KW_ONLY
    bounds: Bounds | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.n_features, Integral) or self.n_features < 0:
            raise ValueError(f"n_features must be a whole number >= 0, got {self.n_features!r}.")
        bounds = _checked_bounds(self.bounds)
        object.__setattr__(self, "bounds", bounds)
        if isinstance(self.baseline, str):
            if self.baseline != "mean":
                raise ValueError(f'baseline must be a number, one per feature, or "mean"; got {self.baseline!r}.')
            return
        baseline = _numbers(self.baseline, "baseline")
        if baseline.ndim > 1:
            raise ValueError(
                f"baseline must be one number, or one per feature; got an array of shape {baseline.shape}."
            )
        object.__setattr__(self, "baseline", baseline)
        if bounds is not None and len({side.size for side in (*bounds, baseline) if side.ndim}) > 1:
            raise ValueError(f"The baseline is for {baseline.size} features, the bounds are for another number.")
        if bounds is not None and ((baseline < bounds[0]) | (baseline > bounds[1])).any():
            raise ValueError(
                f"The baseline {_short(baseline)} lies outside of the bounds: masking would leave them. "
                'Choose a baseline inside, such as "mean", or wider bounds.'
            )

    def fit(self, X: FloatArray) -> Mask:
        """The same mask with what it learns from `X`."""
        return replace(self, baseline=_ordered(X).mean(axis=0)) if isinstance(self.baseline, str) else self

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of `X` with features of its own masked."""
        if isinstance(self.baseline, str):
            raise ValueError('Mask(baseline="mean") has not seen any data: call its fit(X) first.')
        dim = X.shape[1]
        if self.n_features > dim:
            raise ValueError(f"Mask cannot replace {self.n_features} features: the table has {dim}.")
        _check_width(np.asarray(self.baseline), X, "baseline")
        order = np.argsort(rng.random(X.shape), axis=1)
        masked = X.copy()
        rows = np.arange(len(X))[:, None]
        chosen = order[:, : self.n_features]
        masked[rows, chosen] = np.broadcast_to(np.asarray(self.baseline), (dim,))[chosen]
        return _bounded(masked, self.bounds)


@dataclass(frozen=True, eq=False)
class Relative:
    """Another perturbation in units of each feature's spread in the training data.

    Noise of 0.1 then means the same for an income and for a number of children.

    Parameters
    ----------
    perturbation : Gaussian, Uniform, Mask or any ``(X, rng) -> X``
        What to do, in units of the spread and around the mean.
    spread, centre : arrays of shape (n_features,), optional
        Learned from the data if left out: standard deviation and mean.  A constant feature has spread 0 and is
        left alone.
    bounds : pair (lower, upper), optional
        As for :class:`Gaussian`, in the data's own units.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [2.0, 2000.0]])
    >>> moved = Relative(Uniform(0.1)).fit(X)(X, np.random.default_rng(0))
    >>> np.abs(moved - X).max(axis=0) <= [0.1, 100.0]
    array([ True,  True])
    """

    perturbation: Perturbation
    spread: FloatArray | None = None
    centre: FloatArray | None = None
    _: KW_ONLY
    bounds: Bounds | None = None

    def __post_init__(self) -> None:
        if not callable(self.perturbation):
            raise TypeError(
                f"Relative scales a perturbation, such as Gaussian(0.01); got {type(self.perturbation).__name__}."
            )
        if isinstance(self.perturbation, Neighbor):
            raise TypeError(
                "Neighbor is measured in units of the spread by itself (standardise=True): use it as it is."
            )
        for name in ("spread", "centre"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _numbers(getattr(self, name), name))
        if self.spread is not None and (self.spread < 0).any():
            raise ValueError(f"spread cannot be negative, got {_short(self.spread)}.")
        object.__setattr__(self, "bounds", _checked_bounds(self.bounds))

    def fit(self, X: FloatArray) -> Relative:
        """The same perturbation with the spread and the mean of `X`; what is known already stays."""
        X = _ordered(X)
        spread = X.std(axis=0) if self.spread is None else self.spread
        centre = X.mean(axis=0) if self.centre is None else self.centre
        _check_width(spread, X, "spread")
        _check_width(centre, X, "centre")
        if self.spread is None:
            spread = np.where(_varies(X, spread), spread, 0.0)
        unit = np.where(spread > 0, spread, 1.0)
        inner = learned(self.perturbation, (X - centre) / unit)
        if self.spread is not None and self.centre is not None and inner is self.perturbation:
            return self  # nothing was left to learn: a part of a table gets the same noise as the whole
        return replace(self, perturbation=inner, spread=spread, centre=centre)

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of `X`, perturbed in units of the spread."""
        if self.spread is None or self.centre is None:
            raise ValueError("Relative does not know the features' spread: call its fit(X) with the training data.")
        _check_width(self.spread, X, "spread")
        _check_width(self.centre, X, "centre")
        unit = np.where(self.spread > 0, self.spread, 1.0)
        scaled = (X - self.centre) / unit
        moved = perturbed(self.perturbation, scaled.copy(), rng) - scaled
        # The change is what is scaled back: features that do not move keep their last digit.
        return _bounded(X + np.where(self.spread > 0, moved * self.spread, 0.0), self.bounds)


@dataclass(frozen=True, eq=False)
class Neighbor:
    """Replaces a person by one of its nearest real people.

    Parameters
    ----------
    X_reference : array of shape (n, n_features)
        The real people.  A row that equals the person counts as the person, not as a neighbour.
    k : int
        Among how many of the nearest to choose.
    standardise : bool
        Whether near is measured in units of each feature's spread among `X_reference`, or in raw units.
    bounds : pair (lower, upper), optional
        As for :class:`Gaussian`.

    Examples
    --------
    >>> Neighbor([[0.0], [1.0], [5.0]], k=1)(np.array([[0.9]]), np.random.default_rng(0))
    array([[1.]])
    """

    X_reference: FloatArray = field(repr=False)
    k: int = 5
    _: KW_ONLY
    standardise: bool = True
    bounds: Bounds | None = None
    names: tuple[str, ...] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        columns = getattr(self.X_reference, "columns", None)
        object.__setattr__(self, "names", None if columns is None else tuple(columns))
        given = self.X_reference if columns is None else self.X_reference.to_numpy()  # type: ignore[attr-defined]
        reference = _numbers(given, "X_reference")
        if reference.ndim != 2:
            raise ValueError(f"X_reference must be a table of finite numbers, got shape {reference.shape}.")
        if not isinstance(self.k, Integral) or not 1 <= self.k < len(reference):
            raise ValueError(
                f"k must be a whole number from 1 to {len(reference) - 1}, one less than the people in X_reference; "
                f"got {self.k!r}."
            )
        object.__setattr__(self, "X_reference", reference)
        object.__setattr__(self, "bounds", _checked_bounds(self.bounds))

    def in_order(self, columns: tuple[str, ...]) -> Neighbor:
        """The same with the columns of a reference that was a DataFrame in the order of a model's."""
        if self.names is None or self.names == columns:
            return self
        if set(self.names) != set(columns):
            strange = sorted(set(map(str, self.names)) ^ set(map(str, columns)))
            raise ValueError(f"X_reference and the model have different columns, such as {strange[0]!r}.")
        return replace(self, X_reference=self.X_reference[:, [self.names.index(name) for name in columns]])

    @cached_property
    def _unit(self) -> FloatArray:
        spread = self.X_reference.std(axis=0)
        unit: FloatArray = np.where(self.standardise & _varies(self.X_reference, spread), spread, 1.0)
        return unit

    @cached_property
    def _tree(self) -> tuple[KDTree, FloatArray]:
        different = np.unique(self.X_reference, axis=0)
        return KDTree(different / self._unit), different

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """For every row of `X` one of its neighbours."""
        _check_width(self.X_reference[0], X, "X_reference")
        tree, people = self._tree
        k = min(self.k + 1, len(people))
        _, near = tree.query(X / self._unit, k=k)
        near = near.reshape(len(X), k)
        itself = (people[near] == X[:, None, :]).all(axis=2)
        # The person itself comes first if it is there: step over it.
        available = k - 1 if k == self.k + 1 else k - itself.any(axis=1)
        if np.any(np.asarray(available) < 1):
            raise ValueError("X_reference holds one person only, up to repetition: nobody has a neighbour in it.")
        choice = np.floor(rng.random(len(X)) * available).astype(np.intp)
        order = np.argsort(itself, axis=1, kind="stable")  # everybody else first, nearest to farthest
        chosen = np.take_along_axis(near, np.take_along_axis(order, choice[:, None], axis=1), axis=1)[:, 0]
        return _bounded(people[chosen], self.bounds)


def learned(perturbation: Any, X: FloatArray) -> Perturbation:
    """The perturbation with what it has to learn from data, if it has."""
    fitted: Perturbation = perturbation.fit(X) if hasattr(perturbation, "fit") else perturbation
    return fitted


def perturbed(perturbation: Perturbation, X: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Apply a perturbation, which may be a user's own function, and check what comes back."""
    moved = np.asarray(perturbation(X, rng), dtype=np.float64)
    if moved.shape != X.shape:
        raise ValueError(
            f"The perturbation {perturbation!r} returned shape {moved.shape} for a table of shape {X.shape}. "
            "It has to return one perturbed row per row."
        )
    if not np.isfinite(moved).all():
        raise ValueError(f"The perturbation {perturbation!r} returned NaN or infinity.")
    return moved


def _ordered(X: npt.ArrayLike) -> FloatArray:
    """The columns sorted, so that means do not depend on the order of people, not even in the last digit."""
    table: FloatArray = np.sort(np.asarray(X, dtype=np.float64), axis=0)
    return table


def _varies(X: FloatArray, spread: FloatArray) -> npt.NDArray[np.bool_]:
    """Which columns are not constant; the spread of one that is, is rounding error."""
    varies: npt.NDArray[np.bool_] = spread > 1e-12 * np.abs(X).max(axis=0, initial=0.0)
    return varies


def _bounded(X: FloatArray, bounds: Any) -> FloatArray:
    if bounds is None:
        return X
    for bound in bounds:
        _check_width(bound, X, "bounds")
    clipped: FloatArray = np.clip(X, *bounds)
    return clipped


def _checked_bounds(bounds: Any) -> tuple[FloatArray, FloatArray] | None:
    if bounds is None:
        return None
    try:
        lower, upper = (np.array(bound, dtype=np.float64) for bound in bounds)
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds must be a pair (lower, upper), each a number or one per feature; got {bounds!r}."
        ) from None
    if len({side.size for side in (lower, upper) if side.ndim}) > 1:
        raise ValueError(f"bounds must be for as many features below as above; got {lower.size} and {upper.size}.")
    if lower.ndim > 1 or upper.ndim > 1 or np.isnan(lower).any() or np.isnan(upper).any() or (lower > upper).any():
        raise ValueError(f"bounds must be a pair (lower, upper) with lower <= upper; got {bounds!r}.")
    lower.setflags(write=False)
    upper.setflags(write=False)
    return lower, upper


def _numbers(values: Any, name: str) -> FloatArray:
    if hasattr(values, "columns") or hasattr(values, "to_numpy"):
        raise TypeError(
            f"{name} has labels (it is a pandas {type(values).__name__}), which a perturbation would not follow: pass "
            "values in the model's order of columns, X[model_columns].to_numpy()."
        )
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number or an array of numbers, got {values!r}.") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {_short(array)}.")
    array.setflags(write=False)
    return array


def _check_width(values: FloatArray, X: FloatArray, name: str) -> None:
    if values.ndim and values.size != X.shape[1]:
        raise ValueError(f"{name} is for {values.size} features, the table has {X.shape[1]}.")


def _short(array: FloatArray) -> str:
    return np.array2string(array, threshold=6, precision=4)
