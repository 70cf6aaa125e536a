"""What a study takes from outside: modules that register its parts, imported before the study is read."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from evenhand.settings import list_of, nearest, text
from evenhand.study.errors import StudyError
from evenhand.study.parts import content_of, imported

POSSIBLE = (
    "Possible are modules that Python can import, such as a package that is installed, and paths of .py files that "
    "start at the folder of the study."
)


def read_modules(value: Any) -> tuple[str, ...]:
    """The key ``modules`` of a study file."""
    modules = tuple(value) if isinstance(value, list) else (value,)
    if problem := list_of(text, empty=True)(modules):
        raise StudyError(f"modules must be {problem}; got {value!r}. {POSSIBLE}")
    return modules


def import_modules(modules: tuple[str, ...], folder: Path, known: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """Import what a study names; a file is run anew each time, so that a change counts and no other study's stays.

    Parameters
    ----------
    modules : tuple of str
        Names of modules, and paths that end in ".py".
    folder : Path
        Where relative paths start.
    known : tuple of str, optional
        What an earlier call returned: the modules have to be the same still.

    Returns
    -------
    tuple of str
        Hashes of what was imported.

    Raises
    ------
    StudyError
        If something cannot be imported, whatever the reason, or is not what it was.
    """
    found = []
    for i, module in enumerate(modules):
        try:
            if module.endswith(".py"):
                found.append(_run_file(folder / module))
            else:
                found.append(content_of(importlib.import_module(module)))
        except StudyError:
            raise
        except Exception as error:
            hint = nearest(module, _files(folder)) if isinstance(error, ModuleNotFoundError) else ""
            raise StudyError(
                f"modules: {module!r} cannot be imported: {type(error).__name__}: {error}.{hint} {POSSIBLE}"
            ) from error
        if known is not None and known[i] != found[i]:
            raise StudyError(
                f"modules: {module!r} has changed since the study began. Cells that were finished before are kept, and "
                "belong to what it was; run the study again to have those of what it is now."
            )
    return tuple(found)


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.py"))


def _run_file(path: Path) -> str:
    if not path.is_file():
        raise StudyError(f"modules: there is no file {path}.{nearest(path.name, _files(path.parent))} {POSSIBLE}")
    # A name of its own: no file of a study hides an installed module, and a copy of the file replaces the original.
    name = f"evenhand_study_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module while it runs
    try:
        # Not by the loader: a cache of bytecode may be of a file that is as long, and as old to the second.
        content = path.read_bytes()
        exec(compile(content, str(path), "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return imported(path, content)
