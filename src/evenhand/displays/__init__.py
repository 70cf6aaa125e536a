"""Pictures of results, in the manner of scikit-learn's displays: computing and drawing are apart.

matplotlib is imported when something is drawn, and not before (``pip install evenhand[plot]``).
"""

from __future__ import annotations

from evenhand.displays.base import INK, LINE, MUTED, STYLES, ZONE
from evenhand.displays.certificate import CertificateDisplay
from evenhand.displays.comparison import ComparisonDisplay
from evenhand.displays.counterfactual import MOST_FEATURES, CounterfactualDisplay
from evenhand.displays.instability import WORDS, InstabilityDisplay

__all__ = [
    "INK",
    "LINE",
    "MOST_FEATURES",
    "MUTED",
    "STYLES",
    "WORDS",
    "ZONE",
    "CertificateDisplay",
    "ComparisonDisplay",
    "CounterfactualDisplay",
    "InstabilityDisplay",
]
