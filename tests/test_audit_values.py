"""Audits of people with missing, infinite, unknown or extreme values: refused by column and row, or audited."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from audit_folders import NUMBERS, InFolder, Place, encoded, linear, table


@pytest.mark.slow
class TestValues(InFolder):
    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_missing_number(self, place: Place, name: str) -> None:
        frame = table()
        frame.loc[[4, 9], "debt"] = np.nan
        place.put(frame, name)
        place.write(data=name)
        place.refused(f"Column 'debt' of {name} is missing in 2 rows, the first of them row 4", "SimpleImputer")

    def test_missing_number_by_id(self, place: Place) -> None:
        frame = table()
        frame.loc[[4, 9], "debt"] = np.nan
        place.put(frame)
        place.write(id="who")
        place.refused("Column 'debt' of people.csv is missing in 2 rows", "p0004")

    @pytest.mark.parametrize("column", ["debt", pytest.param("purpose")])
    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_missing_beside_levels(self, levels: Place, column: str, name: str) -> None:
        frame = table()
        frame.loc[[4, 9], column] = None
        levels.put(frame, name)
        levels.write(data=name)
        levels.refused(f"Column {column!r} of {name} is missing in 2 rows, the first of them row 4")

    def test_missing_with_an_imputer(self, place: Place) -> None:
        frame = table()
        frame.loc[[4, 9], "debt"] = np.nan
        frame.loc[[5, 9], "purpose"] = np.nan
        encoder = make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS),
            (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["purpose"]),
        )
        place.model(make_pipeline(encoder, LogisticRegression()).fit(frame[[*NUMBERS, "purpose"]], frame["granted"]))
        place.put(frame)
        place.write()
        assert place.audited()["coverage"]["people"][0]["not_found"] == 0

    @pytest.mark.parametrize("column", ["debt", "purpose"])
    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_all_missing(self, levels: Place, column: str, name: str) -> None:
        levels.put(table().assign(**{column: None}), name)
        levels.write(data=name)
        levels.refused(column, "missing" if name.endswith(".csv") else "no value at all")

    def test_all_missing_numbers(self, place: Place) -> None:
        place.put(table().assign(debt=np.nan))
        place.write()
        place.refused("'debt'")

    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_infinity(self, place: Place, name: str) -> None:
        frame = table()
        frame.loc[4, "debt"] = np.inf
        place.put(frame, name)
        place.write(data=name)
        assert place.audited()["coverage"]["people"][0]["not_found"] == 1

    def test_infinity_beside_levels(self, levels: Place) -> None:
        frame = table()
        frame.loc[4, "debt"] = -np.inf
        levels.put(frame)
        levels.write()
        assert levels.audited()["coverage"]["people"][0]["not_found"] == 1

    @pytest.mark.parametrize("where", ["place", pytest.param("levels")])
    def test_text_among_numbers(self, request: pytest.FixtureRequest, where: str) -> None:
        here: Place = request.getfixturevalue(where)
        frame = table().astype({"debt": object})
        frame.loc[4, "debt"] = "a lot"
        here.put(frame)
        here.write()
        here.refused("debt", *([] if where == "place" else ["a lot"]))

    @pytest.mark.parametrize("where", ["place", pytest.param("levels")])
    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_dates_among_numbers(self, request: pytest.FixtureRequest, where: str, name: str) -> None:
        here: Place = request.getfixturevalue(where)
        here.put(table().assign(debt=pd.date_range("2020-01-01", periods=200)), name)
        here.write(data=name)
        here.refused("debt")

    @pytest.mark.parametrize("where", ["place", "levels"])
    def test_lists_and_bytes(self, request: pytest.FixtureRequest, where: str) -> None:
        here: Place = request.getfixturevalue(where)
        for value in ([1.0, 2.0], b"\x00\xff", {"a": 1}):
            here.put(table().assign(debt=[value] * 200), "people.parquet")
            here.write(data="people.parquet")
            here.refused("debt", "people.parquet")

    def test_lists_among_levels(self, levels: Place) -> None:
        levels.put(table().assign(purpose=[["car"]] * 200), "people.parquet")
        levels.write(data="people.parquet")
        levels.refused("purpose", "people.parquet")

    @pytest.mark.parametrize(
        ("where", "kind"),
        [
            *(("place", kind) for kind in ("Int64", "category", "string")),
            *(("levels", kind) for kind in ("Int64", "category", "decimal")),
            pytest.param("levels", "float32"),
        ],
    )
    def test_numbers_of_other_types(self, request: pytest.FixtureRequest, where: str, kind: str) -> None:
        """The model was fitted with whole numbers; the same ones in another type are the same people."""
        from decimal import Decimal

        here: Place = request.getfixturevalue(where)
        frame = table()
        frame["age"] = [Decimal(int(age)) for age in frame["age"]] if kind == "decimal" else frame["age"].astype(kind)
        here.put(frame, "people.parquet")
        here.write(data="people.parquet")
        if kind == "string":
            here.refused("age")
        else:
            here.audited()

    def test_nullable_numbers_with_a_gap(self, place: Place) -> None:
        place.put(table().assign(age=lambda one: one["age"].astype("Int64").where(one.index != 6)), "people.parquet")
        place.write(data="people.parquet")
        place.refused("Column 'age' of people.parquet is missing in 1 rows, the first of them row 6")

    @pytest.mark.parametrize("kind", ["category", "string"])
    def test_levels_of_other_types(self, levels: Place, kind: str) -> None:
        levels.put(table().assign(purpose=lambda one: one["purpose"].astype(kind)), "people.parquet")
        levels.write(data="people.parquet")
        levels.audited()

    @pytest.mark.parametrize("where", ["place", "levels"])
    def test_constant(self, request: pytest.FixtureRequest, where: str) -> None:
        here: Place = request.getfixturevalue(where)
        here.put(table().assign(age=40, purpose="car"))
        here.write()
        here.audited()

    def test_booleans(self, place: Place) -> None:
        frame = table().assign(age=lambda one: one["age"] > 40)
        place.model(linear(frame))
        for name in ("people.csv", "people.parquet"):
            place.put(frame, name)
            place.write(data=name)
            place.audited()

    def test_many_levels(self, place: Place) -> None:
        frame = table(2000).assign(purpose=[f"level {i}" for i in range(2000)])
        place.model(encoded(frame))
        place.put(frame)
        place.write(explain=20)
        place.refused("Column 'purpose' has 2,000 different values")

    @pytest.mark.parametrize(
        ("unknown", "name"),
        [
            ("ignore", "people.csv"),
            pytest.param("error", "people.parquet"),
        ],
    )
    def test_level_that_was_not_seen(self, place: Place, unknown: str, name: str) -> None:
        frame = table()
        place.model(encoded(frame, handle_unknown=unknown))
        frame.loc[[4, 9], "purpose"] = "boat"
        place.put(frame, name)
        place.write(data=name)
        found = place.audited()
        counts = found["coverage"]["people"][0]
        assert counts["found"] + counts["not_found"] == 200
        if unknown == "error":
            assert counts["not_found"] == 2

    def test_level_that_was_not_seen_ordinal(self, place: Place) -> None:
        frame = table()
        encoder = make_column_transformer((StandardScaler(), NUMBERS), (OrdinalEncoder(), ["purpose"]))
        model = make_pipeline(encoder, DecisionTreeClassifier(max_depth=3, random_state=0))
        place.model(model.fit(frame[[*NUMBERS, "purpose"]], frame["granted"]))
        frame.loc[[4, 9], "purpose"] = "boat"
        place.put(frame)
        place.write()
        assert place.audited()["coverage"]["people"][0]["not_found"] == 2

    def test_no_level_was_seen(self, levels: Place) -> None:
        levels.put(table().assign(purpose="boat"))
        levels.write()
        levels.refused("purpose", "boat")

    @pytest.mark.parametrize(("where", "target"), [("place", "yes"), ("levels", "yes"), ("place", None)])
    def test_bounds_that_exclude_everybody(self, request: pytest.FixtureRequest, where: str, target: Any) -> None:
        here: Place = request.getfixturevalue(where)
        fixed = ["debt", "age"] + (["purpose"] if where == "levels" else [])
        here.write(target=target, actionable={"immutable": fixed, "bounds": {"income": [-2e9, -1e9]}})
        found = here.audited()
        counts = found["coverage"]["people"][0]
        assert found["verdict"]["exit_code"] in (1, 3)
        assert counts["not_found"] > 0
        assert found["coverage"]["reasons"] or found["notes"]

    def test_nothing_may_change(self, place: Place) -> None:
        place.write(actionable={"immutable": NUMBERS})
        found = place.audited()
        assert found["verdict"]["exit_code"] in (1, 3)
        assert found["coverage"]["people"][0]["found"] == 0

    def test_one_row(self, place: Place) -> None:
        place.put(table().iloc[:1])
        place.write(label=None)
        assert place.audited()["verdict"]["exit_code"] == 3
        (place.folder / "audit.toml").unlink()

    def test_one_row_with_its_label(self, place: Place) -> None:
        place.put(table().iloc[:1])
        place.write()
        place.refused("label: all 1 rows of people.csv have the label")

    @pytest.mark.parametrize("label", ["granted", None])
    def test_two_rows(self, place: Place, label: str | None) -> None:
        frame = table()
        place.put(pd.concat([frame[frame["granted"] == one].iloc[:1] for one in ("no", "yes")]))
        place.write(label=label)
        place.audited()

    @pytest.mark.parametrize("where", ["place", "levels"])
    def test_rows_that_are_all_the_same(self, request: pytest.FixtureRequest, where: str) -> None:
        here: Place = request.getfixturevalue(where)
        here.put(table().iloc[[3] * 50])
        here.write(label=None)
        here.audited()

    @pytest.mark.parametrize("where", ["place", "levels"])
    def test_rows_that_are_all_there_twice(self, request: pytest.FixtureRequest, where: str) -> None:
        here: Place = request.getfixturevalue(where)
        here.put(pd.concat([table()] * 2))
        here.write()
        here.audited()

    @pytest.mark.parametrize("rows", [2, 3])
    def test_few_rows_for_other_methods(self, place: Place, rows: int) -> None:
        place.put(table().iloc[:rows])
        place.write(label=None, methods=["closest", "plausible", "steady", "penalized"])
        place.audited()

    @pytest.mark.parametrize("scale", [1e-12, 1e12])
    def test_extreme_numbers(self, place: Place, scale: float) -> None:
        frame = table()
        frame["income"] *= scale
        place.model(linear(frame))
        place.put(frame)
        place.write()
        place.audited()
