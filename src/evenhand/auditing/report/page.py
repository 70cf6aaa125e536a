"""The page of an audit: a function of what audit.json holds, and of nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evenhand.auditing.document import Document, GateResult
from evenhand.auditing.document.values import finite
from evenhand.auditing.report.cells import method
from evenhand.auditing.report.drawing import known
from evenhand.auditing.report.section import Page
from evenhand.auditing.report.sections import SECTIONS
from evenhand.auditing.report.sections.lookup import for_the_script
from evenhand.pages.figures import specification
from evenhand.pages.template import embedded, environment, scripts, style, text_of

HERE = "evenhand.auditing.report"


def render(document: Document) -> str:
    """The page as one file."""
    page = Page(document)
    charts = {name: chart for section in SECTIONS for name, chart in section.figures(page).items()}
    figures = {name: specification(chart) for name, chart in charts.items()}
    shared = _shared(page) | {"figures": list(figures)}
    templates = environment(HERE)
    parts = [templates.get_template(section.file).render(shared | section.values(page)) for section in SECTIONS]
    return templates.get_template("report.html.j2").render(
        shared,
        parts=parts,
        flags=flags(document.gates),
        style=style(HERE, "report.css"),
        scripts=scripts(figures),
        people=embedded(for_the_script(page)),
        contents=text_of(HERE, "contents.js"),
        lookup=text_of(HERE, "lookup.js"),
    )


def _shared(page: Page) -> dict[str, Any]:
    """What every template knows."""
    about = page.document.audited
    return {
        "document": page.document,
        "about": about,
        "redacted": about.redacted,
        "say": page.say,
        "gates": page.gates,
        "sections": {section.name: section.title for section in SECTIONS},
        "main": page.main,
        "stable": page.stable,
        "limit": page.limit,
        "radius": page.radius,
        "method": method,
        "known": known,
        "finite": finite,
        "arrow": {"up": "▲", "down": "▼", "to": "→"},
        "words": {"up": "increase", "down": "decrease", "to": "change"},
        "ids": [person.id for person in page.lookup],
    }


def flags(gates: Iterable[GateResult]) -> dict[str, str]:
    """Sections with a gate that fails, or else with one that is undecided."""
    by_section: dict[str, str] = {}
    for gate in gates:
        if gate.result == "fail" or (gate.result == "undecided" and gate.section not in by_section):
            by_section[gate.section] = gate.result
    return by_section
