"""Alike pairs of an audit: real people who are close together, and what they are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.auditing.advice import both, tagged, told
from evenhand.auditing.everyone import Everyone
from evenhand.auditing.prepare import Prepared, Report
from evenhand.auditing.tasks import Varied
from evenhand.costs import L1, L2, Gower
from evenhand.fairness import Pairs, alike_pairs

SHOWN, DRAWN = 10, 600  # pairs side by side, and in the figure


@dataclass
class Paired:
    """Pairs among the people of whom rows were kept; `kept` leads from positions to rows of the table."""

    pairs: Pairs | None
    kept: npt.NDArray[np.intp]
    why: str | None = None

    @property
    def rows(self) -> list[int]:
        """Rows of the people in the worst pairs."""
        if self.pairs is None:
            return []
        worst = self.pairs.worst(SHOWN)
        return [int(self.kept[i]) for i in worst[["first", "second"]].to_numpy().ravel()]


def paired(prepared: Prepared, everyone: Everyone, report: Report) -> Paired:
    """Compare everybody who has an explanation with the nearest others."""
    setup, options = prepared.setup, prepared.options
    needed = everyone.found[everyone.kept]
    # Who agrees with somebody in everything gets the same answer by construction: one of them stands for all.
    rows = np.column_stack([everyone.codes, everyone.present[everyone.kept]])[needed]
    first = np.sort(np.unique(rows, axis=0, return_index=True)[1]) if len(rows) else np.zeros(0, dtype=np.intp)
    twins = int(needed.sum()) - len(first)
    needed = np.isin(np.arange(len(needed)), np.flatnonzero(needed)[first])
    if twins:
        setup.notes.append(f"Alike pairs: {twins:,} people agree with somebody in every column and are compared once.")
    kept = everyone.kept[needed]
    if not isinstance(setup.distance, L1 | L2 | Gower):
        return Paired(None, kept, "Neighbours are found by an l1, l2 or Gower distance only.")
    if len(kept) < 2:
        return Paired(None, kept, "Fewer than two people have an explanation.")
    report("comparing alike pairs", 0, 0)
    pairs = alike_pairs(
        everyone.codes[needed],
        everyone.points[needed],
        everyone.cost[kept],
        everyone.present[kept],
        setup.distance,
        setup.view,
        neighbours=options.neighbours,
        within=options.within,
        apart=options.apart,
    )
    if not pairs.table["alike"].any():
        nearest = np.nanmin(pairs.nearest) if np.isfinite(pairs.nearest).any() else np.nan
        return Paired(
            None,
            kept,
            f"No two people are within {pairs.within:.3g} of each other; the nearest two are {nearest:.3g} apart.",
        )
    return Paired(pairs, kept)


def pair_section(
    prepared: Prepared,
    everyone: Everyone,
    found: Paired,
    varied: Varied,
    place: dict[int, int],
    gone: npt.NDArray[np.bool_],
) -> dict[str, Any] | None:
    """What the report says of pairs; `varied` has the people of the worst ones, `place` says where."""
    pairs = found.pairs
    if pairs is None:
        if found.why:
            prepared.setup.notes.append(f"Alike pairs were not compared. {found.why}")
        return None
    if len(everyone.kept) < int(everyone.asked.sum()):
        prepared.setup.notes.append(f"Pairs were looked for among {len(everyone.kept):,} people, chosen at random.")
    alike = pairs.table[pairs.table["alike"]]
    step = max(1, -(-len(alike) // DRAWN))
    shown = alike.iloc[::step]
    ratio = alike["amplification"].to_numpy(dtype=float)
    ratio = ratio[np.isfinite(ratio)]
    redact, view, ids = prepared.options.redact, prepared.setup.view, prepared.survey.ids
    names = prepared.features
    worst = []
    for row in pairs.worst(SHOWN).to_dict("records"):
        rows = [int(found.kept[i]) for i in (row["first"], row["second"])]
        at = [place[one] for one in rows]
        (x, y), (cf, other) = varied.codes[at], varied.answers.points[at]
        lists = told(view, names, x, cf, gone[at[0]]), told(view, names, y, other, gone[at[1]])
        tagged(*lists, ("the first", "the second"))
        for one in (*lists[0], *lists[1]) if redact else ():
            one["before"] = one["after"] = one["value"] = None
        value = view.schema.value
        differ = [
            [
                names[j],
                *((None, None) if redact else both(value(int(j), x[j]), value(int(j), y[j]))),
            ]
            for j in np.flatnonzero(x != y)
        ]
        worst.append(
            {
                "first": None if redact else str(ids[rows[0]]),
                "second": None if redact else str(ids[rows[1]]),
                "distance": row["distance"],
                "explanation_distance": row["explanation_distance"],
                "change_distance": row["change_distance"],
                "cost_gap": row["cost_gap"],
                "amplification": row["amplification"],
                "differ": differ,
                "first_told": lists[0],
                "second_told": lists[1],
            }
        )
    return {
        "people": pairs.people,
        "neighbours": pairs.neighbours,
        "within": pairs.within,
        "apart": pairs.apart,
        "pairs": len(alike),
        "broken": pairs.broken_share,
        "different": pairs.different_share,
        "cost_gap": {"median": alike["cost_gap"].median(), "p95": alike["cost_gap"].quantile(0.95)},
        "change_distance": {
            "median": alike["change_distance"].median(),
            "p95": alike["change_distance"].quantile(0.95),
        },
        "amplification": {
            "median": float(np.median(ratio)) if len(ratio) else np.nan,
            "p95": float(np.quantile(ratio, 0.95)) if len(ratio) else np.nan,
        },
        "sample": [
            [float(f"{a:.4g}"), float(f"{b:.4g}"), int(c)]
            for a, b, c in shown[["distance", "explanation_distance", "different"]].itertuples(index=False)
        ],
        "worst": worst,
    }
