"""Perturbations of numbers: noise, masks, and either of them in units of each feature's spread."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import ClassVar

import numpy as np

from evenhand.perturbations.base import (
    Bounds,
    Perturbation,
    bounded,
    check_width,
    checked_bounds,
    finite_numbers,
    learned,
    perturbed,
    shortened,
    sorted_columns,
    varies,
)
from evenhand.perturbations.neighbor import Neighbor as Neighbor  # pickles name it here
from evenhand.perturbations.registry import NUMBERS, ROWS, register
from evenhand.types import FloatArray


@register
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

    suits: ClassVar[tuple[str, ...]] = (ROWS, *NUMBERS)

    covariance: float | FloatArray = 1.0
    _: KW_ONLY
    bounds: Bounds | None = None

    def __post_init__(self) -> None:
        covariance = finite_numbers(self.covariance, "covariance")
        square = covariance.ndim == 2 and covariance.shape[0] == covariance.shape[1]
        if not covariance.size or not (covariance.ndim < 2 or square):
            raise ValueError(
                "covariance must be one variance, one per feature, or a square matrix; "
                f"got an array of shape {covariance.shape}."
            )
        object.__setattr__(self, "covariance", covariance)
        object.__setattr__(self, "bounds", checked_bounds(self.bounds))
        _ = self._factor  # an impossible covariance fails here, not in the middle of a study

    @cached_property
    def _factor(self) -> FloatArray:
        """Standard deviations, or a matrix F with ``F @ F.T`` the covariance."""
        covariance = np.asarray(self.covariance)
        if covariance.ndim < 2:
            if (covariance < 0).any():
                raise ValueError(f"A variance cannot be negative, got covariance = {shortened(covariance)}")
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
        check_width(factor[..., :1].T if factor.ndim == 2 else factor, X, "covariance")
        if factor.ndim == 2:  # not by BLAS, which rounds differently for different numbers of rows
            noise = np.einsum("ij,kj->ik", noise, factor)
        elif factor.ndim or factor != 1.0:
            noise *= factor
        noise += X
        return bounded(noise, self.bounds)


@register
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

    suits: ClassVar[tuple[str, ...]] = (ROWS, *NUMBERS)

    radius: float | FloatArray = 1.0
    _: KW_ONLY
    bounds: Bounds | None = None

    def __post_init__(self) -> None:
        radius = finite_numbers(self.radius, "radius")
        if radius.ndim > 1 or (radius < 0).any():
            raise ValueError(f"radius must be a number >= 0, or one per feature; got {shortened(radius)}.")
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "bounds", checked_bounds(self.bounds))

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of `X` plus noise of its own."""
        check_width(np.asarray(self.radius), X, "radius")
        return bounded(X + (2.0 * rng.random(X.shape) - 1.0) * self.radius, self.bounds)


@register
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

    suits: ClassVar[tuple[str, ...]] = (ROWS,)

    n_features: int = field(
        default=1, metadata={"key": "features", "words": {"half": lambda columns: range(1, columns // 2 + 1)}}
    )
    baseline: float | FloatArray | str = 0.0
    _: KW_ONLY
    bounds: Bounds | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.n_features, Integral) or self.n_features < 0:
            raise ValueError(f"n_features must be a whole number >= 0, got {self.n_features!r}.")
        bounds = checked_bounds(self.bounds)
        object.__setattr__(self, "bounds", bounds)
        if isinstance(self.baseline, str):
            if self.baseline != "mean":
                raise ValueError(f'baseline must be a number, one per feature, or "mean"; got {self.baseline!r}.')
            return
        baseline = finite_numbers(self.baseline, "baseline")
        if baseline.ndim > 1:
            raise ValueError(
                f"baseline must be one number, or one per feature; got an array of shape {baseline.shape}."
            )
        object.__setattr__(self, "baseline", baseline)
        if bounds is not None and len({side.size for side in (*bounds, baseline) if side.ndim}) > 1:
            raise ValueError(f"The baseline is for {baseline.size} features, the bounds are for another number.")
        if bounds is not None and ((baseline < bounds[0]) | (baseline > bounds[1])).any():
            raise ValueError(
                f"The baseline {shortened(baseline)} lies outside of the bounds: masking would leave them. "
                'Choose a baseline inside, such as "mean", or wider bounds.'
            )

    def fit(self, X: FloatArray) -> Mask:
        """The same mask with what it learns from `X`."""
        return replace(self, baseline=sorted_columns(X).mean(axis=0)) if isinstance(self.baseline, str) else self

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of `X` with features of its own masked."""
        if isinstance(self.baseline, str):
            raise ValueError('Mask(baseline="mean") has not seen any data: call its fit(X) first.')
        dim = X.shape[1]
        if self.n_features > dim:
            raise ValueError(f"Mask cannot replace {self.n_features} features: the table has {dim}.")
        check_width(np.asarray(self.baseline), X, "baseline")
        order = np.argsort(rng.random(X.shape), axis=1)
        masked = X.copy()
        rows = np.arange(len(X))[:, None]
        chosen = order[:, : self.n_features]
        masked[rows, chosen] = np.broadcast_to(np.asarray(self.baseline), (dim,))[chosen]
        return bounded(masked, self.bounds)


@register
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

    suits: ClassVar[tuple[str, ...]] = NUMBERS

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
        if reason := getattr(self.perturbation, "never_relative", ""):
            raise TypeError(reason)
        for name in ("spread", "centre"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, finite_numbers(getattr(self, name), name))
        if self.spread is not None and (self.spread < 0).any():
            raise ValueError(f"spread cannot be negative, got {shortened(self.spread)}.")
        object.__setattr__(self, "bounds", checked_bounds(self.bounds))

    def fit(self, X: FloatArray) -> Relative:
        """The same perturbation with the spread and the mean of `X`; what is known already stays."""
        X = sorted_columns(X)
        spread = X.std(axis=0) if self.spread is None else self.spread
        centre = X.mean(axis=0) if self.centre is None else self.centre
        check_width(spread, X, "spread")
        check_width(centre, X, "centre")
        if self.spread is None:
            spread = np.where(varies(X, spread), spread, 0.0)
        unit = np.where(spread > 0, spread, 1.0)
        inner = learned(self.perturbation, (X - centre) / unit)
        if self.spread is not None and self.centre is not None and inner is self.perturbation:
            return self  # nothing was left to learn: a part of a table gets the same noise as the whole
        return replace(self, perturbation=inner, spread=spread, centre=centre)

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of `X`, perturbed in units of the spread."""
        if self.spread is None or self.centre is None:
            raise ValueError("Relative does not know the features' spread: call its fit(X) with the training data.")
        check_width(self.spread, X, "spread")
        check_width(self.centre, X, "centre")
        unit = np.where(self.spread > 0, self.spread, 1.0)
        scaled = (X - self.centre) / unit
        moved = perturbed(self.perturbation, scaled.copy(), rng) - scaled
        # The change is what is scaled back: features that do not move keep their last digit.
        return bounded(X + np.where(self.spread > 0, moved * self.spread, 0.0), self.bounds)
