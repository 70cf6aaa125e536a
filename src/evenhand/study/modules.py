"""What a study takes from outside: modules that register its parts, imported before the study is read."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from evenhand.settings import list_of, nearest, text
from evenhand.study.errors import StudyError

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


def import_modules(modules: tuple[str, ...], folder: Path) -> None:
    """Import what a study names; a file is run anew each time, so that a change counts and no other study's stays.

    Parameters
    ----------
    modules : tuple of str
        Names of modules, and paths that end in ".py".
    folder : Path
        Where relative paths start.

    Raises
    ------
    StudyError
        If something cannot be imported, whatever the reason.
    """
    for module in modules:
        try:
            if module.endswith(".py"):
                _run_file(folder / module)
            else:
                importlib.import_module(module)
        except StudyError:
            raise
        except Exception as error:
            hint = nearest(module, _files(folder)) if isinstance(error, ModuleNotFoundError) else ""
            raise StudyError(
                f"modules: {module!r} cannot be imported: {type(error).__name__}: {error}.{hint} {POSSIBLE}"
            ) from error


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.py"))


def _run_file(path: Path) -> None:
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
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
