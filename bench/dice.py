"""DiCE on the people of tests/mixed_tables.py, beside ours: what it finds, what that costs, and how long it takes."""

from __future__ import annotations

import importlib.util
import logging
import sys
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

import mixed_oracles
import mixed_tables


class Found(NamedTuple):
    """Seconds of CPU per person, who has a valid answer, and what it costs; NaN without one."""

    seconds: float
    valid: npt.NDArray[np.bool_]
    cost: npt.NDArray[np.float64]

    @property
    def median(self) -> float:
        """Median cost of the valid answers."""
        return float(np.median(self.cost[self.valid])) if self.valid.any() else np.nan


def installed() -> bool:
    """Whether DiCE is there: pip install evenhand[dice]."""
    return importlib.util.find_spec("dice_ml") is not None


def run(X: pd.DataFrame, y: npt.NDArray[Any], model: Any, people: pd.DataFrame, schema: Any, method: str) -> Found:
    """One counterfactual towards "good" for each of the people, by DiCE's own `method`."""
    import dice_ml  # optional

    logging.disable(logging.INFO)
    numbers = [*mixed_tables.INTEGERS, *mixed_tables.CONTINUOUS]
    words = dict.fromkeys(mixed_tables.RANKS, str)
    labelled = X.astype(words).assign(label=(y == "good").astype(int))
    data = dice_ml.Data(dataframe=labelled, continuous_features=numbers, outcome_name="label")
    search = dice_ml.Dice(data, dice_ml.Model(model=_Numbered(model), backend="sklearn"), method=method)
    cost, valid = np.full(len(people), np.nan), np.zeros(len(people), dtype=bool)
    seeded = {"random_seed": 0} if method == "random" else {}
    seconds = 0.0
    for i in range(len(people)):
        began = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = search.generate_counterfactuals(
                    people.iloc[[i]].astype(words), total_CFs=1, desired_class=1, verbose=False, **seeded
                )
            table = result.cf_examples_list[0].final_cfs_df
        except Exception as error:  # noqa: BLE001 - whatever it is, the person has no answer
            print(f"DiCE, person {i}: {type(error).__name__}: {error}", file=sys.stderr)
            table = None
        seconds += time.process_time() - began
        if table is not None and len(table):
            after = table[list(people.columns)].iloc[[0]].astype(people.dtypes.to_dict())
            cost[i] = mixed_oracles.changed_cost(schema, people.iloc[[i]], after)[0]
            valid[i] = model.predict(after)[0] == "good"
    return Found(seconds / max(len(people), 1), valid, cost)


class _Numbered:
    """The pipeline with labels 0 and 1, for tables whose ordered levels have become words."""

    def __init__(self, model: Any) -> None:
        self.model, self.classes_ = model, np.array([0, 1])

    def predict_proba(self, X: pd.DataFrame) -> npt.NDArray[np.float64]:
        """Probabilities, bad first."""
        return np.asarray(self.model.predict_proba(X))

    def predict(self, X: pd.DataFrame) -> npt.NDArray[np.int64]:
        """Labels as numbers."""
        return np.asarray((self.model.predict(X) == "good").astype(np.int64))
