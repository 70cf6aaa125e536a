"""Bad input to `evenhand audit` and `evenhand init`: refused with a sentence and exit code 2, nothing written."""

from __future__ import annotations

import json
import pickle
import tomllib
import zipfile
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
from sklearn.dummy import DummyClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from typer.testing import CliRunner

from evenhand.auditing.audit_file import AuditFile
from evenhand.auditing.result import FILES
from evenhand.cli.app import app

SCHEMA = json.loads(resources.files("evenhand.auditing").joinpath("audit.schema.json").read_text(encoding="utf-8"))
NUMBERS = ["income", "debt", "age"]
QUICK = {"people": 30, "draws": 2, "methods": ["closest"], "lookup": 3}
SPOILED = b"\x00\xff\xfe\x01garbage\x80\x81" * 40


def table(n: int = 200, seed: int = 0) -> pd.DataFrame:
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
        jsonschema.validate(content, SCHEMA)
        assert content["verdict"]["exit_code"] == found.exit_code
        content["output"] = found.output
        return content


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models, saved once."""
    folder = tmp_path_factory.mktemp("models")
    frame = table()
    skops.io.dump(linear(frame), folder / "linear.skops")
    skops.io.dump(encoded(frame), folder / "encoded.skops")
    return folder


@pytest.fixture
def place(tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A model of numbers and its people."""
    monkeypatch.chdir(tmp_path)
    found = Place(tmp_path)
    (tmp_path / "model.skops").write_bytes((kept / "linear.skops").read_bytes())
    found.put(table())
    return found


@pytest.fixture
def levels(place: Place, kept: Path) -> Place:
    """The same with a model that encodes levels."""
    (place.folder / "model.skops").write_bytes((kept / "encoded.skops").read_bytes())
    return place


class TestGood:
    """The cases below differ from these in one thing each."""

    def test_numbers(self, place: Place) -> None:
        place.write(sensitive=["sex"], id="who", target="yes")
        assert place.audited()["audited"]["data"]["rows"] == 200

    def test_levels(self, levels: Place) -> None:
        levels.write(sensitive=["sex"], id="who", target="yes")
        assert levels.audited()["audited"]["features"] == [*NUMBERS, "purpose"]


class TestFile:
    def test_missing(self, place: Place) -> None:
        place.refused("There is no file", "audit.toml")

    def test_folder(self, place: Place) -> None:
        place.refused("evenhand audit:", "Is a directory", str(place.folder), words=("audit", str(place.folder)))

    def test_below_a_file(self, place: Place) -> None:
        place.refused("people.csv/audit.toml", words=("audit", str(place.folder / "people.csv" / "audit.toml")))

    @pytest.mark.parametrize(
        ("name", "phrase"),
        [
            pytest.param("a\0b.toml", "null byte", id="null"),
            pytest.param("x" * 300 + ".toml", "x.toml"),
        ],
    )
    def test_impossible_name(self, place: Place, name: str, phrase: str) -> None:
        place.refused(phrase, words=("audit", name))

    def test_not_readable(self, place: Place) -> None:
        place.write().chmod(0)
        try:
            (place.folder / "audit.toml").read_bytes()
        except PermissionError:
            found = place.run("audit", str(place.folder / "audit.toml"))
            assert (found.exit_code, "cannot be read" in found.output) == (2, True)
            return
        pytest.skip("this user may read everything")

    @pytest.mark.parametrize(
        "content",
        [
            b"model = ",
            b'model = "a"\nmodel = "b"\n',
            b"[a\n",
            b"\x00",
            SPOILED,
            b"model = \xff\n",
            "ä".encode("latin-1"),
        ],
    )
    def test_not_toml(self, place: Place, content: bytes) -> None:
        (place.folder / "audit.toml").write_bytes(content)
        place.refused("audit.toml is not TOML")

    @pytest.mark.parametrize(
        "encoding",
        ["utf-16", "latin-1", pytest.param("utf-8-sig")],
    )
    def test_another_encoding(self, place: Place, encoding: str) -> None:
        text = place.write().read_text(encoding="utf-8") + "# größe\n"
        (place.folder / "audit.toml").write_text(text, encoding=encoding)
        if encoding == "utf-8-sig":
            place.audited()
        else:
            place.refused("audit.toml is not TOML", "utf-8")

    def test_deeply_nested(self, place: Place) -> None:
        (place.folder / "audit.toml").write_text("model = " + "[" * 20000 + "]" * 20000, encoding="utf-8")
        place.refused("audit.toml")

    def test_empty(self, place: Place) -> None:
        (place.folder / "audit.toml").write_bytes(b"")
        place.refused("audit.toml has no 'model'", "a text")

    def test_no_data(self, place: Place) -> None:
        place.write(data=None)
        place.refused("audit.toml has no 'data'")

    @pytest.mark.parametrize(
        ("keys", "phrases"),
        [
            ({"lable": "granted"}, ("Unknown key 'lable' in audit.toml", "Did you mean 'label'?", "sensitive")),
            ({"zzz": 1}, ("Unknown key 'zzz' in audit.toml", "Possible are model, data")),
            ({"actionable": {"imutable": []}}, ("'imutable' in actionable", "Did you mean 'immutable'?")),
            ({"pairs": {"neighbors": 3}}, ("'neighbors' in pairs", "Did you mean 'neighbours'?")),
            ({"density": {"quantiles": 0.5}}, ("'quantiles' in density", "Did you mean 'quantile'?")),
            (
                {"perturbations": {"x": {"kind": "gaussian", "covarance": 1}}},
                ("'covarance' in perturbations.x", "Did you mean 'covariance'?"),
            ),
        ],
    )
    def test_unknown_key(self, place: Place, keys: dict[str, Any], phrases: tuple[str, ...]) -> None:
        place.write(**keys)
        place.refused(*phrases)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *((name, value) for name in ("model", "data", "out") for value in (1, "", True, ["a"], {})),
            *((name, value) for name in ("label", "id") for value in (1, "", True, ["a"], {})),
            *((name, value) for name in ("features", "sensitive") for value in (1, "", [1], [["a"]], True, {})),
            ("features", []),
            *(("target", value) for value in (["yes"], {})),
            *(("cost", value) for value in (1, "l3", "", True, [], ["l1"], {})),
            *(("methods", value) for value in (1, [], "", ["closest", 2], True, {}, [["closest"]])),
            *(("on_flip", value) for value in (1, "drop", True, [], {})),
            *(("draws", value) for value in (1, 0, -1, 2.5, "2", True, [2], {})),
            *(("max_draws", value) for value in (1, 2.5, "2", True, {})),
            *(("people", value) for value in (0, -1, 2.5, "2", True, {})),
            *(("explain", value) for value in (0, 2.5, "2", True, {})),
            *(("lookup", value) for value in (-1, 2.5, "2", True, [2.5], [["a"]], {})),
            pytest.param("lookup", [True]),
            *(("gates", value) for value in (1, [1], True, {}, [""])),
            *(("redact", value) for value in (1, "yes", [], {})),
            *(("seed", value) for value in (-1, 1.5, "0", True, {})),
            *(("actionable", value) for value in (1, "income", [], True, [{}])),
            *(("density", value) for value in (1, "x", [], [{}])),
            *(("pairs", value) for value in (1, "x", [], [{}])),
            *(("perturbations", value) for value in (1, "x", [], {}, [{}])),
        ],
    )
    def test_wrong_type(self, place: Place, name: str, value: Any) -> None:
        place.write(**{name: value})
        place.refused("evenhand audit: ", name, "must be" if value != {} or name != "perturbations" else "is empty")

    @pytest.mark.parametrize("value", [0, -1, 2, "0.1", True, [], {}, float("nan"), float("inf")])
    def test_tolerance(self, place: Place, value: Any) -> None:
        place.write(draws=None, tolerance=value)
        place.refused("audit.toml.tolerance must be a number")

    @pytest.mark.parametrize(
        ("where", "name", "value"),
        [
            *(("density", "quantile", value) for value in (-0.1, 1.5, "0.5", True, [0.5], float("nan"))),
            *(("density", "components", value) for value in (0, [0], [], "1", [1.5], True)),
            *(("pairs", "neighbours", value) for value in (0, 1.5, "5", True)),
            *(("pairs", "within", value) for value in (0, -1, "1", True, float("nan"))),
            *(("pairs", "apart", value) for value in (0, -1, "1", True, float("inf"))),
            *(("pairs", "people", value) for value in (0, 1, 2.5, True)),
            *(("actionable", "immutable", value) for value in (1, [1], True, {})),
            *(("actionable", "increase", value) for value in (1, [1], True, {})),
            *(("actionable", "decrease", value) for value in (1, [1], True, {})),
            *(("actionable", "bounds", value) for value in (1, [1, 2], "x")),
            *(("actionable", "levels", value) for value in (1, ["car"], "x")),
        ],
    )
    def test_wrong_type_in_a_table(self, place: Place, where: str, name: str, value: Any) -> None:
        place.write(**{where: {name: value}})
        place.refused(f"{where}.{name} must be")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(("kind", value) for value in (1, "gausian", "", [], {})),
            *(("covariance", value) for value in (-1, "1", True, float("nan"))),
            *(("radius", value) for value in (-1, "1", True)),
            *(("relative", value) for value in (1, "yes")),
            *(("features", value) for value in (0, 1.5, "age", True)),
            *(("step", value) for value in (-1, "1", True)),
            *(("by", value) for value in (0, 1.5, "1", True)),
            *(("probability", value) for value in (-0.1, 1.1, "1", True)),
        ],
    )
    def test_wrong_type_in_a_perturbation(self, place: Place, name: str, value: Any) -> None:
        place.write(perturbations={"x": {"kind": "gaussian"} | {name: value}})
        place.refused(f"perturbations.x.{name} must be")

    def test_perturbation_without_a_kind(self, place: Place) -> None:
        place.write(perturbations={"x": {}})
        place.refused("perturbations.x has no 'kind'", "gaussian, uniform, mask, rounding, count, levels")

    def test_perturbation_that_is_no_table(self, place: Place) -> None:
        place.write(perturbations={"kind": "gaussian"})
        place.refused("perturbations.kind must be a table")

    def test_key_of_another_kind(self, place: Place) -> None:
        place.write(perturbations={"x": {"kind": "rounding", "covariance": 0.5}})
        place.refused("perturbations.x", "covariance")

    @pytest.mark.parametrize("value", [[1], [1, 2, 3], "x", 5, {}])
    def test_bounds_that_are_no_pair(self, place: Place, value: Any) -> None:
        place.write(actionable={"bounds": {"income": value}})
        place.refused("actionable.bounds.income must be a pair such as [0, 100]")

    @pytest.mark.parametrize("value", [["a", "b"], [[], 1], [{}, 1]])
    def test_bounds_that_are_no_numbers(self, place: Place, value: Any) -> None:
        place.write(actionable={"bounds": {"income": value}})
        place.refused("actionable.bounds.income must be two numbers")

    @pytest.mark.parametrize("value", [[3, 1], [float("nan"), 1], ["nan", "nan"], [True, False]])
    def test_bounds_that_make_no_sense(self, place: Place, value: Any) -> None:
        place.write(actionable={"bounds": {"income": value}})
        place.refused("income", "bounds")

    @pytest.mark.parametrize("value", [[], "car", 5])
    def test_levels_that_are_no_list(self, place: Place, value: Any) -> None:
        place.write(actionable={"levels": {"purpose": value}})
        place.refused("actionable.levels.purpose must be a list of levels")

    def test_draws_and_tolerance(self, place: Place) -> None:
        place.write(tolerance=0.1)
        place.refused("audit.toml: give draws or tolerance, not both")

    @pytest.mark.parametrize(
        ("gates", "phrases"),
        [
            (["median_amplificaton <= 1"], ("median_amplificaton", "Did you mean 'median_amplification'?")),
            (["zzz <= 1"], ("There is no gate 'zzz'", "Possible are not_found_rate")),
            (["median_amplification >= 1"], ("less is better, write <=",)),
            (["certified_share(0.1) <= 1"], ("more is better, write >=",)),
            (["certified_share >= 1"], ("needs a radius",)),
            (["certified_share(noise) >= 1"], ("needs a radius",)),
            (["certified_share(-1) >= 1"], ("must not be negative",)),
            (["certified_share(inf) >= 1"], ("needs a radius",)),
            (["median_amplification(nose) <= 1"], ("'nose'", "there are noise, rounding")),
            (["group_cost_gap(sex) <= 1"], ("'sex'", "not among the sensitive ones: none")),
            (["not_found_rate(x) <= 1"], ("takes nothing in parentheses",)),
            (["not_found_rate <= 1e999"], ("the limit is not a number",)),
            (["not_found_rate < 0.1"], ("cannot be read", "<= or >=")),
            (["not_found_rate <= 5 %"], ("cannot be read",)),
            ("not_found_rate", ("cannot be read",)),
        ],
    )
    def test_gates(self, place: Place, gates: Any, phrases: tuple[str, ...]) -> None:
        place.write(gates=gates)
        place.refused(*phrases)

    def test_gate_on_groups_without_a_sensitive_column(self, place: Place) -> None:
        place.write(gates=["group_cost_gap <= 0.1"])
        gate = place.audited()["gates"][0]
        assert gate["result"] == "undecided"
        assert gate["why"]

    def test_methods(self, place: Place) -> None:
        place.write(methods=["closests"])
        place.refused("audit.toml.methods must be a list, each one of closest, plausible", "'closests'")

    def test_every_key_is_covered(self) -> None:
        covered = {"tolerance"}
        for mark in TestFile.test_wrong_type.pytestmark:  # type: ignore[attr-defined]
            covered |= {getattr(case, "values", case)[0] for case in mark.args[1] if mark.name == "parametrize"}
        assert covered == set(AuditFile.__dataclass_fields__)


class TestColumns:
    @pytest.mark.parametrize(
        ("keys", "phrases"),
        [
            ({"label": "grantd"}, ("label:", "people.csv has no column 'grantd'", "Did you mean 'granted'?")),
            ({"id": "whom"}, ("id:", "people.csv has no column 'whom'", "Did you mean 'who'?")),
            ({"sensitive": ["sexx"]}, ("sensitive:", "people.csv has no column 'sexx'", "Did you mean 'sex'?")),
            ({"sensitive": "sexx"}, ("sensitive:", "people.csv has no column 'sexx'")),
            ({"features": ["income", "debt", "agee"]}, ("features:", "age", "agee", "Leave features out")),
            ({"features": ["income", "debt"]}, ("features:", "differs: age")),
            pytest.param(
                {"features": ["income", "income", "debt", "age"]},
                ("features", "'income'", "twice"),
            ),
            pytest.param(
                {"sensitive": ["sex", "sex"]},
                ("'sex'", "twice"),
            ),
            pytest.param({"actionable": {"immutable": ["agee"]}}, ("'agee'", "age", "immutable")),
            pytest.param({"actionable": {"increase": ["agee"]}}, ("'agee'", "age", "increase")),
            pytest.param({"actionable": {"decrease": ["agee"]}}, ("'agee'", "age", "decrease")),
            pytest.param({"actionable": {"bounds": {"agee": [0, 1]}}}, ("'agee'", "age", "bounds")),
            pytest.param({"actionable": {"levels": {"agee": ["a"]}}}, ("'agee'", "levels")),
            pytest.param({"actionable": {"levels": {"age": ["a"]}}}, ("'age'", "levels")),
            ({"actionable": {"increase": ["age"], "decrease": ["age"]}}, ("'age'", "increase", "decrease")),
            ({"target": "maybe"}, ("target:", "'maybe'", "'no', 'yes'")),
            ({"target": 1}, ("target:", "does not know 1")),
            ({"target": True}, ("target:", "does not know True")),
            ({"perturbations": {"x": {"kind": "levels"}}}, ("'x'", "suits no column")),
            ({"perturbations": {"x": {"kind": "gaussian", "covariance": 0}}}, ("changes nothing", "'x'")),
            pytest.param(
                {"perturbations": {"x": {"kind": "mask", "features": 9}}},
                ("x", "9 features"),
            ),
        ],
    )
    def test_numbers(self, place: Place, keys: dict[str, Any], phrases: tuple[str, ...]) -> None:
        place.write(**keys)
        place.refused(*phrases)

    @pytest.mark.parametrize(
        ("keys", "phrases"),
        [
            ({"actionable": {"immutable": ["purpos"]}}, ("'purpos'", "purpose")),
            ({"actionable": {"increase": ["purpos"]}}, ("'purpos'", "purpose")),
            ({"actionable": {"increase": ["purpose"]}}, ("'purpose'", "order")),
            ({"actionable": {"bounds": {"agee": [0, 1]}}}, ("'agee'", "age")),
            ({"actionable": {"bounds": {"purpose": [0, 1]}}}, ("'purpose'", "levels")),
            ({"actionable": {"levels": {"purpos": ["car"]}}}, ("'purpos'", "purpose")),
            ({"actionable": {"levels": {"purpose": ["boat"]}}}, ("'purpose'", "'boat'", "car")),
            ({"actionable": {"levels": {"age": [30]}}}, ("'age'", "levels")),
            ({"cost": "l2"}, ("cost", "l1", "l2")),
        ],
    )
    def test_levels(self, levels: Place, keys: dict[str, Any], phrases: tuple[str, ...]) -> None:
        levels.write(**keys)
        levels.refused(*phrases)

    def test_feature_gone_from_the_table(self, place: Place) -> None:
        place.put(table().drop(columns="age"))
        place.write()
        place.refused("features: people.csv has no column 'age'", "Its columns are income, debt")

    def test_model_without_names(self, place: Place) -> None:
        frame = table()
        place.model(LogisticRegression().fit(frame[NUMBERS].to_numpy(), frame["granted"]))
        place.write()
        place.refused("takes 3 columns", "List the model's columns under features")
        place.write(features=["income", "debt"])
        place.refused("is expecting 3 features")
        place.write(features=["income", "debt", "agee"])
        place.refused("features: people.csv has no column 'agee'", "Did you mean 'age'?")
        place.write(features=NUMBERS)
        place.audited()

    def test_label_among_the_features(self, place: Place) -> None:
        frame = table().assign(granted=lambda one: (one["granted"] == "yes").astype(int))
        place.model(linear(frame, [*NUMBERS, "granted"]))
        place.put(frame)
        place.write()
        assert "granted" in place.audited()["audited"]["features"]

    def test_id_among_the_features(self, place: Place) -> None:
        place.write(id="income")
        found = place.refused("id:", "income")
        assert "income" in found

    def test_sensitive_among_the_features(self, levels: Place) -> None:
        levels.write(sensitive=["purpose"])
        assert levels.audited()["groups"][0]["column"] == "purpose"

    def test_sensitive_is_the_label(self, place: Place) -> None:
        place.write(sensitive=["granted"])
        place.audited()

    def test_sensitive_is_the_id(self, place: Place) -> None:
        place.write(sensitive=["who"], id="who")
        place.audited()

    def test_many_groups(self, place: Place) -> None:
        place.put(table(400).assign(town=[f"town {i % 37}" for i in range(400)]))
        place.write(sensitive=["town"])
        assert len(place.audited()["groups"][0]["groups"]) >= 2

    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_numeric_groups(self, place: Place, name: str) -> None:
        place.put(table(), name)
        place.write(sensitive=["age", "debt"], data=name)
        assert [one["column"] for one in place.audited()["groups"]] == ["age", "debt"]

    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_groups_all_missing(self, place: Place, name: str) -> None:
        place.put(table().assign(sex=None), name)
        place.write(sensitive=["sex"], data=name)
        place.audited()

    def test_groups_partly_missing(self, place: Place) -> None:
        frame = table()
        frame.loc[::3, "sex"] = None
        place.put(frame)
        place.write(sensitive=["sex"])
        place.audited()

    def test_groups_of_other_kinds(self, place: Place) -> None:
        frame = table().assign(
            flag=lambda one: one["age"] > 40,
            day=pd.Timestamp("2020-01-01"),
            kind=lambda one: one["sex"].astype("category"),
            whole=lambda one: one["age"].astype("Int64").where(one["age"] > 30) // 20,
            infinite=lambda one: np.where(one["age"] > 40, np.inf, 1.0),
        )
        place.put(frame, "people.parquet")
        names = ["flag", "day", "kind", "whole", "infinite"]
        place.write(sensitive=names, data="people.parquet")
        assert [one["column"] for one in place.audited()["groups"]] == names


class TestData:
    def test_missing(self, place: Place) -> None:
        place.write(data="peple.csv")
        place.refused("There is no data file", "peple.csv")

    def test_folder(self, place: Place) -> None:
        (place.folder / "people").mkdir()
        place.write(data="people")
        place.refused("people is a folder; data is one .csv or .parquet file")

    @pytest.mark.parametrize("suffix", [".csv", ".parquet"])
    def test_folder_with_a_suffix(self, place: Place, suffix: str) -> None:
        (place.folder / f"folder{suffix}").mkdir()
        place.write(data=f"folder{suffix}")
        place.refused("is a folder; data is one .csv or .parquet file")

    @pytest.mark.parametrize("name", ["people.xlsx", "people", "people.csv.gz"])
    def test_suffix(self, place: Place, name: str) -> None:
        (place.folder / name).write_bytes(b"x")
        place.write(data=name)
        place.refused("data must be a .csv or .parquet file, got", name)

    def test_suffix_in_capitals(self, place: Place) -> None:
        place.put(table()).rename(place.folder / "PEOPLE.CSV")
        place.write(data="PEOPLE.CSV")
        place.audited()

    @pytest.mark.parametrize(
        "name",
        [pytest.param("x" * 300 + ".csv"), "a\0b.csv", "people.csv/people.csv"],
    )
    def test_impossible_name(self, place: Place, name: str) -> None:
        place.write(data=name)
        place.refused(".csv")

    @pytest.mark.parametrize("name", ["empty.csv", "empty.parquet"])
    def test_empty(self, place: Place, name: str) -> None:
        (place.folder / name).write_bytes(b"")
        place.write(data=name)
        place.refused(name)

    def test_blank(self, place: Place) -> None:
        (place.folder / "people.csv").write_bytes(b"\n\n\n")
        place.write()
        place.refused("people.csv")

    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_no_rows(self, place: Place, name: str) -> None:
        place.put(table().iloc[:0], name)
        place.write(data=name)
        place.refused(f"{name} has no rows")

    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_garbage(self, place: Place, name: str) -> None:
        (place.folder / name).write_bytes(SPOILED)
        place.write(data=name)
        place.refused(name)

    @pytest.mark.parametrize(
        "content", [b"\x00" * 500, bytes(range(256)) * 20, b"PK\x03\x04" + SPOILED, b"\x89PNG\r\n"]
    )
    def test_more_garbage(self, place: Place, content: bytes) -> None:
        (place.folder / "people.csv").write_bytes(content)
        place.write()
        place.refused("people.csv")

    @pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.99])
    def test_truncated_parquet(self, place: Place, share: float) -> None:
        whole = place.put(table(), "people.parquet").read_bytes()
        (place.folder / "people.parquet").write_bytes(whole[: int(share * len(whole))])
        place.write(data="people.parquet")
        place.refused("people.parquet is not a Parquet file")

    def test_parquet_damaged_inside(self, place: Place) -> None:
        path = place.put(table(), "people.parquet")
        whole = bytearray(path.read_bytes())
        whole[4:3000] = b"\xff" * 2996
        path.write_bytes(whole)
        place.write(data="people.parquet")
        place.refused("people.parquet cannot be read")

    def test_csv_that_is_parquet(self, place: Place) -> None:
        place.put(table(), "people.parquet").rename(place.folder / "people.csv")
        place.write()
        place.refused("people.csv")

    def test_ragged(self, place: Place) -> None:
        with (place.folder / "people.csv").open("a", encoding="utf-8") as file:
            file.write("1,2,3,4,5,6,7,8,9,10,11\n")
        place.write()
        place.refused("people.csv", "line 202")

    def test_each_row_has_one_field_too_many(self, place: Place) -> None:
        path = place.folder / "people.csv"
        head, *rows = path.read_text(encoding="utf-8").splitlines()
        path.write_text("\n".join([head, *(f"{row},extra" for row in rows)]) + "\n", encoding="utf-8")
        place.write()
        place.refused("people.csv", "8", "7")

    def test_short_rows(self, place: Place) -> None:
        with (place.folder / "people.csv").open("a", encoding="utf-8") as file:
            file.write("2000,300\n")
        place.write()
        place.refused("200")

    def test_open_quote(self, place: Place) -> None:
        with (place.folder / "people.csv").open("a", encoding="utf-8") as file:
            file.write('"2000,300,30,car,f,x,yes\n')
        place.write()
        place.refused("people.csv")

    def test_semicolons(self, place: Place) -> None:
        table().to_csv(place.folder / "people.csv", index=False, sep=";")
        place.write()
        place.refused("people.csv", "income;debt")

    @pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
    def test_another_encoding(self, place: Place, encoding: str) -> None:
        table().assign(purpose="größer").to_csv(place.folder / "people.csv", index=False, encoding=encoding)
        place.write()
        place.refused("people.csv is not a CSV file that can be read", "utf-8")

    def test_byte_order_mark(self, place: Place) -> None:
        table().to_csv(place.folder / "people.csv", index=False, encoding="utf-8-sig")
        place.write()
        place.audited()

    @pytest.mark.parametrize("twice", ["income", "sex"])
    def test_two_columns_of_one_name(self, place: Place, twice: str) -> None:
        frame = pd.concat([table(), table(seed=1)[[twice]]], axis=1)
        frame.to_csv(place.folder / "people.csv", index=False)
        place.write()
        place.refused("people.csv", "two columns", repr(twice))

    @pytest.mark.parametrize("twice", ["income", "sex"])
    def test_two_columns_of_one_name_in_parquet(self, place: Place, twice: str) -> None:
        import pyarrow
        import pyarrow.parquet

        found = pyarrow.Table.from_pandas(table(), preserve_index=False)
        found = found.append_column(twice, found.column(twice))
        pyarrow.parquet.write_table(found, place.folder / "people.parquet")
        place.write(data="people.parquet")
        place.refused("people.parquet", "two columns", repr(twice))

    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_two_people_of_one_id(self, place: Place, name: str) -> None:
        frame = table()
        frame.loc[7, "who"] = "p0003"
        place.put(frame, name)
        place.write(data=name, id="who")
        place.refused(f"id: two rows of {name} have the who 'p0003'", "leave id out")

    @pytest.mark.parametrize("rows", [[5], [5, 9]])
    def test_missing_id(self, place: Place, rows: list[int]) -> None:
        frame = table()
        frame.loc[rows, "who"] = None
        place.put(frame)
        place.write(id="who")
        place.refused("id:", "who", "5")


class TestLabels:
    def test_missing(self, place: Place) -> None:
        frame = table()
        frame.loc[[11, 17], "granted"] = None
        place.put(frame)
        place.write()
        place.refused("label: row 11 of people.csv has none (2 rows in all)", "Leave those rows out")

    def test_all_missing(self, place: Place) -> None:
        place.put(table().assign(granted=None))
        place.write()
        place.refused("label: row 0 of people.csv has none (200 rows in all)")

    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_unknown(self, place: Place, name: str) -> None:
        place.put(table().replace({"granted": {"yes": "Yes"}}), name)
        place.write(data=name)
        place.refused(f"label: {name} has the label 'Yes', which the model does not know; it knows 'no', 'yes'")

    def test_of_another_type(self, place: Place) -> None:
        place.put(table().assign(granted=lambda one: (one["granted"] == "yes").astype(int)))
        place.write()
        place.refused("which the model does not know", "'no', 'yes'")

    def test_one_class(self, place: Place) -> None:
        place.put(table().assign(granted="no"))
        place.write()
        place.refused("label: all 200 rows of people.csv have the label 'no'")

    def test_everybody_has_the_target(self, place: Place) -> None:
        frame = table().assign(income=1e6)
        place.put(frame)
        place.write(target="yes")
        place.refused("target: everybody in people.csv has the decision 'yes' already", "Name the decision")

    @pytest.mark.parametrize(
        ("kind", "name"),
        [
            (bool, "people.csv"),
            (float, "people.csv"),
            *((kind, "people.parquet") for kind in ("category", "Int64", "boolean")),
        ],
    )
    def test_types_that_fit(self, place: Place, kind: Any, name: str) -> None:
        text = kind in ("category", "string")
        frame = table().assign(granted=lambda one: one["granted"] if text else one["granted"] == "yes")
        model_label = frame["granted"] if text else frame["granted"].astype(float if kind is float else int)
        if kind in (bool, "boolean"):
            model_label = frame["granted"].astype(bool)
        place.model(make_pipeline(StandardScaler(), LogisticRegression()).fit(frame[NUMBERS], model_label))
        place.put(
            frame.astype({"granted": kind} if text or kind is bool else {"granted": int}).astype({"granted": kind}),
            name,
        )
        place.write(data=name)
        place.audited()


class TestValues:
    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_missing_number(self, place: Place, name: str) -> None:
        frame = table()
        frame.loc[[4, 9], "debt"] = np.nan
        place.put(frame, name)
        place.write(data=name)
        place.refused(f"Column 'debt' of {name} is missing in 2 rows, the first of them row 4", "SimpleImputer")

    def test_missing_number_by_id(self, place: Place) -> None:
        frame = table()
        frame.loc[[4, 9], "debt"] = np.nan
        place.put(frame)
        place.write(id="who")
        place.refused("Column 'debt' of people.csv is missing in 2 rows", "p0004")

    @pytest.mark.parametrize("column", ["debt", pytest.param("purpose")])
    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_missing_beside_levels(self, levels: Place, column: str, name: str) -> None:
        frame = table()
        frame.loc[[4, 9], column] = None
        levels.put(frame, name)
        levels.write(data=name)
        levels.refused(f"Column {column!r} of {name} is missing in 2 rows, the first of them row 4")

    def test_missing_with_an_imputer(self, place: Place) -> None:
        frame = table()
        frame.loc[[4, 9], "debt"] = np.nan
        frame.loc[[5, 9], "purpose"] = np.nan
        encoder = make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS),
            (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["purpose"]),
        )
        place.model(make_pipeline(encoder, LogisticRegression()).fit(frame[[*NUMBERS, "purpose"]], frame["granted"]))
        place.put(frame)
        place.write()
        assert place.audited()["coverage"]["people"][0]["not_found"] == 0

    @pytest.mark.parametrize("column", ["debt", "purpose"])
    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_all_missing(self, levels: Place, column: str, name: str) -> None:
        levels.put(table().assign(**{column: None}), name)
        levels.write(data=name)
        levels.refused(column, "missing" if name.endswith(".csv") else "no value at all")

    def test_all_missing_numbers(self, place: Place) -> None:
        place.put(table().assign(debt=np.nan))
        place.write()
        place.refused("'debt'")

    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_infinity(self, place: Place, name: str) -> None:
        frame = table()
        frame.loc[4, "debt"] = np.inf
        place.put(frame, name)
        place.write(data=name)
        assert place.audited()["coverage"]["people"][0]["not_found"] == 1

    def test_infinity_beside_levels(self, levels: Place) -> None:
        frame = table()
        frame.loc[4, "debt"] = -np.inf
        levels.put(frame)
        levels.write()
        assert levels.audited()["coverage"]["people"][0]["not_found"] == 1

    @pytest.mark.parametrize("where", ["place", pytest.param("levels")])
    def test_text_among_numbers(self, request: pytest.FixtureRequest, where: str) -> None:
        here: Place = request.getfixturevalue(where)
        frame = table().astype({"debt": object})
        frame.loc[4, "debt"] = "a lot"
        here.put(frame)
        here.write()
        here.refused("debt", *([] if where == "place" else ["a lot"]))

    @pytest.mark.parametrize("where", ["place", pytest.param("levels")])
    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    def test_dates_among_numbers(self, request: pytest.FixtureRequest, where: str, name: str) -> None:
        here: Place = request.getfixturevalue(where)
        here.put(table().assign(debt=pd.date_range("2020-01-01", periods=200)), name)
        here.write(data=name)
        here.refused("debt")

    @pytest.mark.parametrize("where", ["place", "levels"])
    def test_lists_and_bytes(self, request: pytest.FixtureRequest, where: str) -> None:
        here: Place = request.getfixturevalue(where)
        for value in ([1.0, 2.0], b"\x00\xff", {"a": 1}):
            here.put(table().assign(debt=[value] * 200), "people.parquet")
            here.write(data="people.parquet")
            here.refused("debt", "people.parquet")

    def test_lists_among_levels(self, levels: Place) -> None:
        levels.put(table().assign(purpose=[["car"]] * 200), "people.parquet")
        levels.write(data="people.parquet")
        levels.refused("purpose", "people.parquet")

    @pytest.mark.parametrize(
        ("where", "kind"),
        [
            *(("place", kind) for kind in ("Int64", "category", "string")),
            *(("levels", kind) for kind in ("Int64", "category", "decimal")),
            pytest.param("levels", "float32"),
        ],
    )
    def test_numbers_of_other_types(self, request: pytest.FixtureRequest, where: str, kind: str) -> None:
        """The model was fitted with whole numbers; the same ones in another type are the same people."""
        from decimal import Decimal

        here: Place = request.getfixturevalue(where)
        frame = table()
        frame["age"] = [Decimal(int(age)) for age in frame["age"]] if kind == "decimal" else frame["age"].astype(kind)
        here.put(frame, "people.parquet")
        here.write(data="people.parquet")
        if kind == "string":
            here.refused("age")
        else:
            here.audited()

    def test_nullable_numbers_with_a_gap(self, place: Place) -> None:
        place.put(table().assign(age=lambda one: one["age"].astype("Int64").where(one.index != 6)), "people.parquet")
        place.write(data="people.parquet")
        place.refused("Column 'age' of people.parquet is missing in 1 rows, the first of them row 6")

    @pytest.mark.parametrize("kind", ["category", "string"])
    def test_levels_of_other_types(self, levels: Place, kind: str) -> None:
        levels.put(table().assign(purpose=lambda one: one["purpose"].astype(kind)), "people.parquet")
        levels.write(data="people.parquet")
        levels.audited()

    @pytest.mark.parametrize("where", ["place", "levels"])
    def test_constant(self, request: pytest.FixtureRequest, where: str) -> None:
        here: Place = request.getfixturevalue(where)
        here.put(table().assign(age=40, purpose="car"))
        here.write()
        here.audited()

    def test_booleans(self, place: Place) -> None:
        frame = table().assign(age=lambda one: one["age"] > 40)
        place.model(linear(frame))
        for name in ("people.csv", "people.parquet"):
            place.put(frame, name)
            place.write(data=name)
            place.audited()

    def test_many_levels(self, place: Place) -> None:
        frame = table(2000).assign(purpose=[f"level {i}" for i in range(2000)])
        place.model(encoded(frame))
        place.put(frame)
        place.write(explain=20)
        place.refused("Column 'purpose' has 2,000 different values")

    @pytest.mark.parametrize(
        ("unknown", "name"),
        [
            ("ignore", "people.csv"),
            pytest.param("error", "people.parquet"),
        ],
    )
    def test_level_that_was_not_seen(self, place: Place, unknown: str, name: str) -> None:
        frame = table()
        place.model(encoded(frame, handle_unknown=unknown))
        frame.loc[[4, 9], "purpose"] = "boat"
        place.put(frame, name)
        place.write(data=name)
        found = place.audited()
        counts = found["coverage"]["people"][0]
        assert counts["found"] + counts["not_found"] == 200
        if unknown == "error":
            assert counts["not_found"] == 2

    def test_level_that_was_not_seen_ordinal(self, place: Place) -> None:
        frame = table()
        encoder = make_column_transformer((StandardScaler(), NUMBERS), (OrdinalEncoder(), ["purpose"]))
        model = make_pipeline(encoder, DecisionTreeClassifier(max_depth=3, random_state=0))
        place.model(model.fit(frame[[*NUMBERS, "purpose"]], frame["granted"]))
        frame.loc[[4, 9], "purpose"] = "boat"
        place.put(frame)
        place.write()
        assert place.audited()["coverage"]["people"][0]["not_found"] == 2

    def test_no_level_was_seen(self, levels: Place) -> None:
        levels.put(table().assign(purpose="boat"))
        levels.write()
        levels.refused("purpose", "boat")

    @pytest.mark.parametrize(("where", "target"), [("place", "yes"), ("levels", "yes"), ("place", None)])
    def test_bounds_that_exclude_everybody(self, request: pytest.FixtureRequest, where: str, target: Any) -> None:
        here: Place = request.getfixturevalue(where)
        fixed = ["debt", "age"] + (["purpose"] if where == "levels" else [])
        here.write(target=target, actionable={"immutable": fixed, "bounds": {"income": [-2e9, -1e9]}})
        found = here.audited()
        counts = found["coverage"]["people"][0]
        assert found["verdict"]["exit_code"] in (1, 3)
        assert counts["not_found"] > 0
        assert found["coverage"]["reasons"] or found["notes"]

    def test_nothing_may_change(self, place: Place) -> None:
        place.write(actionable={"immutable": NUMBERS})
        found = place.audited()
        assert found["verdict"]["exit_code"] in (1, 3)
        assert found["coverage"]["people"][0]["found"] == 0

    def test_one_row(self, place: Place) -> None:
        place.put(table().iloc[:1])
        place.write(label=None)
        assert place.audited()["verdict"]["exit_code"] == 3
        (place.folder / "audit.toml").unlink()

    def test_one_row_with_its_label(self, place: Place) -> None:
        place.put(table().iloc[:1])
        place.write()
        place.refused("label: all 1 rows of people.csv have the label")

    @pytest.mark.parametrize("label", ["granted", None])
    def test_two_rows(self, place: Place, label: str | None) -> None:
        frame = table()
        place.put(pd.concat([frame[frame["granted"] == one].iloc[:1] for one in ("no", "yes")]))
        place.write(label=label)
        place.audited()

    @pytest.mark.parametrize("where", ["place", "levels"])
    def test_rows_that_are_all_the_same(self, request: pytest.FixtureRequest, where: str) -> None:
        here: Place = request.getfixturevalue(where)
        here.put(table().iloc[[3] * 50])
        here.write(label=None)
        here.audited()

    @pytest.mark.parametrize("where", ["place", "levels"])
    def test_rows_that_are_all_there_twice(self, request: pytest.FixtureRequest, where: str) -> None:
        here: Place = request.getfixturevalue(where)
        here.put(pd.concat([table()] * 2))
        here.write()
        here.audited()

    @pytest.mark.parametrize("rows", [2, 3])
    def test_few_rows_for_other_methods(self, place: Place, rows: int) -> None:
        place.put(table().iloc[:rows])
        place.write(label=None, methods=["closest", "plausible", "steady", "penalized"])
        place.audited()

    @pytest.mark.parametrize("scale", [1e-12, 1e12])
    def test_extreme_numbers(self, place: Place, scale: float) -> None:
        frame = table()
        frame["income"] *= scale
        place.model(linear(frame))
        place.put(frame)
        place.write()
        place.audited()


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


class TestNames:
    @pytest.mark.parametrize("suffix", [".csv", ".parquet"])
    def test_strange(self, place: Place, suffix: str) -> None:
        rng = np.random.default_rng(1)
        frame = table().assign(**{name: rng.normal(size=200) for name in STRANGE})
        frame = frame.rename(columns={"sex": "<b>&amp;\n'\"`|"})
        place.model(linear(frame, [*NUMBERS, *STRANGE]))
        place.put(frame, f"people{suffix}")
        bounds = {name: [-10, 10] for name in STRANGE}
        limits = {"bounds": bounds, "increase": STRANGE[:5], "immutable": NUMBERS[:1]}
        place.write(data=f"people{suffix}", sensitive=["<b>&amp;\n'\"`|"], actionable=limits)
        assert place.audited()["audited"]["features"] == [*NUMBERS, *STRANGE]
        page = (place.folder / "out" / "report.html").read_text(encoding="utf-8")
        assert "<script>alert(1)" not in page
        assert "<b>&amp;" not in page

    def test_strange_beside_levels(self, place: Place) -> None:
        rng = np.random.default_rng(1)
        frame = table(300).assign(**{name: rng.choice(["car", f"{name}!", name], 300) for name in STRANGE})
        encoder = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), STRANGE))
        place.model(make_pipeline(encoder, LogisticRegression()).fit(frame[[*NUMBERS, *STRANGE]], frame["granted"]))
        place.put(frame, "people.parquet")
        limits = {"levels": {name: ["car", name] for name in STRANGE}}
        place.write(data="people.parquet", actionable=limits, people=5, explain=30)
        place.audited()

    def test_numbers_for_names(self, place: Place) -> None:
        frame = table().rename(columns=dict(zip(NUMBERS, "012", strict=True)))
        place.model(linear(frame, ["0", "1", "2"]))
        for name in ("people.csv", "people.parquet"):
            place.put(frame, name)
            place.write(data=name, actionable={"immutable": ["0"]})
            assert place.audited()["audited"]["features"] == ["0", "1", "2"]

    def test_numbers_for_names_that_the_model_has_not_seen(self, place: Place) -> None:
        frame = table()
        place.model(LogisticRegression().fit(frame[NUMBERS].to_numpy(), frame["granted"]))
        place.put(frame.rename(columns=dict(zip(NUMBERS, "012", strict=True))))
        place.write(features=["0", "1", "2"])
        place.audited()

    def test_names_that_are_no_texts_in_parquet(self, place: Place) -> None:
        import pyarrow
        import pyarrow.parquet

        frame = table()
        place.model(LogisticRegression().fit(frame[NUMBERS].to_numpy(), frame["granted"]))
        whole = frame.rename(columns=dict(zip(NUMBERS, range(3), strict=True)))
        pyarrow.parquet.write_table(
            pyarrow.Table.from_pandas(whole, preserve_index=False), place.folder / "people.parquet"
        )
        place.write(data="people.parquet", features=["0", "1", "2"])
        place.audited()

    def test_parquet_with_an_index(self, place: Place) -> None:
        table().set_index("who").to_parquet(place.folder / "people.parquet")
        place.write(data="people.parquet", id="who")
        place.audited()

    def test_no_names(self, place: Place) -> None:
        table().to_csv(place.folder / "people.csv", index=False, header=False)
        place.write()
        place.refused("people.csv has no column")


class Evil:
    """Touches a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


class TestModel:
    def test_missing(self, place: Place) -> None:
        place.write(model="modle.skops")
        place.refused("There is no file", "modle.skops")

    @pytest.mark.parametrize("name", ["folder", "folder.skops"])
    def test_folder(self, place: Place, name: str) -> None:
        (place.folder / name).mkdir()
        place.write(model=name)
        place.refused(f"{name} is a directory. A model is a .skops or .onnx file")

    @pytest.mark.parametrize("name", ["people.csv", "model.bin", "no such thing"])
    def test_other_kind(self, place: Place, name: str) -> None:
        place.write(model=name)
        place.refused(f"{name} is no kind of model that evenhand can open")

    @pytest.mark.parametrize(
        "name", ["x" * 300 + ".skops", "a\0b.skops", "model.skops/model.skops"], ids=["long", "null", "below"]
    )
    def test_impossible_name(self, place: Place, name: str) -> None:
        place.write(model=name)
        place.refused(".skops")

    @pytest.mark.parametrize("name", ["m.skops", "m.pkl", "m.onnx", "m.joblib"])
    def test_empty(self, place: Place, name: str) -> None:
        (place.folder / name).write_bytes(b"")
        place.write(model=name)
        place.refused(f"{name} is empty", more=("--trust-pickle",))

    @pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9, 0.999])
    def test_truncated_skops(self, place: Place, share: float) -> None:
        whole = (place.folder / "model.skops").read_bytes()
        (place.folder / "model.skops").write_bytes(whole[: max(1, int(share * len(whole)))])
        place.write()
        place.refused("model.skops", "skops")

    @pytest.mark.parametrize("content", [SPOILED, b"PK\x03\x04" + SPOILED, pickle.dumps({"a": 1})])
    def test_skops_that_is_none(self, place: Place, content: bytes) -> None:
        (place.folder / "model.skops").write_bytes(content)
        place.write()
        place.refused("model.skops", "skops")

    @pytest.mark.parametrize(("module", "kind"), [("os", "system"), ("builtins", "eval"), ("subprocess", "Popen")])
    def test_malicious_skops(self, place: Place, module: str, kind: str) -> None:
        path = place.folder / "model.skops"
        with zipfile.ZipFile(path) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        schema = json.loads(parts["schema.json"])
        for loader in ("ObjectNode", "FunctionNode", "TypeNode"):
            schema |= {"__module__": module, "__class__": kind, "__loader__": loader, "content": f"touch {path}.done"}
            parts["schema.json"] = json.dumps(schema).encode()
            with zipfile.ZipFile(path, "w") as archive:
                for name, content in parts.items():
                    archive.writestr(name, content)
            place.write()
            place.refused("model.skops")
            assert not Path(f"{path}.done").exists()

    @pytest.mark.parametrize("name", ["m.pkl", "m.pickle", "m.joblib", "m.PKL"])
    def test_pickle(self, place: Place, name: str) -> None:
        done = place.folder / "done"
        (place.folder / name).write_bytes(pickle.dumps(Evil(done)))
        place.write(model=name)
        place.refused(f"{name} is a pickle", "can run any code", "--trust-pickle", "skops.io.dump")
        assert not done.exists()
        (place.folder / "model.skops").write_bytes((place.folder / name).read_bytes())
        place.write()
        place.refused("a pickle under another name", more=("--trust-pickle",))
        assert not done.exists()

    def test_trusted_pickle(self, place: Place) -> None:
        (place.folder / "m.pkl").write_bytes(pickle.dumps(linear(table())))
        place.write(model="m.pkl")
        assert "m.pkl is a pickle, which can run any code" in place.audited("--trust-pickle")["output"]

    def test_trusted_pickle_that_is_no_model(self, place: Place) -> None:
        done = place.folder / "done"
        (place.folder / "m.pkl").write_bytes(pickle.dumps(Evil(done)))
        place.write(model="m.pkl")
        found = place.run("audit", "audit.toml", "--trust-pickle", "--jobs", "1")
        assert (found.exit_code, done.exists()) == (2, True)
        assert "has no predict method" in found.output
        assert not (place.folder / "out").exists()

    @pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
    def test_truncated_pickle(self, place: Place, share: float) -> None:
        whole = pickle.dumps(linear(table()))
        (place.folder / "m.pkl").write_bytes(whole[: int(share * len(whole))])
        place.write(model="m.pkl")
        place.refused("m.pkl cannot be opened", "Save the model again", more=("--trust-pickle",))

    def test_garbage_onnx(self, place: Place) -> None:
        (place.folder / "m.onnx").write_bytes(SPOILED)
        place.write(model="m.onnx")
        place.refused("m.onnx is damaged, or no ONNX model", "Export it again")

    @pytest.mark.parametrize(
        ("source", "phrase"),
        [
            ("nowhere:model", "there is no module 'nowhere'"),
            ("own:modle", "there is no 'modle'; there is"),
            ("own:fails", "failed with ZeroDivisionError"),
            ("own:number", "has no predict method"),
            ("wrong:model", "the import of 'wrong' failed with SyntaxError"),
        ],
    )
    def test_module(self, place: Place, source: str, phrase: str, monkeypatch: pytest.MonkeyPatch) -> None:
        import sys

        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        for name in ("own", "wrong"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        (place.folder / "own.py").write_text("number = 1\ndef fails():\n    return 1 / 0\n", encoding="utf-8")
        (place.folder / "wrong.py").write_text("def\n", encoding="utf-8")
        place.write(model=source)
        place.refused(source, phrase)

    def test_unfitted(self, place: Place) -> None:
        place.model(make_pipeline(StandardScaler(), LogisticRegression()))
        place.write()
        place.refused("model.skops holds a Pipeline that is not fitted", "fit(X, y)")

    @pytest.mark.parametrize("kind", [LinearRegression, DecisionTreeRegressor])
    @pytest.mark.parametrize("label", ["granted", None])
    def test_regressor(self, place: Place, kind: Any, label: str | None) -> None:
        frame = table().assign(granted=lambda one: (one["granted"] == "yes").astype(float))
        place.model(kind().fit(frame[NUMBERS], frame["granted"]))
        place.put(frame)
        place.write(label=label)
        place.refused(kind.__name__, "classif")

    def test_regressor_in_a_pipeline_with_levels(self, place: Place) -> None:
        frame = table().assign(granted=lambda one: (one["granted"] == "yes").astype(float))
        encoder = make_column_transformer((OneHotEncoder(), ["purpose"]), remainder="passthrough")
        place.model(make_pipeline(encoder, LinearRegression()).fit(frame[[*NUMBERS, "purpose"]], frame["granted"]))
        place.put(frame)
        place.write()
        place.refused("LinearRegression", "classif")

    @pytest.mark.parametrize("model", [DecisionTreeClassifier(), DummyClassifier()])
    @pytest.mark.parametrize("label", ["granted", None])
    def test_one_class(self, place: Place, model: Any, label: str | None) -> None:
        frame = table()
        place.model(model.fit(frame[NUMBERS], ["no"] * len(frame)))
        place.write(label=label)
        place.refused("The model knows one label only", "no")

    def test_model_that_always_says_the_same(self, place: Place) -> None:
        frame = table()
        place.model(DummyClassifier().fit(frame[NUMBERS], frame["granted"]))
        place.write(explain=3, people=3)
        assert place.audited()["coverage"]["people"][0]["found"] == 0

    def test_transformer(self, place: Place) -> None:
        place.model(StandardScaler().fit(table()[NUMBERS]))
        place.write()
        place.refused("model.skops", "StandardScaler", "no predict method")

    def test_several_outputs(self, place: Place) -> None:
        frame = table()
        both = frame[["granted", "sex"]].to_numpy()
        place.model(DecisionTreeClassifier(max_depth=2).fit(frame[NUMBERS], both))
        place.write()
        place.refused("output")


class TestCommand:
    @pytest.mark.parametrize("out", ["taken", "taken/below/it"])
    def test_file_in_the_way(self, place: Place, out: str) -> None:
        (place.folder / "taken").write_text("mine", encoding="utf-8")
        place.write(out=out)
        place.refused("The output folder", out, "cannot be written", "--out")
        place.write()
        place.refused("The output folder", out, "cannot be written", more=("--out", out))

    @pytest.mark.parametrize("out", ["/proc/x", "/proc/x/y", "/dev/null", pytest.param("x" * 300)])
    def test_impossible_folder(self, place: Place, out: str) -> None:
        place.write()
        place.refused("The output folder", "cannot be written", "--out", more=("--out", out))

    def test_folder_in_place_of_a_file(self, place: Place) -> None:
        (place.folder / "out" / "junit.xml").mkdir(parents=True)
        place.write()
        place.refused("junit.xml", "cannot be written")

    def test_folder_that_is_there_keeps_what_it_has(self, place: Place) -> None:
        (place.folder / "out").mkdir()
        (place.folder / "out" / "notes.txt").write_text("mine", encoding="utf-8")
        place.write(target="maybe")
        place.refused("target:")

    @pytest.mark.parametrize(
        ("words", "phrase"),
        [
            (("audit",), "Name either an audit file or --demo"),
            (("audit", "audit.toml", "--demo"), "Name either an audit file or --demo"),
            (("audit", "audit.toml", "--clean"), "--clean is a variant of --demo"),
            (("audit", "--clean"), "Name either an audit file or --demo"),
            (("audit", "audit.toml", "--jobs", "0"), "--jobs"),
            (("audit", "audit.toml", "--jobs", "many"), "--jobs"),
            (("audit", "audit.toml", "--jobs", "2", "--cluster", "tcp://127.0.0.1:1"), "--jobs and --cluster exclude"),
            (("audit", "audit.toml", "--seed", "-1"), "--seed"),
            (("audit", "audit.toml", "--sed", "1"), "--sed"),
            (("audit", "audit.toml", "more.toml"), "more.toml"),
            (("audit", "--demo", "--out", "people.csv"), "cannot be written"),
            (("init",), "Missing argument"),
            (("init", "model.skops"), "Missing argument"),
        ],
    )
    def test_words(self, place: Place, words: tuple[str, ...], phrase: str) -> None:
        place.write()
        place.refused(phrase, words=words)

    @pytest.mark.parametrize("address", ["nonsense", "tcp://127.0.0.1:1", "http://x:y"])
    def test_cluster_that_is_not_there(self, place: Place, address: str) -> None:
        import dask
        import distributed  # noqa: F401 - its settings have to be there before they are changed

        place.write()
        with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
            place.refused("--cluster", words=("audit", "audit.toml", "--cluster", address))


class TestInit:
    @pytest.mark.parametrize("suffix", [".csv", ".parquet"])
    @pytest.mark.parametrize("drop", [[], ["granted", "who", "sex", "purpose"]], ids=["all", "few"])
    def test_what_it_writes_runs_as_it_is(self, place: Place, suffix: str, drop: list[str]) -> None:
        place.put(table().drop(columns=drop), f"people{suffix}")
        found = place.run("init", "model.skops", f"people{suffix}")
        assert found.exit_code == 0, found.output
        assert "Wrote audit.toml" in found.output
        content = tomllib.loads((place.folder / "audit.toml").read_text(encoding="utf-8"))
        assert content.get("label") == (None if "granted" in drop else "granted")
        assert content.get("id") == (None if "who" in drop else "who")
        self.quick(place)
        place.audited(out="results/audit")

    @staticmethod
    def quick(place: Place) -> None:
        """Fewer people and draws, so that tests are quick; all else as it was written."""
        path = place.folder / "audit.toml"
        text = path.read_text(encoding="utf-8")
        for old, new in (
            ('["closest", "plausible", "steady"] ', '["closest"] '),
            ("# draws = 20 ", "draws = 2 "),
            ("# people = 2000 ", "people = 30 "),
            ("# lookup = 60 ", "lookup = 3 "),
        ):
            assert old in text
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")

    def test_exactly_as_it_is(self, levels: Place) -> None:
        levels.put(table(60))
        assert levels.run("init", "model.skops", "people.csv").exit_code == 0
        levels.audited(out="results/audit")

    def test_everything_that_is_commented_out_is_right(self, levels: Place) -> None:
        assert levels.run("init", "model.skops", "people.csv").exit_code == 0
        self.quick(levels)
        path = levels.folder / "audit.toml"
        lines = path.read_text(encoding="utf-8").splitlines()
        left = ("# tolerance", "# levels", "# increase", "# decrease", "# Lines", "# An", "# What")
        for i, line in enumerate(lines):
            bare = line.strip().removeprefix("# ")
            if line.strip().startswith("# ") and not line.strip().startswith(left):
                lines[i] = bare
        path.write_text("\n".join(lines), encoding="utf-8")
        levels.audited(out="results/audit")

    def test_it_overwrites_nothing_unless_told(self, place: Place) -> None:
        (place.folder / "audit.toml").write_text("mine", encoding="utf-8")
        words = ("init", "model.skops", "people.csv")
        place.refused("audit.toml exists already; --force overwrites it, --out names another one", words=words)
        assert place.run(*words, "--out", "other.toml").exit_code == 0
        assert place.run(*words, "--force").exit_code == 0
        assert (place.folder / "audit.toml").read_bytes() == (place.folder / "other.toml").read_bytes()

    def test_into_another_folder(self, place: Place) -> None:
        (place.folder / "below").mkdir()
        (place.folder / "data").mkdir()
        place.put(table(), "data/people.csv")
        words = ("init", "model.skops", "data/people.csv", "--out")
        assert place.run(*words, "below/audit.toml").exit_code == 0
        content = tomllib.loads((place.folder / "below" / "audit.toml").read_text(encoding="utf-8"))
        assert Path(content["data"]).is_absolute()
        assert place.run(*words, "audit.toml").exit_code == 0
        assert tomllib.loads((place.folder / "audit.toml").read_text(encoding="utf-8"))["data"] == "data/people.csv"

    @pytest.mark.parametrize("name", [pytest.param(one) if one in ("💶", "\x7f") else one for one in STRANGE])
    def test_strange_names(self, place: Place, name: str) -> None:
        suffix = ".parquet"
        frame = table().rename(columns={"income": name, "sex": f"{name}2", "granted": f"{name}3", "who": f"{name}4"})
        place.model(linear(frame, [name, "debt", "age"], f"{name}3"))
        place.put(frame, f"people{suffix}")
        found = place.run("init", "model.skops", f"people{suffix}")
        assert found.exit_code == 0, found.output
        text = (place.folder / "audit.toml").read_text(encoding="utf-8")
        content = tomllib.loads(text)
        assert (content["label"], content["id"]) == (f"{name}3", f"{name}4")
        assert f"{name}2" in content["sensitive"]
        opened = text.replace("# bounds", "bounds").replace("# increase", "increase")
        changed = tomllib.loads(opened.replace("# features", "features"))
        assert changed["features"] == [name, "debt", "age"]
        assert list(changed["actionable"]["bounds"]) == [name]
        assert changed["actionable"]["increase"] == [name]

    @pytest.mark.parametrize("level", ["a\nb", 'say "no"', "back\\slash", "<script>", "💶", pytest.param("\x7f")])
    def test_strange_labels(self, place: Place, level: str) -> None:
        frame = table().replace({"granted": {"yes": level}})
        place.model(linear(frame))
        place.put(frame, "people.parquet")
        assert place.run("init", "model.skops", "people.parquet").exit_code == 0
        text = (place.folder / "audit.toml").read_text(encoding="utf-8")
        assert tomllib.loads(text.replace("# target", "target"))["target"] in ("no", level)

    @pytest.mark.parametrize(
        "name",
        [
            'it\'s "so".csv',
            "a b.csv",
            *(pytest.param(one) for one in ("a\nb.csv", "💶.csv", "a\x7f.csv")),
        ],
    )
    def test_strange_files(self, place: Place, name: str) -> None:
        place.put(table(), name)
        (place.folder / "model.skops").rename(place.folder / f"{name}.skops")
        assert place.run("init", f"{name}.skops", name).exit_code == 0
        content = tomllib.loads((place.folder / "audit.toml").read_text(encoding="utf-8"))
        assert (content["data"], content["model"]) == (name, f"{name}.skops")

    @pytest.mark.parametrize(
        ("words", "phrases"),
        [
            (("modle.skops", "people.csv"), ("There is no file", "modle.skops")),
            (("model.skops", "peple.csv"), ("There is no data file", "peple.csv")),
            (("folder", "people.csv"), ("folder is a directory",)),
            (("model.skops", "folder"), ("folder is a folder",)),
            (("people.csv", "people.csv"), ("people.csv is no kind of model",)),
            (("model.skops", "model.skops"), ("data must be a .csv or .parquet file",)),
            (("evil.pkl", "people.csv"), ("evil.pkl is a pickle", "--trust-pickle")),
            (("spoiled.skops", "people.csv"), ("spoiled.skops",)),
            (("model.skops", "spoiled.csv"), ("spoiled.csv",)),
            (("model.skops", "spoiled.parquet"), ("spoiled.parquet",)),
            (("model.skops", "empty.csv"), ("empty.csv is empty",)),
            (("model.skops", "no rows.csv"), ("no rows.csv has no rows",)),
            (("model.skops", "no rows.parquet"), ("no rows.parquet has no rows",)),
            (("model.skops", "no age.csv"), ("features: no age.csv has no column 'age'",)),
            pytest.param(("model.skops", "text.csv"), ("text.csv", "'debt'")),
            (("unfitted.skops", "people.csv"), ("not fitted",)),
            pytest.param(("regressor.skops", "people.csv"), ("LinearRegression", "classif")),
            pytest.param(("one.skops", "people.csv"), ("one label only",)),
            pytest.param(("nameless.skops", "people.csv"), ("7",)),
            pytest.param(("nameless.skops", "no age.csv"), ("no age.csv",)),
            (("model.skops", "people.csv", "--out", "folder"), ("folder",)),
            (("model.skops", "people.csv", "--out", "folder", "--force"), ("folder cannot be written",)),
            (("model.skops", "people.csv", "--out", "people.csv/a.toml"), ("people.csv/a.toml cannot be written",)),
            (("model.skops", "people.csv", "--out", "nowhere/a.toml"), ("nowhere/a.toml cannot be written",)),
            (("model.skops", "people.csv", "--out", "/proc/a.toml"), ("/proc/a.toml cannot be written",)),
            pytest.param(("model.skops", "people.csv", "--out", "x" * 300), ("cannot be written",)),
            (("model.skops", "people.csv", "--out", "a\0b"), ("null byte",)),
        ],
    )
    def test_wrong(self, place: Place, words: tuple[str, ...], phrases: tuple[str, ...]) -> None:
        here, frame = place.folder, table()
        (here / "folder").mkdir()
        (here / "evil.pkl").write_bytes(pickle.dumps(Evil(here / "done")))
        for name in ("spoiled.skops", "spoiled.csv", "spoiled.parquet"):
            (here / name).write_bytes(SPOILED)
        (here / "empty.csv").write_bytes(b"")
        for name in ("no rows.csv", "no rows.parquet"):
            place.put(frame.iloc[:0], name)
        place.put(frame[["income", "debt"]], "no age.csv")
        place.put(frame.assign(debt="a lot"), "text.csv")
        place.model(LogisticRegression(), "unfitted.skops")
        place.model(LinearRegression().fit(frame[NUMBERS], frame["age"]), "regressor.skops")
        place.model(DecisionTreeClassifier().fit(frame[NUMBERS], ["no"] * len(frame)), "one.skops")
        nine = np.random.default_rng(0).normal(size=(20, 9))
        place.model(LogisticRegression().fit(nine, [0, 1] * 10), "nameless.skops")
        place.refused(*phrases, words=("init", *words))

    def test_trusted_pickle(self, place: Place) -> None:
        (place.folder / "m.pkl").write_bytes(pickle.dumps(linear(table())))
        found = place.run("init", "m.pkl", "people.csv", "--trust-pickle")
        assert found.exit_code == 0
        assert "m.pkl is a pickle, which can run any code" in found.output
