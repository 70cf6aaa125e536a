"""Which solver takes a problem: the only place that chooses by structure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, TypeVar

import numpy as np

from evenhand.costs.gower import fewer_columns
from evenhand.projection.problem import Problem
from evenhand.projection.result import Projection, scattered
from evenhand.registering import check_free
from evenhand.sets import Region
from evenhand.status import Status
from evenhand.table.limits import FREE
from evenhand.table.people import below
from evenhand.types import BoolArray, FloatArray

GUARD = 1e-13  # what an answer keeps from every constraint at first, relative to the numbers that meet there
TOO_LARGE = 1e100  # past this squares overflow; NaN and infinity are not below it either


class Projector(ABC):
    """A problem, prepared for as many people as you like.

    A solver adds :meth:`refusal`, :meth:`_solve` and, if its ties are decided in a way of their own, :meth:`before`.

    Attributes
    ----------
    problem : Problem
        What is solved.
    guards : sequence of (guard, margin)
        How far from every constraint an answer keeps, relative to the numbers that meet there and in units of the
        cost: first just enough for rounding, then more for the few people where the model's arithmetic is coarser.
    convex : bool
        Whether pieces are convex and the cost is a norm, so that theorems about projections apply to :meth:`each`.
    rank : int
        Who is asked first: the solvers that know more about fewer problems.
    """

    guards: ClassVar[tuple[tuple[float, float], ...]] = tuple((g, 0.0) for g in (GUARD, 1e-11, 1e-9, 1e-7, 1e-5))
    convex: ClassVar[bool] = False
    rank: ClassVar[int] = 1

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._pieces: dict[int, Projector] = {}
        self._held: dict[tuple[int, ...], Projector] = {}

    @classmethod
    @abstractmethod
    def refusal(cls, problem: Problem) -> str:
        """Why this solver cannot take a problem, and what to do instead; empty if it can."""

    @abstractmethod
    def _solve(self, X: FloatArray, guard: float, cutoff: FloatArray) -> Projection:
        """Project people of whom every number is finite."""

    def project(
        self,
        X: FloatArray,
        guard: float = 0.0,
        cutoff: FloatArray | None = None,
        held: tuple[int, ...] = (),
    ) -> Projection:
        """The cheapest points of the region for the rows of a table.

        Parameters
        ----------
        X : array of shape (n, n_columns)
            People, as rows of codes.
        guard : float
            Relative distance kept from every constraint, so that rounding cannot cross it.
        cutoff : array of shape (n,), optional
            Costs above which an answer is of no use; such rows come back as unreachable.
        held : tuple of int
            Columns that stay as they are, on top of the limits.
        """
        if held:
            return self.holding(held).project(X, guard, cutoff)
        X = np.require(X, np.float64, ["C", "W"])  # for what is read only, as in a DataFrame, numba compiles anew
        finite = below(X, TOO_LARGE)
        limit = np.full(len(X), np.inf) if cutoff is None else np.asarray(cutoff, dtype=np.float64)
        if finite.all():
            return self._solve(X, guard, limit)
        return scattered(self._solve(X[finite], guard, limit[finite]), finite)

    def single(self, X: FloatArray) -> BoolArray:
        """Whose points have only levels and steps around them, so that :meth:`apart` can name the next ones."""
        return np.zeros(len(X), dtype=bool)

    def apart(self, X: FloatArray, denied: FloatArray, cutoff: FloatArray) -> Projection:
        """The cheapest points other than those that were denied, of people whose points were :meth:`single`.

        Parameters
        ----------
        X : array of shape (n, n_columns)
            People.
        denied : array of shape (n, points, n_columns)
            What the model has denied of the points that they were told.
        cutoff : array of shape (n,)
            Costs above which an answer is of no use.
        """
        raise NotImplementedError(f"{type(self).__name__} tells single points, but not the next ones.")

    def within(self, X: FloatArray, guard: float) -> BoolArray | None:  # noqa: ARG002
        """Who is in the region, and no nearer to its boundary than the guard; None where the solver cannot tell."""
        return None

    def each(
        self, X: FloatArray, guard: float = 0.0, cutoff: FloatArray | None = None
    ) -> Iterator[tuple[int, Projection]]:
        """The same piece by piece, lazily and in the order of the region.

        A piece that is empty for everybody (a leaf and an ellipsoid often do not meet) is left out.
        """
        for i, projector in self.pieces(X):
            yield i, projector.project(X, guard, cutoff)

    def pieces(self, X: FloatArray) -> Iterator[tuple[int, Projector]]:
        """Projectors onto single pieces, without those that are proven to be empty.

        To prove that is slow, and the same for everybody, as long as everybody may change the same columns to the same
        values: then one person tells.
        """
        same_for_all = bool((self.problem.limits.directions == FREE).all()) and not self.problem.limits.stepped
        for i, piece in enumerate(self._listed()):
            if i not in self._pieces:
                self._pieces[i] = solver(self.problem.onto(Region((piece,))))
            projector = self._pieces[i]
            if same_for_all and len(X) > 1 and projector.project(X[:1]).status[0] == Status.UNREACHABLE:
                continue
            yield i, projector

    def _listed(self) -> Any:
        """The pieces of the region; a solver of regions that cannot be listed yields what its search finds."""
        return self.problem.region.pieces

    def holding(self, columns: tuple[int, ...]) -> Projector:
        """The projector of the problem with some columns held."""
        if columns not in self._held:
            self._held[columns] = solver(self.problem.holding(columns))
        return self._held[columns]

    def before(self, a: FloatArray, b: FloatArray) -> bool:
        """Which of two equally costly changes comes first: that of fewer columns, then in the order of columns."""
        return fewer_columns(a, b)

    def __getstate__(self) -> dict[str, Any]:
        return {"problem": self.problem}  # what is compiled stays where it is

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["problem"])  # type: ignore[misc]


P = TypeVar("P", bound=type[Projector])
SOLVERS: list[type[Projector]] = []


def register_solver(kind: P) -> P:
    """Make a solver known; of several that take a problem the one of the lowest rank is chosen."""
    name = kind.__name__  # what messages call it
    known = next((other for other in SOLVERS if other.__name__ == name), None)
    check_free("solver", name, kind, known, "give the class another name, or remove that one from SOLVERS first.")
    if known is None:
        SOLVERS.append(kind)
    else:
        SOLVERS[SOLVERS.index(known)] = kind
    SOLVERS.sort(key=lambda known: known.rank)
    return kind


def solver(problem: Problem) -> Projector:
    """The projector of the solver of the lowest rank that takes the problem; raises as :func:`kind_of` does."""
    return kind_of(problem)(problem)


def kind_of(problem: Problem) -> type[Projector]:
    """Which solver takes the problem, of several that of the lowest rank; nothing is compiled.

    Raises
    ------
    TypeError
        If none does; the message has the reason of each.
    """
    reasons = []
    for kind in SOLVERS:
        reason = kind.refusal(problem)
        if not reason:
            return kind
        reasons.append(f"{kind.__name__}: {reason}")
    raise TypeError(
        f"No solver takes a {type(problem.region).__name__} with the cost {problem.cost!r} and these limits. "
        + " ".join(reasons)
    )
