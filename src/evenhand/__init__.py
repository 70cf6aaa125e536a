"""Counterfactual explanations, exact and certified, and how far they can be trusted.

Here are the names of a first day.  Everything else is in the module that is about it: :mod:`evenhand.perturbations`,
:mod:`evenhand.costs`, :mod:`evenhand.sets`, :mod:`evenhand.models`, :mod:`evenhand.projection`,
:mod:`evenhand.displays`, :mod:`evenhand.theory`, :mod:`evenhand.auditing`.
"""

from __future__ import annotations

from evenhand import auditing, costs, displays, models, perturbations, projection, sets, theory
from evenhand.auditing import audit
from evenhand.costs import L1, L2, Gower
from evenhand.density import HighDensity
from evenhand.explaining.explainer import Explainer
from evenhand.explaining.explanations import Explanations
from evenhand.methods import Closest, External, Penalized, Plausible, Steady
from evenhand.models import GLVQ, GMLVQ
from evenhand.perturbations import Gaussian, Mask, Mixed, Neighbor, Relative, Uniform
from evenhand.stability.certificate import certify
from evenhand.stability.comparison import compare
from evenhand.stability.instability import instability
from evenhand.stability.worst_case import worst_case
from evenhand.status import Status
from evenhand.table.actionable import Actionable, IfChanges, RisesWith
from evenhand.table.column import Column
from evenhand.table.schema import Schema

__version__ = "0.1.0"

__all__ = [
    "GLVQ",
    "GMLVQ",
    "L1",
    "L2",
    "Actionable",
    "Closest",
    "Column",
    "Explainer",
    "Explanations",
    "External",
    "Gaussian",
    "Gower",
    "HighDensity",
    "IfChanges",
    "Mask",
    "Mixed",
    "Neighbor",
    "Penalized",
    "Plausible",
    "Relative",
    "RisesWith",
    "Schema",
    "Status",
    "Steady",
    "Uniform",
    "audit",
    "certify",
    "compare",
    "instability",
    "worst_case",
]

_MODULES = (auditing, costs, displays, models, perturbations, projection, sets, theory)


def __getattr__(name: str) -> object:
    """Say where a name is that is not here."""
    home = next((module.__name__ for module in _MODULES if name in getattr(module, "__all__", ())), None)
    hint = f" It is in {home}: from {home} import {name}." if home is not None else ""
    raise AttributeError(f"module 'evenhand' has no attribute {name!r}.{hint}")
