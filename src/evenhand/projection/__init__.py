"""Projection onto regions: bound, shortcut, kernel, library fallback, each answer with its proof."""

from __future__ import annotations

from evenhand.projection.engine import ACCURATE, Projector
from evenhand.projection.mixed import MixedProjector
from evenhand.projection.result import VALID, Projection, Status
from evenhand.projection.tables import CHUNK, Progress, as_table, compile_kernels, count_jobs, in_chunks, project

__all__ = [
    "ACCURATE",
    "CHUNK",
    "VALID",
    "MixedProjector",
    "Progress",
    "Projection",
    "Projector",
    "Status",
    "as_table",
    "compile_kernels",
    "count_jobs",
    "in_chunks",
    "project",
]
