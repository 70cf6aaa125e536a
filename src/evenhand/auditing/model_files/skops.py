"""Models in skops files: only listed types are read, and positions are checked before compiled code follows them."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

from evenhand.auditing.errors import AuditError, short
from evenhand.auditing.model_files.parts import check_parts
from evenhand.auditing.model_files.registry import model_file

MOST_SCHEMA, MOST_UNPACKED = 2**28, 2**31  # bytes; a boosted model of 3000 trees has a schema of 90 MB

# What a file may hold besides what skops trusts by itself, which are the estimators of scikit-learn and plain values.
# Nothing here calls anything that a file could choose: to create it and to set its attributes runs no other code.
TRUSTED = frozenset(
    {
        "evenhand.models.lvq.GLVQ",  # plain estimators: arrays in attributes
        "evenhand.models.lvq.GMLVQ",
        # Arrays of positions, which compiled code follows without a check: `check_parts` checks them.
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
# read: `_without_search_trees` takes them out of the file, and `check_parts` builds them again from the data.
SEARCH_TREES = {
    ("sklearn.neighbors._kd_tree", "KDTree"): "kd_tree",
    ("sklearn.neighbors._ball_tree", "BallTree"): "ball_tree",
}


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
        check_parts(model, forged=True)
    except AuditError:
        raise
    except Exception as error:  # parts of a file that do not fit make their readers raise whatever they stumble over
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
