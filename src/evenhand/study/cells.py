"""The cells of a study: one method on one model and fold, with all of an experiment's perturbations."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, f1_score
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline

from evenhand.costs import as_distance
from evenhand.density import ClassDensities, HighDensity
from evenhand.models import view
from evenhand.parallel import CHUNK
from evenhand.perturbations import Gaussian, Perturbation
from evenhand.stability.experiment import BLOCK, Experiment
from evenhand.study.data import Fold, fold_of, names_of
from evenhand.study.methods import MethodSpec
from evenhand.study.models import ModelSpec
from evenhand.study.perturbations import PerturbationSpec
from evenhand.study.spec import DataSpec, ExperimentSpec, Study
from evenhand.types import FloatArray

KEYS = ("experiment", "data", "dim", "scale", "model", "method", "cost", "on_flip", "fold")


@dataclass(frozen=True)
class Cell:
    """One unit of work; everything that its result depends on is in it."""

    experiment: str
    data: DataSpec
    dim: int | None
    scale: str
    model: ModelSpec
    method: MethodSpec
    cost: str
    on_flip: str
    perturbations: tuple[PerturbationSpec, ...]
    distance: str
    target: str
    people: str
    draws: int
    folds: int
    fold: int
    seed: int

    def keys(self) -> dict[str, Any]:
        """The columns that tell this cell's rows from those of others."""
        names = {"data": self.data.name, "model": self.model.name, "method": self.method.name}
        return {key: names.get(key, getattr(self, key)) for key in KEYS}

    def hash(self, version: str) -> str:
        """Of the whole configuration and the package's version.

        The name of the experiment is not part of it: the same cell in two experiments is run once.
        """
        text = json.dumps([asdict(self) | {"experiment": "", "model": self.model.key()}, version], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    @property
    def group(self) -> tuple[Any, ...]:
        """Cells of a group share data, models and densities, and are best run by the same worker."""
        return (self.data.name, self.dim or 0, self.scale, self.fold)

    @property
    def density(self) -> tuple[Any, ...] | None:
        """What the density of the cell depends on, None if it needs none; our models of a fold share one.

        A model from outside may begin with steps of its own, and a density is in the space of the last step.
        """
        if not self.method.needs_density:
            return None
        model = None if self.model.built_in else self.model
        return (
            model,
            self.data,
            self.dim,
            self.scale,
            self.folds,
            self.fold,
            self.method.components,
            self.method.quantile,
        )

    def __str__(self) -> str:
        dim = f" d={self.dim}" if self.dim else ""
        where = f"{self.data.name}{dim} {self.scale} {self.model.name} {self.method.name} {self.cost} {self.on_flip}"
        return f"{self.experiment}: {where} fold {self.fold}"


def expand(study: Study, only: tuple[str, ...] = ()) -> list[Cell]:
    """All cells of a study, in the order of the file."""
    return [cell for spec in study.experiments if not only or spec.name in only for cell in _cells(spec, study)]


def _cells(spec: ExperimentSpec, study: Study) -> list[Cell]:
    datasets = [(study.data[name], dim) for name in spec.data for _, dim in names_of(study.data[name])]
    perturbations = tuple(study.perturbations[name] for name in spec.perturbations)
    return [
        Cell(
            spec.name,
            data,
            dim,
            scale,
            study.models[model],
            study.methods[method],
            cost,
            on_flip,
            perturbations,
            spec.distance,
            spec.target,
            spec.people,
            spec.draws,
            study.folds,
            fold,
            study.seed,
        )
        for (data, dim), scale, model, method, cost, on_flip, fold in product(
            datasets, spec.scale, spec.models, spec.methods, spec.cost, spec.on_flip, range(study.folds)
        )
    ]


Densities = Mapping[tuple[Any, ...], ClassDensities]


def run(cell: Cell, folder: Path, densities: Densities) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The measurements of a cell, one row per person and draw, and what there is to know of its model.

    `densities` are those of :func:`fit_density`, by :attr:`Cell.density`.
    """
    model, fold = _fitted(cell.data, cell.dim, cell.scale, cell.model, cell.folds, cell.fold, folder)
    predicted = model.predict(fold.X_test)
    chosen = predicted == fold.y_test if cell.people == "correct" else np.ones(len(predicted), dtype=bool)
    density = None if cell.density is None else densities[cell.density]
    explainer = cell.method.explainer(cell.cost, model, fold.X_train, fold.y_train, density)
    people = pd.DataFrame(fold.X_test[chosen], index=fold.people[chosen])
    info: dict[str, Any] = {
        "accuracy": float(accuracy_score(fold.y_test, predicted)),
        "f1": float(f1_score(fold.y_test, predicted, average="macro")),
        "people": int(chosen.sum()),
        "left_out": int((~chosen).sum()),
    }
    target = "random" if cell.target == "random" else None
    flip: Any = cell.on_flip
    base = Experiment(explainer, people, Gaussian(0.0), target, as_distance(cell.distance), flip, cell.seed, None, None)
    levels = [(spec.name, *level) for spec in cell.perturbations for level in spec.levels(fold.X_train)]
    step = max(1, BLOCK // cell.draws)
    parts = (levels[first : first + step] for first in range(0, len(levels), step))
    table = pd.concat([_measured(base, some, cell.draws) for some in parts], ignore_index=True)
    rank = _density_rank(model, fold, base)
    table["density_rank"] = table["person"].map(pd.Series(rank, index=people.index)).astype(float)
    table["target"] = table["target"].astype(str)
    info["explained"] = int(len(people) * 2 + len(table))
    return table, info


@dataclass(frozen=True)
class _Together:
    """Several perturbations at once; each starts from the same random numbers, as if it were alone."""

    perturbations: tuple[Perturbation, ...]

    def __call__(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        start = rng.bit_generator.state
        moved = []
        for perturbation, part in zip(self.perturbations, np.split(X, len(self.perturbations)), strict=True):
            rng.bit_generator.state = start
            moved.append(perturbation(part, rng))
        return np.concatenate(moved)


def _measured(base: Experiment, levels: Sequence[tuple[str, float, Perturbation]], draws: int) -> pd.DataFrame:
    """Measure a few levels at once: a hundred people at a time would wait for everything but the solver."""
    together = levels[0][2] if len(levels) == 1 else _Together(tuple(level[2] for level in levels))
    people, table = base.perturbed_by(together).measure(draws * len(levels), True, CHUNK, None)
    assert table is not None
    which = table["draw"].to_numpy() // draws
    table.insert(0, "perturbation", np.array([name for name, *_ in levels])[which])
    table.insert(1, "level", np.array([level for _, level, _ in levels])[which])
    table["draw"] %= draws
    row = np.repeat(np.arange(len(people)), draws * len(levels))
    table["own_cost"], table["floor"] = people["cost"].to_numpy()[row], people["floor"].to_numpy()[row]
    return table


@lru_cache(maxsize=8)
def _fitted(
    data: DataSpec, dim: int | None, scale: str, model: ModelSpec, folds: int, fold: int, folder: Path
) -> tuple[Any, Fold]:
    part = fold_of(data, dim, scale, folds, fold, folder)
    steps = [] if data.pca is None else [PCA(data.pca, random_state=0)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the paper's models stop where these do
        return make_pipeline(*steps, model.classifier()).fit(part.X_train, part.y_train), part


def fit_density(cell: Cell, folder: Path) -> ClassDensities:
    """The density behind a cell, in the space of its model's last step; it needs no compiled kernel."""
    model, fold = _fitted(cell.data, cell.dim, cell.scale, cell.model, cell.folds, cell.fold, folder)
    seen = view(model)
    recipe = HighDensity(cell.method.quantile, cell.method.components)
    return recipe.fit(seen.image(fold.X_train), fold.y_train, seen.classes)


def _density_rank(model: Any, fold: Fold, base: Experiment) -> FloatArray:
    """How plausible the answers are under a density that no method has seen.

    A kernel density of the held-out people of the target class, in the model's space: the share of these people who
    are less dense than the answer (each left out of its own density).
    """
    seen = view(model)
    answered = base.people()
    rank = np.full(len(answered.valid), np.nan)
    for k, label in enumerate(seen.classes):
        held_out = seen.image(fold.X_test[fold.y_test == label])
        rows = np.flatnonzero(answered.valid & (answered.base.label == k))
        if len(held_out) < 3 or not len(rows):
            continue
        unit = np.where(held_out.std(axis=0) > 0, held_out.std(axis=0), 1.0)
        width = len(held_out) ** (-1.0 / (held_out.shape[1] + 4))  # Scott's rule
        real = held_out / unit
        kernel = KernelDensity(bandwidth=width).fit(real)
        n = len(held_out)
        # log of (n f(x) - K(0)) / (n - 1): the density at a person without its own kernel
        peak = -0.5 * held_out.shape[1] * np.log(2 * np.pi * width**2)
        with np.errstate(divide="ignore", invalid="ignore"):
            others = (
                np.log(np.maximum(n * np.exp(kernel.score_samples(real) - peak) - 1.0, 1e-300)) + peak - np.log(n - 1)
            )
        answers = kernel.score_samples(seen.image(answered.base.points[rows]) / unit)
        rank[rows] = (answers[:, None] > others[None, :]).mean(axis=1)
    return rank


def combined(tables: Mapping[Cell, pd.DataFrame]) -> pd.DataFrame:
    """The rows of cells under each other, with the columns that tell them apart in front."""
    rows = pd.concat(list(tables.values()), ignore_index=True)
    sizes = [len(table) for table in tables.values()]
    names = pd.DataFrame([cell.keys() for cell in tables], columns=list(KEYS))
    # A few names, repeated a million times: as categories they cost neither time nor memory.
    words = {key: "category" for key in KEYS if key not in ("dim", "fold")}
    front = names.astype({"dim": "Int64"} | words).loc[np.repeat(np.arange(len(names)), sizes)]
    return pd.concat([front.reset_index(drop=True), rows], axis=1)
