"""The verdict, its reasons, and every gate."""

from __future__ import annotations

from typing import Any

from evenhand.auditing.document import Document
from evenhand.auditing.document.values import finite
from evenhand.auditing.report import strips
from evenhand.auditing.report.section import Page, Section


def values(page: Page) -> dict[str, Any]:
    """What the template shows."""
    bars = [row for row in page.stable if finite(row.amplification.median.value)]
    return {"summary": summary(page.document), "strips": strips, "bars": bars}


def summary(document: Document) -> str:
    """The result of all gates in a line."""
    counts = document.verdict
    total = counts.passed + counts.failed + counts.undecided
    if not total:
        return "No gate was set"
    gates = "gate" if total == 1 else "gates"
    if counts.result == "passed":
        return f"Passed: {total} of {total} {gates}"
    open_ = f"{counts.undecided} undecided"
    if counts.result == "undecided":
        return f"Not decided: {counts.undecided} of {total} {gates} undecided"
    text = f"Not passed: {counts.failed} of {total} {gates} {'fails' if counts.failed == 1 else 'fail'}"
    return f"{text}, {open_}" if counts.undecided else text


SECTION = Section("verdict", "Verdict", values)
