"""Counterfactual explanations, exact and certified, and how far they can be trusted."""

from __future__ import annotations

from evenhand import theory
from evenhand.actionable import Actionable
from evenhand.certificate import Certificates, certify
from evenhand.comparison import Comparison, compare
from evenhand.density import HighDensity
from evenhand.displays import CertificateDisplay, ComparisonDisplay, CounterfactualDisplay, InstabilityDisplay
from evenhand.distances import L1, L2
from evenhand.explainer import Explainer
from evenhand.explanations import Explanations
from evenhand.external import External
from evenhand.instability import Instability, instability
from evenhand.methods import Closest, Plausible
from evenhand.models import GLVQ, GMLVQ, ModelView, view
from evenhand.penalized import Penalized
from evenhand.perturbations import Gaussian, Mask, Neighbor, Relative, Uniform
from evenhand.projection import Projection, Status, project
from evenhand.sets import Affine, ConvexSet, Ellipsoid, Region
from evenhand.steady import Steady
from evenhand.worst import WorstCase, worst_case

__version__ = "0.1.0"

__all__ = [
    "GLVQ",
    "GMLVQ",
    "L1",
    "L2",
    "Actionable",
    "Affine",
    "CertificateDisplay",
    "Certificates",
    "Closest",
    "Comparison",
    "ComparisonDisplay",
    "ConvexSet",
    "CounterfactualDisplay",
    "Ellipsoid",
    "Explainer",
    "Explanations",
    "External",
    "Gaussian",
    "HighDensity",
    "Instability",
    "InstabilityDisplay",
    "Mask",
    "ModelView",
    "Neighbor",
    "Penalized",
    "Plausible",
    "Projection",
    "Region",
    "Relative",
    "Status",
    "Steady",
    "Uniform",
    "WorstCase",
    "certify",
    "compare",
    "instability",
    "project",
    "theory",
    "view",
    "worst_case",
]
