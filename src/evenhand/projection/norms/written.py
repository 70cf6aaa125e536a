"""From changes of variables back to points, and what these cost: in one pass over memory."""

from __future__ import annotations

import numpy as np

from evenhand.projection._numba import entry
from evenhand.types import FloatArray


@entry
def write_points(
    order: int, X: FloatArray, xi: FloatArray, scale: FloatArray, weight: FloatArray, points: FloatArray,
    cost: FloatArray,
) -> None:  # fmt: skip
    """Write the points that the changes `xi` of the rows of `X` lead to, and what they cost as they are written.

    A point is rounded: its cost is not quite that of `xi`.  Rows whose cost is infinite have no point and stay.
    `weight` is 1 / `scale`.
    """
    for i in range(len(X)):
        x, point = X[i], points[i]
        if not cost[i] < np.inf:
            for j in range(len(x)):
                point[j] = x[j]
            continue
        total = 0.0
        for j in range(len(x)):
            point[j] = x[j] + xi[i, j] * scale[j]
            step = (point[j] - x[j]) * weight[j]
            total += abs(step) if order == 1 else step * step
        cost[i] = total if order == 1 else np.sqrt(total)
