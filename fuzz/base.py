"""What a case is, and what all kinds of cases share.

A module of kinds has a function ``cases(seed)`` that yields cases without end.  To make one is cheap: whatever takes
time happens in ``run``.  Case i of a kind depends on the seed, the kind and i only, so that each can be had again.
"""

from __future__ import annotations

import zlib
from typing import Protocol

import numpy as np


class RefusedError(Exception):
    """What the package does not take, and says so in a sentence; counted by the sentence."""


class Case(Protocol):
    """Something that must hold, and how to see it again."""

    kind: str

    def run(self) -> str | None:
        """None if all is well, otherwise what is wrong, its first line a short name of the failure.

        Raises `RefusedError` if the package says that it does not take this.  Any other exception is a failure.
        """

    def script(self) -> str:
        """A script that needs this package and its tools only, and ends with an error as long as `run` finds one."""


def generator(seed: int, kind: str, i: int) -> np.random.Generator:
    """The random numbers of one case."""
    return np.random.default_rng([seed, zlib.crc32(kind.encode()), i])
