"""Results in a notebook: small tables, styled in place, because a notebook may strip a style sheet."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import pandas as pd

_CELL = (
    "text-align:left;vertical-align:top;padding:4px 14px 4px 0;border-bottom:1px solid #c3c8c6;"
    "font-variant-numeric:tabular-nums"
)


def block(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    """A titled table; cells are HTML already, title, head and note are not."""
    body = "".join(_row("td", row) for row in rows)
    top = _row("th", [html.escape(name) for name in head])
    below = f"<p>{html.escape(note)}</p>" if note else ""
    return (
        f"<div style='overflow-x:auto'><p>{html.escape(title)}</p><table style='border-collapse:collapse'>"
        f"<thead>{top}</thead><tbody>{body}</tbody></table>{below}</div>"
    )


def framed(title: str, frame: pd.DataFrame, note: str = "") -> str:
    """A data frame as a titled table, its index first."""
    rows = [
        [html.escape(short(cell)) for cell in (label, *row)]
        for label, row in zip(frame.index, frame.to_numpy(), strict=True)
    ]
    return block(title, [str(frame.index.name or ""), *map(str, frame.columns)], rows, note)


def short(value: object) -> str:
    """A cell as people write it: four digits, and a dash for nothing."""
    if isinstance(value, float | np.floating):
        return "–" if np.isnan(value) else f"{value:.4g}"
    return str(value)


def _row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag} style='{_CELL}'>{cell}</{tag}>" for cell in cells) + "</tr>"
