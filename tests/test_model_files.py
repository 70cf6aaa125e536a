"""Loading fitted models: every way in, from skops, pickles, modules and ONNX, and each model comes back as it was."""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
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
from evenhand.auditing.model_files import OnnxModel, load_model
from evenhand.models import GLVQ, GMLVQ, blackbox, view
from opened_here import opened_here  # noqa: F401
from saved_models import PEOPLE, WHOLE, WORDS, X, saved, y
from threads import one_thread  # noqa: F401

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


# --- pickles


@pytest.mark.parametrize("suffix", [".pkl", ".joblib"])
def test_a_trusted_pickle_comes_with_a_warning(suffix: str, tmp_path: Path) -> None:
    model = RandomForestClassifier(3).fit(X, WORDS)
    joblib.dump(model, tmp_path / f"m{suffix}", compress=3 if suffix == ".joblib" else 0)
    loaded = load_model(f"m{suffix}", tmp_path, trust_pickle=True)
    np.testing.assert_array_equal(loaded.model.predict(X), model.predict(X))
    assert loaded.kind == "RandomForestClassifier"
    assert loaded.sha256 == hashlib.sha256((tmp_path / f"m{suffix}").read_bytes()).hexdigest()
    assert loaded.warning == f"m{suffix} is a pickle, which can run any code: it was opened because you trust it."


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


@pytest.mark.slow
def test_the_module_imports_neither_of_them() -> None:
    code = "import sys, evenhand.auditing.model_files as m; print(sorted({'skops', 'onnxruntime'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
