"""Counterfactuals over numbers, steps and levels: exact, with a certificate, and valid as they are returned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.costs import Cost, Gower, weighed
from evenhand.density import HighDensity, log_peaks, weighted_log_densities
from evenhand.explaining.explainer import Answers, Explainer, unanswered
from evenhand.explaining.explanations import Explanations
from evenhand.models import View, table_view
from evenhand.models.effects import Effects, Piece, raw_piece
from evenhand.projection import MixedProjector
from evenhand.projection.levels.table import Columns, Density, Pieces, make_pieces
from evenhand.status import Status
from evenhand.table.limits import DOWN, FIXED, FREE, UP, Actionable, Limits
from evenhand.table.schema import Schema
from evenhand.types import BoolArray, FloatArray

# How far from every constraint an answer stays, relative to the numbers that meet there.
GUARDS = (1e-10, 1e-8, 1e-6, 1e-5)
MOST_VARIANTS = 64
CHUNK = 65536  # a pipeline with encoders takes a while to begin with


@dataclass(frozen=True, eq=False)
class LevelDensity:
    """Where a label is dense: a mixture over the numbers times the frequencies of the levels."""

    mixture: Any
    frequency: FloatArray
    threshold: float

    def score(self, numbers: FloatArray, rows: npt.NDArray[np.int64]) -> FloatArray:
        """Log density of people, with the positions of their levels among all levels."""
        total = self.frequency[rows].sum(axis=1)
        if self.mixture is not None:
            total = total + weighted_log_densities(self.mixture, numbers).max(axis=1)
        return np.asarray(total)

    def tables(self, n: int) -> Density:
        """As the solver wants it."""
        if self.mixture is None:
            return Density(np.zeros((1, 0, n)), np.zeros((1, 0)), np.array([-self.threshold]), self.frequency)
        R = np.transpose(self.mixture.precisions_cholesky_, (0, 2, 1))
        m = np.einsum("ckj,cj->ck", R, self.mixture.means_)
        return Density(np.ascontiguousarray(R), m, log_peaks(self.mixture) - self.threshold, self.frequency)


def level_densities(recipe: HighDensity, view: View, X: Any, y: Any) -> dict[int, LevelDensity | str]:
    """The density of each label: continuous columns by a mixture, levels by their frequency, one joint threshold.

    A class without a density is a sentence that says why.
    """
    codes = view.read(X)
    labels = view.decide(codes) if y is None else view.positions(np.asarray(y))
    fine = np.isfinite(codes).all(axis=1)
    codes, labels = codes[fine], labels[fine]
    effects: Effects = view.encode
    numbers, rows = codes[:, effects.numbers], _rows(view, codes)
    fitted = recipe.fit(numbers, labels, np.arange(len(view.classes))) if len(effects.numbers) else None
    found: dict[int, LevelDensity | str] = {}
    for k in range(len(view.classes)):
        own = labels == k
        if not own.any():
            found[k] = "it has no training points"
            continue
        if fitted is not None and k in fitted.missing:
            found[k] = fitted.missing[k]
            continue
        count = np.bincount(rows[own].ravel(), minlength=effects.start[-1]).astype(np.float64)
        size = np.repeat(np.diff(effects.start), np.diff(effects.start))
        frequency = np.log((count + 1.0) / (own.sum() + size))
        density = LevelDensity(None if fitted is None else fitted.mixtures[k], frequency, 0.0)
        reached = density.score(numbers[own], rows[own])
        found[k] = replace(density, threshold=float(np.quantile(reached, recipe.quantile, method="lower")) - 1e-9)
    return found


def _rows(view: View, codes: FloatArray) -> npt.NDArray[np.int64]:
    effects: Effects = view.encode
    parts = [effects.start[b] + effects.position(b, codes[:, j]) for b, j in enumerate(effects.categories)]
    return np.column_stack(parts) if parts else np.zeros((len(codes), 0), dtype=np.int64)


def columns_of(limits: Limits, view: View) -> Columns:
    """What may change, as the search wants it: numbers and levels apart, bins among the levels."""
    schema: Schema = view.schema
    effects: Effects = view.encode
    kinds = list(schema.columns.values())
    start, categories = effects.start, effects.categories
    move = np.full((start[-1], int(np.diff(start).max(initial=1))), np.inf)
    for b, j in enumerate(categories):
        first, count = start[b], start[b + 1] - start[b]
        cost = np.zeros((count, count)) if b in effects.bins else limits.moves[int(j)].copy()
        if b in effects.bins and limits.directions[j] == FIXED:
            cost[~np.eye(count, dtype=bool)] = np.inf
        cost[:, ~effects.known[first : first + count]] = np.inf
        np.fill_diagonal(cost, 0.0)
        move[first : first + count, :count] = cost
    tied, tied_levels = _ties(limits, view)
    held, held_levels = _variants(limits, view)
    ways = limits.directions[effects.numbers]
    order = np.empty(len(schema), dtype=np.int64)
    order[effects.numbers] = np.arange(len(effects.numbers))
    order[categories] = -1 - np.arange(len(categories))
    return Columns(
        np.array([kinds[j].weight for j in effects.numbers], dtype=np.float64),
        np.array([kinds[j].step or 0.0 for j in effects.numbers], dtype=np.float64),
        (ways == FREE) | (ways == UP),
        (ways == FREE) | (ways == DOWN),
        start,
        move,
        tied,
        tied_levels,
        order,
        held,
        held_levels,
    )


def _ties(limits: Limits, view: View) -> tuple[FloatArray, FloatArray]:
    """Rows over changes that must not be negative; ordered levels count by rank."""
    effects: Effects = view.encode
    numbers = np.zeros((len(limits.ties), len(effects.numbers)))
    levels = np.zeros((len(limits.ties), effects.start[-1]))
    for i, tie in enumerate(limits.ties):
        for where, factor in ((tie.column, 1.0), (tie.driver, -tie.ratio)):
            if where in effects.numbers:
                numbers[i, list(effects.numbers).index(where)] = factor
                continue
            b = list(effects.categories).index(where)
            if b in effects.bins:
                raise ValueError(f"{view.schema.names[where]!r} is binned, so it cannot rise with another column.")
            part = slice(effects.start[b], effects.start[b + 1])
            levels[i, part] = factor * np.arange(effects.start[b + 1] - effects.start[b])
    return numbers, levels


def _variants(limits: Limits, view: View) -> tuple[BoolArray, BoolArray]:
    """Every way to hold columns: "if A changes then B stays" is "A stays, or B stays"."""
    effects: Effects = view.encode
    variants = sorted({tuple(sorted(set(choice))) for choice in product(*limits.either)})
    variants = [v for v in variants if not any(set(other) < set(v) for other in variants)]
    if len(variants) > MOST_VARIANTS:
        raise ValueError(
            f"{len(limits.either)} rules of IfChanges have {len(variants)} ways to hold columns; at most "
            f"{MOST_VARIANTS} can be searched. Make a column immutable, or use fewer rules."
        )
    width = len(view.schema)
    held = np.array([[j in v for j in range(width)] for v in variants], dtype=bool).reshape(-1, width)
    return held[:, effects.numbers], held[:, effects.categories]


@dataclass(frozen=True, eq=False, repr=False)
class MixedExplainer(Explainer):
    """Searches the levels, steps and numbers of one label after the other.

    Attributes
    ----------
    view : View
        The pipeline.
    cost : Gower
        The cost of a change.
    actionable : Actionable
        What may change.
    limits, columns : Limits, Columns
        The same, for this table and for the search.
    densities : mapping from position of a label to LevelDensity or str, or None
        What counts as plausible.
    margin : float
        Kept from the decision boundary, for changes of numbers.
    max_nodes : int
        Where a search stops: then the answer carries its gap.
    """

    view: View
    cost: Gower  # type: ignore[assignment]
    actionable: Actionable
    limits: Limits
    columns: Columns
    densities: dict[int, LevelDensity | str] | None = None
    margin: float = 0.0
    max_nodes: int = 10_000
    stays: bool = True
    _projectors: dict[tuple[int, float], MixedProjector] = field(default_factory=dict, init=False, repr=False)
    _relaxed: dict[str, MixedExplainer] = field(default_factory=dict, init=False, repr=False)

    def explain(self, X: Any, target: Any = None, *, chunk_size: int = CHUNK, **options: Any) -> Explanations:
        """Counterfactuals for every row of a table; see :meth:`Explainer.explain`."""
        found = super().explain(X, target, chunk_size=chunk_size, **options)
        note = found.note.copy()
        blocked = np.flatnonzero(found.status == Status.UNREACHABLE)
        if len(blocked):
            codes = self.view.read(X)[blocked]
            goal = np.where(pd.isna(found.target[blocked]), -1, self.view.positions(found.target[blocked]))
            note[blocked] = self._blockers(codes, goal.astype(np.int64))
        return replace(found, note=note)

    def _blockers(self, codes: FloatArray, goal: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Which single rule stands in the way of people who have none."""
        reasons: list[list[str]] = [[] for _ in codes]
        for name, freed in self._without():
            open_now = np.isin(freed.answer(codes, goal).status, (Status.OPTIMAL, Status.INACCURATE))
            for i in np.flatnonzero(open_now):
                reasons[i].append(name)
        everything = self._freed("everything", Actionable())
        possible = np.isin(everything.answer(codes, goal).status, (Status.OPTIMAL, Status.INACCURATE))
        return np.array(
            [
                f"{Status.UNREACHABLE.reason} What blocks it: {'; or '.join(found)}."
                if found
                else f"{Status.UNREACHABLE.reason} Several rules block it together."
                if free
                else f"{Status.UNREACHABLE.reason} No rule blocks it: with these columns there is no such point."
                for found, free in zip(reasons, possible, strict=True)
            ],
            dtype=object,
        )

    def _without(self) -> Iterator[tuple[str, MixedExplainer]]:
        """The same explainer without one of its rules at a time."""
        mine = self.actionable
        for kind in ("immutable", "increase", "decrease"):
            for column in getattr(mine, kind):
                rest: Any = {kind: tuple(other for other in getattr(mine, kind) if other != column)}
                yield f"{column!r} is {kind}", self._freed(f"{kind} {column!r}", replace(mine, **rest))
        for kind in ("bounds", "levels"):
            for column in getattr(mine, kind):
                rest = {kind: {name: value for name, value in getattr(mine, kind).items() if name != column}}
                what = f"the {kind} of {column!r}"
                yield what, self._freed(what, replace(mine, **rest))
        for rule in mine.rules:
            others = tuple(other for other in mine.rules if other != rule)
            yield str(rule), self._freed(str(rule), replace(mine, rules=others))

    def _freed(self, name: str, actionable: Actionable) -> MixedExplainer:
        if name not in self._relaxed:
            limits = actionable.over(self.view.schema)
            columns = columns_of(limits, self.view)
            self._relaxed[name] = replace(self, actionable=actionable, limits=limits, columns=columns)
        return self._relaxed[name]

    def _prepare(self, k: int) -> None:
        self._projector(k, GUARDS[0])

    def _toward(self, X: FloatArray, k: int, cutoff: FloatArray) -> Answers:
        answers = unanswered(X, np.full(len(X), k))
        left = np.arange(len(X))
        effects: Effects = self.view.encode
        for guard in GUARDS:
            numbers, levels, values, own, anyway = self._split(X[left])
            room = np.maximum(cutoff[left] - anyway, 0.0)
            found = self._projector(k, guard).project(numbers, levels, own, room, self.max_nodes)
            if guard == GUARDS[0]:
                answers.floor[:] = np.where(np.isfinite(found.bound), np.maximum(found.bound, 0.0) + anyway, cutoff)
            reached = np.isfinite(found.cost)
            answers.status[left] = np.where(
                reached, Status.REJECTED, np.where(found.proven, Status.UNREACHABLE, Status.FAILED)
            )
            points = X[left].copy()
            free = (self.limits.directions != FIXED)[effects.numbers]
            low, high = self.limits.lower[effects.numbers], self.limits.upper[effects.numbers]
            points[:, effects.numbers] = np.where(free, np.clip(found.points, low, high), found.points)
            for b, j in enumerate(effects.categories):
                if b not in effects.bins:
                    points[:, j] = found.levels[:, b]
                else:
                    points[:, j] = values[b][np.arange(len(left)), found.levels[:, b]]
            rows = np.flatnonzero(reached)
            confirmed = np.zeros(len(left), dtype=bool)
            confirmed[rows] = self._confirmed(points[rows], k)
            rows = left[confirmed]
            answers.points[rows] = points[confirmed]
            answers.cost[rows] = self.cost.price(X[rows], points[confirmed])
            answers.status[rows] = Status.OPTIMAL
            left = left[reached & ~confirmed]
            if not len(left):
                break
        return answers

    def _split(
        self, X: FloatArray
    ) -> tuple[FloatArray, npt.NDArray[np.int64], dict[int, FloatArray], FloatArray, FloatArray]:
        """Numbers, levels, and for binned numbers the nearest value in every bin, and what it costs.

        What it costs to stay in a bin, because its value is out of bounds, has to be paid anyway and comes last.
        """
        effects: Effects = self.view.encode
        numbers = np.ascontiguousarray(X[:, effects.numbers])
        levels = np.empty((len(X), len(effects.categories)), dtype=np.int64)
        for b, j in enumerate(effects.categories):
            levels[:, b] = effects.position(b, X[:, j])
        own = np.full((len(X) if effects.bins else 0, effects.start[-1]), -1.0)
        values, anyway = {}, np.zeros(len(X))
        for b, edges in effects.bins.items():
            j = effects.categories[b]
            values[b] = self._into_bins(edges, int(j), X[:, j])
            column = self.view.schema[self.view.schema.names[j]]
            cost = column.weight * np.abs(values[b] - X[:, [j]])
            cost = np.where(np.isnan(cost), np.inf, cost)
            stay = cost[np.arange(len(X)), levels[:, b]]
            stay = np.where(np.isfinite(stay), stay, 0.0)
            anyway += stay
            own[:, effects.start[b] : effects.start[b + 1]] = cost - stay[:, None]
        return numbers, levels, values, own, anyway

    def _into_bins(self, edges: FloatArray, j: int, x: FloatArray) -> FloatArray:
        """The value in each bin that is nearest to each person; NaN where there is none that may be taken."""
        column = self.view.schema[self.view.schema.names[j]]
        low, high = edges[:-1].copy(), edges[1:].copy()
        low[0], high[-1] = -np.inf, np.inf  # a discretizer takes what is beyond for the outermost bin
        # A bin begins at its lower edge and ends before the next one; a little inside, for the discretizer's rounding.
        inner = np.abs(edges[1:]) * 1e-9 + 1e-12
        low = np.maximum(low + np.where(np.isfinite(low), inner, 0.0), self.limits.lower[j])
        high = np.minimum(high - np.where(np.isfinite(high), inner, 0.0), self.limits.upper[j])
        if column.step:
            up = x[:, None] + column.step * np.ceil((low[None] - x[:, None]) / column.step)
            down = x[:, None] - column.step * np.ceil((x[:, None] - high[None]) / column.step)
            value = np.where(x[:, None] < low, up, np.where(x[:, None] > high, down, x[:, None]))
        else:
            value = np.clip(x[:, None], low, high)
        way = self.limits.directions[j]
        bad = (value < low) | (value > high)
        if way == FIXED:
            value, bad = np.repeat(x[:, None], len(low), axis=1), np.zeros(bad.shape, dtype=bool)
        elif way in (UP, DOWN):
            bad |= value < x[:, None] if way == UP else value > x[:, None]
        return np.where(bad, np.nan, value)

    def _confirmed(self, points: FloatArray, k: int) -> npt.NDArray[np.bool_]:
        confirmed = super()._confirmed(points, k)
        density = None if self.densities is None else self._density(k)
        if density is None or not len(points):
            return confirmed
        score = density.score(points[:, self.view.encode.numbers], _rows(self.view, points))
        dense: npt.NDArray[np.bool_] = confirmed & (score >= density.threshold)
        return dense

    def _density(self, k: int) -> LevelDensity:
        assert self.densities is not None
        found = self.densities[k]
        if isinstance(found, str):
            raise ValueError(
                f"Class {self.view.classes[k]!r} has no density: {found}. Add training points of it, choose another "
                "target, or explain without plausibility."
            )
        return found

    def _before(self, a: FloatArray, b: FloatArray) -> bool:
        """Which of two equally costly changes towards different labels comes first: fewer columns, then in order."""
        changed = [np.flatnonzero(change != 0) for change in (a, b)]
        if len(changed[0]) != len(changed[1]):
            return len(changed[0]) < len(changed[1])
        apart = np.flatnonzero(a != b)
        return bool(len(apart)) and bool(abs(a[apart[0]]) < abs(b[apart[0]]))

    def _projector(self, k: int, guard: float) -> MixedProjector:
        if (k, guard) not in self._projectors:
            assert self.view.latent is not None
            region = self.view.latent(k)
            pieces = [found for piece in region.pieces if (found := raw_piece(piece, self.view.encode)) is not None]
            n = len(self.view.encode.numbers)
            density = Density(np.zeros((0, 0, n)), np.zeros((0, 0)), np.zeros(0), np.zeros(0))
            if self.densities is not None:
                density = self._density(k).tables(n)
            self._projectors[k, guard] = MixedProjector(self.columns, self._tables(pieces, guard), density, guard)
        return self._projectors[k, guard]

    def _tables(self, pieces: list[Piece], guard: float) -> Pieces:
        """Pieces with limits, margin and guard; those in which nobody can be are left out."""
        effects, weight = self.view.encode, self.columns.weight
        n, total = len(effects.numbers), int(effects.start[-1])
        lower, upper = self.limits.lower[effects.numbers], self.limits.upper[effects.numbers]
        lows, highs, allowed, A, E, b, rows = [], [], [], [], [], [], [0]
        for piece in pieces:
            room = guard * np.maximum(np.abs(np.nan_to_num(piece.lower, posinf=0, neginf=0)), 1.0 / weight)
            low = piece.lower + room + self.margin / weight
            room = guard * np.maximum(np.abs(np.nan_to_num(piece.upper, posinf=0, neginf=0)), 1.0 / weight)
            high = piece.upper - room - self.margin / weight
            low, high = np.maximum(low, lower), np.minimum(high, upper)
            if (low > high).any():
                continue
            lows.append(low)
            highs.append(high)
            allowed.append(piece.allowed)
            A.append(piece.A)
            E.append(piece.E)
            b.append(piece.b + self.margin * np.abs(piece.A / weight).max(axis=1, initial=0.0))
            rows.append(rows[-1] + len(piece.b))
        return make_pieces(
            self.columns,
            np.array(lows, dtype=np.float64).reshape(len(lows), n),
            np.array(highs, dtype=np.float64).reshape(len(lows), n),
            np.array(allowed, dtype=bool).reshape(len(lows), total),
            np.array(rows, dtype=np.int64),
            np.vstack([np.zeros((0, n)), *A]),
            np.vstack([np.zeros((0, total)), *E]),
            np.concatenate([np.zeros(0), *b]),
        )


def explainer(
    model: Any,
    X: Any,
    y: Any,
    *,
    cost: Cost | str,
    margin: float,
    actionable: Actionable | None,
    schema: Schema | None,
    max_nodes: int,
    density: HighDensity | None = None,
) -> MixedExplainer:
    """The explainer of a method for a model over levels and steps."""
    if X is None:
        raise ValueError("What the columns of a raw table do is learned from a table: fit(model, X), with a DataFrame.")
    if not (np.isfinite(margin) and margin >= 0):
        raise ValueError(f"margin must be a number >= 0, got {margin}.")
    if max_nodes < 1:
        raise ValueError(f"max_nodes must be at least 1, got {max_nodes}.")
    view = table_view(model, X, schema)
    if len(view.classes) < 2:
        raise ValueError(f"The model knows one label only ({view.classes[0]!r}): there is nothing to change to.")
    view = replace(view, reader=replace(view.reader, schema=weighed(view.schema, cost)))
    allowed = Actionable() if actionable is None else actionable
    densities = None if density is None else level_densities(density, view, X, y)
    limits = allowed.over(view.schema)
    columns = columns_of(limits, view)
    return MixedExplainer(view, Gower(view.schema), allowed, limits, columns, densities, margin, max_nodes)
