"""Perturbations of tables with levels and steps: another level, what rounding has hidden, a count off by one.

Each but :class:`Mixed` acts on one column, an array of shape (n, 1); `Mixed` puts them together for the encoded rows
of a :class:`~evenhand.table.schema.Schema`.  As in :mod:`evenhand.perturbations`, the first rows of a larger table get
the same noise as those of a smaller one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.perturbations.numbers import Gaussian, Neighbor, Perturbation, Relative, learned, perturbed
from evenhand.table.column import Column
from evenhand.table.schema import Schema
from evenhand.types import FloatArray

POWERS = range(6, -7, -1)  # precisions that are looked for, as powers of ten
SHARE = 0.99  # of the values have to be multiples of a precision
NEARLY = 1e-9  # relative to its size, how far off a multiple may be
CLEARLY = 1e-3  # in units of the precision: more is no multiple, and what floats cannot tell better says nothing


@dataclass(frozen=True, eq=False)
class _OfLevels:
    probability: float
    _: KW_ONLY
    levels: int | None = None
    missing: int | None = None

    def __post_init__(self) -> None:
        _check_probability(self.probability)
        if self.levels is not None and (not isinstance(self.levels, Integral) or self.levels < 1):
            raise ValueError(f"levels must be how many levels there are, a whole number >= 1; got {self.levels!r}.")

    def _positions(self, X: FloatArray) -> npt.NDArray[np.intp]:
        name = type(self).__name__
        if self.levels is None:
            raise ValueError(
                f"{name} does not know how many levels there are: use it in Mixed({{column: {name}(...)}}) and bind "
                f"that to a schema, or pass levels=...."
            )
        _check_one_column(X, name)
        found = np.clip(X[:, 0], 0, self.levels - 1).astype(np.intp)
        if not np.array_equal(found, X[:, 0]):
            raise ValueError(f"{name} takes the positions of levels, whole numbers from 0 to {self.levels - 1}.")
        return found


@dataclass(frozen=True, eq=False)
class Categorical(_OfLevels):
    """Another level, drawn in proportion to how often the levels occur in the data.

    Parameters
    ----------
    probability : float
        Of another level. Where no other level occurs in the data, the value stays.
    levels : int, optional
        How many there are; :class:`Mixed` knows.
    missing : int, optional
        Position of the level that stands for a missing value, which is never drawn; :class:`Mixed` knows.
    counts : array of shape (levels,), optional
        How often each level occurs; learned from the data if left out.

    Examples
    --------
    >>> codes = np.array([[0.0], [1.0], [1.0], [3.0]])
    >>> Categorical(1.0, levels=4).fit(codes)(np.zeros((6, 1)), np.random.default_rng(0)).ravel()
    array([1., 1., 3., 3., 3., 1.])
    """

    counts: npt.NDArray[np.int64] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.counts is None:
            return
        counts = np.array(self.counts)
        if counts.ndim != 1 or not np.issubdtype(counts.dtype, np.integer) or (counts < 0).any():
            raise ValueError(f"counts must be one whole number >= 0 per level; got {self.counts!r}.")
        if self.levels is not None and len(counts) != self.levels:
            raise ValueError(f"counts are for {len(counts)} levels; there are {self.levels}.")
        counts = counts.astype(np.int64)
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)

    def fit(self, codes: FloatArray) -> Categorical:
        """The same perturbation with the counts of the levels at the positions `codes`, of shape (n, 1)."""
        if self.counts is not None:
            return self
        codes = np.asarray(codes, dtype=np.float64)
        found = self._positions(codes[np.isfinite(codes).all(axis=-1)])
        return replace(self, counts=np.bincount(found, minlength=self.levels or 0))

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of `X`, or another level in its place."""
        if self.counts is None:
            raise ValueError("Categorical has not seen how often the levels occur: call its fit(codes) first.")
        own = self._positions(X)
        counts = self.counts.copy()
        if self.missing is not None:
            counts[self.missing] = 0
        ends = np.cumsum(counts)
        others = ends[-1] - counts[own]
        chance = rng.random((len(X), 2))
        # People are counted, not shares: in whole numbers, the own level and one without people are never hit.
        place = np.floor(chance[:, 1] * others).astype(np.int64)
        place += np.where(place >= ends[own] - counts[own], counts[own], 0)
        drawn = np.searchsorted(ends, place, side="right")
        moves = (chance[:, 0] < self.probability) & (others > 0)
        return np.where(moves, drawn, own).astype(np.float64)[:, None]


@dataclass(frozen=True, eq=False)
class Ordered(_OfLevels):
    """A neighbouring level, up or down with equal chance.

    Parameters
    ----------
    probability : float
        Of a neighbouring level; the lowest and the highest have one neighbour only, and move there.
    levels : int, optional
        How many there are; :class:`Mixed` knows.
    missing : int, optional
        Position of the level that stands for a missing value: it has no neighbours, and is nobody's;
        :class:`Mixed` knows.

    Examples
    --------
    >>> Ordered(1.0, levels=3)(np.array([[0.0], [1.0], [1.0], [2.0]]), np.random.default_rng(0)).ravel()
    array([1., 0., 2., 1.])
    """

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of `X`, or a neighbouring level in its place."""
        own = self._positions(X)
        ladder = np.array([i for i in range(self.levels or 0) if i != self.missing], dtype=np.intp)
        chance = rng.random((len(X), 2))
        if len(ladder) < 2:
            return X.copy()
        rank = np.searchsorted(ladder, own)
        way = np.where(chance[:, 1] < 0.5, -1, 1)
        way = np.where(rank == 0, 1, np.where(rank == len(ladder) - 1, -1, way))
        moves = (chance[:, 0] < self.probability) & (own != (-1 if self.missing is None else self.missing))
        drawn = ladder[np.where(moves, rank + way, 0)]
        return np.where(moves, drawn, own).astype(np.float64)[:, None]


@dataclass(frozen=True, eq=False)
class Rounding:
    """Any value that rounds to the recorded one: noise that is uniform up to half a step.

    Parameters
    ----------
    step : float, optional
        What values were rounded to multiples of; 0 if they were not.  Learned from the data if left out: the largest
        power of ten, from a million to a millionth, that 99 % of the values are multiples of, up to a relative
        error of 1e-9.  Zeros, multiples of everything, do not count.  Without such a power values are taken to be
        exact, and stay.

    Notes
    -----
    In a column of whole numbers, :class:`Mixed` rounds the result: noise needs a step larger than 1 there, since a
    count that is recorded exactly is exact.

    Examples
    --------
    >>> rounding = Rounding().fit(np.array([[1200.0], [900.0], [3100.0]]))
    >>> rounding
    Rounding(step=100.0)
    >>> moved = rounding(np.full((1000, 1), 900.0), np.random.default_rng(0))
    >>> bool((np.abs(moved - 900.0) <= 50.0).all())
    True
    """

    step: float | None = None

    def __post_init__(self) -> None:
        if self.step is None:
            return
        if not isinstance(self.step, Real) or not (np.isfinite(self.step) and self.step >= 0):
            raise ValueError(f"step must be a number >= 0, or None to learn it; got {self.step!r}.")
        object.__setattr__(self, "step", float(self.step))

    def fit(self, X: FloatArray) -> Rounding:
        """The same perturbation with the precision of the values `X`, of shape (n, 1)."""
        if self.step is not None:
            return self
        X = np.asarray(X, dtype=np.float64)
        _check_one_column(X, "Rounding")
        return replace(self, step=_precision(X[np.isfinite(X)]))

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of `X` plus what rounding may have hidden."""
        if self.step is None:
            raise ValueError("Rounding does not know the step: call its fit(X) with the training data, or pass step=.")
        return X + self.step * (rng.random(X.shape) - 0.5)


@dataclass(frozen=True, eq=False)
class Count:
    """A count that is off by a whole number, equally likely from ``-by`` to ``by``.

    Parameters
    ----------
    by : int
        How far off it can be; 0 is always possible.

    Examples
    --------
    >>> Count(1)(np.full((5, 1), 10.0), np.random.default_rng(0)).ravel()
    array([11., 10., 10.,  9.,  9.])
    """

    by: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.by, bool) or not isinstance(self.by, Integral) or self.by < 0:
            raise ValueError(f"by must be a whole number >= 0, got {self.by!r}.")

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of `X` plus a whole number."""
        return X + rng.integers(-self.by, self.by, size=X.shape, endpoint=True)


@dataclass(frozen=True, eq=False)
class Mixed:
    """For each column of a table a perturbation of its own; works on encoded rows.

    Whole numbers stay whole, numbers stay inside of their column's bounds if they were, and a value that its column
    cannot have stays as it is.  A column's noise does not depend on what happens to the others.

    Parameters
    ----------
    columns : mapping from name to perturbation
        For a number Gaussian, Uniform, Relative, Rounding, Count or any ``(values, rng) -> values`` with values of
        shape (n, 1); for levels Categorical, for ordered ones also Ordered.
    others : perturbation, optional
        For all columns that are not named and that it suits.  The rest stays as it is.
    schema : Schema, optional
        What the columns are; :meth:`bind` sets it.

    Examples
    --------
    >>> schema = Schema({"income": Column("numeric"), "purpose": Column("categorical", levels=["car", "house"])})
    >>> people = np.array([[1200.0, 0.0], [900.0, 1.0]])
    >>> mixed = Mixed({"income": Rounding(), "purpose": Categorical(0.05)}).bind(schema).fit(people)
    >>> mixed.columns["income"]
    Rounding(step=100.0)
    >>> mixed(people, np.random.default_rng(0)).round().tolist()
    [[1249.0, 0.0], [862.0, 1.0]]
    """

    columns: Mapping[str, Perturbation]
    others: Perturbation | None = None
    _: KW_ONLY
    schema: Schema | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping):
            raise TypeError(
                'Mixed takes a perturbation for each column by its name, such as {"income": Gaussian(0.01)}; '
                f"got {type(self.columns).__name__}."
            )
        others = {} if self.others is None else {"others": self.others}
        for name, part in [*self.columns.items(), *others.items()]:
            if not callable(part) or isinstance(part, Mixed | type):
                raise TypeError(
                    f"Mixed needs a perturbation of one column for {name!r}, such as Count(1) or a function "
                    f"(values, rng) -> values; got {part!r}."
                )
        object.__setattr__(self, "columns", dict(self.columns))

    @classmethod
    def default(cls, schema: Schema, probability: float = 0.05, noise: float = 0.1) -> Mixed:
        """Something for every column of a schema, bound to it.

        Numbers get normal noise, counts are off by at most one, ordered levels move to a neighbour, and categories
        and flags to any other level.

        Parameters
        ----------
        schema : Schema
        probability : float
            Of another level.
        noise : float
            Standard deviation of the noise of a number, in units of its spread in the data.

        Examples
        --------
        >>> Mixed.default(Schema({"age": Column("integer"), "sex": Column("categorical", levels=["f", "m"])}))
        Mixed(columns={'age': Count(by=1), 'sex': Categorical(probability=0.05, levels=2, missing=None)}, others=None)
        """
        _check_probability(probability)
        if not (np.isfinite(noise) and noise >= 0):
            raise ValueError(f"noise must be a standard deviation, a number >= 0; got {noise!r}.")
        usual: dict[str, Perturbation] = {
            "numeric": Relative(Gaussian(noise**2)),
            "integer": Count(1),
            "ordered": Ordered(probability),
            "categorical": Categorical(probability),
            "boolean": Categorical(probability),
        }
        return cls({name: usual[column.kind] for name, column in schema.columns.items()}).bind(schema)

    def bind(self, schema: Schema) -> Mixed:
        """The same perturbation for the columns of a schema, after a check that it suits them."""
        strange = [name for name in self.columns if name not in schema.columns]
        if strange:
            raise ValueError(
                f"Mixed perturbs the column {strange[0]!r}, which is not there; "
                f"the columns are {', '.join(map(str, schema.names))}."
            )
        parts: dict[str, Perturbation] = {}
        for name, column in schema.columns.items():
            if name in self.columns:
                part = self.columns[name]
                if not _suits(part, column):
                    raise TypeError(
                        f"{_name(part)} cannot perturb the column {name!r}, which is {column.kind}: "
                        f"use {_possible(column)}."
                    )
                self._check_levels(name, column)
            elif self.others is not None and _suits(self.others, column):
                part = self.others
            else:
                continue
            parts[name] = _at(part, column)
        return replace(self, columns=parts, schema=schema)

    def _check_levels(self, name: str, column: Column) -> None:
        before = None if self.schema is None else self.schema.columns.get(name)
        if before is not None and tuple(before.levels) != tuple(column.levels):
            raise ValueError(
                f"This Mixed is bound to a schema whose column {name!r} has the levels {list(before.levels)}, not "
                f"{list(column.levels)}: what it has learned is about those. Start from one that is not bound."
            )

    def fit(self, codes: FloatArray) -> Mixed:
        """The same perturbation with what its parts learn from their columns of the encoded people `codes`."""
        codes = np.asarray(codes, dtype=np.float64)
        schema = self._bound_to(codes)
        parts = dict(self.columns)
        for j, name in enumerate(schema.names):
            if name in parts:
                known = codes[np.isfinite(codes[:, j]), j][:, None]
                parts[name] = learned(parts[name], known) if len(known) else parts[name]
        # The same object says that there was nothing to learn: then even a table of one person will do.
        return self if all(parts[name] is self.columns[name] for name in parts) else replace(self, columns=parts)

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Every row of `X`, perturbed column by column."""
        schema = self._bound_to(X)
        moved = np.array(X, dtype=np.float64)
        # A stream for every column, perturbed or not: its noise depends neither on the number of rows nor on the parts.
        seeds = rng.integers(2**64, size=len(schema), dtype=np.uint64)
        for j, (name, column) in enumerate(schema.columns.items()):
            known = np.isfinite(moved[:, j])
            if name in self.columns and known.any():
                own = moved[known, j][:, None]
                stream = np.random.Generator(np.random.SFC64(int(seeds[j])))
                found = perturbed(self.columns[name], own.copy(), stream)
                moved[known, j] = (_kept(found, own, column) if column.is_number else found)[:, 0]
        return moved

    def _bound_to(self, X: FloatArray) -> Schema:
        if self.schema is None:
            raise ValueError("Mixed does not know what the columns are: call its bind(schema) first.")
        if np.ndim(X) != 2 or np.shape(X)[1] != len(self.schema):
            raise ValueError(
                f"Mixed is for encoded rows of {len(self.schema)} columns; got an array of shape {np.shape(X)}."
            )
        return self.schema


def bound(perturbation: Any, schema: Schema, names: tuple[str, ...] | None = None) -> Perturbation:
    """The perturbation for encoded rows of a schema; one of whole rows is refused if there are levels.

    `names` are those of the model's columns, if it has any: a reference follows them.

    Examples
    --------
    >>> bound(Count(1), Schema({"children": Column("integer")}))
    Count(by=1)
    >>> bound(Count(1), Schema({"children": Column("integer"), "owner": Column("boolean")}))
    Traceback (most recent call last):
        ...
    TypeError: Count perturbs whole rows, which cannot be done to levels, and these columns have levels: owner.
    Perturb each column by itself: Mixed({'children': Count(...), 'owner': Categorical(0.05)}), or
    Mixed.default(schema).
    """
    if hasattr(perturbation, "bind"):
        found: Perturbation = perturbation.bind(schema)
        return found
    levels = [name for name, column in schema.columns.items() if not column.is_number]
    if levels:
        numbers = [name for name, column in schema.columns.items() if _suits(perturbation, column) and column.is_number]
        own = _name(perturbation) + ("" if hasattr(perturbation, "__name__") else "(...)")
        example = [f"{name!r}: {own}" for name in numbers[:1]]
        usual = "Ordered(0.05)" if schema[levels[0]].kind == "ordered" else "Categorical(0.05)"
        example.append(f"{levels[0]!r}: {usual}")
        raise TypeError(
            f"{_name(perturbation)} perturbs whole rows, which cannot be done to levels, and these columns have "
            f"levels: {', '.join(map(str, levels))}. Perturb each column by itself: Mixed({{{', '.join(example)}}}), "
            "or Mixed.default(schema)."
        )
    ordered: Perturbation = perturbation
    if names is not None and isinstance(perturbation, Neighbor):
        ordered = perturbation.in_order(names)
    return ordered


def _suits(part: Perturbation, column: Column) -> bool:
    if isinstance(part, Ordered):
        return column.kind == "ordered"
    return column.is_number != isinstance(part, _OfLevels)


def _possible(column: Column) -> str:
    if column.is_number:
        return "Gaussian, Uniform, Relative, Rounding, Count or a function (values, rng) -> values"
    neighbour = "Ordered(probability) or " if column.kind == "ordered" else ""
    return f"{neighbour}Categorical(probability)"


def _at(part: Perturbation, column: Column) -> Perturbation:
    """The part with what it has to know about its column."""
    if not isinstance(part, _OfLevels):
        return part
    missing = [i for i, level in enumerate(column.levels) if level is None]
    return replace(part, levels=len(column.levels), missing=missing[0] if missing else None)


def _kept(moved: FloatArray, own: FloatArray, column: Column) -> FloatArray:
    """Whole numbers whole, and inside of the bounds who was inside."""
    low, high = (None, None) if column.bounds is None else column.bounds
    lower, upper = -np.inf if low is None else low, np.inf if high is None else high
    if column.kind == "integer":
        moved = np.rint(moved) + 0.0  # -0.0 would be another person, bit for bit
        lower, upper = np.ceil(lower), np.floor(upper)
    inside = (own >= lower) & (own <= upper)
    return np.where(inside, np.clip(moved, lower, upper), moved)


def _precision(values: FloatArray) -> float:
    """The largest power of ten that nearly all values are multiples of, 0 if there is none."""
    size = np.abs(values[values != 0])
    for power in POWERS if len(size) else ():
        step = 10.0**power
        ratio = size / step
        error = np.abs(ratio - np.rint(ratio))
        # A large number in small units is always near a whole one: neither that nor what floats leave out is evidence.
        multiple = (error <= np.minimum(NEARLY * ratio, CLEARLY)) & (np.spacing(ratio) <= CLEARLY)
        if np.mean(multiple) >= SHARE:
            return step
    return 0.0


def _name(perturbation: Any) -> str:
    return str(getattr(perturbation, "__name__", type(perturbation).__name__))


def _check_probability(probability: Any) -> None:
    if isinstance(probability, bool) or not isinstance(probability, Real) or not 0 <= float(probability) <= 1:
        raise ValueError(f"probability must be a number from 0 to 1, got {probability!r}.")


def _check_one_column(X: FloatArray, name: str) -> None:
    if X.ndim != 2 or X.shape[1] != 1:
        raise ValueError(f"{name} is for one column, an array of shape (n, 1); got {X.shape}. Mixed is for several.")
