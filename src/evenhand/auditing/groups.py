"""Groups of an audit: what explanations cost them, how far they move, and the gaps between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.auditing.measures import Measures
from evenhand.auditing.people import Everyone, Prepared, Report
from evenhand.auditing.words import from_to, two
from evenhand.fairness import Gap, Gaps, Group, Groups, group_gaps


@dataclass
class Grouped:
    """One comparison per sensitive column, and what the report says of it."""

    found: dict[str, Groups]
    sections: list[dict[str, Any]]


def group_sections(prepared: Prepared, everyone: Everyone, measures: Measures, report: Report) -> Grouped:
    """Compare the groups of every sensitive column, with the method in use."""
    setup, table = prepared.setup, prepared.survey.sensitive
    noise = next(iter(setup.perturbations))
    one = measures.instability.get((setup.in_use, noise))
    moves = None if one is None else one.table["amplification"].to_numpy(dtype=float)
    person = None if one is None else np.repeat(measures.rows, one.draws)
    cost = np.where(everyone.found, everyone.cost, np.nan)
    found: dict[str, Groups] = {}
    for i, name in enumerate(table.columns):
        report("comparing groups", i, table.shape[1])
        found[str(name)] = group_gaps(
            table[name].reset_index(drop=True), cost, everyone.boundary, moves, person, seed=prepared.options.seed
        )
    return Grouped(found, [_section(name, one, measures, setup.unit) for name, one in found.items()])


def _section(name: str, found: Groups, measures: Measures, unit: str) -> dict[str, Any]:
    section: dict[str, Any] = {
        "column": name,
        "groups": [_group(one, bool(len(measures.rows))) for one in found.groups],
    }
    for key in ("cost_gap", "adjusted_gap", "amplification_gap", "recourse_gap"):
        widest = getattr(found, key).widest
        section[key] = None if widest is None else widest.gap
        section[f"{key}_of"] = [] if widest is None else [widest.first, widest.second]
    section["sentence"] = _sentence(found, unit)
    return section


def _group(one: Group, measured: bool) -> dict[str, Any]:
    return {
        "group": one.name,
        "people": one.people,
        "few": one.few,
        "cost": {"median": one.median, "p95": one.p95, "mean": one.mean},
        "amplification": {"median": one.amplification_median, "p95": one.amplification_p95} if measured else None,
        "cost_difference": one.cost_difference,
        "adjusted_difference": one.adjusted_difference,
        "matched": one.matched,
        "boundary": {"median": one.boundary},
    }


def _sentence(found: Groups, unit: str) -> str:
    """Whether a group is treated worse, or is only further away."""
    widest = found.cost_gap.widest
    if widest is None:
        return "There are no two groups with enough people to compare."
    high, low = _ordered(found, widest)
    gap = widest.gap
    if not gap.low > 0:
        return (
            f"No difference in typical cost is shown; the largest is between {widest.first} and {widest.second}, "
            f"{two(gap.value)} {unit} (95% interval {from_to(gap)})."
        )
    text = (
        f"{high.name}: asked to change {two(gap.value)} {unit} more than {low.name} in the median "
        f"(95% interval {from_to(gap)})."
    )
    adjusted = high.adjusted_difference
    if np.isnan(adjusted.low) or np.isnan(adjusted.high):
        return f"{text} Whether that is distance from the boundary or treatment cannot be told."
    numbers = f"{two(adjusted.value)} {unit}, 95% interval {from_to(adjusted)}"
    if adjusted.low > 0:
        return (
            f"{text} At the same distance from the boundary the difference to everybody else "
            f"remains ({numbers}): the group is treated worse, not only further away."
        )
    if adjusted.high < 0:
        return (
            f"{text} At the same distance from the boundary it is asked less than everybody else "
            f"({numbers}): the group "
            "is further away."
        )
    return f"{text} At the same distance from the boundary no difference to everybody else is shown ({numbers})."


def _ordered(found: Groups, widest: Gap) -> tuple[Group, Group]:
    """The two groups, the more expensive one first."""
    by_name = {one.name: one for one in found.groups}
    two = by_name[widest.first], by_name[widest.second]
    return two if two[0].median.value >= two[1].median.value else two[::-1]


GAPS = {
    "group_cost_gap": "cost_gap",
    "group_adjusted_gap": "adjusted_gap",
    "group_recourse_gap": "recourse_gap",
    "group_amplification_gap": "amplification_gap",
}


def gaps(found: Groups, gate: str) -> Gaps:
    """The gaps that a gate is about."""
    chosen: Gaps = getattr(found, GAPS[gate])
    return chosen
