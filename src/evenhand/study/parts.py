"""What the registered parts of a study share: values of a file that can be hashed, and the files of their own."""

from __future__ import annotations

import hashlib
from typing import Any

from evenhand.registering import is_ours, source_file
from evenhand.study.errors import StudyError


def frozen(value: Any, where: str) -> Any:
    """Lists as tuples, which can be hashed."""
    if isinstance(value, list):
        return tuple(frozen(entry, where) for entry in value)
    if isinstance(value, str | int | float):
        return value
    raise StudyError(f"{where} must be a number, a text, true or false, or a list of them; got {value!r}.")


def content_of(part: Any) -> str:
    """Hash of the file that a class or function comes from, empty for ours: they change with the package's version."""
    file = None if is_ours(part) else source_file(part)
    return "" if file is None else hashlib.sha256(file.read_bytes()).hexdigest()
