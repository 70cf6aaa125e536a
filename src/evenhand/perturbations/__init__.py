"""What could have been different about a person.

Each perturbation is found by its name; :func:`register` adds one from anywhere.
"""

from __future__ import annotations

from evenhand.perturbations.base import Bounds, Perturbation, learned, perturbed
from evenhand.perturbations.columns import Mixed, bound
from evenhand.perturbations.levels import Categorical, Ordered
from evenhand.perturbations.neighbor import Neighbor
from evenhand.perturbations.numbers import Gaussian, Mask, Relative, Uniform
from evenhand.perturbations.records import Count, Rounding
from evenhand.perturbations.registry import PERTURBATIONS, by_name, class_named, parameters_of, register

__all__ = [
    "PERTURBATIONS",
    "Bounds",
    "Categorical",
    "Count",
    "Gaussian",
    "Mask",
    "Mixed",
    "Neighbor",
    "Ordered",
    "Perturbation",
    "Relative",
    "Rounding",
    "Uniform",
    "bound",
    "by_name",
    "class_named",
    "learned",
    "parameters_of",
    "perturbed",
    "register",
]
