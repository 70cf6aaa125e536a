"""Who does the work: this process, others, or a cluster; who is lost is replaced, and the results are the same."""

from __future__ import annotations

from evenhand.workers.base import Task, WorkersError, telling
from evenhand.workers.running import backend, run_all

__all__ = ["Task", "WorkersError", "backend", "run_all", "telling"]
