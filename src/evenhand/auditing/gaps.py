"""Gaps between the groups of a column: what gates about groups are judged on, and what the document shows of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from evenhand.fairness import Gap, Groups
from evenhand.fairness.intervals import absolute
from evenhand.stats import Interval, share_interval

FEW = 30  # people below whom a group decides nothing

GapKind = Literal["cost_gap", "adjusted_gap", "recourse_gap", "amplification_gap"]


@dataclass(frozen=True)
class ColumnGroups:
    """The groups of one sensitive column.

    Attributes
    ----------
    measured : Groups
        Costs and amplifications, with intervals for each number by itself.
    strict : Groups
        The same with intervals that hold for all pairs of groups at once.
    coverage : dict from group to (int, int)
        People who need an explanation, and how many of them have none.
    """

    measured: Groups
    strict: Groups
    coverage: dict[str, tuple[int, int]]


def gaps(groups: Groups, kind: GapKind) -> list[Gap]:
    """The gaps of a kind, the widest first.

    At the same distance a group is compared with everybody else: only one that is asked more is harmed.
    """
    pairs: list[Gap] = [*getattr(groups, kind).pairs]
    if kind != "adjusted_gap":
        return pairs
    worse = {group.name for group in groups.groups if group.adjusted_difference.value >= 0}
    return [pair for pair in pairs if pair.first in worse] or pairs


def coverage_gaps(counts: dict[str, tuple[int, int]], *, strict: bool = False) -> list[Gap]:
    """Differences of shares without an explanation, of all pairs of groups that are not small (Newcombe's interval).

    With `strict` the intervals hold for all pairs at once.
    """
    pairs = [pair for pair in combinations(counts.items(), 2) if min(pair[0][1][0], pair[1][1][0]) >= FEW]
    confidence = 1 - 0.05 / max(len(pairs), 1) if strict else 0.95
    differences = []
    for (a, (n, without)), (b, (m, other)) in pairs:
        first, second = share_interval(without, n, confidence), share_interval(other, m, confidence)
        value = first.value - second.value
        low = value - math.hypot(first.value - first.low, second.high - second.value)
        high = value + math.hypot(first.high - first.value, second.value - second.low)
        differences.append(Gap(a, b, absolute(Interval(value, low, high))))
    return sorted(differences, key=lambda gap: -gap.gap.value)
