"""Ways to hurt what a file holds: bits, parts of models, cells, types of columns, keys."""

from __future__ import annotations

import copy
import datetime
import re
from dataclasses import fields
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from evenhand.auditing.audit_file import AuditFile, PairsTable

CELLS = [
    "",
    "nan",
    "NULL",
    "inf",
    "-inf",
    "1e400",
    "0x1F",
    "9" * 25,
    "9" * 320,
    "-0",
    "1,5",
    '"',
    "'",
    "\0",
    "💶",
    "x" * 3000,
    "True",
    "2020-01-01",
    "=1+1",
    "\ufeff",
    "1_000",
    " 7 ",
    "p001",
    "<b>",
    "\\",
    "-9223372036854775809",
]
VALUES = [
    '""',
    '"x"',
    "0",
    "-1",
    "1",
    "1.5",
    "true",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "9" * 30,
    "9" * 5000,
    "1979-05-27T07:32:00Z",
    "1979-05-27",
    "07:32:00",
    "[]",
    "[[]]",
    '[1, "a"]',
    "{}",
    "{a = 1}",
    "[{a = 1}]",
    '"\\u0000"',
    '"' + "x" * 9000 + '"',
    "[" * 200 + "]" * 200,
    "[" * 5000 + "]" * 5000,
    '"no"',
    '["debt"]',
    '"debt"',
    "{debt = nan}",
    "{debt = [nan, inf]}",
    "{debt = [1, 1e400]}",
    '{"" = [0, 1]}',
    "[nan]",
    "[true]",
    "9223372036854775808",
    '"l2"',
    '"closest"',
    '["closest", "steady"]',
    '{x = {kind = "gaussian"}}',
    '{x = {kind = "mask", features = 99}}',
    '{x = {kind = "uniform", radius = 1e300}}',
    '["median_amplification <= nan"]',
    '["certified_share(1e400) >= 0"]',
    '["pair_difference_rate <= 0.1", "pair_difference_rate <= 0.1"]',
]
KEYS = [
    *(f.name for f in fields(AuditFile) if f.name != "out"),
    *(f"pairs.{f.name}" for f in fields(PairsTable)),
    *(f"actionable.{name}" for name in ("immutable", "increase", "decrease", "bounds", "levels")),
    *(f"perturbations.x{name}" for name in ("", ".kind", ".covariance")),
    *("density.quantile", "density.components", "modules", "strange", '""', '"a.b"', "x" * 3000),
]
HEAVY = ("draws", "max_draws", "people", "explain", "lookup")  # a million of them is no mistake, and takes its time


def flipped(content: bytes, rng: np.random.Generator) -> bytes:
    """Some bits turned over, a stretch overwritten, or the end cut off."""
    found = bytearray(content)
    if not found:
        return b"\0"
    way = rng.random()
    if way < 0.1:
        return bytes(found[: rng.integers(len(found))])
    if way < 0.2:
        at = int(rng.integers(len(found)))
        found[at : at + int(rng.integers(1, 64))] = rng.bytes(int(rng.integers(0, 64)))
        return bytes(found)
    for at in rng.integers(len(found), size=rng.integers(1, 4)):
        found[at] ^= 1 << int(rng.integers(8))
    return bytes(found)


def hurt_text(content: bytes, rng: np.random.Generator) -> bytes:
    """A text of lines and fields with some of them changed, doubled, moved or gone."""
    if rng.random() < 0.2:
        return flipped(content, rng)
    lines = content.decode().split("\n")
    for _ in range(rng.integers(1, 4)):
        i, j = (int(k) for k in rng.integers(len(lines), size=2))
        fields = lines[i].split(",")
        at, cell = int(rng.integers(len(fields))), str(rng.choice(CELLS))
        match int(rng.integers(8)):
            case 0:
                lines[i] = ",".join([*fields[:at], cell, *fields[at + 1 :]])
            case 1:
                lines[i] = ",".join([*fields[:at], cell, *fields[at:]])
            case 2:
                del lines[i]
                lines.append("")
            case 3:
                lines[i], lines[j] = lines[j], lines[i]
            case 4:
                lines.insert(i, lines[j])
            case 5:  # a whole column
                lines = [lines[0], *(_with_field(line, at, cell) for line in lines[1:])]
            case 6:
                separator = str(rng.choice([";", "\t", "|", ":", " "]))
                lines = [line.replace(",", separator) for line in lines]
            case _:
                names = lines[0].split(",")
                lines[0] = ",".join(names[int(k)] for k in rng.integers(len(names), size=len(names)))
    end = str(rng.choice(["\n", "\n", "\r\n", "\r"]))
    return end.join(lines).encode(
        str(rng.choice(["utf-8", "utf-8-sig", "utf-16"], p=[0.9, 0.05, 0.05])), errors="replace"
    )


def _with_field(line: str, at: int, cell: str) -> str:
    fields = line.split(",")
    return ",".join([*fields[:at], cell, *fields[at + 1 :]]) if line else line


def hurt_columns(frame: pd.DataFrame, rng: np.random.Generator) -> Any:
    """The same people with some columns of another type, in Arrow."""
    import pyarrow as pa

    n, table = len(frame), pa.Table.from_pandas(frame, preserve_index=bool(rng.random() < 0.2))
    ends = pa.py_buffer(np.arange(n + 1, dtype=np.int32).tobytes())
    day = datetime.datetime(2020, 1, 1)
    makers = [
        lambda: pa.array([Decimal(i) / 4 for i in range(n)]),
        lambda: pa.array([datetime.timedelta(i) for i in range(n)]),
        lambda: pa.array([day + datetime.timedelta(i) for i in range(n)], pa.timestamp("us", "Asia/Tokyo")),
        lambda: pa.array([day.date()] * n),
        lambda: pa.array([datetime.time(1)] * n),
        lambda: pa.array([0] * n, pa.timestamp("s", "No/Where")),
        lambda: pa.array([2**31 - 1] * n, pa.int32()).view(pa.date32()),
        lambda: pa.array([[float(i)] for i in range(n)]),
        lambda: pa.array([{"a": i} for i in range(n)]),
        lambda: pa.array([b"\xff"] * n),
        lambda: pa.Array.from_buffers(pa.string(), n, [None, ends, pa.py_buffer(rng.bytes(n))]),
        lambda: pa.nulls(n),
        lambda: pa.nulls(n, pa.string()),
        lambda: pa.array(rng.normal(2000, 500, n).astype(np.float16)),
        lambda: pa.array([2**64 - 1] * n, pa.uint64()),
        lambda: pa.array(rng.integers(0, 2, n).astype(bool)),
        lambda: pa.array([None if i % 3 else i for i in range(n)]),
        lambda: pa.array(rng.choice([np.nan, np.inf, -np.inf, 0.0, 1e300], n)),
        lambda: pa.array([f"level {i}" for i in range(n)]),
        lambda: pa.array(rng.choice(["car", "house", "boat", ""], n)).dictionary_encode(),
        lambda: pa.array([int(i) for i in rng.integers(0, 3, n)]).dictionary_encode(),
        lambda: pa.array([str(i) for i in range(n)], pa.large_string()),
        lambda: pa.array(["1.5"] * (n - 1) + ["word"]),
    ]
    for _ in range(rng.integers(1, 3)):
        i = int(rng.integers(len(frame.columns)))
        table = table.set_column(i, table.column_names[i], makers[int(rng.integers(len(makers)))]())
    metadata = (table.schema.metadata or {}).get(b"pandas")
    if metadata is not None and rng.random() < 0.3:
        table = table.replace_schema_metadata({b"pandas": flipped(metadata, rng)})
    return table


def hurt_toml(text: str, rng: np.random.Generator) -> str:
    """An audit file in which a key or two have other values."""
    lines = text.splitlines()
    for _ in range(rng.integers(1, 3)):
        key = str(rng.choice(KEYS))
        value = str(rng.choice([v for v in VALUES if key not in HEAVY or not re.fullmatch(r"\d{6,}", v)]))
        lines = [line for line in lines if not line.startswith(f"{key.partition('.')[0]} ")]
        lines.append(f"{key} = {value}")
    return "\n".join(lines)


def hurt_part(model: Any, rng: np.random.Generator) -> Any:
    """A copy of a model in which one attribute of one estimator is something else, or gone."""
    model = copy.deepcopy(model)
    parts: list[Any] = []
    todo = [model]
    while todo:
        part = todo.pop()
        if isinstance(part, BaseEstimator):
            parts.append(part)
            todo += vars(part).values()
        elif isinstance(part, list | tuple):
            todo += part
        elif isinstance(part, np.ndarray) and part.dtype == object:
            todo += part.ravel().tolist()
    part = parts[int(rng.integers(len(parts)))]
    fitted = [name for name in vars(part) if name.endswith("_") or name.startswith("_")]
    name = str(rng.choice(fitted or list(vars(part))))
    if rng.random() < 0.1:
        delattr(part, name)
    else:
        setattr(part, name, _other(getattr(part, name), rng))
    return model


def _other(value: Any, rng: np.random.Generator) -> Any:
    """Something else in place of a value, mostly of its own kind."""
    anything = [None, 0, -1, 2**30, 1.5, np.nan, "x", [], {}, (), np.zeros(0), np.zeros((2, 2)), np.array(["a", "b"])]
    if rng.random() < 0.15:
        return anything[int(rng.integers(len(anything)))]
    if isinstance(value, np.ndarray) and value.size and value.dtype.names is None:
        return _other_array(value, rng)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(rng.choice([-1, 0, 1, value - 1, value + 1, 10**6, 2**30]))
    if isinstance(value, float):
        return float(rng.choice([np.nan, np.inf, -1.0, 0.0, 1e300]))
    if isinstance(value, list | tuple) and value:
        return value[: int(rng.integers(len(value)))] if rng.random() < 0.7 else type(value)([*value, *value])
    if isinstance(value, dict) and value:
        return {key: inner for key, inner in value.items() if rng.random() < 0.5}
    return anything[int(rng.integers(len(anything)))]


def _other_array(value: Any, rng: np.random.Generator) -> Any:
    axis = int(rng.integers(value.ndim))
    match int(rng.integers(7)):
        case 0:
            return value.take(range(int(rng.integers(value.shape[axis]))), axis=axis)
        case 1:
            return np.concatenate([value, value], axis=axis)
        case 2:
            return value.ravel()
        case 3:
            return value.T.copy() if value.ndim > 1 else value[None]
        case 4:
            return value.astype(rng.choice(["f4", "i8", "O", "U"] if value.dtype.kind in "iufb" else ["O", "U"]))
        case 5 if value.dtype.kind in "iuf":
            found = value.copy()
            found.flat[int(rng.integers(found.size))] = rng.choice(
                [-1, 2**30, 10**6] if value.dtype.kind == "i" else [0, 1]
            )
            return found
        case _:
            return value[rng.permutation(len(value))]
