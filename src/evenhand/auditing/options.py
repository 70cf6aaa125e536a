"""What an audit can be told, from Python or from a TOML file; everything has a default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from numbers import Integral
from typing import Any

import pandas as pd

from evenhand.auditing.errors import AuditError
from evenhand.auditing.gates import Condition, parse_gate
from evenhand.costs import COSTS, L1, L2
from evenhand.density import HighDensity
from evenhand.methods import METHODS
from evenhand.perturbations import Gaussian, Relative, Rounding
from evenhand.settings import Check, flag, known_in, list_of, maybe, nearest, number, one_of, text, whole
from evenhand.table.actionable import Actionable

__all__ = ["METHODS", "Options", "keys_of", "option"]
USUAL = ("closest", "plausible", "steady")  # methods of an audit that names none


def _at_least(least: int) -> Check:
    """A whole number, of Python or numpy."""

    def check(value: Any) -> str:
        good = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least
        return "" if good else f"a whole number >= {least},"

    return check


def _positive(value: Any) -> str:
    good = value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e12)
    return "" if good else "a number > 0,"


def _some_people(value: Any) -> str:
    good = value is None or (isinstance(value, Integral) and int(value) >= 1)
    return "" if good else "a whole number >= 1, or left out for everybody;"


def _cost(value: Any) -> str:
    if isinstance(value, L1 | L2) or (isinstance(value, str) and value in COSTS):
        return ""
    hint = nearest(value, COSTS) if isinstance(value, str) else ""
    *names, last = (f'"{name}"' for name in COSTS)
    return f"{', '.join(names)} or {last}, in units of each column, or L1(...) or L2(...);{hint}"


def _flip(value: Any) -> str:
    return "" if value in ("swap", "keep", "skip") else "one of swap, keep, skip;"


def _label(value: Any) -> str:
    return "" if isinstance(value, str | int | float | bool) else "a label"


def _lookup(value: Any) -> str:
    listed = isinstance(value, list) and all(isinstance(one, str | int) and not isinstance(one, bool) for one in value)
    good = listed or not whole(0)(value)
    return "" if good else "a whole number, or a list of ids"


def option(
    default: Any,
    *,
    check: Check | None = None,
    file: Check | None = None,
    many: bool = False,
    table: str | None = None,
    key: str | None = None,
) -> Any:
    """A field of :class:`Options`, and the key of an audit file that fills it.

    Parameters
    ----------
    default : object
        Of both.
    check : callable, optional
        What a value from Python must be, up to "got ..."; empty if it is.
    file : callable, optional
        What a value from a file must be; without it the file has no such key, or makes the value of a table.
    many : bool
        Whether the file holds a list.
    table, key : str, optional
        The table of the file that the key is in, and its name there if that is another one.
    """
    return field(default=default, metadata={"check": check, "file": file, "many": many, "table": table, "key": key})


@dataclass(frozen=True, kw_only=True)
class Options:
    """Everything that :func:`audit` can be told besides the model and the people; see there."""

    features: Sequence[str] | None = option(None, file=maybe(list_of(text)), many=True)
    label: str | None = option(None, file=maybe(text))
    id: str | None = option(None, file=maybe(text))
    sensitive: str | Sequence[str] | pd.DataFrame = option(  # noqa: RUF009 - a field
        (), file=list_of(text, empty=True), many=True
    )
    target: object = option(None, file=_label)
    cost: str | L1 | L2 = option("l1", check=_cost, file=known_in(COSTS))  # noqa: RUF009 - a field
    methods: str | Sequence[str] | Mapping[str, Any] = option(USUAL, file=list_of(known_in(METHODS, USUAL)), many=True)
    density: HighDensity = field(default_factory=lambda: HighDensity(components=[1, 2, 3]))
    actionable: Actionable | None = None
    perturbations: Any = None
    on_flip: str = option("skip", check=_flip, file=one_of("skip", "swap", "keep"))
    draws: int = option(20, check=_at_least(2), file=whole(2))
    tolerance: float | None = option(None, check=_positive, file=maybe(number(1e-6, 1.0)))
    max_draws: int = option(200, check=_at_least(2), file=whole(2))
    people: int = option(2000, check=_at_least(1), file=whole(1))
    explain: int | None = option(None, check=_some_people, file=maybe(whole(1)))
    neighbours: int = option(5, check=_at_least(1), file=whole(1), table="pairs")
    within: float | None = option(None, check=_positive, file=maybe(number(1e-12)), table="pairs")
    apart: float | None = option(None, check=_positive, file=maybe(number(1e-12)), table="pairs")
    pair_people: int = option(50_000, check=_at_least(2), file=whole(2), table="pairs", key="people")
    lookup: int | Sequence[Any] = option(60, file=_lookup)
    gates: Sequence[str] | None = option(None, file=maybe(list_of(text, empty=True)), many=True)
    redact: bool = option(False, file=flag)
    seed: int = option(0, check=_at_least(0), file=whole(0))

    def __post_init__(self) -> None:
        for f in fields(self):
            check, value = f.metadata.get("check"), getattr(self, f.name)
            if check is not None and (wanted := check(value)):
                raise AuditError(f"{f.name} must be {wanted} got {value!r}.")
        for name in ("features", "gates"):
            if isinstance(getattr(self, name), str):
                raise AuditError(f"{name} must be a list, got {getattr(self, name)!r}. Write {name} = [...].")
        for name, columns in (("features", self.features or ()), ("sensitive", self.sensitive_names())):
            twice = [one for one in columns if list(columns).count(one) > 1]
            if twice:
                raise AuditError(f"{name} names {twice[0]!r} twice.")
        self.named_methods()
        self.parsed_gates()

    def named_methods(self) -> dict[str, Any]:
        """Methods by name, the one in use first: a name that evenhand knows, or any object with ``fit``."""
        methods = self.methods
        if isinstance(methods, str):
            methods = (methods,)
        named = dict(methods) if isinstance(methods, Mapping) else {name: name for name in methods}
        known = list(dict.fromkeys((*USUAL, *METHODS)))
        if not named:
            raise AuditError(f"methods is empty: name the one in use first; possible are {', '.join(known)}.")
        for name, method in named.items():
            if isinstance(method, str):
                if method not in METHODS:
                    raise AuditError(
                        f"There is no method {method!r}.{nearest(method, known)} Possible are {', '.join(known)}."
                    )
            elif not callable(getattr(method, "fit", None)):
                raise AuditError(
                    f"The method {name!r} must be a name or have fit(model, X, y), got {type(method).__name__}."
                )
        return named

    def named_perturbations(self) -> dict[str, Any]:
        """Perturbations by name, the one that figures show first."""
        if self.perturbations is None:
            return {"noise": Relative(Gaussian(0.1)), "rounding": Rounding()}
        perturbations = self.perturbations
        if callable(perturbations) and not isinstance(perturbations, Mapping):
            perturbations = {"noise": perturbations}
        if not isinstance(perturbations, Mapping) or not perturbations:
            raise AuditError(
                f"perturbations must name at least one, such as {{'noise': Relative(Gaussian(0.1))}}; "
                f"got {perturbations!r}."
            )
        for name, perturbation in perturbations.items():
            if not callable(perturbation) or isinstance(perturbation, type):
                raise AuditError(f"The perturbation {name!r} must be a function (X, rng) -> X, got {perturbation!r}.")
        return dict(perturbations)

    def parsed_gates(self) -> list[Condition] | None:
        """The gates, or None for those that go with the audit."""
        if self.gates is None:
            return None
        conditions = [parse_gate(text) for text in self.gates]
        noises, columns = self.named_perturbations(), self.sensitive_names()
        for condition in conditions:
            about, named = condition.gate.argument, condition.argument
            if about == "perturbation" and named is not None and named not in noises:
                raise AuditError(
                    f"The gate {condition.text!r} names the perturbation {named!r}; there are {', '.join(noises)}."
                )
            if about == "column" and named is not None and named not in columns:
                raise AuditError(
                    f"The gate {condition.text!r} names the column {named!r}, which is not among "
                    f"the sensitive ones: {', '.join(columns) or 'none'}."
                )
        return conditions

    def sensitive_names(self) -> list[str]:
        """Names of the sensitive columns."""
        if isinstance(self.sensitive, str):
            return [self.sensitive]
        if hasattr(self.sensitive, "columns"):
            return [str(name) for name in self.sensitive.columns]
        return [str(name) for name in self.sensitive]


def keys_of(table: str | None = None) -> dict[str, Field[Any]]:
    """Keys of an audit file, or of one of its tables, and the options that they fill as they are."""
    options = [f for f in fields(Options) if f.metadata.get("file") is not None and f.metadata["table"] == table]
    return {f.metadata["key"] or f.name: f for f in options}
