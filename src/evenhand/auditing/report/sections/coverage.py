"""Who got an explanation, and which comparisons could be made."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from evenhand.auditing.document import Document
from evenhand.auditing.document.measured import DrawCoverage, MethodCoverage
from evenhand.auditing.report import strips
from evenhand.auditing.report.cells import Table, method, using
from evenhand.auditing.report.section import Page, Section, in_order
from evenhand.auditing.report.wording import Wording
from evenhand.pages.look import METHODS


def values(page: Page) -> dict[str, Any]:
    """What the template shows."""
    coverage = page.document.coverage
    drawn = [row for row in coverage.draws if row.perturbation == page.main and row.draws]
    return {
        "answer": answer(page.document, page.main),
        "mine": in_order(drawn),
        "strips": strips,
        "draws": draws(page.document, in_order(coverage.draws)),
        "people": people(page.document, in_order(coverage.people)),
        "reasons": reasons(page.document, _methods(page.document)),
    }


def answer(document: Document, main: str | None) -> Markup:
    """How many of the planned comparisons could be made."""
    in_use = document.audited.in_use
    for row in document.coverage.draws:
        if row.method == in_use and row.perturbation == main and row.draws:
            share = Wording().number(row.compared / row.draws, "share")
            return Markup(
                "With {}, the method in use, {} of the {} planned comparisons could be made. "
                "What is left out is counted here and not dropped silently."
            ).format(method(in_use), share, f"{row.draws:,}")
    return Markup("No comparison was planned, so there is nothing that could be left out.")


def people(document: Document, rows: list[MethodCoverage]) -> Table:
    """Who got an explanation, by method."""
    in_use = document.audited.in_use
    return Table(
        "People, by method",
        ["Method", "People|", "Explained|", "Need none|", "Not found|"],
        [
            [
                using(row.method, in_use),
                *(f"{count:,}" for count in (row.people, row.found, row.already, row.not_found)),
            ]
            for row in rows
        ],
    )


def reasons(document: Document, methods: list[str]) -> Table:
    """Why there is no explanation."""
    return Table(
        "Why no explanation was found: people, by method",
        ["Reason", *(f"{name}|" for name in methods)],
        [[row.reason, *(f"{row.counts.get(name, 0):,}" for name in methods)] for row in document.coverage.reasons],
    )


def draws(document: Document, rows: list[DrawCoverage]) -> Table:
    """What became of the planned comparisons."""
    in_use = document.audited.in_use
    return Table(
        "Comparisons, by method and perturbation",
        ["Method", "Perturbation", "Planned|", "Compared|", "Decision flipped|", "Not found|"],
        [
            [using(row.method, in_use), row.perturbation]
            + [f"{count:,}" for count in (row.draws, row.compared, row.flipped, row.not_found)]
            for row in rows
        ],
    )


def _methods(document: Document) -> list[str]:
    """Methods that have a column in the table of reasons."""
    counted = {name for row in document.coverage.reasons for name in row.counts}
    return [*(name for name in METHODS if name in counted), *sorted(counted - set(METHODS))]


SECTION = Section("coverage", "Coverage", values)
