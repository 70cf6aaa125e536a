"""Who has an explanation, who has none, and why not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.auditing.document.measured import Coverage, DrawCoverage, MethodCoverage, Reason
from evenhand.auditing.everyone import Everyone
from evenhand.auditing.measures import Measures
from evenhand.auditing.prepare import Prepared
from evenhand.status import VALID, Status

EXAMINED = 50  # people without an explanation of whom it is found out which rule blocks them


def coverage(prepared: Prepared, everyone: Everyone, measures: Measures) -> Coverage:
    """Who has an explanation, by the method in use of everybody, by the others of the sample; and why not."""
    setup = prepared.setup
    missing = everyone.needed & ~everyone.found
    people = [
        MethodCoverage(
            setup.in_use,
            people=int(everyone.asked.sum()),
            already=int(everyone.already.sum()),
            found=int(everyone.found.sum()),
            not_found=int(missing.sum()),
        )
    ]
    why: dict[str, dict[str, int]] = {}
    _count(why, setup.in_use, everyone.status[missing])
    first_perturbation = next(iter(setup.perturbations))
    draws = []
    for (method, perturbation), measured in measures.instability.items():
        status = measured.people["status"].to_numpy()
        if method != setup.in_use and perturbation == first_perturbation:
            valid = np.isin(status, VALID)
            explained = int(valid.sum())
            people.append(MethodCoverage(method, len(status), 0, explained, len(status) - explained))
            _count(why, method, status[~valid])
        table = measured.table
        compared = int(table["distance"].notna().sum())
        skipped = int((table["status"] == Status.SKIPPED).sum())
        left_over = len(table) - compared - skipped
        draws.append(DrawCoverage(method, perturbation, len(table), compared, skipped, left_over))
    return Coverage(people, [Reason(reason, counts) for reason, counts in why.items()], draws)


def _count(why: dict[str, dict[str, int]], method: str, status: npt.NDArray[np.str_]) -> None:
    for name, count in zip(*np.unique(status, return_counts=True), strict=True):
        why.setdefault(Status(name).reason, {})[method] = int(count)


def blockers(prepared: Prepared, people: pd.DataFrame) -> list[str]:
    """What stands in the way of some people who have no explanation, most frequent first."""
    explainer = prepared.setup.explainers[prepared.setup.in_use]
    if not len(people) or prepared.setup.view.reader.plain:
        return []
    notes = pd.Series(explainer.explain(people, prepared.target).note)
    if prepared.options.redact:  # other notes name the value that cannot be explained
        notes = notes[notes.str.startswith(Status.UNREACHABLE.reason)]
    counts = notes[notes != ""].value_counts()
    return [f"{count} of {len(people)} people looked at: {note}" for note, count in counts.items()]


def flips_compared(prepared: Prepared, measures: Measures) -> list[str]:
    """What is not set aside has to be said: variations with another decision that are compared all the same."""
    if prepared.options.on_flip == "skip":
        return []
    draws = measures.instability[prepared.setup.in_use, next(iter(prepared.setup.perturbations))].table
    share = float(draws["flipped"].mean()) if len(draws) else 0.0
    return [
        f"{share:.1%} of the variations get another decision; they are compared as well "
        f"(on_flip = {prepared.options.on_flip!r}), and not counted as flipped under coverage."
    ]
