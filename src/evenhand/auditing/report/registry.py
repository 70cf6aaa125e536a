"""Sections that are added from outside: one file each, and the order in which all of them stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from evenhand.auditing.report.section import Page, Section
from evenhand.auditing.report.sections import SECTIONS
from evenhand.pages.template import environment, text_of
from evenhand.registering import check_free
from evenhand.settings import nearest

Values = Callable[[Page], dict[str, Any]]

HERE = "evenhand.auditing.report"
OWN = [section.name for section in SECTIONS]
LAST = OWN[OWN.index("limits") - 1]  # what is measured ends here


@dataclass(frozen=True)
class Added:
    """A section from outside, and the one that it follows."""

    section: Section
    after: str


ADDED: dict[str, Added] = {}


def register_section(
    name: str, *, title: str, template: str | Path, figures: Values | None = None, after: str = LAST
) -> Callable[[Values], Values]:
    """Register a function that makes the values of a section; the page and its list of contents then show it.

    The function gets the :class:`Page`. `page.document` is what audit.json holds, as types. `page.evidence` is what
    gates see of the method in use; it is None if the page is made from an audit.json alone, and if ids and values
    are left out of what is written.

    Parameters
    ----------
    name : str
        Its anchor: lower-case letters, digits, hyphens and underscores.
    title : str
        Its heading, also in the list of contents.
    template : str or Path
        What stands under the heading, in Jinja; values are escaped. The text itself, or a Path to a file with it: a
        relative one starts at the folder of the function's file. Templates know `document`, `say` and all else that
        ours know, and can import the macros `table`, `numbers` and `figure` from "macros.html.j2".
    figures : callable, optional
        From the page to charts of Altair by name, which are drawn into the elements ``figure-<name>``.
    after : str
        The section before it: one of ours, or one that is registered already. The last before "limits" if left out.

    Examples
    --------
    >>> @register_section("people_asked", title="Who was asked", template="<p>{{ count }} people.</p>")
    ... def people_asked(page):
    ...     return {"count": page.document.audited.explained}
    >>> [section.title for section in all_sections()][-4:]
    ['Who was asked', 'Limits', 'Regulation', 'Reproduce']
    >>> del ADDED["people_asked"]
    """
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
        raise ValueError(
            "The name of a section is lower-case letters, digits, hyphens and underscores, such as 'dear'; "
            f"got {name!r}."
        )
    _check_place(name, after)

    def register(values: Values) -> Values:
        section = Section(name, title, values, figures or (lambda _: {}), text=_text(name, template, values))
        if name in _own_ids():
            raise ValueError(
                f"The page has a part {name!r} of its own: choose another name, "
                f'@register_section("...", title={title!r}).'
            )
        known = ADDED[name].section.values if name in ADDED else None
        instead = 'choose another name with @register_section("..."), or remove that one from ADDED first.'
        check_free("section", name, values, known, instead)
        ADDED[name] = Added(section, after)
        return values

    return register


def all_sections() -> list[Section]:
    """Ours in their order, each with those that were added after it, in the order in which they were registered."""

    def followed(section: Section) -> Iterator[Section]:
        yield section
        for added in ADDED.values():
            if added.after == section.name:
                yield from followed(added.section)

    return [section for own in SECTIONS for section in followed(own)]


@cache
def _own_ids() -> set[str]:
    """Ids in our templates, the names of our sections among them: links and scripts find the first of two."""
    files = ["report.html.j2", *(section.file for section in SECTIONS)]
    return {"drawing"} | {name for file in files for name in re.findall(r' id="([\w-]+)"', text_of(HERE, file))}


def _check_place(name: str, after: str) -> None:
    known = [*OWN, *(other for other in ADDED if other != name)]
    if after not in known:
        raise ValueError(
            f"The section {name!r} cannot stand after {after!r}: there is no such section.{nearest(after, known)} "
            f"Possible are {', '.join(known)}."
        )
    before = after
    while before in ADDED:
        before = ADDED[before].after
        if before == name:
            raise ValueError(f"The section {name!r} cannot stand after {after!r}, which itself stands after {name!r}.")


def _text(name: str, template: str | Path, values: Values) -> str:
    """The template's text; what is wrong with it is said now, and not at the end of an audit."""
    if isinstance(template, Path):
        file = Path(values.__code__.co_filename).parent / template
        try:
            template = file.read_text(encoding="utf-8")
        except OSError as error:
            raise ValueError(
                f"The template of the section {name!r}, {file}, cannot be read: {error.strerror}."
            ) from None
    try:
        environment(HERE).parse(template)
    except jinja2.TemplateSyntaxError as error:
        raise ValueError(
            f"The template of the section {name!r} is no Jinja, in line {error.lineno}: {error.message}."
        ) from None
    return template
