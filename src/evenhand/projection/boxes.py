"""Regions of boxes only (trees without a rotation in front): the closed form.

The nearest point of a box is the query clipped to it, for every cost that weighs each column
by itself, so the cost of a piece is known without solving anything.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.projection._numba import entry, kernel
from evenhand.projection.norms.arrays import Boxes
from evenhand.projection.norms.query import FOUND, NOTHING, PRUNED, TIE
from evenhand.types import FloatArray

FIXED, UP, DOWN = 0, 2, 3


@kernel
def _coordinate(boxes: Boxes, k: int, j: int, x: float, guard: float) -> float:
    """Where column j has to go to enter box k; NaN if it may not go there.

    The guard keeps a rounding error's distance from the sides, or the middle of a box that is
    thinner than that.
    """
    low, high = boxes.lower[k, j], boxes.upper[k, j]
    floor, ceiling = max(low, boxes.floor[j]), min(high, boxes.ceiling[j])
    stays = floor <= x <= ceiling
    if boxes.movable[j] == FIXED:
        return x if stays else np.nan
    inner_low = low + guard * (abs(low) + abs(x)) if low > -np.inf else low
    inner_high = high - guard * (abs(high) + abs(x)) if high < np.inf else high
    if inner_low > inner_high:
        inner_low = inner_high = low + 0.5 * (high - low)
    target = min(max(x, max(inner_low, boxes.floor[j])), min(inner_high, boxes.ceiling[j]))
    if not floor <= target <= ceiling:
        return np.nan
    if (boxes.movable[j] == UP and target < x) or (boxes.movable[j] == DOWN and target > x):
        return x if stays else np.nan
    return float(target)


@kernel
def _distance(boxes: Boxes, k: int, x: FloatArray, guard: float, limit: float) -> float:
    """Cost of entering box k (its square for l2), or infinity once it passes the limit."""
    total = 0.0
    for j in range(len(x)):
        step = (_coordinate(boxes, k, j, x[j], guard) - x[j]) * boxes.weight[j]
        total += abs(step) if boxes.order == 1 else step * step
        if not total <= limit:
            return np.inf
    return total


@kernel
def _before(boxes: Boxes, a: int, b: int, x: FloatArray) -> bool:
    """Which of two equally costly boxes comes first: by l2 length, then lexicographically."""
    length_a = 0.0
    length_b = 0.0
    for j in range(len(x)):
        step_a = (_coordinate(boxes, a, j, x[j], 0.0) - x[j]) * boxes.weight[j]
        step_b = (_coordinate(boxes, b, j, x[j], 0.0) - x[j]) * boxes.weight[j]
        length_a += step_a * step_a
        length_b += step_b * step_b
    if abs(length_a - length_b) > TIE * max(length_a, length_b):
        return length_a < length_b
    room = 0.0
    for j in range(len(x)):
        room = max(room, TIE * abs(_coordinate(boxes, a, j, x[j], 0.0) - x[j]))
    for j in range(len(x)):
        apart = _coordinate(boxes, a, j, x[j], 0.0) - _coordinate(boxes, b, j, x[j], 0.0)
        if abs(apart) > room:
            return bool(apart < 0.0)
    return False


@entry
def nearest_box(
    boxes: Boxes,
    X: FloatArray,
    guard: float,
    cutoff: FloatArray,
    points: FloatArray,
    cost: FloatArray,
    bound: FloatArray,
    piece: npt.NDArray[np.int64],
    outcome: npt.NDArray[np.int64],
) -> None:
    """The nearest point of the union of boxes for every row of `X`.

    Which box is nearest is decided without the guard, and so is the bound; the point in it keeps the guard.
    """
    for q in range(len(X)):
        x = X[q]
        limit = cutoff[q] if boxes.order == 1 else cutoff[q] * cutoff[q]
        best = limit
        chosen = -1
        for k in range(len(boxes.lower)):
            found = _distance(boxes, k, x, 0.0, best + TIE * best if best < np.inf else np.inf)
            if found == np.inf:
                continue
            tied = chosen >= 0 and abs(found - best) <= TIE * max(found, best)
            if _before(boxes, k, chosen, x) if tied else (chosen < 0 or found < best):
                best = found
                chosen = k
        piece[q] = chosen
        if chosen < 0:
            outcome[q] = NOTHING if cutoff[q] == np.inf else PRUNED
            cost[q] = bound[q] = np.inf
            continue
        outcome[q] = FOUND
        total = 0.0
        for j in range(len(x)):
            points[q, j] = _coordinate(boxes, chosen, j, x[j], guard)
            step = (points[q, j] - x[j]) * boxes.weight[j]
            total += abs(step) if boxes.order == 1 else step * step
        cost[q] = total if boxes.order == 1 else np.sqrt(total)
        bound[q] = best if boxes.order == 1 else np.sqrt(best)
