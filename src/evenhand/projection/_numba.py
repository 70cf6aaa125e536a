"""How the kernels are compiled and cached, in one place."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from evenhand.projection._parts import EntryCompiler, PartCompiler
from evenhand.types import FloatArray

F = TypeVar("F", bound=Callable[..., Any])


_njit: Any = numba.njit  # its types leave out the options that skip wrappers and counting
_types: Any = numba.types
_FAST = {"contract", "nsz", "reassoc", "arcp"}  # no nnan, ninf: bounds use infinity
_PART = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": _FAST,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    **({} if PartCompiler is None else {"pipeline_class": PartCompiler}),
}
_ENTRY = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": _FAST,
    "no_cfunc_wrapper": True,
    "_nrt": False,
    **({} if EntryCompiler is None else {"pipeline_class": EntryCompiler}),
}


def _once(function: F, **options: Any) -> F:
    """Compile a part for the types that it is called with, and not again for the value of a constant.

    numba types a 0 as "the integer 0" first; a part that is called with it, and all parts below, would be compiled for
    that type and then for integers.  The constant is still known when the entry point is optimised.
    """
    dispatcher = _njit(**options, **_PART)(function)
    resolve = dispatcher.get_call_template

    def resolve_types(args: Any, kws: Any) -> Any:
        plain = {name: _types.unliteral(kind) for name, kind in kws.items()}
        return resolve([_types.unliteral(kind) for kind in args], plain)

    dispatcher.get_call_template = resolve_types
    return cast("F", dispatcher)


def kernel(function: F) -> F:
    """Compile a part of an entry point; sums may be reordered for SIMD.

    Parts get no wrapper and no cache of their own, which would cost compile time again, and no
    reference counting, which costs more than the arithmetic when arrays are passed in dozens; for
    the same reason they are inlined into it.
    So a part may not allocate, and copies arrays with :func:`copy` instead of a slice.
    """
    return _once(function, _nrt=False, forceinline=True)


def part(function: F) -> F:
    """Compile a part that is called, not inlined: less fast to call, far faster to compile; it may not allocate."""
    return _once(function, _nrt=False)


def entry(function: F) -> F:
    """Compile an entry point, callable from Python without the GIL and cached on disk.

    No two of its arrays may share memory, unless nothing is written into either, and it may not allocate.
    """
    return cast("F", _njit(cache=True, **_ENTRY)(function))


@kernel
def copy(source: FloatArray, into: FloatArray) -> None:
    """Copy as many numbers as `into` has room for."""
    for i in range(len(into)):
        into[i] = source[i]


def _forget_stale_kernels(package: Path) -> None:
    """Drop compiled entry points that were made from other sources.

    numba looks only at the file of the function that it loads; an entry point that was compiled together with an older
    version of another file's kernel would stay in use.  What counts is the content of all files that it is made of.
    """
    sources = {path.relative_to(package).with_suffix("").as_posix(): path.read_text() for path in package.rglob("*.py")}
    for name, source in sources.items():
        if "\n@entry\n" in source:
            _forget(package / name, "".join(sources[part] for part in _made_of(name, sources)))


def _made_of(name: str, sources: dict[str, str]) -> list[str]:
    """The files of the package that a file imports, directly or not, itself included."""
    found, pending = {name}, [name]
    while pending:
        for module in re.findall(r"^from evenhand\.projection\.([\w.]+) import", sources[pending.pop()], re.MULTILINE):
            part = module.replace(".", "/")
            if part in sources and part not in found:
                found.add(part)
                pending.append(part)
    return sorted(found)


def _forget(module: Path, source: str) -> None:
    digest = hashlib.sha256(source.encode()).hexdigest()
    cache = module.parent / "__pycache__"
    stamp = cache / f"{module.name}.sha256"
    try:
        if stamp.exists() and stamp.read_text() == digest:
            return
        cache.mkdir(exist_ok=True)
        for compiled in cache.glob(f"{module.name}.*.nb[ic]"):
            compiled.unlink(missing_ok=True)
        stamp.write_text(digest)
    except OSError:  # not writable: then numba keeps its cache elsewhere, and per installed version
        return


_forget_stale_kernels(Path(__file__).parent)
