"""What an audit can be told, from Python or from a TOML file; everything has a default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from evenhand.auditing.errors import AuditError
from evenhand.auditing.gates import Condition, parse_gate
from evenhand.costs import L1, L2
from evenhand.density import HighDensity
from evenhand.perturbations.columns import Rounding
from evenhand.perturbations.numbers import Gaussian, Relative
from evenhand.settings import nearest
from evenhand.table.limits import Actionable

METHODS = ("closest", "plausible", "steady", "penalized")
DRAWS, PEOPLE, PAIRS, LOOKUP = 20, 2000, 50_000, 60


@dataclass(frozen=True, kw_only=True)
class Options:
    """Everything that :func:`audit` can be told besides the model and the people; see there."""

    features: Sequence[str] | None = None
    label: str | None = None
    id: str | None = None
    sensitive: Any = ()
    target: Any = None
    cost: Any = "l1"
    methods: Any = ("closest", "plausible", "steady")
    density: HighDensity = field(default_factory=lambda: HighDensity(components=[1, 2, 3]))
    actionable: Actionable | None = None
    perturbations: Any = None
    on_flip: str = "skip"
    draws: int = DRAWS
    tolerance: float | None = None
    max_draws: int = 200
    people: int = PEOPLE
    explain: int | None = None
    neighbours: int = 5
    within: float | None = None
    apart: float | None = None
    pair_people: int = PAIRS
    lookup: int | Sequence[Any] = LOOKUP
    gates: Sequence[str] | None = None
    redact: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (
            ("draws", 2),
            ("max_draws", 2),
            ("people", 1),
            ("neighbours", 1),
            ("pair_people", 2),
            ("seed", 0),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise AuditError(f"{name} must be a whole number >= {least}, got {value!r}.")
        for name in ("tolerance", "within", "apart"):
            value = getattr(self, name)
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12
            ):
                raise AuditError(f"{name} must be a number > 0, got {value!r}.")
        if self.explain is not None and (not isinstance(self.explain, Integral) or self.explain < 1):
            raise AuditError(f"explain must be a whole number >= 1, or left out for everybody; got {self.explain!r}.")
        if self.cost not in ("l1", "l2") and not isinstance(self.cost, L1 | L2):
            raise AuditError(
                f'cost must be "l1" or "l2", in units of each column, or L1(...) or L2(...); got {self.cost!r}.'
            )
        if self.on_flip not in ("swap", "keep", "skip"):
            raise AuditError(f"on_flip must be one of swap, keep, skip; got {self.on_flip!r}.")
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
        if not named:
            raise AuditError(f"methods is empty: name the one in use first; possible are {', '.join(METHODS)}.")
        for name, method in named.items():
            if isinstance(method, str):
                if method not in METHODS:
                    raise AuditError(
                        f"There is no method {method!r}.{nearest(method, METHODS)} Possible are {', '.join(METHODS)}."
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
        found = self.perturbations
        if callable(found) and not isinstance(found, Mapping):
            found = {"noise": found}
        if not isinstance(found, Mapping) or not found:
            raise AuditError(
                f"perturbations must name at least one, such as {{'noise': Relative(Gaussian(0.1))}}; got {found!r}."
            )
        for name, one in found.items():
            if not callable(one) or isinstance(one, type):
                raise AuditError(f"The perturbation {name!r} must be a function (X, rng) -> X, got {one!r}.")
        return dict(found)

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
