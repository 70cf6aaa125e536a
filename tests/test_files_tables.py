"""Tables of any kind: read as they are, or refused with a sentence that names the column."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audit_folders import NUMBERS, InFolder, Place, linear, table
from evenhand.auditing import audit, sources
from evenhand.auditing.errors import AuditError
from evenhand.auditing.sources import as_source, check_columns, open_table
from evenhand.auditing.survey import survey

N = 40
DAY = datetime.datetime(2020, 1, 1)


def text(content: bytes) -> pa.Array:
    """Texts of one byte each, whatever the bytes are."""
    ends = np.arange(N + 1, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), N, [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(content * N)])


READABLE: dict[str, Any] = {
    "decimals": pa.array([Decimal("1.50"), None] * (N // 2)),
    "decimals of 38 digits": pa.array([Decimal(10**37)] * N),
    "durations": pa.array([datetime.timedelta(i) for i in range(N)]),
    "dates": pa.array([DAY.date()] * N),
    "times": pa.array([datetime.time(1)] * N),
    "zones": pa.array([DAY] * N, pa.timestamp("us", "Europe/Berlin")),
    "nothing": pa.nulls(N),
    "singles": pa.array(np.arange(N, dtype=np.float16)),
    "64 bits": pa.array([2**64 - 1] * N, pa.uint64()),
    "flags": pa.array([True, None] * (N // 2)),
    "categories of flags": pa.array(["yes", "no"] * (N // 2)).dictionary_encode(),
    "categories of numbers": pa.array([3, 1] * (N // 2)).dictionary_encode(),
    "infinite": pa.array([np.inf, np.nan] * (N // 2)),
    "empty texts": pa.array([""] * N),
}
REFUSED: dict[str, tuple[Any, str]] = {
    "no UTF-8": (text(b"\xff"), r"people\.parquet cannot be read after row 0, column 'x'.*UTF8"),
    "no zone": (pa.array([0] * N, pa.timestamp("us", "Nowhere/Land")), r"people\.parquet cannot be read after row 0"),
    "no date": (pa.array([2**31 - 1] * N, pa.int32()).view(pa.date32()), r"people\.parquet cannot be read"),
    "bytes": (pa.array([b"\xff"] * N), "holds bytes .*neither number nor level"),
    "lists": (pa.array([[1.0]] * N), "holds (list|ndarray) .*neither number nor level"),
    "tables": (pa.array([{"a": 1}] * N), "holds dict .*neither number nor level"),
    "maps": (pa.array([[("a", 1)]] * N, pa.map_(pa.string(), pa.int64())), "holds (list|ndarray) .*neither number"),
}


def seen(path: Path, column: str, part: str) -> pd.DataFrame:
    """All of a file as an audit first sees it, with a column in one of its parts."""
    source = open_table(path, column if part == "id" else None)
    features = [column] if part == "feature" else ["y"]
    label = column if part == "label" else None
    keep = np.ones(source.rows, dtype=bool)
    return survey(
        source, features, label, [column] if part == "sensitive" else [], column if part == "id" else None, keep
    ).sample


def put(folder: Path, column: Any) -> Path:
    path = folder / "people.parquet"
    pq.write_table(pa.table({"x": column, "y": np.arange(N, dtype=float)}), path)
    return path


@pytest.mark.parametrize("part", ["feature", "label", "sensitive"])
@pytest.mark.parametrize("kind", READABLE)
def test_columns_of_every_type_are_read(kind: str, part: str, tmp_path: Path) -> None:
    sample = seen(put(tmp_path, READABLE[kind]), "x", part)
    assert len(sample) == N
    if part == "feature" and kind in ("decimals", "decimals of 38 digits", "singles"):
        assert sample["x"].dtype == np.float64


@pytest.mark.parametrize("part", ["feature", "label", "sensitive", "id"])
@pytest.mark.parametrize("kind", REFUSED)
def test_columns_that_hold_neither_numbers_nor_levels_are_refused(kind: str, part: str, tmp_path: Path) -> None:
    column, phrase = REFUSED[kind]
    with pytest.raises(AuditError, match=phrase):
        seen(put(tmp_path, column), "x", part)


def damaged(whole: bytes) -> Iterator[tuple[str, bytes]]:
    for length in (0, 1, 2**31 - 1, 2**32 - 1):
        yield f"a footer of {length} bytes", whole[:-8] + length.to_bytes(4, "little") + b"PAR1"
    yield "a footer of noise", whole[:-200] + b"\xff" * 192 + whole[-8:]
    yield "nothing but the mark", b"PAR1"
    yield "no mark", whole[:-4]
    for part in range(1, 10):
        yield f"{part} tenths", whole[: part * len(whole) // 10]


def test_parquet_files_with_a_broken_footer_are_refused(tmp_path: Path) -> None:
    path = put(tmp_path, pa.array(["a", "b"] * (N // 2)))
    for _, content in damaged(path.read_bytes()):
        path.write_bytes(content)
        with pytest.raises(AuditError, match=r"people\.parquet"):
            seen(path, "x", "feature")


@pytest.mark.parametrize("seed", range(4))
def test_parquet_files_with_flipped_bits_raise_nothing_else(seed: int, tmp_path: Path) -> None:
    path, draw = put(tmp_path, pa.array(["a", "b"] * (N // 2))), np.random.default_rng(seed)
    whole = path.read_bytes()
    for _ in range(60):
        content = bytearray(whole)
        for at in draw.integers(len(content), size=draw.integers(1, 4)):
            content[at] ^= 1 << int(draw.integers(8))
        path.write_bytes(bytes(content))
        try:
            assert len(seen(path, "x", "feature")) == open_table(path).rows
        except AuditError as error:
            assert "people.parquet" in str(error)  # noqa: PT017 - it may also be whole enough


@pytest.mark.parametrize("notes", [b"{no json", b"[]", b"\xff", b'{"columns": 7, "index_columns": 7}'])
def test_notes_of_pandas_are_not_needed(notes: bytes, tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    frame = table()
    frame.index = pd.Index(frame["age"] + 1, name="old")
    whole = pa.Table.from_pandas(frame)
    strange = json.loads(whole.schema.metadata[b"pandas"])
    for column in strange["columns"]:
        column["numpy_type"] = column["pandas_type"] = "wrong[x]"
    for metadata in (notes, json.dumps(strange).encode()):
        pq.write_table(whole.replace_schema_metadata({b"pandas": metadata}), path)
        read = next(open_table(path).batches(["old", "age", "purpose"], 10**6))
        assert (read["old"] == read["age"] + 1).all()
        assert read["purpose"].tolist() == frame["purpose"].tolist()


def test_as_many_rows_as_the_file_says(tmp_path: Path) -> None:
    for said in (N - 1, N + 1):
        source = open_table(put(tmp_path, pa.array(range(N))))
        source.rows = said  # type: ignore[misc]  # as in a footer that was written for another table
        with pytest.raises(AuditError, match=rf"says that it has {said} rows, and has"):
            list(source.batches(["x"], 7))


# --- CSV.


@pytest.mark.parametrize(("separator", "called"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
@pytest.mark.parametrize("decimal", [".", ","])
def test_other_separators_are_named(separator: str, called: str, decimal: str, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    table().to_csv(path, index=False, sep=separator, decimal=decimal)
    with pytest.raises(AuditError, match=f"fields are separated by {called}, those of a CSV file by commas") as caught:
        open_table(path)
    assert repr(separator) in str(caught.value)
    path.write_text(f"a{separator}b\n1\n2\n", encoding="utf-8")  # one column with a strange name
    assert open_table(path).columns == [f"a{separator}b"]


@pytest.mark.parametrize("digits", [18, 19, 25, 300])
def test_whole_numbers_of_many_digits_are_numbers(digits: int, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("x\n" + "9" * digits + "\n1\n", encoding="utf-8")
    (batch,) = open_table(path).batches(["x"], 10)
    assert pd.api.types.is_numeric_dtype(batch["x"].dtype)
    assert batch["x"].astype(float).tolist() == [float("9" * digits), 1.0]


def test_whole_numbers_that_no_model_takes_are_named(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("x\n1\n" + "9" * 320 + "\n", encoding="utf-8")
    with pytest.raises(AuditError, match=r"'x' of people\.csv holds a whole number beyond 1e308 in row 1"):
        list(open_table(path).batches(["x"], 10))
    with pytest.raises(AuditError, match="'x' of table holds a whole number beyond 1e308 in row 0"):
        list(as_source(pd.DataFrame({"x": [10**5000, None]}, dtype=object)).batches(["x"], 10))


@pytest.mark.parametrize("when", ["_check_head", "read_csv"])
def test_what_is_parsed_is_what_is_hashed(when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.csv"
    path.write_text("x,y\n1,2\n", encoding="utf-8")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    place: Any = sources if when == "_check_head" else pd
    before = getattr(place, when)

    def late(*given: Any, **options: Any) -> Any:
        path.write_text("x,y\n3,4\n5,6\n", encoding="utf-8")  # somebody else writes it again
        return before(*given, **options)

    monkeypatch.setattr(place, when, late)
    source = open_table(path)
    assert next(source.batches(["x", "y"], 10)).to_numpy().tolist() == [[1, 2]]
    assert source.sha256() == digest


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(AuditError, match=r"pipe\.csv is a pipe or a device"):
        open_table(tmp_path / "pipe.csv")


def test_a_message_names_some_of_many_columns() -> None:
    source = as_source(pd.DataFrame(np.zeros((2, 5000))))
    with pytest.raises(AuditError, match="and 4,950 more"):
        check_columns(source, ["income"], "features")


# --- tables in memory.


@pytest.mark.parametrize(
    ("people", "phrase"),
    [
        ([[1], [1, 2]], "all of them the same columns"),
        (np.zeros(3), "one row each"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), "two columns '1'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns 'a'"),
        ({"a": [1]}, "got dict"),
        (7, "got int"),
        (pa.table({"a": text(b"\xff")}), "(cannot be had as a pandas table|two columns|no column)"),
    ],
)
def test_tables_that_are_none(people: Any, phrase: str) -> None:
    with pytest.raises(AuditError, match=phrase):
        check_columns(as_source(people), ["income"], "features")


def test_columns_of_several_names_have_one() -> None:
    frame = pd.DataFrame(np.zeros((2, 2)), columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]))
    assert as_source(frame).columns == ["('a', 1)", "('a', 2)"]


def test_lists_beside_the_features_do_not_matter() -> None:
    frame = table().assign(notes=[[i] for i in range(200)], more=[{"a": i} for i in range(200)])
    digest = as_source(frame).sha256()
    assert digest == as_source(frame.copy()).sha256() != as_source(frame.assign(notes=[[0]] * 200)).sha256()
    with pytest.raises(AuditError, match=r"'notes' of table holds list .* Name another column under sensitive"):
        audit(linear(frame), frame, sensitive=["notes"])


@pytest.mark.parametrize(
    "value", [object(), (1, [2]), pd.DateOffset(1), np.zeros(1), {1}], ids=lambda value: type(value).__name__
)
@pytest.mark.parametrize("gaps", [0, 3])
def test_objects_are_neither_numbers_nor_levels(value: Any, gaps: int) -> None:
    frame = table().assign(debt=pd.Series([None] * gaps + [value] * (200 - gaps), dtype=object))
    with pytest.raises(AuditError, match=rf"'debt' of table holds {type(value).__name__} \(row {gaps}\): neither"):
        audit(linear(table()), frame)


class TestTables(InFolder):
    @pytest.mark.parametrize("kind", REFUSED)
    def test_init_and_audit_end_in_a_sentence(self, place: Place, kind: str) -> None:
        frame = table(N)
        whole = pa.Table.from_pandas(frame, preserve_index=False)
        whole = whole.set_column(whole.column_names.index("debt"), "debt", REFUSED[kind][0])
        pq.write_table(whole, place.folder / "people.parquet")
        place.write(data="people.parquet")
        place.refused("people.parquet")
        place.refused("people.parquet", words=("init", "model.skops", "people.parquet", "--out", "new.toml"))

    def test_init_of_a_table_with_lists_beside_the_features(self, place: Place) -> None:
        place.put(table().assign(notes=[[i] for i in range(200)]), "people.parquet")
        found = place.run("init", "model.skops", "people.parquet")
        assert found.exit_code == 0, found.output
        assert NUMBERS[0] in (place.folder / "audit.toml").read_text(encoding="utf-8")
