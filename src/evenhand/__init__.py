"""Counterfactual explanations, exact and certified, and how far they can be trusted."""

from __future__ import annotations

from evenhand.actionable import Actionable
from evenhand.density import HighDensity
from evenhand.distances import L1, L2
from evenhand.explainer import Explainer
from evenhand.explanations import Explanations
from evenhand.methods import Closest, Plausible
from evenhand.models import GLVQ, GMLVQ, ModelView, view
from evenhand.projection import Projection, Status, project
from evenhand.sets import Affine, ConvexSet, Ellipsoid, Region

__version__ = "0.1.0"

__all__ = [
    "GLVQ",
    "GMLVQ",
    "L1",
    "L2",
    "Actionable",
    "Affine",
    "Closest",
    "ConvexSet",
    "Ellipsoid",
    "Explainer",
    "Explanations",
    "HighDensity",
    "ModelView",
    "Plausible",
    "Projection",
    "Region",
    "Status",
    "project",
    "view",
]
