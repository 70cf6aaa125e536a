"""Counterfactual explanations, exact and certified, and how far they can be trusted.

Here are the names of a first day.  Everything else is in the module that is about it: :mod:`evenhand.perturbations`,
:mod:`evenhand.costs`, :mod:`evenhand.sets`, :mod:`evenhand.models`, :mod:`evenhand.projection`,
:mod:`evenhand.displays`, :mod:`evenhand.theory`, :mod:`evenhand.auditing`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand import auditing as auditing
    from evenhand import costs as costs
    from evenhand import displays as displays
    from evenhand import models as models
    from evenhand import perturbations as perturbations
    from evenhand import projection as projection
    from evenhand import sets as sets
    from evenhand import theory as theory
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

# Loaded when they are first used: a command that only prints its help need not wait for compilers and solvers.
_HOMES = {
    "GLVQ": "evenhand.models",
    "GMLVQ": "evenhand.models",
    "L1": "evenhand.costs",
    "L2": "evenhand.costs",
    "Actionable": "evenhand.table.actionable",
    "Closest": "evenhand.methods",
    "Column": "evenhand.table.column",
    "Explainer": "evenhand.explaining.explainer",
    "Explanations": "evenhand.explaining.explanations",
    "External": "evenhand.methods",
    "Gaussian": "evenhand.perturbations",
    "Gower": "evenhand.costs",
    "HighDensity": "evenhand.density",
    "IfChanges": "evenhand.table.actionable",
    "Mask": "evenhand.perturbations",
    "Mixed": "evenhand.perturbations",
    "Neighbor": "evenhand.perturbations",
    "Penalized": "evenhand.methods",
    "Plausible": "evenhand.methods",
    "Relative": "evenhand.perturbations",
    "RisesWith": "evenhand.table.actionable",
    "Schema": "evenhand.table.schema",
    "Status": "evenhand.status",
    "Steady": "evenhand.methods",
    "Uniform": "evenhand.perturbations",
    "audit": "evenhand.auditing",
    "certify": "evenhand.stability.certificate",
    "compare": "evenhand.stability.comparison",
    "instability": "evenhand.stability.instability",
    "worst_case": "evenhand.stability.worst_case",
}
_MODULES = ("auditing", "costs", "displays", "models", "perturbations", "projection", "sets", "theory")


def __getattr__(name: str) -> object:
    """Load a name when it is asked for, and say where one is that is not here."""
    if name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
        globals()[name] = found  # asked for once
        return found
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    hint = ""
    if not name.startswith("_"):  # completion and inspection ask for many of those
        modules = [import_module(f"{__name__}.{module}") for module in _MODULES]
        home = next((module.__name__ for module in modules if name in getattr(module, "__all__", ())), None)
        hint = f" It is in {home}: from {home} import {name}." if home is not None else ""
    raise AttributeError(f"module 'evenhand' has no attribute {name!r}.{hint}")


def __dir__() -> list[str]:
    """Also what is not loaded yet."""
    return sorted({*globals(), *__all__, *_MODULES})
