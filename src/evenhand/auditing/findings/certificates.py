"""For how many people stability is proven, by radius."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from evenhand.auditing.document.measured import Certificates, Curve
from evenhand.auditing.gates.on_certificates import certified_radius, share_within
from evenhand.auditing.measures import Measures

CURVE = 31  # radii at which certificates are counted


def certificates(measures: Measures, radii: Iterable[float]) -> Certificates:
    """Shares of people for whom stability is proven, over radii up to where next to nobody is left."""
    asked = sorted(set(radii))
    most = 0.3
    for table in measures.certificates.values():
        radius = certified_radius(table)
        known = radius[np.isfinite(radius)]
        most = max(most, float(np.quantile(known, 0.9)) if len(known) else 0.0)
    most = max([min(most, 3.0), *(1.5 * radius for radius in asked)])
    grid = sorted({*np.linspace(0.0, most, CURVE).tolist(), *asked})
    curves = []
    for method, table in measures.certificates.items():
        shares = [share_within(table, radius) for radius in grid]
        curves.append(
            Curve(
                method,
                statement=table.attrs["statement"],
                people=len(table),
                radius=grid,
                share=[share.value for share in shares],
                low=[share.low for share in shares],
                high=[share.high for share in shares],
            )
        )
    return Certificates(curves, measures.not_certified)
