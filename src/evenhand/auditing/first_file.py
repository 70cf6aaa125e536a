"""A first audit.toml, with comments, from a model and a table."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

from evenhand.auditing.audit_file import KINDS
from evenhand.auditing.gates import GATES
from evenhand.auditing.options import METHODS, Options
from evenhand.auditing.sources import Source


def first_file(model: str, model_kind: str, data: str, source: Source, features: list[str], classes: list[Any]) -> str:
    """A commented audit file for a model and a table."""
    sample = next(source.batches(source.columns, 1000), pd.DataFrame(columns=source.columns))
    others = [name for name in source.columns if name not in features and _comparable(sample[name])]
    label = next((name for name in others if set(sample[name].dropna().unique().tolist()) <= set(classes)), None)
    rest = [name for name in others if name != label]
    names = [name for name in rest if sample[name].is_unique and len(sample) > 1]
    groups = [name for name in rest if name not in names]
    numbers = [name for name in features if pd.api.types.is_numeric_dtype(sample[name].dtype)]
    example = numbers[0] if numbers else features[0]
    low, high = (_round(sample[example].min()), _round(sample[example].max())) if numbers else (0, 1)
    quoted = [_toml(str(one)) for one in classes]
    commented = "# " if label is None else ""
    return f"""\
# An audit of {model_kind}: run it with `evenhand audit` and the name of this file.
# Lines that begin with "#" show what is possible, or the default.  Paths start at this file's folder.

model = {_toml(model)}
data = {_toml(data)}           # .csv or .parquet, {source.rows:,} rows
{commented}label = {_toml(label or "decision")}       # column with the true decision
{"" if names else "# "}id = {_toml(names[0] if names else "customer")}     # who is who; or rows are counted
# features = {_toml(features)}
sensitive = {_toml(groups)}  # columns to compare groups by
target = {quoted[-1]}   # PLEASE CHECK: what people want, one of {", ".join(quoted)}; or the cheapest other one

cost = "l1"            # or "l2": what a change costs, in units of each column's spread
methods = ["closest", "plausible", "steady"]   # the one in use first, then alternatives ({", ".join(METHODS)})
# draws = {Options.draws}           # variations per person; or
# tolerance = 0.05     # as many as it takes to know the mean distance to within 5 %
# people = {Options.people}        # people, chosen at random, who are varied
# on_flip = "skip"     # variations with another decision: skip, swap or keep
# lookup = {Options.lookup}          # people who can be looked up in the page, or a list of ids
# redact = false       # leave ids and values out of the report
# seed = 0
# out = "results/audit"

# What must hold: judged on the whole 95 % interval.  Names: {", ".join(GATES)}.
gates = [
    "not_found_rate <= 0.01",
    "median_amplification <= 2",   # with cost = "l2" rather 1.2
    "p95_amplification <= 3",
    "pair_difference_rate <= 0.05",
{"" if groups else "    # "}    "group_cost_gap <= 0.1",
    # "certified_share(0.1) >= 0.8",
]

[actionable]           # what people can change
immutable = []         # columns of {_toml(features)}
# increase = [{_toml(example)}]
# decrease = []
# bounds = {{ {_toml(example)} = [{low}, {high}] }}
# levels = {{ "purpose" = ["car", "house"] }}

[perturbations.noise]
kind = "gaussian"      # {", ".join(KINDS)}
covariance = 0.1       # of each column, in units of its variance
# relative = true

[perturbations.rounding]
kind = "rounding"      # whatever rounds to the recorded value; the precision is learned

# [pairs]
# neighbours = 5       # nearest people that each person is compared with
# within = 0.5         # how close alike people are; the median distance to the nearest if left out
# apart = 1.0          # how far their explanations may be apart; twice within if left out
# people = {Options.pair_people}

# [density]            # where people are, for plausible explanations
# quantile = 0.5
# components = [1, 2, 3]
"""


def _comparable(values: pd.Series[Any]) -> bool:
    """Whether a column can say who is who or belongs to whom; one of lists or tables cannot."""
    try:
        pd.factorize(values)
    except TypeError:
        return False
    return True


def _toml(value: Any) -> str:
    """A text, or a list of texts, as TOML writes it."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _round(value: Any) -> float | int:
    number = float(value)
    return 0 if not np.isfinite(number) else int(number) if number == int(number) else round(number, 3)
