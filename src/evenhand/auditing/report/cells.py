"""Tables of the page, and what stands in their cells: methods in their colours, estimates with intervals."""

from __future__ import annotations

from typing import Any, NamedTuple

from markupsafe import Markup

from evenhand.auditing.document.values import finite
from evenhand.auditing.report.drawing import known
from evenhand.auditing.report.wording import Wording
from evenhand.stats import Interval

NONE = "–"


class Table(NamedTuple):
    """Columns that end in "|" hold numbers; the first cell of a row is its heading."""

    caption: str
    columns: list[str]
    rows: list[list[Any]]


def method(name: str) -> Markup:
    """A method in its colour, with its mark."""
    return Markup('<span class="m name-{}">{}</span>').format(known(name), name)


def using(name: str, in_use: str) -> Markup:
    """A method, marked if it is the one in use."""
    text = method(name)
    return text + Markup(' <span class="muted">(in use)</span>') if name == in_use else text


def both(interval: Interval | None, unit: str, say: Wording) -> Any:
    """An estimate with its interval under it."""
    if interval is None or not finite(interval.value):
        return NONE
    span = say.span(interval, unit)
    value = Markup("<b>{}</b>").format(say.value(interval, unit))
    return value + Markup(' <span class="muted whole">{}</span>').format(span) if span else value
