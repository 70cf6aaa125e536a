"""Files that are damaged, forged or something else: `evenhand audit` ends in a run or in a sentence.

Models, tables and audit files are made, hurt in one or a few places, and audited in another process, which lives until
a file ends it.  The contract: exit code 0, 1 or 3 and a report, or 2 with a sentence and nothing written.  A traceback,
a signal, or no end within a minute and a half is a failure.
"""

from __future__ import annotations

import base64
import copy
import io
import json
import pickle
import re
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fuzz.base import RefusedError, generator
from fuzz.files_hurting import flipped, hurt_columns, hurt_part, hurt_text, hurt_toml
from fuzz.files_worker import LIMIT, worker

NUMBERS = ["income", "debt", "age"]
SETTINGS = {"model": "model.skops", "data": "people.csv", "label": "granted", "sensitive": ["sex"], "id": "who"}
QUICK = {"people": 5, "draws": 2, "explain": 8, "methods": ["closest"], "lookup": 1, "out": "out"}
Files = dict[str, bytes]

SCRIPT = """
import base64, subprocess, sys, tempfile
from pathlib import Path

FILES = {files!r}
folder = Path(tempfile.mkdtemp())
for name, content in FILES.items():
    (folder / name).write_bytes(base64.b85decode(content))
command = [sys.executable, "-m", "evenhand", *{words!r}]
done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout={limit})
print(done.stdout, done.stderr)
assert done.returncode in (0, 1, 2, 3) and "Traceback" not in done.stderr, done.returncode
assert done.returncode != 2 or {{path.name for path in folder.iterdir()}} == set(FILES), "something was written"
"""


@cache
def people() -> pd.DataFrame:
    """Sixty people who ask for a loan."""
    rng, n = np.random.default_rng(0), 60
    found = pd.DataFrame(
        {
            "income": rng.normal(2000, 500, n).round(-1),
            "debt": rng.gamma(2, 300, n).round(2),
            "age": rng.integers(18, 80, n),
            "purpose": rng.choice(["car", "house", "business"], n),
            "sex": rng.choice(["f", "m"], n),
            "who": [f"p{i:03d}" for i in range(n)],
        }
    )
    return found.assign(granted=np.where(found["income"] - found["debt"] > 1400, "yes", "no"))


@cache
def models() -> dict[str, Any]:
    """Fitted models of many kinds."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    from evenhand.models import GLVQ

    frame, y = people(), people()["granted"]
    encoder = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), ["purpose"]))
    kinds = {
        "levels": make_pipeline(encoder, LogisticRegression()),
        "linear": make_pipeline(StandardScaler(), LogisticRegression()),
        "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
        "forest": RandomForestClassifier(2, max_depth=3, random_state=0),
        "boosting": GradientBoostingClassifier(n_estimators=2, random_state=0),
        "hist": HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=4),
        "nearest": KNeighborsClassifier(1),
        "three": KNeighborsClassifier(3, algorithm="brute"),
        "centroid": NearestCentroid(),
        "svc": SVC(),
        "glvq": GLVQ(max_iter=10, random_state=0),
    }
    columns = {"levels": [*NUMBERS, "purpose"]}
    return {name: kind.fit(frame[columns.get(name, NUMBERS)], y) for name, kind in kinds.items()}


def as_skops(model: Any) -> Files:
    """The parts of a skops file, with the same names in every run."""
    from skops import io as skops_io

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of attributes that are going to be removed
        data = skops_io.dumps(model)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    schema = parts.pop("schema.json").decode()
    numbers = {old: str(i) for i, old in enumerate(dict.fromkeys(re.findall(r"\d{9,}", schema)))}
    schema = re.sub(r"\d{9,}", lambda found: numbers[found.group()], schema)
    named = {re.sub(r"\d{9,}", lambda found: numbers.get(found.group(), "0"), name): parts[name] for name in parts}
    return {"schema.json": schema.encode(), **named}


def zipped(parts: Files) -> bytes:
    """An archive that depends on its parts only."""
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w") as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return found.getvalue()


@cache
def as_onnx(name: str) -> bytes:
    """A model as an ONNX file."""
    from skl2onnx import to_onnx

    model = copy.deepcopy(models()[name])
    found: bytes = to_onnx(
        model, people()[NUMBERS][:1].to_numpy(np.float32), options={"zipmap": False}
    ).SerializeToString()
    return found


def toml(keys: dict[str, Any]) -> bytes:
    """JSON's texts, numbers and lists are TOML's."""
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in keys.items()).encode()


def given(files: Files, keys: dict[str, Any] | None = None) -> Files:
    """What an audit needs: these files, and whole ones where there are no others."""
    keys = SETTINGS | QUICK | (keys or {})
    found = dict(files)
    found.setdefault("audit.toml", toml(keys))
    if keys["model"] not in found:
        found["model.skops"] = zipped(as_skops(models()["linear"]))
    if keys["data"] not in found:
        found["people.csv"] = people().to_csv(index=False).encode()
    return found


def _drawn_model(rng: np.random.Generator, but: tuple[str, ...] = ()) -> tuple[str, Any]:
    name = str(rng.choice([name for name in models() if name not in but]))
    return name, models()[name]


def skops_bytes(rng: np.random.Generator) -> Files:
    """A skops file with flipped bits, in the archive or in one of its parts."""
    parts = as_skops(_drawn_model(rng)[1])
    if rng.random() < 0.2:
        return given({"model.skops": flipped(zipped(parts), rng)})
    name = str(rng.choice(list(parts)))
    return given({"model.skops": zipped({**parts, name: flipped(parts[name], rng)})})


def skops_parts(rng: np.random.Generator) -> Files:
    """A whole skops file of a model whose parts do not fit."""
    return given({"model.skops": zipped(as_skops(hurt_part(_drawn_model(rng)[1], rng)))})


def pickle_parts(rng: np.random.Generator) -> Files:
    """The same as a pickle."""
    return given({"model.pkl": pickle.dumps(hurt_part(_drawn_model(rng)[1], rng))}, keys={"model": "model.pkl"})


def pickle_bytes(rng: np.random.Generator) -> Files:
    """A pickle, whole or compressed, with flipped bits: what is inside of it would be refused by a checksum."""
    content = flipped(pickle.dumps(_drawn_model(rng)[1]), rng)
    if rng.random() < 0.5:
        return given({"model.joblib": zlib.compress(content)}, keys={"model": "model.joblib"})
    return given({"model.pkl": content}, keys={"model": "model.pkl"})


def onnx_bytes(rng: np.random.Generator) -> Files:
    """An ONNX file with flipped bits."""
    name, _ = _drawn_model(rng, but=("levels", "glvq", "centroid", "hist"))
    keys = {"model": "model.onnx", "features": NUMBERS}
    return given({"model.onnx": flipped(as_onnx(name), rng)}, keys=keys)


def csv_text(rng: np.random.Generator) -> Files:
    """A CSV file with other separators, cells, lines and bytes."""
    return given(_model_of_levels(rng) | {"people.csv": hurt_text(people().to_csv(index=False).encode(), rng)})


def parquet_bytes(rng: np.random.Generator) -> Files:
    """A Parquet file with flipped bits."""
    content = flipped(people().to_parquet(index=False), rng)
    return given(_model_of_levels(rng) | {"people.parquet": content}, keys={"data": "people.parquet"})


def parquet_types(rng: np.random.Generator) -> Files:
    """A whole Parquet file with columns of other types."""
    import pyarrow.parquet

    found = io.BytesIO()
    pyarrow.parquet.write_table(hurt_columns(people(), rng), found)
    return given(_model_of_levels(rng) | {"people.parquet": found.getvalue()}, keys={"data": "people.parquet"})


def toml_keys(rng: np.random.Generator) -> Files:
    """An audit file with other keys and values."""
    return given({"audit.toml": hurt_toml(toml(SETTINGS | QUICK).decode(), rng).encode()})


def toml_text(rng: np.random.Generator) -> Files:
    """An audit file with other bytes."""
    return given({"audit.toml": hurt_text(toml(SETTINGS | QUICK), rng)})


def _model_of_levels(rng: np.random.Generator) -> Files:
    """A model of numbers, or one that encodes a column of words."""
    return {"model.skops": zipped(as_skops(models()["levels" if rng.random() < 0.5 else "linear"]))}


KINDS: dict[str, Callable[[np.random.Generator], Files]] = {
    "files skops bytes": skops_bytes,
    "files skops parts": skops_parts,
    "files pickle parts": pickle_parts,
    "files pickle bytes": pickle_bytes,
    "files onnx bytes": onnx_bytes,
    "files csv": csv_text,
    "files parquet bytes": parquet_bytes,
    "files parquet types": parquet_types,
    "files toml keys": toml_keys,
    "files toml text": toml_text,
}


@dataclass(frozen=True)
class FilesCase:
    """A folder with three files, one of which is hurt."""

    kind: str
    make: Callable[[], Files]

    def run(self) -> str | None:
        """What is wrong with how an audit of them ends."""
        files = self.make()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for file, content in files.items():
                (folder / file).write_bytes(content)
            wrong, sentence = worker().audit(folder, self.words)
            written = sorted({path.name for path in folder.iterdir()} - set(files))
        if wrong is None and sentence is not None and written:
            wrong = f"refused, and something is written\n{written}"
        if wrong is None and sentence is not None:
            raise RefusedError(re.sub(r"'[^']*'|\d+|/\S+", "…", sentence)[:60])
        return wrong

    @property
    def words(self) -> list[str]:
        """What follows the name of the program."""
        return ["audit", "audit.toml", "--jobs", "1", "--trust-pickle"]

    def script(self) -> str:
        """Writes the files, and audits them."""
        files = {name: base64.b85encode(content).decode() for name, content in self.make().items()}
        return SCRIPT.format(files=files, words=self.words, limit=LIMIT).lstrip()


# Kinds whose models are opened in a process of their own, which takes seconds to start: so many times fewer of them.
DEAR = {"files pickle parts": 5, "files pickle bytes": 5, "files onnx bytes": 5}


def cases(seed: int) -> Iterator[FilesCase]:
    """Endlessly, kind by kind."""
    for i in count():
        for kind, make in KINDS.items():
            yield FilesCase(kind, partial(_made, make, seed, kind, i))


def _made(make: Callable[[np.random.Generator], Files], seed: int, kind: str, i: int) -> Files:
    return make(generator(seed, kind, i))
