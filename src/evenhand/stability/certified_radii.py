"""Distances to the pieces of a region and to the labels, and the radii that follow from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.explaining.exact import ExactExplainer
from evenhand.parallel import CHUNK, in_chunks
from evenhand.projection import Projection
from evenhand.projection.solver import GUARD
from evenhand.status import Status
from evenhand.types import FloatArray

ROUNDING = 1e-11  # of a cost, below which a gap does not tell how exact a point is
TIE = 1e-9  # a relative difference of costs that counts as none
ROOM = 1e-9  # a part of a length that is rounding
SAME = 16 * GUARD  # projections of a person that differ by a smaller part of its size are the same


def own_region(explainer: ExactExplainer) -> bool:
    """Whether a person whom the model gives the target is where the explanation would put it anyway."""
    return not explainer.stays or (explainer.whole and not explainer.limits.any)


def distances_to_pieces(
    explainer: ExactExplainer,
    X: FloatArray,
    aim: npt.NDArray[np.int64],
    valid: npt.NDArray[np.bool_],
    told: FloatArray,
    n_jobs: int | None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Per person and piece: a lower bound of the distance, how far the nearest point is from the explanation.

    And, third, by how much that point itself may be off, given its gap.
    """
    regions = {int(k): explainer.region(int(k)) for k in np.unique(aim[valid])}
    width = max((len(region.pieces) for region in regions.values()), default=0)
    distances, jumps = np.full((len(X), width), np.inf), np.zeros((len(X), width))
    room = np.zeros((len(X), width))
    for k in regions:
        rows = np.flatnonzero(valid & (aim == k))
        for i, projector in explainer.projector(k).pieces(X[rows]):

            def work(part: slice, rows: Any = rows, projector: Any = projector) -> Projection:
                found: Projection = projector.project(X[rows[part]], GUARD)
                return found

            for part, found in in_chunks(work, len(rows), n_jobs, CHUNK, None):
                some = rows[part]
                reached = ~np.isnan(found.cost)
                cost = found.cost[reached]
                distances[some[reached], i] = cost - found.gap[reached]
                jumps[some[reached], i] = explainer.cost(found.points[reached], told[some[reached]])
                owed = (
                    0.0 if found.owed is None else found.owed[reached]
                )  # to the guard, which the answer keeps as well
                loose = np.maximum(found.gap[reached] - owed - ROUNDING * cost, 0.0)  # the rest of it is rounding
                room[some[reached], i] = np.sqrt(loose * (2.0 * cost - loose))
                unknown = some[found.status == Status.FAILED]
                distances[unknown, i], jumps[unknown, i] = 0.0, np.inf  # nothing is known, so nothing is excluded
    return distances, jumps, room


def label_radii(
    explainer: ExactExplainer,
    X: FloatArray,
    aim: npt.NDArray[np.int64],
    valid: npt.NDArray[np.bool_],
    n_jobs: int | None,
) -> tuple[FloatArray, FloatArray]:
    """Distance to the nearest region of another label, and to that of the target."""
    view = explainer.view
    present = np.full(len(X), -1)
    present[valid] = view.decide(X[valid])
    other, target = np.full(len(X), np.inf), np.full(len(X), np.inf)
    for k in range(len(view.classes)):
        rows = np.flatnonzero(valid & (present != k))
        if not len(rows):
            continue
        projector = explainer.free_projector(k)
        # A region that is farther away than another one does not matter, unless it is the target's.
        cutoff = np.where(aim[rows] == k, np.inf, other[rows])
        away = np.full(len(rows), np.inf)

        def work(part: slice, rows: Any = rows, cutoff: Any = cutoff, projector: Any = projector) -> Projection:
            found: Projection = projector.project(X[rows[part]], 0.0, cutoff[part])
            return found

        for part, found in in_chunks(work, len(rows), n_jobs, CHUNK, None):
            away[part] = np.where(np.isnan(found.cost), np.inf, found.cost - found.gap) * (1.0 - ROOM)
            away[part][found.status == Status.FAILED] = 0.0
        other[rows] = np.minimum(other[rows], away)
        target[rows] = np.where(aim[rows] == k, away, target[rows])
    if own_region(explainer):
        target[:] = np.inf
    other[~valid] = target[~valid] = np.nan
    return other, target


def stability_radii(
    explainer: ExactExplainer, X: FloatArray, cost: FloatArray, distances: FloatArray, jumps: FloatArray
) -> FloatArray:
    """Half the lead that the best piece has over the next one that would change anything."""
    if not distances.shape[1]:
        return np.full(len(X), np.inf)
    if explainer.cost.order == 2:
        room = ROOM * cost + SAME * explainer.cost(np.nan_to_num(X), np.zeros(X.shape[1]))
        rival = jumps > room[:, None]
    else:
        rival = np.arange(distances.shape[1]) != distances.argmin(axis=1)[:, None]
    nearest = np.where(rival, distances, np.inf).min(axis=1)
    lead = np.where(np.isinf(nearest), np.inf, nearest * (1.0 - 4.0 * TIE) - cost)
    radius: FloatArray = np.maximum(lead, 0.0) / 2.0
    return radius
