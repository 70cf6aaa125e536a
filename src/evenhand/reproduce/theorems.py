"""The theorems against simulation by the library's own counterfactuals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from evenhand import theory
from evenhand.costs import L2
from evenhand.explaining.explainer import Explainer
from evenhand.methods.closest import Closest
from evenhand.perturbations import Gaussian, Mask, Perturbation, Uniform
from evenhand.stability.instability import instability
from evenhand.types import FloatArray

DIM, PEOPLE, DRAWS = 6, 200, 250


def squared(a: Any, b: Any) -> FloatArray:
    """Squared l2 distance, which the paper's theorems are about."""
    total: FloatArray = ((np.asarray(a) - np.asarray(b)) ** 2).sum(axis=1)
    return total


def theorems(seed: int = 0) -> pd.DataFrame:
    """Closed form, simulated mean with its 95 % interval, and who stated it, one row per theorem."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=DIM)
    model = LogisticRegression().fit(np.vstack([w, -w]), [1, 0])
    model.coef_, model.intercept_ = w[None], np.zeros(1)
    root = rng.normal(size=(DIM, DIM))
    S = root @ root.T / DIM
    omega = np.diag(rng.uniform(0.5, 3.0, size=DIM))
    x0 = rng.normal(size=DIM) * 3
    X = np.repeat(x0[None], PEOPLE, axis=0)
    l1, l2 = Closest("l1").fit(model), Closest("l2").fit(model)
    weighted = Closest(L2(matrix=omega)).fit(model)
    cases: list[tuple[str, str, str, Explainer, Perturbation, Any, str, float]] = [
        (
            "3",
            "Gaussian noise, any covariance",
            "paper, generalised",
            l2,
            Gaussian(S),
            squared,
            "swap",
            theory.gaussian_mean(w, S),
        ),
        (
            "4",
            "Gaussian noise, covariance one: d − 1",
            "paper",
            l2,
            Gaussian(1.0),
            squared,
            "swap",
            theory.gaussian_mean(w, 1.0),
        ),
        (
            "3c",
            "Gaussian noise, target kept",
            "new",
            l2,
            Gaussian(S),
            squared,
            "keep",
            theory.gaussian_mean_target_kept(w, 0.0, x0, S),
        ),
        ("6", "Uniform noise", "paper", l2, Uniform(1.0), squared, "swap", theory.uniform_mean(w, 1.0)),
        ("8", "Masking two of six features", "new", l2, Mask(2), squared, "swap", theory.masking_mean(w, x0, 2)),
        ("9", "Weighted l2 cost", "new", weighted, Gaussian(S), squared, "swap", theory.weighted_mean(w, S, omega)),
        (
            "10",
            "l1 cost, Gaussian noise, l1 distance",
            "new",
            l1,
            Gaussian(S),
            "l1",
            "swap",
            theory.l1_gaussian_mean(w, S),
        ),
        (
            "10",
            "l1 cost, uniform noise, l1 distance",
            "new",
            l1,
            Uniform(1.0),
            "l1",
            "swap",
            theory.l1_uniform_mean(w, 1.0),
        ),
    ]
    rows = []
    for row, name, status, explainer, perturbation, distance, flip, expected in cases:
        measure: Callable[..., Any] = instability
        found = (
            measure(explainer, X, perturbation, draws=DRAWS, distance=distance, on_flip=flip, random_state=seed)
            .table["distance"]
            .to_numpy()
        )
        half = 1.96 * found.std(ddof=1) / np.sqrt(len(found))
        rows.append(
            {
                "row": row,
                "theorem": name,
                "status": status,
                "theory": expected,
                "simulated": found.mean(),
                "low": found.mean() - half,
                "high": found.mean() + half,
                "draws": len(found),
            }
        )
    return pd.DataFrame(rows)
