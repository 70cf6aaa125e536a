"""Groups of an audit: what explanations cost them, how far they move, and the gaps between them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, get_args

import numpy as np
import pandas as pd

from evenhand.auditing.document.measured import Boundary, GroupColumn, GroupRow
from evenhand.auditing.document.values import Spread, Typical
from evenhand.auditing.everyone import Everyone
from evenhand.auditing.gaps import FEW, ColumnGroups, GapKind, coverage_gaps, gaps
from evenhand.auditing.measures import Measures
from evenhand.auditing.phrases import from_to, two
from evenhand.auditing.prepare import Prepared, Report
from evenhand.fairness import Gap, Group, Groups, group_gaps, grouped
from evenhand.fairness.groups import MISSING, OTHERS
from evenhand.stats import Interval


@dataclass(frozen=True)
class Grouped:
    """One comparison per sensitive column, and what the document says of it."""

    columns: dict[str, ColumnGroups]
    rows: list[GroupColumn]


def compare_groups(prepared: Prepared, everyone: Everyone, measures: Measures, report: Report) -> Grouped:
    """Compare the groups of every sensitive column, with the method in use."""
    setup, options, table = prepared.setup, prepared.options, prepared.survey.sensitive
    measured = measures.instability[setup.in_use, next(iter(setup.perturbations))]
    moves = measured.table["amplification"].to_numpy(dtype=float)
    person = np.repeat(measures.rows, measured.draws)
    cost = np.where(everyone.found, everyone.cost, np.nan)
    result = Grouped({}, [])
    for i, column in enumerate(table.columns):
        report("comparing groups", i, table.shape[1])
        name, values = str(column), _named(table[column].reset_index(drop=True), everyone, options.redact)
        given = (values, cost, everyone.boundary, moves, person)
        usual = strict = group_gaps(*given, seed=options.seed)
        pairs = max(len(usual.cost_gap.pairs), 1)
        if pairs > 1:
            strict = group_gaps(*given, seed=options.seed, confidence=1 - 0.05 / pairs)
        result.columns[name] = ColumnGroups(usual, strict, _coverage(values, everyone))
        result.rows.append(_row(name, result.columns[name], len(measures.rows), setup.unit, options.redact))
    return result


def _named(values: pd.Series[Any], everyone: Everyone, redact: bool) -> pd.Series[Any]:
    """Groups by name; redacted, without the ends of ranges, which are values of people, and without small groups."""
    named = grouped(values)
    if not redact:
        return named
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
        ranges = [name for name in named.cat.categories if name != MISSING]
        named = named.cat.rename_categories({name: f"range {i + 1} of {len(ranges)}" for i, name in enumerate(ranges)})
    counts = named[everyone.found].value_counts()
    small = [name for name in named.cat.categories if counts.get(name, 0) < FEW]
    return grouped(named.astype(object).where(~named.isin(small), OTHERS))


def _coverage(values: pd.Series[Any], everyone: Everyone) -> dict[str, tuple[int, int]]:
    """People of each group who need an explanation, and how many of them have none."""
    codes, names = values.cat.codes.to_numpy(), list(values.cat.categories)
    needed, missing = everyone.needed, everyone.needed & ~everyone.found
    return {
        str(name): (int((needed & (codes == k)).sum()), int((missing & (codes == k)).sum()))
        for k, name in enumerate(names)
    }


def _row(name: str, column: ColumnGroups, measured: int, unit: str, redact: bool) -> GroupColumn:
    counts = column.coverage
    cost, adjusted, recourse, amplification = (
        next(iter(gaps(column.measured, kind)), None) for kind in get_args(GapKind)
    )
    return GroupColumn(
        column=name,
        groups=[
            _group(_hidden(group) if redact and group.few else group, bool(measured), counts.get(group.name, (0, 0)))
            for group in column.measured.groups
        ],
        cost_gap=_width(cost),
        cost_gap_of=_between(cost),
        adjusted_gap=_width(adjusted),
        adjusted_gap_of=_between(adjusted),
        recourse_gap=_width(recourse),
        recourse_gap_of=_between(recourse),
        amplification_gap=_width(amplification),
        amplification_gap_of=_between(amplification),
        sentence=_sentence(column.measured, column.strict, unit) + _without(counts),
    )


def _width(gap: Gap | None) -> Interval | None:
    return None if gap is None else gap.gap


def _between(gap: Gap | None) -> list[str]:
    return [] if gap is None else [gap.first, gap.second]


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


def _hidden(group: Group) -> Group:
    """A group that is too small to be shown without showing its people: their number is all that is left."""
    nothing = Interval(math.nan, math.nan, math.nan)
    numbers: dict[str, Any] = {f.name: nothing for f in fields(group) if isinstance(getattr(group, f.name), Interval)}
    return replace(group, matched=math.nan, boundary=math.nan, **numbers)


def _group(group: Group, measured: bool, counts: tuple[int, int]) -> GroupRow:
    return GroupRow(
        group=group.name,
        people=group.people,
        few=group.few,
        needed=counts[0],
        not_found=counts[1],
        cost=Spread(group.median, group.p95, group.mean),
        amplification=Typical(group.amplification_median, group.amplification_p95) if measured else None,
        cost_difference=group.cost_difference,
        adjusted_difference=group.adjusted_difference,
        matched=group.matched,
        boundary=Boundary(group.boundary),
    )


def _sentence(groups: Groups, strict: Groups, unit: str) -> str:
    """Whether a group is treated worse, or is only further away; strict intervals, since all pairs are looked at."""
    widest = max(strict.cost_gap.pairs, key=lambda pair: (pair.gap.low, pair.gap.value), default=None)
    if widest is None:
        return "There are no two groups with enough people to compare."
    high, low = _ordered(groups, widest)
    gap = widest.gap
    if not gap.low > 0:
        return (
            f"No difference in typical cost is shown; the largest is between {widest.first} and {widest.second}, "
            f"{two(gap.value)} {unit} (95% interval {from_to(gap)})."
        )
    gap = next(pair.gap for pair in groups.cost_gap.pairs if {pair.first, pair.second} == {widest.first, widest.second})
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


def _ordered(groups: Groups, widest: Gap) -> tuple[Group, Group]:
    """The two groups, the more expensive group first."""
    by_name = {group.name: group for group in groups.groups}
    two = by_name[widest.first], by_name[widest.second]
    return two if two[0].median.value >= two[1].median.value else two[::-1]
