"""What the registered parts of a study share: values of a file that can be hashed, and the files of their own."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from types import ModuleType
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


_imported: dict[Path, str] = {}  # hashes of the files that were run, as they were then


def imported(path: Path, content: bytes) -> str:
    """Note that this content of a file is what was run; its hash."""
    found = _imported[path.resolve()] = hashlib.sha256(content).hexdigest()
    return found


def content_of(part: Any) -> str:
    """Hash of the file that a class, function or module comes from.

    It is empty for ours, which change with the package's version, and for what has no file.
    """
    if isinstance(part, ModuleType):
        file = Path(inspect.getfile(part)).resolve() if getattr(part, "__file__", None) else None
    else:
        file = None if is_ours(part) else source_file(part)
    if file is None or not file.is_file():
        return ""
    return _imported.get(file) or hashlib.sha256(file.read_bytes()).hexdigest()
