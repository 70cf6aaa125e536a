"""Projection onto regions: bound, shortcut, kernel, library fallback, each answer with its proof."""

from __future__ import annotations

from evenhand.projection.levels.table import MixedProjector
from evenhand.projection.norms.engine import Projector
from evenhand.projection.result import Projection
from evenhand.projection.tables import compile_kernels, project

__all__ = ["MixedProjector", "Projection", "Projector", "compile_kernels", "project"]
