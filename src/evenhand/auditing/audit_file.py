"""audit.toml: what to audit and how."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any

from evenhand.auditing.errors import AuditError
from evenhand.auditing.options import keys_of
from evenhand.density import HighDensity
from evenhand.perturbations import Categorical, Count, Gaussian, Mask, Mixed, Relative, Rounding, Uniform
from evenhand.settings import flag, key, list_of, maybe, number, one_of, read_table, read_toml, text, whole
from evenhand.table.limits import Actionable

KINDS = ("gaussian", "uniform", "mask", "rounding", "count", "levels")


def _table(value: Any) -> str:
    return "" if isinstance(value, dict) else "a table"


def _keys(name: str, keys: dict[str, Any]) -> type[Any]:
    """A table of the file as a dataclass; a list is one by its type, which :func:`read_table` goes by."""
    return make_dataclass(name, [(key_name, made[0], made[1]) for key_name, made in keys.items()], frozen=True)


def _of_options(table: str | None = None) -> dict[str, Any]:
    """Keys that are options of an audit as they are."""
    return {
        key_name: ("tuple" if f.metadata["many"] else "object", key(f.metadata["file"], f.default))
        for key_name, f in keys_of(table).items()
    }


# Keys in the order in which messages list them: first what every file begins with.
_FIRST = {"model": ("str", key(text)), "data": ("str", key(text)), "label": _of_options()["label"]}
_TABLES = ("actionable", "density", "perturbations", "pairs")
AuditFile = _keys(
    "AuditFile",
    _FIRST
    | _of_options()
    | {"out": ("str", key(text, "results/audit"))}
    | {name: ("object", key(_table, None)) for name in _TABLES},
)
PairsTable = _keys("PairsTable", _of_options("pairs"))


@dataclass(frozen=True)
class _Density:
    quantile: float = key(number(0, 1), 0.5)
    components: tuple[int, ...] = key(list_of(whole(1)), (1, 2, 3))


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
    file = read_table(content, AuditFile, name, AuditError)
    options: dict[str, Any] = {f.name: getattr(file, key_name) for key_name, f in keys_of().items()}
    if "draws" in content and "tolerance" in content:
        raise AuditError(f"{name}: give draws or tolerance, not both: a tolerance finds the number of draws by itself.")
    if file.density is not None:
        density = read_table(file.density, _Density, "density", AuditError)
        options["density"] = HighDensity(quantile=density.quantile, components=list(density.components))
    if file.pairs is not None:
        pairs = read_table(file.pairs, PairsTable, "pairs", AuditError)
        options |= {f.name: getattr(pairs, key_name) for key_name, f in keys_of("pairs").items()}
    if file.actionable is not None:
        options["actionable"] = _limits(read_table(file.actionable, _Actionable, "actionable", AuditError))
    if file.perturbations is not None:
        if not file.perturbations:
            raise AuditError("perturbations is empty: name at least one, such as [perturbations.noise].")
        options["perturbations"] = {
            key_name: _perturbation(key_name, table) for key_name, table in _content(file.perturbations).items()
        }
    return Wanted(file.model, folder / file.data, folder / file.out, options, folder)


def _content(table: object) -> dict[str, Any]:
    return dict(table) if isinstance(table, dict) else {}


def _limits(table: _Actionable) -> Actionable:
    bounds: dict[Any, Any] = {}
    for name, ends in _content(table.bounds).items():
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
    for name, some in _content(table.levels).items():
        if not isinstance(some, list) or not some:
            raise AuditError(f"actionable.levels.{name} must be a list of levels, got {some!r}.")
        levels[name] = some
    return Actionable(table.immutable, table.increase, table.decrease, bounds, levels)


USED = {
    "gaussian": ("covariance", "relative"),
    "uniform": ("radius", "relative"),
    "mask": ("features",),
    "rounding": ("step",),
    "count": ("by",),
    "levels": ("probability",),
}


def _perturbation(name: str, table: Any) -> Any:
    settings: _Perturbation = read_table(table, _Perturbation, f"perturbations.{name}", AuditError)
    strange = [key_name for key_name in table if key_name not in ("kind", *USED[settings.kind])]
    if strange:
        possible = ", ".join(USED[settings.kind])
        raise AuditError(
            f"perturbations.{name}: {strange[0]!r} means nothing to kind {settings.kind!r}; {possible} does."
        )
    if settings.kind == "rounding":
        return Rounding(settings.step)
    if settings.kind == "count":
        return Count(settings.by)
    if settings.kind == "levels":
        return Mixed({}, Categorical(settings.probability))
    noise: Any = Mask(settings.features) if settings.kind == "mask" else Gaussian(settings.covariance)
    if settings.kind == "uniform":
        noise = Uniform(settings.radius)
    return Relative(noise) if settings.relative and settings.kind != "mask" else noise
