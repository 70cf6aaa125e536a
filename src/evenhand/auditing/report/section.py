"""What all sections of the page share: the document, and what is taken from it more than once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

from evenhand.auditing.document import Document, GateResult
from evenhand.auditing.document.individuals import Person
from evenhand.auditing.document.measured import Stability
from evenhand.auditing.gates.evidence import Evidence
from evenhand.auditing.report.wording import Wording
from evenhand.pages.look import METHODS


class OfMethod(Protocol):
    """A row of the document that is about one method."""

    @property
    def method(self) -> str: ...  # noqa: D102


T = TypeVar("T", bound=OfMethod)


@dataclass(frozen=True)
class Page:
    """The document of an audit, with the numbers that several sections refer to.

    `evidence` is for sections from outside; ours are functions of the document. It is None where there is only an
    audit.json, and where ids and values are left out of what is written.
    """

    document: Document
    evidence: Evidence | None = None

    @cached_property
    def say(self) -> Wording:
        """How numbers are written."""
        return Wording(self.document.audited.unit)

    @property
    def in_use(self) -> str:
        """The method that people's explanations come from."""
        return self.document.audited.in_use

    @cached_property
    def gates(self) -> dict[str, GateResult]:
        """Gates by name, of two with one name the first."""
        return {gate.name: gate for gate in reversed(self.document.gates)}

    @cached_property
    def main(self) -> str | None:
        """The perturbation that figures show."""
        return main_perturbation(self.document)

    @cached_property
    def stable(self) -> list[Stability]:
        """How far explanations move under it, by method."""
        return in_order([row for row in self.document.stability if row.perturbation == self.main])

    @property
    def limit(self) -> float | None:
        """That of the median amplification, if there is a gate."""
        gate = self.gates.get("median_amplification")
        return None if gate is None else gate.limit

    @property
    def radius(self) -> float | None:
        """That of the certified share, if there is a gate."""
        gate = self.gates.get("certified_share")
        return gate.argument if gate is not None and isinstance(gate.argument, int | float) else None

    @property
    def lookup(self) -> list[Person]:
        """People who can be looked up; nobody if ids and values were left out."""
        return [] if self.document.audited.redacted else self.document.lookup


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Attributes
    ----------
    name : str
        Its anchor; gates name it as well.
    title : str
        In the list of contents.
    values : callable
        What its template shows besides what all templates know.
    figures : callable
        Charts by name, which are drawn into the elements ``figure-<name>``.
    template : str
        Name of the template in `sections/`, without the ending; that of the section if left out.
    text : str or None
        The template of a section from outside: what stands under its heading.
    """

    name: str
    title: str
    values: Callable[[Page], dict[str, Any]] = lambda _: {}
    figures: Callable[[Page], dict[str, Any]] = lambda _: {}
    template: str = ""
    text: str | None = None

    @property
    def file(self) -> str:
        """The template, as the page's environment finds it."""
        return f"sections/{self.template or self.name}.html.j2"


def main_perturbation(document: Document) -> str | None:
    """The perturbation that the figures show: the first, on which groups and remedies were measured as well."""
    named = [*document.audited.perturbations, *(row.perturbation for row in document.stability)]
    return named[0] if named else None


def in_order(rows: list[T]) -> list[T]:
    """Closest, plausible, steady, and then whatever else there is; the order within a method stays."""
    return sorted(rows, key=lambda row: METHODS.index(row.method) if row.method in METHODS else len(METHODS))
