"""What is measured of every draw, and what of that is reported per person."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.status import VALID, Status, statuses
from evenhand.types import FloatArray

MEASURES = ("distance", "change_distance", "cost_gap", "jaccard", "amplification", "input_distance")


class Draws(NamedTuple):
    """Measurements of some people, arrays of shape (people, draws)."""

    target: npt.NDArray[np.int64]
    flipped: npt.NDArray[np.bool_]
    status: npt.NDArray[np.str_]
    input_distance: FloatArray
    distance: FloatArray
    change_distance: FloatArray
    cost_gap: FloatArray
    jaccard: FloatArray
    amplification: FloatArray


def no_draws(n: int, draws: int) -> Draws:
    """Draws of people that nothing is measured of yet."""
    nothing = [np.full((n, draws), np.nan) for _ in MEASURES]
    return Draws(
        np.zeros((n, draws), dtype=np.int64),
        np.zeros((n, draws), dtype=bool),
        statuses((n, draws), Status.MISSING),
        *nothing,
    )


def overlap_of(a: npt.NDArray[np.bool_], b: npt.NDArray[np.bool_]) -> FloatArray:
    """Jaccard index over the last axis; two people who are told to change nothing agree."""
    union, both = np.count_nonzero(a | b, axis=-1), np.count_nonzero(a & b, axis=-1)
    overlap: FloatArray = np.where(union == 0, 1.0, both / np.maximum(union, 1))
    return overlap


def aggregated(found: Draws) -> dict[str, Any]:
    """Columns with one row per person."""
    valid = np.isin(found.status, VALID)
    columns: dict[str, Any] = {
        "flips": found.flipped.sum(axis=1),
        "skipped": (found.status == Status.SKIPPED).sum(axis=1),
        "found": valid.sum(axis=1),
        "already": (found.status == Status.ALREADY).sum(axis=1),
    }
    for name in MEASURES:
        columns[name] = _over_draws(getattr(found, name), lambda part: part.mean(axis=1))
    columns["distance_median"] = _over_draws(found.distance, lambda part: np.median(part, axis=1))
    columns["distance_p95"] = _over_draws(found.distance, lambda part: np.quantile(part, 0.95, axis=1))
    columns["distance_max"] = _over_draws(found.distance, lambda part: part.max(axis=1))
    columns["distance_std"] = _over_draws(
        found.distance, lambda part: part.std(axis=1, ddof=1) if part.shape[1] > 1 else np.full(len(part), np.nan)
    )
    columns["amplification_max"] = _over_draws(found.amplification, lambda part: part.max(axis=1))
    return columns


def _over_draws(values: FloatArray, statistic: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """A statistic of each row's numbers, NaN for a row without any: whole tables at once, odd rows one by one."""
    found = np.full(len(values), np.nan)
    missing = np.isnan(values)
    whole = ~missing.any(axis=1)
    if whole.any():
        found[whole] = statistic(values[whole])
    for row in np.flatnonzero(~whole & ~missing.all(axis=1)):
        found[row] = statistic(values[row][~missing[row]][None])[0]
    return found
