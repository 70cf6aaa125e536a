"""Linear classifiers: the region of a label is one polyhedron."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

# The mixin has no public name, but it is what all linear classifiers share: they predict by its code.
from sklearn.linear_model._base import LinearClassifierMixin

from evenhand.models.base import View, check_fitted, described, direct_view, view
from evenhand.sets import ConvexSet, Region
from evenhand.types import FloatArray

described(
    LinearClassifierMixin,
    "linear classifiers (LogisticRegression, RidgeClassifier, LinearSVC, SGDClassifier, Perceptron, "
    "LinearDiscriminantAnalysis)",
)


@view.register(LinearClassifierMixin)
def _linear(model: Any) -> View:
    check_fitted(model)
    coef, intercept = _scores(model)
    return direct_view(model, partial(_largest, coef, intercept))


def _largest(coef: FloatArray, intercept: FloatArray, k: int) -> Region:
    """Where the k-th score is the largest; argmax takes the first of equal ones."""
    others = np.delete(np.arange(len(coef)), k)
    mass = np.abs(intercept[k]) + np.abs(intercept[others])
    piece = polyhedron(coef[others] - coef[k], intercept[k] - intercept[others], k < others, mass)
    return Region(() if piece is None else (piece,), coef.shape[1])


def polyhedron(G: FloatArray, h: FloatArray, wins_ties: npt.NDArray[np.bool_], mass: FloatArray) -> ConvexSet | None:
    """The points where one score beats its rivals, ``G x <= h``; None if that is nowhere.

    Parameters
    ----------
    G, h : arrays of shape (n_rivals, dim) and (n_rivals,)
        One row per rival.
    wins_ties : array of bool of shape (n_rivals,)
        Which rivals lose at equal scores.  This matters for a row of zeros only: such a
        rival has the same score everywhere, so that its ties are not a thin boundary.
    mass : array of shape (n_rivals,)
        How large the constants are of which `h` are the differences.

    Returns
    -------
    ConvexSet or None
        Without rows of zeros.
    """
    constant = ~G.any(axis=1)
    if (constant & ((h < 0) | ((h == 0) & ~wins_ties))).any():
        return None
    return ConvexSet(G.shape[1], G=G[~constant], h=h[~constant], mass=mass[~constant])


def dense(values: Any) -> FloatArray:
    """An array of float64, from a sparse matrix too."""
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64)


def _scores(model: Any) -> tuple[FloatArray, FloatArray]:
    """One row of coefficients and one intercept per class; the largest score is predicted."""
    coef = np.atleast_2d(dense(model.coef_))
    intercept = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), len(coef))
    n_classes = len(model.classes_)
    if _is_multilabel(model) or len(coef) != (n_classes if n_classes > 2 else 1):
        raise TypeError(
            f"{type(model).__name__} was fitted with several outputs per row; a region belongs to one label. "
            "Fit it with y of shape (n_samples,), once per output."
        )
    if n_classes == 1:
        return np.zeros((1, coef.shape[1])), np.zeros(1)
    if n_classes == 2:
        # Two classes have one decision function, and classes_[1] needs it to be positive.
        return np.vstack([np.zeros_like(coef), coef]), np.concatenate([[0.0], intercept])
    return coef, intercept


def _is_multilabel(model: Any) -> bool:
    # Only the ridge classifiers take several outputs, and only their label binarizer remembers it.
    kind = getattr(getattr(model, "_label_binarizer", None), "y_type_", "")
    return bool(kind.startswith("multilabel"))
