"""Files of models that would end the process: they are opened in another one first, and end in a sentence."""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from audit_folders import InFolder, Place
from evenhand.auditing.errors import AuditError
from evenhand.auditing.model_files import load_model, tried
from evenhand.auditing.model_files.registry import FORMATS, model_file
from saved_models import WORDS, X
from threads import one_thread  # noqa: F401

LOGISTIC = LogisticRegression(max_iter=1000).fit(X, WORDS)


class Called:
    """Calls something when it is unpickled."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> Any:
        return self.function, self.arguments


ENDS: dict[str, tuple[Called, str]] = {
    "foreign memory": (Called(ctypes.string_at, 0), "was ended by SIGSEGV"),
    "abort": (Called(os.abort), "was ended by SIGABRT"),
    "killed": (Called(signal.raise_signal, signal.SIGKILL), "was ended by SIGKILL"),
    "as if all were well": (Called(os._exit, 0), "was ended by exit code 0"),
    "all memory": (Called(bytearray, 2**46), "asked for more memory than there is"),
}


@pytest.mark.skipif(sys.platform == "win32", reason="other signals")
@pytest.mark.parametrize(
    "name", ["foreign memory", *(pytest.param(name, marks=pytest.mark.slow) for name in list(ENDS)[1:])]
)
def test_what_ends_the_process_is_a_sentence(name: str, tmp_path: Path) -> None:
    thing, phrase = ENDS[name]
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(thing))
    with pytest.raises(AuditError, match=rf"m\.pkl cannot be opened: a process .* {phrase}\. .* Save the model again"):
        load_model("m.pkl", tmp_path, trust_pickle=True)
    assert [path.name for path in tmp_path.iterdir()] == ["m.pkl"]


@pytest.mark.slow
@pytest.mark.parametrize("ending", [Called(time.sleep, 60), Called(eval, "sum(iter(int, 1))")], ids=["idle", "busy"])
def test_what_does_not_end_is_a_sentence(ending: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tried, "SECONDS", 3.0)
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(ending))
    before = set(psutil.Process().children())
    with pytest.raises(AuditError, match=r"m\.pkl cannot be opened: a process .* did not come to an end in 3 seconds"):
        load_model("m.pkl", tmp_path, trust_pickle=True)
    assert set(psutil.Process().children()) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("thing", "phrase"),
    [
        (Called(eval, "1 / 0"), "m.pkl cannot be opened: ZeroDivisionError: division by zero. Save the model again."),
        (Called(sys.exit, 3), "m.pkl cannot be opened: SystemExit: 3. Save the model again."),
        ({"a": 1}, "holds dict, which has no predict method"),
        (LogisticRegression(), "is not fitted"),
    ],
    ids=["raises", "leaves", "no model", "not fitted"],
)
def test_what_it_raises_is_said_as_before(thing: Any, phrase: str, tmp_path: Path) -> None:
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(thing))
    with pytest.raises(AuditError) as caught:
        load_model("m.pkl", tmp_path, trust_pickle=True)
    assert phrase in str(caught.value)


OWN = """
import os
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

class Rule(ClassifierMixin, BaseEstimator):
    def __init__(self):
        self.classes_, self.n_features_in_ = np.array([0, 1]), 4
    def fit(self, X, y):
        return self
    def __sklearn_is_fitted__(self):
        return True
    def predict(self, X):
        print("asked")
        return (np.asarray(X)[:, 0] > 5).astype(int)

class Deadly(Rule):
    def predict(self, X):
        os.kill(os.getpid(), 9)
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of a folder that only this process knows of."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "own_tried_rules.py").write_text(OWN)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield __import__("own_tried_rules")
    del sys.modules["own_tried_rules"]


def test_classes_of_the_users_own_are_found_and_nothing_is_said_or_written(
    own: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(own.Rule()))
    assert load_model("m.pkl", tmp_path, trust_pickle=True).kind == "Rule"
    assert capfd.readouterr() == ("", "")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["m.pkl", "modules", "own_tried_rules.py"]


@pytest.mark.slow
def test_first_predictions_are_tried_too(own: Any, tmp_path: Path) -> None:
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(own.Deadly()))
    with pytest.raises(AuditError, match="was ended by SIGKILL"):
        load_model("m.pkl", tmp_path, trust_pickle=True)
    levels = OneHotEncoder().fit(np.array([["car"], ["house"]]))
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(make_pipeline(levels, own.Deadly())))  # refuses made-up people
    with pytest.raises(AuditError, match="was ended by SIGKILL"):
        load_model("m.pkl", tmp_path, trust_pickle=True)


@pytest.mark.slow
def test_models_that_hold_themselves_are_opened(own: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tried, "SECONDS", 20.0)
    model = make_pipeline(OneHotEncoder().fit(np.array([["car"], ["house"]])), own.Rule())  # refuses made-up people
    model.circle = [model]
    model.circle.append(model.circle)
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(model))
    assert load_model("m.pkl", tmp_path, trust_pickle=True).kind == "Pipeline ending in Rule"


def test_a_file_is_opened_once_and_not_here(tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    note = f"open({str(noted)!r}, 'a').write(str(__import__('os').getpid()) + ' ')"
    (tmp_path / "m.pkl").write_bytes(pickle.dumps([Called(eval, note)]))
    with pytest.raises(AuditError, match="holds list, which has no predict"):
        load_model("m.pkl", tmp_path, trust_pickle=True)
    (one,) = noted.read_text().split()
    assert one != str(os.getpid())


def test_warnings_and_predictions_come_with_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sklearn.base.__version__", "1.0.1")
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(LOGISTIC))
    monkeypatch.undo()
    loaded = load_model("m.pkl", tmp_path, trust_pickle=True)
    assert loaded.warning is not None
    assert loaded.warning.count("saved with scikit-learn 1.0.1 and opened with") == 1
    np.testing.assert_array_equal(loaded.model.decision_function(X), LOGISTIC.decision_function(X))


class Here(ClassifierMixin, BaseEstimator):
    """Of a module that was made by hand: nobody else can import it."""

    classes_ = np.array([0, 1])

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))


@pytest.mark.slow
def test_classes_that_only_this_process_knows_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = type(sys)("made_by_hand")
    module.Here = Here  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "made_by_hand", module)
    monkeypatch.setattr(Here, "__module__", "made_by_hand")
    monkeypatch.setattr(Here, "__sklearn_is_fitted__", lambda self: True, raising=False)
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(Here()))
    assert load_model("m.pkl", tmp_path, trust_pickle=True).kind == "Here"


@pytest.mark.slow
def test_a_process_that_cannot_begin_says_nothing_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(LOGISTIC))
    monkeypatch.setattr(tried, "CODE", "import no_such_module_at_all")
    assert load_model("m.pkl", tmp_path, trust_pickle=True).kind == "LogisticRegression"
    monkeypatch.setattr(tried, "get_executable", lambda: str(tmp_path / "python"))
    with pytest.raises(AuditError, match=r"m\.pkl is opened in another process, and none can be started: No"):
        load_model("m.pkl", tmp_path, trust_pickle=True)


@pytest.mark.slow
def test_any_kind_of_file_can_be_tried(tmp_path: Path) -> None:
    (tmp_path / "m.deadly").write_bytes(b"x")
    try:

        @model_file(".deadly", tried=True)
        def open_deadly(data: bytes, path: Path) -> Any:
            os.abort()

        with pytest.raises(AuditError, match=r"m\.deadly cannot be opened: .* was ended by SIGABRT"):
            load_model("m.deadly", tmp_path)
    finally:
        FORMATS.pop(".deadly", None)


@pytest.mark.slow
def test_a_graph_without_end_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper

    def value(name: str, kind: int, shape: list[Any] | None) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["still"]),
            helper.make_node("Identity", ["label"], ["same"]),
        ],
        "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("label", TensorProto.INT64, None)],
        [value("still", TensorProto.BOOL, []), value("same", TensorProto.INT64, None)],
    )
    nodes = [
        helper.make_node("ArgMax", ["X"], ["first"], axis=1, keepdims=0),
        helper.make_node("Loop", ["times", "yes", "first"], ["label"], body=body),
    ]
    constants = [
        helper.make_tensor("times", TensorProto.INT64, [], [2**62]),
        helper.make_tensor("yes", TensorProto.BOOL, [], [True]),
    ]
    graph = helper.make_graph(
        nodes,
        "endless",
        [value("X", TensorProto.FLOAT, [None, 3])],
        [value("label", TensorProto.INT64, [None])],
        constants,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(made, tmp_path / "m.onnx")
    monkeypatch.setattr(tried, "SECONDS", 6.0)
    with pytest.raises(AuditError, match=r"m\.onnx cannot be opened: .* did not come to an end in 6 seconds"):
        load_model("m.onnx", tmp_path)


ASKING = """
import sys
from pathlib import Path
from evenhand.auditing.model_files import load_model
load_model("m.pkl", Path(sys.argv[1]), trust_pickle=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it ends after a minute at the latest")
@pytest.mark.parametrize("ending", ["__import__('time').sleep(100)", "sum(iter(int, 1))"], ids=["idle", "busy"])
def test_it_ends_with_the_process_that_asks(ending: str, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    ending = f"__import__('pathlib').Path({str(begun)!r}).touch() or {ending}"
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(Called(eval, ending)))
    asking = subprocess.Popen([sys.executable, "-c", ASKING, str(tmp_path)])
    try:
        until = time.monotonic() + 60
        while not begun.exists() and time.monotonic() < until:
            time.sleep(0.1)
        (child,) = psutil.Process(asking.pid).children()
        assert child.is_running()
    finally:
        asking.kill()
        asking.wait()
    assert not psutil.wait_procs([child], timeout=10)[1]


@pytest.mark.slow
def test_a_file_that_is_not_read_does_not_keep_who_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tried, "CODE", "import os; os._exit(1)")
    (tmp_path / "m.pkl").write_bytes(pickle.dumps([LOGISTIC, bytes(2**22)]))
    done = threading.Event()

    def load() -> None:
        with pytest.raises(AuditError, match="holds list, which has no predict"):
            load_model("m.pkl", tmp_path, trust_pickle=True)
        done.set()

    threading.Thread(target=load, daemon=True).start()
    assert done.wait(30)


@pytest.mark.slow
class TestAudits(InFolder):
    @pytest.mark.skipif(sys.platform == "win32", reason="other signals")
    @pytest.mark.parametrize("command", ["audit", "init"])
    def test_end_in_a_sentence_and_write_nothing(self, place: Place, command: str) -> None:
        (place.folder / "m.pkl").write_bytes(pickle.dumps(Called(ctypes.string_at, 0)))
        words = ("init", "m.pkl", "people.csv", "--out", "new.toml", "--trust-pickle")
        place.write(model="m.pkl")
        place.refused("m.pkl cannot be opened", words=words if command == "init" else None, more=("--trust-pickle",))
