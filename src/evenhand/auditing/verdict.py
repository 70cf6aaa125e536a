"""Gates judged on what was measured, and the verdict in plain words."""

from __future__ import annotations

from typing import Any

from evenhand.auditing.content import certified_share
from evenhand.auditing.gates import Candidate, Gate, Judged, judge
from evenhand.auditing.groups import GAPS, Grouped, gaps
from evenhand.auditing.measures import Measures
from evenhand.auditing.pairs import Paired
from evenhand.auditing.people import Everyone, Prepared
from evenhand.auditing.words import from_to, two
from evenhand.stats import share_interval

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
            return judge(gate, [] if table is None else [Candidate(certified_share(table, gate.argument))], why)
        if gate.name in ("pair_difference_rate", "pair_break_rate"):
            if pairs.pairs is None:
                return judge(gate, [], pairs.why)
            share = pairs.pairs.different_share if gate.name == "pair_difference_rate" else pairs.pairs.broken_share
            return judge(gate, [Candidate(share)])
        if gate.name in GAPS:
            return _groups(gate, groups)
        wanted = [row for row in rows if gate.argument in (None, row["perturbation"])]
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


def _groups(gate: Gate, groups: Grouped) -> Judged:
    candidates = [
        Candidate(pair.gap, f"{column}: {pair.first}, {pair.second}")
        for column, found in groups.found.items()
        if gate.argument in (None, column)
        for pair in gaps(found, gate.name).pairs
    ]
    why = "No sensitive column is named." if not groups.found else "There are no two groups with enough people."
    return judge(gate, candidates, why)


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
    titles = {
        "failed": "People who are almost alike do not yet get almost the same explanation",
        "undecided": "Whether people who are almost alike get almost the same explanation is not decided",
        "passed": "People who are almost alike get almost the same explanation",
    }
    only_groups = {one.gate.known.section for one in results if one.result == "fail"} == {"groups"}
    if only_groups:
        titles["failed"] = "Explanations are stable, but do not cost all groups the same"
    return {
        "result": result,
        "exit_code": EXIT[result],
        "passed": counts["pass"],
        "failed": counts["fail"],
        "undecided": counts["undecided"],
        "title": titles[result] if results else "No gate was set: the numbers speak for themselves",
        "sentences": _sentences(prepared, moved, pairs, groups),
    }


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
