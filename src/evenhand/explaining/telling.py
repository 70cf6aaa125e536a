"""What people are told, in as few digits as still lead to the target."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from evenhand.explaining.explainer import Explainer

DIGITS = (4, 5, 6, 8, 10, 12)  # significant ones, tried one after the other
EXACT = 17
PLAIN = 15  # more places than that before the point, or behind it, are written with an exponent


@dataclass(frozen=True)
class Teller:
    """Tries whether what is said in few digits, typed back, leads to the target; the explainer is asked."""

    explainer: Explainer

    def leads(self, person: Any, typed: Any, label: Any) -> bool:
        """Whether a row of a table, changed to another one as it was typed, has the label and is allowed."""
        read = self.explainer.view.read
        return self.explainer.leads(read(person), read(typed), self.explainer.view.index(label))


def rounded_away(value: float, digits: int, *, up: bool) -> Decimal:
    """A number with some digits, rounded in the direction of the change."""
    exact = Decimal(repr(float(value)))
    if not exact:
        return exact
    decimals = max(digits - 1 - exact.adjusted(), 0)
    rounded = exact.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return rounded.to_integral() if rounded == rounded.to_integral() else rounded.normalize()


def word(value: Any, digits: int = EXACT) -> str:
    """A value: a number with some digits, a level as it is."""
    if bool(pd.isna(value)):
        return "missing"
    if not isinstance(value, Decimal):
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
            return str(value)
        whole = isinstance(value, int | np.integer)
        value = (
            Decimal(int(value))
            if whole
            else Decimal(repr(float(value)) if digits == EXACT else f"{float(value):.{digits}g}")
        )
    value = value.to_integral() if value == value.to_integral() else value.normalize()
    return f"{value:f}" if -PLAIN <= value.adjusted() <= PLAIN else repr(float(value))


def is_fraction(value: Any) -> bool:
    """Whether a value is a number that may be rounded."""
    return isinstance(value, float | np.floating) and bool(np.isfinite(value)) and float(value) != np.round(value)


def told(before: list[Any], after: list[Any], moved: list[int], leads: Any) -> list[tuple[str, str]]:
    """The changed values of a person in words, before and after.

    Parameters
    ----------
    before, after : list
        All values of the person, now and as they would have to be.
    moved : list of int
        Which of them change.
    leads : callable or None
        ``leads(values)``: whether other values of `moved` do as well; None if nobody can say, and all digits are told.
    """
    for digits in DIGITS if leads is not None else ():
        said = [
            rounded_away(after[j], digits, up=after[j] > before[j]) if is_fraction(after[j]) else after[j]
            for j in moved
        ]
        words = [(word(before[j], digits), word(value, digits)) for j, value in zip(moved, said, strict=True)]
        if any(first == then for first, then in words):
            continue
        if leads([float(value) if isinstance(value, Decimal) else value for value in said]):
            return words
    return [(word(before[j]), word(after[j])) for j in moved]
