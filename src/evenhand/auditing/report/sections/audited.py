"""What was audited, with settings and hashes."""

from __future__ import annotations

from typing import Any

from evenhand.auditing.document import Document
from evenhand.auditing.report.section import Page, Section
from evenhand.pages.words import many


def values(page: Page) -> dict[str, Any]:
    """What the template shows."""
    return {"answer": answer(page.document)}


def answer(document: Document) -> str:
    """What the report is about."""
    about = document.audited
    hashes = [part for part, it in (("model", about.model), ("data", about.data)) if it.sha256]
    text = f"{about.model.name} decided about {about.data.rows:,} people; "
    text += f"{about.explained:,} of them need an explanation."
    if hashes:
        which = "these hashes" if len(hashes) > 1 else "this hash"
        text += f" Whoever has the {many(hashes)} with {which} can repeat the run."
    return text


SECTION = Section("audited", "What was audited", values)
