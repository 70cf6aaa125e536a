"""A loan-like table with categories, ordered levels, counts and amounts, and pipelines that were fitted to it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand import Schema

NAMES = {
    "sex": ("female", "male"),
    "phone": ("no", "yes"),
    "housing": ("free", "own", "rent"),
    "job": ("employed", "manager", "self-employed", "unemployed"),
    "region": ("centre", "coast", "east", "north", "south", "west"),
    "purpose": (
        "business",
        "car",
        "education",
        "furniture",
        "holiday",
        "house",
        "medical",
        "other",
        "repairs",
        "television",
    ),
}
RANKS = {
    "savings": ("none", "little", "moderate", "rich", "very rich"),
    "education": ("school", "college", "bachelor", "master"),
}
INTEGERS = ("age", "duration", "dependents", "amount")
CONTINUOUS = ("income", "expenses", "debt", "balance", "utilisation", "rate", "tenure", "score")
LABELS = {2: ("bad", "good"), 3: ("accept", "reject", "review")}
AMOUNT_STEP = 100.0

# What a level says about a person who applies; sums of them make the noisy rule behind the labels.
_EFFECTS = {
    "sex": (0.0, 0.1),
    "phone": (0.0, 0.3),
    "housing": (-0.1, 0.5, -0.4),
    "job": (0.2, 0.7, 0.1, -1.1),
    "region": (0.0, 0.2, -0.3, 0.1, -0.2, 0.05),
    "purpose": (-0.3, 0.2, 0.3, 0.0, -0.7, 0.5, -0.1, -0.4, 0.1, -0.2),
    "savings": (-0.8, -0.3, 0.1, 0.6, 1.0),
    "education": (-0.4, 0.0, 0.3, 0.5),
}


def people(n: int, seed: int, classes: int = 2) -> tuple[pd.DataFrame, np.ndarray]:
    """`n` applications for a loan, and what became of them: two labels or three."""
    rng = np.random.default_rng(seed)
    codes = {
        name: rng.choice(len(levels), n, p=_frequencies(len(levels)))
        for name, levels in {**NAMES, **RANKS}.items()
    }  # fmt: skip
    wealth, thrift, habit = rng.normal(size=(3, n))
    wealth = wealth + 0.4 * (codes["education"] - 1.5) + 0.5 * (codes["job"] == 1) - 0.8 * (codes["job"] == 3)
    age = np.clip(np.round(19.0 + rng.gamma(2.5, 8.0, n) + 2.0 * (wealth > 1.0)), 18, 85)
    duration = np.clip(np.round(rng.gamma(2.6, 8.0, n)), 4, 72)
    dependents = np.minimum(rng.poisson(0.8 + 0.4 * (age > 30), n), 6)
    amount = AMOUNT_STEP * np.clip(np.round(np.exp(2.6 + 0.5 * wealth + 0.02 * duration + 0.4 * habit)), 2, 400)
    income = np.exp(7.4 + 0.35 * wealth + 0.1 * rng.normal(size=n))
    expenses = income * (0.45 + 0.12 * np.tanh(habit)) + 120.0 * dependents + 60.0 * rng.normal(size=n)
    debt = rng.exponential(1500.0, n) * np.exp(0.3 * habit - 0.2 * thrift)
    balance = 900.0 * thrift + 0.3 * (income - expenses) + 400.0 * rng.normal(size=n)
    utilisation = 1.0 / (1.0 + np.exp(-(0.8 * habit - 0.6 * thrift + 0.5 * rng.normal(size=n))))
    rate = 2.0 + 0.05 * duration + 1.5 * utilisation + rng.gamma(2.0, 0.5, n)
    tenure = np.minimum(rng.exponential(6.0, n), age - 16.0)
    score = 500.0 + 60.0 * thrift + 30.0 * wealth - 80.0 * utilisation + 25.0 * rng.normal(size=n)

    table: dict[str, Any] = {name: np.array(levels)[codes[name]] for name, levels in NAMES.items()}
    for name, levels in RANKS.items():
        table[name] = pd.Categorical.from_codes(codes[name], categories=list(levels), ordered=True)
    numbers = (age, duration, dependents, amount)
    table |= {name: values.astype(np.int64) for name, values in zip(INTEGERS, numbers, strict=True)}
    floats = (income, expenses, debt, balance, utilisation, rate, tenure, score)
    table |= dict(zip(CONTINUOUS, floats, strict=True))

    merit = sum((np.array(_EFFECTS[name])[codes[name]] for name in _EFFECTS), start=np.zeros(n))
    merit += 0.6 * _standard(income) - 0.5 * _standard(expenses) - 0.6 * _standard(debt) + 0.4 * _standard(balance)
    merit += 0.7 * _standard(score) - 0.4 * _standard(rate) + 0.3 * _standard(tenure) - 0.4 * _standard(utilisation)
    merit += 0.25 * _standard(age) - 0.5 * _standard(duration) - 0.5 * _standard(amount) - 0.2 * _standard(dependents)
    # What no linear model can see: a large loan is worse on a small income, and a car needs a home to park it at.
    merit += 0.3 * _standard(income) * _standard(amount)
    merit += 0.5 * ((codes["purpose"] == 1) & (codes["housing"] == 1)) - 0.4 * ((age < 25) & (codes["job"] == 2))
    merit += rng.normal(size=n)
    frame = pd.DataFrame(table)
    return frame, _labels(merit, classes)


def schema_of(X: pd.DataFrame) -> Schema:
    """What the table looks like, and that loans are paid out in hundreds."""
    found = Schema.infer(X)
    return found.with_columns(amount=dataclasses.replace(found["amount"], step=AMOUNT_STEP))


def models(X: pd.DataFrame, y: np.ndarray) -> dict[str, Pipeline]:
    """Pipelines with encoders, fitted: a linear one and a tree."""
    return {
        "logistic": make_pipeline(_encoders(), LogisticRegression(max_iter=2000)).fit(X, y),
        "tree": make_pipeline(_encoders(), DecisionTreeClassifier(max_depth=7, random_state=0)).fit(X, y),
    }


def _encoders() -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("names", OneHotEncoder(), list(NAMES)),
            ("ranks", OrdinalEncoder(categories=[list(levels) for levels in RANKS.values()]), list(RANKS)),
            ("numbers", StandardScaler(), [*INTEGERS, *CONTINUOUS]),
        ]
    )


def _frequencies(n_levels: int) -> np.ndarray:
    weights = 1.0 / (2.0 + np.arange(n_levels))
    return np.asarray(weights / weights.sum())


def _standard(values: np.ndarray) -> np.ndarray:
    return np.asarray((values - values.mean()) / values.std())


def _labels(merit: np.ndarray, classes: int) -> np.ndarray:
    if classes == 2:
        return np.where(merit > np.quantile(merit, 0.4), "good", "bad")
    low, high = np.quantile(merit, [0.35, 0.6])
    return np.select([merit < low, merit > high], ["reject", "accept"], "review")
