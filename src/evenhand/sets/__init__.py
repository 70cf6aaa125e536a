"""Affine maps, convex sets and their unions: algebra only.

``ConvexSet`` is one normal form, box ∩ {Gx <= h} ∩ ellipsoids, and ``Region`` is a
union of them.  Both are closed under intersection, affine pull-back and shrinking,
which is all that decision regions, densities and pipelines need.
"""

from __future__ import annotations

from evenhand.sets.affine import Affine
from evenhand.sets.convex import ConvexSet, Ellipsoid, Paraboloid
from evenhand.sets.region import Region

__all__ = ["Affine", "ConvexSet", "Ellipsoid", "Paraboloid", "Region"]
