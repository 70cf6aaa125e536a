"""The problems of the benchmark: the paper's data and models, and people like those of its test folds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import shuffle

from evenhand import GLVQ, Closest, Explainer, HighDensity, Plausible
from evenhand.density import ClassDensities
from evenhand.models import view

FloatArray = npt.NDArray[np.float64]

LOADERS = {"wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
LATENT = {"breast cancer": 5, "digits": 40}  # dimensions after the PCA; wine has none


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    data: str
    model: str
    method: str
    cost: str

    def __str__(self) -> str:
        return f"{self.data}, {self.model}, {self.method}, {self.cost}"


@dataclass(frozen=True)
class _Fitted:
    """A density that is ready: the six plausible explainers of a dataset share one."""

    densities: ClassDensities

    def fit(self, *_: object) -> ClassDensities:
        """The densities, whatever the arguments."""
        return self.densities


@cache
def split(data: str) -> tuple[FloatArray, npt.NDArray[Any], FloatArray]:
    """Training inputs and labels, and test inputs: the first of the paper's four folds."""
    X, y = shuffle(*LOADERS[data](return_X_y=True), random_state=42)
    held_out = len(X) // 4
    return X[held_out:], y[held_out:], X[:held_out]


@cache
def fitted_model(data: str, model: str) -> Any:
    """A model of the paper, with the PCA that belongs to it."""
    classifiers: dict[str, ClassifierMixin] = {
        "softmax": LogisticRegression(),
        "tree": DecisionTreeClassifier(max_depth=7, random_state=0),
        "GLVQ": GLVQ(prototypes_per_class=3, random_state=0),
    }
    steps = [PCA(LATENT[data])] if data in LATENT else []
    X, y, _ = split(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the paper's models stop where these do
        return make_pipeline(*steps, classifiers[model]).fit(X, y)


@cache
def _densities(data: str) -> ClassDensities:
    seen = view(fitted_model(data, "softmax"))
    X, y, _ = split(data)
    return HighDensity().fit(seen.encode(X), y, seen.classes)


def explainer(case: Case) -> Explainer:
    """The explainer of a row, not yet compiled."""
    model = fitted_model(case.data, case.model)
    if case.method == "closest":
        return Closest(cost=case.cost).fit(model)
    X, y, _ = split(case.data)
    return Plausible(_Fitted(_densities(case.data)), cost=case.cost).fit(model, X, y)  # type: ignore[arg-type]


def people(data: str, n: int) -> FloatArray:
    """Test points, drawn with repetition, plus noise N(0, 1) in raw units."""
    rng = np.random.default_rng(0)
    test = split(data)[2]
    return test[rng.integers(len(test), size=n)] + rng.normal(size=(n, test.shape[1]))


def strangers(data: str, model: str, label: object, n: int) -> FloatArray:
    """`n` people for whom the model does not predict `label`."""
    crowd = people(data, 4 * n)
    other: npt.NDArray[np.bool_] = fitted_model(data, model).predict(crowd) != label
    return crowd[other][:n]
