"""Where the people of a label live: one Gaussian, as far as its middle half."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

CLEAR = 1e-5  # of a log density, which is that much from its threshold
REGULARISED = 1e-6  # what the package adds to variances, in their own units


class Gaussian(NamedTuple):
    """A density with its threshold."""

    mean: np.ndarray
    inverse: np.ndarray
    least: float  # of minus half the squared distance

    @classmethod
    def of(cls, Z: np.ndarray) -> Gaussian | None:
        """Of at least a few people who differ in every coordinate; None of others."""
        if len(Z) < Z.shape[1] + 3 or not (Z.std(axis=0) > 1e-9 * np.abs(Z).max(axis=0)).all():
            return None
        unit = Z.std(axis=0)
        scaled = (Z - Z.mean(axis=0)) / unit
        covariance = scaled.T @ scaled / len(Z) + REGULARISED * np.eye(Z.shape[1])
        inverse = np.linalg.inv(covariance) / np.outer(unit, unit)
        made = cls(Z.mean(axis=0), inverse, 0.0)
        return made._replace(least=float(np.quantile(made.scores(Z), 0.5, method="lower")))

    def scores(self, Z: np.ndarray) -> np.ndarray:
        """Minus half the squared distance from the middle."""
        away = Z - self.mean
        return -0.5 * np.einsum("ij,jk,ik->i", away, self.inverse, away)

    def clearly(self, Z: np.ndarray) -> np.ndarray:
        """Who is inside, and not by rounding."""
        return self.scores(Z) >= self.least + CLEAR * (1.0 + abs(self.least))


def image(steps: Any, as_table: Callable[[np.ndarray], Any], X: np.ndarray) -> np.ndarray:
    """People as the last step of a model sees them."""
    seen = X if steps is None else steps.transform(as_table(X))
    return np.asarray(seen.toarray() if hasattr(seen, "toarray") else seen, dtype=float)
