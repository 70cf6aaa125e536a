"""Counterfactual explanations, exact and certified, and how far they can be trusted."""

from __future__ import annotations

from evenhand import theory
from evenhand.auditing import Audit, AuditError, audit
from evenhand.certificate import Certificates, certify
from evenhand.comparison import Comparison, compare
from evenhand.costs import L1, L2, Gower
from evenhand.density import HighDensity
from evenhand.displays import CertificateDisplay, ComparisonDisplay, CounterfactualDisplay, InstabilityDisplay
from evenhand.explainer import Explainer
from evenhand.explanations import Explanations
from evenhand.external import External
from evenhand.instability import Instability, instability
from evenhand.methods import Closest, Plausible
from evenhand.models import GLVQ, GMLVQ, View, view
from evenhand.noise import Categorical, Count, Mixed, Ordered, Rounding
from evenhand.penalized import Penalized
from evenhand.perturbations import Gaussian, Mask, Neighbor, Relative, Uniform
from evenhand.projection import Projection, project
from evenhand.sets import Affine, ConvexSet, Ellipsoid, Region
from evenhand.status import Status
from evenhand.steady import Steady
from evenhand.table.column import Column
from evenhand.table.limits import Actionable, IfChanges, RisesWith
from evenhand.table.schema import Schema
from evenhand.worst import WorstCase, worst_case

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
