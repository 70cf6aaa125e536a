"""One Parquet file per finished cell: written atomically, verified when read."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.study.cells import Cell

_KEY = b"evenhand"


class DamagedError(ValueError):
    """A checkpoint that cannot be trusted; the message says why."""


def path_of(cell: Cell, key: str, folder: Path) -> Path:
    """Where the result of a cell is kept: the name is the hash of all that it depends on."""
    return folder / f"{cell.data.name}-{cell.model.name}-{cell.method.name}-{key}.parquet"


def write(path: Path, key: str, table: pd.DataFrame, info: dict[str, Any]) -> None:
    """Write a result so that it is there whole, or not at all, whatever happens in between."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    content = json.dumps({"key": key, "info": info, "checksum": _checksum(arrow)})
    arrow = arrow.replace_schema_metadata({**(arrow.schema.metadata or {}), _KEY: content.encode()})
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            pq.write_table(arrow, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)  # noqa: PTH105 - the atomic call, by its name
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read(path: Path, key: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The result in a checkpoint.

    Raises
    ------
    DamagedError
        If the file is cut off, has been changed, or belongs to another configuration.
    """
    try:
        arrow = pq.read_table(path)
        content = json.loads((arrow.schema.metadata or {})[_KEY])
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise DamagedError(f"{path.name} is not a whole Parquet file: {error}") from error
    if content.get("key") != key:
        raise DamagedError(f"{path.name} is the result of another configuration.")
    if content.get("checksum") != _checksum(arrow):
        raise DamagedError(f"{path.name} does not hold what was written into it.")
    return arrow.to_pandas(), content["info"]


def _checksum(arrow: pa.Table) -> str:
    """Of the values, independent of how memory or the file hold them."""
    digest = hashlib.sha256()
    for name, column in zip(arrow.column_names, arrow.columns, strict=True):
        values = column.to_numpy()
        digest.update(f"{name}:{len(values)};".encode())
        digest.update("\0".join(map(str, values)).encode() if values.dtype == object else values.tobytes())
    return digest.hexdigest()
