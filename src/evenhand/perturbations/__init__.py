"""What could have been different about a person."""

from __future__ import annotations

from evenhand.perturbations.columns import Categorical, Count, Mixed, Ordered, Rounding
from evenhand.perturbations.numbers import Gaussian, Mask, Neighbor, Relative, Uniform

__all__ = [
    "Categorical",
    "Count",
    "Gaussian",
    "Mask",
    "Mixed",
    "Neighbor",
    "Ordered",
    "Relative",
    "Rounding",
    "Uniform",
]
