"""Measure how stable the counterfactuals of dice-ml are.

Run with ``pip install 'evenhand[dice]'`` and ``python docs/examples/audit_dice.py``; it takes about a minute.
"""

from __future__ import annotations

import logging
import warnings

import dice_ml
import numpy as np
import pandas as pd
from raiutils.exceptions import UserConfigValidationException
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evenhand import L1, Closest, External, Gaussian, Relative, compare, instability

COLUMNS = ["mean radius", "mean texture", "mean smoothness", "mean concavity", "mean symmetry"]
logging.disable(logging.INFO)
warnings.filterwarnings("ignore", category=FutureWarning)
warnings.filterwarnings("ignore", category=UserWarning, module="dice_ml")

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X[COLUMNS]
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)

data = dice_ml.Data(dataframe=X.assign(malignant=y), continuous_features=COLUMNS, outcome_name="malignant")
explainer = dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn"), method="random")


def dice(people: pd.DataFrame, target: int) -> pd.DataFrame:
    """One counterfactual per person, NaN where DiCE finds none: all that External needs."""
    answers = pd.DataFrame(np.nan, index=people.index, columns=people.columns)
    for row in people.index:
        try:
            found = explainer.generate_counterfactuals(
                people.loc[[row]], total_CFs=1, desired_class=int(target), verbose=False
            )
        except UserConfigValidationException:  # DiCE's way to say that it found nothing
            continue
        table = found.cf_examples_list[0].final_cfs_df
        if table is not None and len(table):
            answers.loc[row] = table.iloc[0][list(people.columns)].astype(float)
    return answers


people = X.iloc[:20]
cost = L1.mad(X)
noise = Relative(Gaussian(0.01)).fit(X.to_numpy())  # a tenth of each feature's standard deviation
options = {"draws": 5, "distance": cost, "random_state": 0}
theirs = instability(External(dice, cost).fit(model, X), people, noise, **options)
ours = instability(Closest(cost).fit(model), people, noise, **options)

shown = ["median", "median_low", "median_high", "p95", "not_found_rate", "floor"]
summary = pd.concat({"dice-ml": theirs.summary()[shown], "evenhand, closest": ours.summary()[shown]})
print(summary.droplevel(1).round(2).to_string())  # noqa: T201 - an example talks
print()  # noqa: T201
print(compare(theirs, ours, names=("dice-ml", "closest")))  # noqa: T201
