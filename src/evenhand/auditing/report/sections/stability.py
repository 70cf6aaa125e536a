"""How far explanations move, and how far that is proven."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from markupsafe import Markup

from evenhand.auditing.document import Document, GateResult
from evenhand.auditing.document.measured import Curve, Stability
from evenhand.auditing.document.values import finite
from evenhand.auditing.report import curves, histograms
from evenhand.auditing.report.cells import NONE, Table, both, method, using
from evenhand.auditing.report.curves import share_at
from evenhand.auditing.report.section import Page, Section, in_order
from evenhand.auditing.report.wording import Wording
from evenhand.stats import Interval


def values(page: Page) -> dict[str, Any]:
    """What the template shows."""
    proofs, in_use, unit, say = proofs_of(page), page.in_use, page.say.cost, page.say
    every = in_order(page.document.stability)
    shown = {
        "answer": answer(page.document, page.stable, page.gates.get("median_amplification"), say),
        "finding": moved(page.stable, in_use),
        "heard": heard(page.stable, page.limit, say),
        "numbers_of": table(page.document, every, say) if every else None,
        "curves": proofs,
    }
    if proofs:
        shown |= {
            "proven": proven(proofs, in_use, page.radius, unit),
            "heard_proven": heard_certificates(proofs, page.radius, unit),
            "proofs": certificates(proofs, page.radius, in_use, unit),
        }
    return shown


def figures(page: Page) -> dict[str, Any]:
    """Amplification per person, and shares of people with a proof by radius."""
    drawn: dict[str, Any] = {}
    shown = [row for row in page.stable if any(row.histogram.counts)]
    if shown:
        drawn["amplification"] = histograms.amplification(shown, page.in_use, page.limit, page.say)
    proofs = proofs_of(page)
    if proofs:
        drawn["certificates"] = curves.certificates(proofs, page.radius, page.say.cost, page.in_use)
    return drawn


def proofs_of(page: Page) -> list[Curve]:
    """Curves that have points."""
    return in_order([curve for curve in page.document.certificates.curves if curve.radius])


def answer(document: Document, rows: list[Stability], gate: GateResult | None, say: Wording) -> Markup:
    """How far explanations move, the method in use first."""
    in_use, limit = document.audited.in_use, gate.limit if gate else None
    known_rows = [row for row in rows if finite(row.amplification.median.value)]
    mine = [row for row in known_rows if row.method == in_use]
    if not mine:
        return Markup("Nobody’s explanation could be compared with that of a variation, so stability was not measured.")
    median = mine[0].amplification.median
    inside = f"95% interval {say.prose(median, 'times', limit)}".removesuffix("×")
    end = f"; the limit is {say.exact(limit, 'times').removesuffix('×')}" if limit is not None else ""
    text = Markup("With {}, the method in use, explanations move {} times as far as people do ({}{}).").format(
        method(in_use), _times(median, limit, say), inside, end
    )
    others = [row for row in known_rows if row.method != in_use]
    if others:
        parts = [
            Markup("{} {} times").format(method(row.method), _times(row.amplification.median, None, say))
            for row in others
        ]
        text += Markup(" For comparison: ") + Markup(", ").join(parts) + "."
    if gate and gate.of not in (None, mine[0].perturbation) and finite(gate.interval.value):
        text += Markup(" The gate is decided by {}: {} times (95% interval {}).").format(
            gate.of,
            _times(gate.interval, limit, say),
            say.prose(gate.interval, "times", limit).removesuffix("×"),
        )
    return text


def _times(interval: Interval, limit: float | None, say: Wording) -> str:
    return say.value(interval, "times", limit).removesuffix("×")


def moved(rows: list[Stability], in_use: str) -> str:
    """The finding of the histograms."""
    for row in rows:
        median = row.amplification.median
        if row.method == in_use and finite(median.value):
            if median.low > 1:
                return "Explanations in use move further than the people they explain"
            if median.high < 1:
                return "Explanations in use move less far than the people they explain"
            return "Explanations in use move about as far as the people they explain"
    return "How far explanations move"


def proven(curves: list[Curve], in_use: str, radius: float | None, unit: str) -> str:
    """The finding of the certificates."""
    for curve in sorted(curves, key=lambda curve: curve.method != in_use):
        at = radius if radius is not None else max(curve.radius, default=0.0) / 2
        share = share_at(curve, at)
        if share is not None:
            where = f"within {at:.2g} {unit}".rstrip() + (", the radius of the gate" if radius is not None else "")
            return f"For {100 * share:.0f}% of people {curve.method} is proven stable {where}"
    return "How far stability is proven"


def heard(rows: list[Stability], limit: float | None, say: Wording) -> str:
    """What the histograms show, for those who hear it."""
    parts = [
        f"{row.method} median {say.value(row.amplification.median, 'times')}, "
        f"95% interval {say.prose(row.amplification.median, 'times') or 'not known'}"
        for row in rows
    ]
    end = f" The limit is {say.exact(limit, 'times')}." if limit is not None else ""
    return f"Amplification: {'; '.join(parts)}.{end}"


def heard_certificates(curves: list[Curve], radius: float | None, unit: str) -> str:
    """What the curves show."""
    parts = []
    for curve in curves:
        at = radius if radius is not None else max(curve.radius) / 2
        share = share_at(curve, at)
        parts.append(f"{curve.method} {'not known' if share is None else f'{100 * share:.0f}%'} within {at:.2g} {unit}")
    return f"Share of people with proven stability: {'; '.join(parts)}."


def table(document: Document, rows: list[Stability], say: Wording) -> Table:
    """Every perturbation and method."""
    in_use = document.audited.in_use
    return Table(
        "Every perturbation and method, with 95% intervals",
        [
            *("Method", "Perturbation", "People|", "Median|", "Mean|", "95th percentile|"),
            *("Moves by, median|", "Flips|", "Not found|"),
        ],
        [
            [
                using(row.method, in_use),
                row.perturbation,
                f"{row.people:,}",
                both(row.amplification.median, "times", say),
                both(row.amplification.mean, "times", say),
                both(row.amplification.p95, "times", say),
                both(row.distance.median, "cost", say),
                say.number(row.flip_rate, "share"),
                say.number(row.not_found_rate, "share"),
            ]
            for row in rows
        ],
    )


def certificates(curves: list[Curve], radius: float | None, in_use: str, unit: str) -> Table:
    """Shares at a few radii, that of the gate among them."""
    widest = max(max(curve.radius) for curve in curves)
    few = {widest * part for part in (0.1, 0.25, 0.5, 1.0)} | ({radius} if radius is not None else set())
    radii = sorted(r for r in few if r <= widest)
    rows = []
    for curve in curves:
        bands = [replace(curve, share=shares) for shares in (curve.share, curve.low, curve.high)]
        cells = [[share_at(band, r) for band in bands] for r in radii]
        rows.append(
            [
                using(curve.method, in_use),
                f"{curve.people:,}",
                *(
                    NONE if share is None else f"{100 * share:.0f}% ({100 * (low or 0):.0f}–{100 * (high or 0):.0f})"
                    for share, low, high in cells
                ),
            ]
        )
    return Table(
        "Share of people with a proof, with 95% Wilson intervals",
        ["Method", "People|", *(f"within {r:.2g} {unit}|" for r in radii)],
        rows,
    )


SECTION = Section("stability", "Stability", values, figures)
