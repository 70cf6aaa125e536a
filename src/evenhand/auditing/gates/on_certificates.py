"""Gates about what is proven."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from evenhand.auditing.gates.evidence import Evidence
from evenhand.auditing.gates.registry import Candidate, Condition, Unmeasured, gate
from evenhand.stats import Interval, share_interval
from evenhand.types import FloatArray


def certified_radius(table: pd.DataFrame) -> FloatArray:
    """How far each person may change until the explanation, or the label that it is for, may become another one."""
    return np.asarray(table[["stability_radius", "label_radius"]].min(axis=1, skipna=False).to_numpy(dtype=float))


def share_within(table: pd.DataFrame, radius: float) -> Interval:
    """Share of people whose explanation is proven to be stable for every change up to the radius."""
    return share_interval(int((certified_radius(table) > radius).sum()), len(table))


@gate(
    "certified_share",
    title="Certified share",
    question=(
        "For how many is stability proven, for every change within the radius that leaves immutable columns alone?"
    ),
    section="stability",
    unit="share",
    argument="radius",
    better=">=",
    default=lambda situation: "certified_share(0.1) >= 0.8" if situation.certificates else None,
)
def certified_share(condition: Condition, evidence: Evidence) -> Sequence[Candidate] | Unmeasured:
    """Share of people with a proof."""
    if evidence.certificates is None:
        return Unmeasured(evidence.not_certified)
    assert isinstance(condition.argument, float)
    return [Candidate(share_within(evidence.certificates, condition.argument))]
