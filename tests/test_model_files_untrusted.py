"""Loading fitted models: nothing in a file runs which nobody trusted, and what could is refused by name."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from skops import io as skops_io

from evenhand.auditing.errors import AuditError
from evenhand.auditing.model_files import TRUSTED, load_model
from opened_here import opened_here  # noqa: F401
from saved_models import X, forged, node, packed, plain, saved, several, unpacked, y

# --- skops: what could run code is refused by name.


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


# --- pickles run only if they are trusted.


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


class Leaves:
    def __reduce__(self) -> Any:
        return sys.exit, (3,)


def test_a_trusted_pickle_that_fails(tmp_path: Path) -> None:
    for content in (b"no pickle", pickle.dumps(Leaves()), b"cno_such_module\nThing\n.", b"\x80\x05."):
        (tmp_path / "m.pkl").write_bytes(content)
        with pytest.raises(AuditError, match=r"m\.pkl cannot be opened: \w+"):
            load_model("m.pkl", tmp_path, trust_pickle=True)
