"""Models as functions ``label -> region``: one file per family.

Importing the families is what registers them with :func:`view`.
"""

from __future__ import annotations

from evenhand.models import linear, pipeline, prototypes, tree  # noqa: F401 - to register them
from evenhand.models.base import Blackbox, ModelView, Predictor, blackbox, view
from evenhand.models.encoders import MixedView, has_encoders, mixed_view, refuse_levels
from evenhand.models.lvq import GLVQ, GMLVQ

__all__ = [
    "GLVQ",
    "GMLVQ",
    "Blackbox",
    "MixedView",
    "ModelView",
    "Predictor",
    "blackbox",
    "has_encoders",
    "mixed_view",
    "refuse_levels",
    "view",
]
