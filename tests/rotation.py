"""Products of what there is to try: some of them before each commit, in turn, and all of them in the slow set."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest


def in_turn(every: int, *choices: Iterable[Any]) -> list[Any]:
    """The product of some choices, of which each one stands in a fast test.

    `every` has no factor in common with the numbers of choices, so that none is always left out.
    """
    slow = (pytest.mark.slow,)
    return [pytest.param(*chosen, marks=slow if i % every else ()) for i, chosen in enumerate(product(*choices))]
