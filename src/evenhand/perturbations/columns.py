"""Perturbations of whole tables with levels and steps, put together from those of single columns.

Each part acts on one column, an array of shape (n, 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np

from evenhand.perturbations.base import Perturbation, check_probability, learned, name_of, perturbed
from evenhand.perturbations.levels import Categorical, Ordered
from evenhand.perturbations.numbers import Gaussian, Relative
from evenhand.perturbations.records import Count
from evenhand.perturbations.records import Rounding as Rounding  # pickles name it here
from evenhand.perturbations.registry import PERTURBATIONS, register, suits
from evenhand.table.column import Column
from evenhand.table.schema import Schema
from evenhand.types import FloatArray


@register
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

    suits: ClassVar[tuple[str, ...]] = ()

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
        check_probability(probability)
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
                if not suits(part, column):
                    raise TypeError(
                        f"{name_of(part)} cannot perturb the column {name!r}, which is {column.kind}: "
                        f"use {_possible(column)}."
                    )
                self._check_levels(name, column)
            elif self.others is not None and suits(self.others, column):
                part = self.others
            else:
                continue
            parts[name] = part.for_column(column) if hasattr(part, "for_column") else part
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
                before = moved[known, j][:, None]
                stream = np.random.Generator(np.random.SFC64(int(seeds[j])))
                after = perturbed(self.columns[name], before.copy(), stream)
                moved[known, j] = (_kept(after, before, column) if column.is_number else after)[:, 0]
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
        for_schema: Perturbation = perturbation.bind(schema)
        return for_schema
    levels = [name for name, column in schema.columns.items() if not column.is_number]
    if levels:
        numbers = [name for name, column in schema.columns.items() if suits(perturbation, column) and column.is_number]
        call = name_of(perturbation) + ("" if hasattr(perturbation, "__name__") else "(...)")
        example = [f"{name!r}: {call}" for name in numbers[:1]]
        usual = "Ordered(0.05)" if schema[levels[0]].kind == "ordered" else "Categorical(0.05)"
        example.append(f"{levels[0]!r}: {usual}")
        raise TypeError(
            f"{name_of(perturbation)} perturbs whole rows, which cannot be done to levels, and these columns have "
            f"levels: {', '.join(map(str, levels))}. Perturb each column by itself: Mixed({{{', '.join(example)}}}), "
            "or Mixed.default(schema)."
        )
    ordered: Perturbation = perturbation
    if names is not None and hasattr(perturbation, "in_order"):
        ordered = perturbation.in_order(names)
    return ordered


def _possible(column: Column) -> str:
    """The perturbations that say of themselves that they are for this kind of column."""
    classes = [cls for cls in PERTURBATIONS.values() if column.kind in getattr(cls, "suits", ())]
    if column.is_number:
        return ", ".join(cls.__name__ for cls in classes) + " or a function (values, rng) -> values"
    return " or ".join(f"{cls.__name__}({fields(cls)[0].name})" for cls in classes)


def _kept(moved: FloatArray, before: FloatArray, column: Column) -> FloatArray:
    """Whole numbers whole, and inside of the bounds who was inside."""
    low, high = (None, None) if column.bounds is None else column.bounds
    lower, upper = -np.inf if low is None else low, np.inf if high is None else high
    if column.kind == "integer":
        moved = np.rint(moved) + 0.0  # -0.0 would be another person, bit for bit
        lower, upper = np.ceil(lower), np.floor(upper)
    inside = (before >= lower) & (before <= upper)
    return np.where(inside, np.clip(moved, lower, upper), moved)
