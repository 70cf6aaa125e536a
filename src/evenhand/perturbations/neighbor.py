"""Perturbations by real people."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import ClassVar

import numpy as np
from scipy.spatial import KDTree

from evenhand.perturbations.base import Bounds, bounded, check_width, checked_bounds, finite_numbers, varies
from evenhand.perturbations.registry import ROWS, register
from evenhand.types import FloatArray


@register
@dataclass(frozen=True, eq=False)
class Neighbor:
    """Replaces a person by one of its nearest real people.

    Parameters
    ----------
    X_reference : array of shape (n, n_features)
        The real people.  A row that equals the person counts as the person, not as a neighbour.
    k : int
        Among how many of the nearest to choose.
    standardise : bool
        Whether near is measured in units of each feature's spread among `X_reference`, or in raw units.
    bounds : pair (lower, upper), optional
        As for :class:`Gaussian`.

    Examples
    --------
    >>> Neighbor([[0.0], [1.0], [5.0]], k=1)(np.array([[0.9]]), np.random.default_rng(0))
    array([[1.]])
    """

    suits: ClassVar[tuple[str, ...]] = (ROWS,)
    never_relative: ClassVar[str] = (
        "Neighbor is measured in units of the spread by itself (standardise=True): use it as it is."
    )

    X_reference: FloatArray = field(repr=False, metadata={"people": True})
    k: int = 5
    _: KW_ONLY
    standardise: bool = True
    bounds: Bounds | None = None
    names: tuple[str, ...] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        columns = getattr(self.X_reference, "columns", None)
        object.__setattr__(self, "names", None if columns is None else tuple(columns))
        given = self.X_reference if columns is None else self.X_reference.to_numpy()  # type: ignore[attr-defined]
        reference = finite_numbers(given, "X_reference")
        if reference.ndim != 2:
            raise ValueError(f"X_reference must be a table of finite numbers, got shape {reference.shape}.")
        if not isinstance(self.k, Integral) or not 1 <= self.k < len(reference):
            raise ValueError(
                f"k must be a whole number from 1 to {len(reference) - 1}, one less than the people in X_reference; "
                f"got {self.k!r}."
            )
        object.__setattr__(self, "X_reference", reference)
        object.__setattr__(self, "bounds", checked_bounds(self.bounds))

    def in_order(self, columns: tuple[str, ...]) -> Neighbor:
        """The same with the columns of a reference that was a DataFrame in the order of a model's."""
        if self.names is None or self.names == columns:
            return self
        if set(self.names) != set(columns):
            strange = sorted(set(map(str, self.names)) ^ set(map(str, columns)))
            raise ValueError(f"X_reference and the model have different columns, such as {strange[0]!r}.")
        return replace(self, X_reference=self.X_reference[:, [self.names.index(name) for name in columns]])

    @cached_property
    def _unit(self) -> FloatArray:
        spread = self.X_reference.std(axis=0)
        unit: FloatArray = np.where(self.standardise & varies(self.X_reference, spread), spread, 1.0)
        return unit

    @cached_property
    def _tree(self) -> tuple[KDTree, FloatArray]:
        different = np.unique(self.X_reference, axis=0)
        return KDTree(different / self._unit), different

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """For every row of `X` one of its neighbours."""
        check_width(self.X_reference[0], X, "X_reference")
        tree, people = self._tree
        k = min(self.k + 1, len(people))
        _, near = tree.query(X / self._unit, k=k)
        near = near.reshape(len(X), k)
        itself = (people[near] == X[:, None, :]).all(axis=2)
        # The person itself comes first if it is there: step over it.
        available = k - 1 if k == self.k + 1 else k - itself.any(axis=1)
        if np.any(np.asarray(available) < 1):
            raise ValueError("X_reference holds one person only, up to repetition: nobody has a neighbour in it.")
        choice = np.floor(rng.random(len(X)) * available).astype(np.intp)
        order = np.argsort(itself, axis=1, kind="stable")  # everybody else first, nearest to farthest
        chosen = np.take_along_axis(near, np.take_along_axis(order, choice[:, None], axis=1), axis=1)[:, 0]
        return bounded(people[chosen], self.bounds)
