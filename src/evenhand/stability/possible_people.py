"""What the table and the model of an explainer leave possible: which levels, steps and bounds, at what price."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evenhand.explaining.explainer import Explainer
from evenhand.models import View
from evenhand.stability.possible import Possible
from evenhand.table.limits import FIXED
from evenhand.types import BoolArray, FloatArray


def possible_people(explainer: Explainer, frame: pd.DataFrame, codes: FloatArray, radius: FloatArray) -> Possible:
    """What an explainer's table and model leave possible.

    Parameters
    ----------
    explainer : Explainer
    frame : DataFrame
        People as they were given, with the columns of the schema.
    codes : array of shape (n, d)
        The same as codes; all of them can be read.
    radius : array of shape (n,)
    """
    view = explainer.view
    columns = list(view.schema.columns.values())
    number = view.schema.number
    kinds = [getattr(kind, "numpy_dtype", kind) for kind in frame.dtypes]
    # A table of whole numbers has no room for others, whatever the schema says.
    whole = np.array([pd.api.types.is_integer_dtype(kind) for kind in frame.dtypes], dtype=bool) & number
    step = np.array([column.step or 0.0 for column in columns])
    ends = [(None, None) if column.bounds is None else column.bounds for column in columns]
    limits = getattr(explainer, "limits", None)
    fixed = np.zeros(len(columns), dtype=bool) if limits is None else limits.directions == FIXED
    fill, avoid = view.reader.fill, np.full(len(columns), np.nan)
    for name in view.reader.unfilled:
        j = view.schema.names.index(name)
        avoid[j] = np.nan if fill is None else fill[j]
    origin = np.where(number, 0.0, codes[:1])
    return Possible(
        codes,
        radius,
        explainer.cost,
        number,
        np.where(whole & (step == 0), 1.0, step),
        np.array(
            [
                explainer.cost(origin + unit, origin)[0] if is_number else 0.0
                for unit, is_number in zip(np.eye(len(columns)), number, strict=True)
            ]
        ),
        np.array([-np.inf if low is None else low for low, _ in ends]),
        np.array([np.inf if high is None else high for _, high in ends]),
        avoid,
        {
            j: kind
            for j, kind in enumerate(kinds)
            if number[j] and pd.api.types.is_float_dtype(kind) and np.dtype(kind).itemsize < 8
        },
        ~frame.isna().to_numpy() & ~fixed,
        {int(j): _prices(explainer, codes, int(j), known) for j, known in known_levels(view, codes).items()},
    )


def _prices(explainer: Explainer, codes: FloatArray, j: int, known: BoolArray) -> FloatArray:
    """How far each person would be from itself with each level of a column."""
    owner = np.repeat(np.arange(len(codes)), len(known))
    people = codes[owner]
    people[:, j] = np.tile(np.arange(len(known)), len(codes))
    price = explainer.cost(people, codes[owner]).reshape(len(codes), len(known))
    return np.where(known, price, np.inf)


def known_levels(view: View, codes: FloatArray) -> dict[int, BoolArray]:
    """The levels of each column that somebody may have: not missing, and taken by the model.

    A model that can only be asked is shown every level; one that it refuses with a ``ValueError``, as encoders do, is
    nobody's.
    """
    found: dict[int, BoolArray] = {}
    for j, (name, column) in enumerate(view.schema.columns.items()):
        if not column.is_number:
            there = np.array([level is not None for level in column.levels])
            found[j] = there & view.reader.known.get(name, True)
    if view.exact or not found:
        return found
    shown = [(j, level) for j, known in found.items() for level in np.flatnonzero(known)]
    people = np.repeat(codes[:1], len(shown), axis=0)
    for row, (j, level) in zip(people, shown, strict=True):
        row[j] = level
    if not _takes(view, people):
        for row, (j, level) in zip(people, shown, strict=True):
            found[j][level] = _takes(view, row[None])
    return found


def _takes(view: View, people: FloatArray) -> bool:
    try:
        view.decide(people)
    except ValueError:
        return False
    return True
