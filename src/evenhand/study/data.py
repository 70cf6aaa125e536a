"""The data sets of a study, and their folds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_blobs
from sklearn.model_selection import KFold
from sklearn.utils import shuffle

from evenhand.study.errors import StudyError
from evenhand.study.spec import DataSpec, ExperimentSpec, Study
from evenhand.types import FloatArray

_LOADERS = {"wine": load_wine, "breast_cancer": load_breast_cancer, "digits": load_digits, "iris": load_iris}


@dataclass(frozen=True)
class Fold:
    """Training and test people of one fold; `people` are the rows of the test people in the data set."""

    X_train: FloatArray
    y_train: npt.NDArray[Any]
    X_test: FloatArray
    y_test: npt.NDArray[Any]
    people: npt.NDArray[np.int64]


def names_of(spec: DataSpec) -> list[tuple[str, int | None]]:
    """The data sets that a spec stands for: one, or for blobs one per dimension."""
    if spec.source != "blobs":
        return [(spec.name, None)]
    return [(spec.name, dim) for dim in spec.dim]


@lru_cache(maxsize=8)
def load(spec: DataSpec, dim: int | None, folder: Path) -> tuple[FloatArray, npt.NDArray[Any]]:
    """People and labels, shuffled."""
    if spec.source in _LOADERS:
        X, y = _LOADERS[spec.source](return_X_y=True)
    elif spec.source == "blobs":
        X, y = make_blobs(spec.samples, dim, centers=2, cluster_std=spec.spread, random_state=spec.shuffle)
    else:
        X, y = _from_file(spec, folder)
    X, y = shuffle(X, y, random_state=spec.shuffle)
    return np.asarray(X, dtype=np.float64), np.asarray(y)


def _from_file(spec: DataSpec, folder: Path) -> tuple[FloatArray, npt.NDArray[Any]]:
    path = folder / spec.source
    where = f"data.{spec.name}"
    try:
        content = path.read_bytes()  # once: what is parsed is what is hashed
    except OSError as error:
        raise StudyError(f"{where}.source: {path.name} cannot be read: {error.strerror or error}.") from None
    if hashlib.sha256(content).hexdigest() != spec.content:
        raise StudyError(
            f"{where}.source: {path} has changed since the study began. Cells that were finished before are kept, "
            "and belong to what it was; run the study again to have those of what it is now."
        )
    try:
        frame = pd.read_csv(BytesIO(content)) if path.suffix == ".csv" else pd.read_parquet(BytesIO(content))
    except Exception as error:  # of pandas and pyarrow: empty, ragged, of another encoding, no Parquet
        raise StudyError(f"{where}.source: {path.name} cannot be read: {error}") from error
    if not len(frame):
        raise StudyError(f"{where}.source: {path.name} has no rows.")
    if spec.label not in frame.columns:
        raise StudyError(
            f"{where}.label: {path.name} has no column {spec.label!r}; it has {', '.join(map(str, frame.columns))}."
        )
    features, labels = frame.drop(columns=[spec.label]), frame[spec.label]
    if labels.isna().any():
        raise StudyError(f"{where}.label: {int(labels.isna().sum())} rows of {path.name} have no label.")
    if features.shape[1] == 0:
        raise StudyError(f"{where}: {path.name} has no column besides the label.")
    if pd.api.types.is_float_dtype(labels.dtype) and not (labels == labels.round()).all():
        raise StudyError(f"{where}.label: {spec.label!r} holds fractions such as {labels.iloc[0]!r}, not labels.")
    wrong = [str(name) for name, kind in features.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]
    if wrong:
        raise StudyError(f"{where}: the columns {', '.join(wrong)} of {path.name} are not numeric.")
    table = features.to_numpy(dtype=np.float64, na_value=np.nan)
    if not np.isfinite(table).all():
        bad = int((~np.isfinite(table).all(axis=1)).sum())
        raise StudyError(f"{where}: {bad} rows of {path.name} have missing or infinite values; drop or fill them.")
    try:
        np.unique(labels.to_numpy())
    except TypeError:
        raise StudyError(f"{where}.label: {spec.label!r} holds values of several kinds; labels are of one.") from None
    return table, labels.to_numpy()


def check_data(study: Study, only: tuple[str, ...]) -> None:
    """Refuse what a table cannot give, before anything runs: too few rows, columns, labels."""
    for experiment in study.experiments:
        if only and experiment.name not in only:
            continue
        for name in experiment.data:
            spec = study.data[name]
            for dim in spec.dim if spec.source == "blobs" else (None,):
                _check_table(spec, dim, experiment, study)


def _check_table(spec: DataSpec, dim: int | None, experiment: ExperimentSpec, study: Study) -> None:
    X, y = load(spec, dim, study.folder)
    where, (n, features) = f"data.{spec.name}", X.shape
    training = n - -(-n // study.folds)
    if training < 2 or n < study.folds:
        raise StudyError(f"{where} has {n} rows, too few for folds = {study.folds}.")
    for number in range(study.folds):
        fold = fold_of(spec, dim, "raw", study.folds, number, study.folder)
        if len(np.unique(fold.y_train)) < 2:
            raise StudyError(f"{where}: fold {number} has one label only for training, {fold.y_train[0]!r}.")
        alone = [label for label in np.unique(y) if (fold.y_train == label).sum() < 2]
        if alone and any(study.methods[name].needs_density for name in experiment.methods):
            raise StudyError(
                f"{where}: fold {number} has fewer than two people of the label {alone[0]!r} for training, and a "
                "density needs two. Use fewer folds, or leave the label out."
            )
    if spec.pca is not None and spec.pca > min(features, training):
        raise StudyError(f"{where}.pca must be at most {min(features, training)} here, got {spec.pca}.")
    for name in experiment.perturbations:
        # The first fold has the fewest people for training.
        people = fold_of(spec, dim, "raw", study.folds, 0, study.folder).X_train
        study.perturbations[name].check(people, f"{where}, which has {features} columns")


def fold_of(spec: DataSpec, dim: int | None, scale: str, folds: int, number: int, folder: Path) -> Fold:
    """One fold; standardised means in units of the training people's spread."""
    X, y = load(spec, dim, folder)
    train, test = list(KFold(folds).split(X))[number]
    if scale == "standardised":
        spread = X[train].std(axis=0)
        X = (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return Fold(X[train], y[train], X[test], y[test], test.astype(np.int64))
