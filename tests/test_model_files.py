"""Loading fitted models: every way in, and that nothing in a file runs which nobody trusted."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import random
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest, chi2, mutual_info_classif
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from skops import io as skops_io

from evenhand.auditing.errors import AuditError
from evenhand.auditing.model_files import TRUSTED, OnnxModel, load_model
from evenhand.models import GLVQ, GMLVQ, blackbox, view

X, y = load_iris(return_X_y=True)
WORDS = np.array(["no", "maybe", "yes"])[y]
PEOPLE = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(job=np.where(X[:, 0] > 5.5, "cook", "smith"))

NUMERIC = {
    "logistic": LogisticRegression(max_iter=1000),
    "ridge": RidgeClassifier(),
    "svc": LinearSVC(),
    "sgd": SGDClassifier(random_state=0),
    "sgd log": SGDClassifier(loss="log_loss", random_state=0),
    "perceptron": Perceptron(),
    "lda": LinearDiscriminantAnalysis(),
    "tree": DecisionTreeClassifier(random_state=np.random.RandomState(0)),
    "pruned": DecisionTreeClassifier(ccp_alpha=0.01, max_leaf_nodes=9),
    "glvq": GLVQ(),
    "gmlvq": GMLVQ(max_iter=1000),
    "centroid": NearestCentroid(),
    "1nn": KNeighborsClassifier(1),
    "1nn ball": KNeighborsClassifier(1, algorithm="ball_tree", leaf_size=5),
    "1nn brute": KNeighborsClassifier(1, algorithm="brute"),
    "3nn l1": KNeighborsClassifier(3, metric="manhattan"),
    "forest": RandomForestClassifier(5, random_state=0),
    "extra": ExtraTreesClassifier(5, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=3),
    "hist": HistGradientBoostingClassifier(max_iter=3),
    "ada": AdaBoostClassifier(n_estimators=3),
    "bagging": BaggingClassifier(DecisionTreeClassifier(), n_estimators=3, max_features=2, random_state=0),
    "voting": VotingClassifier([("a", DecisionTreeClassifier()), ("b", LogisticRegression(max_iter=1000))]),
    "calibrated": CalibratedClassifierCV(DecisionTreeClassifier(max_depth=2), cv=3),
    "grid": GridSearchCV(LogisticRegression(max_iter=1000), {"C": [0.1, 1.0]}, cv=3),
    "network": MLPClassifier((5,), max_iter=2000, tol=1e-2),
}
STEPS = {
    "standard": StandardScaler(),
    "min max": MinMaxScaler(),
    "max abs": MaxAbsScaler(),
    "robust": RobustScaler(),
    "pca": PCA(2),
    "incremental": IncrementalPCA(2),
    "svd": TruncatedSVD(2),
    "best": SelectKBest(k=2),
    "chi2": SelectKBest(chi2, k=2),
    "information": SelectKBest(mutual_info_classif, k=2),
    "function": FunctionTransformer(),
    "union": FeatureUnion([("a", StandardScaler()), ("b", MinMaxScaler())]),
    "bins": KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"),
    "imputer": SimpleImputer(),
}
ENCODERS = {
    "one hot": OneHotEncoder(),
    "drop": OneHotEncoder(drop="first"),
    "infrequent": OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=5),
    "ordinal": OrdinalEncoder(),
    "target": TargetEncoder(cv=2),
    "imputed": make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
}


def mixed(encoder: Any, columns: Any) -> Any:
    numbers = ("numbers", StandardScaler(), ["a", "b", "c", "d"])
    return make_pipeline(ColumnTransformer([("job", encoder, columns), numbers]), LogisticRegression(max_iter=1000))


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


def same(model: Any, folder: Path, table: Any) -> None:
    data = saved(model, folder)
    loaded = load_model("model.skops", folder)
    np.testing.assert_array_equal(loaded.model.predict(table), model.predict(table))
    assert loaded.sha256 == hashlib.sha256(data).hexdigest()
    assert loaded.name == "model.skops"
    assert loaded.warning is None


# --- skops: what is made of scikit-learn's own parts comes back as it was.


@pytest.mark.parametrize("model", NUMERIC.values(), ids=NUMERIC)
def test_every_family_comes_back_from_skops(model: Any, tmp_path: Path) -> None:
    same(model.fit(X, WORDS), tmp_path, X)
    assert load_model("model.skops", tmp_path).kind == type(model).__name__


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_every_step_comes_back_from_skops(step: Any, tmp_path: Path) -> None:
    same(make_pipeline(step, LogisticRegression(max_iter=5000)).fit(X, WORDS), tmp_path, X)
    assert load_model("model.skops", tmp_path).kind == "Pipeline ending in LogisticRegression"


@pytest.mark.parametrize("columns", [["job"], make_column_selector(dtype_exclude="number")], ids=["names", "selector"])
@pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS)
def test_every_encoder_comes_back_from_skops(encoder: Any, columns: Any, tmp_path: Path) -> None:
    same(mixed(encoder, columns).fit(PEOPLE, WORDS), tmp_path, PEOPLE)


def test_selectors_by_object_and_boosting_with_two_labels_come_back(tmp_path: Path) -> None:
    people = PEOPLE.astype({"job": object})
    same(mixed(OneHotEncoder(), make_column_selector(dtype_include=object)).fit(people, y), tmp_path, people)
    for model in (GradientBoostingClassifier(n_estimators=3), HistGradientBoostingClassifier(max_iter=3)):
        same(model.fit(X, y == 1), tmp_path, X)


def test_regions_of_a_loaded_model(tmp_path: Path) -> None:
    saved(make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3)).fit(X, y), tmp_path)
    found = view(load_model("model.skops", tmp_path).model)
    assert found.region(1).contains(X[found.predict(X) == 1]).all()


def test_paths_may_lead_into_folders_and_be_absolute(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    saved(LogisticRegression(max_iter=1000).fit(X, y), tmp_path / "sub", "A.SKOPS")
    assert load_model("sub/A.SKOPS", tmp_path).name == "A.SKOPS"
    assert load_model(str(tmp_path / "sub" / "A.SKOPS"), Path("/nowhere")).name == "A.SKOPS"


# --- skops: what could run code is refused by name.


def node(name: str, loader: str, **rest: Any) -> dict[str, Any]:
    module, _, kind = name.rpartition(".")
    return {"__class__": kind, "__module__": module, "__loader__": loader, **rest}


def plain(value: Any) -> dict[str, Any]:
    return node("builtins.str", "JsonNode", content=json.dumps(value), is_json=True)


def several(*values: Any) -> dict[str, Any]:
    return node("builtins.tuple", "TupleNode", content=[plain(value) for value in values])


def evil(marker: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """Name that has to be refused, and a part of a schema that names it."""
    shell, code = f"touch {marker}", f"open({str(marker)!r}, 'w').close()"
    mapping = node("builtins.dict", "DictNode", content={})
    mapping["key_types"] = node("builtins.list", "ListNode", content=[])
    call = node("os.system", "FunctionNode")
    keys = node("builtins.list", "ListNode", content=[node("builtins.exec", "TypeNode")])
    seed = {**mapping, "content": {"bit_generator": plain("seed")}}
    bound = node("pathlib.PosixPath", "ConstructorFromReduceNode", content=several(str(marker)))
    return {
        "function": ("os.system", call),
        "builtin": ("builtins.exec", node("builtins.exec", "TypeNode")),
        "shell": ("os.system", node("os.system", "ConstructorFromReduceNode", content=several(shell))),
        "code": ("builtins.exec", node("builtins.exec", "ConstructorFromReduceNode", content=several(code))),
        "process": (
            "subprocess.Popen",
            node("subprocess.Popen", "ListNode", content=[plain("touch"), plain(str(marker))]),
        ),
        "operator": ("operator.methodcaller", node("operator.methodcaller", "OperatorFuncNode", attrs=several("run"))),
        "partial": (
            "functools.partial, posix.system",
            node(
                "functools.partial",
                "PartialNode",
                content={
                    "func": node("posix.system", "FunctionNode"),
                    "args": several(shell),
                    "kwds": mapping,
                    "namespace": plain(None),
                },
            ),
        ),
        "method": (
            "pathlib.PosixPath, pathlib.PosixPath.touch",
            node("pathlib.PosixPath", "MethodNode", content={"func": "touch", "obj": bound}),
        ),
        "object": ("mypkg.Thing", node("mypkg.Thing", "ObjectNode", content=mapping)),
        "loss": ("os.system", node("os.system", "LossNode", __reduce__={"args": several(shell)}, content=mapping)),
        "key": ("builtins.exec", node("builtins.dict", "DictNode", content={code: plain(1)}, key_types=keys)),
        "array": (
            "builtins.exec",
            node("builtins.exec", "NdArrayNode", type="json", content=[], shape=several(0)),
        ),
        "random": (
            "numpy.random.seed",
            node(
                "numpy.random._generator.Generator",
                "RandomGeneratorNode",
                content={"bit_generator": seed, "seed_seq": mapping},
            ),
        ),
        "metric": (
            "sklearn.metrics._dist_metrics.EuclideanDistance64",
            node("sklearn.metrics._dist_metrics.EuclideanDistance64", "ObjectNode", content=several(2.0, None, None)),
        ),
        "scorer": ("sklearn.utils._joblib.Memory", node("sklearn.utils._joblib.Memory", "ObjectNode")),
    }


def forged(part: dict[str, Any], *, root: bool = False) -> bytes:
    """A valid file of a model in which one attribute, or everything, is `part`."""
    files = unpacked(skops_io.dumps(LogisticRegression(max_iter=1000).fit(X, y)))
    schema = json.loads(files["schema.json"])
    if root:
        schema = {**part, "protocol": schema["protocol"], "_skops_version": schema["_skops_version"]}
    else:
        schema["content"]["content"]["C"] = part
    return packed({**files, "schema.json": json.dumps(schema).encode()})


@pytest.mark.parametrize("root", [False, True], ids=["attribute", "root"])
@pytest.mark.parametrize("case", evil(Path("marker")))
def test_what_could_run_code_is_refused_by_name(case: str, root: bool, tmp_path: Path) -> None:
    names, part = evil(tmp_path / "marker")[case]
    (tmp_path / "evil.skops").write_bytes(forged(part, root=root))
    with pytest.raises(
        AuditError, match=r"evil\.skops holds types that are not trusted: .*scikit-learn's own parts"
    ) as e:
        load_model("evil.skops", tmp_path, trust_pickle=True)
    assert names in str(e.value)
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("case", ["shell", "code", "key"])
def test_the_forged_files_would_run_if_they_were_trusted(case: str, tmp_path: Path) -> None:
    data = forged(evil(tmp_path / "marker")[case][1])
    skops_io.loads(data, trusted=skops_io.get_untrusted_types(data=data))
    assert (tmp_path / "marker").exists()


def test_functions_in_the_old_format_are_refused(tmp_path: Path) -> None:
    part = node("os.system", "FunctionNode", content={"module_path": "os", "function": "system"})
    files = unpacked(forged(part))
    schema = json.loads(files["schema.json"])
    for protocol, message in ((0, "not trusted: os.system"), (10**6, "damaged"), (-1, "damaged"), ("0", "damaged")):
        content = json.dumps({**schema, "protocol": protocol}).encode()
        (tmp_path / "old.skops").write_bytes(packed({**files, "schema.json": content}))
        with pytest.raises(AuditError, match=message):
            load_model("old.skops", tmp_path)


def test_own_functions_are_refused_and_the_list_names_no_whole_package(tmp_path: Path) -> None:
    saved(make_pipeline(FunctionTransformer(plain_double), LogisticRegression(max_iter=1000)).fit(X, y), tmp_path)
    with pytest.raises(
        AuditError, match=r"not trusted: .*plain_double\. Save a model that .* or pass module:attribute"
    ):
        load_model("model.skops", tmp_path)
    for name in TRUSTED:
        module, _, attribute = name.rpartition(".")
        assert hasattr(__import__(module, fromlist=[attribute]), attribute), name


def plain_double(values: Any) -> Any:
    return 2 * values


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


def edited(data: bytes, change: Any) -> bytes:
    files = unpacked(data)
    schema = json.loads(files["schema.json"])
    change(schema["content"]["content"])
    return packed({**files, "schema.json": json.dumps(schema).encode()})


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


class Marker:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("suffix", [".pkl", ".pickle", ".joblib", ".PKL", ".skops", ".onnx"])
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_pickle_does_not_run_unless_trusted(suffix: str, protocol: int, tmp_path: Path) -> None:
    if suffix == ".onnx":
        pytest.importorskip("onnxruntime")
    marker = tmp_path / "marker"
    path = tmp_path / f"model{suffix}"
    path.write_bytes(pickle.dumps(Marker(marker), protocol=protocol))
    with pytest.raises(AuditError, match=f"model{suffix}"):
        load_model(path.name, tmp_path)
    assert not marker.exists()
    with pytest.raises(AuditError, match=r"has no predict|not a skops file|no ONNX model"):
        load_model(path.name, tmp_path, trust_pickle=True)
    assert marker.exists() == (suffix not in (".skops", ".onnx"))


def test_a_refused_pickle_is_not_even_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.pkl").write_bytes(b"whatever")
    monkeypatch.setattr(Path, "read_bytes", lambda self: pytest.fail("read"))
    with pytest.raises(
        AuditError, match=r"can run any code .* skops\.io\.dump\(model, 'model\.skops'\), or pass --trust"
    ):
        load_model("model.pkl", tmp_path)


@pytest.mark.parametrize("suffix", [".pkl", ".joblib"])
def test_a_trusted_pickle_comes_with_a_warning(suffix: str, tmp_path: Path) -> None:
    model = RandomForestClassifier(3).fit(X, WORDS)
    joblib.dump(model, tmp_path / f"m{suffix}", compress=3 if suffix == ".joblib" else 0)
    loaded = load_model(f"m{suffix}", tmp_path, trust_pickle=True)
    np.testing.assert_array_equal(loaded.model.predict(X), model.predict(X))
    assert loaded.kind == "RandomForestClassifier"
    assert loaded.sha256 == hashlib.sha256((tmp_path / f"m{suffix}").read_bytes()).hexdigest()
    assert loaded.warning == f"m{suffix} is a pickle, which can run any code: it was opened because you trust it."


class Leaves:
    def __reduce__(self) -> Any:
        return sys.exit, (3,)


def test_a_trusted_pickle_that_fails(tmp_path: Path) -> None:
    for content in (b"no pickle", pickle.dumps(Leaves()), b"cno_such_module\nThing\n.", b"\x80\x05."):
        (tmp_path / "m.pkl").write_bytes(content)
        with pytest.raises(AuditError, match=r"m\.pkl cannot be opened: \w+"):
            load_model("m.pkl", tmp_path, trust_pickle=True)


@pytest.mark.parametrize("name", ["m.skops", "m.pkl"])
def test_another_version_of_scikit_learn_is_a_warning(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X, y)
    monkeypatch.setattr("sklearn.base.__version__", "1.0.1")
    (tmp_path / name).write_bytes(skops_io.dumps(model) if name == "m.skops" else pickle.dumps(model))
    monkeypatch.undo()
    loaded = load_model(name, tmp_path, trust_pickle=True)
    assert loaded.warning is not None
    assert loaded.warning.count("saved with scikit-learn 1.0.1 and opened with") == 1
    np.testing.assert_array_equal(loaded.model.predict(X), model.predict(X))


WHOLE = skops_io.dumps(make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=2)).fit(X, y))
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


# --- module:attribute


MODULE = """
import numpy as np
from sklearn.linear_model import LogisticRegression

class Rule:
    def predict(self, X):
        return (np.asarray(X)[:, 0] > 5).astype(int)

class Broken:
    def predict(self, X): ...
    def fit(self): ...

rule = Rule()
class box:
    inner = rule
fitted = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
unfitted = LogisticRegression()
broken = Broken()
number = 3
def make():
    return fitted
def needs(argument):
    return fitted
def fails():
    raise KeyError("gone")
def leaves():
    raise SystemExit(2)
"""


def test_module_and_attribute(tmp_path: Path) -> None:
    (tmp_path / "own_models.py").write_text(MODULE)
    before = list(sys.path)
    for attribute, kind in (
        ("rule", "Rule"),
        ("box.inner", "Rule"),
        ("Rule", "Rule"),
        ("fitted", "LogisticRegression"),
        ("make", "LogisticRegression"),
    ):
        loaded = load_model(f"own_models:{attribute}", tmp_path)
        assert (loaded.kind, loaded.name, loaded.sha256) == (kind, f"own_models:{attribute}", None)
    for attribute, message in (
        ("nobody", "there is no 'nobody'; there is Broken, LogisticRegression, Rule, box"),
        ("rule.x", "there is no 'x'"),
        ("number", "holds int, which has no predict"),
        ("np", "holds module, which has no predict"),
        ("unfitted", "is not fitted"),
        ("LogisticRegression", "is not fitted"),
        ("broken", "holds a Broken that is not whole: "),
        ("needs", r"own_models:needs\(\) failed with TypeError: needs\(\) missing 1 required"),
        ("fails", r"own_models:fails\(\) failed with KeyError: 'gone'"),
        ("leaves", r"failed with SystemExit: 2"),
    ):
        with pytest.raises(AuditError, match=message):
            load_model(f"own_models:{attribute}", tmp_path)
    assert sys.path == before


OPENED = "import sys, cloudpickle; print(cloudpickle.loads(sys.stdin.buffer.read()).predict([[4.0], [6.0]]).tolist())"


def test_own_classes_travel_to_processes_that_cannot_import_them(tmp_path: Path) -> None:
    shared, folder, nowhere = (tmp_path / name for name in ("shared_name", "folder", "nowhere"))
    for place in (shared, folder / "own_package", nowhere):
        place.mkdir(parents=True)
    (tmp_path / "own_travellers.py").write_text(MODULE)
    (shared / "inner_travellers.py").write_text(MODULE)
    (folder / "own_package" / "__init__.py").write_text("")
    (folder / "own_package" / "rules.py").write_text(MODULE)
    (folder / "own_package" / "entry.py").write_text("from own_package.rules import rule")
    for source, place in (
        ("own_travellers:rule", tmp_path),
        ("shared_name.inner_travellers:rule", tmp_path),
        ("own_package.entry:rule", folder),
    ):
        sent = cloudpickle.dumps(load_model(source, place).model)
        found = subprocess.run([sys.executable, "-c", OPENED], input=sent, cwd=nowhere, capture_output=True, check=True)
        assert found.stdout.split() == [b"[0,", b"1]"], source
    assert "shared_name" not in cloudpickle.list_registry_pickle_by_value()


def test_installed_modules_do_not_travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / ".venv" / "site-packages"
    installed.mkdir(parents=True)
    (installed / "installed_rules.py").write_text(MODULE)
    monkeypatch.syspath_prepend(installed)
    assert load_model("installed_rules:rule", tmp_path).kind == "Rule"
    assert "installed_rules" not in cloudpickle.list_registry_pickle_by_value()


def test_modules_that_cannot_be_imported(tmp_path: Path) -> None:
    for name, text, message in (
        ("bad_syntax", "def (:", "the import of 'bad_syntax' failed with SyntaxError"),
        ("bad_import", "import no_such_module_at_all", "failed with ModuleNotFoundError: No module named 'no_such"),
        ("bad_value", "raise ValueError('too bad')", "failed with ValueError: too bad"),
        ("bad_exit", "raise SystemExit('bye')", "failed with SystemExit: bye"),
    ):
        (tmp_path / f"{name}.py").write_text(text)
        with pytest.raises(AuditError, match=message):
            load_model(f"{name}:model", tmp_path)
    with pytest.raises(AuditError, match="there is no module 'nowhere_to_be_found', neither in"):
        load_model("nowhere_to_be_found.inside:model", tmp_path)


def test_modules_of_the_current_directory_and_of_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        (folder / "twice_there.py").write_text(MODULE)
    monkeypatch.chdir(one)
    assert load_model("twice_there:rule", tmp_path).kind == "Rule"
    with pytest.raises(AuditError, match=r"a module 'twice_there' is loaded already, from .*one.*Rename .*two"):
        load_model("twice_there:rule", two)


@pytest.mark.skipif(sys.platform == "win32", reason="no colons in names of files")
def test_a_file_with_a_colon_is_a_file(tmp_path: Path) -> None:
    saved(LogisticRegression(max_iter=1000).fit(X, y), tmp_path, "own:model.skops")
    assert load_model("own:model.skops", tmp_path).kind == "LogisticRegression"
    (tmp_path / "own:model").write_text("x")
    with pytest.raises(AuditError, match="own:model is no kind of model"):
        load_model("own:model", tmp_path)


# --- ONNX


def exported(model: Any, **options: Any) -> bytes:
    pytest.importorskip("onnxruntime")
    skl2onnx = pytest.importorskip("skl2onnx")
    options = options or {"X": X[:1].astype(np.float32)}
    return bytes(skl2onnx.to_onnx(model, **options).SerializeToString())


def typed(**columns: tuple[str, int | None]) -> Any:
    types = pytest.importorskip("skl2onnx.common.data_types")
    return [(name, getattr(types, f"{kind}TensorType")([None, width])) for name, (kind, width) in columns.items()]


@pytest.mark.parametrize("labels", [y, WORDS], ids=["numbers", "words"])
@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), LogisticRegression()),
        DecisionTreeClassifier(max_depth=4),
        RandomForestClassifier(5, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_onnx_models_predict_as_their_origin(model: Any, labels: Any, tmp_path: Path) -> None:
    model.fit(X, labels)
    (tmp_path / "m.onnx").write_bytes(exported(model))
    loaded = load_model("m.onnx", tmp_path)
    assert (loaded.kind, loaded.name) == ("ONNX model", "m.onnx")
    assert loaded.sha256 == hashlib.sha256((tmp_path / "m.onnx").read_bytes()).hexdigest()
    for one in (loaded.model, pickle.loads(pickle.dumps(loaded.model))):
        for table in (X, PEOPLE[["a", "b", "c", "d"]]):
            assert np.mean(one.predict(table) == model.predict(X)) > 0.97
        np.testing.assert_allclose(one.predict_proba(X[:, :]).sum(axis=1), 1, atol=1e-5)
        assert np.mean(np.abs(one.predict_proba(X) - model.predict_proba(X)) < 1e-3) > 0.97
        np.testing.assert_array_equal(one.classes_, model.classes_)
        assert one.n_features_in_ == 4
    assert blackbox(loaded.model).classes.tolist() == model.classes_.tolist()


def test_onnx_without_names_of_labels_learns_them_from_data() -> None:
    model = LogisticRegression(max_iter=1000).fit(X, WORDS)
    one = OnnxModel(exported(model, X=X[:1].astype(np.float32), options={"zipmap": False}))
    assert not hasattr(one, "classes_")
    assert not hasattr(one, "predict_proba")
    assert blackbox(one, X).classes.tolist() == ["maybe", "no", "yes"]


def test_onnx_in_other_types_and_of_unknown_width() -> None:
    model = DecisionTreeClassifier(max_depth=3).fit(np.round(X), y)
    for kind in ("Float", "Int64"):
        one = OnnxModel(exported(model, initial_types=typed(people=(kind, None))))
        assert np.mean(one.predict(np.round(X)) == model.predict(np.round(X))) > 0.97
        assert not hasattr(one, "n_features_in_")
        assert not hasattr(one, "classes_")
        assert blackbox(one, np.round(X)).n_features == 4
    linear = LogisticRegression(max_iter=1000).fit(X, y)
    exact = OnnxModel(exported(linear, initial_types=typed(people=("Double", 4)), options={"zipmap": False}))
    np.testing.assert_array_equal(exact.predict(X), linear.predict(X))
    assert exact.predict(X[:1] * 1e300).shape == (1,)
    assert OnnxModel(exported(linear)).predict(X[:1] * 1e300).shape == (1,)  # infinite in float32, no warning


def test_onnx_with_columns_by_name() -> None:
    numbers = PEOPLE[["a", "b", "c", "d"]]
    scaled = ColumnTransformer([("all", StandardScaler(), ["a", "b", "c", "d"])])
    model = make_pipeline(scaled, LogisticRegression()).fit(numbers, y)
    one = OnnxModel(exported(model, initial_types=typed(**dict.fromkeys("abcd", ("Float", 1)))), "m.onnx")
    assert np.mean(one.predict(PEOPLE[["d", "job", "c", "b", "a"]]) == model.predict(numbers)) > 0.97
    assert one.classes_.tolist() == [0, 1, 2]
    assert one.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert np.mean(blackbox(one).predict(X) == model.predict(numbers)) > 0.97
    with pytest.raises(ValueError, match=r"m\.onnx takes columns by name: pass a DataFrame with a, b, c, d"):
        one.predict(X)
    with pytest.raises(ValueError, match=r"The table has no columns c, d, which m\.onnx asks for"):
        one.predict(numbers[["a", "b"]])


def test_onnx_models_that_cannot_be_searched(tmp_path: Path) -> None:
    coded = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(PEOPLE[["job"]], y)
    scaler = StandardScaler().fit(X)
    pairs = make_pipeline(ColumnTransformer([("s", StandardScaler(), [0, 1, 2, 3])]), LogisticRegression()).fit(X, y)
    types = pytest.importorskip("skl2onnx.common.data_types")
    for model, options, message in (
        (coded, {"initial_types": typed(job=("String", 1))}, "'job' of .*m.onnx is tensor.string.; only numeric ONNX"),
        (scaler, {}, "has no output with labels: variable is tensor.float."),
        (pairs, {"initial_types": typed(one=("Float", 2), two=("Float", 2))}, r"'one' of .* has the shape \[None, 2\]"),
        (scaler, {"initial_types": [("x", types.FloatTensorType([1, 4]))]}, r"has the shape \[1, 4\]"),
    ):
        (tmp_path / "m.onnx").write_bytes(exported(model, **options))
        with pytest.raises(AuditError, match=message):
            load_model("m.onnx", tmp_path)
    one = OnnxModel(exported(LogisticRegression(max_iter=1000).fit(X, y)), "m.onnx")
    with pytest.raises(AuditError, match=r"m\.onnx failed on a table of shape \(150, 2\): InvalidArgument"):
        one.predict(X[:, :2])


def test_cut_onnx_files_raise_nothing_else(tmp_path: Path) -> None:
    whole = exported(LogisticRegression(max_iter=1000).fit(X, y))
    refused = 0
    for cut in np.linspace(0, len(whole) - 1, 40).astype(int):
        (tmp_path / "m.onnx").write_bytes(whole[:cut])
        try:
            load_model("m.onnx", tmp_path)
        except AuditError as error:
            assert "m.onnx" in str(error)  # noqa: PT017 - cut between two fields it may still be a model
            refused += 1
    assert refused > 35


# --- without the packages


@pytest.mark.parametrize(("package", "way"), [("skops", "pip install skops"), ("onnxruntime", r"evenhand\[onnx\]")])
def test_without_the_package(package: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "m.skops" if package == "skops" else "m.onnx"
    (tmp_path / name).write_bytes(WHOLE)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(AuditError, match=f"{name}.*has to be installed: pip install .*{way.split()[-1]}"):
        load_model(name, tmp_path)


def test_the_module_imports_neither_of_them() -> None:
    code = "import sys, evenhand.auditing.model_files as m; print(sorted({'skops', 'onnxruntime'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
