"""The paper, reproduced: its study, its numbers next to ours, and a page to judge them by."""

from __future__ import annotations

from evenhand.reproduce.paper import EXPERIMENTS, reproduce, study_file

__all__ = ["EXPERIMENTS", "reproduce", "study_file"]
