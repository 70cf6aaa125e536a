"""What goes wrong before an audit can run."""

from __future__ import annotations


class AuditError(ValueError):
    """Something about an audit's configuration, model or data is wrong; the message names it and the way out."""


def short(error: BaseException) -> str:
    """Name and first line of an error."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300].rstrip('.')}" if lines else type(error).__name__
