"""For how many people stability is proven, by radius."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from evenhand.auditing.measures import Measures
from evenhand.stats import Interval, share_interval
from evenhand.types import FloatArray

CURVE = 31  # radii at which certificates are counted


def certificates(measures: Measures, radii: Iterable[float]) -> dict[str, Any]:
    """Shares of people for whom stability is proven, over radii up to where next to nobody is left."""
    asked = sorted(set(radii))
    most = 0.3
    for table in measures.certificates.values():
        radius = _radius(table)
        known = radius[np.isfinite(radius)]
        most = max(most, float(np.quantile(known, 0.9)) if len(known) else 0.0)
    most = max([min(most, 3.0), *(1.5 * one for one in asked)])
    grid = sorted({*np.linspace(0.0, most, CURVE).tolist(), *asked})
    curves = []
    for method, table in measures.certificates.items():
        shares = [certified_share(table, radius) for radius in grid]
        curves.append(
            {
                "method": method,
                "statement": table.attrs["statement"],
                "people": len(table),
                "radius": grid,
                "share": [one.value for one in shares],
                "low": [one.low for one in shares],
                "high": [one.high for one in shares],
            }
        )
    return {"curves": curves, "not_available": measures.not_certified}


def _radius(table: pd.DataFrame) -> FloatArray:
    return np.asarray(table[["stability_radius", "label_radius"]].min(axis=1, skipna=False).to_numpy(dtype=float))


def certified_share(table: pd.DataFrame, radius: float) -> Interval:
    """Share of people whose explanation is proven to be stable for every change up to the radius."""
    return share_interval(int((_radius(table) > radius).sum()), len(table))
