"""Distances between people, usable as the cost of changing one into the other."""

from __future__ import annotations

from evenhand.costs.gower import Gower
from evenhand.costs.named import (
    COSTS,
    Cost,
    Distance,
    Norm,
    as_cost,
    as_distance,
    cost_for,
    fitting,
    named_cost,
    weighed,
)
from evenhand.costs.norm import L1, L2, by_row

__all__ = [
    "COSTS",
    "L1",
    "L2",
    "Cost",
    "Distance",
    "Gower",
    "Norm",
    "as_cost",
    "as_distance",
    "by_row",
    "cost_for",
    "fitting",
    "named_cost",
    "weighed",
]
