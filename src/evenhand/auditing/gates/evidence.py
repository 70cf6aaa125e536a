"""What gates are judged on: everything that was measured with the method in use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from evenhand.auditing.document.measured import Stability
from evenhand.auditing.gaps import ColumnGroups
from evenhand.fairness import Pairs


@dataclass(frozen=True)
class Evidence:
    """What was measured with the method in use.

    Attributes
    ----------
    people : DataFrame
        One row per person of the table; the index says who is who. Columns are `needed` and `found`, whether somebody
        needs an explanation and has one, `status`, `cost` and `boundary`, the distance to the boundary.
    stability : sequence of Stability
        One entry per perturbation.
    certificates : DataFrame or None
        Radii of the people who were certified; None if nobody could be, for the reason in `not_certified`.
    pairs : Pairs or None
        Alike pairs; None if there are none, for the reason in `no_pairs`.
    groups : dict from column to ColumnGroups
        Sensitive columns.
    target : label or None
        The decision that people want, if it is known.
    has_boundary : bool
        Whether it is known how far people are from the boundary; it is not if the model is searched.
    notes : sequence of str
        What was done or left out on the way.
    """

    people: pd.DataFrame
    stability: Sequence[Stability] = ()
    certificates: pd.DataFrame | None = None
    not_certified: str = "Nobody could be certified."
    pairs: Pairs | None = None
    no_pairs: str | None = None
    groups: Mapping[str, ColumnGroups] = field(default_factory=dict)
    target: Any = None
    has_boundary: bool = True
    notes: Sequence[str] = ()
