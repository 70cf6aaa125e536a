"""Memory for kernels to work in."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

APART = 320  # bytes between arrays: more than a loop of vectors works on at a time, and few enough for the caches
ALIGNED = 64
BLOCK = 2**16


class Room:
    """Hands out arrays of zeros: aligned, as loops of vectors like it, and at a distance from each other.

    A compiled loop that reads one array and writes another first looks whether they are so near to each other that
    they might overlap, and if so goes number by number instead of by vectors, which rounds sums in another way.  Small
    arrays do lie side by side otherwise, and where depends on all that happened before: then the same question could
    have two answers, which differ in their last bits.
    """

    def __init__(self) -> None:
        self._block = np.zeros(0, np.uint8)
        self._used = 0

    def __call__(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
        """An array of zeros."""
        kind = np.dtype(dtype)
        size = kind.itemsize * (shape if isinstance(shape, int) else prod(shape))
        start = self._used + APART
        start += -start % ALIGNED
        if start + size > len(self._block):
            self._block = _aligned(max(BLOCK, APART + ALIGNED + size))
            start = APART
        self._used = start + size
        return self._block[start : start + size].view(kind).reshape(shape)


def _aligned(size: int) -> npt.NDArray[np.uint8]:
    """Bytes, of which number APART is aligned."""
    block = np.zeros(size + ALIGNED, np.uint8)
    offset = -(block.__array_interface__["data"][0] + APART) % ALIGNED
    return block[offset : offset + size]
