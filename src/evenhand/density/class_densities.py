"""The densities of the classes, as mixtures and as regions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.mixture import GaussianMixture

from evenhand.sets import ConvexSet, Ellipsoid, Paraboloid, Region
from evenhand.table.layout import Layout
from evenhand.types import FloatArray


@dataclass(frozen=True, eq=False)
class ClassDensities:
    """The density of each class, as a mixture and as a region; :meth:`~evenhand.density.HighDensity.fit` makes it.

    Attributes
    ----------
    mixtures, thresholds : mappings of label to GaussianMixture and to float
        The mixtures, and the log densities that bound their regions, in the units of the training points.
    missing : mapping of label to str
        The classes without a density, and why.
    frequency : mapping of label to array, optional
        In a table with levels: logarithms of how frequent each level is.
    layout : Layout, optional
        Of that table.
    """

    mixtures: Mapping[Any, GaussianMixture | None]
    thresholds: Mapping[Any, float]
    missing: Mapping[Any, str]
    frequency: Mapping[Any, FloatArray] = field(default_factory=dict)
    layout: Layout | None = None

    def region(self, label: object) -> Region:
        """Where `label` is dense: one piece, an ellipsoid, per component that reaches the threshold.

        It lies in the space of the training points; in expanded rows, if these were codes.
        """
        if self.layout is not None:
            return self._region_over_levels(label, self.layout)
        mixture = self._mixture(label)
        assert mixture is not None
        squares = 2.0 * (log_peaks(mixture) - self.thresholds[label])
        parts = zip(squares, mixture.means_, mixture.precisions_cholesky_, strict=True)
        ellipsoids = [Ellipsoid(P.T, mean @ P, float(np.sqrt(r2))) for r2, mean, P in parts if r2 >= 0]
        assert ellipsoids  # the threshold lies below a value that one component attains
        return Region(tuple(ConvexSet(e.matrix.shape[1], ellipsoids=(e,)) for e in ellipsoids))

    def _region_over_levels(self, label: object, layout: Layout) -> Region:
        mixture, n = self._mixture(label), len(layout.numbers)
        slope = np.concatenate([np.zeros(n), self.frequency[label]])
        nothing = np.zeros((0, layout.width)), np.zeros(0)
        if mixture is None:
            parts = [Paraboloid(*nothing, -self.thresholds[label], slope)]
        else:
            rooms = log_peaks(mixture) - self.thresholds[label]
            components = zip(rooms, mixture.means_, mixture.precisions_cholesky_, strict=True)
            parts = [
                Paraboloid(np.hstack([P.T, np.zeros((n, layout.width - n))]), mean @ P, float(room), slope)
                for room, mean, P in components
            ]
        return Region(tuple(ConvexSet(layout.width, ellipsoids=(part,)) for part in parts))

    def log_threshold(self, label: object) -> float:
        """Log density that every point of the region of `label` reaches."""
        self._mixture(label)
        return self.thresholds[label]

    def score(self, Z: npt.ArrayLike, label: object) -> FloatArray:
        """Log density of each row of `Z` (n, k) under the whole mixture of `label`, levels included."""
        mixture, points = self._mixture(label), np.asarray(Z, dtype=np.float64)
        if self.layout is None:
            assert mixture is not None
            return np.asarray(mixture.score_samples(points))
        total = self.frequency[label][self.layout.start[:-1] + self.layout.levels(points)].sum(axis=1)
        if mixture is not None:
            total = total + mixture.score_samples(points[:, self.layout.numbers])
        return np.asarray(total)

    def _mixture(self, label: object) -> GaussianMixture | None:
        if label in self.mixtures:
            return self.mixtures[label]
        if label not in self.missing:
            raise ValueError(f"Unknown label {label!r}; the model knows {[*self.mixtures, *self.missing]}.")
        raise ValueError(
            f"Class {label!r} has no density: {self.missing[label]}. Classes with a density: {list(self.mixtures)}. "
            f"Add training points of {label!r}, choose another target, or explain without plausibility."
        )


def log_peaks(mixture: GaussianMixture) -> FloatArray:
    """Log of each component's weighted density at its own mean."""
    diagonals = np.diagonal(mixture.precisions_cholesky_, axis1=1, axis2=2)
    constant = 0.5 * diagonals.shape[1] * np.log(2.0 * np.pi)
    return np.asarray(np.log(mixture.weights_) + np.log(diagonals).sum(axis=1) - constant)


def weighted_log_densities(mixture: GaussianMixture, points: FloatArray) -> FloatArray:
    """Array (n, k) of log w_k + log N_k(z)."""
    parts = zip(mixture.means_, mixture.precisions_cholesky_, strict=True)
    squares = [np.sum(((points - mean) @ P) ** 2, axis=1) for mean, P in parts]
    return np.asarray(log_peaks(mixture) - 0.5 * np.column_stack(squares))
