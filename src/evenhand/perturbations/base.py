"""What a perturbation is, and what all of them share.

A perturbation is a function ``perturbation(X, rng) -> X'``.  It takes its random numbers row by row, so that the first
rows of a larger table get the same noise as those of a smaller one.  Ours are frozen dataclasses.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evenhand.types import FloatArray

Perturbation: TypeAlias = Callable[[FloatArray, np.random.Generator], FloatArray]
Bounds: TypeAlias = tuple[npt.ArrayLike, npt.ArrayLike]


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


def name_of(perturbation: Any) -> str:
    """What to call a perturbation in a message: its class, or a function's own name."""
    return str(getattr(perturbation, "__name__", type(perturbation).__name__))


def sorted_columns(X: npt.ArrayLike) -> FloatArray:
    """The columns sorted, so that means do not depend on the order of people, not even in the last digit."""
    table: FloatArray = np.sort(np.asarray(X, dtype=np.float64), axis=0)
    return table


def varies(X: FloatArray, spread: FloatArray) -> npt.NDArray[np.bool_]:
    """Which columns are not constant; the spread of one that is, is rounding error."""
    varies: npt.NDArray[np.bool_] = spread > 1e-12 * np.abs(X).max(axis=0, initial=0.0)
    return varies


def bounded(X: FloatArray, bounds: Any) -> FloatArray:
    """The table with what falls outside of the bounds put on them."""
    if bounds is None:
        return X
    for bound in bounds:
        check_width(bound, X, "bounds")
    clipped: FloatArray = np.clip(X, *bounds)
    return clipped


def checked_bounds(bounds: Any) -> tuple[FloatArray, FloatArray] | None:
    """A pair of bounds as arrays that nobody can write to."""
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


def finite_numbers(values: Any, name: str) -> FloatArray:
    """Numbers without labels, as an array that nobody can write to."""
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
        raise ValueError(f"{name} must be finite, got {shortened(array)}.")
    array.setflags(write=False)
    return array


def check_width(values: FloatArray, X: FloatArray, name: str) -> None:
    """Refuse a table with another number of columns than the values are for."""
    if values.ndim and values.size != X.shape[1]:
        raise ValueError(f"{name} is for {values.size} features, the table has {X.shape[1]}.")


def shortened(array: FloatArray) -> str:
    """An array in a message."""
    return np.array2string(array, threshold=6, precision=4)


def check_probability(probability: Any) -> None:
    """Refuse what is no probability."""
    if isinstance(probability, bool) or not isinstance(probability, Real) or not 0 <= float(probability) <= 1:
        raise ValueError(f"probability must be a number from 0 to 1, got {probability!r}.")


def check_one_column(X: FloatArray, name: str) -> None:
    """Refuse a table of several columns."""
    if X.ndim != 2 or X.shape[1] != 1:
        raise ValueError(f"{name} is for one column, an array of shape (n, 1); got {X.shape}. Mixed is for several.")
