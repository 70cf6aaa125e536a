"""The people of an audit: a table in memory, or a Parquet file that is read batch by batch."""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.auditing.errors import AuditError
from evenhand.settings import nearest

READ = 50_000  # rows at a time when a file is only looked at
LISTED = 50  # columns that a message names
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}  # of tables that are called CSV and are not


class Source(Protocol):
    """Rows that can be gone through more than once."""

    @property
    def name(self) -> str:
        """Of the file."""

    @property
    def rows(self) -> int:
        """How many people there are."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pd.DataFrame]:
        """Some columns, `size` rows at a time; the index counts rows from 0."""

    def sha256(self) -> str:
        """Of the content."""


@dataclass
class Frame:
    """A table in memory."""

    frame: pd.DataFrame
    name: str = "table"
    digest: str | None = None

    @property
    def rows(self) -> int:
        """How many people there are."""
        return len(self.frame)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.frame.columns)

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pd.DataFrame]:
        """Some columns, `size` rows at a time."""
        part = _doubles(self.frame[list(columns)].reset_index(drop=True), self.name)
        for start in range(0, len(part), size):
            yield part.iloc[start : start + size]

    def sha256(self) -> str:
        """Of the file that it was read from, or of names and values."""
        if self.digest is None:
            content = hashlib.sha256(repr([(name, str(kind)) for name, kind in self.frame.dtypes.items()]).encode())
            content.update(pd.util.hash_pandas_object(_hashable(self.frame), index=True).to_numpy().tobytes())
            self.digest = content.hexdigest()
        return self.digest


@dataclass
class Parquet:
    """A Parquet file, never in memory as a whole; `text` is the column that is who is who, and stays as it is."""

    path: Path
    text: str | None = None
    name: str = field(init=False)
    rows: int = field(init=False)
    columns: list[str] = field(init=False)

    def __post_init__(self) -> None:
        import pyarrow.parquet

        try:
            with pyarrow.parquet.ParquetFile(self.path) as about:
                self.name, self.rows = self.path.name, about.metadata.num_rows
                self.columns = [str(name) for name in about.schema_arrow.names]
        except Exception as error:  # a file that is no table makes its reader raise whatever it stumbles over
            raise AuditError(f"{self.path} is not a Parquet file that can be read: {_line(error)}") from error
        _check_names(self.columns, self.name)

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pd.DataFrame]:
        """Some columns, `size` rows at a time."""
        start = 0
        for frame in self._frames(columns, size):
            if start + len(frame) > self.rows:
                raise AuditError(f"{self.path} says that it has {self.rows:,} rows, and has more. Write it again.")
            frame.index = pd.RangeIndex(start, start + len(frame))
            yield _doubles(frame, self.name, self.text)
            start += len(frame)
        if start < self.rows:
            raise AuditError(f"{self.path} says that it has {self.rows:,} rows, and has {start:,}. Write it again.")

    def _frames(self, columns: Sequence[str], size: int) -> Iterator[pd.DataFrame]:
        """The same as they are in the file.

        What pandas noted about types and an index is left aside: the types of the file are enough, and notes that
        are damaged, or of another version, say nothing.
        """
        import pyarrow.parquet

        row, where = 0, ""
        try:
            with pyarrow.parquet.ParquetFile(self.path) as file:
                for batch in file.iter_batches(batch_size=size, columns=list(columns)):
                    for name in columns:  # texts are looked at much later, where nobody knows of a file
                        where = f", column {name!r}"
                        batch.column(name).validate(full=True)
                    where = ""
                    yield batch.replace_schema_metadata(None).to_pandas()[list(columns)]
                    row += batch.num_rows
        except Exception as error:  # as above: pages that cannot be unpacked, texts that are none, times out of range
            raise AuditError(f"{self.path} cannot be read after row {row}{where}: {_line(error)}") from error

    def sha256(self) -> str:
        """Of the file."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def _doubles(frame: pd.DataFrame, table: str, text: str | None = None) -> pd.DataFrame:
    """Numbers as doubles: the same values, and what is computed from them is exact enough.

    Decimals and whole numbers of more than 64 bits, which pandas keeps as objects, are numbers, not levels.
    """
    found = frame.copy(deep=False)
    for name, kind in frame.dtypes.items():
        if kind in (np.float32, np.float16):
            found[name] = frame[name].astype(np.float64)
        elif pd.api.types.is_object_dtype(kind) and name != text and _holds_numbers(frame[name]):
            try:
                found[name] = frame[name].to_numpy(np.float64, na_value=np.nan)
            except OverflowError:
                row = next(row for row, value in frame[name].items() if pd.notna(value) and abs(value) > 10**308)
                raise AuditError(
                    f"Column {name!r} of {table} holds a whole number beyond 1e308 in row {row}, which no model can "
                    "compute with. If its numbers are names, write them as texts."
                ) from None
    return found


def _holds_numbers(values: pd.Series[Any]) -> bool:
    """Whether a column of objects is one of decimals, or of whole numbers some of which are too large for 64 bits."""
    kind = pd.api.types.infer_dtype(values, skipna=True)
    if kind == "integer":
        return any(abs(value) >= 2**63 for value in values.dropna())
    return kind == "decimal"


def _hashable(frame: pd.DataFrame) -> pd.DataFrame:
    """Lists and tables inside of a table as texts."""

    def nested(values: pd.Series[Any]) -> bool:
        try:
            pd.factorize(values)
        except TypeError:
            return True
        return False

    found = frame.copy(deep=False)
    for name in [name for name in frame if nested(frame[name])]:
        found[name] = frame[name].map(repr)
    return found


def _check_names(columns: Sequence[str], table: str) -> None:
    twice = next((name for name, count in Counter(columns).items() if count > 1), None)
    if twice is not None:
        raise AuditError(f"{table} has two columns {twice!r}: names must tell columns apart. Rename one of them.")


def open_table(path: Path, id_column: str | None = None) -> Source:
    """The people of a file; ids are texts, so that leading zeros stay."""
    try:
        folder, file = path.stat() and path.is_dir(), path.is_file()
    except FileNotFoundError:
        raise AuditError(f"There is no data file {path}.") from None
    except (OSError, ValueError) as error:
        raise AuditError(f"The data file {path} cannot be read: {_line(error)}.") from None
    if folder:
        raise AuditError(f"{path} is a folder; data is one .csv or .parquet file.")
    if not file:
        raise AuditError(f"{path} is a pipe or a device; data is one .csv or .parquet file, which is read twice.")
    if path.suffix.lower() == ".parquet":
        return Parquet(path, id_column)
    if path.suffix.lower() != ".csv":
        raise AuditError(f"data must be a .csv or .parquet file, got {path.name}.")
    try:
        content = path.read_bytes()  # once: what is looked at and parsed is what is hashed
        _check_head(content, path)
        frame = pd.read_csv(io.BytesIO(content), index_col=False, dtype={id_column: str} if id_column else None)
    except AuditError:
        raise
    except pd.errors.EmptyDataError:
        raise AuditError(f"{path} is empty.") from None
    except Exception as error:  # a file that is no table makes its reader raise whatever it stumbles over
        raise AuditError(f"{path} is not a CSV file that can be read: {_line(error)}") from error
    return Frame(frame, path.name, hashlib.sha256(content).hexdigest())


def _check_head(content: bytes, path: Path) -> None:
    """Names of a CSV file's columns, and as many fields below: pandas would guess what is meant."""
    rows = csv.reader(io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline=""))
    names, first = next(rows, []), next(rows, None)
    for separator, called in SEPARATORS.items():
        if len(names) == 1 and first and 0 < names[0].count(separator) == ",".join(first).count(separator):
            raise AuditError(
                f"{path} has one column, {names[0][:200]!r}: its fields are separated by {called}, those of a CSV file "
                f"by commas. Write it again with commas, such as pd.read_csv(path, sep={separator!r}).to_csv(path, "
                "index=False), where numbers such as 1,5 need decimal=','."
            )
    _check_names(names, path.name)
    if first is not None and len(first) > len(names):
        raise AuditError(f"{path}: the first row has {len(first)} fields, the header {len(names)}. Name every column.")


def as_source(X: Any) -> Source:
    """The people of a DataFrame of pandas, polars or whatever else narwhals knows, or of an array."""
    if isinstance(X, Frame | Parquet):
        return X
    if isinstance(X, np.ndarray) or (isinstance(X, list) and X):
        try:
            table = np.asarray(X)
        except ValueError as error:  # rows of several lengths
            raise AuditError(f"A table of people has one row each, and all of them the same columns: {error}") from None
        if table.ndim != 2:
            raise AuditError(f"A table of people has one row each, got an array of shape {table.shape}.")
        return Frame(pd.DataFrame(table, columns=[f"x{j}" for j in range(table.shape[1])]))
    if not isinstance(X, pd.DataFrame):
        import narwhals

        try:
            X = narwhals.from_native(X, eager_only=True).to_pandas()
        except TypeError:
            raise AuditError(
                f"X must be a DataFrame (pandas, polars, or another that narwhals reads) or an array; "
                f"got {type(X).__name__}."
            ) from None
        except Exception as error:  # a table of another library that pandas has no types for
            raise AuditError(f"The {type(X).__name__} cannot be had as a pandas table: {_line(error)}") from error
    names = [str(name) for name in X.columns]
    _check_names(names, "The table")
    return Frame(X.set_axis(names, axis=1))


def check_columns(source: Source, wanted: Sequence[str], what: str) -> None:
    """Refuse columns that the table does not have."""
    known = set(source.columns)
    more = f" and {len(source.columns) - LISTED:,} more" if len(source.columns) > LISTED else ""
    for name in wanted:
        if name not in known:
            raise AuditError(
                f"{what}: {source.name} has no column {name!r}.{nearest(str(name), source.columns)} "
                f"Its columns are {', '.join(source.columns[:LISTED])}{more}."
            )


def rows_of(source: Source, columns: Sequence[str], rows: npt.NDArray[np.intp]) -> pd.DataFrame:
    """Some rows, in the order in which they are asked for."""
    wanted = np.zeros(source.rows, dtype=bool)
    wanted[rows] = True
    parts = [batch[wanted[batch.index.to_numpy()]] for batch in source.batches(columns, READ)]
    chosen: pd.DataFrame = pd.concat(parts).loc[rows]
    return chosen


def _line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
