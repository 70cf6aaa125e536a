"""Where compiled kernels are kept: a file for each kernel, source, processor and version.

numba's own cache has an index beside its files, by the date of one source file.  It does not see when another file that
a kernel is made of has changed, forgets everything when dates do, and two processes that write the index at the same
time may mistake each other's kernels.  Here the name of a file says all that it depends on, so there is nothing to keep
in step: what is there is right, whoever wrote it, and wherever the folder was moved to.
"""

from __future__ import annotations

# mypy: disable-error-code="no-untyped-call"
import hashlib
import logging
import os
import pickle
import platform
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
import platformdirs
from numba.core import config as _config
from numba.core.compiler import CompileResult

from evenhand.writing import sweep, write_whole

PACKAGE = Path(__file__).parent
KEPT = 8  # files of a kernel, the most recent ones: those of other sources, versions and processors go first
PATIENCE = 2.0  # seconds after which somebody who waits is told why
SPEAKER = "EVENHAND_SPEAKER"  # the only process that tells, if it says so to those that it starts

config: Any = _config
_log = logging.getLogger("evenhand")


class KernelCache:
    """The cache of one kernel, as numba's dispatchers want it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        file = Path(function.__code__.co_filename).relative_to(PACKAGE).with_suffix("")
        self.name = f"{'.'.join(file.parts)}.{function.__name__}"
        self.source = digest_of(file.as_posix())

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(folder())

    def path(self, signature: Any, codegen: Any) -> Path:
        """The file for a signature, on the processor and with the versions that are here."""
        parts = (signature, codegen.magic_tuple(), config.OPT, _versions(), self.source)
        return folder() / f"{self.name}.{hashlib.sha256(repr(parts).encode()).hexdigest()[:24]}.nbc"

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The kernel, if it is there; None if it has to be compiled."""
        target.refresh()
        payload = _read(self.path(signature, target.codegen()))
        if payload is None:
            _waiting.begin()
            return None
        return CompileResult._rebuild(target, *pickle.loads(payload))

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a kernel; where nothing can be written it is compiled again next time."""
        _waiting.end()
        path = self.path(signature, compiled.codegen)
        try:
            payload = pickle.dumps(compiled._reduce(), protocol=5)
            write_whole(path, hashlib.sha256(payload).digest() + payload)
            sweep(path.parent)
            others = sorted(path.parent.glob(f"{self.name}.*.nbc"), key=lambda file: file.stat().st_mtime_ns)
            for old in others[:-KEPT]:
                old.unlink(missing_ok=True)
        except OSError as error:
            _log.debug("%s could not be kept: %s", self.name, error)

    def enable(self) -> None:
        """As numba wants it."""

    def disable(self) -> None:
        """As numba wants it."""

    def flush(self) -> None:
        """As numba wants it."""


@cache
def folder() -> Path:
    """Next to the source where that can be written, else in the user's folder for such things.

    NUMBA_CACHE_DIR, if it is set, names another.
    """
    if config.CACHE_DIR:
        return Path(config.CACHE_DIR)
    beside = PACKAGE / "__pycache__"
    try:
        beside.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=beside):
            return beside
    except OSError:
        return Path(platformdirs.user_cache_dir("evenhand", appauthor=False)) / "kernels"


def _versions() -> tuple[str, ...]:
    python = f"{platform.python_implementation()} {sys.version_info.major}.{sys.version_info.minor}"
    return (python, numba.__version__, llvmlite.__version__, np.__version__)


@cache
def digest_of(name: str) -> str:
    """A digest of all sources that a file of this package is made of."""
    return hashlib.sha256("".join(_source(part) for part in _made_of(name)).encode()).hexdigest()


@cache
def _source(name: str) -> str:
    path = (PACKAGE / name).with_suffix(".py")
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _made_of(name: str) -> list[str]:
    """The files of the package that a file imports, directly or not, itself included."""
    found, pending = {name}, [name]
    while pending:
        for module in re.findall(r"^from evenhand\.projection\.([\w.]+) import", _source(pending.pop()), re.MULTILINE):
            part = module.replace(".", "/")
            if part not in found and part != "_cache":  # how kernels are kept changes none
                found.add(part)
                pending.append(part)
    return sorted(found)


def _read(path: Path) -> bytes | None:
    """What was written, if all of it is there."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, payload = data[:32], data[32:]
    return payload if hashlib.sha256(payload).digest() == digest else None


class _Waiting:
    """Tells somebody who waits for a compiler why, once, and not before it takes a while."""

    def __init__(self) -> None:
        self.said = False
        self.timer: threading.Timer | None = None

    def begin(self) -> None:
        """A kernel is about to be compiled."""
        if self.said or os.environ.get(SPEAKER, str(os.getpid())) != str(os.getpid()):
            return
        self.end()
        self.timer = threading.Timer(PATIENCE, self._say)
        self.timer.daemon = True
        self.timer.start()

    def end(self) -> None:
        """It is compiled."""
        if self.timer is not None:
            self.timer.cancel()

    def _say(self) -> None:
        self.said = True
        _log.warning(
            "Compiling the solver for this machine, which takes up to half a minute and happens once; it is kept in "
            "%s. `evenhand warmup` compiles all solvers at once.",
            folder(),
        )


_waiting = _Waiting()
