"""What is wrong with a study."""

from __future__ import annotations


class StudyError(ValueError):
    """Something in a study file is wrong; the message names the key and what is possible."""
