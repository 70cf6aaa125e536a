"""What audit.json holds, as types: the document of an audit, from which the file, its schema and the page are made."""

from __future__ import annotations

from evenhand.auditing.document.overall import SCHEMA, Audited, DataFile, Document, GateResult, ModelSource, Verdict
from evenhand.auditing.document.plain import plain
from evenhand.auditing.document.typed import typed

__all__ = [
    "SCHEMA",
    "Audited",
    "DataFile",
    "Document",
    "GateResult",
    "ModelSource",
    "Verdict",
    "plain",
    "typed",
]
