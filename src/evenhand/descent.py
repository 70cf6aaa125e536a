"""From real people with the target towards a person, column by column, as long as the model keeps its answer.

Needs nothing but predictions, many at a time: a forest answers a thousand rows about as fast as one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from evenhand.costs import Cost
from evenhand.types import FloatArray

SHARES = (1.0, 0.5, 0.2, 0.05)  # of the way back that a column is tried to go
STEPS = 100  # at most
HALVINGS = 30  # of the line to the person
ROWS = 50_000  # for the model at a time
BETTER = 1e-9  # a relative improvement that counts

Valid = Callable[[FloatArray], npt.NDArray[np.bool_]]
Snap = Callable[[FloatArray, FloatArray], FloatArray]


def descend(X: FloatArray, starts: FloatArray, valid: Valid, cost: Cost, snap: Snap) -> FloatArray:
    """For each person the cheapest point that was found; NaN where no start has the target.

    Parameters
    ----------
    X : array of shape (n, d)
        People.
    starts : array of shape (n, r, d)
        Points to begin from; those without the target are left out.
    valid : callable
        Whether rows have the target.
    cost : Cost
        What is to become small.
    snap : callable
        ``snap(points, people)`` puts points back into what may change.
    """
    found = np.full(X.shape, np.nan)
    each = max(1, starts.shape[1] * X.shape[1] * len(SHARES))
    step = max(1, ROWS // each)
    for first in range(0, len(X), step):
        part = slice(first, first + step)
        found[part] = _block(X[part], starts[part], valid, cost, snap)
    return found


def _block(X: FloatArray, starts: FloatArray, valid: Valid, cost: Cost, snap: Snap) -> FloatArray:
    best = np.full(X.shape, np.nan)
    owner = np.repeat(np.arange(len(X)), starts.shape[1])
    points = snap(starts.reshape(-1, X.shape[1]), X[owner])
    good = valid(points) if len(points) else np.zeros(0, dtype=bool)
    owner, points = owner[good], points[good]
    if not len(points):
        return best
    points = _pulled(X[owner], points, valid, snap)
    active = np.arange(len(points))
    for _ in range(STEPS):
        moved = _step(X[owner[active]], points[active], valid, cost, snap)
        active = active[~np.isnan(moved[:, 0])]
        points[active] = moved[~np.isnan(moved[:, 0])]
        if not len(active):
            break
    points = _pulled(X[owner], points, valid, snap)
    price = cost(points, X[owner])
    for i in np.argsort(-price, kind="stable"):  # the cheapest is entered last
        best[owner[i]] = points[i]
    return best


def _step(X: FloatArray, points: FloatArray, valid: Valid, cost: Cost, snap: Snap) -> FloatArray:
    """The best change of a single column that keeps the target and costs less; NaN without one."""
    m, d = points.shape
    tried = np.repeat(points[:, None], d * len(SHARES), axis=1)
    columns = np.repeat(np.arange(d), len(SHARES))
    share = np.tile(np.array(SHARES), d)
    which = np.arange(d * len(SHARES))
    tried[:, which, columns] += share * (X - points)[:, columns]
    flat = snap(tried.reshape(-1, d), np.repeat(X, d * len(SHARES), axis=0))
    price = cost(flat, np.repeat(X, d * len(SHARES), axis=0)).reshape(m, -1)
    now = cost(points, X)
    cheaper = price < (now * (1 - BETTER))[:, None]
    keeps = np.zeros(cheaper.size, dtype=bool)
    asked = np.flatnonzero(cheaper.ravel())
    if len(asked):
        keeps[asked] = valid(flat[asked])
    price = np.where(keeps.reshape(m, -1), price, np.inf)
    chosen = price.argmin(axis=1)
    moved = flat.reshape(m, -1, d)[np.arange(m), chosen]
    none = ~np.isfinite(price[np.arange(m), chosen])
    return np.where(none[:, None], np.nan, moved)


def _pulled(X: FloatArray, points: FloatArray, valid: Valid, snap: Snap) -> FloatArray:
    """As near to the people as their lines to them allow, by halving."""
    near, far = np.zeros(len(points)), np.ones(len(points))
    best = points
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        at = snap(X + middle[:, None] * (points - X), X)
        inside = valid(at)
        best = np.where(inside[:, None], at, best)
        far, near = np.where(inside, middle, far), np.where(inside, near, middle)
    return best
