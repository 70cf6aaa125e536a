"""Nearest-prototype classifiers: the region of a label is one cell per prototype of that label."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.spatial import cKDTree
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid

from evenhand.models.base import View, check_fitted, described, direct_view, view
from evenhand.models.linear import dense, polyhedron
from evenhand.models.lvq import GLVQ, GMLVQ
from evenhand.sets import ConvexSet, Region
from evenhand.types import BoolArray, FloatArray

LARGEST_REGION = 1e9  # bytes
SQUARES = 8 * np.finfo(np.float64).eps  # what sums of squares are rounded by, relative to their size
KEPT = 1e-13  # what an answer keeps from a boundary at first, relative to the numbers that meet there


@view.register(GLVQ)
@view.register(GMLVQ)
def _lvq(model: Any) -> View:
    check_fitted(model)
    owner = np.searchsorted(model.classes_, model.labels_)
    return nearest_view(model, model.prototypes_, owner, omega=getattr(model, "omega_", None))


@view.register(NearestCentroid)
def _nearest_centroid(model: Any) -> View:
    check_fitted(model)
    if model.metric != "euclidean":
        raise TypeError(
            f"evenhand has no decision region for NearestCentroid(metric={model.metric!r}): its cells are not convex. "
            "Refit it with metric='euclidean'."
        )
    priors, n_classes = np.asarray(model.class_prior_), len(model.classes_)
    centroids, owner = np.asarray(model.centroids_), np.arange(n_classes)
    # The same test as in NearestCentroid.predict: with equal priors it measures in the units of
    # the inputs, with others in standard deviations.
    if np.isclose(priors, 1 / n_classes).all():
        return nearest_view(model, centroids, owner, squares=True)
    deviation = np.asarray(model.within_class_std_dev_, dtype=np.float64)
    with np.errstate(divide="ignore"):  # log 0 = -inf: a label that is never predicted
        bias = 2.0 * np.log(priors)
    return nearest_view(
        model,
        centroids,
        owner,
        omega=np.diag(1.0 / np.where(deviation == 0, 1.0, deviation)),
        bias=bias,
        squares=True,
    )


described(KNeighborsClassifier, "KNeighborsClassifier(n_neighbors=1)")


@view.register(KNeighborsClassifier)
def _nearest_neighbor(model: Any) -> View:
    check_fitted(model)
    metric = model.effective_metric_
    if model.n_neighbors != 1 or metric not in ("euclidean", "l2", "sqeuclidean") or callable(model.weights):
        raise TypeError(
            f"evenhand has no decision region for KNeighborsClassifier(n_neighbors={model.n_neighbors}, "
            f"metric={metric!r}, weights={model.weights!r}). Supported: n_neighbors=1 with the Euclidean metric and "
            "weights 'uniform' or 'distance'. Refit it with n_neighbors=1, or use GLVQ."
        )
    if model.outputs_2d_:
        raise TypeError(
            "KNeighborsClassifier was fitted with several outputs per row; a region belongs to one label. "
            "Fit it with y of shape (n_samples,), once per output."
        )
    points = dense(model._fit_X)
    owner = np.asarray(model._y).ravel()
    first = model._fit_method == "brute" and model._fit_X.dtype == np.float64 and not sparse.issparse(model._fit_X)
    search = f"{model._fit_method!r} over {'sparse ' if sparse.issparse(model._fit_X) else ''}{model._fit_X.dtype}"
    kept = _distinct(points, owner, search, first_wins=first)
    return nearest_view(model, points[kept], owner[kept], squares=model._fit_method == "brute")


def nearest_view(
    model: Any,
    prototypes: FloatArray,
    owner: npt.NDArray[np.intp],
    omega: FloatArray | None = None,
    bias: FloatArray | None = None,
    *,
    squares: bool = False,
) -> View:
    """View of a model that predicts the label of the prototype with the largest score.

    The score of prototype `i` is ``bias[i] - ||omega @ (x - prototypes[i])||^2``; of equal
    scores the first wins.  All share `omega`, so the squares in ``x`` cancel and cells are
    polyhedra.

    Parameters
    ----------
    model : fitted classifier
        With ``classes_`` and ``n_features_in_``.
    prototypes : array of shape (n_prototypes, dim)
    owner : array of int of shape (n_prototypes,)
        Index into ``classes_`` of each prototype.
    omega : array of shape (n_rows, dim), optional
        Identity if left out.
    bias : array of shape (n_prototypes,), optional
        Zero if left out; ``-inf`` for a prototype that never wins.
    squares : bool
        Whether the model computes ``|x|^2 - 2 x p + |p|^2``, which far from zero loses what tells prototypes apart.

    Returns
    -------
    View
    """
    points = np.asarray(prototypes, dtype=np.float64)
    extra = np.zeros(len(points)) if bias is None else bias
    alive = np.flatnonzero(extra > -np.inf)
    dim = points.shape[1]
    counts = np.bincount(owner[alive])
    worst = int((counts * (len(alive) - counts)).argmax())
    check_size(int(counts[worst]), int(len(alive) - counts[worst]), dim, type(model).__name__)

    coarse = None
    if squares:
        turned = points[alive] if omega is None else points[alive] @ omega.T
        coarse = partial(_coarse, turned, owner[alive], omega)
    return direct_view(model, partial(_cells, points, owner, omega, extra, squares), coarse)


def _coarse(points: FloatArray, owner: npt.NDArray[np.intp], omega: FloatArray | None, Z: FloatArray) -> BoolArray:
    """Where squares lose more of the distance to a boundary than an answer keeps."""
    turned = Z if omega is None else Z @ omega.T
    largest = np.square(points).sum(axis=1).max(initial=0.0)
    closest = min((_nearest(points[owner == k], points[owner != k]) for k in np.unique(owner)), default=np.inf)
    if closest == np.inf:
        return np.zeros(len(Z), dtype=bool)
    lost = SQUARES * (np.square(turned).sum(axis=1) + largest)
    kept = KEPT * np.abs(turned).mean(axis=1)
    return np.asarray(lost > 2.0 * closest * kept + np.finfo(float).tiny)


def _nearest(a: FloatArray, b: FloatArray) -> float:
    """The smallest distance between the rows of two tables."""
    return float(np.min(cKDTree(b).query(a)[0])) if len(a) and len(b) else np.inf


def _cells(
    points: FloatArray,
    owner: npt.NDArray[np.intp],
    omega: FloatArray | None,
    bias: FloatArray,
    squares: bool,
    k: int,
) -> Region:
    """Where a prototype of the k-th label has the largest score, one piece for each of them."""
    alive = np.flatnonzero(bias > -np.inf)
    cells = (_cell(points, owner, omega, bias, squares, alive, int(i)) for i in alive[owner[alive] == k])
    return Region(tuple(piece for piece in cells if piece is not None), points.shape[1])


def _cell(
    points: FloatArray,
    owner: npt.NDArray[np.intp],
    omega: FloatArray | None,
    bias: FloatArray,
    squares: bool,
    alive: npt.NDArray[np.intp],
    i: int,
) -> ConvexSet | None:
    """Where the i-th prototype beats those of other labels."""
    rivals = alive[owner[alive] != owner[i]]
    apart = points[rivals] - points[i]
    if omega is not None:
        apart = apart @ omega.T
    # Rows of size one, so that neither tiny nor huge units under- or overflow below.
    size = np.abs(apart).max(axis=1, initial=0.0)
    size[size == 0] = 1.0
    apart /= size[:, None]
    G = apart if omega is None else apart @ omega
    middle = points[rivals] / 2 + points[i] / 2
    h = np.einsum("ij,ij->i", G, middle) + (bias[i] - bias[rivals]) / 2 / size
    mass = (np.abs(bias[i]) + np.abs(bias[rivals])) / 2 / size
    if squares:
        turned = points if omega is None else points @ omega.T
        square = np.einsum("ij,ij->i", turned, turned)
        mass += 2.0 * (square[i] + square[rivals]) / size  # and those of a person, who is not far from here
    return polyhedron(G, h, i < rivals, mass)


def check_size(cells: int, rows: int, dim: int, name: str) -> None:
    """Refuse a region that would not fit into memory.

    Parameters
    ----------
    cells : int
        Number of pieces.
    rows : int
        Halfspaces in each of them.
    dim : int
        Number of columns.
    name : str
        What the region belongs to, for the message.
    """
    size = 8.0 * cells * rows * dim
    if size > LARGEST_REGION:
        raise ValueError(
            f"A region of {name} needs {cells} cells x {rows} rows x {dim} columns = {size / 1e9:.1f} GB, more than "
            f"{LARGEST_REGION / 1e9:g} GB, because each prototype or training point is compared with all of the other "
            "labels. Fit the model on fewer training points, or replace them with prototypes (GLVQ)."
        )


def _distinct(
    points: FloatArray, owner: npt.NDArray[np.intp], search: str, *, first_wins: bool
) -> npt.NDArray[np.intp]:
    """Training points without repetitions, in their order; `search` is how the model looks for the nearest."""
    # Adding zero makes -0.0 the same as 0.0.
    _, first, group = np.unique(points + 0.0, axis=0, return_index=True, return_inverse=True)
    earlier = first[group.ravel()]
    disputed = np.flatnonzero(owner != owner[earlier])
    if len(disputed) and not first_wins:
        # Brute force over a table of doubles takes the first of equal distances, over other numbers and sparse tables
        # any of them; a tree takes the one that it meets first, and that depends on where the query comes from.
        raise ValueError(
            f"{len(disputed)} training points of KNeighborsClassifier repeat an earlier point with another label "
            f"(rows {earlier[disputed[0]]} and {disputed[0]}, for example), and with the search by {search} it "
            "depends on the query which of them decides. Remove the repetitions, or refit with "
            "algorithm='brute' to a dense table of float64, which always takes the first."
        )
    return np.sort(first)
