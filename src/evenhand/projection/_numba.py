"""How the kernels are compiled and cached, in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from evenhand.projection._cache import KernelCache
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
    compiled = _njit(**_ENTRY)(function)
    compiled._cache = KernelCache(function)
    return cast("F", compiled)


@kernel
def copy(source: FloatArray, into: FloatArray) -> None:
    """Copy as many numbers as `into` has room for."""
    for i in range(len(into)):
        into[i] = source[i]
