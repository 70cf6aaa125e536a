"""A folder with a model, people and an audit file, in which an audit has to run or has to be refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest
import skops.io
from click.testing import Result
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from typer.testing import CliRunner

from evenhand.auditing.result import FILES
from evenhand.cli.app import app

NUMBERS = ["income", "debt", "age"]
QUICK = {"people": 30, "draws": 2, "methods": ["closest"], "lookup": 3}
STRANGE = [
    "two words",
    'it\'s "quoted"',
    "a.b",
    "a[0]",
    "a\nb",
    "a\\b",
    "💶",
    "<script>alert(1)</script>",
    " ",
    "a,b",
    "{% x %}{{ y }}",
    "a\tb",
    "\x7f",
    "#",
    "rows",
]
SPOILED = b"\x00\xff\xfe\x01garbage\x80\x81" * 40


def table(n: int = 200, seed: int = 0) -> pd.DataFrame:
    return _table(n, seed).copy()


@cache
def _table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    found = pd.DataFrame(
        {
            "income": rng.normal(2000, 500, n).round(-1),
            "debt": rng.gamma(2, 300, n).round(2),
            "age": rng.integers(18, 80, n),
            "purpose": rng.choice(["car", "house", "business"], n),
            "sex": rng.choice(["f", "m"], n),
            "who": [f"p{i:04d}" for i in range(n)],
        }
    )
    score = found["income"] - found["debt"] + 400 * (found["purpose"] == "car") + rng.normal(0, 50, n)
    found["granted"] = np.where(score > 1500, "yes", "no")
    return found


def linear(frame: pd.DataFrame, features: list[str] | None = None, label: str = "granted") -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(frame[features or NUMBERS], frame[label])


def encoded(frame: pd.DataFrame, **options: Any) -> Any:
    encoder = make_column_transformer(
        (StandardScaler(), NUMBERS), (OneHotEncoder(sparse_output=False, **options), ["purpose"])
    )
    return make_pipeline(encoder, LogisticRegression()).fit(frame[[*NUMBERS, "purpose"]], frame["granted"])


def toml(keys: dict[str, Any]) -> str:
    """One line per key; JSON's texts, numbers and lists are almost TOML's."""
    return "".join(f"{_value(name)} = {_value(value)}\n" for name, value in keys.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_value(name)} = {_value(one)}" for name, one in value.items()) + " }"
    if isinstance(value, float) and not np.isfinite(value):
        return "nan" if np.isnan(value) else "inf"
    return "[" + ", ".join(map(_value, value)) + "]" if isinstance(value, list) else _word(value)


def _word(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


@cache
def _schema() -> Any:
    """What audit.json has to follow; whether the schema is one is checked once."""
    schema = json.loads(resources.files("evenhand.auditing").joinpath("audit.schema.json").read_text(encoding="utf-8"))
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


class Place:
    """A folder with a model, people and an audit file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, frame: pd.DataFrame, name: str = "people.csv") -> Path:
        path = self.folder / name
        frame.to_csv(path, index=False) if name.endswith(".csv") else frame.to_parquet(path, index=False)
        return path

    def model(self, model: Any, name: str = "model.skops") -> Path:
        skops.io.dump(model, self.folder / name)
        return self.folder / name

    def write(self, **keys: Any) -> Path:
        path = self.folder / "audit.toml"
        whole = {"model": "model.skops", "data": "people.csv", "label": "granted", "out": "out"} | QUICK | keys
        path.write_text(toml({name: value for name, value in whole.items() if value is not None}), encoding="utf-8")
        return path

    def content(self) -> dict[str, tuple[int, bytes]]:
        return {
            str(path.relative_to(self.folder)): (path.is_dir(), b"" if path.is_dir() else path.read_bytes())
            for path in self.folder.rglob("*")
            if path.is_dir() or path.is_file()
        }

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(app, list(words))

    def refused(self, *phrases: str, words: tuple[str, ...] | None = None, more: tuple[str, ...] = ()) -> str:
        """Run, and insist on exit code 2, on each phrase, and on an untouched folder."""
        before = self.content()
        found = self.run(*(words or ("audit", str(self.folder / "audit.toml"), "--jobs", "1", *more)))
        if found.exception is not None and not isinstance(found.exception, SystemExit):
            raise found.exception
        assert found.exit_code == 2, (found.exit_code, found.output)
        assert "Traceback" not in found.output
        for phrase in phrases:
            assert phrase in found.output, found.output
        after = self.content()
        assert after.keys() == before.keys()
        assert after == before
        return str(found.output)

    def audited(self, *more: str, out: str = "out", file: str = "audit.toml") -> dict[str, Any]:
        """Run, and insist on a verdict, on all four files, and on JSON that follows its schema."""
        found = self.run("audit", str(self.folder / file), "--jobs", "1", *more)
        if found.exception is not None and not isinstance(found.exception, SystemExit):
            raise found.exception
        assert found.exit_code in (0, 1, 3), (found.exit_code, found.output)
        assert sorted(path.name for path in (self.folder / out).iterdir()) == sorted(FILES)
        content: dict[str, Any] = json.loads((self.folder / out / "audit.json").read_text(encoding="utf-8"))
        _schema().validate(content)
        assert content["verdict"]["exit_code"] == found.exit_code
        content["output"] = found.output
        return content


class Evil:
    """Touches a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@cache
def saved(fit: Callable[[pd.DataFrame], Any]) -> bytes:
    """A model of the usual people."""
    return bytes(skops.io.dumps(fit(table())))


class InFolder:
    """What tests of audits start from."""

    @pytest.fixture
    def place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
        """A model of numbers and its people."""
        monkeypatch.chdir(tmp_path)
        found = Place(tmp_path)
        (tmp_path / "model.skops").write_bytes(saved(linear))
        found.put(table())
        return found

    @pytest.fixture
    def levels(self, place: Place) -> Place:
        """The same with a model that encodes levels."""
        (place.folder / "model.skops").write_bytes(saved(encoded))
        return place
