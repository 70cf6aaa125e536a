"""The result of an audit, and the files that it leaves."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd

from evenhand.auditing.document import Document, typed
from evenhand.auditing.gates import Evidence
from evenhand.markup import framed
from evenhand.stability.instability import Instability
from evenhand.writing import write_together

FILES = ("report.html", "audit.json", "summary.md", "junit.xml")
MARKS = {"pass": "✓ pass", "fail": "✕ fail", "undecided": "? undecided"}


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found; :func:`audit` makes it.

    Attributes
    ----------
    content : dict
        Everything, as plain data: what `audit.json` holds.
    instability : dict from "method, perturbation" to Instability
        The measurements behind it.
    evidence : Evidence or None
        What gates were judged on; sections of the page that are added from outside can show it.
    """

    content: dict[str, Any]
    instability: dict[str, Instability] = field(default_factory=dict, repr=False)
    evidence: Evidence | None = field(default=None, repr=False)

    @property
    def result(self) -> str:
        """Passed, failed or undecided, in lower case."""
        return str(self.content["verdict"]["result"])

    @property
    def exit_code(self) -> int:
        """0 passed, 1 a gate failed, 3 undecided."""
        return int(self.content["verdict"]["exit_code"])

    @property
    def gates(self) -> pd.DataFrame:
        """One row per gate: result, value, interval, what it was measured on."""
        rows = [
            {"gate": one["gate"], "result": one["result"], **one["interval"], "of": one["of"], "why": one["why"]}
            for one in self.content["gates"]
        ]
        return pd.DataFrame(rows, columns=["gate", "result", "value", "low", "high", "of", "why"])

    def to_json(self) -> str:
        """The content as JSON; its schema is in the package, `auditing/audit.schema.json`."""
        return json.dumps(self.content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"

    def to_html(self) -> str:
        """The report as one self-contained page."""
        from evenhand.auditing.report.page import render

        return render(typed(Document, self.content), self.evidence)

    def to_markdown(self) -> str:
        """A summary for a pull request."""
        verdict, audited = self.content["verdict"], self.content["audited"]
        counts = f"{verdict['passed']} passed, {verdict['failed']} failed, {verdict['undecided']} undecided"
        lines = [f"# Audit of explanations: {self.result}", "", f"{_text(verdict['title'])}. Gates: {counts}.", ""]
        if self.content["gates"]:
            lines += ["| result | gate | value | 95% interval | of |", "|---|---|--:|--:|---|"]
        for gate_row in self.content["gates"]:
            interval = gate_row["interval"]
            ends = "–" if interval["low"] is None else f"{_number(interval['low'])} to {_number(interval['high'])}"
            gate = gate_row["gate"].replace("|", "\\|").replace("`", "'")
            cells = [
                _text(cell) for cell in (_number(interval["value"]), ends, gate_row["of"] or gate_row["why"] or "")
            ]
            lines.append("| " + " | ".join([MARKS[gate_row["result"]], f"`{gate}`", *cells]) + " |")
        lines += ["", *(f"- {_text(sentence)}" for sentence in verdict["sentences"])]
        lines += [f"- Note: {_text(note)}" for note in self.content["notes"]]
        data, model = audited["data"], audited["model"]
        lines += [
            "",
            f"Model {_text(model['name'])} ({_text(model['kind'])}), {data['rows']:,} people of {_text(data['name'])}, "
            f"method in use: {_text(audited['in_use'])}, {audited['people']:,} people × {audited['draws']} variations, "
            f"seed {audited['seed']}, evenhand {audited['evenhand']}.",
        ]
        return "\n".join(lines) + "\n"

    def to_junit(self) -> str:
        """One test case per gate, for CI; an undecided gate is an error, since it is not a pass."""
        gates = self.content["gates"]
        suite = ElementTree.Element(
            "testsuite",
            name="evenhand audit",
            tests=str(len(gates)),
            failures=str(sum(one["result"] == "fail" for one in gates)),
            errors=str(sum(one["result"] == "undecided" for one in gates)),
        )
        for one in gates:
            case = ElementTree.SubElement(
                suite, "testcase", classname=f"evenhand.{one['section']}", name=_clean(one["gate"])
            )
            if one["result"] != "pass":
                interval = one["interval"]
                ends = f"{_number(interval['low'])} to {_number(interval['high'])}"
                text = f"{_number(interval['value'])}, 95% interval {ends}"
                message = _clean("; ".join([text, *(part for part in (one["of"], one["why"]) if part)]))
                kind = "failure" if one["result"] == "fail" else "error"
                ElementTree.SubElement(case, kind, message=message, type=one["result"])
        ElementTree.indent(suite)
        return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"

    def write(self, folder: str | Path) -> list[Path]:
        """Write `report.html`, `audit.json`, `summary.md` and `junit.xml`: all of them, or none.

        Raises
        ------
        evenhand.writing.WritingError
            If they cannot be written; what was there before is there still.
        """
        folder = Path(folder)
        texts = (self.to_html(), self.to_json(), self.to_markdown(), self.to_junit())
        contents = dict(zip(FILES, texts, strict=True))
        # audit.json comes last: where it is, the others are.
        write_together(folder, {name: contents[name] for name in sorted(FILES, key="audit.json".__eq__)})
        return [folder / name for name in FILES]

    def __repr__(self) -> str:
        verdict = self.content["verdict"]
        return (
            f"Audit({self.result}: {verdict['passed']} gates passed, {verdict['failed']} failed, "
            f"{verdict['undecided']} undecided)"
        )

    def _repr_html_(self) -> str:
        return framed(repr(self), self.gates)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _text(value: Any) -> str:
    """Text that means nothing to Markdown."""
    text = " ".join(str(value).split())
    for mark in "\\|<>*_[]#":
        text = text.replace(mark, f"\\{mark}")
    return text


def _clean(text: str) -> str:
    """Text that XML can hold."""
    return "".join(char for char in text if char in "\t\n\r" or " " <= char <= "\ud7ff" or char >= "\ue000")
