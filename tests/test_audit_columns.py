"""Audits of columns that are not there, play two parts or have strange names: refused with a sentence, or audited."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from audit_folders import NUMBERS, STRANGE, InFolder, Place, linear, table


class TestColumns(InFolder):
    @pytest.mark.parametrize(
        ("keys", "phrases"),
        [
            ({"label": "grantd"}, ("label:", "people.csv has no column 'grantd'", "Did you mean 'granted'?")),
            ({"id": "whom"}, ("id:", "people.csv has no column 'whom'", "Did you mean 'who'?")),
            ({"sensitive": ["sexx"]}, ("sensitive:", "people.csv has no column 'sexx'", "Did you mean 'sex'?")),
            ({"sensitive": "sexx"}, ("sensitive:", "people.csv has no column 'sexx'")),
            ({"features": ["income", "debt", "agee"]}, ("features:", "age", "agee", "Leave features out")),
            ({"features": ["income", "debt"]}, ("features:", "differs: age")),
            pytest.param(
                {"features": ["income", "income", "debt", "age"]},
                ("features", "'income'", "twice"),
            ),
            pytest.param(
                {"sensitive": ["sex", "sex"]},
                ("'sex'", "twice"),
            ),
            pytest.param({"actionable": {"immutable": ["agee"]}}, ("'agee'", "age", "immutable")),
            pytest.param({"actionable": {"increase": ["agee"]}}, ("'agee'", "age", "increase")),
            pytest.param({"actionable": {"decrease": ["agee"]}}, ("'agee'", "age", "decrease")),
            pytest.param({"actionable": {"bounds": {"agee": [0, 1]}}}, ("'agee'", "age", "bounds")),
            pytest.param({"actionable": {"levels": {"agee": ["a"]}}}, ("'agee'", "levels")),
            pytest.param({"actionable": {"levels": {"age": ["a"]}}}, ("'age'", "levels")),
            ({"actionable": {"increase": ["age"], "decrease": ["age"]}}, ("'age'", "increase", "decrease")),
            ({"target": "maybe"}, ("target:", "'maybe'", "'no', 'yes'")),
            ({"target": 1}, ("target:", "does not know 1")),
            ({"target": True}, ("target:", "does not know True")),
            ({"perturbations": {"x": {"kind": "levels"}}}, ("'x'", "suits no column")),
            ({"perturbations": {"x": {"kind": "gaussian", "covariance": 0}}}, ("changes nothing", "'x'")),
            pytest.param(
                {"perturbations": {"x": {"kind": "mask", "features": 9}}},
                ("x", "9 features"),
            ),
        ],
    )
    def test_numbers(self, place: Place, keys: dict[str, Any], phrases: tuple[str, ...]) -> None:
        place.write(**keys)
        place.refused(*phrases)

    @pytest.mark.parametrize(
        ("keys", "phrases"),
        [
            ({"actionable": {"immutable": ["purpos"]}}, ("'purpos'", "purpose")),
            ({"actionable": {"increase": ["purpos"]}}, ("'purpos'", "purpose")),
            ({"actionable": {"increase": ["purpose"]}}, ("'purpose'", "order")),
            ({"actionable": {"bounds": {"agee": [0, 1]}}}, ("'agee'", "age")),
            ({"actionable": {"bounds": {"purpose": [0, 1]}}}, ("'purpose'", "levels")),
            ({"actionable": {"levels": {"purpos": ["car"]}}}, ("'purpos'", "purpose")),
            ({"actionable": {"levels": {"purpose": ["boat"]}}}, ("'purpose'", "'boat'", "car")),
            ({"actionable": {"levels": {"age": [30]}}}, ("'age'", "levels")),
            ({"cost": "l2"}, ("cost", "l1", "l2")),
        ],
    )
    def test_levels(self, levels: Place, keys: dict[str, Any], phrases: tuple[str, ...]) -> None:
        levels.write(**keys)
        levels.refused(*phrases)

    def test_feature_gone_from_the_table(self, place: Place) -> None:
        place.put(table().drop(columns="age"))
        place.write()
        place.refused("features: people.csv has no column 'age'", "Its columns are income, debt")

    def test_model_without_names(self, place: Place) -> None:
        frame = table()
        place.model(LogisticRegression().fit(frame[NUMBERS].to_numpy(), frame["granted"]))
        place.write()
        place.refused("takes 3 columns", "List the model's columns under features")
        place.write(features=["income", "debt"])
        place.refused("is expecting 3 features")
        place.write(features=["income", "debt", "agee"])
        place.refused("features: people.csv has no column 'agee'", "Did you mean 'age'?")
        place.write(features=NUMBERS)
        place.audited()

    def test_label_among_the_features(self, place: Place) -> None:
        frame = table().assign(granted=lambda one: (one["granted"] == "yes").astype(int))
        place.model(linear(frame, [*NUMBERS, "granted"]))
        place.put(frame)
        place.write()
        assert "granted" in place.audited()["audited"]["features"]

    def test_id_among_the_features(self, place: Place) -> None:
        place.write(id="income")
        found = place.refused("id:", "income")
        assert "income" in found

    def test_sensitive_among_the_features(self, levels: Place) -> None:
        levels.write(sensitive=["purpose"])
        assert levels.audited()["groups"][0]["column"] == "purpose"

    def test_sensitive_is_the_label(self, place: Place) -> None:
        place.write(sensitive=["granted"])
        place.audited()

    def test_sensitive_is_the_id(self, place: Place) -> None:
        place.write(sensitive=["who"], id="who")
        place.audited()

    def test_many_groups(self, place: Place) -> None:
        place.put(table(400).assign(town=[f"town {i % 37}" for i in range(400)]))
        place.write(sensitive=["town"])
        assert len(place.audited()["groups"][0]["groups"]) >= 2

    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_numeric_groups(self, place: Place, name: str) -> None:
        place.put(table(), name)
        place.write(sensitive=["age", "debt"], data=name)
        assert [one["column"] for one in place.audited()["groups"]] == ["age", "debt"]

    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_groups_all_missing(self, place: Place, name: str) -> None:
        place.put(table().assign(sex=None), name)
        place.write(sensitive=["sex"], data=name)
        place.audited()

    def test_groups_partly_missing(self, place: Place) -> None:
        frame = table()
        frame.loc[::3, "sex"] = None
        place.put(frame)
        place.write(sensitive=["sex"])
        place.audited()

    def test_groups_of_other_kinds(self, place: Place) -> None:
        frame = table().assign(
            flag=lambda one: one["age"] > 40,
            day=pd.Timestamp("2020-01-01"),
            kind=lambda one: one["sex"].astype("category"),
            whole=lambda one: one["age"].astype("Int64").where(one["age"] > 30) // 20,
            infinite=lambda one: np.where(one["age"] > 40, np.inf, 1.0),
        )
        place.put(frame, "people.parquet")
        names = ["flag", "day", "kind", "whole", "infinite"]
        place.write(sensitive=names, data="people.parquet")
        assert [one["column"] for one in place.audited()["groups"]] == names


class TestNames(InFolder):
    @pytest.mark.parametrize("suffix", [".csv", ".parquet"])
    def test_strange(self, place: Place, suffix: str) -> None:
        rng = np.random.default_rng(1)
        frame = table().assign(**{name: rng.normal(size=200) for name in STRANGE})
        frame = frame.rename(columns={"sex": "<b>&amp;\n'\"`|"})
        place.model(linear(frame, [*NUMBERS, *STRANGE]))
        place.put(frame, f"people{suffix}")
        bounds = {name: [-10, 10] for name in STRANGE}
        limits = {"bounds": bounds, "increase": STRANGE[:5], "immutable": NUMBERS[:1]}
        place.write(data=f"people{suffix}", sensitive=["<b>&amp;\n'\"`|"], actionable=limits)
        assert place.audited()["audited"]["features"] == [*NUMBERS, *STRANGE]
        page = (place.folder / "out" / "report.html").read_text(encoding="utf-8")
        assert "<script>alert(1)" not in page
        assert "<b>&amp;" not in page

    def test_strange_beside_levels(self, place: Place) -> None:
        rng = np.random.default_rng(1)
        frame = table(300).assign(**{name: rng.choice(["car", f"{name}!", name], 300) for name in STRANGE})
        encoder = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), STRANGE))
        place.model(make_pipeline(encoder, LogisticRegression()).fit(frame[[*NUMBERS, *STRANGE]], frame["granted"]))
        place.put(frame, "people.parquet")
        limits = {"levels": {name: ["car", name] for name in STRANGE}}
        place.write(data="people.parquet", actionable=limits, people=5, explain=30)
        place.audited()

    def test_numbers_for_names(self, place: Place) -> None:
        frame = table().rename(columns=dict(zip(NUMBERS, "012", strict=True)))
        place.model(linear(frame, ["0", "1", "2"]))
        for name in ("people.csv", "people.parquet"):
            place.put(frame, name)
            place.write(data=name, actionable={"immutable": ["0"]})
            assert place.audited()["audited"]["features"] == ["0", "1", "2"]

    def test_numbers_for_names_that_the_model_has_not_seen(self, place: Place) -> None:
        frame = table()
        place.model(LogisticRegression().fit(frame[NUMBERS].to_numpy(), frame["granted"]))
        place.put(frame.rename(columns=dict(zip(NUMBERS, "012", strict=True))))
        place.write(features=["0", "1", "2"])
        place.audited()

    def test_names_that_are_no_texts_in_parquet(self, place: Place) -> None:
        import pyarrow
        import pyarrow.parquet

        frame = table()
        place.model(LogisticRegression().fit(frame[NUMBERS].to_numpy(), frame["granted"]))
        whole = frame.rename(columns=dict(zip(NUMBERS, range(3), strict=True)))
        pyarrow.parquet.write_table(
            pyarrow.Table.from_pandas(whole, preserve_index=False), place.folder / "people.parquet"
        )
        place.write(data="people.parquet", features=["0", "1", "2"])
        place.audited()

    def test_parquet_with_an_index(self, place: Place) -> None:
        table().set_index("who").to_parquet(place.folder / "people.parquet")
        place.write(data="people.parquet", id="who")
        place.audited()

    def test_no_names(self, place: Place) -> None:
        table().to_csv(place.folder / "people.csv", index=False, header=False)
        place.write()
        place.refused("people.csv has no column")
