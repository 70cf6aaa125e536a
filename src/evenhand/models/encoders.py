"""Pipelines with encoders, seen from raw tables: what every level and every number adds to the model's last step.

Encoders are not read but asked: one row per level goes through the user's own pipeline.  So dropped, infrequent and
unknown levels are what the pipeline makes of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, TargetEncoder

from evenhand.models.affine import SUPPORTED_STEPS, affine
from evenhand.models.base import ModelView, Predictor, check_fitted, view
from evenhand.sets import ConvexSet
from evenhand.table.codec import UNKNOWN
from evenhand.table.column import Column
from evenhand.table.schema import Schema, as_frame
from evenhand.types import FloatArray

NAMING = (OneHotEncoder, OrdinalEncoder, TargetEncoder)
ENCODERS = (*NAMING, KBinsDiscretizer, SimpleImputer)
ENCODER_TYPES = OneHotEncoder | OrdinalEncoder | TargetEncoder | KBinsDiscretizer | SimpleImputer
CHECKED = 500  # people on whom it is checked that columns add up
CLOSE = 1e-8


@dataclass(frozen=True, eq=False)
class Effects:
    """What is added up in front of the model's last step: ``offset + matrix @ numbers + sum of levels[position]``.

    Attributes
    ----------
    numbers, categories : arrays of int
        Positions in the schema of the plain numbers, and of the columns with levels; a binned number is one of these.
    start : array of int
        Where the levels of each category begin, and where the last ones end.
    offset, matrix, levels : arrays of shape (k,), (k, numbers), (levels, k)
        The first level of each category adds nothing.
    seen : array of shape (levels, k)
        A row's whole image with that level: where a coordinate depends on this category only, it is exact.
    known : array of bool, shape (levels,)
        Whether the encoder accepts the level at all.
    bins : mapping from category to edges
        For a binned number.
    """

    numbers: npt.NDArray[np.intp]
    categories: npt.NDArray[np.intp]
    start: npt.NDArray[np.int64]
    offset: FloatArray
    matrix: FloatArray
    levels: FloatArray
    seen: FloatArray
    known: npt.NDArray[np.bool_]
    bins: dict[int, FloatArray]

    def __call__(self, codes: FloatArray) -> FloatArray:
        """The image of encoded people."""
        found = self.offset + codes[:, self.numbers] @ self.matrix.T
        for b, j in enumerate(self.categories):
            found = found + self.levels[self.start[b] + self.position(b, codes[:, j])]
        return np.asarray(found)

    def position(self, b: int, values: FloatArray) -> npt.NDArray[np.int64]:
        """Levels of the b-th category: codes as they are, numbers by their bin."""
        if b not in self.bins:
            return values.astype(np.int64)
        return np.searchsorted(self.bins[b][1:-1], values, side="right").astype(np.int64)


@dataclass(frozen=True, eq=False)
class MixedView(Predictor):
    """A fitted pipeline over a table with levels and steps, seen from encoded rows (:meth:`Schema.encode`).

    Attributes
    ----------
    model : estimator
        The user's own pipeline; :meth:`predict` asks it and nobody else.
    schema : Schema
        The columns.
    last : ModelView
        Its last step, as a function from labels to regions.
    effects : Effects
        From encoded rows to the space of the last step.
    fill : array of shape (n_features,)
        The number that the pipeline takes for a missing one; NaN where it takes none.
    like : DataFrame
        No rows; the types of the columns that the pipeline was shown.
    gaps : mapping from column to object
        What it was shown in place of a missing level.
    """

    model: Any
    classes: npt.NDArray[Any]
    schema: Schema
    last: ModelView
    effects: Effects
    fill: FloatArray
    like: pd.DataFrame
    gaps: dict[str, Any]
    feature_names: tuple[str, ...] | None = field(default=None)

    @property
    def n_features(self) -> int:
        """Number of raw input columns."""
        return len(self.schema)

    def columns(self, X: Any) -> Any:
        """`X` with its columns in the schema's order."""
        frame = as_frame(X)
        self.schema.check(frame)
        return frame[list(self.schema.names)]

    def read(self, X: Any) -> FloatArray:
        """Encoded people; what the pipeline could not even transform is infinite."""
        codes = self.schema.encode(self.columns(X), self.fill)
        for b, j in enumerate(self.effects.categories):
            if b not in self.effects.bins:
                known = self.effects.known[self.effects.start[b] : self.effects.start[b + 1]]
                if not known.all():
                    there = np.isfinite(codes[:, j])
                    codes[there, j] = np.where(known[codes[there, j].astype(np.intp)], codes[there, j], UNKNOWN)
        return codes

    def table(self, X: FloatArray) -> pd.DataFrame:
        """Encoded people as the table that the pipeline was shown."""
        return _shown(self.schema, X, self.like, self.gaps)

    def change(self, x: FloatArray, cf: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """What people are told, and which columns change: a difference of numbers, a new level or -1 for the same."""
        number = self.schema.number
        told = np.where(number, cf - x, np.where(cf == x, -1.0, cf))
        changed = np.where(number, np.abs(cf - x) > 1e-9 * np.maximum(np.abs(x), np.abs(cf)), cf != x)
        return told, changed

    def complaint(self, row: pd.Series[Any]) -> str:
        """Why a person cannot be explained."""
        found = self.schema.complaint(row)
        if found:
            return found
        for b, j in enumerate(self.effects.categories):
            name = self.schema.names[j]
            column = self.schema[name]
            if not column.is_number and not self.effects.known[self.effects.start[b] + column.position(row[name])]:
                return f"{name} is {row[name]!r}, a level that the model's encoder has never seen."
        return ""


def _fits(values: pd.Series[Any], dtype: Any) -> bool:
    """Whether values can have the type that the pipeline was shown: a fraction cannot be an integer."""
    if pd.api.types.is_integer_dtype(dtype) and not pd.api.types.is_extension_array_dtype(dtype):
        return bool((values == np.round(values)).all()) if pd.api.types.is_numeric_dtype(values.dtype) else False
    return True


def has_encoders(model: Any) -> bool:
    """Whether a model takes raw tables apart before it looks at numbers."""
    return any(isinstance(step, ENCODERS) for step in _all_steps(_inside(model)))


def refuse_levels(what: str) -> TypeError:
    """Why something is not there for tables with levels or steps, and what is."""
    return TypeError(
        f"{what} needs a table of numbers: it is not there for models that take raw tables with levels or steps. "
        "Measure those with instability(), and explain them with Closest or Plausible."
    )


def mixed_view(model: Any, X: Any, schema: Schema | None = None) -> MixedView:
    """A fitted pipeline with encoders as regions over levels and numbers.

    Parameters
    ----------
    model : fitted classifier, Pipeline or search
        Whose last step has a region (see :func:`view`).
    X : DataFrame
        People like those that the model was fitted on: what columns look like is learned from them.
    schema : Schema, optional
        What the columns are; inferred from `X` if left out.
    """
    inside = _inside(model)
    check_fitted(inside)
    steps = [step for _, step in inside.steps] if isinstance(inside, Pipeline) else [inside]
    last = view(steps[-1])
    for step in steps[:-1]:
        _check_step(step)
    frame = as_frame(X)
    fitted_with = getattr(inside, "feature_names_in_", None)
    if fitted_with is not None:
        lost = [name for name in fitted_with if name not in frame.columns]
        if lost:
            raise ValueError(f"The table has no column {lost[0]!r}, with which the model was fitted.")
        frame = frame[list(fitted_with)]
    first = _first_encoders(steps[0] if len(steps) > 1 else None, list(frame.columns))
    if schema is None:
        named = [n for n, (step, _, _) in first.items() if isinstance(step, NAMING) and _is_number(frame[n])]
        schema = Schema.infer(frame, levels=[n for n in named if not set(frame[n].dropna().unique()) <= {0, 1}])
    else:
        absent = [name for name in schema.names if name not in frame.columns]
        if absent:
            raise ValueError(
                f"The schema names the column {absent[0]!r}, which the table does not have; it has "
                f"{', '.join(map(str, frame.columns))}."
            )
        schema.check(frame)
        schema = Schema({name: schema[name] for name in frame.columns})
    if not len(frame):
        raise ValueError("The table has no rows: what columns do cannot be learned from it.")
    fill = np.array([_filled(first.get(name)) for name in schema.names])

    def image(table: pd.DataFrame) -> FloatArray:
        values: Any = inside[:-1].transform(table) if len(steps) > 1 else table
        values = values.toarray() if hasattr(values, "toarray") else values
        return np.asarray(last.encode(np.asarray(values, dtype=np.float64)))

    gaps = {name: _gap(frame[name]) for name, column in schema.columns.items() if None in column.levels}
    effects = _learned(image, schema, frame, fill, first, gaps)
    return MixedView(model, last.classes, schema, last, effects, fill, frame.iloc[:0], gaps, schema.names)


def _gap(values: pd.Series[Any]) -> Any:
    """How a column of objects says that nothing is known; NaN for other types."""
    missing = values[values.isna()]
    return missing.iloc[0] if values.dtype == object and len(missing) else np.nan


def _inside(model: Any) -> Any:
    """The pipeline inside of a parameter search, one pipeline instead of nested ones at its end."""
    while isinstance(model, BaseSearchCV):
        check_fitted(model)
        model = model.best_estimator_
    if isinstance(model, Pipeline) and isinstance(model.steps[-1][1], Pipeline | BaseSearchCV):
        tail = _inside(model.steps[-1][1])
        more = [(f"last_{name}", step) for name, step in tail.steps] if isinstance(tail, Pipeline) else [("last", tail)]
        return Pipeline([*model.steps[:-1], *more])
    return model


def _all_steps(step: Any) -> Iterator[Any]:
    if isinstance(step, Pipeline):
        children: Sequence[Any] = [child for _, child in step.steps]
    elif isinstance(step, ColumnTransformer):
        children = [child for _, child, _ in getattr(step, "transformers_", step.transformers)]
    elif isinstance(step, FeatureUnion):
        children = [child for _, child in step.transformer_list]
    else:
        yield step
        return
    for child in children:
        yield from _all_steps(child)


def _check_step(step: Any) -> None:
    for part in _all_steps(step):
        if part is None or isinstance(part, str | ENCODER_TYPES):
            continue
        try:
            affine(part, int(getattr(part, "n_features_in_", 0)))
        except TypeError as error:
            names = ", ".join(kind.__name__ for kind in ENCODERS)
            raise TypeError(
                f"{type(part).__name__} is not understood: neither an affine map nor an encoder that evenhand can ask. "
                f"Understood are {names}; {SUPPORTED_STEPS}. For other pipelines use Penalized(...) or External(...)."
            ) from error


def _first_encoders(step: Any, names: list[str]) -> dict[str, tuple[Any, int, Any]]:
    """Per raw column the first encoder that it meets, its place in it, and the imputer in front of it."""
    found: dict[str, tuple[Any, int, Any]] = {}
    if isinstance(step, ColumnTransformer):
        for name, child, _ in step.transformers_:
            picked = step._transformer_to_input_indices[name]
            if len(picked) and not (isinstance(child, str) and child == "drop"):
                _note_encoder(child, [names[int(i)] for i in picked], found)
    elif isinstance(step, Pipeline) and isinstance(step.steps[0][1], ColumnTransformer):
        return _first_encoders(step.steps[0][1], names)
    elif step is not None:
        _note_encoder(step, names, found)
    return found


def _note_encoder(child: Any, columns: list[str], found: dict[str, tuple[Any, int, Any]]) -> None:
    chain = [step for _, step in child.steps] if isinstance(child, Pipeline) else [child]
    imputer = chain[0] if isinstance(chain[0], SimpleImputer) else None
    rest = chain[1:] if imputer is not None else chain
    encoder = rest[0] if rest and isinstance(rest[0], ENCODERS) else None
    for i, column in enumerate(columns):
        if column not in found:
            found[column] = (encoder, i, imputer)


def _filled(entry: tuple[Any, int, Any] | None) -> float:
    """The number that stands for a missing one."""
    if entry is None or entry[2] is None or entry[2].add_indicator or len(entry[2].statistics_) <= entry[1]:
        return np.nan
    value = entry[2].statistics_[entry[1]]
    return float(value) if isinstance(value, int | float | np.number) and np.isfinite(float(value)) else np.nan


def _is_number(values: pd.Series[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype)


def _learned(
    image: Any,
    schema: Schema,
    frame: pd.DataFrame,
    fill: FloatArray,
    first: dict[str, Any],
    gaps: dict[str, Any],
) -> Effects:
    """Ask the pipeline what each level and each number does, and check that it adds up."""
    codes = schema.encode(frame, fill)
    usable = np.flatnonzero(np.isfinite(codes).all(axis=1))
    if not len(usable):
        raise ValueError(f"No row of the table can be read: {schema.complaint(frame.iloc[0])}")
    like = frame.iloc[:0]
    home = codes[usable[0]]

    def seen(rows: FloatArray) -> FloatArray:
        found: FloatArray = image(_shown(schema, rows, like, gaps))
        if not np.isfinite(found).all():
            raise ValueError("The pipeline turns a person of the table into NaN or infinity; impute missing values.")
        return found

    base = seen(home[None])[0]
    binned = {
        name: np.asarray(step.bin_edges_[i], dtype=np.float64)
        for name, (step, i, _) in first.items()
        if isinstance(step, KBinsDiscretizer) and schema[name].is_number
    }
    numbers = [j for j, (name, c) in enumerate(schema.columns.items()) if c.is_number and name not in binned]
    categories = [j for j in range(len(schema)) if j not in numbers]
    matrix = np.zeros((len(base), len(numbers)))
    for i, j in enumerate(numbers):
        matrix[:, i] = _slope(seen, home, j, codes[usable, j], schema)
    start, levels, images, known, bins = [0], [], [], [], {}
    for b, j in enumerate(categories):
        name = schema.names[j]
        column = schema[name]
        if name in binned:
            bins[b] = edges = binned[name]
            values = _inside_bins(edges, column)
            accepted = np.isfinite(values)
        else:
            values = np.arange(len(column.levels), dtype=np.float64)
            accepted = _accepted(seen, home, j, len(values))
        rows = np.repeat(home[None], len(values), axis=0)
        rows[accepted, j] = values[accepted]
        if not accepted.any():
            raise ValueError(f"The model's encoder accepts none of the levels of {name!r}: {list(column.levels)}.")
        found = seen(rows)
        images.append(found)
        levels.append(found - found[int(np.argmax(accepted))])
        known.append(accepted)
        start.append(start[-1] + len(values))
    k = len(base)
    effects = Effects(
        np.array(numbers, dtype=np.intp),
        np.array(categories, dtype=np.intp),
        np.array(start, dtype=np.int64),
        np.zeros(k),
        matrix,
        np.vstack([np.zeros((0, k)), *levels]),
        np.vstack([np.zeros((0, k)), *images]),
        np.concatenate([np.zeros(0, dtype=bool), *known]),
        bins,
    )
    effects.offset[:] = base - effects(home[None])[0]
    _check_sum(effects, seen, codes[usable], schema)
    return effects


def _shown(schema: Schema, rows: FloatArray, like: pd.DataFrame, gaps: dict[str, Any]) -> pd.DataFrame:
    """Encoded people as the pipeline was shown them; words stay plain objects, which encoders read fastest."""
    frame = schema.decode(rows, gaps=gaps)
    words = {name for name, column in schema.columns.items() if any(isinstance(level, str) for level in column.levels)}
    wanted = {n: d for n, d in like.dtypes.items() if n not in words and frame[n].dtype != d and _fits(frame[n], d)}
    return frame.astype(wanted) if wanted else frame


def _slope(seen: Any, home: FloatArray, j: int, values: FloatArray, schema: Schema) -> FloatArray:
    """How the image moves with a number; refuses one that does not move it evenly."""
    low, high = float(values.min()), float(values.max())
    if not high > low:
        high = low + max(1.0, abs(low))
    middle = low + (high - low) / 3
    if schema[schema.names[j]].kind == "integer":
        middle = float(np.round(middle))
    rows = np.repeat(home[None], 3, axis=0)
    rows[:, j] = low, high, middle
    at_low, at_high, at_middle = seen(rows)
    slope = (at_high - at_low) / (high - low)
    size = max(float(np.abs(at_high).max()), float(np.abs(at_low).max()), 1.0)
    if np.abs(at_low + slope * (middle - low) - at_middle).max() > CLOSE * size:
        raise ValueError(
            f"Column {schema.names[j]!r} does not act linearly on the model's last step. If its numbers are names, "
            "make it levels, Column('categorical', levels=...); a KBinsDiscretizer has to be its first step."
        )
    return np.asarray(slope)


def _accepted(seen: Any, home: FloatArray, j: int, count: int) -> npt.NDArray[np.bool_]:
    """Which levels the pipeline transforms; encoders may refuse those that they have not seen."""
    rows = np.repeat(home[None], count, axis=0)
    rows[:, j] = np.arange(count)
    try:
        seen(rows)
    except ValueError:
        return np.array([_passes(seen, row) for row in rows])
    return np.ones(count, dtype=bool)


def _passes(seen: Any, row: FloatArray) -> bool:
    try:
        seen(row[None])
    except ValueError:
        return False
    return True


def _inside_bins(edges: FloatArray, column: Column) -> FloatArray:
    """A value inside of each bin; NaN where no whole number is."""
    low, high = edges[:-1], edges[1:]
    if column.kind != "integer":
        return (low + high) / 2
    value = np.ceil(low)
    return np.where((value < high) | (value == edges[-1]), value, np.nan)


def _check_sum(effects: Effects, seen: Any, codes: FloatArray, schema: Schema) -> None:
    """What was learned column by column has to hold for whole people."""
    some = codes[np.linspace(0, len(codes) - 1, min(len(codes), CHECKED)).astype(np.intp)]
    truth = seen(some)
    off = np.abs(effects(some) - truth) > CLOSE * np.maximum(1.0, np.abs(truth).max())
    if off.any():
        row = int(np.flatnonzero(off.any(axis=1))[0])
        raise ValueError(
            f"The pipeline does not add up over columns: {int(off.any(axis=1).sum())} of {len(some)} people differ "
            f"from the sum of their columns, the first is {dict(zip(schema.names, some[row].tolist(), strict=True))}. "
            "Interactions between columns are not understood; use Penalized(...) or External(...)."
        )


@dataclass(frozen=True, eq=False)
class Piece:
    """A piece of a label in raw columns: intervals, levels, and rows ``A x + sum of E[level] >= b``."""

    lower: FloatArray
    upper: FloatArray
    allowed: npt.NDArray[np.bool_]
    A: FloatArray
    E: FloatArray
    b: FloatArray


def raw_piece(piece: ConvexSet, effects: Effects) -> Piece | None:
    """What a convex set in the space of the last step asks of raw columns; None if nobody can be there.

    A side of the box that depends on one number is an interval, on one category a set of levels, on more a row.
    """
    k, n = effects.matrix.shape
    lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
    allowed = effects.known.copy()
    G, h = piece.halfspaces
    low, high = piece.box
    moves = np.array([_varies(effects, b) for b in range(len(effects.categories))]).reshape(-1, k)
    joint_low, joint_high = np.isfinite(low), np.isfinite(high)
    if (low == np.inf).any() or (high == -np.inf).any():
        return None
    for i in range(k):
        by_number, by_level = np.flatnonzero(effects.matrix[i]), np.flatnonzero(moves[:, i])
        if len(by_number) + len(by_level) > 1:
            continue
        joint_low[i] = joint_high[i] = False
        if len(by_number):
            j = int(by_number[0])
            slope = effects.matrix[i, j]
            sides = sorted(((low[i] - effects.offset[i]) / slope, (high[i] - effects.offset[i]) / slope))
            lower[j], upper[j] = max(lower[j], sides[0]), min(upper[j], sides[1])
        elif len(by_level):
            part = slice(effects.start[by_level[0]], effects.start[by_level[0] + 1])
            allowed[part] &= (effects.seen[part, i] >= low[i]) & (effects.seen[part, i] <= high[i])
        elif not low[i] <= effects.offset[i] <= high[i]:
            return None
    one = np.eye(k)
    G = np.vstack([G, one[joint_high], -one[joint_low]])
    h = np.concatenate([h, high[joint_high], -low[joint_low]])
    if (lower > upper).any():
        return None
    # G (offset + M x + levels) <= h
    return Piece(lower, upper, allowed, -(G @ effects.matrix), -(G @ effects.levels.T), G @ effects.offset - h)


def _varies(effects: Effects, b: int) -> npt.NDArray[np.bool_]:
    part = slice(effects.start[b], effects.start[b + 1])
    known = effects.levels[part][effects.known[part]]
    return np.asarray((known != known[0]).any(axis=0))
