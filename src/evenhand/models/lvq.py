"""Learning vector quantization: classifiers that answer with the label of the nearest prototype.

:class:`GLVQ` measures with the Euclidean metric, :class:`GMLVQ` learns one global linear map besides; their regions
are in :mod:`evenhand.models.prototypes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from evenhand.models.quantization import LVQ

if TYPE_CHECKING:
    from typing import Self


class GLVQ(LVQ):
    """Generalized learning vector quantization: the nearest prototype in Euclidean distance decides.

    Parameters
    ----------
    prototypes_per_class : int, default=1
        Number of prototypes of each class; a class with fewer distinct samples gets one for each of those.
    max_iter : int, default=500
        Largest number of L-BFGS iterations.
    tol : float, default=1e-5
        Training stops when an iteration lowers the cost, a number between -1 and 1, by no more than this.
    random_state : int, RandomState or None, default=None
        Seed of the starting point; the same seed gives the same model.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    prototypes_ : array of shape (n_prototypes, n_features)
        The prototypes, in the units of the inputs.
    labels_ : array of shape (n_prototypes,)
        Label of each prototype.
    n_features_in_, feature_names_in_
        Number of features, and their names if the inputs had names.
    n_iter_ : int
        Number of iterations; 0 for a model from :meth:`from_prototypes`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GLVQ(random_state=0).fit(X, y)
    >>> model.prototypes_.shape
    (3, 4)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _learns_omega = False

    @classmethod
    def from_prototypes(cls, prototypes: npt.ArrayLike, labels: npt.ArrayLike) -> Self:
        """Build a fitted estimator from prototypes that were trained elsewhere.

        Parameters
        ----------
        prototypes : array-like of shape (n_prototypes, n_features)
            Finite numbers; the columns of a data frame become the feature names.
        labels : array-like of shape (n_prototypes,)
            Label of each prototype, at least two different ones.

        Examples
        --------
        >>> model = GLVQ.from_prototypes([[0.0, 0.0], [4.0, 0.0]], ["left", "right"])
        >>> model.predict([[1.0, 5.0], [3.0, 5.0]]).tolist()
        ['left', 'right']
        """
        return cls._fitted(prototypes, labels)


class GMLVQ(LVQ):
    r"""Generalized matrix LVQ: the nearest prototype decides, in a metric that is learned too.

    The squared distance is :math:`\|\Omega (x - p)\|^2`, with one matrix :math:`\Omega` for all prototypes.
    Training starts from the metric of the standardised features.

    Parameters
    ----------
    prototypes_per_class, max_iter, tol, random_state
        As for :class:`GLVQ`; a smaller `max_iter` keeps the metric nearer to its start.

    Attributes
    ----------
    omega_ : array of shape (n_features, n_features)
        The metric, scaled so that ``trace(omega_.T @ omega_)`` is 1.  The column of a feature that was
        constant in training is zero.
    classes_, prototypes_, labels_, n_features_in_, feature_names_in_, n_iter_
        As for :class:`GLVQ`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = GMLVQ(random_state=0).fit(X, y)
    >>> round(float((model.omega_**2).sum()), 6)
    1.0
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _learns_omega = True

    @classmethod
    def from_prototypes(cls, prototypes: npt.ArrayLike, labels: npt.ArrayLike, omega: npt.ArrayLike) -> Self:
        """Build a fitted estimator from prototypes and a metric that were trained elsewhere.

        Parameters
        ----------
        prototypes, labels : array-like
            As for :meth:`GLVQ.from_prototypes`.
        omega : array-like of shape (n_rows, n_features)
            The metric, kept as it is: any number of rows, any scale, but not all zero.

        Examples
        --------
        >>> model = GMLVQ.from_prototypes([[0.0, 0.0], [4.0, 4.0]], ["low", "high"], [[0.0, 1.0]])
        >>> model.predict([[9.0, 1.0], [0.0, 3.0]]).tolist()
        ['low', 'high']
        """
        model = cls._fitted(prototypes, labels)
        model.omega_ = check_array(omega, dtype=np.float64, copy=True, input_name="omega")
        if model.omega_.shape[1] != model.n_features_in_ or not model.omega_.any():
            raise ValueError(
                f"omega must have one column for each of {model.n_features_in_} features and not be all zero, "
                f"got shape {model.omega_.shape} and largest entry {np.abs(model.omega_).max()}."
            )
        return model
