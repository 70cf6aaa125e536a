"""audit.toml: what to audit and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.auditing.errors import AuditError
from evenhand.auditing.options import DRAWS, LOOKUP, METHODS, PAIRS, PEOPLE
from evenhand.density import HighDensity
from evenhand.perturbations.columns import Categorical, Count, Mixed, Rounding
from evenhand.perturbations.numbers import Gaussian, Mask, Relative, Uniform
from evenhand.settings import flag, key, list_of, maybe, number, one_of, read_table, read_toml, text, whole
from evenhand.table.limits import Actionable

# Keys of the file that are options of an audit as they are.
SAME = ("label", "features", "id", "sensitive", "target", "cost", "methods", "on_flip", "draws", "tolerance")
ALSO_SAME = ("max_draws", "people", "explain", "lookup", "gates", "redact", "seed")
KINDS = ("gaussian", "uniform", "mask", "rounding", "count", "levels")


def _label(value: Any) -> str:
    return "" if isinstance(value, str | int | float | bool) else "a label"


def _table(value: Any) -> str:
    return "" if isinstance(value, dict) else "a table"


def _lookup(value: Any) -> str:
    listed = isinstance(value, list) and all(isinstance(one, str | int) and not isinstance(one, bool) for one in value)
    good = listed or not whole(0)(value)
    return "" if good else "a whole number, or a list of ids"


@dataclass(frozen=True)
class AuditFile:
    """All keys of an audit file; only `model` and `data` have no default."""

    model: str = key(text)
    data: str = key(text)
    label: str | None = key(maybe(text), None)
    features: tuple[str, ...] | None = key(maybe(list_of(text)), None)
    id: str | None = key(maybe(text), None)
    sensitive: tuple[str, ...] = key(list_of(text, empty=True), ())
    target: object = key(_label, None)
    cost: str = key(one_of("l1", "l2"), "l1")
    methods: tuple[str, ...] = key(list_of(one_of(*METHODS)), ("closest", "plausible", "steady"))
    on_flip: str = key(one_of("skip", "swap", "keep"), "skip")
    draws: int = key(whole(2), DRAWS)
    tolerance: float | None = key(maybe(number(1e-6, 1.0)), None)
    max_draws: int = key(whole(2), 200)
    people: int = key(whole(1), PEOPLE)
    explain: int | None = key(maybe(whole(1)), None)
    lookup: object = key(_lookup, LOOKUP)
    gates: tuple[str, ...] | None = key(maybe(list_of(text, empty=True)), None)
    redact: bool = key(flag, False)
    seed: int = key(whole(0), 0)
    out: str = key(text, "results/audit")
    actionable: object = key(_table, None)
    density: object = key(_table, None)
    perturbations: object = key(_table, None)
    pairs: object = key(_table, None)


@dataclass(frozen=True)
class _Density:
    quantile: float = key(number(0, 1), 0.5)
    components: tuple[int, ...] = key(list_of(whole(1)), (1, 2, 3))


@dataclass(frozen=True)
class _Pairs:
    neighbours: int = key(whole(1), 5)
    within: float | None = key(maybe(number(1e-12)), None)
    apart: float | None = key(maybe(number(1e-12)), None)
    people: int = key(whole(2), PAIRS)


@dataclass(frozen=True)
class _Actionable:
    immutable: tuple[str, ...] = key(list_of(text, empty=True), ())
    increase: tuple[str, ...] = key(list_of(text, empty=True), ())
    decrease: tuple[str, ...] = key(list_of(text, empty=True), ())
    bounds: object = key(_table, None)
    levels: object = key(_table, None)


@dataclass(frozen=True)
class _Perturbation:
    kind: str = key(one_of(*KINDS))
    covariance: float = key(number(0), 0.1)
    radius: float = key(number(0), 0.1)
    relative: bool = key(flag, True)
    features: int = key(whole(1), 1)
    step: float | None = key(maybe(number(0)), None)
    by: int = key(whole(1), 1)
    probability: float = key(number(0, 1), 0.05)


@dataclass(frozen=True)
class Wanted:
    """What a file asks for: `options` are keyword arguments of :func:`audit`."""

    model: str
    data: Path
    out: Path
    options: dict[str, Any]
    folder: Path


def read_audit(path: Path) -> Wanted:
    """Read and check an audit file; paths in it start at its own folder."""
    return parse_audit(read_toml(path, AuditError), path.parent, path.name)


def parse_audit(content: dict[str, Any], folder: Path, name: str = "the audit") -> Wanted:
    """Check the content of an audit file."""
    found: AuditFile = read_table(content, AuditFile, name, AuditError)
    options: dict[str, Any] = {one: getattr(found, one) for one in (*SAME, *ALSO_SAME)}
    if "draws" in content and "tolerance" in content:
        raise AuditError(f"{name}: give draws or tolerance, not both: a tolerance finds the number of draws by itself.")
    if found.density is not None:
        density = read_table(found.density, _Density, "density", AuditError)
        options["density"] = HighDensity(quantile=density.quantile, components=list(density.components))
    if found.pairs is not None:
        pairs = read_table(found.pairs, _Pairs, "pairs", AuditError)
        options |= {"neighbours": pairs.neighbours, "within": pairs.within, "apart": pairs.apart}
        options["pair_people"] = pairs.people
    if found.actionable is not None:
        options["actionable"] = _limits(read_table(found.actionable, _Actionable, "actionable", AuditError))
    if found.perturbations is not None:
        if not found.perturbations:
            raise AuditError("perturbations is empty: name at least one, such as [perturbations.noise].")
        options["perturbations"] = {
            one: _perturbation(one, table) for one, table in _content(found.perturbations).items()
        }
    return Wanted(found.model, folder / found.data, folder / found.out, options, folder)


def _content(table: object) -> dict[str, Any]:
    return dict(table) if isinstance(table, dict) else {}


def _limits(found: _Actionable) -> Actionable:
    bounds: dict[Any, Any] = {}
    for name, ends in _content(found.bounds).items():
        if not isinstance(ends, list) or len(ends) != 2:
            raise AuditError(
                f'actionable.bounds.{name} must be a pair such as [0, 100]; an open end is "-inf" or '
                f'"inf"; got {ends!r}.'
            )
        try:
            bounds[name] = (float(ends[0]), float(ends[1]))
        except (TypeError, ValueError):
            raise AuditError(f"actionable.bounds.{name} must be two numbers, got {ends!r}.") from None
    levels: dict[Any, Any] = {}
    for name, some in _content(found.levels).items():
        if not isinstance(some, list) or not some:
            raise AuditError(f"actionable.levels.{name} must be a list of levels, got {some!r}.")
        levels[name] = some
    return Actionable(found.immutable, found.increase, found.decrease, bounds, levels)


USED = {
    "gaussian": ("covariance", "relative"),
    "uniform": ("radius", "relative"),
    "mask": ("features",),
    "rounding": ("step",),
    "count": ("by",),
    "levels": ("probability",),
}


def _perturbation(name: str, table: Any) -> Any:
    found: _Perturbation = read_table(table, _Perturbation, f"perturbations.{name}", AuditError)
    strange = [one for one in table if one not in ("kind", *USED[found.kind])]
    if strange:
        possible = ", ".join(USED[found.kind])
        raise AuditError(f"perturbations.{name}: {strange[0]!r} means nothing to kind {found.kind!r}; {possible} does.")
    if found.kind == "rounding":
        return Rounding(found.step)
    if found.kind == "count":
        return Count(found.by)
    if found.kind == "levels":
        return Mixed({}, Categorical(found.probability))
    noise: Any = Mask(found.features) if found.kind == "mask" else Gaussian(found.covariance)
    if found.kind == "uniform":
        noise = Uniform(found.radius)
    return Relative(noise) if found.relative and found.kind != "mask" else noise
