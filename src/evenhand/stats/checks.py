"""What values, people and options have to be."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from evenhand.types import FloatArray

IntArray: TypeAlias = npt.NDArray[np.int64]


def check_statistics(names: tuple[str, ...], known: tuple[str, ...]) -> None:
    """Refuse statistics that have no interval."""
    for name in names:
        if name not in known:
            raise ValueError(f"Unknown statistic {name!r}; possible are {', '.join(map(repr, known))}.")


def check_options(confidence: float, resamples: int = 1) -> None:
    """Refuse a confidence or a number of resamples that cannot be."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}; for 95 % pass 0.95.")
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, got {resamples}; some thousand give stable intervals.")


def finite(values: npt.ArrayLike, name: str) -> FloatArray:
    """One finite number per row."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one number per row, got an array of shape {array.shape}.")
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise ValueError(f"{name} must be finite, got {array[bad[0]]} in row {bad[0]}; drop such rows first.")
    return array


def person_codes(cluster: npt.ArrayLike, rows: int) -> IntArray:
    """The codes 0, 1, ... of the people that occur, without gaps."""
    array = np.asarray(cluster)
    if array.shape != (rows,):
        raise ValueError(f"cluster must have one code per value: got shape {array.shape} for {rows} values.")
    if rows == 0:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(
            f"cluster must hold integer codes, got {array.dtype}; numpy.unique(..., return_inverse=True) gives them."
        )
    if array.min() < 0:
        raise ValueError(f"cluster must hold codes from 0, got {array.min()}; drop the rows without a person first.")
    return np.asarray(np.unique(array, return_inverse=True)[1], dtype=np.int64)
