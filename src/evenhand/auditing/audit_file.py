"""audit.toml: what to audit and how."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, make_dataclass
from pathlib import Path
from typing import Any

import cloudpickle

from evenhand.auditing.errors import AuditError
from evenhand.auditing.options import keys_of
from evenhand.density import HighDensity
from evenhand.perturbations import PERTURBATIONS, Categorical, Mixed, Relative, parameters_of
from evenhand.perturbations.registry import ROWS
from evenhand.settings import (
    Check,
    check_known,
    flag,
    key,
    list_of,
    maybe,
    nearest,
    number,
    read_table,
    read_toml,
    text,
    whole,
)
from evenhand.study.errors import StudyError
from evenhand.study.modules import import_modules, read_modules
from evenhand.table.actionable import Actionable

KINDS = ("gaussian", "uniform", "mask", "rounding", "count", "levels")  # listed first; others follow as registered
OF_OTHERS = (Mixed, Relative)  # made of other perturbations, which a file names instead


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


# What evenhand's own perturbations must be told, and are told by an audit that says nothing.
_VALUES: dict[str, Check] = {
    "covariance": number(0),
    "radius": number(0),
    "relative": flag,
    "features": whole(1),
    "step": maybe(number(0)),
    "by": whole(1),
    "probability": number(0, 1),
}
_DEFAULTS = {"covariance": 0.1, "radius": 0.1, "probability": 0.05}
_RELATIVE = {"gaussian": True, "uniform": True, "mask": None, "rounding": None, "count": None, "levels": None}


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
    """Check the content of an audit file, once what it takes from outside is imported."""
    content = dict(content)
    check_known(content, (*(f.name for f in fields(AuditFile)), "modules"), name, AuditError)
    _import(content.pop("modules", []), folder)
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


def _import(value: Any, folder: Path) -> None:
    """Import the modules that a file names, as a study does, so that what they register can be named in it."""
    try:
        modules = read_modules(value)
        import_modules(modules, folder)
    except StudyError as error:
        raise AuditError(str(error).replace("folder of the study", "folder of the audit file")) from error.__cause__
    for module in modules:
        if module.endswith(".py"):  # workers cannot import it by a name: what it defines is sent whole
            loaded = sys.modules[f"evenhand_study_{Path(module).stem}"]
            cloudpickle.register_pickle_by_value(loaded)


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


def possible_kinds() -> list[str]:
    """Names of the perturbations that a file can name: all that need neither other ones nor people to be made."""

    def can_be_named(cls: type[Any]) -> bool:
        return cls not in OF_OTHERS and not any(f.metadata.get("people") for f in fields(cls))

    return [*KINDS, *(name for name, cls in PERTURBATIONS.items() if name not in KINDS and can_be_named(cls))]


def _perturbation(name: str, table: Any) -> Any:
    """The table ``[perturbations.NAME]`` as a perturbation."""
    where = f"perturbations.{name}"
    if not isinstance(table, Mapping):
        raise AuditError(f"{where} must be a table, got {table!r}.")
    kind = _checked_kind(table, where)
    cls: type[Any] = Categorical if kind == "levels" else PERTURBATIONS[kind]
    ours = cls.__module__.startswith("evenhand.")
    for key_name, check in _VALUES.items() if ours else ():
        if key_name in table and (problem := check(table[key_name])):
            raise AuditError(f"{where}.{key_name} must be {problem}; got {table[key_name]!r}.")
    known = parameters_of(cls)
    takes_rows = ROWS in getattr(cls, "suits", (ROWS,))
    relative = _RELATIVE.get(kind, False if takes_rows and "relative" not in known else None)
    check_known(table, ("kind", *known, *(() if relative is None else ("relative",))), where, AuditError)
    values = {key_name: _plain(value) for key_name, value in table.items() if key_name in known}
    if ours:
        values = {key_name: value for key_name, value in _DEFAULTS.items() if key_name in known} | values
    missing = [k for k, f in known.items() if k not in values and f.default is f.default_factory is MISSING]
    if missing:
        raise AuditError(f"{where} has no {missing[0]!r}, which {kind!r} needs.")
    if relative is not None:
        relative = table.get("relative", relative)
        if problem := flag(relative):
            raise AuditError(f"{where}.relative must be {problem}; got {relative!r}.")
    # Bounds are in the units of the table, and noise that is relative is not.
    outer = {"bounds": values.pop("bounds")} if relative and "bounds" in values else {}
    try:
        made = cls(**{known[key_name].name: value for key_name, value in values.items()})
        made = Relative(made, **outer) if relative else made
    except (TypeError, ValueError) as error:
        raise AuditError(f"{where}: {error}") from None
    # One that does not take whole rows goes column by column; an audit does so with rounding by itself.
    return made if takes_rows or kind == "rounding" else Mixed({}, made)


def _checked_kind(table: Mapping[str, Any], where: str) -> str:
    possible = possible_kinds()
    if "kind" not in table:
        raise AuditError(f"{where} has no 'kind'; it must be one of {', '.join(possible)}.")
    kind = table["kind"]
    if not isinstance(kind, str) or kind not in possible:
        raise AuditError(
            f"{where}.kind must be one of {', '.join(possible)}; got {kind!r}.{nearest(str(kind), possible)} "
            'A Python file can register others, if the audit file names it: modules = ["my_perturbations.py"].'
        )
    return kind


def _plain(value: Any) -> Any:
    """Lists as tuples: what a perturbation is told does not change."""
    return tuple(map(_plain, value)) if isinstance(value, list) else value
