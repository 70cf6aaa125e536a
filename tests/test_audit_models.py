"""Audits of models that are missing, damaged, dangerous or no classifiers: refused with a sentence and exit code 2."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from audit_folders import NUMBERS, SPOILED, Evil, InFolder, Place, linear, table


class TestModel(InFolder):
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
