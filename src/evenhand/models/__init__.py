"""Models as functions ``label -> region``: one file per family.

Importing the families is what registers them with :func:`view`.
"""

from __future__ import annotations

from evenhand.models import linear, pipeline, prototypes, tree  # noqa: F401 - to register them
from evenhand.models.base import View, blackbox, view
from evenhand.models.encoders import with_codes
from evenhand.models.lvq import GLVQ, GMLVQ
from evenhand.models.tables import needs_numbers, view_of

__all__ = ["GLVQ", "GMLVQ", "View", "blackbox", "needs_numbers", "view", "view_of", "with_codes"]
