"""A study as data: what a TOML file may say, checked before anything runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evenhand.costs import COSTS
from evenhand.methods import METHODS
from evenhand.settings import (
    check_known,
    key,
    known_in,
    list_of,
    maybe,
    number,
    one_of,
    read_table,
    read_toml,
    text,
    whole,
)
from evenhand.study.errors import StudyError
from evenhand.study.methods import MethodSpec
from evenhand.study.models import ModelSpec, read_model
from evenhand.study.modules import import_modules, read_modules
from evenhand.study.parts import content_of
from evenhand.study.perturbations import PerturbationSpec, read_perturbation

BUNDLED = ("wine", "breast_cancer", "digits", "iris")


@dataclass(frozen=True)
class DataSpec:
    """Where people come from."""

    name: str
    source: str = key(text)  # bundled, "blobs", or a path
    label: str | None = key(maybe(text), None)  # column of the labels, for a path
    pca: int | None = key(maybe(whole(1)), None)
    shuffle: int = key(whole(0), 42)
    dim: tuple[int, ...] = key(list_of(whole(1)), (2,))  # of blobs, one data set each
    samples: int = key(whole(20), 1000)
    spread: float = key(number(0), 5.0)
    content: str = ""  # hash of the file, not a key: another content is another data set, for caches and checkpoints


@dataclass(frozen=True)
class ExperimentSpec:
    """A grid: everything in one list with everything in the others."""

    name: str = key(text)
    data: tuple[str, ...] = key(list_of(text))
    models: tuple[str, ...] = key(list_of(text))
    methods: tuple[str, ...] = key(list_of(text))
    perturbations: tuple[str, ...] = key(list_of(text))
    scale: tuple[str, ...] = key(list_of(one_of("raw", "standardised")), ("raw",))
    cost: tuple[str, ...] = key(list_of(known_in(COSTS)), ("l1",))
    on_flip: tuple[str, ...] = key(list_of(one_of("swap", "keep", "skip")), ("swap",))
    distance: str = key(one_of("l1", "l2"), "l1")
    target: str = key(one_of("random", "cheapest"), "random")
    people: str = key(one_of("correct", "all"), "correct")
    draws: int = key(whole(1), 1)


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
    modules: tuple[str, ...] = ()  # imported before the study is read, and by every worker
    imported: tuple[str, ...] = ()  # their hashes


def _read_data(table: Any, name: str) -> DataSpec:
    spec: DataSpec = read_table(table, DataSpec, f"data.{name}", StudyError, name=name, content="")
    return spec


def _read_method(table: Any, name: str) -> MethodSpec:
    spec: MethodSpec = read_table(table, MethodSpec, f"methods.{name}", StudyError, name=name, content="")
    return spec


_PARTS: dict[str, Callable[[Any, str], Any]] = {
    "data": _read_data,
    "models": read_model,
    "methods": _read_method,
    "perturbations": read_perturbation,
}


def read_study(path: str | Path) -> Study:
    """Read and check a study file.

    Raises
    ------
    StudyError
        For unknown keys, bad values and combinations that cannot be: before anything has run.
    """
    path = Path(path)
    content = read_toml(path, StudyError)
    return parse_study(content, path.parent)


def parse_study(content: Mapping[str, Any], folder: Path) -> Study:
    """Check the content of a study file; `folder` is where relative paths start."""
    check_known(content, ("seed", "folds", "modules", *_PARTS, "experiments"), "the study", StudyError)
    seed, folds = content.get("seed", 0), content.get("folds", 4)
    for name, value, check in (("seed", seed, whole(0)), ("folds", folds, whole(2))):
        if problem := check(value):
            raise StudyError(f"{name} must be {problem}, got {value!r}.")
    modules = read_modules(content.get("modules", []))
    imported = import_modules(modules, folder)
    parts: dict[str, dict[str, Any]] = {}
    for part, read in _PARTS.items():
        tables = content.get(part, {})
        if not isinstance(tables, Mapping) or not tables:
            raise StudyError(f"The study needs at least one table [{part}.NAME].")
        parts[part] = {name: read(table, name) for name, table in tables.items()}
    experiments = content.get("experiments", [])
    if not isinstance(experiments, list) or not experiments:
        raise StudyError("The study needs at least one [[experiments]].")
    grid = tuple(
        read_table(table, ExperimentSpec, f"experiments[{i}]", StudyError) for i, table in enumerate(experiments)
    )
    parts["data"] = {name: _with_content(spec, folder) for name, spec in parts["data"].items()}
    parts["methods"] = {name: _with_files(spec, grid) for name, spec in parts["methods"].items()}
    study = Study(seed, folds, **parts, experiments=grid, folder=folder, modules=modules, imported=imported)
    for experiment in grid:
        _check_experiment(experiment, study)
    return study


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
    try:
        content = (folder / spec.source).read_bytes()
    except OSError as error:
        raise StudyError(f"{where}.source: {spec.source} cannot be read: {error.strerror or error}.") from None
    return replace(spec, content=hashlib.sha256(content).hexdigest())


def _with_files(spec: MethodSpec, grid: tuple[ExperimentSpec, ...]) -> MethodSpec:
    """The method with the hashes of the files that it and its costs come from, if they are a user's own."""
    costs = sorted({cost for experiment in grid if spec.name in experiment.methods for cost in experiment.cost})
    parts: list[Any] = [METHODS[spec.kind], *(COSTS[cost] for cost in costs)]
    return replace(spec, content="".join(dict.fromkeys(content_of(part) for part in parts)))


def _check_experiment(spec: ExperimentSpec, study: Study) -> None:
    where = f"experiment {spec.name!r}"
    for part in _PARTS:
        known = getattr(study, part)
        for name in getattr(spec, part):
            if name not in known:
                raise StudyError(f"{where}.{part}: there is no {name!r}; there are {', '.join(known)}.")
    only_l2 = [name for name in spec.methods if study.methods[name].l2_only]
    if only_l2 and set(spec.cost) != {"l2"}:
        raise StudyError(
            f'{where}: the method {only_l2[0]!r} needs cost = "l2", because projections in l1 have no guarantee; '
            f"got cost = {list(spec.cost)}. Put it into an experiment of its own."
        )
