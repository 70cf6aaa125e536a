"""A first look: ``python -m evenhand.cli.demo``.

Trains a model on scikit-learn's breast cancer data and prints the closest and the plausible
counterfactual of a few people side by side.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evenhand.cli.ending import run
from evenhand.costs import L1
from evenhand.explaining.explanations import Explanations
from evenhand.methods import Closest, Plausible

PEOPLE = 3
SHOWN = 6


def main() -> None:
    """Run the demonstration."""
    data = load_breast_cancer(as_frame=True)
    names = np.array(data.target_names)
    train, test, train_y, _ = train_test_split(data.data, names[data.target], test_size=0.25, random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(train, train_y)
    cost = L1.mad(train)
    print(f"Model: logistic regression on {train.shape[1]} measurements of {len(train)} tumours.")
    print("Cost of a change: each measurement in units of its median absolute deviation.\n")

    print("Fitting densities and compiling the solvers (the first run takes longer) ...", flush=True)
    started = time.perf_counter()
    ill = test[model.predict(test) == "malignant"]
    closest, plausible = Closest(cost=cost).fit(model), Plausible(cost=cost).fit(model, train, train_y)
    for explainer in (closest, plausible):
        explainer.explain(ill.iloc[:1], target="benign")
    print(f"... {time.perf_counter() - started:.1f} s.\n", flush=True)

    rates, results = {}, {}
    for name, explainer in (("closest", closest), ("plausible", plausible)):
        started = time.perf_counter()
        results[name] = explainer.explain(ill, target="benign")
        rates[name] = time.perf_counter() - started
    for row in range(PEOPLE):
        print(_person(results["closest"], results["plausible"], row))
    low, high = train.min(), train.max()
    for name, seconds in rates.items():
        result = results[name]
        after = pd.DataFrame(result.counterfactual)
        strange = int(((after < low) | (after > high)).any(axis=1).sum())
        print(
            f"{name:>9}: {len(result)} tumours in {1000 * seconds:.1f} ms, {int(result.valid.sum())} found and "
            f"confirmed by the model;\n{'':11}median cost {np.nanmedian(result.cost):.2f}, proven to within "
            f"{np.nanmax(result.gap):.0e}; {strange} of them end where a measurement was never seen."
        )


def _person(closest: Explanations, plausible: Explanations, row: int) -> str:
    """One person's two explanations as a table: what each would have to change."""
    factual = pd.DataFrame(closest.factual).iloc[row]
    nearest = pd.DataFrame(closest.counterfactual).iloc[row]
    dense = pd.DataFrame(plausible.counterfactual).iloc[row]
    moves = pd.DataFrame({"closest": (nearest - factual).abs(), "plausible": (dense - factual).abs()})
    ranked = moves.div(factual.abs() + 1e-12, axis=0).sort_values(["closest", "plausible"], ascending=False)
    changed = ranked[ranked.max(axis=1) > 0].index
    width = max(len(str(name)) for name in changed)
    lines = [f"Tumour {factual.name}: predicted malignant. It would be predicted benign with"]
    lines.append(f"  {'':{width}}  {'is':>9}  {'closest':>9}  {'plausible':>9}")
    for name in changed[:SHOWN]:
        cells = [_number(after) if after != factual[name] else "=" for after in (nearest[name], dense[name])]
        lines.append(f"  {name:{width}}  {_number(factual[name]):>9}  {cells[0]:>9}  {cells[1]:>9}")
    if len(changed) > SHOWN:
        lines.append(f"  ... and {len(changed) - SHOWN} more measurements.")
    lines.append(f"  {'cost':{width}}  {'':>9}  {closest.cost[row]:>9.2f}  {plausible.cost[row]:>9.2f}\n")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:.4g}"


if __name__ == "__main__":
    run(main)
