"""One Parquet file per finished cell: there whole or not at all, and verified when read, down to the last bit."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.study.cells import Cell
from evenhand.study.errors import StudyError
from evenhand.writing import sweep, write_whole

_KEY = "evenhand"
# What comes behind it is the hash of the whole file, as it is with zeros there instead.
_SEAL = b"evenhand sha256 "
_ZEROS = b"0" * 64


class DamagedError(ValueError):
    """A checkpoint that cannot be trusted; the message says why."""


def path_of(cell: Cell, key: str, folder: Path) -> Path:
    """Where the result of a cell is kept: the name is the hash of all that it depends on."""
    return folder / f"{cell.data.name}-{cell.model.name}-{cell.method.name}-{key}.parquet"


def prepare(folder: Path) -> None:
    """Make the folder, and remove what runs that were killed left unfinished in it.

    Raises
    ------
    StudyError
        If it cannot be made, or not be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder)
    except OSError as error:
        raise _refused(folder, error) from None


def write(path: Path, key: str, table: pd.DataFrame, info: dict[str, Any]) -> None:
    """Write a result so that it is there whole, or not at all, whatever happens in between.

    Raises
    ------
    StudyError
        If it cannot be written.
    """
    content = _sealed(pa.Table.from_pandas(table, preserve_index=False), {"key": key, "info": info})
    try:
        write_whole(path, content)
    except OSError as error:
        raise _refused(path.parent, error) from None


def read(path: Path, key: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The result in a checkpoint.

    Raises
    ------
    DamagedError
        If the file is cut off, has been changed, or belongs to another configuration.
    """
    content = _checked(path)
    file = pq.ParquetFile(pa.BufferReader(content))
    about = json.loads(file.metadata.metadata[_KEY.encode()])
    if about["key"] != key:
        raise DamagedError(f"{path.name} is the result of another configuration.")
    return file.read().to_pandas(), about["info"]


def is_whole(path: Path, key: str) -> bool:
    """Whether there is a result that can be trusted."""
    try:
        read(path, key)
    except (DamagedError, FileNotFoundError):
        return False
    return True


def _sealed(table: pa.Table, about: dict[str, Any]) -> bytes:
    """The table as a Parquet file that holds its own hash."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, compression="zstd") as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({_KEY: json.dumps(about), f"{_KEY}.seal": (_SEAL + _ZEROS).decode()})
    content: bytes = sink.getvalue().to_pybytes()
    place = content.rindex(_SEAL + _ZEROS) + len(_SEAL)
    return content[:place] + _hash(content).encode() + content[place + len(_ZEROS) :]


def _checked(path: Path) -> bytes:
    """The bytes of a checkpoint, if they are those that were written."""
    try:
        if path.exists() and not path.is_file():
            raise DamagedError(f"{path.name} is no file.")
        content = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedError(f"{path.name} cannot be read: {error.strerror}.") from None
    place = content.rfind(_SEAL) + len(_SEAL)
    if place < len(_SEAL):
        raise DamagedError(f"{path.name} is not the whole file of a finished cell.")
    end = place + len(_ZEROS)
    if content[place:end] != _hash(content[:place] + _ZEROS + content[end:]).encode():
        raise DamagedError(f"{path.name} does not hold what was written into it.")
    return content


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _refused(folder: Path, error: OSError) -> StudyError:
    return StudyError(
        f"The folder {folder} cannot be written: {error.strerror or error}. Cells that are finished are kept there; "
        "mend that, or name another folder with --out, and run the command again."
    )
