"""Reading the `target` argument: which label each person should get instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.models import View
from evenhand.randomness import chosen, identities, seed_of

ANY_OTHER = -1
FIRST_DRAW = -2


def read_targets(
    target: Any, view: View, index: pd.Index, random_state: int | np.random.Generator | None
) -> npt.NDArray[np.int64]:
    """One code per person, independent of what the model predicts for them.

    A code >= 0 is a label's position, ANY_OTHER leaves the choice to the cost, and -2 - r stands for the
    r-th of the labels that the person does not have.  Random labels follow the person, wherever in a table it is.
    """
    n = len(index)
    if target is None:
        return np.full(n, ANY_OTHER, dtype=np.int64)
    if isinstance(target, str) and target == "random" and "random" not in view.classes.tolist():
        return FIRST_DRAW - chosen(seed_of(random_state), identities(index), len(view.classes) - 1)
    if isinstance(target, str) or np.ndim(target) == 0:
        return np.full(n, view.index(target), dtype=np.int64)
    if isinstance(target, pd.Series) and len(target) == n:
        target = followed(target, index, "target")
    labels = np.asarray(target)
    if labels.shape != (n,):
        raise ValueError(
            f"target has shape {labels.shape}, the table has {n} rows. Pass one label for all, one label per row, "
            '"random", or None for the cheapest other label.'
        )
    codes = view.positions(labels)
    if (codes < 0).any():
        unknown = labels[codes < 0].tolist()[0]
        raise ValueError(f"Unknown label {unknown!r} in target; the model knows {view.classes.tolist()}.")
    return codes


def followed(values: pd.Series[Any], index: pd.Index, name: str) -> pd.Series[Any]:
    """Values in the order of the people, if both have labels; positions otherwise.

    The numbers of rows in another order may be labels or left over from before: then nobody can say what is meant.
    """
    if values.index.equals(index) or not (index.is_unique and values.index.is_unique):
        return values
    if isinstance(index, pd.RangeIndex):
        if len(values) == len(index) and index.isin(values.index).all():
            raise ValueError(
                f"The index of {name} has the numbers of the table's rows in another order. Say what is meant: "
                f"{name}.loc[table.index] follows the index, {name}.to_numpy() goes by position."
            )
        return values
    if not index.isin(values.index).all():
        missing = index[~index.isin(values.index)][0]
        raise ValueError(f"{name} has no value for the person {missing!r}: its index is not that of the table.")
    return values.loc[index]


def aims(codes: npt.NDArray[np.int64], present: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Positions of the labels to aim at (or ANY_OTHER), now that the present ones are known."""
    drawn = FIRST_DRAW - codes
    return np.where(codes <= FIRST_DRAW, drawn + (drawn >= present), codes)
