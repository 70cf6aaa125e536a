"""Methods: which point of the target's region a person is shown."""

from __future__ import annotations

from evenhand.methods.base import METHODS, method
from evenhand.methods.closest import Closest
from evenhand.methods.external import External
from evenhand.methods.penalized import Penalized
from evenhand.methods.plausible import Plausible
from evenhand.methods.steady import Steady

__all__ = ["METHODS", "Closest", "External", "Penalized", "Plausible", "Steady", "method"]
