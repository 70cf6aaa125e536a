"""Costs by their names, and for a given table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from evenhand.costs.gower import Gower
from evenhand.costs.norm import L1, L2
from evenhand.registering import check_free
from evenhand.table.column import Column
from evenhand.table.schema import Schema
from evenhand.types import FloatArray

Norm: TypeAlias = L1 | L2
Cost: TypeAlias = Norm | Gower
Distance: TypeAlias = Callable[[npt.ArrayLike, npt.ArrayLike], FloatArray]
Recipe = Callable[[Schema], Cost]
F = TypeVar("F", bound=Recipe)


COSTS: dict[str, Recipe] = {}


def named_cost(name: str) -> Callable[[F], F]:
    """Make a cost known by its name, wherever one can be named: in methods, study files and audit files.

    The function gets the schema of the table and returns L1(...), L2(...) or, for a sum over columns with prices of
    its own, Gower(schema.with_columns(...)).

    Examples
    --------
    >>> @named_cost("every column alike")
    ... def alike(schema):
    ...     return Gower(schema.weighted(dict.fromkeys(schema.names, 1.0)))
    >>> del COSTS["every column alike"]
    """

    def register(recipe: F) -> F:
        instead = 'choose another name with @named_cost("..."), or remove that one from COSTS first.'
        check_free("cost", name, recipe, COSTS.get(name), instead)
        COSTS[name] = recipe
        return recipe

    return register


@named_cost("l1")
def _l1(schema: Schema) -> Cost:
    if not schema.continuous:
        return Gower(schema)
    return L1() if schema.unweighted else L1(weights=_units(schema))


@named_cost("l2")
def _l2(schema: Schema) -> Cost:
    return L2() if schema.unweighted else L2(weights=_units(schema) ** 2)


def _units(schema: Schema) -> FloatArray:
    return np.array([column.weight for column in schema.columns.values()], dtype=np.float64)


def as_cost(cost: Cost | str) -> Any:
    """The norm that a string or a cost object stands for, in a table of plain numbers."""
    if isinstance(cost, str) or not callable(getattr(cost, "price", None)):
        return _norm(cost, "cost", f"a cost is {_choices()}, L1(...), L2(...) or Gower(schema)")
    return cost


def as_distance(distance: Distance | str) -> Distance:
    """The distance that a string or any callable ``(A, B) -> (n,)`` stands for."""
    if callable(distance):
        return distance
    norm: Distance = _norm(distance, "distance", 'use "l1", "l2", L1(...), L2(...) or any function (A, B) -> (n,)')
    return norm


def cost_for(cost: Cost | str, schema: Schema, columns: Sequence[str] | None = None) -> Any:
    """What a cost is in a table: one that is no good for it fails here, and not in the middle of a search.

    A cost that is named is in the units of the schema, one that is given is as it is given.  If both its weights (a
    pandas Series) and the columns have names, the weights follow the names.

    Parameters
    ----------
    cost : str, L1, L2 or Gower
        A name is looked up among the costs that are known (:func:`named_cost`).
    schema : Schema
        Of the table.
    columns : sequence of str, optional
        Names of its columns, if it has names.
    """
    chosen = COSTS[cost](schema) if isinstance(cost, str) and cost in COSTS else as_cost(cost)
    if isinstance(chosen, Gower):
        chosen = Gower(_following(chosen.schema, schema))
    if not schema.continuous:
        return Gower(weighed(schema, chosen)) if isinstance(chosen, L1 | L2) else chosen
    return L1(weights=_units(chosen.schema)) if isinstance(chosen, Gower) else fitting(chosen, len(schema), columns)


def _following(given: Schema, schema: Schema) -> Schema:
    """The columns of a cost in the order of a table, whose columns they must be."""
    if set(given.names) == set(schema.names):
        given = Schema({name: _counted(given[name], column) for name, column in schema.columns.items()})
    if given.names != schema.names or any(given[name].kind != schema[name].kind for name in schema.names):
        raise ValueError(
            f"The cost is for other columns than the table has: {', '.join(map(str, given.names))} against "
            f"{', '.join(map(str, schema.names))}. Make it from the table's own schema: Gower(schema)."
        )
    return given


def _counted(given: Column, column: Column) -> Column:
    """What a cost says of a column; of a number that can only be one of the model's codes, what it says of these."""
    numbers = all(isinstance(level, int | float | np.number) for level in column.levels if level is not None)
    return given.over(column.levels) if given.is_number and not column.is_number and numbers else given


def fitting(cost: Cost | str, dim: int, columns: Sequence[str] | None = None) -> Any:
    """A norm for tables of `dim` columns of numbers; its weights follow the names of the columns."""
    norm = as_cost(cost)
    if columns is not None and norm.names is not None and tuple(columns) != norm.names:
        strange = [name for name in norm.names if name not in columns] + [c for c in columns if c not in norm.names]
        if strange:
            raise ValueError(
                f"The cost's weights and the model's columns have different names, such as {strange[0]!r}. "
                "Give one weight per column, or an array in the model's order."
            )
        order = [norm.names.index(name) for name in columns]
        if isinstance(norm, L2) and norm.matrix is not None:
            norm = L2(matrix=norm.matrix[np.ix_(order, order)])
        elif norm.weights is not None:
            norm = type(norm)(weights=norm.weights[order])
    norm.frame(dim, np.arange(dim))
    return norm


def weighed(schema: Schema, cost: Cost | str) -> Schema:
    """The schema in the units of a cost."""
    if cost == "l1":
        return schema
    norm = as_cost(cost)
    if isinstance(norm, Gower):
        return norm.schema
    if not isinstance(norm, L1):
        steps = [str(name) for name, column in schema.columns.items() if column.step or not column.is_number]
        raise ValueError(
            'With levels and steps the cost is a sum over columns: cost="l1" with the weights of the schema, or '
            f"L1(weights=...); got {cost!r}, and {steps[0] if steps else 'the table'} is such a column. If all columns "
            "may take any value, pass schema=Schema.numbers(X)."
        )
    if norm.weights is None:
        return schema.weighted(dict.fromkeys(schema.names, 1.0))
    if norm.names is None and len(norm.weights) != len(schema):
        raise ValueError(f"The cost has {len(norm.weights)} weights, the table has {len(schema)} columns.")
    names = schema.names if norm.names is None else norm.names
    strange = [name for name in names if name not in schema.columns]
    if strange:
        raise ValueError(f"The cost has a weight for {strange[0]!r}, which is not a column of the table.")
    return schema.weighted(dict(zip(names, norm.weights.tolist(), strict=True)))


def _choices() -> str:
    return ", ".join(f'"{name}"' for name in COSTS)


def _norm(name: object, what: str, choices: str) -> Any:
    if name == "l1":
        return L1()
    if name == "l2":
        return L2()
    near = get_close_matches(str(name), COSTS, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{name!r} is not a known {what}: {choices}.{hint}")
