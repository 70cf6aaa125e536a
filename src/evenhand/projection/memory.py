"""Memory for kernels to work in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

APART = 1024  # bytes; more than a loop of vectors works on at a time


def room(shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """An array of zeros, at a distance from every other.

    A compiled loop that reads one array and writes another first looks whether they are so near to each other that
    they might overlap, and if so goes number by number instead of by vectors, which rounds sums in another way.  Small
    arrays do lie side by side, and where depends on all that happened before: then the same question could have two
    answers, which differ in their last bits.
    """
    kind = np.dtype(dtype)
    size = int(np.prod(shape))
    margin = APART // kind.itemsize
    return np.zeros(size + 2 * margin, kind)[margin : margin + size].reshape(shape)
