"""Whom somebody could become for less than an answer says is possible, by trying them all.

Levels, whole numbers and steps are tried in every combination, up to a number; an amount is moved as far as what is
left of the budget reaches, a little less, and half of it.  What is found is a person whom predict gives the target: no
rounding of the oracle's own decides anything but the price, and that is kept clear of the claim.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer

from fuzz.raw_columns import Part, same
from fuzz.raw_densities import Densities
from fuzz.regions import prototypes, rounding

MOST = 1500  # combinations per person
LINES = 200  # combinations from which amounts are moved
REACH = (1.0 - 1e-9, 1.0 - 1e-6, 0.999, 0.97, 0.8, 0.5)
CLEAR = 1e-10  # relative difference of scores below which rounding decides


class Rival(NamedTuple):
    """Somebody whom the model gives the target, for less than is proven."""

    row: int
    person: pd.DataFrame
    price: float
    label: Any


class _Some(NamedTuple):
    """People that one person could become: values by column, and what they cost."""

    values: dict[str, list[Any]]
    prices: np.ndarray


def cheapest(
    parts: tuple[Part, ...],
    rules: tuple[tuple[str, str, str, float], ...],
    model: Any,
    people: pd.DataFrame,
    found: Any,
    now: np.ndarray,
    unreadable: np.ndarray,
    target: Any,
    inside: Densities | None = None,
) -> Rival | None:
    """Somebody whom the model gives what was asked for, at less than the proven cost, or where nobody should be."""
    rng = np.random.default_rng(0)
    edges = _edges(parts, model)
    tables, owners, prices = [], [], []
    for i in range(len(people)):
        if unreadable[i] or found.status[i] in ("already", "failed"):
            continue
        floor = _floor(parts, people, found, i, model[-1])
        if not floor > 0:
            continue
        some = _within(rng, parts, rules, people.iloc[i], floor, edges)
        tables.append(some.values)
        prices.append(some.prices)
        owners.append(np.full(len(some.prices), i))
    if not tables:
        return None
    owner, price = np.concatenate(owners), np.concatenate(prices)
    if not len(owner):
        return None
    everybody = pd.DataFrame(
        {p.name: _typed([v for t in tables for v in t[p.name]], people[p.name].dtype) for p in parts}
    )[list(people.columns)]
    try:
        said = model.predict(everybody)
    except ValueError:  # some level that the encoder has never seen
        keep = np.array([_takes(model, everybody.iloc[[k]]) for k in range(len(everybody))])
        owner, price, everybody = owner[keep], price[keep], everybody[keep].reset_index(drop=True)
        if not len(owner):
            return None
        said = model.predict(everybody)
    good = said != now[owner] if target is None else said == target[owner]
    if inside is not None and good.any():
        some = np.flatnonzero(good)
        good[some] = inside.clearly(everybody.iloc[some], said[some])
    for k in np.flatnonzero(good)[np.argsort(price[good], kind="stable")]:
        person = everybody.iloc[[k]].reset_index(drop=True)
        if not _on_boundary(model, person):
            return Rival(int(owner[k]), person, float(price[k]), said[k])
    return None


def _takes(model: Any, person: pd.DataFrame) -> bool:
    try:
        model.predict(person)
    except ValueError:
        return False
    return True


def _floor(parts: tuple[Part, ...], people: pd.DataFrame, found: Any, i: int, last: Any) -> float:
    """What a rival has to cost less than; infinity for who is said to have no way."""
    if not found.valid[i]:
        return np.inf
    size, unit, other = 0.0, 0.0, 0.0
    for part in parts:
        if not part.number:
            continue
        own, value = part.rank(people[part.name].iloc[i]), part.rank(found.counterfactual[part.name].iloc[i])
        spread = float(part.values.dropna().astype(float).std()) or 1.0
        if own != value:
            size += part.weight * max(abs(own), abs(value))
            unit = max(unit, part.weight * spread)
        else:
            other += abs(own) / spread
    size += unit * other  # what is lost of a column that stays moves another by so much
    floor = float(found.cost[i] - found.gap[i])
    return floor - 1e-9 * floor - rounding(last) * size


def _within(
    rng: np.random.Generator, parts: tuple[Part, ...], rules: Any, own: pd.Series, floor: float, edges: dict[str, Any]
) -> _Some:
    options = [_options(rng, part, own[part.name], floor, edges.get(part.name, ())) for part in parts]
    sizes = [len(prices) for _, prices in options]
    total = int(np.prod(sizes, dtype=float)) if np.prod(sizes, dtype=float) < 1e9 else 10**9
    if total <= 4 * MOST:
        places = np.array(list(itertools.product(*map(range, sizes))), dtype=int).reshape(-1, len(parts))
    else:
        places = np.column_stack([rng.integers(size, size=4 * MOST) for size in sizes])
    prices = sum((p[places[:, j]] for j, (_, p) in enumerate(options)), start=np.zeros(len(places)))
    keep = np.flatnonzero((prices < floor) & (places != 0).any(axis=1))
    keep = keep[np.argsort(prices[keep], kind="stable")][-MOST:] if np.isfinite(floor) else keep[:MOST]
    base = np.flatnonzero(prices < floor)
    lines = base if len(base) <= LINES else rng.choice(base, LINES, replace=False)
    columns: dict[str, list[Any]] = {p.name: [options[j][0][k] for k in places[keep, j]] for j, p in enumerate(parts)}
    costs = prices[keep].tolist()
    for j, part in enumerate(parts):
        if part.kind != "numeric" or part.step is not None or part.way == "immutable" or part.codes is not None:
            continue
        start = part.rank(own[part.name])
        spread = float(part.values.dropna().astype(float).std()) or 1.0
        for line in lines:
            others = prices[line] - options[j][1][places[line, j]]
            left = (floor - others) / part.weight
            steps = [left * share for share in REACH] if np.isfinite(left) else [spread * s for s in (0.1, 1.0, 10.0)]
            for step in steps:
                for value in (start - step, start + step):
                    if not part.may(own[part.name], value):
                        continue
                    price = others + part.weight * abs(value - start)
                    if price < floor:
                        costs.append(price)
                        for other, p in enumerate(parts):
                            at = value if other == j else options[other][0][places[line, other]]
                            columns[p.name].append(at)
    return _ruled(parts, rules, own, _Some(columns, np.array(costs)))


def _ruled(parts: tuple[Part, ...], rules: Any, own: pd.Series, some: _Some) -> _Some:
    """Those that keep the rules, and whose numbers are where they may be."""
    keep = np.ones(len(some.prices), dtype=bool)
    for part in parts:  # a number that stays where it may not be
        if part.number and part.way != "immutable" and not part.within(part.rank(own[part.name])):
            keep &= np.array([not same(v, own[part.name]) for v in some.values[part.name]], dtype=bool)
    by_name = {part.name: part for part in parts}
    for rule, a, b, ratio in rules:
        moved = [np.array([by_name[n].rank(v) for v in some.values[n]]) - by_name[n].rank(own[n]) for n in (a, b)]
        keep &= (moved[0] >= ratio * moved[1]) if rule == "RisesWith" else (moved[0] == 0) | (moved[1] == 0)
    kept = np.flatnonzero(keep)
    return _Some({n: [values[k] for k in kept] for n, values in some.values.items()}, some.prices[kept])


def _options(rng: np.random.Generator, part: Part, own: Any, floor: float, edges: Any) -> tuple[list[Any], np.ndarray]:
    """What a column may become, its own value first, and what that costs."""
    values: list[Any]
    if not part.number:
        values = [level for level in part.levels if level is not None]
    elif part.codes is not None:
        values = list(part.codes)
    elif part.step is not None:
        reach = 14 if not np.isfinite(floor) else min(14.0, floor / (part.weight * part.step))
        values = [part.rank(own) + k * part.step for k in range(-int(reach), int(reach) + 1) if k]
    else:
        start = part.rank(own)
        values = [v for edge in edges for v in (edge, *_beside(edge))]
        values += part.values.dropna().sample(4, random_state=int(rng.integers(1 << 30))).astype(float).tolist()
        values = [v for v in values if v != start]
    values = [v for v in dict.fromkeys(values) if not same(v, own) and part.may(own, v)]
    prices = np.array([part.price(own, v) for v in values])
    near = prices < floor
    return [own, *(v for v, ok in zip(values, near, strict=True) if ok)], np.concatenate([[0.0], prices[near]])


def _beside(edge: float) -> tuple[float, ...]:
    shares = (1e-15, 1e-9, 1e-6)
    return tuple(edge + way * share * max(abs(edge), 1e-300) for share in shares for way in (-1, 1))


def _edges(parts: tuple[Part, ...], model: Any) -> dict[str, list[float]]:
    """Thresholds of trees and of bins, in the units of the table."""
    found: dict[str, list[float]] = {}
    encoders, last = model[0], model[-1]
    for part in parts:
        step = encoders.named_transformers_.get(part.name)
        inner = step[-1] if hasattr(step, "steps") else step
        inner = None if isinstance(inner, SimpleImputer) else inner
        if hasattr(inner, "bin_edges_"):
            found[part.name] = [float(e) for e in inner.bin_edges_[0][1:-1]]
        elif part.kind == "numeric" and hasattr(last, "tree_"):
            start, stop = encoders.output_indices_[part.name].start, encoders.output_indices_[part.name].stop
            own = (last.tree_.feature >= start) & (last.tree_.feature < stop)
            sides = last.tree_.threshold[own]
            if hasattr(inner, "inverse_transform") and len(sides) and stop - start == 1:
                name = inner.get_feature_names_out([part.name])
                assert len(name) == 1
                sides = np.asarray(inner.inverse_transform(sides[:, None]))[:, 0]
            found[part.name] = sides.tolist()
    return found


def _typed(values: list[Any], dtype: Any) -> pd.Series:
    """Values in the type of a table, or in a wider one that holds them."""
    series = pd.Series(values, dtype=object)
    kind = str(dtype)
    if kind.lower().startswith(("int", "uint")):
        there = series.dropna()
        if any(v != int(v) for v in there):
            return series.map(lambda v: np.nan if pd.isna(v) else float(v)).astype("float64")
        series = series.map(lambda v: v if pd.isna(v) else int(v))
        there = series.dropna()
        limits = np.iinfo(kind.lower())
        wide = (
            kind
            if not len(there) or (there.min() >= limits.min and there.max() <= limits.max)
            else "Int64"
            if kind[0].isupper()
            else "int64"
        )
        return series.astype(wide)
    if kind in ("float32", "Float32", "Float64", "float64"):
        series = series.map(lambda v: np.nan if pd.isna(v) else float(v))
        return series.astype("float64")
    return series.astype(dtype)


def _on_boundary(model: Any, person: pd.DataFrame) -> bool:
    """Whether two labels score the same but for rounding: then predict may say either."""
    last = model[-1]
    if hasattr(last, "tree_"):
        return False
    seen = model[:-1].transform(person)
    seen = np.asarray(seen.toarray() if hasattr(seen, "toarray") else seen, dtype=float)
    return close_call(last, seen)


def close_call(last: Any, seen: np.ndarray) -> bool:
    """Whether the last step scores two labels the same but for rounding."""
    if hasattr(last, "coef_"):
        coef, size = np.atleast_2d(last.coef_), 0.0
        scores = (seen @ coef.T + last.intercept_)[0]
        size = float((np.abs(seen) @ np.abs(coef).T + np.abs(last.intercept_)).max())
        scores = np.append(scores, 0.0) if len(scores) == 1 else scores
    else:
        points, owner = prototypes(last)
        apart = seen[0] - points
        apart = apart @ last.omega_.T if hasattr(last, "omega_") else apart
        distance = (apart**2).sum(axis=1)
        scores = -np.array([distance[owner == label].min() for label in np.unique(owner)])
        size = float(np.abs(scores).max() + (seen**2).sum() + (points**2).sum(axis=1).max())
    top = np.sort(scores)[-2:]
    return bool(top[1] - top[0] <= CLEAR * size)
