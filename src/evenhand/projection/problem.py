"""What is asked of a solver: the cheapest point of a region, given what may change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.sets import Region
from evenhand.table.layout import Layout
from evenhand.table.limits import FREE, Limits
from evenhand.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Problem:
    """Where to go, what that costs, and what may change; the only thing that a solver sees.

    Attributes
    ----------
    region : Region, or another kind of region that has a solver of its own
        Where answers lie, in expanded rows.
    cost : L1, L2 or Gower
        What to minimise.
    limits : Limits
        What may change.
    layout : Layout
        From rows of codes, in which people and answers are given, to expanded rows.
    max_nodes : int
        Where a search for one person stops: a number of nodes, so that answers do not depend on the machine.
    """

    region: Any
    cost: Any
    limits: Limits
    layout: Layout
    max_nodes: int = 10_000

    @classmethod
    def of_numbers(cls, region: Region, cost: Any, limits: Limits | None = None) -> Problem:
        """A problem over a table of numbers; without limits everything may change."""
        dim = region.dim
        free = Limits(np.full(dim, FREE, dtype=np.int64), np.full(dim, -np.inf), np.full(dim, np.inf))
        return cls(region, cost, free if limits is None else limits, Layout.of_numbers(dim))

    @property
    def n_columns(self) -> int:
        """Columns of the table."""
        return self.layout.n_columns

    def holding(self, columns: tuple[int, ...]) -> Problem:
        """The same with some columns of the table held as they are."""
        return replace(self, limits=self.limits.holding(columns))

    def onto(self, region: Any) -> Problem:
        """The same for another region."""
        return replace(self, region=region)

    def admits(self, people: FloatArray, points: FloatArray, tol: float) -> BoolArray:
        """Which points are in the region, up to a distance of `tol`, and may be reached by each person."""
        inside: BoolArray = self.region.contains(self.layout.expand(points), tol)
        return inside & self.limits.admits(points, people, tol)
