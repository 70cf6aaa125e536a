"""The page's own sections: a module and a template each, and the order in which they stand."""

from __future__ import annotations

from evenhand.auditing.report.section import Section
from evenhand.auditing.report.sections import (
    alike,
    audited,
    by_group,
    coverage,
    least_stable,
    lookup,
    regulation,
    remedies,
    stability,
    verdict,
)

SECTIONS = (
    verdict.SECTION,
    audited.SECTION,
    coverage.SECTION,
    stability.SECTION,
    least_stable.SECTION,
    alike.SECTION,
    by_group.SECTION,
    remedies.SECTION,
    lookup.SECTION,
    Section("limits", "Limits"),
    regulation.SECTION,
    Section("reproduce", "Reproduce"),
)
