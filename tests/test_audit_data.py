"""Audits of data files that are missing, damaged or of another kind, and of labels that do not fit the model."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from audit_folders import NUMBERS, SPOILED, InFolder, Place, table


class TestData(InFolder):
    def test_missing(self, place: Place) -> None:
        place.write(data="peple.csv")
        place.refused("There is no data file", "peple.csv")

    def test_folder(self, place: Place) -> None:
        (place.folder / "people").mkdir()
        place.write(data="people")
        place.refused("people is a folder; data is one .csv or .parquet file")

    @pytest.mark.parametrize("suffix", [".csv", ".parquet"])
    def test_folder_with_a_suffix(self, place: Place, suffix: str) -> None:
        (place.folder / f"folder{suffix}").mkdir()
        place.write(data=f"folder{suffix}")
        place.refused("is a folder; data is one .csv or .parquet file")

    @pytest.mark.parametrize("name", ["people.xlsx", "people", "people.csv.gz"])
    def test_suffix(self, place: Place, name: str) -> None:
        (place.folder / name).write_bytes(b"x")
        place.write(data=name)
        place.refused("data must be a .csv or .parquet file, got", name)

    def test_suffix_in_capitals(self, place: Place) -> None:
        place.put(table()).rename(place.folder / "PEOPLE.CSV")
        place.write(data="PEOPLE.CSV")
        place.audited()

    @pytest.mark.parametrize(
        "name",
        [pytest.param("x" * 300 + ".csv"), "a\0b.csv", "people.csv/people.csv"],
    )
    def test_impossible_name(self, place: Place, name: str) -> None:
        place.write(data=name)
        place.refused(".csv")

    @pytest.mark.parametrize("name", ["empty.csv", "empty.parquet"])
    def test_empty(self, place: Place, name: str) -> None:
        (place.folder / name).write_bytes(b"")
        place.write(data=name)
        place.refused(name)

    def test_blank(self, place: Place) -> None:
        (place.folder / "people.csv").write_bytes(b"\n\n\n")
        place.write()
        place.refused("people.csv")

    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_no_rows(self, place: Place, name: str) -> None:
        place.put(table().iloc[:0], name)
        place.write(data=name)
        place.refused(f"{name} has no rows")

    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_garbage(self, place: Place, name: str) -> None:
        (place.folder / name).write_bytes(SPOILED)
        place.write(data=name)
        place.refused(name)

    @pytest.mark.parametrize(
        "content", [b"\x00" * 500, bytes(range(256)) * 20, b"PK\x03\x04" + SPOILED, b"\x89PNG\r\n"]
    )
    def test_more_garbage(self, place: Place, content: bytes) -> None:
        (place.folder / "people.csv").write_bytes(content)
        place.write()
        place.refused("people.csv")

    @pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.99])
    def test_truncated_parquet(self, place: Place, share: float) -> None:
        whole = place.put(table(), "people.parquet").read_bytes()
        (place.folder / "people.parquet").write_bytes(whole[: int(share * len(whole))])
        place.write(data="people.parquet")
        place.refused("people.parquet is not a Parquet file")

    def test_parquet_damaged_inside(self, place: Place) -> None:
        path = place.put(table(), "people.parquet")
        whole = bytearray(path.read_bytes())
        whole[4:3000] = b"\xff" * 2996
        path.write_bytes(whole)
        place.write(data="people.parquet")
        place.refused("people.parquet cannot be read")

    def test_csv_that_is_parquet(self, place: Place) -> None:
        place.put(table(), "people.parquet").rename(place.folder / "people.csv")
        place.write()
        place.refused("people.csv")

    def test_ragged(self, place: Place) -> None:
        with (place.folder / "people.csv").open("a", encoding="utf-8") as file:
            file.write("1,2,3,4,5,6,7,8,9,10,11\n")
        place.write()
        place.refused("people.csv", "line 202")

    def test_each_row_has_one_field_too_many(self, place: Place) -> None:
        path = place.folder / "people.csv"
        head, *rows = path.read_text(encoding="utf-8").splitlines()
        path.write_text("\n".join([head, *(f"{row},extra" for row in rows)]) + "\n", encoding="utf-8")
        place.write()
        place.refused("people.csv", "8", "7")

    def test_short_rows(self, place: Place) -> None:
        with (place.folder / "people.csv").open("a", encoding="utf-8") as file:
            file.write("2000,300\n")
        place.write()
        place.refused("200")

    def test_open_quote(self, place: Place) -> None:
        with (place.folder / "people.csv").open("a", encoding="utf-8") as file:
            file.write('"2000,300,30,car,f,x,yes\n')
        place.write()
        place.refused("people.csv")

    def test_semicolons(self, place: Place) -> None:
        table().to_csv(place.folder / "people.csv", index=False, sep=";")
        place.write()
        place.refused("people.csv", "income;debt")

    @pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
    def test_another_encoding(self, place: Place, encoding: str) -> None:
        table().assign(purpose="größer").to_csv(place.folder / "people.csv", index=False, encoding=encoding)
        place.write()
        place.refused("people.csv is not a CSV file that can be read", "utf-8")

    def test_byte_order_mark(self, place: Place) -> None:
        table().to_csv(place.folder / "people.csv", index=False, encoding="utf-8-sig")
        place.write()
        place.audited()

    @pytest.mark.parametrize("twice", ["income", "sex"])
    def test_two_columns_of_one_name(self, place: Place, twice: str) -> None:
        frame = pd.concat([table(), table(seed=1)[[twice]]], axis=1)
        frame.to_csv(place.folder / "people.csv", index=False)
        place.write()
        place.refused("people.csv", "two columns", repr(twice))

    @pytest.mark.parametrize("twice", ["income", "sex"])
    def test_two_columns_of_one_name_in_parquet(self, place: Place, twice: str) -> None:
        import pyarrow
        import pyarrow.parquet

        found = pyarrow.Table.from_pandas(table(), preserve_index=False)
        found = found.append_column(twice, found.column(twice))
        pyarrow.parquet.write_table(found, place.folder / "people.parquet")
        place.write(data="people.parquet")
        place.refused("people.parquet", "two columns", repr(twice))

    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_two_people_of_one_id(self, place: Place, name: str) -> None:
        frame = table()
        frame.loc[7, "who"] = "p0003"
        place.put(frame, name)
        place.write(data=name, id="who")
        place.refused(f"id: two rows of {name} have the who 'p0003'", "leave id out")

    @pytest.mark.parametrize("rows", [[5], [5, 9]])
    def test_missing_id(self, place: Place, rows: list[int]) -> None:
        frame = table()
        frame.loc[rows, "who"] = None
        place.put(frame)
        place.write(id="who")
        place.refused("id:", "who", "5")


class TestLabels(InFolder):
    def test_missing(self, place: Place) -> None:
        frame = table()
        frame.loc[[11, 17], "granted"] = None
        place.put(frame)
        place.write()
        place.refused("label: row 11 of people.csv has none (2 rows in all)", "Leave those rows out")

    def test_all_missing(self, place: Place) -> None:
        place.put(table().assign(granted=None))
        place.write()
        place.refused("label: row 0 of people.csv has none (200 rows in all)")

    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_unknown(self, place: Place, name: str) -> None:
        place.put(table().replace({"granted": {"yes": "Yes"}}), name)
        place.write(data=name)
        place.refused(f"label: {name} has the label 'Yes', which the model does not know; it knows 'no', 'yes'")

    def test_of_another_type(self, place: Place) -> None:
        place.put(table().assign(granted=lambda one: (one["granted"] == "yes").astype(int)))
        place.write()
        place.refused("which the model does not know", "'no', 'yes'")

    def test_one_class(self, place: Place) -> None:
        place.put(table().assign(granted="no"))
        place.write()
        place.refused("label: all 200 rows of people.csv have the label 'no'")

    def test_everybody_has_the_target(self, place: Place) -> None:
        frame = table().assign(income=1e6)
        place.put(frame)
        place.write(target="yes")
        place.refused("target: everybody in people.csv has the decision 'yes' already", "Name the decision")

    @pytest.mark.parametrize(
        ("kind", "name"),
        [
            (bool, "people.csv"),
            (float, "people.csv"),
            *((kind, "people.parquet") for kind in ("category", "Int64", "boolean")),
        ],
    )
    def test_types_that_fit(self, place: Place, kind: Any, name: str) -> None:
        text = kind in ("category", "string")
        frame = table().assign(granted=lambda one: one["granted"] if text else one["granted"] == "yes")
        model_label = frame["granted"] if text else frame["granted"].astype(float if kind is float else int)
        if kind in (bool, "boolean"):
            model_label = frame["granted"].astype(bool)
        place.model(make_pipeline(StandardScaler(), LogisticRegression()).fit(frame[NUMBERS], model_label))
        place.put(
            frame.astype({"granted": kind} if text or kind is bool else {"granted": int}).astype({"granted": kind}),
            name,
        )
        place.write(data=name)
        place.audited()
