"""Perturbations by how numbers are recorded: what rounding has hidden, a count off by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import ClassVar

import numpy as np

from evenhand.perturbations.base import check_one_column
from evenhand.perturbations.registry import NUMBERS, ROWS, register
from evenhand.types import FloatArray

POWERS = range(6, -7, -1)  # precisions that are looked for, as powers of ten
SHARE = 0.99  # of the values have to be multiples of a precision
NEARLY = 1e-9  # relative to its size, how far off a multiple may be
CLEARLY = 1e-3  # in units of the precision: more is no multiple, and what floats cannot tell better says nothing


@register
@dataclass(frozen=True, eq=False)
class Rounding:
    """Any value that rounds to the recorded one: noise that is uniform up to half a step.

    Parameters
    ----------
    step : float, optional
        What values were rounded to multiples of; 0 if they were not.  Learned from the data if left out: the largest
        power of ten, from a million to a millionth, that 99 % of the values are multiples of, up to a relative
        error of 1e-9.  Zeros, multiples of everything, do not count.  Without such a power values are taken to be
        exact, and stay.

    Notes
    -----
    In a column of whole numbers, :class:`Mixed` rounds the result: noise needs a step larger than 1 there, since a
    count that is recorded exactly is exact.

    Examples
    --------
    >>> rounding = Rounding().fit(np.array([[1200.0], [900.0], [3100.0]]))
    >>> rounding
    Rounding(step=100.0)
    >>> moved = rounding(np.full((1000, 1), 900.0), np.random.default_rng(0))
    >>> bool((np.abs(moved - 900.0) <= 50.0).all())
    True
    """

    suits: ClassVar[tuple[str, ...]] = NUMBERS

    step: float | None = None

    def __post_init__(self) -> None:
        if self.step is None:
            return
        if not isinstance(self.step, Real) or not (np.isfinite(self.step) and self.step >= 0):
            raise ValueError(f"step must be a number >= 0, or None to learn it; got {self.step!r}.")
        object.__setattr__(self, "step", float(self.step))

    def fit(self, X: FloatArray) -> Rounding:
        """The same perturbation with the precision of the values `X`, of shape (n, 1)."""
        if self.step is not None:
            return self
        X = np.asarray(X, dtype=np.float64)
        check_one_column(X, "Rounding")
        return replace(self, step=_precision(X[np.isfinite(X)]))

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of `X` plus what rounding may have hidden."""
        if self.step is None:
            raise ValueError("Rounding does not know the step: call its fit(X) with the training data, or pass step=.")
        return X + self.step * (rng.random(X.shape) - 0.5)


@register
@dataclass(frozen=True, eq=False)
class Count:
    """A count that is off by a whole number, equally likely from ``-by`` to ``by``.

    Parameters
    ----------
    by : int
        How far off it can be; 0 is always possible.

    Examples
    --------
    >>> Count(1)(np.full((5, 1), 10.0), np.random.default_rng(0)).ravel()
    array([11., 10., 10.,  9.,  9.])
    """

    suits: ClassVar[tuple[str, ...]] = (ROWS, *NUMBERS)

    by: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.by, bool) or not isinstance(self.by, Integral) or self.by < 0:
            raise ValueError(f"by must be a whole number >= 0, got {self.by!r}.")

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of `X` plus a whole number."""
        return X + rng.integers(-self.by, self.by, size=X.shape, endpoint=True)


def _precision(values: FloatArray) -> float:
    """The largest power of ten that nearly all values are multiples of, 0 if there is none."""
    size = np.abs(values[values != 0])
    for power in POWERS if len(size) else ():
        step = 10.0**power
        ratio = size / step
        error = np.abs(ratio - np.rint(ratio))
        # A large number in small units is always near a whole one: neither that nor what floats leave out is evidence.
        multiple = (error <= np.minimum(NEARLY * ratio, CLEARLY)) & (np.spacing(ratio) <= CLEARLY)
        if np.mean(multiple) >= SHARE:
            return step
    return 0.0
