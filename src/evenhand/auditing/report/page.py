"""The page of an audit: a function of what audit.json holds, apart from sections that were added from outside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import jinja2

from evenhand.auditing.document import Document, GateResult
from evenhand.auditing.document.values import finite
from evenhand.auditing.errors import AuditError, short
from evenhand.auditing.gates.evidence import Evidence
from evenhand.auditing.report.cells import method
from evenhand.auditing.report.drawing import known
from evenhand.auditing.report.registry import HERE, all_sections
from evenhand.auditing.report.section import Page, Section
from evenhand.auditing.report.sections.lookup import for_the_script
from evenhand.pages.figures import specification
from evenhand.pages.template import embedded, environment, scripts, style, text_of


def render(document: Document, evidence: Evidence | None = None) -> str:
    """The page as one file; sections from outside may show what gates see, if it is at hand."""
    page, sections = Page(document, None if document.audited.redacted else evidence), all_sections()
    figures = _figures(sections, page)
    shared = _shared(page, sections) | {"figures": list(figures)}
    templates = environment(HERE)
    parts = [_part(section, page, shared, templates) for section in sections]
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


def _figures(sections: list[Section], page: Page) -> dict[str, dict[str, Any]]:
    """Specifications of the charts of all sections by name; ours come first, so that their names are theirs."""
    figures: dict[str, dict[str, Any]] = {}
    for section in sorted(sections, key=lambda section: section.text is not None):
        with _naming(section):
            for name, chart in section.figures(page).items():
                if name in figures:
                    raise ValueError(f"there is a figure {name!r} already, call it '{section.name}-{name}'")
                figures[name] = specification(chart)
    return figures


def _part(section: Section, page: Page, shared: dict[str, Any], templates: jinja2.Environment) -> str:
    if section.text is None:
        return templates.get_template(section.file).render(shared | section.values(page))
    with _naming(section):
        inside = templates.from_string(section.text).render(shared | section.values(page))
    return templates.get_template("added.html.j2").render(section=section, inside=inside)


@contextmanager
def _naming(section: Section) -> Iterator[None]:
    """Say which section from outside it is that cannot be shown."""
    try:
        yield
    except Exception as error:
        if section.text is None:
            raise
        raise AuditError(
            f"The section {section.name!r} of {section.values.__module__} cannot be shown: {short(error)}. "
            "Mend it, or leave its module out."
        ) from error


def _shared(page: Page, sections: list[Section]) -> dict[str, Any]:
    """What every template knows."""
    about = page.document.audited
    return {
        "document": page.document,
        "about": about,
        "redacted": about.redacted,
        "say": page.say,
        "gates": page.gates,
        "sections": {section.name: section.title for section in sections},
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
