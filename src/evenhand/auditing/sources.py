"""The people of an audit: a table in memory, or a Parquet file that is read batch by batch."""

from __future__ import annotations

import csv
import hashlib
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
        part = _doubles(self.frame[list(columns)].reset_index(drop=True))
        for start in range(0, len(part), size):
            yield part.iloc[start : start + size]

    def sha256(self) -> str:
        """Of the file that it was read from, or of names and values."""
        if self.digest is None:
            content = hashlib.sha256(repr([(name, str(kind)) for name, kind in self.frame.dtypes.items()]).encode())
            content.update(pd.util.hash_pandas_object(self.frame, index=True).to_numpy().tobytes())
            self.digest = content.hexdigest()
        return self.digest


@dataclass
class Parquet:
    """A Parquet file, never in memory as a whole."""

    path: Path
    name: str = field(init=False)
    rows: int = field(init=False)
    columns: list[str] = field(init=False)

    def __post_init__(self) -> None:
        import pyarrow
        import pyarrow.parquet

        try:
            about = pyarrow.parquet.ParquetFile(self.path)
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise AuditError(f"{self.path} is not a Parquet file that can be read: {_line(error)}") from None
        with about:
            self.name, self.rows = self.path.name, about.metadata.num_rows
            self.columns = [str(name) for name in about.schema_arrow.names]
        _check_names(self.columns, self.name)

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pd.DataFrame]:
        """Some columns, `size` rows at a time."""
        import pyarrow
        import pyarrow.parquet

        start = 0
        try:
            with pyarrow.parquet.ParquetFile(self.path) as file:
                for batch in file.iter_batches(batch_size=size, columns=list(columns)):
                    frame = batch.to_pandas()
                    if not set(columns) <= set(frame.columns):  # what pandas wrote as an index is a column here
                        frame = frame.reset_index()
                    yield _doubles(frame[list(columns)].set_axis(pd.RangeIndex(start, start + len(frame))))
                    start += len(frame)
        except (pyarrow.ArrowException, OSError) as error:
            raise AuditError(f"{self.path} cannot be read after row {start}: {_line(error)}") from None

    def sha256(self) -> str:
        """Of the file."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def _doubles(frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers of single precision as doubles: the same values, and what is computed from them is exact enough."""
    single = [name for name, kind in frame.dtypes.items() if kind in (np.float32, np.float16)]
    return frame.astype(dict.fromkeys(single, np.float64)) if single else frame


def _check_names(columns: Sequence[str], table: str) -> None:
    twice = [name for name in columns if list(columns).count(name) > 1]
    if twice:
        raise AuditError(f"{table} has two columns {twice[0]!r}: names must tell columns apart. Rename one of them.")


def open_table(path: Path, id_column: str | None = None) -> Source:
    """The people of a file; ids are texts, so that leading zeros stay."""
    try:
        folder = path.stat() and path.is_dir()
    except FileNotFoundError:
        raise AuditError(f"There is no data file {path}.") from None
    except (OSError, ValueError) as error:
        raise AuditError(f"The data file {path} cannot be read: {_line(error)}.") from None
    if folder:
        raise AuditError(f"{path} is a folder; data is one .csv or .parquet file.")
    if path.suffix.lower() == ".parquet":
        return Parquet(path)
    if path.suffix.lower() != ".csv":
        raise AuditError(f"data must be a .csv or .parquet file, got {path.name}.")
    try:
        _check_head(path)
        frame = pd.read_csv(path, index_col=False, dtype={id_column: str} if id_column else None)
    except pd.errors.EmptyDataError:
        raise AuditError(f"{path} is empty.") from None
    except (pd.errors.ParserError, csv.Error, UnicodeDecodeError, OSError) as error:
        raise AuditError(f"{path} is not a CSV file that can be read: {_line(error)}") from None
    return Frame(frame, path.name, hashlib.sha256(path.read_bytes()).hexdigest())


def _check_head(path: Path) -> None:
    """Names of a CSV file's columns, and as many fields below: pandas would guess what is meant."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file)
        names, first = next(rows, []), next(rows, None)
    _check_names(names, path.name)
    if first is not None and len(first) > len(names):
        raise AuditError(f"{path}: the first row has {len(first)} fields, the header {len(names)}. Name every column.")


def as_source(X: Any) -> Source:
    """The people of a DataFrame of pandas, polars or whatever else narwhals knows, or of an array."""
    if isinstance(X, Frame | Parquet):
        return X
    if isinstance(X, np.ndarray) or (isinstance(X, list) and X):
        table = np.asarray(X)
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
    if X.columns.has_duplicates:
        twice = X.columns[X.columns.duplicated()][0]
        raise AuditError(f"The table has two columns {twice!r}: names must tell them apart.")
    return Frame(X.rename(columns=str))


def check_columns(source: Source, wanted: Sequence[str], what: str) -> None:
    """Refuse columns that the table does not have."""
    for name in wanted:
        if name not in source.columns:
            raise AuditError(
                f"{what}: {source.name} has no column {name!r}.{nearest(str(name), source.columns)} "
                f"Its columns are {', '.join(source.columns)}."
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
