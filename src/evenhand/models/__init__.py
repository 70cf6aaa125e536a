"""Models as functions ``label -> region``: one file per family.

Importing the families is what registers them with :func:`view`.
"""

from __future__ import annotations

from evenhand.models import linear, pipeline, prototypes, tree  # noqa: F401 - to register them
from evenhand.models.base import View, blackbox, view
from evenhand.models.encoders import has_encoders, refuse_levels, table_view
from evenhand.models.lvq import GLVQ, GMLVQ

__all__ = ["GLVQ", "GMLVQ", "View", "blackbox", "has_encoders", "refuse_levels", "table_view", "view"]
