"""The worst perturbations that were found: of every person of a table, and as users see them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.explaining.explanations import Explanations
from evenhand.markup import framed
from evenhand.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class WorstCase:
    """The worst perturbation that was found for each person; :func:`worst_case` makes it.

    Attributes
    ----------
    table : DataFrame
        One row per person: `radius`, the largest `distance` between explanations that was found, the `bound` that is
        proven (NaN for methods that prove nothing, infinity where the prediction may change), `amplification`
        (distance / radius), `reached` (distance / bound), whether the prediction `flipped`, how far the perturbed
        person is away (`input_distance`), and whether the search was `exhaustive`: every possible person within the
        radius was tried, so that no perturbation moves the explanation further.  All in units of the cost.
    perturbed : array or table of shape (n, n_features)
        The perturbed people: an array for tables of numbers, otherwise a table of the form and the types that were
        given.
    original, moved : Explanations
        What the people and the perturbed people are told.
    """

    table: pd.DataFrame
    perturbed: Any = field(repr=False)
    original: Explanations = field(repr=False)
    moved: Explanations = field(repr=False)

    @property
    def advice(self) -> pd.DataFrame:
        """In words, one row per person: how it was perturbed, and what it is told before and after.

        `columns_before` and `columns_after` name the columns that it is told to change; without an explanation the
        words say why, and the columns are empty.
        """
        change = replace(self.original, counterfactual=self.moved.factual)
        rows = range(len(self.table))
        is_moved = self.table["input_distance"].to_numpy() > 0
        return pd.DataFrame(
            {
                "person": self.table["person"],
                "perturbation": [change.describe(i) if is_moved[i] else "" for i in rows],
                "before": [self.original.describe(i) for i in rows],
                "after": [self.moved.describe(i) for i in rows],
                "columns_before": _changed_columns(self.original),
                "columns_after": _changed_columns(self.moved),
            }
        )

    def __repr__(self) -> str:
        found = self.table["amplification"].to_numpy()
        worst = f": largest amplification {np.nanmax(found):.4g}" if np.isfinite(found).any() else ""
        return f"WorstCase({len(self.table)} people{worst})"

    def _repr_html_(self) -> str:
        return framed(repr(self), self.table.sort_values("distance", ascending=False).head(10).set_index("person"))


class Worst(NamedTuple):
    """What a search found for every person of a table, each confirmed in the form that is reported."""

    perturbed: Any
    moved: Explanations
    distance: FloatArray  # between explanations
    size: FloatArray  # of the perturbation
    flipped: BoolArray
    bound: FloatArray  # proven; NaN where nothing is
    exhaustive: BoolArray


def described(index: pd.Index, original: Explanations, radius: FloatArray, worst: Worst) -> WorstCase:
    """One row per person: what was found, next to what is proven."""
    distance, bound = worst.distance, worst.bound
    amplification = np.full(len(radius), np.nan)  # of a radius of 0
    np.divide(distance, radius, out=amplification, where=radius > 0)
    table = pd.DataFrame(
        {
            "person": index,
            "target": original.target,
            "status": original.status,
            "radius": radius,
            "distance": distance,
            "bound": bound,
            "amplification": amplification,
            "reached": np.where(np.isfinite(bound) & (bound > 0), distance / np.where(bound > 0, bound, 1.0), np.nan),
            "flipped": worst.flipped,
            "input_distance": worst.size,
            "exhaustive": worst.exhaustive,
        }
    )
    return WorstCase(table, worst.perturbed, original, worst.moved)


def _changed_columns(explanations: Explanations) -> list[tuple[Any, ...]]:
    """Names of the columns that each person is told to change; none without an explanation."""
    changes = explanations.changes
    frame = pd.DataFrame(changes).rename(columns="x{}".format) if isinstance(changes, np.ndarray) else changes
    changed = [
        [not pd.isna(value) and value != 0 and told for value in row]
        for row, told in zip(frame.astype(object).to_numpy(), explanations.valid, strict=True)
    ]
    return [tuple(name for name, moves in zip(frame.columns, row, strict=True) if moves) for row in changed]
