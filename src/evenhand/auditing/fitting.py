"""From a model, a sample of people and options to fitted methods, a distance and perturbations."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.auditing.errors import AuditError
from evenhand.auditing.model_view import door, last_step
from evenhand.auditing.options import Options
from evenhand.costs import L1, L2, Distance, cost_for
from evenhand.explaining.explainer import Explainer
from evenhand.methods import METHODS
from evenhand.models import View
from evenhand.perturbations import Count, Mixed, Perturbation, Rounding, learned
from evenhand.settings import nearest
from evenhand.table.actionable import Actionable
from evenhand.table.schema import Schema
from evenhand.types import FloatArray

FITTED_ON = 5000  # people from whom densities are learned
TRIED = 200  # people on whom a perturbation is tried
NEED_REGIONS = ("closest", "plausible", "steady")  # methods that cannot explain a model that can only be asked
SET_BY_AUDITS = {"penalized": {"optimizer": "descent"}}  # fields of methods that have another default in audits


@dataclass
class Setup:
    """What is measured with, once everything that a user can get wrong has been checked.

    Attributes
    ----------
    view : View
        The model.
    explainers : dict from name to Explainer
        Fitted methods, the one in use first.
    free : Explainer or None
        The closest change if everything could change: how far people are from the boundary.
    distance : callable
        Between people, and between explanations.
    perturbations : dict from name to perturbation
        Fitted, so that they do the same to a part of a table as to the whole.
    described : dict from name to str
        What was meant, in Python.
    unavailable : dict from name to str
        Methods that this model or table does not allow, and why.
    exact : bool
        Whether the model has regions; otherwise it is searched.
    notes : list of str
        What was done or left out on the way.
    """

    view: View
    explainers: dict[str, Explainer]
    free: Explainer | None
    distance: Distance
    perturbations: dict[str, Perturbation]
    described: dict[str, str]
    unavailable: dict[str, str]
    exact: bool
    unit: str
    notes: list[str] = field(default_factory=list)

    @property
    def in_use(self) -> str:
        """The method that people's explanations come from."""
        return next(iter(self.explainers))

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.view.schema


def set_up(
    model: Any, view: View, exact: bool, sample: pd.DataFrame, y: npt.NDArray[Any] | None, options: Options
) -> Setup:
    """Fit methods and perturbations on a sample of the people.

    Parameters
    ----------
    model : fitted classifier
    view : View
        What :func:`view_of` makes of it; `exact` if it has regions.
    sample : DataFrame
        Features.
    y : array, optional
        Labels of the sample.
    options : Options
    """
    _check_actionable(options.actionable, view, list(sample.columns))
    with door(model):
        return _fitted(model, view, exact, sample, y, options)


def _check_actionable(actionable: Actionable | None, view: View, columns: list[str]) -> None:
    """Name the key of the file that names a column which is not there."""
    if actionable is None:
        return
    for key in ("immutable", "increase", "decrease", "bounds", "levels"):
        for column in getattr(actionable, key):
            if isinstance(column, str) and column not in columns:
                raise AuditError(
                    f"actionable.{key}: {column!r} is not among the model's inputs.{nearest(column, columns)} They are "
                    f"{', '.join(columns)}."
                )
    if (actionable.levels or actionable.rules) and view.reader.plain:
        what = ", ".join(map(repr, actionable.levels)) or "rules"
        raise AuditError(f"actionable.levels ({what}): the model takes numbers only, which have no levels. Use bounds.")


def _fitted(
    model: Any, view: View, exact: bool, sample: pd.DataFrame, y: npt.NDArray[Any] | None, options: Options
) -> Setup:
    # A model without names that can only be asked is shown what it was fitted on, an array.
    table: Any = sample if exact or view.reader.named else sample.to_numpy()
    codes = view.read(table)
    cost, schema = options.cost, view.schema if isinstance(table, pd.DataFrame) else None
    distance = _distance(view, options)
    few = np.flatnonzero(np.isfinite(codes).all(axis=1))[:FITTED_ON]
    if not len(few):
        raise AuditError("No row of the table is complete: there is nobody to learn from.")
    part = table.iloc[few] if isinstance(table, pd.DataFrame) else table[few]
    labels = None if y is None else y[few]
    explainers: dict[str, Explainer] = {}
    unavailable: dict[str, str] = {}
    notes: list[str] = []
    methods = options.named_methods()
    if not exact:
        names = ", ".join(methods)
        methods = {name: one for name, one in methods.items() if not (isinstance(one, str) and one in NEED_REGIONS)}
        methods = methods or {"penalized": "penalized"}
        notes.append(
            f"{last_step(model)} has no decision region, so it is searched by a local method, of which nothing is "
            f"proven ({names} need a region)."
        )
    actionable = _by_position(options.actionable, view, list(sample.columns))
    for i, (name, method) in enumerate(methods.items()):
        try:
            built = _method(method, cost, schema, actionable, options) if isinstance(method, str) else method
            explainer = built.fit(model, part, labels)
            if exact:  # compiles what workers will need, and finds classes without a density
                for label in _aims(view, options.target):
                    explainer.explain(part[:1], label)
            explainers[name] = explainer
        except (TypeError, ValueError) as error:
            if i == 0:  # the method in use has to be there; the others are alternatives
                raise
            unavailable[name] = str(error)
    free = None
    if exact:
        restricted = actionable is not None or next(iter(methods.values())) != "closest"
        free = (
            _method("closest", cost, schema, None, options).fit(model, part)
            if restricted
            else next(iter(explainers.values()))
        )
    described = {name: say(one) for name, one in options.named_perturbations().items()}
    noises, more = _perturbations(options, view, codes)
    notes += more
    if not noises:
        raise AuditError(
            "None of the perturbations changes anything in this table: name another one. " + " ".join(more)
        )
    unit = "SD" if options.cost in ("l1", "l2") else "units of the cost"
    return Setup(view, explainers, free, distance, noises, described, unavailable, exact, unit, notes)


def _by_position(actionable: Actionable | None, view: View, columns: list[str]) -> Actionable | None:
    """The same for a model that was fitted without names."""
    if actionable is None or view.feature_names is not None or view.exact:
        return actionable

    def at(column: Any) -> Any:
        return columns.index(column) if column in columns else column

    return replace(
        actionable,
        immutable=[at(one) for one in actionable.immutable],
        increase=[at(one) for one in actionable.increase],
        decrease=[at(one) for one in actionable.decrease],
        bounds={at(one): ends for one, ends in actionable.bounds.items()},
    )


def _aims(view: View, target: Any) -> list[Any]:
    """Labels that explanations may aim at."""
    labels = view.classes.tolist()
    return [label for label in labels if str(label) == str(target)] or labels


def _distance(view: View, options: Options) -> Any:
    """The cost, in the units of the table: it is how far people and explanations are apart as well."""
    if not view.reader.plain and (options.cost == "l2" or isinstance(options.cost, L2)):
        raise AuditError(
            'cost: with levels or whole numbers in the table the cost is a sum over columns, "l1"; got an l2 cost.'
        )
    return cost_for(options.cost, view.schema, view.schema.names)


def _method(name: str, cost: Any, schema: Schema | None, actionable: Actionable | None, options: Options) -> Any:
    """A method by its name, told as much as it has fields for."""
    kind = METHODS[name]
    takes = {f.name: f for f in fields(kind) if f.init}
    if actionable is not None and "actionable" not in takes:
        raise AuditError(
            f"The method {name!r} cannot be told what people can change: {kind.__name__} has no field 'actionable'. "
            "Add one, or leave [actionable] out."
        )
    told = {"cost": cost, "schema": schema, "actionable": actionable} | SET_BY_AUDITS.get(name, {})
    if getattr(kind, "l2_only", False):
        told["cost"] = _euclidean(cost, schema)
    if "density" in takes and takes["density"].default is not None:  # one that the method cannot do without
        told["density"] = options.density
    return kind(**{field_name: value for field_name, value in told.items() if field_name in takes})


def _euclidean(cost: Any, schema: Schema | None) -> Any:
    """The l2 cost of the same units: only that lets nobody's explanation move further than they do."""
    if isinstance(cost, str) and cost not in ("l1", "l2") and schema is not None:
        cost = cost_for(cost, schema, schema.names)
    if isinstance(cost, L1) and cost.weights is not None:
        return L2(weights=np.asarray(cost.weights) ** 2)
    return cost if isinstance(cost, L2) else "l2"


def _perturbations(options: Options, view: View, codes: FloatArray) -> tuple[dict[str, Perturbation], list[str]]:
    """Perturbations that know their columns and have learned; one that does nothing is left out with a note."""
    complete = codes[np.isfinite(codes).all(axis=1)]
    fitted_by_name: dict[str, Perturbation] = {}
    notes = []
    for name, perturbation in options.named_perturbations().items():
        by_column = not view.reader.plain and not isinstance(perturbation, Mixed)
        suited = Mixed({}, perturbation) if by_column or isinstance(perturbation, Rounding | Count) else perturbation
        few = complete[:TRIED]
        try:
            if isinstance(suited, Mixed):
                suited = suited.bind(view.schema)
            fitted = learned(suited, complete)
            moved = np.asarray(fitted(few.copy(), np.random.default_rng(0)))
        except (TypeError, ValueError) as error:
            raise AuditError(f"The perturbation {name!r} does not suit the table. {error}") from None
        except Exception as error:  # its own code may raise anything
            raise AuditError(f"The perturbation {name!r} fails with {type(error).__name__}: {error}.") from error
        if isinstance(suited, Mixed) and not suited.columns:
            raise AuditError(f"The perturbation {name!r} suits no column of the table.")
        if (moved == few).all():
            notes.append(_nothing(name, suited))
            continue
        fitted_by_name[name] = fitted
    return fitted_by_name, notes


def _nothing(name: str, perturbation: Any) -> str:
    if isinstance(perturbation, Mixed) and isinstance(perturbation.others, Rounding):
        return (
            f"The perturbation {name!r} was not measured: no column is recorded so coarsely that "
            "rounding hides anything."
        )
    return f"The perturbation {name!r} was not measured: it changes nothing in this table."


def say(value: Any) -> str:
    """An object as it would be written in Python, without what was left out or learned."""
    if not is_dataclass(value) or isinstance(value, type):
        shown = repr(value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value)
        return shown if len(shown) < 80 else f"<{type(value).__name__}>"
    parts: list[str] = []
    for i, f in enumerate(f for f in fields(value) if f.init and f.repr):
        held = getattr(value, f.name)
        if f.default is MISSING or not (held is f.default or held is None):
            parts.append(say(held) if i == 0 else f"{f.name}={say(held)}")
    return f"{type(value).__name__}({', '.join(parts)})"
