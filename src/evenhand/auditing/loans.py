"""Loan applications that nobody made: a generator with an unstable spot and an unfair group, or without.

Everything here is synthetic.  The bank of this example declines applicants by a few rules, which a decision tree
learns from its past decisions.  Two things are planted:

- **An unstable spot.**  A loan is granted for a high enough income *or* for high enough savings.  Whoever is about
  equally far from both is "in the middle": the least change of their data turns the advice "earn more" into "save
  more".  The generator puts one in seven of the applicants there.
- **An unfair group.**  Whoever lives at the same address for less than three years needs a higher income, and savings
  do not count.  That cannot be changed by applying again, and it is so for most people who moved here recently: the
  origin is no input of the model, and yet the advice costs them more at the same distance from the boundary.

The clean variant has one income limit for all, and nobody is put into the middle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from evenhand.perturbations import Gaussian, Mixed, Relative, Rounding
from evenhand.table.actionable import Actionable

PEOPLE = 4000
TRAINED_ON = 20_000
FEATURES = ["age", "income", "savings", "loan", "term", "years_at_address", "open_credits"]
INCOME, SAVINGS, NEWCOMERS_INCOME, YEARS = 2600.0, 12_000.0, 3400.0, 3.0
SPREADS = (560.0, 2900.0)  # of income and savings, about
CLOSE = 0.6  # two ways that differ by less, in units of the spread, are about equally far
GATES = (
    "not_found_rate <= 0.01",
    "median_amplification <= 1.2",
    "p95_amplification <= 1.5",
    "certified_share(0.1) >= 0.9",
    "pair_difference_rate <= 0.02",
    "group_cost_gap(origin) <= 0.25",
    "group_adjusted_gap(origin) <= 0.25",
)


@dataclass
class Loans:
    """An example to audit.

    Attributes
    ----------
    model : DecisionTreeClassifier
        Fitted on other people of the same kind.
    people : DataFrame
        Features, `sex` and `origin`, which are no inputs of the model, and the bank's decision.
    in_the_middle, newcomer : arrays of bool
        Who is where; the audit does not see it.
    """

    model: Any
    people: pd.DataFrame
    in_the_middle: np.ndarray
    newcomer: np.ndarray

    def options(self) -> dict[str, Any]:
        """How to audit it: keyword arguments of :func:`evenhand.audit`."""
        return {
            "features": FEATURES,
            "label": "decision",
            "sensitive": ["origin", "sex"],
            "target": "granted",
            "cost": "l2",
            "actionable": Actionable(immutable=["age", "years_at_address"]),
            # What applicants say of themselves may be a little off; the rest is on file.
            "perturbations": {
                "noise": Mixed(dict.fromkeys(("income", "savings", "loan"), Relative(Gaussian(0.1)))),
                "rounding": Rounding(),
            },
            "gates": list(GATES),
        }


def loans(people: int = PEOPLE, *, clean: bool = False, seed: int = 0) -> Loans:
    """Generate applicants and a model.

    Parameters
    ----------
    people : int
        Applicants to audit; the model is fitted on as many others as it takes to learn the rules.
    clean : bool
        Leave out the unstable spot and the unfair rule.
    seed : int
        Of everything.

    Examples
    --------
    >>> example = loans(500)
    >>> example.people["decision"].value_counts().index.tolist()
    ['declined', 'granted']
    """
    rng = np.random.default_rng(seed)
    past, _, _ = _applicants(TRAINED_ON, clean, rng)
    model = DecisionTreeClassifier(min_samples_leaf=20, random_state=0).fit(past[FEATURES], past["decision"])
    table, middle, newcomer = _applicants(people, clean, rng)
    return Loans(model, table, middle, newcomer)


def _applicants(n: int, clean: bool, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    newcomer = rng.random(n) < 0.3
    planted = (rng.random(n) < 0.2) & ~newcomer & (not clean)
    income = rng.normal(2400.0, 550.0, n).clip(600.0)
    savings = rng.gamma(2.0, 2000.0, n)
    years = np.where(newcomer, rng.uniform(0.0, 2.0, n), rng.uniform(5.0, 25.0, n))
    steps = rng.uniform(1.6, 2.2, n)
    income = np.where(planted, INCOME - SPREADS[0] * (steps + rng.normal(0.0, 0.07, n)), income)
    savings = np.where(planted, SAVINGS - SPREADS[1] * (steps + rng.normal(0.0, 0.07, n)), savings)
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 70, n).astype(float),
            "income": income.round(),
            "savings": savings.clip(0.0).round(),
            "loan": rng.uniform(1000.0, 20_000.0, n).round(-2),
            "term": rng.choice([12.0, 24.0, 36.0, 48.0, 60.0], n),
            "years_at_address": years.round(1),
            "open_credits": rng.poisson(1.0, n).astype(float),
            "sex": rng.choice(["woman", "man"], n),
            "origin": np.where(newcomer, "moved here", "born here"),
        }
    )
    granted, middle = np.asarray(table["income"] >= INCOME), np.zeros(n, dtype=bool)
    if not clean:
        settled = table["years_at_address"] >= YEARS
        granted = np.where(settled, granted | (table["savings"] >= SAVINGS), table["income"] >= NEWCOMERS_INCOME)
        ways = (INCOME - table["income"]) / SPREADS[0], (SAVINGS - table["savings"]) / SPREADS[1]
        middle = (settled & ~granted & (np.abs(ways[0] - ways[1]) < CLOSE)).to_numpy()
    table["decision"] = np.where(granted, "granted", "declined")
    return table, middle, newcomer
