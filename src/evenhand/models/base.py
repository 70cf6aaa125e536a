"""What the rest of the package knows about a model: labels, predictions, regions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from evenhand.sets import Affine, Region
from evenhand.table.people import as_table
from evenhand.types import FloatArray

SUPPORTED = (
    "linear classifiers (LogisticRegression, RidgeClassifier, LinearSVC, SGDClassifier, Perceptron, "
    "LinearDiscriminantAnalysis), DecisionTreeClassifier, GLVQ, GMLVQ, NearestCentroid, "
    "KNeighborsClassifier(n_neighbors=1), and a Pipeline that ends in one of them"
)


CHANGED = 1e-9  # a feature whose change is a smaller part of it has not changed


class Predictor:
    """What every method has to know of a model: its labels, its columns, and what it predicts.

    Attributes
    ----------
    model : estimator
        The user's own model, untouched; :meth:`predict` asks it and nobody else.
    classes : array
        The labels, in the model's order.
    feature_names : tuple of str or None
        Names of the raw columns, if the model was fitted with names.
    """

    model: Any
    classes: npt.NDArray[Any]
    feature_names: tuple[str, ...] | None

    @property
    def n_features(self) -> int:
        """Number of raw input columns."""
        raise NotImplementedError

    def table(self, X: FloatArray) -> FloatArray | pd.DataFrame:
        """`X` in the form that the model was fitted with: named columns, or an array."""
        if self.feature_names is None:
            return X
        return pd.DataFrame(X, columns=list(self.feature_names), copy=False)

    def predict(self, X: FloatArray) -> npt.NDArray[Any]:
        """What the user's own model predicts for each row."""
        return np.asarray(self.model.predict(self.table(X)))

    def columns(self, X: Any) -> Any:
        """`X` with its columns in the model's order, if both have names; checked, not converted."""
        if not isinstance(X, pd.DataFrame):
            return X
        wrong = [str(name) for name, kind in X.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]
        if wrong:
            raise ValueError(f"Columns {', '.join(wrong)} are not numeric; encode or leave them out.")
        if self.feature_names is None:
            return X
        missing = [name for name in self.feature_names if name not in X.columns]
        extra = [str(name) for name in X.columns if name not in self.feature_names]
        if missing or extra or X.columns.has_duplicates:
            fitted_with = ", ".join(map(str, self.feature_names))
            raise ValueError(
                f"The table's columns are not the model's. Missing: {', '.join(map(str, missing)) or 'none'}. "
                f"Unknown: {', '.join(extra) or 'none'}. The model was fitted with: {fitted_with}."
            )
        return X[list(self.feature_names)]

    def read(self, X: Any) -> FloatArray:
        """People as rows of numbers, in the model's order of columns."""
        return as_table(self.columns(X), self.n_features)

    def change(self, x: FloatArray, cf: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """What people are told, and which columns change: a smaller part than rounding has not changed."""
        told = cf - x
        size = np.abs(told)
        room = np.maximum(CHANGED * np.abs(x), 1e-12 * size.max(axis=-1, initial=0.0, keepdims=True))
        return told, size > room

    def positions(self, labels: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Position in `classes` of each label; -1 for one that the model does not know."""
        found = np.full(len(labels), -1, dtype=np.int64)
        for k, known in enumerate(self.classes.tolist()):
            found[labels == known] = k
        return found

    def index(self, label: object) -> int:
        """Position of a label in `classes`."""
        found = np.flatnonzero(self.classes == label) if np.ndim(label) == 0 else np.zeros(0)  # type: ignore[arg-type]
        if len(found) != 1:
            raise ValueError(f"Unknown label {label!r}; the model knows {self.classes.tolist()}.")
        return int(found[0])


@dataclass(frozen=True, eq=False)
class Blackbox(Predictor):
    """A model of which nothing is known but what it predicts; :func:`blackbox` makes it."""

    model: Any
    classes: npt.NDArray[Any]
    width: int
    feature_names: tuple[str, ...] | None = None

    @property
    def n_features(self) -> int:
        """Number of raw input columns."""
        return self.width


def blackbox(model: Any, X: Any = None) -> Blackbox:
    """Any fitted model with a ``predict``; what it does not say of itself is learned from a table.

    Parameters
    ----------
    model : object with ``predict``
        If it has ``classes_``, ``n_features_in_`` and ``feature_names_in_``, they are used.
    X : table, optional
        People in the model's raw inputs.
    """
    if not callable(getattr(model, "predict", None)):
        raise TypeError(
            f"{type(model).__name__} has no predict method. Pass a fitted classifier, or an object whose predict(X) "
            "returns one label per row."
        )
    if hasattr(model, "fit"):
        check_fitted(model)
    width = getattr(model, "n_features_in_", None)
    if width is None:
        if X is not None and np.ndim(X) != 2:
            raise ValueError(f"Expected a table of people, one row each, got shape {np.shape(X)}.")
        width = None if X is None else np.shape(X)[1]
    labels = getattr(model, "classes_", None)
    if labels is None and X is not None:
        labels = np.unique(np.asarray(model.predict(X)))
    if width is None or labels is None:
        missing = "n_features_in_" if width is None else "classes_"
        raise ValueError(
            f"{type(model).__name__} has no {missing}: pass a table of people, fit(model, X), to learn it from."
        )
    names = getattr(model, "feature_names_in_", None)
    if names is None and isinstance(X, pd.DataFrame) and not hasattr(model, "n_features_in_"):
        names = X.columns  # a model that says nothing of itself gets tables like the one that it was shown
    return Blackbox(model, np.asarray(labels), int(width), None if names is None else tuple(names))


@dataclass(frozen=True, eq=False)
class ModelView(Predictor):
    """A fitted classifier as a function ``label -> region``, in raw inputs.

    Attributes
    ----------
    model : estimator
        The user's own model, untouched; :meth:`predict` asks it and nobody else.
    classes : array
        The labels, in the model's order.
    encode : Affine
        From the raw inputs to the space of the model's last step.
    latent : callable
        ``latent(k)`` is the region of ``classes[k]`` in the space of the last step.
    feature_names : tuple of str or None
        Names of the raw columns, if the model was fitted with names.
    """

    model: Any
    classes: npt.NDArray[Any]
    encode: Affine
    latent: Callable[[int], Region]
    feature_names: tuple[str, ...] | None = None
    _regions: dict[int, Region] = field(default_factory=dict, repr=False)

    @property
    def n_features(self) -> int:
        """Number of raw input columns."""
        return int(self.encode.matrix.shape[1])

    def region(self, label: object) -> Region:
        """Where the model predicts `label`, in raw inputs."""
        k = self.index(label)
        if k not in self._regions:
            self._regions[k] = self.latent(k).pullback(self.encode)
        return self._regions[k]


@singledispatch
def view(model: object) -> ModelView:
    """A fitted scikit-learn classifier or pipeline as a function ``label -> region``.

    Parameters
    ----------
    model : fitted classifier
        One of the supported kinds; a model that is not fitted raises
        ``sklearn.exceptions.NotFittedError``.

    Returns
    -------
    ModelView

    Raises
    ------
    TypeError
        For a kind of model that has no region; the message lists those that have.
    """
    raise TypeError(
        f"evenhand has no decision region for {type(model).__name__}. Supported: {SUPPORTED}. "
        "For any other model use Penalized(...).fit(model, X), which searches without a region. "
        "To add a region, write a file with @view.register (CONTRIBUTING, 'How to add a model')."
    )


def check_fitted(model: Any) -> None:
    """Raise ``NotFittedError`` with the next step to take, unless `model` is fitted."""
    check_is_fitted(model, msg="This %(name)s is not fitted yet: call its fit(X, y) first, then pass it here.")


def direct_view(model: Any, latent: Callable[[int], Region]) -> ModelView:
    """View of a fitted classifier that takes the raw inputs as they are."""
    names = getattr(model, "feature_names_in_", None)
    return ModelView(
        model,
        np.asarray(model.classes_),
        Affine.identity(int(model.n_features_in_)),
        latent,
        None if names is None else tuple(names),
    )
