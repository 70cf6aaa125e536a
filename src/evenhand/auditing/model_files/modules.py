"""Models that a Python module holds or makes: module:attribute."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from evenhand.auditing.errors import AuditError, short


@contextmanager
def _importable(*folders: Path) -> Iterator[None]:
    before = list(sys.path)
    sys.path[:0] = map(str, folders)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = before


def imported(source: str, folder: Path) -> Any:
    """The object that module:attribute names. Its code is the user's own and may raise anything."""
    module, _, attribute = source.partition(":")
    top, places = module.partition(".")[0], (folder, Path.cwd())
    spec = PathFinder.find_spec(top, [str(place) for place in places])
    loaded = getattr(sys.modules.get(top), "__file__", None)
    if loaded and spec and spec.origin and Path(loaded).resolve() != Path(spec.origin).resolve():
        raise AuditError(f"{source}: a module {top!r} is loaded already, from {loaded}. Rename {spec.origin}.")
    with _importable(*places):
        try:
            thing = importlib.import_module(module)
        except (Exception, SystemExit) as error:
            if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
                raise AuditError(
                    f"{source}: there is no module {error.name!r}, neither in {folder} nor installed."
                ) from error
            raise AuditError(f"{source}: the import of {module!r} failed with {short(error)}.") from error
        _send_by_value(module, places)
        for part in attribute.split("."):
            if not hasattr(thing, part):
                public = ", ".join(name for name in dir(thing) if not name.startswith("_")) or "nothing"
                raise AuditError(f"{source}: there is no {part!r}; there is {public}.")
            thing = getattr(thing, part)
        if not callable(thing) or (hasattr(thing, "predict") and not isinstance(thing, type)):
            return thing
        try:
            return thing()
        except (Exception, SystemExit) as error:
            raise AuditError(f"{source}() failed with {short(error)}.") from error


def _send_by_value(module: str, places: tuple[Path, ...]) -> None:
    """Pickle the classes of a user's module whole: worker processes do not look into these folders.

    A module that is installed, if only in an environment below one of the folders, is imported by the workers. Of a
    package all modules are sent, unless it has no file: such a name may be shared with packages that are installed.
    """
    names = list(accumulate(module.split("."), "{}.{}".format))
    loaded = [sys.modules[name] for name in names if name in sys.modules]
    outermost = next((one for one in loaded if getattr(one, "__file__", None)), None)
    if not isinstance(outermost, ModuleType) or outermost.__file__ is None:
        return
    depth = outermost.__name__.count(".") + ("__path__" in vars(outermost))
    start = Path(outermost.__file__).absolute().parents[depth : depth + 1]
    if {place.resolve() for place in start} & {place.resolve() for place in places}:
        cloudpickle.register_pickle_by_value(outermost)
