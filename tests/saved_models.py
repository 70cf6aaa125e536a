"""Small models of flowers, saved, and the zip archives they are saved to: taken apart, edited and forged."""

from __future__ import annotations

import io
import json
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from skops import io as skops_io

X, y = load_iris(return_X_y=True)
WORDS = np.array(["no", "maybe", "yes"])[y]
PEOPLE = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(job=np.where(X[:, 0] > 5.5, "cook", "smith"))
WHOLE = skops_io.dumps(make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=2)).fit(X, y))


def saved(model: Any, folder: Path, name: str = "model.skops") -> bytes:
    data: bytes = skops_io.dumps(model)
    (folder / name).write_bytes(data)
    return data


def unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(files: dict[str, bytes]) -> bytes:
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return found.getvalue()


def node(name: str, loader: str, **rest: Any) -> dict[str, Any]:
    module, _, kind = name.rpartition(".")
    return {"__class__": kind, "__module__": module, "__loader__": loader, **rest}


def plain(value: Any) -> dict[str, Any]:
    return node("builtins.str", "JsonNode", content=json.dumps(value), is_json=True)


def several(*values: Any) -> dict[str, Any]:
    return node("builtins.tuple", "TupleNode", content=[plain(value) for value in values])


@cache
def _logistic() -> bytes:
    return bytes(skops_io.dumps(LogisticRegression(max_iter=1000).fit(X, y)))


def forged(part: dict[str, Any], *, root: bool = False) -> bytes:
    """A valid file of a model in which one attribute, or everything, is `part`."""
    files = unpacked(_logistic())
    schema = json.loads(files["schema.json"])
    if root:
        schema = {**part, "protocol": schema["protocol"], "_skops_version": schema["_skops_version"]}
    else:
        schema["content"]["content"]["C"] = part
    return packed({**files, "schema.json": json.dumps(schema).encode()})


def edited(data: bytes, change: Any) -> bytes:
    files = unpacked(data)
    schema = json.loads(files["schema.json"])
    change(schema["content"]["content"])
    return packed({**files, "schema.json": json.dumps(schema).encode()})
