"""Gates judged on what was measured, and the verdict in plain words."""

from __future__ import annotations

import math
from typing import Any

from evenhand.auditing.everyone import Everyone
from evenhand.auditing.findings.alike import Paired
from evenhand.auditing.findings.by_group import COVERAGE, GAPS, Grouped, coverage_gaps, gaps
from evenhand.auditing.findings.certificates import certified_share
from evenhand.auditing.gates import Candidate, Gate, Judged, judge
from evenhand.auditing.measures import Measures
from evenhand.auditing.phrases import from_to, two
from evenhand.auditing.prepare import Prepared
from evenhand.stats import Interval, share_interval

ENOUGH, TAIL = 30, 70  # people below which nothing is judged; the 95th percentile takes more
EXIT = {"passed": 0, "failed": 1, "undecided": 3}
MOVES = {
    "median_amplification": ("amplification", "median"),
    "p95_amplification": ("amplification", "p95"),
    "median_distance": ("distance", "median"),
    "p95_distance": ("distance", "p95"),
}


def judged(
    gates: list[Gate],
    prepared: Prepared,
    everyone: Everyone,
    measures: Measures,
    moved: list[dict[str, Any]],
    pairs: Paired,
    groups: Grouped,
) -> list[Judged]:
    """Every gate with its result, for the method in use."""
    in_use = prepared.setup.in_use
    rows = [row for row in moved if row["method"] == in_use]

    def one(gate: Gate) -> Judged:
        if gate.name == "not_found_rate":
            needed = int(everyone.needed.sum())
            missing = needed - int(everyone.found.sum())
            return judge(gate, [Candidate(share_interval(missing, needed))] if needed else [], "Nobody needs one.")
        if gate.name == "certified_share":
            table = measures.certificates.get(in_use)
            assert isinstance(gate.argument, float)
            why = measures.not_certified.get(in_use, "Nobody could be certified.")
            return judge(
                gate,
                [] if table is None else [Candidate(certified_share(table, gate.argument))],
                why,
            )
        if gate.name in ("pair_difference_rate", "pair_break_rate"):
            if pairs.pairs is None:
                return judge(gate, [], pairs.why)
            share = pairs.pairs.different_share if gate.name == "pair_difference_rate" else pairs.pairs.broken_share
            return judge(gate, [Candidate(share)])
        if gate.name in (*GAPS, COVERAGE):
            return _groups(gate, groups, prepared)
        wanted = [row for row in rows if gate.argument in (None, row["perturbation"])]
        least = TAIL if gate.name.startswith("p95") else ENOUGH
        if any(row["people"] < least for row in wanted):
            values = [
                Candidate(_moved(gate, row)._replace(low=math.nan, high=math.nan), row["perturbation"])
                for row in wanted
            ]
            return judge(gate, values)._replace(why=f"Fewer than {least} people were varied, too few to judge by.")
        return judge(
            gate, [Candidate(_moved(gate, row), row["perturbation"]) for row in wanted], _unmeasured(gate, prepared)
        )

    return [one(gate) for gate in gates]


def _moved(gate: Gate, row: dict[str, Any]) -> Any:
    if gate.name == "flip_rate":
        return row["flip_interval"]
    measure, statistic = MOVES[gate.name]
    return row[measure][statistic]


def _unmeasured(gate: Gate, prepared: Prepared) -> str | None:
    return next((note for note in prepared.setup.notes if f"perturbation {gate.argument!r}" in note), None)


def _groups(gate: Gate, groups: Grouped, prepared: Prepared) -> Judged:
    if not groups.found:
        return judge(gate, [], "No sensitive column is named.")
    if prepared.target is None:
        return judge(gate, [], "Without a target it is not known who is at a disadvantage: name the wanted decision.")
    candidates: list[Candidate] = []
    for column in groups.found:
        if gate.argument not in (None, column):
            continue
        if gate.name == COVERAGE:
            counts = groups.coverage[column]
            pairs = coverage_gaps(counts)
            strict = coverage_gaps(counts, strict=True)
        else:
            pairs, strict = (gaps(one[column], gate.name) for one in (groups.found, groups.strict))
        wide = {frozenset((pair.first, pair.second)): pair.gap for pair in strict}
        candidates += [
            Candidate(pair.gap, f"{column}: {pair.first}, {pair.second}", wide[frozenset((pair.first, pair.second))])
            for pair in pairs
        ]
        if not pairs:
            unknown = Interval(math.nan, math.nan, math.nan)
            searched = gate.name == "group_adjusted_gap" and prepared.setup.free is None
            why = (
                "A model that is searched has no known boundary."
                if searched
                else "There are no two groups with enough people."
            )
            candidates.append(Candidate(unknown, column, why=why))
    return judge(gate, candidates)


def verdict(
    results: list[Judged],
    prepared: Prepared,
    moved: list[dict[str, Any]],
    pairs: Paired,
    groups: Grouped,
) -> dict[str, Any]:
    """Passed, failed or undecided, with the finding in a few sentences."""
    counts = {name: sum(one.result == name for one in results) for name in ("pass", "fail", "undecided")}
    result = "failed" if counts["fail"] else "undecided" if counts["undecided"] else "passed"
    failed = {one.gate.known.section for one in results if one.result == "fail"}
    passed = {one.gate.known.section for one in results if one.result == "pass"}
    return {
        "result": result,
        "exit_code": EXIT[result],
        "passed": counts["pass"],
        "failed": counts["fail"],
        "undecided": counts["undecided"],
        "title": _title(result, failed, passed, bool(results)),
        "sentences": _sentences(prepared, moved, pairs, groups),
    }


def _title(result: str, failed: set[str], passed: set[str], judged: bool) -> str:
    """The finding in one sentence, about what was judged and nothing else."""
    if not judged:
        return "No gate was set: the numbers speak for themselves"
    if result == "passed" and passed & {"stability", "pairs"}:
        return "People who are almost alike get almost the same explanation"
    if result == "passed":
        return "Explanations are within all limits that were set"
    if result == "undecided":
        return "Whether explanations are within the limits is not decided"
    if failed & {"stability", "pairs"}:
        return "People who are almost alike do not yet get almost the same explanation"
    if failed == {"groups"}:
        stable = "Explanations are stable, but do" if "stability" in passed else "Explanations do"
        return f"{stable} not cost all groups the same"
    if failed == {"coverage"}:
        return "Too many people get no explanation"
    return "Too many people get no explanation, and groups are not treated the same"


def _sentences(prepared: Prepared, moved: list[dict[str, Any]], pairs: Paired, groups: Grouped) -> list[str]:
    in_use = prepared.setup.in_use
    row = next((one for one in moved if one["method"] == in_use), None)
    sentences = []
    if row is not None and row["amplification"]["median"].value == row["amplification"]["median"].value:
        typical, tail = row["amplification"]["median"], row["amplification"]["p95"]
        sentences.append(
            f"When a person’s data change a little, their explanation changes {two(typical.value)} times as much "
            f"in the median (95% interval {from_to(typical)}); one variation in twenty moves it by more than "
            f"{two(tail.value)} times."
        )
        for other in (one for one in moved if one["method"] == in_use and one is not row):
            there = other["amplification"]
            sentences.append(
                f"Under {other['perturbation']} it is {two(there['median'].value)} times in the median, and more than "
                f"{two(there['p95'].value)} times for one variation in twenty."
            )
    else:
        sentences.append("No explanation could be compared with that of a variation.")
    if pairs.pairs is not None:
        share = pairs.pairs.different_share
        count = int(pairs.pairs.table["alike"].sum())
        sentences.append(
            f"Of {count:,} pairs of similar people, {share.value:.1%} are told to change different things "
            f"(95% interval {share.low:.1%} to {share.high:.1%})."
        )
    sentences += [f"By {section['column']}: {section['sentence']}" for section in groups.sections]
    return sentences
