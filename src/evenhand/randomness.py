"""One seed for everything: every person has a stream of random numbers of its own.

The stream depends on the seed and on who the person is, never on which rows were worked on before, together
with, or on how many cores.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

TARGET = 2**62  # the block of numbers that chooses a person's target, far from those of its draws


def seed_of(random_state: int | np.random.Generator | None) -> int:
    """The seed that a `random_state` stands for; None takes one from the operating system."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**63))
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1))
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise ValueError(f"random_state must be a whole number >= 0, a numpy Generator or None, got {random_state!r}.")
    return int(random_state)


def identities(index: pd.Index) -> npt.NDArray[np.uint64]:
    """A number per person from its label, the same wherever in the table the person stands.

    The second person with the same label gets another number than the first.
    """
    codes = pd.util.hash_pandas_object(index, index=False).to_numpy(dtype=np.uint64).copy()
    again = pd.Series(codes).groupby(codes).cumcount().to_numpy(dtype=np.uint64)
    return codes + again * np.uint64(0x9E3779B97F4A7C15)


class Streams:
    """Random numbers of people.

    Parameters
    ----------
    seed : int
        Everything is a function of it.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def of(self, person: np.uint64, block: int) -> np.random.Generator:
        """The numbers of one person for one purpose: a block of draws, or its target."""
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence([self.seed, int(person), block])))
