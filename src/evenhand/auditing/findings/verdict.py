"""The verdict over all gates, in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from evenhand.auditing.document.measured import GroupColumn, Stability
from evenhand.auditing.document.overall import Outcome, Result, Verdict
from evenhand.auditing.gates import Gate, Judged
from evenhand.auditing.phrases import from_to, two
from evenhand.fairness import Pairs

EXIT: dict[Outcome, Literal[0, 1, 3]] = {"passed": 0, "failed": 1, "undecided": 3}


def verdict(
    results: Sequence[Judged], moved: Sequence[Stability], pairs: Pairs | None, groups: Sequence[GroupColumn]
) -> Verdict:
    """Passed, failed or undecided, with the finding in a few sentences; `moved` is of the method in use."""
    names: tuple[Result, ...] = ("pass", "fail", "undecided")
    by_result = {name: [judged for judged in results if judged.result == name] for name in names}
    result: Outcome = "failed" if by_result["fail"] else "undecided" if by_result["undecided"] else "passed"
    failed = [judged.condition.gate for judged in by_result["fail"]]
    passed = [judged.condition.gate for judged in by_result["pass"]]
    return Verdict(
        result=result,
        exit_code=EXIT[result],
        passed=len(by_result["pass"]),
        failed=len(by_result["fail"]),
        undecided=len(by_result["undecided"]),
        title=_title(result, failed, passed, bool(results)),
        sentences=_sentences(moved, pairs, groups),
    )


def _title(result: Outcome, failing: Sequence[Gate], passing: Sequence[Gate], judged: bool) -> str:
    """The finding in one sentence, about what was judged and nothing else."""
    if not judged:
        return "No gate was set: the numbers speak for themselves"
    # A gate with a sentence of its own says nothing of the rest of its section.
    failed, passed = ({gate.section for gate in gates if gate.failing is None} for gates in (failing, passing))
    if failing and not failed:
        return str(failing[0].failing)
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


def _sentences(moved: Sequence[Stability], pairs: Pairs | None, groups: Sequence[GroupColumn]) -> list[str]:
    sentences = []
    if moved and not math.isnan(moved[0].amplification.median.value):
        typical, tail = moved[0].amplification.median, moved[0].amplification.p95
        sentences.append(
            f"When a person’s data change a little, their explanation changes {two(typical.value)} times as much "
            f"in the median (95% interval {from_to(typical)}); one variation in twenty moves it by more than "
            f"{two(tail.value)} times."
        )
        sentences += [
            f"Under {row.perturbation} it is {two(row.amplification.median.value)} times in the median, and more "
            f"than {two(row.amplification.p95.value)} times for one variation in twenty."
            for row in moved[1:]
        ]
    else:
        sentences.append("No explanation could be compared with that of a variation.")
    if pairs is not None:
        share = pairs.different_share
        count = int(pairs.table["alike"].sum())
        sentences.append(
            f"Of {count:,} pairs of similar people, {share.value:.1%} are told to change different things "
            f"(95% interval {share.low:.1%} to {share.high:.1%})."
        )
    sentences += [f"By {column.column}: {column.sentence}" for column in groups]
    return sentences
