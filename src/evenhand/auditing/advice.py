"""People and what they are told, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.auditing.document.individuals import Advice, Way
from evenhand.explaining.telling import DIGITS, rounded_away
from evenhand.models import View
from evenhand.types import FloatArray


def amount(value: Any, digits: int = 4) -> str:
    """A value in words: numbers with a few digits, levels as they are."""
    if bool(pd.isna(value)):
        return "missing"
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        return str(value)
    number = float(value)
    if number == round(number) and abs(number) < 1e15:
        return f"{number:,.0f}".replace("-", "−")
    decimals = max(digits - 1 - int(np.floor(np.log10(abs(number)))), 0)
    text = f"{number:,.{decimals}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


def both(before: Any, after: Any) -> tuple[str, str]:
    """Two values with as many digits as it takes to tell them apart."""
    words = amount(before), amount(after)
    for digits in (5, 6, 7, 9, 12):
        if words[0] != words[1]:
            break
        words = amount(before, digits), amount(after, digits)
    return words


def facts(view: View, names: list[str], codes: FloatArray, gone: npt.NDArray[np.bool_]) -> list[tuple[str, str]]:
    """A person, column by column; `gone` says what is missing in the table, where the model takes something for it."""
    return [(name, _on_file(view, j, codes[j], bool(gone[j]))) for j, name in enumerate(names)]


def _on_file(view: View, j: int, code: float, gone: bool) -> str:
    value = amount(view.schema.value(j, code))
    return value if not gone or value == "missing" else f"missing (taken as {value})"


def told(view: View, names: list[str], x: FloatArray, cf: FloatArray, gone: npt.NDArray[np.bool_]) -> list[Advice]:
    """What a person is told to change, in the order of the columns.

    Numbers are rounded away from the person, with as many digits as it takes for the model to keep its answer: what
    is written down is advice that works.
    """
    _, changed = view.change(x[None], cf[None])
    columns = [int(j) for j in np.flatnonzero(changed[0])]
    after = _written(view, x, cf, columns)
    return [
        Advice(
            column=names[j],
            before=_on_file(view, j, x[j], bool(gone[j])),
            after=after[j],
            value=float(cf[j]) if isinstance(view.schema.value(j, cf[j]), float) else None,
            way=way(view, j, x[j], cf[j]),
            tag=None,
        )
        for j in columns
    ]


def hidden(advice: list[Advice]) -> list[Advice]:
    """The same without values of people."""
    return [replace(part, before=None, after=None, value=None) for part in advice]


def _written(view: View, x: FloatArray, cf: FloatArray, columns: list[int]) -> dict[int, str]:
    """The new values as texts, which all together the model answers as it answers the exact ones."""
    wanted = view.decide(cf[None])[0]
    for digits in DIGITS:
        point, texts = cf.copy(), {}
        for j in columns:
            value = view.schema.value(j, cf[j])
            if not isinstance(value, float):
                texts[j] = amount(value)
                continue
            rounded = rounded_away(value, digits, up=cf[j] > x[j])
            point[j], texts[j] = float(rounded), f"{rounded:,f}".replace("-", "−")
        apart = all(texts[j] != amount(view.schema.value(j, x[j]), digits) for j in columns)
        if apart and view.decide(point[None])[0] == wanted:
            return texts
    return {j: amount(view.schema.value(j, cf[j]), 17) for j in columns}


def way(view: View, j: int, before: float, after: float) -> Way:
    """Up or down for numbers and ordered levels, "to" another level otherwise."""
    column = view.schema.column(j)
    if not (column.is_number or column.kind == "ordered"):
        return "to"
    return "up" if after > before else "down"


def tagged(first: list[Advice], second: list[Advice], names: tuple[str, str]) -> tuple[list[Advice], list[Advice]]:
    """Both lists, with how they differ."""
    return _tagged(first, second, names[0]), _tagged(second, first, names[1])


def _tagged(mine: list[Advice], other: list[Advice], who: str) -> list[Advice]:
    theirs = {part.column: part for part in other}
    return [replace(part, tag=_tag(part, theirs.get(part.column), who)) for part in mine]


def _tag(mine: Advice, theirs: Advice | None, who: str) -> str:
    if theirs is None:
        return f"only {who} is told this"
    if theirs.way != mine.way:
        return "opposite direction"
    if theirs.after != mine.after:
        return "different amount" if mine.way != "to" else "another level"
    return "same for both"


def different(view: View, x: FloatArray, cf: FloatArray, y: FloatArray, other: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether a person and others are told to change different columns, or the same ones differently."""
    mine, my_columns = view.change(x[None], cf[None])
    theirs, their_columns = view.change(y, other)
    both_change = my_columns & their_columns
    against = np.where(view.schema.number, np.sign(mine) != np.sign(theirs), mine != theirs)
    found: npt.NDArray[np.bool_] = (my_columns != their_columns).any(axis=1) | (both_change & against).any(axis=1)
    return found
