"""What preparing an audit costs: questions to the model, counted, and never workers of its own."""

from __future__ import annotations

import math
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from audit_folders import NUMBERS, table
from evenhand.auditing import audit, model_view
from evenhand.auditing.errors import AuditError
from evenhand.auditing.model_view import MOST_REFUSED, TRIED, view_of
from evenhand.workers import backend


class Counted(ClassifierMixin, BaseEstimator):
    """Knows some levels of its last column, refuses others, and notes how it is asked."""

    def __init__(self, known: set[Any]) -> None:
        self.known, self.rows, self.jobs = known, [], set()
        self.classes_ = np.array(["no", "yes"])
        self.feature_names_in_ = np.array(["income", "town"], dtype=object)

    def fit(self, X: Any, y: Any) -> Counted:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: pd.DataFrame) -> Any:
        self.rows.append(len(X))
        self.jobs.add(joblib.effective_n_jobs(None))
        strange = set(X["town"]) - self.known
        if strange:
            raise ValueError(f"never seen: {min(strange)}")
        return np.where(X["income"] > 2000, "yes", "no")


def towns(rows: int, levels: int) -> pd.DataFrame:
    numbers = np.random.default_rng(0).normal(2000, 500, rows)
    return pd.DataFrame({"income": numbers, "town": [f"town {i % levels:06d}" for i in range(rows)]})


@pytest.mark.parametrize("levels", [10, 100, 1000])
def test_a_few_strange_levels_of_many_are_found_with_few_questions(levels: int) -> None:
    people = towns(20_000, levels)
    strange = set(people["town"].unique()[:: max(levels // 5, 2)])
    model = Counted(set(people["town"]) - strange)
    viewed, exact = view_of(model, people, "people")
    assert not exact
    assert len(viewed.schema) == 2
    assert len(model.rows) <= TRIED + 2 * (len(strange) + 1) * math.ceil(math.log2(levels) + 1) + 10
    assert sum(model.rows) <= TRIED + 8 * (len(people) + levels * (len(strange) + 1))


@pytest.mark.parametrize("levels", [100, 10_000])
def test_too_many_strange_levels_are_a_sentence(levels: int) -> None:
    people = towns(10_000, levels)
    model = Counted(set(people["town"].unique()[:30]))
    with pytest.raises(AuditError, match=f"'town' of people has {levels:,} levels, and the model refuses more than 20"):
        view_of(model, people, "people")
    assert len(model.rows) <= TRIED + 4 * (MOST_REFUSED + 1) * math.ceil(math.log2(levels) + 1)


def test_nobody_whom_the_model_takes_is_a_sentence() -> None:
    model = Counted(set())
    with pytest.raises(AuditError, match="refuses every row of people that was tried: never seen: town 0"):
        view_of(model, towns(10_000, 10_000), "people")
    assert len(model.rows) <= TRIED + 1


def test_the_model_finds_no_workers_of_the_audit_nor_of_its_user() -> None:
    people = towns(300, 3)
    for around in (backend(2, None), joblib.parallel_config(backend="loky", n_jobs=2)):
        model = Counted(set(people["town"].unique()[:2]))
        with around, pytest.raises(AuditError, match="target: the model does not know 'maybe'"):
            audit(model, people, jobs=None, target="maybe")
        assert model.jobs == {1}
        assert len(model.rows) > 5


def test_a_refused_row_does_not_start_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = table()
    encoder = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), ["purpose"]))
    model = make_pipeline(encoder, LogisticRegression()).fit(frame[[*NUMBERS, "purpose"]], frame["granted"])
    started = []
    before = joblib.parallel.Parallel._initialize_backend
    monkeypatch.setattr(
        joblib.parallel.Parallel,
        "_initialize_backend",
        lambda self: (started.append(type(self._backend).__name__), before(self))[1],
    )
    strange = frame.assign(age=pd.to_timedelta(frame["age"], unit="D"))
    with pytest.raises(
        AuditError, match=r"refuses every row of table .*Columns that hold no numbers: 'age', 'purpose'"
    ):
        audit(model, strange, jobs=2)
    assert set(started) <= {"SequentialBackend"}
    assert started


def test_levels_without_end_are_refused_before_the_model_is_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    people = towns(20_000, 10_000)
    monkeypatch.setattr(model_view, "view_in_table", lambda *_: pytest.fail("as wide as there are levels"))
    with pytest.raises(AuditError, match="'town' has 10,000 different values"):
        view_of(Counted(set(people["town"])), people, "people")
