"""What has to be the same in the table that is returned: columns, index and types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fuzz.scripted import Claim


def changed_types(found: Any, people: pd.DataFrame) -> Claim | None:
    """Types may get wider where an answer needs it, and where somebody has no answer."""
    answer = found.counterfactual
    if list(answer.columns) != list(people.columns) or not answer.index.equals(people.index):
        return Claim(
            "other columns or another index",
            f"{list(answer.columns)}, {list(answer.index)}",
            "assert list(found.counterfactual.columns) == list(people.columns)\n"
            "assert found.counterfactual.index.equals(people.index)\n",
        )
    whole = bool(np.all(found.valid))
    for name in people.columns:
        before, after = people[name].dtype, answer[name].dtype
        if before == after or not whole or _wider(before, after):
            continue
        return Claim(
            "another type",
            f"{name}: {before} has become {after}",
            f"assert found.counterfactual[{name!r}].dtype == people[{name!r}].dtype\n",
        )
    return None


def _wider(before: Any, after: Any) -> bool:
    if isinstance(before, pd.CategoricalDtype):
        return isinstance(after, pd.CategoricalDtype) and set(before.categories) <= set(after.categories)
    names = {"int64", "float64", "Int64", "Float64"}
    return (
        str(after) in names
        and pd.api.types.is_numeric_dtype(before)
        and str(before)[0].isupper() == str(after)[0].isupper()
    )
