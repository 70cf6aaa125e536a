"""Measuring one row of the table, in CPU seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from problems import Case, FloatArray, explainer, people, strangers
from reference import TIGHT, nearest

from evenhand.costs import as_cost
from evenhand.projection import Problem, solver
from evenhand.sets import ConvexSet, Region

LABEL = 0  # position of the label whose piece the pair solves use


@dataclass(frozen=True)
class Effort:
    """How much to measure."""

    seconds: float  # least time of one measurement
    queries: int  # different queries for the pair solves
    compared: int  # of them with the modelling language
    people: int  # at most so many complete counterfactuals


@dataclass(frozen=True)
class Row:
    """What one problem took, and how right the answers are.

    Attributes
    ----------
    case : Case
        The problem.
    pairs : float
        Kernel solves per second, of one query and one piece.
    reference : float
        Median seconds of the modelling language for the same.
    complete : float
        Counterfactuals per second, from the table of people to answers that the model has confirmed.
    gap : float
        Largest certified gap of all of them, relative to the cost.
    difference : float
        Largest relative difference to the modelling language's optimum.
    unsolved : float
        Share of pair solves that the kernels would hand to a library.
    not_optimal : float
        Share of the counterfactuals with another status than "optimal".
    """

    case: Case
    pairs: float
    reference: float
    complete: float
    gap: float
    difference: float
    unsolved: float
    not_optimal: float

    @property
    def ratio(self) -> float:
        """How many pair solves fit into one solve of the modelling language."""
        return self.pairs * self.reference


def measured(case: Case, effort: Effort) -> Row:
    """Everything about one problem."""
    explain = explainer(case)
    label = explain.view.classes[LABEL]
    queries = strangers(case.data, case.model, label, effort.queries)
    piece = _busiest(explain.region(LABEL), case.cost, queries[:500])
    solve = _pair_solver(piece, case.cost)
    cost, bound = solve(queries)
    reference, optimum = _modelled(piece, case.cost, queries[: effort.compared])

    crowd = people(case.data, effort.people)
    rough = _rate(lambda: explain.explain(crowd[:500], target="random", random_state=0), 500, 0.0, 2)
    crowd = crowd[: max(500, int(4 * effort.seconds * rough))]
    found = explain.explain(crowd, target="random", random_state=0)
    return Row(
        case,
        pairs=_rate(lambda: solve(queries), len(queries), effort.seconds, 3),
        reference=reference,
        complete=_rate(lambda: explain.explain(crowd, target="random", random_state=0), len(crowd), 0.0, 2),
        gap=max(_largest_ratio(found.gap, found.cost), _largest_ratio(cost - bound, cost)),
        difference=_difference(cost[: effort.compared], optimum),
        unsolved=float(np.mean(~np.isfinite(cost))),
        not_optimal=float(np.mean(found.status != "optimal")),
    )


def _rate(run: Callable[[], object], size: int, seconds: float, times: int) -> float:
    """Best of some measurements of how many a second `run` does, if one call does `size` of them."""
    best = 0.0
    for _ in range(times):
        start, calls = time.process_time(), 0
        while calls == 0 or time.process_time() - start < seconds:
            run()
            calls += 1
        best = max(best, calls * size / (time.process_time() - start))
    return best


def _busiest(region: Region, cost: str, queries: FloatArray) -> ConvexSet:
    """The piece that holds most of the nearest points."""
    found = solver(Problem.of_numbers(region, as_cost(cost))).project(queries)
    return region.pieces[int(np.bincount(found.piece[found.piece >= 0]).argmax())]


def _pair_solver(piece: ConvexSet, cost: str) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
    """Queries -> costs and proven bounds, by the kernel or by the closed form, for one piece."""
    projector = solver(Problem.of_numbers(Region((piece,)), as_cost(cost)))
    if projector.compiled.boxes is None:
        return lambda X: projector.solve_piece(0, X)

    def closed_form(X: FloatArray) -> tuple[FloatArray, FloatArray]:
        found = projector.project(X)
        return found.cost, found.cost - found.gap

    return closed_form


def _modelled(piece: ConvexSet, cost: str, queries: FloatArray) -> tuple[float, FloatArray]:
    """Median seconds of a solve with default settings, and the optima with tight ones."""
    nearest(queries[0], piece, cost)
    seconds = []
    for x in queries:
        start = time.process_time()
        nearest(x, piece, cost)
        seconds.append(time.process_time() - start)
    return float(np.median(seconds)), np.array([nearest(x, piece, cost, **TIGHT) for x in queries])


def _difference(cost: FloatArray, optimum: FloatArray) -> float:
    """Largest relative difference; infinite if only one of the two found an answer."""
    if (np.isfinite(cost) != np.isfinite(optimum)).any():
        return np.inf
    return _largest_ratio(np.abs(cost - optimum), optimum)


def _largest_ratio(parts: FloatArray, wholes: FloatArray) -> float:
    usable = np.isfinite(parts) & np.isfinite(wholes) & (wholes > 0)
    return float((parts[usable] / wholes[usable]).max(initial=0.0))
