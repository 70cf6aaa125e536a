"""Columns of raw tables: their values, the steps they go through, and what a change may be and costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fuzz.scripted import array_text, listed, text

NUMBERS = ("numeric", "integer")


@dataclass(frozen=True)
class Part:
    """One column.

    `kind`, `levels`, `weight`, `costs`, `step` and `bounds` are what its Column says, written or inferred; `way`,
    `limits` and `allowed` are what Actionable says; `through` is the text of its transformer.
    """

    name: str
    kind: str
    values: pd.Series = field(repr=False)
    through: str
    signal: np.ndarray = field(repr=False)
    levels: tuple[Any, ...] = ()
    weight: float = 1.0
    costs: np.ndarray | None = None
    step: float | None = None
    bounds: tuple[float | None, float | None] | None = None
    way: str = ""
    limits: tuple[float | None, float | None] | None = None
    allowed: tuple[Any, ...] | None = None
    fill: float | None = None  # what an imputer puts for a missing number
    codes: tuple[float, ...] | None = None  # numbers that an encoder knows by name

    @property
    def number(self) -> bool:
        """Whether its values are numbers, not levels."""
        return self.kind in NUMBERS

    def column(self) -> str:
        """The text of its Column."""
        said = [repr(self.kind)]
        if self.levels:
            said.append(f"levels={listed(self.levels)}")
        if self.weight != 1.0:
            said.append(f"weight={self.weight!r}")
        if self.costs is not None:
            said.append(f"costs={array_text(self.costs)}")
        if self.step is not None:
            said.append(f"step={self.step!r}")
        if self.bounds is not None:
            said.append(f"bounds={self.bounds!r}")
        return f"Column({', '.join(said)})"

    def rank(self, value: Any) -> float:
        """What rises and falls: a number, or the rank of a level; a missing one is what stands for it."""
        if self.number:
            return (np.nan if self.fill is None else self.fill) if pd.isna(value) else float(value)
        return float(position(self.levels, value))

    def price(self, own: Any, value: Any) -> float:
        """What it costs to get from one value to another, as the documentation says; infinity if it cannot be."""
        if same(own, value):
            return 0.0
        if pd.isna(value):
            return np.inf
        if self.number:
            return self.weight * abs(float(value) - self.rank(own))
        i, k = position(self.levels, own), position(self.levels, value)
        if i is None or k is None:
            return np.inf
        if self.costs is not None:
            return self.weight * float(self.costs[i, k])
        if self.kind == "ordered" and not pd.isna(own):
            return self.weight * abs(i - k)
        return self.weight

    def may(self, own: Any, value: Any) -> bool:
        """Whether somebody may be changed from one value to another, as far as this column is concerned.

        A number out of bounds that stays is let pass by `kept` only.
        """
        if same(own, value):
            return pd.isna(own) or not self.number or self.way == "immutable" or self.within(float(own))
        if self.way == "immutable" or pd.isna(value):
            return False
        if self.way in ("increase", "decrease"):
            rise = self.rank(value) - self.rank(own)
            if (rise < 0) if self.way == "increase" else (rise > 0):
                return False
        if not self.number:
            return self.allowed is None or position(self.allowed, value) is not None
        if self.codes is not None and float(value) not in self.codes:
            return False
        if self.step is not None:
            steps = (float(value) - self.rank(own)) / self.step
            if abs(steps - round(steps)) > 1e-9 * (1.0 + abs(steps)):
                return False
        return self.within(float(value))

    def within(self, value: float) -> bool:
        """Whether a number is inside of all bounds."""
        for pair in (self.bounds, self.limits):
            if pair is not None:
                low, high = pair
                if (low is not None and value < low) or (high is not None and value > high):
                    return False
        return True


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal, or both missing."""
    return bool((pd.isna(a) and pd.isna(b)) or (not pd.isna(a) and not pd.isna(b) and a == b))


def position(levels: Any, value: Any) -> int | None:
    """Where a value stands among levels; None if it is none."""
    for i, level in enumerate(levels):
        if same(level, value):
            return i
    return None


def transformer(part: Part) -> str:
    """The entry of a column in a ColumnTransformer."""
    return f"({part.name!r}, {part.through}, [{text(part.name)}])"
