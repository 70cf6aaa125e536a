"""The page of an audit: a function of the document, and, for sections from outside, of what gates see.

One module and one template a section; :func:`register_section` adds another one, from anywhere.
"""

from __future__ import annotations

from evenhand.auditing.report.registry import ADDED, all_sections, register_section
from evenhand.auditing.report.section import Page, Section

__all__ = ["ADDED", "Page", "Section", "all_sections", "register_section"]
