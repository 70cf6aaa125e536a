"""Decision trees: the region of a label is one box per leaf."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.tree import DecisionTreeClassifier

from evenhand.models.base import View, check_fitted, direct_view, view
from evenhand.sets import ConvexSet, Region
from evenhand.types import FloatArray


@view.register(DecisionTreeClassifier)
def _tree(model: Any) -> View:
    check_fitted(model)
    if model.n_outputs_ != 1:
        raise TypeError(
            f"{type(model).__name__} was fitted with {model.n_outputs_} outputs per row; a region belongs to one "
            "label. Fit it with y of shape (n_samples,), once per output."
        )
    leaves, lower, upper = _leaf_boxes(model.tree_)
    winners = model.tree_.value[leaves, 0].argmax(axis=1)
    dim = int(model.n_features_in_)
    return direct_view(model, partial(_leaves_of, dim, lower, upper, winners))


def _leaves_of(dim: int, lower: FloatArray, upper: FloatArray, winners: npt.NDArray[np.intp], k: int) -> Region:
    return Region(tuple(ConvexSet(dim, lower[i], upper[i]) for i in np.flatnonzero(winners == k)), dim)


def split_sides(thresholds: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Last number that goes left and first number that goes right at each threshold.

    A tree rounds its inputs to float32 and sends them left where ``float32(x) <= threshold``.
    The border therefore is not the threshold, but half-way between two neighbours in float32,
    and whether that point itself goes left is up to rounding half to even.

    Parameters
    ----------
    thresholds : array-like of shape (n_thresholds,)

    Returns
    -------
    left, right : arrays of shape (n_thresholds,)
        Neighbours in float64; infinite where no finite number is on the other side.

    Examples
    --------
    >>> left, right = split_sides([0.0])
    >>> bool(left[0] > 0.0), float(np.float32(left[0])), bool(np.float32(right[0]) > 0.0)
    (True, 0.0, True)
    """
    limits = np.asarray(thresholds, dtype=np.float64)
    with np.errstate(over="ignore"):  # beyond the range of float32 infinity is what is meant
        below = limits.astype(np.float32)
        below = np.where(below > limits, np.nextafter(below, np.float32(-np.inf)), below)
        above = np.nextafter(below, np.float32(np.inf))
        # Exact: float64 has room for one more bit, also next to zero.
        middle = (below.astype(np.float64) + above.astype(np.float64)) / 2
        left = np.where(middle.astype(np.float32) <= limits, middle, np.nextafter(middle, -np.inf))
    # float32 has no finite number beyond its largest: inputs out there are refused by predict.
    left = np.where(below == -np.inf, -np.inf, np.where(above == np.inf, np.inf, left))
    right = np.where(np.isinf(left), left, np.nextafter(left, np.inf))
    return left, right


def _leaf_boxes(tree: Any) -> tuple[npt.NDArray[np.intp], FloatArray, FloatArray]:
    """Leaves that some finite input reaches, with the closed box of each."""
    left, right = split_sides(tree.threshold)
    dim = int(tree.n_features)
    leaves, lowers, uppers = [], [], []
    pending = [(0, np.full(dim, -np.inf), np.full(dim, np.inf))]
    while pending:
        node, lower, upper = pending.pop()
        if (lower > upper).any() or (lower == np.inf).any() or (upper == -np.inf).any():
            continue
        if tree.children_left[node] == tree.children_right[node]:
            leaves.append(node)
            lowers.append(lower)
            uppers.append(upper)
            continue
        j = tree.feature[node]
        below, above = upper.copy(), lower.copy()
        below[j], above[j] = min(upper[j], left[node]), max(lower[j], right[node])
        pending += [(tree.children_right[node], above, upper), (tree.children_left[node], lower, below)]
    return np.array(leaves, dtype=np.intp), np.array(lowers), np.array(uppers)
