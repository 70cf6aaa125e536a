"""The data sets of a study, and their folds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_blobs
from sklearn.model_selection import KFold
from sklearn.utils import shuffle

from evenhand.distances import FloatArray
from evenhand.study.spec import DataSpec, StudyError

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
    frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    where = f"data.{spec.name}"
    if spec.label not in frame.columns:
        raise StudyError(f"{where}.label: {path.name} has no column {spec.label!r}; it has {', '.join(frame.columns)}.")
    features = frame.drop(columns=[spec.label])
    wrong = [str(name) for name, kind in features.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]
    if wrong:
        raise StudyError(f"{where}: the columns {', '.join(wrong)} of {path.name} are not numeric.")
    table = features.to_numpy(dtype=np.float64, na_value=np.nan)
    if not np.isfinite(table).all():
        bad = int((~np.isfinite(table).all(axis=1)).sum())
        raise StudyError(f"{where}: {bad} rows of {path.name} have missing or infinite values; drop or fill them.")
    return table, frame[spec.label].to_numpy()


def fold_of(spec: DataSpec, dim: int | None, scale: str, folds: int, number: int, folder: Path) -> Fold:
    """One fold; standardised means in units of the training people's spread."""
    X, y = load(spec, dim, folder)
    train, test = list(KFold(folds).split(X))[number]
    if scale == "standardised":
        spread = X[train].std(axis=0)
        X = (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return Fold(X[train], y[train], X[test], y[test], test.astype(np.int64))
