"""Definition 2: perturb the person, explain again, measure how far the explanation moved."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal

import numpy as np

from evenhand.costs import COSTS, L1, L2, Distance, Gower, as_distance, cost_for, fitting
from evenhand.explaining.explainer import Explainer, Flip, check_explainer
from evenhand.parallel import CHUNK, Progress
from evenhand.perturbations import Perturbation
from evenhand.stability.experiment import Experiment
from evenhand.stability.instability_result import Instability, half_width

__all__ = ["PILOT", "Instability", "distance_for", "instability"]

PILOT = 8  # draws per person from which draws="auto" learns how many it needs


def instability(
    explainer: Explainer,
    X: Any,
    perturbation: Perturbation,
    *,
    target: Any = None,
    draws: int | Literal["auto"] = 1,
    distance: Distance | str = "l1",
    on_flip: Flip = "swap",
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    keep: Literal["draws", "people"] = "draws",
    tolerance: float = 0.05,
    max_draws: int = 1024,
    reference: Any = None,
    chunk_size: int = CHUNK,
    progress: Progress | None = None,
) -> Instability:
    """How far the explanations of people move when the people are perturbed.

    Parameters
    ----------
    explainer : Explainer
        A fitted method.
    X : table of shape (n, n_features)
        People.  The labels of a DataFrame's index say who is who: a person gets the same draws in whatever
        order and company it comes, if the perturbation has nothing to learn from `X` itself (see `reference`).
    perturbation : Gaussian, Uniform, Mask, Relative, Neighbor or any ``(X, rng) -> X``
        What could have been different.
    target : label, array of labels, "random" or None
        As in ``explain``; what the original person aims at, the perturbed one aims at too.
    draws : int or "auto"
        Perturbations per person; "auto" takes as many as `tolerance` needs.
    distance : "l1", "l2", L1, L2 or any ``(A, B) -> (n,)``
        Between explanations, and between people; a name is in the units of the table, as for a cost.
    on_flip : {"swap", "keep", "skip"}
        If the model predicts something else for the perturbed person: aim at the original's label, as Definition 2
        asks; keep the target; or set the draw aside, with the status "skipped".
    random_state : int or numpy Generator, optional
        Seed; one from the operating system if left out, kept in the result.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    keep : {"draws", "people"}
        Whether the result holds a row per draw, or only one per person, for tables that would not fit in memory.
    tolerance : float
        For ``draws="auto"``: half the width of the 95 % interval of the mean distance, as a part of that mean.
        The interval is that of the draws: these people, had they been perturbed infinitely often.
    max_draws : int
        Where "auto" stops at the latest.
    reference : table, optional
        Training data for perturbations that learn from it (``Relative``, ``Mask(baseline="mean")``) and have not been
        fitted; `X` if left out, and then the noise depends on who is in the table.
    chunk_size : int
        Rows at a time; bounds the memory, not the result.  The draws of one person stay together.
    progress : callable, optional
        Called as ``progress(done, total)`` with draws after each chunk.

    Returns
    -------
    Instability

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from evenhand import Closest, Gaussian, instability
    >>> X, y = load_iris(return_X_y=True)
    >>> explainer = Closest().fit(LogisticRegression(max_iter=1000).fit(X, y))
    >>> found = instability(explainer, X, Gaussian(0.01), draws=4, random_state=0)
    >>> found.table.shape[0]
    600
    """
    check_explainer(explainer)
    if not callable(perturbation) or isinstance(perturbation, type):
        raise TypeError(f"perturbation must be a function (X, rng) -> X, such as Gaussian(0.01); got {perturbation!r}.")
    if on_flip not in ("swap", "keep", "skip"):
        raise ValueError(f'on_flip must be "swap", "keep" or "skip", got {on_flip!r}.')
    if keep not in ("draws", "people"):
        raise ValueError(f'keep must be "draws" or "people", got {keep!r}.')
    automatic = isinstance(draws, str) and draws == "auto"
    if not automatic and (isinstance(draws, bool) or not isinstance(draws, Integral) or draws < 1):
        raise ValueError(f'draws must be a whole number >= 1 or "auto", got {draws!r}.')
    if automatic and not (tolerance > 0 and max_draws >= 2):
        raise ValueError(f"tolerance must be > 0 and max_draws >= 2, got {tolerance} and {max_draws}.")
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, got {chunk_size}.")
    apart = distance_for(explainer, distance)
    run = Experiment(explainer, X, perturbation, target, apart, on_flip, random_state, n_jobs, reference)
    count = min(PILOT, max_draws) if automatic else int(draws)
    while True:
        people, table = run.measure(count, keep == "draws", chunk_size, progress)
        person = None if table is None else np.repeat(np.arange(len(people)), count)
        width = half_width(people)
        mean = float(people["distance"].mean()) if people["distance"].notna().any() else 0.0
        # Without a finite width nothing has settled, unless there is nobody to measure.
        settled = not automatic or width <= tolerance * mean or not people["found"].any()
        if settled or count >= max_draws:
            return Instability(people, count, run.seed, settled, width, table, person)
        # The width falls with the root of the number of draws; a tenth more, because it was estimated.
        wanted = 1.1 * count * (width / (tolerance * mean)) ** 2 if mean > 0 else np.inf
        count = int(min(max(wanted, count + 1), max_draws))


def distance_for(explainer: Explainer, distance: Distance | str) -> Distance:
    """The distance between people of an explainer's table; a name is in the units of the table, as for a cost.

    Where columns have levels or steps, "l1" is the explainer's own cost.
    """
    view = explainer.view
    if isinstance(explainer.cost, Gower) and distance == "l1":
        return explainer.cost
    if not view.schema.number.all() and isinstance(distance, str | L1 | L2):
        raise ValueError(
            f'People with levels have no distance {distance!r}: use "l1", which is Gower with the weights of the '
            "schema, Gower(another_schema), or a function of encoded rows (A, B) -> (n,)."
        )
    if isinstance(distance, str) and distance in COSTS and view.schema.continuous:
        units: Distance = cost_for(distance, view.schema)
        return units
    apart = as_distance(distance)
    return fitting(apart, view.n_features, view.feature_names) if isinstance(apart, L1 | L2) else apart
