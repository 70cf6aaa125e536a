"""The perturbation that moves an explanation most: searched for, and put next to what is proven."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.explaining.explainer import Explainer, Flip, check_explainer
from evenhand.randomness import seed_of
from evenhand.stability.number_tables import worst_in_numbers
from evenhand.stability.raw_search import Effort
from evenhand.stability.raw_tables import worst_in_raw_table
from evenhand.stability.worst_case_result import WorstCase, described
from evenhand.types import FloatArray

__all__ = ["WorstCase", "worst_case"]


def worst_case(
    explainer: Explainer,
    X: Any,
    radius: float | npt.ArrayLike,
    *,
    target: Any = None,
    on_flip: Flip = "swap",
    restarts: int = 12,
    rounds: int = 12,
    random_state: int | np.random.Generator | None = 0,
    n_jobs: int | None = None,
) -> WorstCase:
    """Search for the perturbation within a radius that moves the explanation most.

    Works on tables of numbers and on raw tables with levels, whole numbers and missing values, with every method.

    Parameters
    ----------
    explainer : Explainer
        A fitted method, of any kind.
    X : table of shape (n, n_features)
        People.
    radius : float, or array of shape (n,)
        Largest size of the perturbation, in units of the explainer's cost: in a raw table Gower's distance of the
        schema.  With 0 nobody moves.  Immutable columns are left alone.
    target, n_jobs
        As in ``explain``.
    on_flip : {"swap", "keep", "skip"}
        As in :func:`instability`; "skip" looks only at perturbations that keep the prediction.
    restarts : int
        Random perturbations to start from, besides those of single features and those towards other pieces of the
        target's region, or towards labels.
    rounds : int
        Rounds of refinement: along the way that the explanation moved, and at random in ever smaller steps; in raw
        tables also by taking columns back and by crossing the best perturbations.  Methods that take long to answer
        get a quarter of them there.
    random_state : int or numpy Generator, optional
        Seed.

    Returns
    -------
    WorstCase
        What was found is a lower bound of the worst case; `bound` is an upper one, which is there for tables of
        numbers only.

    Notes
    -----
    In a raw table a perturbed person is a possible one: its levels are known to the model, its numbers move in the
    steps of their columns (in whole numbers, if the given table holds those) and stay inside of their bounds, and what
    is missing stays missing.  If no more than 1,000 such people are within the radius (200 for a method that takes
    long), all of them are tried: the result is exact, and `exhaustive`.  Otherwise all single and double changes of
    levels and of up to 64 steps are tried, if they are no more than 600 (100); else single changes, at most 400 (60).
    The rest, and all that a column does that may take any value, is a search.  Of perturbations that move the
    explanation equally far the smallest is reported.  Sums of prices may exceed the radius by rounding, one part in
    10^12.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from evenhand import Closest, worst_case
    >>> X, y = load_iris(return_X_y=True)
    >>> explainer = Closest(cost="l2").fit(LogisticRegression(max_iter=1000).fit(X, y))
    >>> bool((worst_case(explainer, X[:5], 0.1).table["amplification"] <= 1 + 1e-6).all())
    True

    A raw table:

    >>> import pandas as pd
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> people = pd.DataFrame({"job": ["none", "part", "full", "full"] * 5, "children": [0, 1, 2, 3, 4] * 4})
    >>> encoder = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    >>> model = make_pipeline(encoder, LogisticRegression()).fit(people, people["job"] == "full")
    >>> worst = worst_case(Closest().fit(model, people), people[:1], radius=1.0)
    >>> bool(worst.table["exhaustive"].item())
    True
    """
    check_explainer(explainer)
    if on_flip not in ("swap", "keep", "skip"):
        raise ValueError(f'on_flip must be "swap", "keep" or "skip", got {on_flip!r}.')
    if restarts < 1 or rounds < 0:
        raise ValueError(f"restarts must be >= 1 and rounds >= 0, got {restarts} and {rounds}.")
    people = explainer.view.reader.read(X)
    radii = _radii(radius, len(people.codes))
    seed = seed_of(random_state)
    original = explainer.explain(X, target, random_state=seed, n_jobs=n_jobs)
    if explainer.view.reader.plain:
        worst = worst_in_numbers(explainer, people, radii, original, on_flip, seed, restarts, rounds, n_jobs)
    else:
        effort = Effort.of(explainer, restarts, rounds)
        worst = worst_in_raw_table(explainer, people, radii, original, on_flip, seed, effort, n_jobs)
    return described(people.index, original, radii, worst)


def _radii(radius: float | npt.ArrayLike, people: int) -> FloatArray:
    """One radius per person."""
    try:
        size = np.asarray(radius, dtype=np.float64)
    except (TypeError, ValueError):
        size = np.full((), np.nan)
    if size.shape not in ((), (people,)) or not (np.isfinite(size) & (size >= 0)).all():
        raise ValueError(
            f"radius must be a finite number >= 0, or one per person ({people}), in units of the explainer's cost; "
            f"got {radius!r}."
        )
    return np.broadcast_to(size, (people,))
