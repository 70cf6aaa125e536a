"""How far an explanation can move at most: proven, without sampling.

The region of a target is a union of closed convex pieces.  With an l2 cost the distance to a piece changes by no
more than the person does, and so does the nearest point of a piece.  A perturbation of size eps can therefore lead
only to a piece that is at most 2 eps farther than the best one, and there only to a point at most eps away from
where the unperturbed person would land:

    |x_cf - x_cf'|  <=  eps + max { |P_k - x_cf| : d_k <= d_1 + 2 eps }

With any cost the triangle inequality gives ``2 eps + 2 cost``.  Both hold while the target stays the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.explaining.exact import ExactExplainer
from evenhand.explaining.explainer import Explainer, Flip, check_explainer
from evenhand.markup import framed
from evenhand.models import needs_numbers
from evenhand.stability.certified_radii import TIE, distances_to_pieces, label_radii, own_region, stability_radii
from evenhand.status import Status
from evenhand.table.limits import DOWN, FIXED, UP
from evenhand.types import FloatArray

SHOWN = (0.5, 0.25, 0.1)


@dataclass(frozen=True, eq=False)
class Certificates:
    """What is proven about each person's explanation; :func:`certify` makes it.

    All lengths are in units of the explainer's cost.

    Attributes
    ----------
    person : Index
        Labels of the people.
    target : array of shape (n,)
        The label that each explanation aims at.  All statements are about explanations towards this label, also if it
        was chosen as the cheapest one: for a perturbed person another one may be cheaper.
    status : array of shape (n,)
        Status of the explanation; without one nothing is certified, and the numbers are NaN.
    cost : array of shape (n,)
        Cost of the explanation.
    stability_radius : array of shape (n,)
        For every perturbation smaller than this the statement of :attr:`statement` holds.
    label_radius : array of shape (n,)
        For every perturbation smaller than this the model's prediction stays, so that nothing swaps the target.
    kept_radius : array of shape (n,)
        The same where the target is kept anyway: up to here, a perturbed person is not given the target unasked.
    order : int
        1 or 2: of the cost.
    statement : str
        What holds within the radii.
    """

    person: pd.Index
    target: npt.NDArray[Any]
    status: npt.NDArray[np.str_]
    cost: FloatArray
    stability_radius: FloatArray
    label_radius: FloatArray
    kept_radius: FloatArray
    order: int
    statement: str
    _distances: FloatArray = field(repr=False)
    _jumps: FloatArray = field(repr=False)

    def __len__(self) -> int:
        return len(self.cost)

    def bound(self, eps: float | npt.ArrayLike, on_flip: Flip = "swap") -> FloatArray:
        """How far the explanation moves at most, for every perturbation of a size up to `eps`.

        Parameters
        ----------
        eps : float, or array of shape (n,)
            Size of the perturbation, in units of the cost.
        on_flip : {"swap", "keep", "skip"}
            What happens to the target when the prediction changes, as in :func:`instability`; with "skip" the bound
            is one for perturbations that keep the prediction.

        Returns
        -------
        array of shape (n,)
            Infinity where a perturbation of this size may change the target: then nothing is promised.
        """
        if on_flip not in ("swap", "keep", "skip"):
            raise ValueError(f'on_flip must be "swap", "keep" or "skip", got {on_flip!r}.')
        size = np.asarray(eps, dtype=np.float64)
        if size.shape not in ((), (len(self),)) or not (size >= 0).all():
            raise ValueError(f"eps must be a number >= 0, or one per person ({len(self)}); got {eps!r}.")
        size = np.broadcast_to(size, (len(self),))
        bound = 2.0 * size + 2.0 * self.cost
        if self.order == 2:
            # Costs that differ by less than TIE are equal to the solvers, which then choose by other rules.
            reach = self.cost + 2.0 * size
            in_reach = self._distances <= (reach + 2.0 * TIE * reach)[:, None]
            jump = np.where(in_reach, self._jumps, 0.0).max(axis=1, initial=0.0)
            bound = np.minimum(bound, size + jump)
        always = np.full(len(self), np.inf)
        radius = {"swap": self.label_radius, "keep": self.kept_radius, "skip": always}[on_flip]
        return np.where(np.isnan(self.cost), np.nan, np.where(size < radius, bound, np.inf))

    def share(self, eps: float) -> float:
        """Share of people for whom the statement holds for every perturbation up to `eps`; all people count."""
        if not isinstance(eps, Real) or not eps >= 0:
            raise ValueError(f"eps must be a number >= 0, got {eps!r}.")
        certified = np.minimum(self.stability_radius, self.label_radius) > eps
        return float(certified.mean()) if len(self) else np.nan

    def to_frame(self) -> pd.DataFrame:
        """One row per person."""
        return pd.DataFrame(
            {
                "target": self.target,
                "status": self.status,
                "cost": self.cost,
                "stability_radius": self.stability_radius,
                "label_radius": self.label_radius,
                "kept_radius": self.kept_radius,
            },
            index=self.person,
        )

    def __repr__(self) -> str:
        known = self.stability_radius[~np.isnan(self.stability_radius)]
        middle = f": median stability radius {np.median(known):.4g}" if len(known) else ""
        return f"Certificates({len(self)} people{middle}; {self.statement})"

    def _repr_html_(self) -> str:
        radius = np.minimum(self.stability_radius, self.label_radius)
        known = radius[np.isfinite(radius)]
        if not len(known):
            return framed(repr(self), self.to_frame().head(10))
        levels = [float(np.quantile(known, level)) for level in SHOWN]
        shown = pd.DataFrame({"share of people certified": [self.share(level) for level in levels]}, index=levels)
        shown.index.name = "perturbation up to"
        return framed(repr(self), shown)


def certify(
    explainer: Explainer,
    X: Any,
    target: Any = None,
    *,
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
) -> Certificates:
    """Radii within which a person's explanation is stable, and bounds on how far it moves.

    Parameters
    ----------
    explainer : Explainer
        Of a method that projects onto regions: ``Closest``, ``Plausible`` or ``Steady``.
    X : table of shape (n, n_features)
        People.
    target, random_state, n_jobs
        As in ``explain``.  With None the cheapest label of each person is taken, and then held: ask the perturbed
        person for the same target to be within the bounds.

    Returns
    -------
    Certificates

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from evenhand import Closest, certify
    >>> X, y = load_iris(return_X_y=True)
    >>> explainer = Closest(cost="l2").fit(LogisticRegression(max_iter=1000).fit(X, y))
    >>> certify(explainer, X[:1]).bound(0.1)
    array([0.1])
    """
    check_explainer(explainer)
    exact = explainer.exact
    if exact is None:
        raise TypeError(
            f"certify needs a method that projects onto regions (Closest, Plausible, Steady), got "
            f"{type(explainer).__name__}: of what it does not solve exactly nothing can be proven. "
            "Measure it with instability() or worst_case()."
        )
    if not exact.certifiable and explainer.view.reader.plain:
        raise TypeError(
            "certify needs regions of convex pieces and a cost that is a norm, which the solver for "
            f"{type(explainer.view.model).__name__} does not promise; measure with instability() or worst_case()."
        )
    if not exact.certifiable:
        raise needs_numbers("certify", explainer.view)
    if np.isin(exact.limits.directions, (UP, DOWN)).any():
        raise ValueError(
            "Nothing can be certified with columns that may only increase or only decrease: what a person may do then "
            "moves with the person. Use bounds or immutable instead, or measure with instability() or worst_case()."
        )
    view = explainer.view
    people = view.reader.read(X)
    table = people.codes
    base = explainer.explain(X, target, random_state=random_state, n_jobs=n_jobs)
    aim = view.positions(np.where(base.valid, base.target, view.classes[0]))
    told = view.read(base.counterfactual)
    distances, jumps, room = distances_to_pieces(exact, table, aim, base.valid, told, n_jobs)
    label_radius, kept_radius = label_radii(exact, table, aim, base.valid, n_jobs)
    stays = (base.status == Status.ALREADY) & (not own_region(exact))
    distances[stays], jumps[stays] = np.inf, 0.0  # who needs no change is its own explanation, and moves as it does
    kept_radius = np.where(stays, label_radius, kept_radius)
    # There a second attempt is told, further inside than the first, for one person and not for the next.
    coarse = view.is_coarse(table)
    distances[coarse], jumps[coarse] = 0.0, np.inf
    for radius in (label_radius, kept_radius):
        radius[coarse & base.valid] = 0.0
    stability = stability_radii(exact, table, base.cost, distances, jumps)
    jumps = jumps + room
    return Certificates(
        people.index,
        base.target,
        base.status,
        base.cost,
        np.where(base.valid, stability, np.nan),
        label_radius,
        kept_radius,
        explainer.cost.order,
        _statement(exact, bool(stays.any()), bool(coarse.any())),
        distances,
        jumps,
    )


def _statement(explainer: ExactExplainer, somebody_stays: bool, coarse: bool) -> str:
    if explainer.cost.order == 2:
        statement = "within the radius an explanation moves no further than its person"
    else:
        statement = (
            "within the radius an explanation stays in its piece of the region, and moves by at most 2 eps + 2 cost "
            "(an l1 cost allows no factor 1)"
        )
    if somebody_stays:
        statement += "; who needs no change is its own explanation, and stays that within the label radius"
    if coarse:
        statement += (
            "; nothing is proven for people whose squares are so large, or prototypes so close, that the model's own "
            "predict is coarser than what answers keep from a boundary (a StandardScaler in front of it helps, or GLVQ)"
        )
    if (explainer.limits.directions == FIXED).any():
        statement += "; for perturbations that leave the immutable columns alone"
    return statement
