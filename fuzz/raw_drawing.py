"""Columns of raw tables, drawn at random: values, encoders, what a change costs and what is allowed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fuzz.raw_columns import Part

WORDS = ("oak", "ash", "elm", "fir", "yew")
RANKS = ("low", "middle", "high", "top")
N = 60  # people that models are trained on


def drawn_columns(rng: np.random.Generator, amounts: bool, searched: bool = False) -> list[Part]:
    """A few columns of all kinds; with amounts, one or two numbers that may take any value.

    A search knows a model by its labels only, and so neither what an encoder names nor what an imputer puts in.
    """
    makers = [_word, _word, _rank, _flag, _count, _count, _flag if searched else _code]
    found = [makers[rng.integers(len(makers))](rng, f"c{j}") for j in range(rng.integers(1, 4))]
    if amounts:
        found += [_amount(rng, f"z{j}") for j in range(rng.integers(1, 3))]
    found = [part for part in found if part.fill is None] or [_rank(rng, "c0")] if searched else found
    return [found[i] for i in rng.permutation(len(found))]


def pick(rng: np.random.Generator, *choices: Any) -> Any:
    """One of some choices."""
    return choices[rng.integers(len(choices))]


def _spread(rng: np.random.Generator, size: int) -> np.ndarray:
    """Codes of which each occurs, if there is room."""
    codes = np.concatenate([np.arange(size), rng.integers(size, size=N)])[:N]
    return rng.permutation(codes)


def _costs(rng: np.random.Generator, n: int) -> np.ndarray | None:
    if rng.random() < 0.75:
        return None
    costs = np.round(rng.uniform(0.2, 3.0, (n, n)), 2)
    if rng.random() < 0.4:
        costs[rng.random((n, n)) < 0.3] = np.inf
    np.fill_diagonal(costs, 0.0)
    return costs


def _onehot(rng: np.random.Generator) -> str:
    said = []
    drop = pick(rng, None, None, "first", "if_binary")
    unknown = pick(rng, None, None, "ignore", "infrequent_if_exist")
    if drop is not None:
        said.append(f"drop={drop!r}")
    if unknown is not None:
        said.append(f"handle_unknown={unknown!r}")
    if rng.random() < 0.2:
        said.append(pick(rng, "min_frequency=8", "max_categories=2"))
    return f"OneHotEncoder({', '.join(said)})"


def _scaler(rng: np.random.Generator) -> str:
    return pick(rng, "'passthrough'", "StandardScaler()", "MinMaxScaler()", "RobustScaler()", "MaxAbsScaler()")


def _word(rng: np.random.Generator, name: str) -> Part:
    levels = WORDS[: rng.integers(2, 5)]
    codes = _spread(rng, len(levels))
    effect = rng.normal(size=len(levels))
    missing = rng.random() < 0.2
    values: Any = np.array(levels, dtype=object)[codes]
    dtype = pick(rng, "object", "str", "category")
    through = pick(rng, _onehot(rng), _onehot(rng), "OrdinalEncoder()", "TargetEncoder(random_state=0)", "'drop'")
    if missing:
        values[rng.random(N) < 0.15] = None
        values[:2] = [None, levels[0]]
        if "Ordinal" in through:
            through = "OrdinalEncoder(encoded_missing_value=-1)"
    known = tuple(sorted(levels))
    series = pd.Series(values, dtype=object).astype(dtype)
    gap = (None,) if series.isna().any() else ()
    return Part(name, "categorical", series, through, effect[codes], levels=known + gap)


def _rank(rng: np.random.Generator, name: str) -> Part:
    levels = RANKS[: rng.integers(2, 5)]
    codes = _spread(rng, len(levels))
    values = pd.Series(pd.Categorical.from_codes(codes, categories=list(levels), ordered=True))
    through = pick(rng, f"OrdinalEncoder(categories=[{list(levels)!r}])", _onehot(rng))
    return Part(name, "ordered", values, through, codes * rng.normal(), levels=levels)


def _flag(rng: np.random.Generator, name: str) -> Part:
    codes = _spread(rng, 2)
    dtype = pick(rng, "bool", "int64", "int8", "uint8", "boolean", "Int64")
    values = pd.Series(codes).astype(dtype)
    through = pick(
        rng,
        "'passthrough'",
        "StandardScaler()",
        "OneHotEncoder(drop='if_binary')",
        "OrdinalEncoder()",
        "MinMaxScaler()",
    )
    levels = (False, True) if dtype in ("bool", "boolean") else (0, 1)
    return Part(name, "boolean", values, through, codes * rng.normal(), levels=levels)


def _gaps(rng: np.random.Generator, values: np.ndarray, through: str) -> tuple[np.ndarray, str, float | None]:
    """Some values missing, with an imputer in front, and what it imputes."""
    values = values.astype(float)
    values[rng.random(len(values)) < 0.15] = np.nan
    values[1] = np.nan
    known = values[~np.isnan(values)]
    strategy = pick(rng, "mean", "median", "most_frequent", "constant")
    middle = {"mean": known.mean(), "median": np.median(known), "constant": float(np.round(known.max()))}
    names, counts = np.unique(known, return_counts=True)
    fill = float(middle.get(strategy, names[counts.argmax()]))
    imputer = f"SimpleImputer(strategy={strategy!r}" + (f", fill_value={fill!r})" if strategy == "constant" else ")")
    if rng.random() < 0.1:
        imputer, fill = imputer[:-1] + ", add_indicator=True)", np.nan
    step = "" if through == "'passthrough'" else f", {through}"
    return values, f"make_pipeline({imputer}{step})", fill


def _bins(rng: np.random.Generator) -> str:
    strategy = pick(rng, "uniform", "quantile", "kmeans")
    more = ", quantile_method='averaged_inverted_cdf'" if strategy == "quantile" else ""
    bins = rng.integers(2, 5)
    encode = pick(rng, "onehot-dense", "ordinal")
    return f"KBinsDiscretizer({bins}, strategy={strategy!r}, encode={encode!r}{more}, random_state=0)"


def _count(rng: np.random.Generator, name: str) -> Part:
    size, spacing = int(rng.integers(3, 9)), int(pick(rng, 1, 1, 2, 4))
    start = int(pick(rng, 0, 0, 0, 1, 20, -3, 1000, 100_000))
    codes = _spread(rng, size)
    numbers = start + spacing * codes
    through = pick(rng, _scaler(rng), _scaler(rng), _bins(rng))
    fill = None
    if rng.random() < 0.2 and "Bins" not in through:
        missing, through, fill = _gaps(rng, numbers, through)
        series = pd.Series(missing)
        if pick(rng, True, False):
            series = series.astype("Int64")
        kind = "integer" if fill is None or np.isnan(fill) or fill == round(fill) else "numeric"
    else:
        fits = [d for d in ("int64", "int64", "int32", "int16", "int8", "uint8", "Int64", "Int8") if _fits(numbers, d)]
        dtype = pick(rng, *fits)
        series, kind = pd.Series(numbers).astype(dtype.lower() if "Bins" in through else dtype), "integer"
    bounds = (0.0, None) if numbers.min() >= 0 else None
    if kind == "integer" and set(np.unique(numbers)) == {0, 1}:
        kind = "boolean"
    step = 1.0 if kind == "integer" else None
    return Part(name, kind, series, through, _bumps(rng, codes), step=step, bounds=bounds, fill=fill)


def _fits(numbers: np.ndarray, dtype: str) -> bool:
    limits = np.iinfo(dtype.lower())
    return bool(limits.min <= numbers.min() and numbers.max() <= limits.max)


def _bumps(rng: np.random.Generator, codes: np.ndarray) -> np.ndarray:
    """Rising, or up and down."""
    if rng.random() < 0.5:
        return codes / max(1, codes.max()) * rng.normal() * 2
    return rng.normal(size=codes.max() + 1)[codes]


def _code(rng: np.random.Generator, name: str) -> Part:
    """Numbers that are names: behind an encoder they take the values it knows."""
    size = int(rng.integers(3, 6))
    codes = _spread(rng, size)
    names = np.sort(rng.choice(np.arange(1, 12), size, replace=False))
    values = pd.Series(names[codes])
    through = pick(rng, _onehot(rng), "OrdinalEncoder()")
    return Part(
        name, "categorical", values, through, rng.normal(size=size)[codes], levels=tuple(names.tolist()),
        codes=tuple(map(float, names)),
    )  # fmt: skip


def _amount(rng: np.random.Generator, name: str) -> Part:
    unit, offset = 10.0 ** pick(rng, 0, 0, 0, 3, -3, 6), float(pick(rng, 0.0, 0.0, 0.0, 5.0, 1e3))
    raw = rng.normal(size=N)
    if rng.random() < 0.3:
        raw = np.round(raw * 2) / 2
    values = (raw + offset) * unit
    through = pick(rng, _scaler(rng), _scaler(rng), _scaler(rng), _bins(rng))
    fill = None
    if rng.random() < 0.2 and "Bins" not in through:
        values, through, fill = _gaps(rng, values, through)
    dtype = pick(rng, "float64", "float64", "float32", "Float64") if fill is None else "float64"
    series = pd.Series(values).astype(dtype.lower() if "Bins" in through else dtype)
    numbers = series.dropna().to_numpy(dtype=float)
    if fill is not None and "median" in through and "indicator" not in through:
        fill = float(np.median(numbers))
    kind, bounds, step = "numeric", None, None
    if fill is not None and (numbers == np.round(numbers)).all():
        kind = "integer" if np.isnan(fill) or fill == round(fill) else "numeric"
        step = 1.0 if kind == "integer" else None
        bounds = (0.0, None) if numbers.min() >= 0 else None
    return Part(name, kind, series, through, raw * rng.normal(), bounds=bounds, fill=fill, step=step)


def inferred(part: Part, on: pd.Series) -> Part:
    """The weight that a table gives to a number: one over its standard deviation."""
    if not part.number or part.codes is not None:
        return part
    numbers = on.dropna().to_numpy(dtype=float)
    spread = float(numbers.std()) if len(numbers) else 0.0
    return replace(part, weight=1.0 / spread if spread > 1e-12 * np.abs(numbers).max(initial=0.0) else 1.0)


def written(rng: np.random.Generator, part: Part) -> Part:
    """The column as somebody says it: own weights, costs, steps and ends."""
    weight = float(np.round(rng.uniform(0.2, 3.0), 2) * pick(rng, 1.0, 1.0, 1.0, 1e-6, 1e6))
    part = replace(part, weight=weight)
    if not part.number:
        if part.codes is not None and rng.random() < 0.4:
            return replace(part, kind="integer", levels=(), step=1.0)
        return replace(part, costs=_costs(rng, len(part.levels)))
    numbers = part.values.dropna().to_numpy(dtype=float)
    if part.kind == "integer" and rng.random() < 0.3:
        part = replace(part, step=float(pick(rng, 2.0, 3.0)))
    if part.kind == "numeric" and rng.random() < 0.15:
        part = replace(part, step=float(numbers.std() * pick(rng, 0.25, 0.5, 1.0)) or 1.0)
    if rng.random() < 0.5:
        low, high = float(np.floor(numbers.min())), float(np.ceil(numbers.max()))
        part = replace(part, bounds=pick(rng, (low, high), (None, high), (low, None), (low - 2.0, high + 2.0)))
    else:
        part = replace(part, bounds=None)
    return part


def limited(rng: np.random.Generator, part: Part) -> Part:
    """What a person may do with the column; mostly anything."""
    ways = ["", "", "", "", "immutable"]
    if part.kind != "categorical":
        ways += ["increase", "decrease"]
    ways += ["bounds", "increase bounds"] if part.number and part.codes is None else ["levels"]
    for way in pick(rng, *ways).split():
        if way == "bounds":
            numbers = part.values.dropna().to_numpy(dtype=float)
            low, high = np.quantile(numbers, np.sort(rng.random(2))).tolist()
            low, high = (float(np.floor(low)), float(np.ceil(high))) if part.kind == "integer" else (low, high)
            part = replace(part, limits=pick(rng, (low, high), (None, high), (low, None)))
        elif way == "levels":
            known = [level for level in part.levels if level is not None]
            some = rng.permutation(len(known))[: 1 + int(rng.random() * len(known))]
            if part.number:
                continue
            part = replace(part, allowed=tuple(known[i] for i in some))
        else:
            part = replace(part, way=way)
    return part
