"""The same question asked in another way, which has to get the same answer to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fuzz.scripted import Claim

VARIANTS = ("shuffled", "alone", "chunks", "columns", "threads")


def again(variant: str, names: list[str] | None) -> str:
    """Lines that ask again: `other` are the explanations, `order` says which rows they are."""
    if variant == "shuffled":
        rows = "people.iloc[order]" if names else "people[order]"
        return (
            "order = np.random.default_rng(0).permutation(len(people))\n"
            f"other = explainer.explain({rows}, target=None if target is None else target[order])\n"
        )
    if variant == "alone":
        return (
            "order = np.arange(min(len(people), 4))\n"
            "aims = [None if target is None else target[i:i + 1] for i in order]\n"
            "each = [explainer.explain(people[i:i + 1], target=aims[i]) for i in order]\n"
        )
    more = {"chunks": ", chunk_size=3", "threads": ", n_jobs=2, chunk_size=4"}.get(variant)
    if more is not None:
        return f"order = np.arange(len(people))\nother = explainer.explain(people, target=target{more})\n"
    if variant == "columns" and names:
        return (
            "order = np.arange(len(people))\nother = explainer.explain(people[people.columns[::-1]], target=target)\n"
        )
    return ""


def differs(names: dict[str, Any], variant: str) -> Claim | None:
    """A row in which two answers are not the same bits."""
    if "order" not in names:
        return None
    found, order = names["found"], names["order"]
    others = names["each"] if variant == "alone" else [names["other"]]
    columns = list(found.counterfactual.columns) if isinstance(found.counterfactual, pd.DataFrame) else None
    start = 0
    for other in others:
        rows = order[start : start + len(other)]
        start += len(rows)
        for k, i in enumerate(rows):
            cost = (float(found.cost[i]), float(other.cost[k]), str(found.status[i]), str(other.status[k]))
            a, b = _row(found.counterfactual, columns, i), _row(other.counterfactual, columns, k)
            if a == b and cost[2] == cost[3] and (cost[0] == cost[1] or np.isnan(cost[:2]).all()):
                continue
            who = f"each[{start - len(rows)}]" if variant == "alone" else "other"
            one, two = (_told(name, columns, at) for name, at in (("found", i), (who, k)))
            return Claim(
                f"another answer when asked otherwise ({variant})",
                f"row {i}: {a} at {cost[0]!r} ({cost[2]}) and {b} at {cost[1]!r} ({cost[3]})",
                f"a, b = {one}, {two}\nassert str(a) == str(b), (a, b)\n",
            )
    return None


def _row(table: Any, columns: list[str] | None, i: int) -> list[str]:
    """A row in words, so that nothing of a missing value has to be compared."""
    values = table[columns].iloc[i].tolist() if columns else table[i].tolist()
    return [_word(value) for value in values]


def _word(value: Any) -> str:
    if pd.isna(value):
        return "missing"
    return repr(float(value)) if isinstance(value, int | float | np.number) else str(value)


def _told(who: str, columns: list[str] | None, i: int) -> str:
    """The text of what a row is told."""
    cells = f"{who}.counterfactual[{i}].tolist()"
    if columns is not None:
        cells = f"[float(v) if isinstance(v, int) else v for v in {who}.counterfactual[{columns!r}].iloc[{i}]]"
    return f"({who}.status[{i}], {who}.cost[{i}], {cells})"
