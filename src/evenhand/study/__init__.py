"""Studies: a grid of experiments from a TOML file, with checkpoints and workers."""

from __future__ import annotations

from evenhand.study.cells import Cell, combined, expand
from evenhand.study.errors import StudyError
from evenhand.study.models import study_model
from evenhand.study.runner import Done, Outcome, run_study
from evenhand.study.spec import Study, read_study

__all__ = [
    "Cell",
    "Done",
    "Outcome",
    "Study",
    "StudyError",
    "combined",
    "expand",
    "read_study",
    "run_study",
    "study_model",
]
