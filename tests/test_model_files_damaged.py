"""Loading fitted models from files that are damaged, something else or not there: refused, and nothing else happens."""

from __future__ import annotations

import io
import json
import pickle
import random
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from skops import io as skops_io

from evenhand.auditing.errors import AuditError
from evenhand.auditing.model_files import load_model
from opened_here import opened_here  # noqa: F401
from saved_models import PEOPLE, WHOLE, X, edited, forged, node, packed, plain, saved, several, unpacked, y
from threads import one_thread  # noqa: F401

# --- skops: positions that point out of their arrays are refused before compiled code follows them.


def with_array(data: bytes, field: str, change: Any) -> bytes:
    """The file with each of its record arrays that have `field` changed."""
    files, touched = unpacked(data), 0
    for name, content in files.items():
        array = np.load(io.BytesIO(content)) if name.endswith(".npy") else np.zeros(0)
        if array.dtype.names and field in array.dtype.names:
            change(array)
            buffer = io.BytesIO()
            np.save(buffer, array)
            files[name], touched = buffer.getvalue(), touched + 1
    assert touched
    return packed(files)


def put(field: str, value: int) -> Any:
    def change(array: Any) -> None:
        array[field][0] = value

    return change


TREES = {
    "tree": (DecisionTreeClassifier(), ("left_child", "right_child", "feature")),
    "forest": (RandomForestClassifier(2), ("left_child", "right_child", "feature")),
    "boosting": (GradientBoostingClassifier(n_estimators=2), ("left_child", "right_child", "feature")),
    "hist": (HistGradientBoostingClassifier(max_iter=2), ("left", "right", "feature_idx")),
}


@pytest.mark.parametrize("kind", TREES)
def test_trees_that_lead_out_of_their_arrays_are_refused(kind: str, tmp_path: Path) -> None:
    model, (left, right, feature) = TREES[kind]
    data = skops_io.dumps(model.fit(X, y))
    cases = [(left, 10**9), (right, 10**9), (left, 0), (right, 0), (feature, 4), (feature, 10**9)]
    cases += [] if kind == "hist" else [(left, -2), (right, -1), (feature, -2)]
    for field, value in cases:
        (tmp_path / "m.skops").write_bytes(with_array(data, field, put(field, value)))
        with pytest.raises(AuditError, match=r"m\.skops is damaged.*a tree (has branches|asks for columns)"):
            load_model("m.skops", tmp_path)


def test_trees_of_another_width_or_in_another_place_are_refused(tmp_path: Path) -> None:
    def narrow(attributes: Any) -> None:
        attributes["n_features_in_"] = plain(1)

    def unknown(attributes: Any) -> None:
        del attributes["n_features_in_"]

    def hidden(attributes: Any) -> None:
        del attributes["ccp_alpha"]  # there are as many as before, or skops ignores the last
        attributes["_validate_X_predict"] = node("numpy.maximum", "FunctionNode")

    def moved(attributes: Any) -> None:
        attributes["max_depth"] = attributes.pop("tree_")

    def hollow(attributes: Any) -> None:
        attributes["tree_"]["content"] = plain({})

    tree = skops_io.dumps(DecisionTreeClassifier().fit(X, y))
    forest = skops_io.dumps(RandomForestClassifier(2).fit(X, y))
    boosting = skops_io.dumps(GradientBoostingClassifier(n_estimators=2).fit(X, y))
    for data, change, message in (
        (tree, narrow, "does not fit"),
        (tree, unknown, "does not fit"),
        (tree, hidden, "hides a method"),
        (tree, moved, "where none belongs"),
        (tree, hollow, "does not fit"),
        (forest, narrow, "does not fit"),
        (forest, unknown, "how many columns"),
        (boosting, narrow, "does not fit"),
        (
            boosting,
            lambda attributes: attributes.update(init_=plain("zero"), n_trees_per_iteration_=plain(1)),
            "labels",
        ),
    ):
        (tmp_path / "m.skops").write_bytes(edited(data, change))
        with pytest.raises(AuditError, match=message):
            load_model("m.skops", tmp_path)
    bare = skops_io.dumps(DecisionTreeClassifier().fit(X, y).tree_)
    (tmp_path / "m.skops").write_bytes(bare)
    with pytest.raises(AuditError, match="Tree where none belongs"):
        load_model("m.skops", tmp_path)


def test_boosting_with_categories_is_refused_with_the_way_out(tmp_path: Path) -> None:
    table = PEOPLE.astype({"job": "category"})
    model = HistGradientBoostingClassifier(max_iter=2, categorical_features=["job"]).fit(table, y)
    saved(model, tmp_path)
    with pytest.raises(AuditError, match=r"not trusted: functools\.partial, .* or pass module:attribute"):
        load_model("model.skops", tmp_path)


def test_trees_of_neighbours_are_built_again(tmp_path: Path) -> None:
    model = KNeighborsClassifier(1, leaf_size=10).fit(X, y)

    def beyond(array: Any) -> None:
        array["idx_end"] = 10**9

    (tmp_path / "m.skops").write_bytes(with_array(skops_io.dumps(model), "idx_end", beyond))
    np.testing.assert_array_equal(load_model("m.skops", tmp_path).model.predict(X + 0.1), model.predict(X + 0.1))
    # A state that would end the interpreter is not read either.
    files = unpacked(skops_io.dumps(model))
    schema = json.loads(files["schema.json"])
    schema["content"]["content"]["_tree"]["content"]["content"][11]["content"] = several(2.0, None, None)
    (tmp_path / "n.skops").write_bytes(packed({**files, "schema.json": json.dumps(schema).encode()}))
    np.testing.assert_array_equal(load_model("n.skops", tmp_path).model.predict(X), model.predict(X))
    assert load_model("m.skops", tmp_path).model._tree.get_arrays()[2]["idx_end"].max() == len(X)


# --- files that are something else, or not whole.


PICKLED = pickle.dumps(DecisionTreeClassifier(max_depth=2).fit(X, y))


@pytest.mark.parametrize("part", range(20))
def test_cut_files_are_refused(part: int, tmp_path: Path) -> None:
    for name, whole in (("m.skops", WHOLE), ("m.pkl", PICKLED)):
        for cut in {len(whole) * part // 20, min(part, len(whole)), len(whole) - 1 - part}:
            (tmp_path / name).write_bytes(whole[:cut])
            with pytest.raises(AuditError, match=f"{name} (is|cannot)"):
                load_model(name, tmp_path, trust_pickle=True)


@pytest.mark.parametrize("seed", range(10))
def test_damaged_files_raise_nothing_else(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    for _ in range(15):
        files = unpacked(WHOLE)
        name = draw.choice(["schema.json", *files])
        content = bytearray(files[name])
        for _ in range(draw.choice([1, 3, 10])):
            content[draw.randrange(len(content))] = draw.randrange(256)
        whole = bytearray(WHOLE)
        whole[draw.randrange(len(whole))] = draw.randrange(256)
        for data in (packed({**files, name: bytes(content)}), bytes(whole)):
            (tmp_path / "m.skops").write_bytes(data)
            try:
                load_model("m.skops", tmp_path)
            except AuditError as error:
                assert "m.skops" in str(error)  # noqa: PT017 - it may also be whole enough


SCHEMAS = {
    "nothing": b"",
    "garbage": b"\xff\xfe garbage",
    "list": b"[1, 2]",
    "number": b"7",
    "null": b"null",
    "empty": b"{}",
    "deep": b"[" * 200_000,
    "deep schema": b'{"protocol": 2, "a": ' * 5000 + b"1" + b"}" * 5000,
    "unknown loader": b'{"protocol": 2, "__class__": "a", "__module__": "b", "__loader__": "c"}',
    "unknown id": b'{"protocol": 2, "__class__": "a", "__module__": "b", "__loader__": "CachedNode", "__id__": 1}',
    "missing file": b'{"protocol": 2, "__class__": "bytes", "__module__": "builtins", "__loader__": "BytesNode", '
    b'"file": "x"}',
    "no class": b'{"protocol": 2, "__class__": "Nobody", "__module__": "sklearn", "__loader__": "ObjectNode"}',
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_schemas_that_are_none(schema: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.skops").write_bytes(packed({"schema.json": schema}))
    with pytest.raises(AuditError, match=r"m\.skops (is damaged, or no skops file: \w+|holds types)"):
        load_model("m.skops", tmp_path)


def test_files_that_would_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "m.skops", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b" " * 300 * 2**20)
    with pytest.raises(AuditError, match=r"m\.skops unpacks to 300 MB, its schema to 300 MB; at most 2048 and 256 are"):
        load_model("m.skops", tmp_path)
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999999,), }"
    array = node("numpy.ndarray", "NdArrayNode", type="numpy", file="huge.npy")
    (tmp_path / "m.skops").write_bytes(packed({**unpacked(forged(array)), "huge.npy": header.ljust(128)}))
    with pytest.raises(AuditError, match=r"m\.skops is damaged"):
        load_model("m.skops", tmp_path)


def test_what_is_no_skops_file_is_called_by_its_name(tmp_path: Path) -> None:
    for content, message in (
        (b"", "is empty"),
        (b"hello", "is no zip archive, not a skops file"),
        (PICKLED, "is a pickle under another name, not a skops file"),
        (packed({"other.txt": b"x"}), "is a zip archive without schema.json"),
        (b"PK\x03\x04", "is damaged, or no skops file: BadZipFile"),
    ):
        (tmp_path / "m.skops").write_bytes(content)
        with pytest.raises(AuditError, match=f"m.skops {message}"):
            load_model("m.skops", tmp_path)


def test_paths_that_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder.skops").mkdir()
    (tmp_path / "model.sav").write_bytes(b"x")
    for source, message in (
        ("none.skops", f"There is no file {tmp_path / 'none.skops'}"),
        ("none.pkl", "There is no file"),
        ("C:\\models\\a.skops", "There is no file"),
        ("C:model.skops", "There is no file"),
        ("folder.skops", "is a directory"),
        ("", "is a directory"),
        ("model.sav", "model.sav is no kind of model .* Possible: a .skops or .onnx file, a pickle .*, or module:attr"),
        ("model", "is no kind of model"),
        ("a:b:c", "is no kind of model"),
        (":model", "is no kind of model"),
        ("x" * 5000 + ".skops", "cannot be read"),
        ("x" * 5000 + ":y", "there is no module"),
        ("a\0b.skops", "There is no file"),
    ):
        with pytest.raises(AuditError) as caught:
            load_model(source, tmp_path)
        assert re.search(message, str(caught.value)), source[:80]
    saved(LogisticRegression(max_iter=1000).fit(X, y), tmp_path, "m.skops")
    monkeypatch.setattr(
        Path, "read_bytes", lambda self: (_ for _ in ()).throw(PermissionError(13, "Permission denied"))
    )
    with pytest.raises(AuditError, match=r"m\.skops cannot be read: Permission denied\."):
        load_model("m.skops", tmp_path)


def test_what_is_no_fitted_model(tmp_path: Path) -> None:
    for model, message in (
        (StandardScaler().fit(X), "m.skops holds StandardScaler, which has no predict method"),
        ({"a": 1}, "holds dict, which has no predict"),
        (DecisionTreeClassifier, "not trusted|has no predict"),
        (LogisticRegression(), r"holds a LogisticRegression that is not fitted: call its fit\(X, y\)"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "holds a Pipeline that is not fitted"),
        (RandomForestClassifier(), "holds a RandomForestClassifier that is not fitted"),
    ):
        saved(model, tmp_path, "m.skops")
        with pytest.raises(AuditError, match=message):
            load_model("m.skops", tmp_path)


def test_a_pipeline_without_its_steps(tmp_path: Path) -> None:
    data = edited(WHOLE, lambda attributes: attributes.update(steps=plain([])))
    (tmp_path / "m.skops").write_bytes(data)
    with pytest.raises(AuditError, match=r"m\.skops holds"):
        load_model("m.skops", tmp_path)


def test_a_damaged_pickle_is_not_one_of_another_python(tmp_path: Path) -> None:
    """joblib guesses so of a text that is none."""
    content = bytearray(pickle.dumps(DecisionTreeClassifier(random_state=0).fit(X, y)))
    content[content.find(b"tree_")] = 0xFF
    (tmp_path / "m.pkl").write_bytes(content)
    with pytest.raises(AuditError, match=r"m\.pkl cannot be opened: it is damaged, or no pickle"):
        load_model("m.pkl", tmp_path, trust_pickle=True)
