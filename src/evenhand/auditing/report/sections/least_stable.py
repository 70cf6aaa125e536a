"""The people whose explanations move most."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from evenhand.auditing.document import Document
from evenhand.auditing.report.section import Page, Section
from evenhand.stats import Interval


def values(page: Page) -> dict[str, Any]:
    """What the template shows."""
    spans = [
        page.say.span(Interval(card.amplification, card.low, card.high), "times") for card in page.document.least_stable
    ]
    return {"answer": answer(page.document), "cards": list(zip(page.document.least_stable, spans, strict=True))}


FEW = dict(enumerate(["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 2))


def answer(document: Document) -> Markup:
    """What the cards show."""
    count = len(document.least_stable)
    if not count:
        return Markup("Nobody’s explanation could be compared, so nobody is listed.")
    who = "For this person" if count == 1 else f"For these {FEW.get(count, count)}"
    text = "{}, a slight change in the data gives the most different answer. <mark>Highlighted</mark>: what differs."
    return Markup(text).format(who)


SECTION = Section("people", "Least stable people", values, template="least_stable")
