"""Projection onto regions: bound, shortcut, kernel, library fallback, each answer with its proof."""

from __future__ import annotations

from evenhand.projection.levels import engine as _levels  # noqa: F401 - to register its solver
from evenhand.projection.norms import engine as _norms  # noqa: F401 - to register its solver
from evenhand.projection.problem import Problem
from evenhand.projection.result import Projection
from evenhand.projection.solver import Projector, register_solver, solver
from evenhand.projection.tables import project
from evenhand.projection.warmup import compile_kernels

__all__ = ["Problem", "Projection", "Projector", "compile_kernels", "project", "register_solver", "solver"]
