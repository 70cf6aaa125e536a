"""The cost of a change in a table with levels and steps: a sum over columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from evenhand.table.schema import Schema
from evenhand.types import FloatArray


@dataclass(frozen=True, eq=False)
class Gower:
    """How far two people are apart, in the units of a schema; works on encoded rows.

    Examples
    --------
    >>> from evenhand.table.column import Column
    >>> schema = Schema({"age": Column("integer", weight=0.1), "sex": Column("categorical", levels=["f", "m"])})
    >>> Gower(schema)([[30.0, 0.0]], [[35.0, 1.0]]).tolist()
    [1.5]
    """

    schema: Schema

    order: ClassVar[int] = 1

    def __call__(self, a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
        """Distance between the rows of `a` and the rows of `b`."""
        left, right = np.atleast_2d(np.asarray(a, dtype=np.float64)), np.atleast_2d(np.asarray(b, dtype=np.float64))
        total = np.zeros(max(len(left), len(right)))
        for j, column in enumerate(self.schema.columns.values()):
            if column.is_number:
                total += column.weight * np.abs(left[:, j] - right[:, j])
            else:
                lost = np.isnan(left[:, j]) | np.isnan(right[:, j])
                i, k = (np.where(lost, 0, side[:, j]).astype(np.intp) for side in (left, right))
                total += np.where(lost, np.nan, column.distances[i, k])
        return total

    def price(self, people: FloatArray, points: FloatArray) -> FloatArray:
        """Cost of changing people into others, in the direction of the change."""
        total = np.zeros(len(people))
        for j, column in enumerate(self.schema.columns.values()):
            if column.is_number:
                total += column.weight * np.abs(points[:, j] - people[:, j])
            else:
                total += column.moves[people[:, j].astype(np.intp), points[:, j].astype(np.intp)]
        return total

    @cached_property
    def metric(self) -> bool:
        """Whether all changes of level cost the same in both directions, and no detour is cheaper."""
        tables = [column.moves for column in self.schema.columns.values() if not column.is_number]
        return all(
            np.array_equal(cost, cost.T) and bool((cost <= (cost[:, :, None] + cost[None]).min(axis=1)).all())
            for cost in tables
        )

    def rates(self, dim: int) -> FloatArray:  # noqa: ARG002 - the schema knows
        """Cost per unit of each column; of one with levels the factor on its changes."""
        return np.array([column.weight for column in self.schema.columns.values()], dtype=np.float64)

    def moves(self, j: int) -> FloatArray:
        """Cost from each level of the j-th column to each other."""
        return self.schema.column(j).moves

    def before(self, a: FloatArray, b: FloatArray) -> bool:
        """Which of two equally costly changes comes first: that of fewer columns, then in the order of columns."""
        return fewer_columns(a, b)

    def __repr__(self) -> str:
        return f"Gower({len(self.schema)} columns)"


def fewer_columns(a: FloatArray, b: FloatArray) -> bool:
    """Whether a change comes before another one: that of fewer columns, then in the order of columns."""
    changed = [int(np.count_nonzero(change)) for change in (a, b)]
    if changed[0] != changed[1]:
        return changed[0] < changed[1]
    apart = np.flatnonzero(a != b)
    return bool(len(apart)) and bool(abs(a[apart[0]]) < abs(b[apart[0]]))
