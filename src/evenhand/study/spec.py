"""A study as data: what a TOML file may say, checked before anything runs."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

BUNDLED = ("wine", "breast_cancer", "digits", "iris")


class StudyError(ValueError):
    """Something in a study file is wrong; the message names the key and what is possible."""


def _whole(least: int) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        good = isinstance(value, int) and not isinstance(value, bool) and value >= least
        return "" if good else f"a whole number >= {least}"

    return check


def _number(least: float, most: float = 1e12) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        good = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
        return "" if good else f"a number from {least:g} to {most:g}"

    return check


def _one_of(*choices: str) -> Callable[[Any], str]:
    return lambda value: "" if value in choices else "one of " + ", ".join(choices)


def _text(value: Any) -> str:
    return "" if isinstance(value, str) and value else "a text"


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else "true or false"


def _maybe(check: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: "" if value is None else check(value)


def _list_of(check: Callable[[Any], str]) -> Callable[[Any], str]:
    def each(value: Any) -> str:
        if not isinstance(value, tuple) or not value:
            return "a list"
        return next((f"a list, each {text}" for text in map(check, value) if text), "")

    return each


def _key(check: Callable[[Any], str], default: Any = MISSING) -> Any:
    if default is MISSING:
        return field(metadata={"check": check})
    return field(default=default, metadata={"check": check})


@dataclass(frozen=True)
class DataSpec:
    """Where people come from."""

    name: str
    source: str = _key(_text)  # bundled, "blobs", or a path
    label: str | None = _key(_maybe(_text), None)  # column of the labels, for a path
    pca: int | None = _key(_maybe(_whole(1)), None)
    shuffle: int = _key(_whole(0), 42)
    dim: tuple[int, ...] = _key(_list_of(_whole(1)), (2,))  # of blobs, one data set each
    samples: int = _key(_whole(20), 1000)
    spread: float = _key(_number(0), 5.0)
    content: str = ""  # hash of the file, not a key: another content is another data set, for caches and checkpoints


@dataclass(frozen=True)
class ModelSpec:
    """What is explained."""

    name: str
    kind: str = _key(_one_of("softmax", "tree", "glvq"))
    max_depth: int | None = _key(_maybe(_whole(1)), None)
    prototypes: int = _key(_whole(1), 1)
    max_iter: int | None = _key(_maybe(_whole(1)), None)


@dataclass(frozen=True)
class MethodSpec:
    """How it is explained."""

    name: str
    kind: str = _key(_one_of("closest", "plausible", "steady"))
    components: tuple[int, ...] = _key(_list_of(_whole(1)), (1, 2, 3, 4, 5, 6, 7, 8, 9))
    quantile: float = _key(_number(0, 1), 0.5)


@dataclass(frozen=True)
class PerturbationSpec:
    """What could have been different."""

    name: str
    kind: str = _key(_one_of("gaussian", "uniform", "mask", "neighbor"))
    covariance: float = _key(_number(0), 1.0)
    radius: float = _key(_number(0), 1.0)
    features: tuple[int, ...] | str = _key(
        lambda value: "" if value == "half" else _list_of(_whole(0))(value) and 'a list of whole numbers, or "half"',
        (1,),
    )
    k: int = _key(_whole(1), 5)
    relative: bool = _key(_flag, False)


@dataclass(frozen=True)
class ExperimentSpec:
    """A grid: everything in one list with everything in the others."""

    name: str = _key(_text)
    data: tuple[str, ...] = _key(_list_of(_text))
    models: tuple[str, ...] = _key(_list_of(_text))
    methods: tuple[str, ...] = _key(_list_of(_text))
    perturbations: tuple[str, ...] = _key(_list_of(_text))
    scale: tuple[str, ...] = _key(_list_of(_one_of("raw", "standardised")), ("raw",))
    cost: tuple[str, ...] = _key(_list_of(_one_of("l1", "l2")), ("l1",))
    on_flip: tuple[str, ...] = _key(_list_of(_one_of("swap", "keep", "skip")), ("swap",))
    distance: str = _key(_one_of("l1", "l2"), "l1")
    target: str = _key(_one_of("random", "cheapest"), "random")
    people: str = _key(_one_of("correct", "all"), "correct")
    draws: int = _key(_whole(1), 1)


@dataclass(frozen=True)
class Study:
    """All of a study file."""

    seed: int
    folds: int
    data: Mapping[str, DataSpec]
    models: Mapping[str, ModelSpec]
    methods: Mapping[str, MethodSpec]
    perturbations: Mapping[str, PerturbationSpec]
    experiments: tuple[ExperimentSpec, ...]
    folder: Path = field(default_factory=Path)  # paths in the file are relative to it


_PARTS: dict[str, type[Any]] = {
    "data": DataSpec,
    "models": ModelSpec,
    "methods": MethodSpec,
    "perturbations": PerturbationSpec,
}


def read_study(path: str | Path) -> Study:
    """Read and check a study file.

    Raises
    ------
    StudyError
        For unknown keys, bad values and combinations that cannot be: before anything has run.
    """
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StudyError(f"There is no file {path}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{path} is not TOML: {error}") from None
    return parse_study(content, path.parent)


def parse_study(content: Mapping[str, Any], folder: Path) -> Study:
    """Check the content of a study file; `folder` is where relative paths start."""
    _known(content, ("seed", "folds", *_PARTS, "experiments"), "the study")
    seed, folds = content.get("seed", 0), content.get("folds", 4)
    for name, value, check in (("seed", seed, _whole(0)), ("folds", folds, _whole(2))):
        if text := check(value):
            raise StudyError(f"{name} must be {text}, got {value!r}.")
    parts: dict[str, dict[str, Any]] = {}
    for part, kind in _PARTS.items():
        tables = content.get(part, {})
        if not isinstance(tables, Mapping) or not tables:
            raise StudyError(f"The study needs at least one table [{part}.NAME].")
        given = {"content": ""} if kind is DataSpec else {}
        parts[part] = {n: _read(table, kind, f"{part}.{n}", name=n, **given) for n, table in tables.items()}
    experiments = content.get("experiments", [])
    if not isinstance(experiments, list) or not experiments:
        raise StudyError("The study needs at least one [[experiments]].")
    grid = tuple(_read(table, ExperimentSpec, f"experiments[{i}]") for i, table in enumerate(experiments))
    parts["data"] = {name: _with_content(spec, folder) for name, spec in parts["data"].items()}
    study = Study(seed, folds, **parts, experiments=grid, folder=folder)
    for experiment in grid:
        _check_experiment(experiment, study)
    return study


def _known(table: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in keys:
            raise StudyError(f"Unknown key {key!r} in {where}; possible are {', '.join(keys)}.")


def _read(table: Any, kind: type[Any], where: str, **given: Any) -> Any:
    if not isinstance(table, Mapping):
        raise StudyError(f"{where} must be a table, got {table!r}.")
    keys = [f for f in fields(kind) if f.name not in given]
    _known(table, tuple(f.name for f in keys), where)
    values = dict(given)
    for f in keys:
        if f.name not in table:
            if f.default is MISSING:
                raise StudyError(f"{where} has no {f.name!r}; it must be {_expected(f)}.")
            continue
        value = table[f.name]
        listed = isinstance(f.default, tuple) or "tuple" in str(f.type)
        if listed and not isinstance(value, str):
            value = tuple(value) if isinstance(value, list) else (value,)
        elif listed and value != "half":
            value = (value,)
        if text := f.metadata["check"](value):
            raise StudyError(f"{where}.{f.name} must be {text}; got {table[f.name]!r}.")
        values[f.name] = value
    return kind(**values)


def _expected(f: Any) -> str:
    return str(f.metadata["check"](object())) or "given"


def _with_content(spec: DataSpec, folder: Path) -> DataSpec:
    """The data set with the hash of its file, if it has one, after a check that it can be read."""
    where = f"data.{spec.name}"
    if spec.source in (*BUNDLED, "blobs"):
        return spec
    if not spec.source.endswith((".csv", ".parquet")):
        raise StudyError(
            f"{where}.source must be one of {', '.join(BUNDLED)}, blobs, or the path of a .csv or .parquet file; "
            f"got {spec.source!r}."
        )
    if not (folder / spec.source).is_file():
        raise StudyError(f"{where}.source: there is no file {folder / spec.source}.")
    if spec.label is None:
        raise StudyError(f"{where} has no 'label': name the column of {spec.source} that holds the labels.")
    return replace(spec, content=hashlib.sha256((folder / spec.source).read_bytes()).hexdigest())


def _check_experiment(spec: ExperimentSpec, study: Study) -> None:
    where = f"experiment {spec.name!r}"
    for part in _PARTS:
        known = getattr(study, part)
        for name in getattr(spec, part):
            if name not in known:
                raise StudyError(f"{where}.{part}: there is no {name!r}; there are {', '.join(known)}.")
    steady = [name for name in spec.methods if study.methods[name].kind == "steady"]
    if steady and "l1" in spec.cost:
        raise StudyError(
            f'{where}: the method {steady[0]!r} needs cost = "l2", because projections in l1 have no guarantee; '
            f"got cost = {list(spec.cost)}. Put it into an experiment of its own."
        )
