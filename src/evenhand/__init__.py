"""Counterfactual explanations, exact and certified, and how far they can be trusted."""

from __future__ import annotations

from evenhand import theory
from evenhand.auditing import Audit, AuditError, audit
from evenhand.costs import L1, L2, Gower
from evenhand.density import HighDensity
from evenhand.displays import CertificateDisplay, ComparisonDisplay, CounterfactualDisplay, InstabilityDisplay
from evenhand.explaining.explainer import Explainer
from evenhand.explaining.explanations import Explanations
from evenhand.methods.closest import Closest
from evenhand.methods.external import External
from evenhand.methods.penalized import Penalized
from evenhand.methods.plausible import Plausible
from evenhand.methods.steady import Steady
from evenhand.models import GLVQ, GMLVQ, View, view
from evenhand.perturbations import (
    Categorical,
    Count,
    Gaussian,
    Mask,
    Mixed,
    Neighbor,
    Ordered,
    Relative,
    Rounding,
    Uniform,
)
from evenhand.projection import Projection, project
from evenhand.sets import Affine, ConvexSet, Ellipsoid, Region
from evenhand.stability.certificate import Certificates, certify
from evenhand.stability.comparison import Comparison, compare
from evenhand.stability.instability import Instability, instability
from evenhand.stability.worst_case import WorstCase, worst_case
from evenhand.status import Status
from evenhand.table.column import Column
from evenhand.table.limits import Actionable, IfChanges, RisesWith
from evenhand.table.schema import Schema

__version__ = "0.1.0"

__all__ = [
    "GLVQ",
    "GMLVQ",
    "L1",
    "L2",
    "Actionable",
    "Affine",
    "Audit",
    "AuditError",
    "Categorical",
    "CertificateDisplay",
    "Certificates",
    "Closest",
    "Column",
    "Comparison",
    "ComparisonDisplay",
    "ConvexSet",
    "Count",
    "CounterfactualDisplay",
    "Ellipsoid",
    "Explainer",
    "Explanations",
    "External",
    "Gaussian",
    "Gower",
    "HighDensity",
    "IfChanges",
    "Instability",
    "InstabilityDisplay",
    "Mask",
    "Mixed",
    "Neighbor",
    "Ordered",
    "Penalized",
    "Plausible",
    "Projection",
    "Region",
    "Relative",
    "RisesWith",
    "Rounding",
    "Schema",
    "Status",
    "Steady",
    "Uniform",
    "View",
    "WorstCase",
    "audit",
    "certify",
    "compare",
    "instability",
    "project",
    "theory",
    "view",
    "worst_case",
]
