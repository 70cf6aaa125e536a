"""Any model, and binary linear models in any norm (rows 1 and 2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.theory.arguments import at_least, dual_order, finite_number
from evenhand.theory.boundary import as_long_as, changed_feature, nonzero_normal


def movement_bound(cost: float, eps: float, *, swapped: bool = False, plausible: bool = False) -> float:
    """The farthest that a counterfactual moves, for any model and any norm.

    Parameters
    ----------
    cost : float
        Distance from the original person to its counterfactual.
    eps : float
        Distance between the two people, in the same norm.
    swapped : bool
        Whether the perturbed person got another prediction, and so the original's label as its target.  If so,
        the original person is feasible, and the bound is sharper.  That takes closest counterfactuals without a
        margin or limits on what may change; then the bound without a swap covers both cases.
    plausible : bool
        Whether the counterfactuals have to be plausible too.  The original person need not be, so that no
        such bound holds after a swap.
    """
    near, step = at_least(0, cost=cost), at_least(0, eps=eps)
    if swapped and plausible:
        raise ValueError(
            "Got swapped=True and plausible=True: no bound holds, because the original person need not be plausible. "
            "Bounded are plausible counterfactuals towards the same target, and closest ones in any case."
        )
    return near + 2 * step if swapped else 2 * step + 2 * near


def boundary_distance(w: npt.ArrayLike, b: float, x: npt.ArrayLike, p: float = 2) -> float:
    """Distance of `x` to the boundary in the p-norm: ``|w @ x + b|`` over the *dual* norm of `w`."""
    normal = nonzero_normal(w)
    score = float(normal @ as_long_as(normal, x=x)) + finite_number(b=b)
    return abs(score) / float(np.linalg.norm(normal, dual_order(p)))


def linear_bound(w: npt.ArrayLike, b: float, x: npt.ArrayLike, eps: float, p: float = 2) -> float:
    """:func:`movement_bound` of a binary linear model, also where several counterfactuals are equally close."""
    return movement_bound(boundary_distance(w, b, x, p), eps)


def unique_minimiser_bound(w: npt.ArrayLike, eps: float, p: float = 2) -> float:
    """The farthest that the counterfactual of a binary linear model moves, where there is only one closest.

    ``eps`` for p = 2, ``(1 + second / first) * eps`` for p = 1, with the two largest ``|w|``, and ``2 * eps`` for
    every other p.  The first two are attained.
    """
    normal, step, dual = nonzero_normal(w), at_least(0, eps=eps), dual_order(p)
    if dual == np.inf:
        first = changed_feature(normal, None)
        return float(1 + np.delete(np.abs(normal), first).max(initial=0.0) / abs(normal[first])) * step
    if dual == 1 and not normal.all():
        raise ValueError(
            f"w is 0 for feature {np.flatnonzero(normal == 0)[0]}, so that with p = inf many points are equally close. "
            "Use linear_bound, or a w without zeros."
        )
    return step if dual == 2 else 2 * step
