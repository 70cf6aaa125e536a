"""Intervals and tests for values that come in groups, one group per person.

Draws of one person are not independent, so what varies between samples is the
*people*: they are resampled, and standard errors are built from sums per person.
"""

from __future__ import annotations

from evenhand.stats.bootstrap import cluster_bootstrap, paired_bootstrap
from evenhand.stats.checks import IntArray
from evenhand.stats.interval import Interval, share_interval
from evenhand.stats.ranks import hodges_lehmann, signed_rank

__all__ = [
    "IntArray",
    "Interval",
    "cluster_bootstrap",
    "hodges_lehmann",
    "paired_bootstrap",
    "share_interval",
    "signed_rank",
]
