"""Time the measurements against the explanations that they are made of, and print what stability costs.

    python bench/robustness.py

One core, CPU times, the best of three.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import time
from collections.abc import Callable

import numpy as np
from problems import LOADERS, Case, explainer, fitted_model, split

from evenhand import L2, Gaussian, Steady, certify, instability

SHARE = 0.6  # of the rate of explain() that instability() has to reach
SECONDS = 10.0  # that certifying a thousand people may take


def main() -> None:
    """Run the benchmark."""
    print(_instability())
    print()
    lines = [_certify(Case(data, model, method, cost)) for data, model, method, cost in _cases()]
    print("\n".join(line for line, _ in lines))
    slowest = max(seconds for _, seconds in lines)
    print(f"- certify, 1,000 people: at most {SECONDS:g} s; got {slowest:.2f} s: {_verdict(slowest <= SECONDS)}")
    print("\nPrice of Steady, cost relative to the closest counterfactual (standard deviations as units):")
    for data in LOADERS:
        for model in ("softmax", "tree", "GLVQ"):
            print(_price(data, model))


def _cases() -> list[tuple[str, str, str, str]]:
    return [
        (data, model, method, cost)
        for data in LOADERS
        for model in ("softmax", "tree", "GLVQ")
        for method in ("closest", "plausible")
        for cost in ("l1", "l2")
    ]


def _instability(people: int = 1000, draws: int = 100) -> str:
    """instability() beside explain() on the same number of perturbed people."""
    case = Case("digits", "softmax", "closest", "l1")
    explain = explainer(case)
    X = _people(case.data, people)
    moved = np.repeat(X, draws, axis=0) + np.random.default_rng(0).normal(size=(people * draws, X.shape[1]))
    target = np.repeat(np.asarray(explain.explain(X, "random", random_state=0).target), draws)
    pairs = []
    for _ in range(3):
        raw = _seconds(lambda: explain.explain(moved, target))
        whole = _seconds(lambda: instability(explain, X, Gaussian(), target="random", draws=draws, random_state=0))
        pairs.append((raw, whole))
    raw, whole = (min(seconds) for seconds in zip(*pairs, strict=True))
    n = people * draws
    return (
        f"{case}, {people:,} people x {draws} draws: instability {n / whole:,.0f}/s, explain {n / raw:,.0f}/s\n"
        f"- share of the solver's rate: at least {SHARE:.0%}; got {raw / whole:.0%}: {_verdict(raw / whole >= SHARE)}"
    )


def _certify(case: Case, people: int = 1000) -> tuple[str, float]:
    explain = explainer(case)
    X = _people(case.data, people)
    certify(explain, X[:2], "random", random_state=0)
    seconds = _seconds(lambda: certify(explain, X, "random", random_state=0))
    return f"certify, {case}, {people:,} people: {seconds:.2f} s", seconds


def _price(data: str, model: str) -> str:
    X, _, _ = split(data)
    spread = X.std(axis=0)
    cost = L2(weights=1 / np.where(spread > 0, spread, 1.0) ** 2)
    fitted = Steady(cost=cost).fit(fitted_model(data, model), X)
    ratio = fitted.price_of(_people(data, 2000), "random")
    ratio = ratio[np.isfinite(ratio)]
    middle, high = np.quantile(ratio, [0.5, 0.9])
    return f"{data}, {model}: median {middle:.2f}, 90th percentile {high:.2f} ({len(ratio):,} people)"


def _people(data: str, n: int) -> np.ndarray:
    """Test points, drawn with repetition."""
    test = split(data)[2]
    return test[np.random.default_rng(0).integers(len(test), size=n)]


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _verdict(met: bool) -> str:
    return "met" if met else "MISSED"


if __name__ == "__main__":
    main()
