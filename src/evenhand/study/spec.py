"""A study as data: what a TOML file may say, checked before anything runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evenhand.settings import check_known, flag, key, list_of, maybe, number, one_of, read_table, read_toml, text, whole

BUNDLED = ("wine", "breast_cancer", "digits", "iris")


class StudyError(ValueError):
    """Something in a study file is wrong; the message names the key and what is possible."""


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
class ModelSpec:
    """What is explained."""

    name: str
    kind: str = key(one_of("softmax", "tree", "glvq"))
    max_depth: int | None = key(maybe(whole(1)), None)
    prototypes: int = key(whole(1), 1)
    max_iter: int | None = key(maybe(whole(1)), None)


@dataclass(frozen=True)
class MethodSpec:
    """How it is explained."""

    name: str
    kind: str = key(one_of("closest", "plausible", "steady"))
    components: tuple[int, ...] = key(list_of(whole(1)), (1, 2, 3, 4, 5, 6, 7, 8, 9))
    quantile: float = key(number(0, 1), 0.5)


@dataclass(frozen=True)
class PerturbationSpec:
    """What could have been different."""

    name: str
    kind: str = key(one_of("gaussian", "uniform", "mask", "neighbor"))
    covariance: float = key(number(0), 1.0)
    radius: float = key(number(0), 1.0)
    features: tuple[int, ...] | str = key(
        lambda value: "" if value == "half" else list_of(whole(0))(value) and 'a list of whole numbers, or "half"',
        (1,),
    )
    k: int = key(whole(1), 5)
    relative: bool = key(flag, False)


@dataclass(frozen=True)
class ExperimentSpec:
    """A grid: everything in one list with everything in the others."""

    name: str = key(text)
    data: tuple[str, ...] = key(list_of(text))
    models: tuple[str, ...] = key(list_of(text))
    methods: tuple[str, ...] = key(list_of(text))
    perturbations: tuple[str, ...] = key(list_of(text))
    scale: tuple[str, ...] = key(list_of(one_of("raw", "standardised")), ("raw",))
    cost: tuple[str, ...] = key(list_of(one_of("l1", "l2")), ("l1",))
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
    content = read_toml(path, StudyError)
    return parse_study(content, path.parent)


def parse_study(content: Mapping[str, Any], folder: Path) -> Study:
    """Check the content of a study file; `folder` is where relative paths start."""
    check_known(content, ("seed", "folds", *_PARTS, "experiments"), "the study", StudyError)
    seed, folds = content.get("seed", 0), content.get("folds", 4)
    for name, value, check in (("seed", seed, whole(0)), ("folds", folds, whole(2))):
        if found := check(value):
            raise StudyError(f"{name} must be {found}, got {value!r}.")
    parts: dict[str, dict[str, Any]] = {}
    for part, kind in _PARTS.items():
        tables = content.get(part, {})
        if not isinstance(tables, Mapping) or not tables:
            raise StudyError(f"The study needs at least one table [{part}.NAME].")
        given = {"content": ""} if kind is DataSpec else {}
        parts[part] = {
            n: read_table(table, kind, f"{part}.{n}", StudyError, name=n, **given) for n, table in tables.items()
        }
    experiments = content.get("experiments", [])
    if not isinstance(experiments, list) or not experiments:
        raise StudyError("The study needs at least one [[experiments]].")
    grid = tuple(
        read_table(table, ExperimentSpec, f"experiments[{i}]", StudyError) for i, table in enumerate(experiments)
    )
    parts["data"] = {name: _with_content(spec, folder) for name, spec in parts["data"].items()}
    study = Study(seed, folds, **parts, experiments=grid, folder=folder)
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
