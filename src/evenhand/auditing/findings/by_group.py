"""Groups of an audit: what explanations cost them, how far they move, and the gaps between them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from evenhand.auditing.everyone import Everyone
from evenhand.auditing.measures import Measures
from evenhand.auditing.phrases import from_to, two
from evenhand.auditing.prepare import Prepared, Report
from evenhand.fairness import Gap, Group, Groups, group_gaps, grouped
from evenhand.fairness.groups import MISSING, OTHERS
from evenhand.fairness.intervals import absolute
from evenhand.stats import Interval, share_interval

FEW = 30  # people below whom a group decides nothing


@dataclass
class Grouped:
    """One comparison per sensitive column, and what the report says of it.

    `strict` are the same comparisons with intervals for looking at all pairs of groups of a column at once.
    """

    found: dict[str, Groups]
    strict: dict[str, Groups]
    coverage: dict[str, dict[str, tuple[int, int]]]  # by column and group: people who need an explanation, without one
    sections: list[dict[str, Any]]


def group_sections(prepared: Prepared, everyone: Everyone, measures: Measures, report: Report) -> Grouped:
    """Compare the groups of every sensitive column, with the method in use."""
    setup, table = prepared.setup, prepared.survey.sensitive
    noise = next(iter(setup.perturbations))
    one = measures.instability[setup.in_use, noise]
    moves = one.table["amplification"].to_numpy(dtype=float)
    person = np.repeat(measures.rows, one.draws)
    cost = np.where(everyone.found, everyone.cost, np.nan)
    result = Grouped({}, {}, {}, [])
    for i, column in enumerate(table.columns):
        report("comparing groups", i, table.shape[1])
        name, values = str(column), _named(table[column].reset_index(drop=True), everyone, prepared.options.redact)
        given = (values, cost, everyone.boundary, moves, person)
        result.found[name] = group_gaps(*given, seed=prepared.options.seed)
        pairs = max(len(result.found[name].cost_gap.pairs), 1)
        confidence = 1 - 0.05 / pairs
        result.strict[name] = (
            result.found[name] if pairs == 1 else group_gaps(*given, seed=prepared.options.seed, confidence=confidence)
        )
        result.coverage[name] = _coverage(values, everyone)
        result.sections.append(_section(name, result, len(measures.rows), setup.unit, prepared.options.redact))
    return result


def _named(values: pd.Series[Any], everyone: Everyone, redact: bool) -> pd.Series[Any]:
    """Groups by name; redacted, without the ends of ranges, which are values of people, and without small groups."""
    named = grouped(values)
    if not redact:
        return named
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
        ranges = [one for one in named.cat.categories if one != MISSING]
        named = named.cat.rename_categories({one: f"range {i + 1} of {len(ranges)}" for i, one in enumerate(ranges)})
    counts = named[everyone.found].value_counts()
    small = [one for one in named.cat.categories if counts.get(one, 0) < FEW]
    return grouped(named.astype(object).where(~named.isin(small), OTHERS))


def _coverage(values: pd.Series[Any], everyone: Everyone) -> dict[str, tuple[int, int]]:
    """People of each group who need an explanation, and how many of them have none."""
    codes, names = values.cat.codes.to_numpy(), list(values.cat.categories)
    needed, missing = everyone.needed, everyone.needed & ~everyone.found
    return {
        str(name): (int((needed & (codes == k)).sum()), int((missing & (codes == k)).sum()))
        for k, name in enumerate(names)
    }


def coverage_gaps(counts: dict[str, tuple[int, int]], *, strict: bool = False) -> list[Gap]:
    """Differences of shares without an explanation, of all pairs of groups that are not small (Newcombe's interval).

    With `strict` the intervals hold for all pairs at once.
    """
    pairs = [pair for pair in combinations(counts.items(), 2) if min(pair[0][1][0], pair[1][1][0]) >= FEW]
    confidence = 1 - 0.05 / max(len(pairs), 1) if strict else 0.95
    found = []
    for (a, (n, without)), (b, (m, other)) in pairs:
        first, second = share_interval(without, n, confidence), share_interval(other, m, confidence)
        value = first.value - second.value
        low = value - math.hypot(first.value - first.low, second.high - second.value)
        high = value + math.hypot(first.high - first.value, second.value - second.low)
        found.append(Gap(a, b, absolute(Interval(value, low, high))))
    return sorted(found, key=lambda gap: -gap.gap.value)


def _section(name: str, result: Grouped, measured: int, unit: str, redact: bool) -> dict[str, Any]:
    found, counts = result.found[name], result.coverage[name]
    section: dict[str, Any] = {
        "column": name,
        "groups": [
            _group(_hidden(one) if redact and one.few else one, bool(measured), counts.get(one.name, (0, 0)))
            for one in found.groups
        ],
    }
    for gate, key in GAPS.items():
        widest = next(iter(gaps(found, gate)), None)
        section[key] = None if widest is None else widest.gap
        section[f"{key}_of"] = [] if widest is None else [widest.first, widest.second]
    section["sentence"] = _sentence(found, result.strict[name], unit) + _without(counts)
    return section


def _without(counts: dict[str, tuple[int, int]]) -> str:
    """A sentence more if groups differ in who gets an explanation at all."""
    shown = [gap for gap in coverage_gaps(counts, strict=True) if gap.gap.low > 0]
    if not shown:
        return ""
    worst = max(shown, key=lambda gap: gap.gap.low)
    shares = {name: without / n for name, (n, without) in counts.items() if n}
    return (
        f" Without any explanation are {shares[worst.first]:.1%} of {worst.first} and {shares[worst.second]:.1%} of "
        f"{worst.second}; they are in no cost."
    )


def _hidden(one: Group) -> Group:
    """A group that is too small to be shown without showing its people: their number is all that is left."""
    nothing = Interval(math.nan, math.nan, math.nan)
    numbers: dict[str, Any] = {f.name: nothing for f in fields(one) if isinstance(getattr(one, f.name), Interval)}
    return replace(one, matched=math.nan, boundary=math.nan, **numbers)


def _group(one: Group, measured: bool, counts: tuple[int, int]) -> dict[str, Any]:
    return {
        "group": one.name,
        "people": one.people,
        "few": one.few,
        "needed": counts[0],
        "not_found": counts[1],
        "cost": {"median": one.median, "p95": one.p95, "mean": one.mean},
        "amplification": {"median": one.amplification_median, "p95": one.amplification_p95} if measured else None,
        "cost_difference": one.cost_difference,
        "adjusted_difference": one.adjusted_difference,
        "matched": one.matched,
        "boundary": {"median": one.boundary},
    }


def _sentence(found: Groups, strict: Groups, unit: str) -> str:
    """Whether a group is treated worse, or is only further away; strict intervals, since all pairs are looked at."""
    widest = max(strict.cost_gap.pairs, key=lambda pair: (pair.gap.low, pair.gap.value), default=None)
    if widest is None:
        return "There are no two groups with enough people to compare."
    high, low = _ordered(found, widest)
    gap = widest.gap
    if not gap.low > 0:
        return (
            f"No difference in typical cost is shown; the largest is between {widest.first} and {widest.second}, "
            f"{two(gap.value)} {unit} (95% interval {from_to(gap)})."
        )
    gap = next(one.gap for one in found.cost_gap.pairs if {one.first, one.second} == {widest.first, widest.second})
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
COVERAGE = "group_not_found_gap"


def gaps(found: Groups, gate: str) -> list[Gap]:
    """The gaps that a gate is about, the widest first.

    At the same distance a group is compared with everybody else: only one that is asked more is harmed.
    """
    pairs: list[Gap] = [*getattr(found, GAPS[gate]).pairs]
    if gate != "group_adjusted_gap":
        return pairs
    worse = {one.name for one in found.groups if one.adjusted_difference.value >= 0}
    return [pair for pair in pairs if pair.first in worse] or pairs
