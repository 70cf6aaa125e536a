"""Reading the `target` argument: which label each person should get instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.models import Predictor

ANY_OTHER = -1
FIRST_DRAW = -2


def read_targets(
    target: Any, view: Predictor, n: int, random_state: int | np.random.Generator | None
) -> npt.NDArray[np.int64]:
    """One code per person, independent of what the model predicts for them.

    A code >= 0 is a label's position, ANY_OTHER leaves the choice to the cost, and -2 - r stands for the
    r-th of the labels that the person does not have.  The draws are made for the whole table at
    once, so that they do not depend on how it is cut into chunks.
    """
    if target is None:
        return np.full(n, ANY_OTHER, dtype=np.int64)
    if isinstance(target, str) and target == "random" and "random" not in view.classes.tolist():
        draws = np.random.default_rng(random_state).integers(0, len(view.classes) - 1, size=n)
        return FIRST_DRAW - draws.astype(np.int64)
    if isinstance(target, str) or np.ndim(target) == 0:
        return np.full(n, view.index(target), dtype=np.int64)
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


def aims(codes: npt.NDArray[np.int64], present: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Positions of the labels to aim at (or ANY_OTHER), now that the present ones are known."""
    drawn = FIRST_DRAW - codes
    return np.where(codes <= FIRST_DRAW, drawn + (drawn >= present), codes)
