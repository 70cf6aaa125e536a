"""Law: whether columns add up is checked per coordinate of the model's last step, in units of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, OneHotEncoder, StandardScaler

from evenhand import Closest
from threads import one_thread  # noqa: F401

STEPS: dict[str, Any] = {
    "bins": lambda: KBinsDiscretizer(4, encode="ordinal", quantile_method="averaged_inverted_cdf"),
    "many bins": lambda: KBinsDiscretizer(50, encode="ordinal", quantile_method="averaged_inverted_cdf"),
    "one-hot bins": lambda: KBinsDiscretizer(4, encode="onehot-dense", quantile_method="averaged_inverted_cdf"),
}


def people(offset: float, amount: float, kind: str) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    numbers = {"age": offset + rng.uniform(20, 60, 300), "amount": rng.uniform(0, amount, 300)}
    return pd.DataFrame(numbers).astype(kind).assign(c=rng.choice(["a", "b"], 300))


def fitted(age: Any, X: pd.DataFrame) -> Any:
    columns = [("age", age, ["age"]), ("amount", "passthrough", ["amount"]), ("c", OneHotEncoder(), ["c"])]
    y = X["age"] > X["age"].median()
    return make_pipeline(ColumnTransformer(columns), LogisticRegression(max_iter=200)).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("amount", [1.0, 5e8])
@pytest.mark.parametrize("scaler", [StandardScaler, MinMaxScaler])
@pytest.mark.parametrize("step", STEPS)
def test_steps_are_found_beside_large_numbers(step: str, scaler: Any, amount: float) -> None:
    X = people(0.0, amount, "float64")
    model = fitted(make_pipeline(scaler(), STEPS[step]()), X)
    with pytest.raises(ValueError, match="'age' does not act linearly"):
        Closest().fit(model, X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("amount", [1e-9, 1.0, 5e8])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, 1e8])
@pytest.mark.parametrize("scaler", [StandardScaler, MinMaxScaler, lambda: "passthrough"])
def test_lines_are_lines_at_any_offset(scaler: Any, offset: float, amount: float, kind: str) -> None:
    if kind == "float32" and offset > 1e6:
        pytest.skip("half a century is one number in singles there")
    X = people(offset, amount, kind)
    model = fitted(scaler(), X)
    found = Closest().fit(model, X).explain(X[:30], target=True)
    assert (model.predict(found.counterfactual[found.valid])).all()
