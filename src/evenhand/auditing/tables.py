"""The people of an audit: a table in memory, or a Parquet file that is read batch by batch."""

from __future__ import annotations

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
        part = self.frame[list(columns)].reset_index(drop=True)
        for start in range(0, len(part), size):
            yield part.iloc[start : start + size]

    def sha256(self) -> str:
        """Of the file that it was read from, or of names and values."""
        if self.digest is None:
            found = hashlib.sha256(repr([(name, str(kind)) for name, kind in self.frame.dtypes.items()]).encode())
            found.update(pd.util.hash_pandas_object(self.frame, index=True).to_numpy().tobytes())
            self.digest = found.hexdigest()
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

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pd.DataFrame]:
        """Some columns, `size` rows at a time."""
        import pyarrow
        import pyarrow.parquet

        start = 0
        try:
            with pyarrow.parquet.ParquetFile(self.path) as file:
                for batch in file.iter_batches(batch_size=size, columns=list(columns)):
                    frame = batch.to_pandas()[list(columns)]
                    yield frame.set_axis(pd.RangeIndex(start, start + len(frame)))
                    start += len(frame)
        except (pyarrow.ArrowException, OSError) as error:
            raise AuditError(f"{self.path} cannot be read after row {start}: {_line(error)}") from None

    def sha256(self) -> str:
        """Of the file."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def open_table(path: Path) -> Source:
    """The people of a file."""
    if not path.exists():
        raise AuditError(f"There is no data file {path}.")
    if path.is_dir():
        raise AuditError(f"{path} is a folder; data is one .csv or .parquet file.")
    if path.suffix == ".parquet":
        return Parquet(path)
    if path.suffix != ".csv":
        raise AuditError(f"data must be a .csv or .parquet file, got {path.name}.")
    try:
        frame = pd.read_csv(path)
    except pd.errors.EmptyDataError:
        raise AuditError(f"{path} is empty.") from None
    except (pd.errors.ParserError, UnicodeDecodeError, OSError) as error:
        raise AuditError(f"{path} is not a CSV file that can be read: {_line(error)}") from None
    return Frame(frame, path.name, hashlib.sha256(path.read_bytes()).hexdigest())


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


@dataclass
class Survey:
    """What a first look at all rows found.

    Attributes
    ----------
    sample : DataFrame
        Features of some people, with everybody who has a level or a missing value that nobody before had.
    labels : Series or None
        Labels of all people.
    sensitive : DataFrame
        Sensitive columns of all people.
    ids : Index
        Who is who.
    missing : dict from column to (row, count)
        Features with missing values, and where the first one is.
    """

    sample: pd.DataFrame
    labels: pd.Series[Any] | None
    sensitive: pd.DataFrame
    ids: pd.Index
    missing: dict[str, tuple[int, int]]


def survey(
    source: Source,
    features: Sequence[str],
    label: str | None,
    sensitive: Sequence[str],
    id_column: str | None,
    keep: npt.NDArray[np.bool_],
) -> Survey:
    """Go through all rows once; `keep` says which rows go into the sample."""
    if not source.rows:
        raise AuditError(f"{source.name} has no rows: there is nobody to explain.")
    columns = list(
        dict.fromkeys([*features, *sensitive, *([label] if label else []), *([id_column] if id_column else [])])
    )
    seen: dict[str, set[Any]] = {name: set() for name in features}
    missing: dict[str, tuple[int, int]] = {}
    samples, labels, groups, ids = [], [], [], []
    for batch in source.batches(columns, READ):
        chosen = keep[batch.index.to_numpy()].copy()
        for name in features:
            _look(batch[name], seen[name], missing, chosen)
        samples.append(batch.loc[chosen, list(features)])
        groups.append(batch[list(sensitive)])
        labels += [batch[label]] if label else []
        ids += [batch[id_column]] if id_column else []
    who = pd.Index(pd.concat(ids)) if id_column else pd.RangeIndex(source.rows)
    if id_column and who.has_duplicates:
        again = who[who.duplicated()][0]
        raise AuditError(
            f"id: two rows of {source.name} have the {id_column} {again!r}. Name a column that tells people apart, or "
            "leave id out: then rows are counted from 0."
        )
    return Survey(
        pd.concat(samples), pd.concat(labels) if label else None, pd.concat(groups), who.rename(None), missing
    )


def _look(
    values: pd.Series[Any], seen: set[Any], missing: dict[str, tuple[int, int]], chosen: npt.NDArray[np.bool_]
) -> None:
    """Note missing values, and choose the first row of every level."""
    name, gone = str(values.name), values.isna().to_numpy()
    if gone.any():
        first, count = missing.get(name, (int(values.index[int(gone.argmax())]), 0))
        chosen[int(gone.argmax())] |= count == 0
        missing[name] = (first, count + int(gone.sum()))
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
        return
    codes, levels = pd.factorize(values)
    for code, level in enumerate(levels.tolist()):
        if level not in seen:
            seen.add(level)
            chosen[int(np.argmax(codes == code))] = True


def rows_of(source: Source, columns: Sequence[str], rows: npt.NDArray[np.intp]) -> pd.DataFrame:
    """Some rows, in the order in which they are asked for."""
    wanted = np.zeros(source.rows, dtype=bool)
    wanted[rows] = True
    parts = [batch[wanted[batch.index.to_numpy()]] for batch in source.batches(columns, READ)]
    found: pd.DataFrame = pd.concat(parts).loc[rows]
    return found


def _line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
