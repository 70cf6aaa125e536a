"""Whether people who are alike are told alike, and whether it costs one group more than another."""

from __future__ import annotations

from evenhand.fairness.groups import Gap, Gaps, Group, Groups, group_gaps, grouped
from evenhand.fairness.pairs import Pairs, alike_pairs

__all__ = ["Gap", "Gaps", "Group", "Groups", "Pairs", "alike_pairs", "group_gaps", "grouped"]
