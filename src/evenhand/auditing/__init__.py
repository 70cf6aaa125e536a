"""Audits of a fitted model: what `evenhand audit` does."""

from __future__ import annotations

from evenhand.auditing.errors import AuditError
from evenhand.auditing.result import Audit
from evenhand.auditing.run import audit

__all__ = ["Audit", "AuditError", "audit"]
