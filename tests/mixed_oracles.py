"""Two slow opinions on the cheapest change of a person with numbers and levels: try everything, and ask HiGHS.

Nothing of the package computes here: of a schema and of what is actionable only the fields are read that a user wrote
into them, and what a model says about a change is found by asking the model.  A person is a table of one row, so that
columns keep their types.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.optimize

TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
# HiGHS accepts rows that are missed by 1e-6, and stops at a gap of 1e-6: in larger units that is less.
UNITS = 1e4
MOST = 400_000  # combinations that are tried


class UndecidedError(RuntimeError):
    """The oracle cannot answer to its own accuracy."""


class Way(NamedTuple):
    """What one column may become: single values with their costs, or (of a number without steps) an interval."""

    values: list[Any]
    costs: np.ndarray
    interval: tuple[float, float] | None = None
    weight: float = 0.0


class Limits(NamedTuple):
    """What a person may do, with one choice made for every "if this changes, that stays"."""

    fixed: set[str]
    rising: set[str]
    falling: set[str]
    bounds: dict[str, Any]
    levels: dict[str, Any]
    ties: list[tuple[str, str, float]]  # the first column changes by at least so many times what the second does


def brute_force(
    model: Any,
    schema: Any,
    row: pd.DataFrame,
    target: Any,
    actionable: Any = None,
    *,
    cuts: Mapping[str, Sequence[float]] | None = None,
    guard: float = 0.0,
) -> float:
    """Cost of the cheapest change that makes the model say `target`; infinity if there is none.

    Every combination of levels and steps is tried.  Where no number is left, the model's own predict is asked for every
    one of them.  Otherwise the model has to be linear, and the rest is a linear program, whose margins between the
    target and the other labels are at least `guard`.  With `cuts`, values worth trying for each number without steps
    (its own is added), everything is again asked of predict.
    """
    if model.predict(row)[0] == target:
        return 0.0
    return min(_brute_force(model, schema, row, target, limits, cuts, guard) for limits in limits_of(actionable))


def milp(
    model: Any, schema: Any, row: pd.DataFrame, target: Any, actionable: Any = None, *, guard: float = 0.0
) -> float:
    """The same as one mixed-integer program, for linear models; infinity if there is no change."""
    if model.predict(row)[0] == target:
        return 0.0
    return min(_milp(model, schema, row, target, limits, guard) for limits in limits_of(actionable))


def leaves(
    model: Any, schema: Any, row: pd.DataFrame, target: Any, actionable: Any = None, *, slack: float = 0.0
) -> float:
    """The same for a pipeline that ends in a tree and whose features each come from one column: leaf by leaf.

    `slack` moves the sides of the leaves outwards, relative to one plus their size: trees compute in float32.
    """
    if model.predict(row)[0] == target:
        return 0.0
    tree = model[-1].tree_
    boxes = list(_boxes(tree, 0, np.full(tree.n_features, -np.inf), np.full(tree.n_features, np.inf)))
    boxes = [box[1:] for box in boxes if model.classes_[np.argmax(tree.value[box[0], 0])] == target]
    return min((_leaves(model, schema, row, boxes, limits, slack) for limits in limits_of(actionable)), default=np.inf)


class Dense(NamedTuple):
    """Where a label is dense: for one of the components, log density plus log frequencies reach the threshold."""

    numbers: list[str]
    components: list[tuple[float, np.ndarray, np.ndarray]]  # logarithm of the weight, mean, inverse covariance
    frequency: dict[str, dict[Any, float]]  # logarithms, by column and key of the level
    threshold: float

    @classmethod
    def of(cls, schema: Any, own: pd.DataFrame, components: Any, quantile: float) -> Dense:
        """From the people of a class, and the weights, means and covariances of a mixture over their numbers."""
        numbers = [name for name, column in schema.columns.items() if column.kind in ("numeric", "integer")]
        frequency = {}
        for name, column in schema.columns.items():
            if name not in numbers:
                keys = [_key(level) for level in own[name]]
                total = len(own) + len(column.levels)
                frequency[name] = {_key(v): np.log((keys.count(_key(v)) + 1) / total) for v in column.levels}
        parts = []
        for weight, mean, covariance in components:
            _, log_det = np.linalg.slogdet(2.0 * np.pi * covariance)
            parts.append((np.log(weight) - 0.5 * log_det, mean, np.linalg.inv(covariance)))
        made = cls(numbers, parts, frequency, 0.0)
        return made._replace(threshold=float(np.quantile(made.scores(own), quantile, method="lower")))

    def levels(self, row: Mapping[str, Any]) -> float:
        return sum(logs[_key(row[name])] for name, logs in self.frequency.items())

    def scores(self, people: pd.DataFrame) -> list[float]:
        rows = people.to_dict("records")
        return [self.levels(row) + self.peak(np.array([float(row[name]) for name in self.numbers])) for row in rows]

    def peak(self, x: np.ndarray) -> float:
        return max((log - 0.5 * (x - m) @ P @ (x - m) for log, m, P in self.components), default=0.0)


def plausible(
    model: Any,
    schema: Any,
    row: pd.DataFrame,
    target: Any,
    dense: Dense,
    actionable: Any = None,
    *,
    slack: float = 0.0,
) -> float:
    """Cost of the cheapest change that ends where the target is dense; at most one number may be without steps.

    With one, the model has to be linear: for every combination what is left is an interval of that number.
    `slack` widens the region: the threshold and the margins go down by it.
    """
    if model.predict(row)[0] == target:
        return 0.0
    dense = dense._replace(threshold=dense.threshold - slack)
    return min(_plausible(model, schema, row, target, dense, limits, slack) for limits in limits_of(actionable))


def _plausible(
    model: Any, schema: Any, row: pd.DataFrame, target: Any, dense: Dense, limits: Limits, slack: float
) -> float:
    ways = _ways(schema, row, limits)
    smooth = [name for name, way in ways.items() if way.interval is not None]
    single = {name: way for name, way in ways.items() if name not in smooth}
    if len(smooth) > 1 or limits.ties:
        raise UndecidedError("More than an interval is left.")
    combinations = _combinations(single)
    prices = _prices(single, combinations)
    if not smooth:
        answers = model.predict(_table(row, single, combinations)) if len(combinations) else np.zeros(0)
        combinations, prices = combinations[answers == target], prices[answers == target]
    else:
        numbers, margins = margins_of(model, schema, row, target)
        reached = _reached(schema, row, single, numbers, margins, combinations)
    best = np.inf
    for i in np.argsort(prices, kind="stable"):
        if not prices[i] < best:
            break
        person = {name: way.values[k] for (name, way), k in zip(single.items(), combinations[i], strict=True)}
        needed = dense.threshold - dense.levels(person)
        if not smooth:
            if dense.peak(np.array([float(person[name]) for name in dense.numbers])) >= needed:
                best = prices[i]
            continue
        name = smooth[0]
        own, (least, most) = float(row[name].iloc[0]), ways[name].interval
        for slope, value in zip(numbers[name], reached[i] + slack, strict=True):
            if slope == 0.0 and value < 0.0:
                most = -np.inf
            elif slope != 0.0:
                least, most = (max(least, -value / slope), most) if slope > 0.0 else (least, min(most, -value / slope))
        at = np.array([own if other == name else float(person[other]) for other in dense.numbers])
        e = np.array([1.0 * (other == name) for other in dense.numbers])
        for log, mean, P in dense.components:  # log - 1/2 (at + t e - mean)' P (at + t e - mean) >= needed
            a, b, c = e @ P @ e, e @ P @ (at - mean), (at - mean) @ P @ (at - mean) - 2.0 * (log - needed)
            root = b * b - a * c
            if root >= 0.0:
                low, high = max(least, (-b - np.sqrt(root)) / a), min(most, (-b + np.sqrt(root)) / a)
                if low <= high:
                    best = min(best, prices[i] + ways[name].weight * max(low, -high, 0.0))
    return float(best)


def limits_of(actionable: Any) -> Iterator[Limits]:
    """Every way to keep the rules of the kind "if this changes, that stays": one of the two stays."""
    if actionable is None:
        yield Limits(set(), set(), set(), {}, {}, [])
        return
    rules = [rule for rule in actionable.rules if hasattr(rule, "stays")]
    ties = [(rule.column, rule.driver, rule.ratio) for rule in actionable.rules if hasattr(rule, "driver")]
    for held in itertools.product(*[(rule.column, rule.stays) for rule in rules]):
        yield Limits(
            {*actionable.immutable, *held},
            set(actionable.increase),
            set(actionable.decrease),
            dict(actionable.bounds),
            dict(actionable.levels),
            ties,
        )


def _brute_force(
    model: Any,
    schema: Any,
    row: pd.DataFrame,
    target: Any,
    limits: Limits,
    cuts: Mapping[str, Sequence[float]] | None,
    guard: float,
) -> float:
    ways = _ways(schema, row, limits)
    smooth = [name for name, way in ways.items() if way.interval is not None]
    if cuts is not None:
        if any(name in smooth for tie in limits.ties for name in tie[:2]):
            raise UndecidedError("A tie between numbers may need values that are not among the cuts.")
        for name in smooth:
            ways[name] = _tried(ways[name], float(row[name].iloc[0]), cuts.get(name, ()))
        smooth = []
    single = {name: way for name, way in ways.items() if name not in smooth}
    count = np.prod([len(way.values) for way in single.values()], dtype=float)
    if count == 0:
        return np.inf
    if count > MOST:
        raise UndecidedError(f"{count:,.0f} combinations are too many to try.")
    if not smooth:
        return _by_predict(model, schema, row, target, single, limits)
    return _by_programs(model, schema, row, target, ways, single, limits, guard)


def _boxes(tree: Any, node: int, lower: np.ndarray, upper: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Every leaf below a node, and what it asks of features: more than `lower`, at most `upper`."""
    feature, threshold = tree.feature[node], tree.threshold[node]
    if tree.children_left[node] == tree.children_right[node]:
        yield node, lower, upper
        return
    below, above = upper.copy(), lower.copy()
    below[feature], above[feature] = min(upper[feature], threshold), max(lower[feature], threshold)
    yield from _boxes(tree, tree.children_left[node], lower, below)
    yield from _boxes(tree, tree.children_right[node], above, upper)


def _leaves(
    model: Any,
    schema: Any,
    row: pd.DataFrame,
    boxes: Sequence[tuple[np.ndarray, np.ndarray]],
    limits: Limits,
    slack: float,
) -> float:
    if limits.ties:
        raise UndecidedError("Ties join what the leaves ask of single columns.")

    ways = _open_ways(schema, row, limits)
    asked: list[tuple[str, Any]] = []
    for name, way in ways.items():
        column, own = schema.columns[name], row[name].iloc[0]
        if way.interval is None:
            asked += [(name, value) for value in (*way.values, *column.levels) if value is not None]
        else:
            asked.append((name, own + float(np.ceil(20.0 / column.weight))))
    probes = _frame(row, {name: [own] * (1 + len(asked)) for name, own in row.iloc[0].items()}, asked)
    base, *images = _encoded(model, probes)
    of = np.array([name for name, _ in asked])

    total, mine = np.zeros(len(boxes)), np.zeros(len(base), dtype=int)
    lows = np.array([low - slack * (1.0 + np.abs(np.where(np.isfinite(low), low, 0.0))) for low, _ in boxes])
    highs = np.array([high + slack * (1.0 + np.abs(np.where(np.isfinite(high), high, 0.0))) for _, high in boxes])
    for name, way in ways.items():
        column, seen = schema.columns[name], np.array(images)[of == name]
        touched = (seen != base).any(axis=0)
        mine += touched
        low, high = lows[:, touched], highs[:, touched]
        if way.interval is None:
            seen = np.where([[value is None] for value in way.values], base, seen[: len(way.values)])[:, touched]
            fits = ((seen[None] > low[:, None]) & (seen[None] <= high[:, None])).all(axis=2)
            total += np.where(fits, way.costs, np.inf).min(axis=1, initial=np.inf)
        else:
            slope = (seen[0] - base)[touched] / np.ceil(20.0 / column.weight)
            ends = np.sort([(side - base[touched]) / slope for side in (low, high)], axis=0)
            least = np.maximum(way.interval[0], ends[0].max(axis=1, initial=-np.inf))
            most = np.minimum(way.interval[1], ends[1].min(axis=1, initial=np.inf))
            total += column.weight * np.array(
                [_least_move(*ends, column.step) for ends in zip(least, most, strict=True)]
            )
    assert (mine <= 1).all(), "A feature that comes from two columns."
    constant = mine == 0
    fits = ((base > lows) & (base <= highs))[:, constant].all(axis=1)
    return float(total[fits].min(initial=np.inf))


def _least_move(least: float, most: float, step: float | None) -> float:
    """How far the nearest point of an interval around or beside 0 is, in whole steps if there are any."""
    if step is not None:
        least, most = step * np.ceil(least / step), step * np.floor(most / step)
    return np.inf if least > most else max(least, -most, 0.0)


def _milp(model: Any, schema: Any, row: pd.DataFrame, target: Any, limits: Limits, guard: float) -> float:
    numbers, margins = margins_of(model, schema, row, target)
    ways = _open_ways(schema, row, limits)
    cost: list[float] = []
    lower: list[float] = []
    upper: list[float] = []
    whole: list[int] = []
    columns: list[np.ndarray] = []  # of the margins
    groups: list[list[int]] = []  # of variables, one of which is 1
    for name, way in ways.items():
        if way.interval is None:
            if not len(way.values):
                return np.inf
            groups.append(list(range(len(cost), len(cost) + len(way.values))))
            for value, price in zip(way.values, way.costs, strict=True):
                cost, lower, upper, whole = [*cost, price], [*lower, 0.0], [*upper, 1.0], [*whole, 1]
                rank = _change(schema.columns[name], row[name].iloc[0], value)
                columns.append(np.append(margins[name, _key(value)], rank * _shares(limits, name)))
            continue
        step = schema.columns[name].step
        unit = 1.0 / way.weight if step is None else step
        for sign, least, most in _up_and_down(way.interval, unit, whole=step is not None):
            if most < least:
                return np.inf
            cost, lower, upper = [*cost, way.weight * unit], [*lower, least], [*upper, most]
            whole = [*whole, int(step is not None)]
            columns.append(sign * unit * np.append(numbers[name], _shares(limits, name)))
    A, b = np.array(columns).T, np.append(guard - margins["base"], np.zeros(len(limits.ties)))
    scale = UNITS / np.abs(A).max(axis=1, initial=1e-9, keepdims=True)
    sums = np.zeros((len(groups), len(cost)))
    for i, group in enumerate(groups):
        sums[i, group] = 1.0
    constraints = [scipy.optimize.LinearConstraint(A * scale, b * scale[:, 0], np.inf)]
    if groups:
        constraints.append(scipy.optimize.LinearConstraint(sums, 1.0, 1.0))
    found = scipy.optimize.milp(
        UNITS * np.array(cost),
        integrality=np.array(whole),
        bounds=scipy.optimize.Bounds(np.array(lower), np.array(upper)),
        constraints=constraints,
        options={"mip_rel_gap": 0.0},
    )
    if found.status == 2:
        return np.inf
    if found.status != 0:
        raise UndecidedError(found.message)
    # With the whole numbers rounded, what is left is a linear program that can be solved to more digits.
    fixed, rounded = np.array(whole) == 1, np.round(found.x)
    return _program(np.array(cost), A, b, np.where(fixed, rounded, lower), np.where(fixed, rounded, upper))


def _ways(schema: Any, row: pd.DataFrame, limits: Limits) -> dict[str, Way]:
    """What every column may become, with steps as single values: a column with steps needs bounds on both sides."""
    ways = _open_ways(schema, row, limits)
    for name, way in ways.items():
        column = schema.columns[name]
        if way.interval is None or column.step is None:
            continue
        own, (low, high) = float(row[name].iloc[0]), way.interval
        if not (np.isfinite(low) and np.isfinite(high)):
            raise UndecidedError(f"Column {name!r} has steps and no end.")
        first, last = np.ceil(low / column.step - 1e-9), np.floor(high / column.step + 1e-9)
        counts = np.arange(first, last + 1.0)
        ways[name] = Way([own + column.step * k for k in counts], column.weight * column.step * np.abs(counts))
    return ways


def margins_of(
    model: Any, schema: Any, row: pd.DataFrame, target: Any
) -> tuple[dict[str, np.ndarray], dict[Any, np.ndarray]]:
    """Target minus every other label: slopes of the numbers, then ``"base"`` and what each level adds to it.

    Found by asking for one row per level and two per number, far enough apart that rounding does not matter; a model
    that bends between the two is refused.
    """
    asked: list[tuple[str, Any]] = []
    for name, column in schema.columns.items():
        own = row[name].iloc[0]
        if column.kind in ("numeric", "integer"):
            far = float(np.ceil(20.0 / column.weight))
            asked += [(name, own + far), (name, own - far)]
        else:
            asked += [(name, level) for level in column.levels if level is not None]
    probes = _frame(row, {name: [own] * (1 + len(asked)) for name, own in row.iloc[0].items()}, asked)
    scores = _scores(model, probes)
    k = list(model.classes_).index(target)
    differences = np.delete(scores[:, [k]] - scores, k, axis=1)
    base, numbers, margins = differences[0], {}, {"base": differences[0]}
    for i, (name, value) in enumerate(asked, start=1):
        if schema.columns[name].kind not in ("numeric", "integer"):
            margins[name, _key(value)] = differences[i] - base
        elif name not in numbers:
            far = float(value) - float(row[name].iloc[0])
            numbers[name] = (differences[i] - differences[i + 1]) / (2.0 * far)
            size = 1.0 + np.abs(differences[[0, i, i + 1]]).max()
            if (np.abs(differences[i] + differences[i + 1] - 2.0 * base) > 1e-8 * size).any():
                raise UndecidedError(f"The model is not linear in {name!r}.")
            numbers[name][np.abs(numbers[name]) * far < 1e-12 * size] = 0.0  # a column that the model does not use
    for name, column in schema.columns.items():
        if column.kind not in ("numeric", "integer"):
            own = row[name].iloc[0]
            margins[name, _key(own)] = np.zeros_like(base)
    return numbers, margins


def changed_cost(schema: Any, before: pd.DataFrame, after: pd.DataFrame) -> np.ndarray:
    """What the change from each row to the one at the same place of the other table costs."""
    total = np.zeros(len(before))
    for name, column in schema.columns.items():
        if column.kind in ("numeric", "integer"):
            change = after[name].to_numpy(dtype=float) - before[name].to_numpy(dtype=float)
            total += column.weight * np.abs(change)
        else:
            pairs = zip(before[name], after[name], strict=True)
            total += [_level_cost(column, _place(column, a), _place(column, b)) for a, b in pairs]
    return total


def _open_ways(schema: Any, row: pd.DataFrame, limits: Limits) -> dict[str, Way]:
    """What every column may become; the interval of a number is relative to the person's own."""
    fixed, rising, falling, bounds, levels, _ = limits
    found: dict[str, Way] = {}
    for name, column in schema.columns.items():
        own = row[name].iloc[0]
        if column.kind in ("numeric", "integer"):
            low, high = -np.inf, np.inf
            for interval in (column.bounds, bounds.get(name)):
                if interval is not None:
                    low = max(low, -np.inf if interval[0] is None else interval[0] - own)
                    high = min(high, np.inf if interval[1] is None else interval[1] - own)
            low, high = (max(low, 0.0) if name in rising else low), (min(high, 0.0) if name in falling else high)
            if name in fixed:
                low, high = max(low, 0.0), min(high, 0.0)
            found[name] = Way([], np.zeros(0), (low, high), column.weight)
            continue
        at = _place(column, own)
        kept, costs = [], []
        for i, level in enumerate(column.levels):
            goal = i == at or level is not None
            goal &= i == at or name not in fixed
            goal &= not ((name in rising and i < at) or (name in falling and i > at))
            goal &= i == at or name not in levels or _key(level) in {_key(other) for other in levels[name]}
            price = _level_cost(column, at, i)
            if goal and np.isfinite(price):
                kept.append(level)
                costs.append(price)
        found[name] = Way(kept, np.array(costs))
    return found


def _level_cost(column: Any, i: int, j: int) -> float:
    if i == j:
        return 0.0
    if column.costs is not None:
        return float(column.weight * np.asarray(column.costs)[i, j])
    missing = column.levels[i] is None or column.levels[j] is None
    return float(column.weight * (abs(i - j) if column.kind == "ordered" and not missing else 1.0))


def _change(column: Any, before: Any, after: Any) -> float:
    """By how much a number or a rank changes."""
    if column.kind in ("numeric", "integer"):
        return float(after) - float(before)
    return float(_place(column, after) - _place(column, before))


def _shares(limits: Limits, name: str) -> np.ndarray:
    """How a unit of a column counts in every tie."""
    return np.array([1.0 * (name == column) - ratio * (name == driver) for column, driver, ratio in limits.ties])


def _tied(schema: Any, row: pd.DataFrame, single: Mapping[str, Way], limits: Limits, at: np.ndarray) -> np.ndarray:
    """What combinations contribute to every tie, of shape (combinations, ties)."""
    total = np.zeros((len(at), len(limits.ties)))
    for i, (name, way) in enumerate(single.items()):
        shares = _shares(limits, name)
        if shares.any():
            changes = np.array([_change(schema.columns[name], row[name].iloc[0], value) for value in way.values])
            total += np.outer(changes[at[:, i]], shares)
    return total


def _place(column: Any, level: Any) -> int:
    return [_key(known) for known in column.levels].index(_key(level))


def _key(level: Any) -> Any:
    return None if level is None or level is pd.NA or level != level else (isinstance(level, bool | np.bool_), level)


def _tried(way: Way, own: float, cuts: Sequence[float]) -> Way:
    assert way.interval is not None
    low, high = way.interval
    ends = [own + end for end in (low, high) if np.isfinite(end)]
    values = np.array(sorted({own, *map(float, cuts), *ends}))
    values = values[(values - own >= low) & (values - own <= high)]
    return Way(values.tolist(), way.weight * np.abs(values - own))


def _frame(row: pd.DataFrame, values: Mapping[Any, list[Any]], changes: Sequence[tuple[str, Any]] = ()) -> pd.DataFrame:
    """A table with the types of the row; the i-th change is made in its row i + 1."""
    columns: dict[Any, list[Any]] = {name: list(column) for name, column in values.items()}
    for i, (name, value) in enumerate(changes, start=1):
        columns[name][i] = value
    return pd.DataFrame({name: pd.Series(columns[name], dtype=row[name].dtype) for name in row.columns})


def _encoded(model: Any, frame: pd.DataFrame) -> np.ndarray:
    """What the last step of a pipeline is shown."""
    found = model[:-1].transform(frame)
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=float)


def _scores(model: Any, frame: pd.DataFrame) -> np.ndarray:
    if hasattr(model[-1], "centroids_"):  # its predict follows the distances, its decision_function does not
        return -((_encoded(model, frame)[:, None] - model[-1].centroids_) ** 2).sum(axis=2)
    scores = np.asarray(model.decision_function(frame), dtype=float)
    return np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores


def _combinations(single: Mapping[str, Way]) -> np.ndarray:
    """Positions of values, one row per combination."""
    grids = np.meshgrid(*[np.arange(len(way.values)) for way in single.values()], indexing="ij")
    return np.stack([grid.ravel() for grid in grids], axis=1) if grids else np.zeros((1, 0), dtype=int)


def _prices(single: Mapping[str, Way], combinations: np.ndarray) -> np.ndarray:
    parts = [way.costs[combinations[:, i]] for i, way in enumerate(single.values())]
    return np.sum(parts, axis=0) if parts else np.zeros(len(combinations))


def _table(row: pd.DataFrame, single: Mapping[str, Way], combinations: np.ndarray) -> pd.DataFrame:
    columns = {}
    for i, (name, way) in enumerate(single.items()):
        values = pd.Series(way.values, dtype=row[name].dtype)
        columns[name] = values.take(combinations[:, i]).reset_index(drop=True)
    return pd.DataFrame(columns)[list(row.columns)]


def _reached(
    schema: Any,
    row: pd.DataFrame,
    single: Mapping[str, Way],
    numbers: Mapping[str, np.ndarray],
    margins: Mapping[Any, np.ndarray],
    combinations: np.ndarray,
) -> np.ndarray:
    """Margins of combinations, of shape (combinations, other labels)."""
    reached = np.tile(margins["base"], (len(combinations), 1))
    for i, (name, way) in enumerate(single.items()):
        if schema.columns[name].kind in ("numeric", "integer"):
            effects = np.outer(np.array(way.values, dtype=float) - float(row[name].iloc[0]), numbers[name])
        else:
            effects = np.array([margins[name, _key(value)] for value in way.values])
        reached += effects[combinations[:, i]]
    return reached


def _by_predict(
    model: Any, schema: Any, row: pd.DataFrame, target: Any, single: Mapping[str, Way], limits: Limits
) -> float:
    combinations = _combinations(single)
    combinations = combinations[(_tied(schema, row, single, limits, combinations) >= -1e-9).all(axis=1)]
    if not len(combinations):
        return np.inf
    answers = model.predict(_table(row, single, combinations))
    return float(_prices(single, combinations)[answers == target].min(initial=np.inf))


def _by_programs(
    model: Any,
    schema: Any,
    row: pd.DataFrame,
    target: Any,
    ways: Mapping[str, Way],
    single: Mapping[str, Way],
    limits: Limits,
    guard: float,
) -> float:
    numbers, margins = margins_of(model, schema, row, target)
    combinations = _combinations(single)
    prices = _prices(single, combinations)
    reached = _reached(schema, row, single, numbers, margins, combinations)
    reached = np.hstack([reached, _tied(schema, row, single, limits, combinations)])

    cost, lower, upper, columns = [], [], [], []
    for name in (name for name in ways if name not in single):
        unit = 1.0 / ways[name].weight
        for sign, least, most in _up_and_down(ways[name].interval, unit, whole=False):
            if most < least:
                return np.inf
            cost, lower, upper = [*cost, 1.0], [*lower, least], [*upper, most]
            columns.append(sign * unit * np.append(numbers[name], _shares(limits, name)))
    A, least, most = np.array(columns).T, np.array(lower), np.array(upper)

    # One row alone, without an end to the interval, is a bound: combinations that cannot win need no program.
    missing = np.append(np.full(len(margins["base"]), guard), np.zeros(len(limits.ties))) - reached
    rates = np.where(most > least, np.maximum(A, 0.0), 0.0).max(axis=1)
    forced = float(np.dot(cost, least))
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = (missing - A @ least) / rates
    rest = np.where(missing - A @ least <= 0.0, 0.0, np.where(rates > 0.0, rest, np.inf)).max(axis=1)
    bounds = prices + forced + rest
    best = np.inf
    for i in np.argsort(bounds, kind="stable"):
        if not bounds[i] < best:
            break
        best = min(best, prices[i] + _program(np.array(cost), A, missing[i], least, most))
    return float(best)


def _up_and_down(interval: Any, unit: float, *, whole: bool) -> list[tuple[float, float, float]]:
    """Sign, least and largest number of units, upwards and downwards."""
    low, high = interval[0] / unit, interval[1] / unit
    if whole:
        low, high = np.ceil(low - 1e-9), np.floor(high + 1e-9)
    if low > high:
        return [(1.0, 1.0, 0.0)]
    return [(1.0, max(low, 0.0), max(high, 0.0)), (-1.0, max(-high, 0.0), max(-low, 0.0))]


def _program(cost: np.ndarray, A: np.ndarray, b: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """Least cost of variables with ``A @ variables >= b`` between their bounds, infinity if there are none."""
    scale = np.abs(A).max(axis=1, initial=0.0)
    if (b[scale == 0.0] > 0.0).any():
        return np.inf
    use = scale > 0.0
    found = scipy.optimize.linprog(
        cost,
        -A[use] / scale[use, None],
        -b[use] / scale[use],
        bounds=np.column_stack([lower, upper]),
        method="highs",
        options=TIGHT,
    )
    if found.status == 2:
        return np.inf
    if found.status != 0:
        raise UndecidedError(found.message)
    return float(found.fun)
