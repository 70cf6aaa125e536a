"""Alike pairs of an audit: real people who are close together, and what they are told."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.auditing.advice import both, hidden, tagged, told
from evenhand.auditing.document.individuals import AlikePair, AlikePairs
from evenhand.auditing.document.values import Middle
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


def pair_up(prepared: Prepared, everyone: Everyone, report: Report) -> Paired:
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


def alike_pairs_shown(
    prepared: Prepared,
    everyone: Everyone,
    paired: Paired,
    varied: Varied,
    place: dict[int, int],
    gone: npt.NDArray[np.bool_],
) -> AlikePairs | None:
    """What the document says of pairs; `varied` has the people of the worst ones, `place` says where."""
    pairs = paired.pairs
    if pairs is None:
        if paired.why:
            prepared.setup.notes.append(f"Alike pairs were not compared. {paired.why}")
        return None
    if len(everyone.kept) < int(everyone.asked.sum()):
        prepared.setup.notes.append(f"Pairs were looked for among {len(everyone.kept):,} people, chosen at random.")
    alike = pairs.table[pairs.table["alike"]]
    step = max(1, -(-len(alike) // DRAWN))
    drawn = alike.iloc[::step]
    ratio = alike["amplification"].to_numpy(dtype=float)
    ratio = ratio[np.isfinite(ratio)]
    return AlikePairs(
        people=pairs.people,
        neighbours=pairs.neighbours,
        within=pairs.within,
        apart=pairs.apart,
        pairs=len(alike),
        broken=pairs.broken_share,
        different=pairs.different_share,
        cost_gap=_middle(alike["cost_gap"]),
        change_distance=_middle(alike["change_distance"]),
        amplification=Middle(
            float(np.median(ratio)) if len(ratio) else np.nan,
            float(np.quantile(ratio, 0.95)) if len(ratio) else np.nan,
        ),
        sample=[
            (float(f"{a:.4g}"), float(f"{b:.4g}"), int(c))
            for a, b, c in drawn[["distance", "explanation_distance", "different"]].itertuples(index=False)
        ],
        worst=[
            _side_by_side(prepared, pair, paired.kept, varied, place, gone)
            for pair in pairs.worst(SHOWN).to_dict("records")
        ],
    )


def _middle(values: pd.Series[Any]) -> Middle:
    return Middle(float(values.median()), float(values.quantile(0.95)))


def _side_by_side(
    prepared: Prepared,
    pair: dict[Hashable, Any],
    kept: npt.NDArray[np.intp],
    varied: Varied,
    place: dict[int, int],
    gone: npt.NDArray[np.bool_],
) -> AlikePair:
    """Two people, how they differ, and what each of them is told; `pair` is a row of the table of pairs."""
    redact, view, ids = prepared.options.redact, prepared.setup.view, prepared.survey.ids
    names, value = prepared.features, prepared.setup.view.schema.value
    rows = [int(kept[i]) for i in (pair["first"], pair["second"])]
    at = [place[row] for row in rows]
    (x, y), (cf, other) = varied.codes[at], varied.answers.points[at]
    lists = told(view, names, x, cf, gone[at[0]]), told(view, names, y, other, gone[at[1]])
    first, second = tagged(*lists, ("the first", "the second"))
    differ = [
        (names[j], *((None, None) if redact else both(value(int(j), x[j]), value(int(j), y[j]))))
        for j in np.flatnonzero(x != y)
    ]
    return AlikePair(
        first=None if redact else str(ids[rows[0]]),
        second=None if redact else str(ids[rows[1]]),
        distance=pair["distance"],
        explanation_distance=pair["explanation_distance"],
        change_distance=pair["change_distance"],
        cost_gap=pair["cost_gap"],
        amplification=pair["amplification"],
        differ=differ,
        first_told=hidden(first) if redact else first,
        second_told=hidden(second) if redact else second,
    )
