"""Models whose parts do not fit each other: refused with a sentence, and never followed by compiled code."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import FeatureAgglomeration
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid, RadiusNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC, LinearSVC, NuSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier
from skops import io as skops_io

from audit_folders import NUMBERS, InFolder, Place, encoded, table
from evenhand.auditing import audit
from evenhand.auditing.errors import AuditError
from evenhand.auditing.model_files import load_model
from evenhand.auditing.model_files.parts import check_parts
from evenhand.models import GLVQ, GMLVQ
from opened_here import opened_here  # noqa: F401
from saved_models import WORDS, X
from threads import one_thread  # noqa: F401

Hurt = tuple[str, Any]


def with_part(model: Any, name: str, value: Any) -> Any:
    """A copy of a model with another attribute, or without it."""
    hurt = copy.deepcopy(model)
    if value is Ellipsis:
        delattr(hurt, name)
    else:
        setattr(hurt, name, value)
    return hurt


def hurts(value: Any) -> Iterator[Hurt]:
    """Arrays cut, doubled and spoiled, numbers too large or below zero, nothing at all."""
    yield "nothing", None
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf" and value.size:
        for axis in range(value.ndim):
            for count in sorted({0, 1, value.shape[axis] // 2} - {value.shape[axis]}):
                yield f"{count} of axis {axis}", value.take(range(count), axis=axis)
            yield f"axis {axis} twice", np.concatenate([value, value], axis=axis)
        for other in (-1, 2**30) if value.dtype.kind in "iu" and value.dtype.itemsize > 2 else (100,):
            yield f"first is {other}", np.where(np.arange(value.size).reshape(value.shape) == 0, other, value)
        yield "flat", value.ravel()
    elif isinstance(value, int | np.integer) and not isinstance(value, bool):
        yield from ((str(other), other) for other in (-1, 0, value + 1, 2**30))
    elif isinstance(value, list | tuple):
        yield "empty", type(value)()


SVMS = {
    "svc": SVC(),
    "linear": SVC(kernel="linear"),
    "nu": NuSVC(),
    "one class": OneClassSVM(),
    "sparse": SVC(),
}
TREES = {
    "tree": DecisionTreeClassifier(max_depth=3),
    "forest": RandomForestClassifier(2, max_depth=3),
    "boosting": GradientBoostingClassifier(n_estimators=2),
    "hist": HistGradientBoostingClassifier(max_iter=2),
    "isolation": IsolationForest(n_estimators=2, max_features=0.5),
}
NEIGHBOURS = {
    "1nn": KNeighborsClassifier(1),
    "ball": KNeighborsClassifier(3, algorithm="ball_tree"),
    "brute": KNeighborsClassifier(3, algorithm="brute"),
    "radius": RadiusNeighborsClassifier(2.0, algorithm="brute"),
}
OTHERS = {
    "logistic": LogisticRegression(max_iter=1000),
    "svc of lines": LinearSVC(),
    "centroid": NearestCentroid(),
    "glvq": GLVQ(max_iter=20),
    "gmlvq": GMLVQ(max_iter=20),
    "bayes": GaussianNB(),
}
FAMILIES = SVMS | TREES | NEIGHBOURS | OTHERS


@cache
def fitted(name: str) -> Any:
    return copy.deepcopy(FAMILIES[name]).fit(sp.csr_array(X) if name == "sparse" else X, WORDS)


def refuses(model: Any, folder: Path) -> None:
    skops_io.dump(model, folder / "m.skops")
    (folder / "m.pkl").write_bytes(pickle.dumps(model))
    for name in ("m.skops", "m.pkl"):
        with pytest.raises(AuditError, match=f"{name} (is damaged|cannot be opened|holds types that are not trusted)"):
            load_model(name, folder, trust_pickle=True)


# --- what compiled code reads: each of these has ended the process.


@pytest.mark.parametrize("name", SVMS)
@pytest.mark.parametrize("attribute", ["_dual_coef_", "support_", "support_vectors_", "_n_support", "_intercept_"])
def test_support_vectors_that_do_not_fit_are_refused(name: str, attribute: str, tmp_path: Path) -> None:
    model = fitted(name)
    part = getattr(model, attribute)
    for axis in range(part.ndim) if not sp.issparse(part) else ():
        refuses(with_part(model, attribute, part.take([], axis=axis)), tmp_path)
    if sp.issparse(part):
        refuses(with_part(model, attribute, part[:, :0]), tmp_path)
    else:
        refuses(with_part(model, attribute, np.concatenate([part, part])), tmp_path)
    refuses(with_part(model, "n_features_in_", 9), tmp_path)


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_neighbours_that_do_not_fit_are_refused(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    for attribute, value in (
        ("_y", model._y + 2**30),
        ("_y", model._y - 1),
        ("_y", model._y[:9]),
        ("_y", model._y.astype(float)),
        ("classes_", model.classes_[:1]),
        ("_fit_X", model._fit_X[:, :2]),
        ("_fit_X", model._fit_X[:9]),
        ("n_features_in_", 9),
    ):
        refuses(with_part(model, attribute, value), tmp_path)


def test_positions_in_sparse_arrays_encoders_and_groups_are_refused(tmp_path: Path) -> None:
    linear = copy.deepcopy(fitted("logistic")).sparsify()
    linear.coef_.indices[0] = 10**8
    words = CountVectorizer().fit(["a word", "and others"])
    agglomeration = FeatureAgglomeration(2).fit(X)
    rare = OneHotEncoder(min_frequency=60, drop="first").fit(WORDS[:, None])
    whole = OneHotEncoder(drop=["no"]).fit(WORDS[:, None])
    for part in (
        linear,
        with_part(words, "vocabulary_", {"word": 2**40}),
        with_part(agglomeration, "labels_", agglomeration.labels_ + 2**30),
        with_part(whole, "_n_features_outs", [1]),
        with_part(whole, "_drop_idx_after_grouping", np.array([7], dtype=object)),
        with_part(rare, "_default_to_infrequent_mappings", [np.array([0, 1, 2**40])]),
        with_part(whole, "categories_", [np.array(["no"])]),
    ):
        refuses(make_pipeline(part, fitted("logistic")), tmp_path)
    numbers = np.random.RandomState(0)
    numbers._bit_generator.state = {"bit_generator": "MT19937", "state": {"key": [0] * 624, "pos": 2**30}}
    refuses(with_part(fitted("logistic"), "random_state", numbers), tmp_path)


@pytest.mark.parametrize("flags", [62, 47, 0])
def test_arrays_of_types_that_do_not_count_their_objects_are_refused(flags: int) -> None:
    strange = np.dtype("O8", align=False, copy=True)
    strange.__setstate__((3, "|", None, None, None, -1, -1, flags))
    with pytest.raises(ValueError, match="a type that numpy does not have"):
        check_parts([np.empty(0, dtype=strange)], forged=False)
    for plain in (object, "f8", "<U3", "M8[s]", [("a", object), ("b", "f8", (2,))], [("a", "O", (2,))]):
        check_parts([np.zeros(2, dtype=plain)], forged=True)


@pytest.mark.parametrize("name", FAMILIES)
def test_whole_models_are_opened(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    skops_io.dump(model, tmp_path / "m.skops")
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(model))
    for file in ("m.pkl",) if name == "sparse" else ("m.skops", "m.pkl"):  # skops does not trust sparse arrays
        loaded = load_model(file, tmp_path, trust_pickle=True).model
        assert (loaded.predict(X + 0.01) == model.predict(X + 0.01)).all()


OPEN_ALL = """
import sys, warnings
from pathlib import Path
import numpy as np
from sklearn.datasets import load_iris
from evenhand.auditing.errors import AuditError
from evenhand.auditing.model_files import load, load_model
warnings.simplefilter("ignore")
load.open_elsewhere = lambda read, *file: read(*file)  # this process is the one that is tried
X = load_iris().data
opened = 0
for path in sorted(Path(sys.argv[1]).iterdir()):
    print(path.name, flush=True)
    try:
        loaded = load_model(path.name, path.parent, trust_pickle=True).model
    except AuditError:
        continue
    opened += 1
    try:
        loaded.predict(X)
    except Exception:
        pass
print("opened", opened, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_no_part_that_is_hurt_ends_the_process(name: str, tmp_path: Path) -> None:
    model, count = fitted(name), 0
    for attribute, value in vars(model).items():
        for _, other in hurts(value):
            (tmp_path / f"{count:04d}.pkl").write_bytes(pickle.dumps(with_part(model, attribute, other)))
            count += 1
    found = subprocess.run(
        [sys.executable, "-c", OPEN_ALL, str(tmp_path)], capture_output=True, text=True, timeout=300, check=False
    )
    last = (found.stdout.splitlines() or ["nothing"])[-1]
    assert found.returncode == 0, f"{last}: ended by {-found.returncode}"
    assert count > 20
    assert 0 < int(last.removeprefix("opened ")) < count


# --- what Python code reads: an audit ends in a sentence, whatever is raised.


def bank(model: Any) -> Any:
    frame = table()
    return copy.deepcopy(model).fit(frame[NUMBERS], frame["granted"])


TOLD: list[tuple[str, Any, str]] = [
    ("classes_", np.array(["no"]), "(fails with|one label only|do not fit)"),
    ("classes_", np.array(["no", "no"]), "names 'no' twice"),
    ("classes_", np.array([["no", "yes"]]), "(one output is needed|must be a list|do not fit|refuses every row|shape)"),
    ("classes_", ..., "(fails with|refuses every row)"),
    ("n_features_in_", ..., "(fails with|do not fit|does not fit|does not say)"),
    ("n_features_in_", 2**30, "(takes 1073741824 columns|do not fit|does not fit)"),
    ("n_features_in_", "three", "(whole number >= 1|do not fit|does not fit|is damaged)"),
    ("feature_names_in_", 5, "(must be a list of names|is damaged)"),
    ("feature_names_in_", np.array(["age", "age", "debt"], dtype=object), "names 'age' twice"),
    ("feature_names_in_", np.array([], dtype=object), "is empty"),
]


SILENT = ("sparse", "one class", "isolation", "bayes")  # no classifiers of numbers that have to say how many they take
ASKED = [n if n in ("glvq", "1nn") else pytest.param(n, marks=pytest.mark.slow) for n in FAMILIES if n not in SILENT]


class TestParts(InFolder):
    @pytest.mark.parametrize("name", ASKED)
    def test_of_every_family(self, place: Place, name: str) -> None:
        model = bank(FAMILIES[name])
        for attribute, value, phrase in TOLD:
            place.model(with_part(model, attribute, value))
            place.write()
            found = " ".join(place.refused().split())
            assert any(one in found for one in phrase.strip("()").split("|")), (attribute, value, found)

    @pytest.mark.parametrize(
        ("attribute", "value"),
        [("_transformer_to_input_indices", {}), ("_transformer_to_input_indices", ...), ("transformers_", [])],
    )
    def test_of_a_column_transformer(self, place: Place, attribute: str, value: Any) -> None:
        model = encoded(table())
        model.steps[0] = ("columntransformer", with_part(model.steps[0][1], attribute, value))
        place.model(model)
        place.write()
        place.refused()

    def test_of_prototypes(self, place: Place) -> None:
        model = bank(GLVQ(max_iter=20))
        for attribute, value in (("labels_", model.labels_[:1]), ("prototypes_", model.prototypes_[:, :1])):
            place.model(with_part(model, attribute, value))
            place.write()
            place.refused()


class Strange(ClassifierMixin, BaseEstimator):
    """Answers as it is told to."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self.answer = answer
        self.classes_ = np.array(["no", "yes"])

    def fit(self, X: Any, y: Any) -> Strange:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Any:
        return self.answer(X)


def raising(error: BaseException) -> Callable[[Any], Any]:
    def answer(people: Any) -> Any:
        raise error

    return answer


STRANGE = {
    "key": (raising(KeyError("income")), "fails with KeyError: 'income'"),
    "index": (raising(IndexError("4")), "fails with IndexError: 4"),
    "exit": (raising(SystemExit(0)), "fails with SystemExit: 0"),
    "memory": (raising(MemoryError()), "fails with MemoryError"),
    "silent": (raising(ValueError()), "refuses every row .*: ValueError"),
    "no labels": (lambda people: None, "array of shape .*one output is needed"),
    "one label": (lambda people: "no", "array of shape .*one output is needed"),
    "two columns": (lambda people: np.zeros((len(people), 2)), "one output is needed"),
    "too few": (lambda people: np.array(["no"] * (len(people) - 1)), "one output is needed"),
    "others": (lambda people: np.array(["maybe"] * len(people)), "predicts 'maybe', which is not among its classes_"),
    "gone": (lambda people: np.array([None] * len(people)), "predicts None, which is not among"),
    "ragged": (lambda people: [[1]] + [[1, 2]] * len(people), "refuses every row"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_a_model_answers_or_raises_is_a_sentence(name: str) -> None:
    answer, phrase = STRANGE[name]
    with pytest.raises(AuditError, match=phrase):
        audit(Strange(answer), table()[NUMBERS])


def test_models_that_print_are_audited(capsys: pytest.CaptureFixture[str]) -> None:
    def answer(people: Any) -> Any:
        print("asked")  # noqa: T201 - it is what is tested
        return np.where(np.asarray(people)[:, 0] > 2000, "yes", "no")

    found = audit(Strange(answer), table()[NUMBERS], explain=3, people=3, draws=2, jobs=1)
    assert found.content["verdict"]["exit_code"] in (0, 1, 3)
    assert "asked" in capsys.readouterr().out
