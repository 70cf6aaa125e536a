"""Models in skops files: only listed types are read, and positions are checked before compiled code follows them."""

from __future__ import annotations

import io
import json
import lzma
import struct
import tokenize
import zipfile
import zlib
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.neighbors import BallTree, KDTree
from sklearn.neighbors._base import NeighborsBase
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

from evenhand.auditing.errors import AuditError, short
from evenhand.auditing.model_files.registry import model_file

MOST_SCHEMA, MOST_UNPACKED = 2**28, 2**31  # bytes; a boosted model of 3000 trees has a schema of 90 MB

# What a file may hold besides what skops trusts by itself, which are the estimators of scikit-learn and plain values.
# Nothing here calls anything that a file could choose: to create it and to set its attributes runs no other code.
TRUSTED = frozenset(
    {
        "evenhand.models.lvq.GLVQ",  # plain estimators: arrays in attributes
        "evenhand.models.lvq.GMLVQ",
        # Arrays of positions, which compiled code follows without a check: `_check_parts` checks them.
        "sklearn.tree._tree.Tree",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        # Plain Python classes with attributes, inside of imputers, searches, calibrated, voting and neural models.
        "numpy.dtype",
        "builtins.object",  # as in make_column_selector(dtype_include=object)
        "sklearn.compose._column_transformer.make_column_selector",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.utils._bunch.Bunch",
        # Functions from numbers to numbers: the scores of feature selectors.
        "sklearn.feature_selection._univariate_selection.chi2",
        "sklearn.feature_selection._univariate_selection.f_classif",
        "sklearn.feature_selection._mutual_info.mutual_info_classif",
    }
)

# The search trees of nearest neighbours crash on a forged state even before it could be checked. They are never
# read: `_without_search_trees` takes them out of the file, and `_check_parts` builds them again from the data.
SEARCH_TREES = {
    ("sklearn.neighbors._kd_tree", "KDTree"): "kd_tree",
    ("sklearn.neighbors._ball_tree", "BallTree"): "ball_tree",
}

# What the content of a file can raise; none of it says that evenhand is wrong. RuntimeError: encrypted, or nested too
# deeply; NotImplementedError, which is one, too: packed in an unknown way.
_CONTAINER = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, RuntimeError)
# A schema with fields that are missing, of another kind or too large; a class that this version does not have.
_FIELDS = (LookupError, TypeError, ValueError, AttributeError, ImportError, ArithmeticError, MemoryError)
# The header of an array, which numpy reads as Python literals; classes that assert what they are given.
_ARRAYS = (SyntaxError, tokenize.TokenError, AssertionError)
DAMAGED = (*_CONTAINER, *_FIELDS, *_ARRAYS)


@model_file(".skops")
def open_skops(data: bytes, path: Path) -> Any:
    """Read a model; raise AuditError if the file is damaged, or holds what is not trusted."""
    try:
        from skops import io as skops_io  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise AuditError(f"To open {path.name}, skops has to be installed: pip install skops.") from None
    try:
        _check_container(data, path)
        data = _without_search_trees(data)
        refused = [name for name in skops_io.get_untrusted_types(data=data) if name not in TRUSTED]
        if refused:
            raise AuditError(
                f"The file {path} holds types that are not trusted: {', '.join(refused)}. Save a model that is made of "
                "scikit-learn's own parts, or pass module:attribute."
            )
        model = skops_io.loads(data, trusted=sorted(TRUSTED))
        _check_parts(model)
    except AuditError:
        raise
    except DAMAGED as error:
        raise AuditError(f"{path} is damaged, or no skops file: {short(error)}. Save the model again.") from error
    return model


def _check_container(data: bytes, path: Path) -> None:
    """Say what the file is instead, and how large it would be, before anything is unpacked."""
    if not data.startswith(b"PK"):
        what = "a pickle under another name" if data.startswith(b"\x80") else "no zip archive"
        raise AuditError(
            f"{path} is {what}, not a skops file. Save the model with skops.io.dump(model, 'model.skops')."
        )
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    if "schema.json" not in sizes:
        raise AuditError(f"{path} is a zip archive without schema.json, not a skops file. Save the model again.")
    if sizes["schema.json"] > MOST_SCHEMA or sum(sizes.values()) > MOST_UNPACKED:
        raise AuditError(
            f"{path} unpacks to {sum(sizes.values()) / 2**20:.0f} MB, its schema to {sizes['schema.json'] / 2**20:.0f} "
            f"MB; at most {MOST_UNPACKED >> 20} and {MOST_SCHEMA >> 20} are opened. Pass module:attribute."
        )


def _without_search_trees(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        raw = archive.read("schema.json")
        if b"KDTree" not in raw and b"BallTree" not in raw:  # written in another way, they are refused as untrusted
            return data
        schema = json.loads(raw)
        todo = [schema]
        while todo:
            part = todo.pop()
            for key, value in part.items() if isinstance(part, dict) else enumerate(part):
                if isinstance(value, dict) and (value.get("__module__"), value.get("__class__")) in SEARCH_TREES:
                    part[key] = {
                        "__class__": "str",
                        "__module__": "builtins",
                        "__loader__": "JsonNode",
                        "content": "null",
                    }
                elif isinstance(value, dict | list):
                    todo.append(value)
        changed = io.BytesIO()
        with zipfile.ZipFile(changed, "w") as copy:
            for name in set(archive.namelist()) - {"schema.json"}:
                copy.writestr(name, archive.read(name))
            copy.writestr("schema.json", json.dumps(schema))
    return changed.getvalue()


def _check_parts(model: Any) -> None:
    """Refuse positions that point out of their arrays: compiled code would follow them into foreign memory.

    Only where scikit-learn itself keeps a tree may there be one, because only there the width of a table is checked.
    """
    todo: list[tuple[Any, Any]] = [(model, None)]
    seen, boosted = set(), []
    while todo:
        part, width = todo.pop()
        if isinstance(part, type) or (id(part), width) in seen:
            continue
        seen.add((id(part), width))
        if isinstance(part, dict | list | tuple | set):
            todo += [(inner, width) for inner in (part.values() if isinstance(part, dict) else part)]
        elif isinstance(part, np.ndarray):
            todo += [(inner, width) for inner in (np.asarray(part).ravel() if part.dtype == object else ())]
        elif isinstance(part, Tree | TreePredictor):
            raise ValueError(f"{type(part).__name__} where none belongs")
        else:
            inside = dict(getattr(part, "__dict__", {}))
            if any(callable(getattr(type(part), name, None)) for name in inside):
                raise ValueError(f"an attribute of {type(part).__name__} hides a method")
            columns = inside.get("n_features_in_")
            if isinstance(part, BaseDecisionTree) and "tree_" in inside:
                _check_tree(inside.pop("tree_"), columns, width)
            elif isinstance(part, BaseHistGradientBoosting):
                for predictor in chain.from_iterable(inside.pop("_predictors", ())):
                    _check_predictor(predictor, columns, inside["_preprocessor"])
            elif isinstance(part, NeighborsBase) and inside.get("_fit_method") in SEARCH_TREES.values():
                tree = KDTree if part._fit_method == "kd_tree" else BallTree
                options = part.effective_metric_params_
                part._tree = tree(part._fit_X, part.leaf_size, metric=part.effective_metric_, **options)
            elif isinstance(part, BaseGradientBoosting) and "estimators_" in inside:
                boosted.append(part)
            # These check a table once and hand it to all of their trees, which have to be as wide as they are.
            same = isinstance(part, BaseForest | BaseGradientBoosting | IsolationForest) and "estimators_" in inside
            if same and columns is None:
                raise ValueError(f"{type(part).__name__} does not say how many columns it has")
            todo += [(inner, columns if same else None) for inner in inside.values()]
    for part in boosted:  # adds the values of so many trees to so many columns
        start = part._raw_predict_init(np.zeros((1, part.n_features_in_), dtype=np.float32))
        if start.shape != (1, np.shape(part.estimators_)[1]):
            raise ValueError("the trees of a boosted model do not fit to its labels")


def _check_tree(tree: Any, columns: Any, width: Any) -> None:
    if type(tree) is not Tree or tree.n_features != columns or width not in (None, columns) or tree.node_count < 1:
        raise ValueError("a tree does not fit to its model")
    nodes = tree.__getstate__()["nodes"]
    inner = np.flatnonzero(nodes["left_child"] != -1)
    _check_nodes(inner, nodes[inner], ("left_child", "right_child", "feature"), len(nodes), tree.n_features)


def _check_predictor(predictor: Any, columns: Any, preprocessor: Any) -> None:
    if preprocessor is not None:
        raise ValueError("boosting with categorical features cannot be checked; pass module:attribute")
    if type(predictor) is not TreePredictor or not isinstance(columns, int | np.integer):
        raise ValueError("a tree does not fit to its model")
    inner = np.flatnonzero(predictor.nodes["is_leaf"] == 0)
    nodes = predictor.nodes[inner]
    if nodes["is_categorical"].any():
        raise ValueError("categorical features without an encoder")
    _check_nodes(inner, nodes, ("left", "right", "feature_idx"), len(predictor.nodes), int(columns))


def _check_nodes(inner: Any, nodes: Any, fields: tuple[str, str, str], count: int, width: int) -> None:
    """Children come after their parents, so that there is no circle, and all is inside of the arrays."""
    left, right, feature = (nodes[field].astype(np.int64) for field in fields)
    children = np.concatenate([left - inner, right - inner])
    if count < 1 or (children <= 0).any() or (np.maximum(left, right) >= count).any():
        raise ValueError("a tree has branches that lead nowhere")
    if ((feature < 0) | (feature >= width)).any():
        raise ValueError("a tree asks for columns that the model does not have")
