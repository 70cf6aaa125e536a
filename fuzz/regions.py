"""The regions of models as lists of halfspaces, and the nearest points in them: linear programs and least distances.

Everything is read off a fitted pipeline by asking it: what it does to numbers is affine, its last step has weights,
prototypes or thresholds.  Nothing here is exact to the last bit, and need not be: what is found counts only if the
model's own predict confirms it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import linprog, nnls


def affine(steps: Any, x: np.ndarray, spread: np.ndarray, as_table: Any) -> tuple[np.ndarray, np.ndarray]:
    """What a pipeline makes of a person, and how that moves with each column."""
    if steps is None:
        return x.copy(), np.eye(len(x))
    moves = np.diag(2.0 ** np.round(np.log2(spread)))
    seen = steps.transform(as_table(np.vstack([x, x + moves, x - moves])))
    seen = np.asarray(seen.toarray() if hasattr(seen, "toarray") else seen, dtype=float)
    d = len(x)
    return seen[0], ((seen[1 : d + 1] - seen[d + 1 :]) / (2.0 * np.diag(moves)[:, None])).T


def pieces(last: Any, label: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Halfspaces G z <= h, whose intersections make up where the last step says a label."""
    if hasattr(last, "tree_"):
        yield from _leaves(last, label)
    elif hasattr(last, "coef_"):
        W, b = np.atleast_2d(last.coef_), np.atleast_1d(last.intercept_)
        if len(W) == 1:
            W, b = np.vstack([-W / 2, W / 2]), np.append(-b / 2, b / 2)
        k = list(last.classes_).index(label)
        others = np.arange(len(W)) != k
        yield W[others] - W[k], b[k] - b[others]
    else:
        points, owner = prototypes(last)
        omega = getattr(last, "omega_", np.eye(points.shape[1]))
        seen = points @ omega.T
        for p in np.flatnonzero(owner == label):
            rest = np.flatnonzero(owner != label)
            # |s - q|^2 >= |s - p|^2 for all others q
            G = 2.0 * (seen[rest] - seen[p])
            h = (seen[rest] ** 2).sum(axis=1) - (seen[p] ** 2).sum()
            yield G @ omega, h


def prototypes(last: Any) -> tuple[np.ndarray, np.ndarray]:
    """Prototypes and their labels."""
    if hasattr(last, "centroids_"):
        return np.asarray(last.centroids_), last.classes_
    if hasattr(last, "_fit_X"):
        return np.asarray(last._fit_X), last.classes_[last._y]
    return np.asarray(last.prototypes_), last.labels_


def _leaves(last: Any, label: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    tree, d = last.tree_, last.n_features_in_
    stack: list[tuple[int, list[np.ndarray], list[float]]] = [(0, [], [])]
    while stack:
        node, G, h = stack.pop()
        left, right = tree.children_left[node], tree.children_right[node]
        if left == right:
            if last.classes_[tree.value[node, 0].argmax()] == label:
                yield np.array(G).reshape(-1, d), np.array(h)
            continue
        row = np.eye(d)[tree.feature[node]]
        side = float(tree.threshold[node])
        stack.append((left, [*G, row], [*h, side]))
        stack.append((right, [*G, -row], [*h, -side]))


def nearest(order: int, G: np.ndarray, h: np.ndarray) -> np.ndarray | None:
    """The shortest u with G u <= h, in l1 or l2; None if there is none, or the solver does not know."""
    length = np.linalg.norm(G, axis=1)
    if (h[length == 0] < 0).any():
        return None
    G, h = G[length > 0] / length[length > 0, None], h[length > 0] / length[length > 0]
    if (h >= 0).all():
        return np.zeros(G.shape[1])
    if order == 1:
        d = G.shape[1]
        found = linprog(np.ones(2 * d), np.hstack([G, -G]), h, method="highs-ds")
        return found.x[:d] - found.x[d:] if found.status == 0 else None
    # Least distance: the residual of a least squares problem with weights >= 0 (Lawson and Hanson).
    E = np.vstack([-G.T, -h[None]])
    goal = np.zeros(len(E))
    goal[-1] = 1.0
    try:
        weights, _ = nnls(E, goal, maxiter=20 * E.shape[1] + 100)
    except RuntimeError:
        return None
    rest = E @ weights - goal
    return None if abs(rest[-1]) < 1e-12 else -rest[:-1] / rest[-1]


def rounding(last: Any) -> float:
    """The part of the numbers involved that predict itself may lose."""
    return 1e-6 if hasattr(last, "centroids_") or hasattr(last, "_fit_X") else 1e-11
