"""One seed for everything: every person has a stream of random numbers of its own.

The stream depends on the seed and on who the person is, never on which rows were worked on before, together
with, or on how many cores.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt
import pandas as pd


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
    """A number per person from its label, the same wherever and with whomever in a table the person stands.

    The second person with the same label gets another number than the first.
    """
    codes = np.empty(len(index), dtype=np.uint64)
    if pd.api.types.is_integer_dtype(index.dtype):
        codes[:] = _mixed(index.to_numpy(dtype=np.int64).astype(np.uint64))
        if index.is_unique:  # and so are the codes: they are mixed one to one
            return codes
    else:  # one by one: what a label is must not depend on the type of the others
        codes[:] = [_code(label) for label in index.tolist()]
    again = pd.Series(codes).groupby(codes).cumcount().to_numpy(dtype=np.uint64)
    return codes + again * np.uint64(0x9E3779B97F4A7C15)


def chosen(seed: int, people: npt.NDArray[np.uint64], among: int) -> npt.NDArray[np.int64]:
    """One of `among` choices for every person, at random but following the person."""
    start = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    return (_mixed(people ^ start) % np.uint64(among)).astype(np.int64)


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of splitmix64: every bit of the result depends on every bit of the number."""
    with np.errstate(over="ignore"):
        mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(mixed ^ (mixed >> np.uint64(31)), dtype=np.uint64)


def _code(label: object) -> int:
    if isinstance(label, float) and label.is_integer() and abs(label) < 2**53:
        label = int(label)  # 3.0 is 3: an index turns into floats as soon as one label is missing
    if isinstance(label, int) and not isinstance(label, bool) and -(2**63) <= label < 2**63:
        return int(_mixed(np.array([label], dtype=np.int64).astype(np.uint64))[0])
    text = f"{type(label).__name__}:{label!r}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


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
        """The numbers of one person for one block of draws."""
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence([self.seed, int(person), block])))
