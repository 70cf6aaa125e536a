"""Parts of fitted models that compiled code follows without a look: shapes and positions, checked on opening a file.

scikit-learn checks the tables that people come in, and relies on what it has fitted itself. What was read from a file
may be anything, and compiled code would follow a wrong position into foreign memory, or go in circles.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import FeatureAgglomeration
from sklearn.ensemble import IsolationForest
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.neighbors import BallTree, KDTree
from sklearn.neighbors._base import NeighborsBase
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm._base import BaseLibSVM
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

SEARCH_TREES = {"kd_tree": KDTree, "ball_tree": BallTree}
NO_PARTS = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, str, bytes, int, float, complex)
PASSES = 624  # numbers of a Mersenne twister until it makes new ones


def check_parts(model: Any, *, forged: bool) -> None:
    """Raise ValueError for a part whose shapes or positions do not fit.

    Parameters
    ----------
    model : object
        As it was read; search trees of nearest neighbours are built again from their data.
    forged : bool
        Whether the file may have been made by somebody who means harm. Then trees belong where scikit-learn itself
        keeps them, because only there the width of a table is checked, and no attribute may hide a method.
    """
    todo: list[tuple[Any, Any]] = [(model, None)]
    seen: set[tuple[int, Any]] = set()
    kept, boosted = [], []
    while todo:
        part, width = todo.pop()
        if isinstance(part, NO_PARTS) or (id(part), width) in seen:
            continue
        seen.add((id(part), width))
        kept.append(part)  # while it is, nothing else has its id
        if isinstance(part, dict | list | tuple | set):
            todo += [(inner, width) for inner in (part.values() if isinstance(part, dict) else part)]
        elif isinstance(part, np.ndarray):
            _check_type(part.dtype)
            todo += [(inner, width) for inner in (np.asarray(part).ravel() if part.dtype == object else ())]
        elif sparse.issparse(part):
            _check_sparse(part)
        elif isinstance(part, np.random.RandomState | np.random.Generator | np.random.BitGenerator):
            _check_random(part)
        elif forged and isinstance(part, Tree | TreePredictor):
            raise ValueError(f"{type(part).__name__} where none belongs")
        else:
            inside = dict(getattr(part, "__dict__", {}))
            if forged and any(callable(getattr(type(part), name, None)) for name in inside):
                raise ValueError(f"an attribute of {type(part).__name__} hides a method")
            todo += _look_inside(part, inside, width)
            if isinstance(part, BaseGradientBoosting) and "estimators_" in inside:
                boosted.append(part)
    for part in boosted:  # adds the values of so many trees to so many columns
        start = part._raw_predict_init(np.zeros((1, part.n_features_in_), dtype=np.float32))
        if start.shape != (1, np.shape(part.estimators_)[1]):
            raise ValueError("the trees of a boosted model do not fit to its labels")


def _look_inside(part: Any, inside: dict[str, Any], width: Any) -> list[tuple[Any, Any]]:
    """Check a part by its kind; what is left of it to look at, with the width that trees inside of it must have."""
    columns = inside.get("n_features_in_")
    if isinstance(part, BaseDecisionTree) and "tree_" in inside:
        _check_tree(inside.pop("tree_"), columns, width)
    elif isinstance(part, BaseHistGradientBoosting):
        for predictor in chain.from_iterable(inside.pop("_predictors", ())):
            _check_predictor(predictor, columns, inside["_preprocessor"])
    for kind, attribute, check in CHECKS:
        if isinstance(part, kind) and attribute in inside:
            check(part, columns)
    # These check a table once and hand it to all of their trees, which have to be as wide as they are.
    same = isinstance(part, BaseForest | BaseGradientBoosting | IsolationForest) and "estimators_" in inside
    if same and columns is None:
        raise ValueError(f"{type(part).__name__} does not say how many columns it has")
    if isinstance(part, IsolationForest) and same:
        columns = _check_isolation(part, columns)
    return [(inner, columns if same else None) for inner in inside.values()]


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


def _check_isolation(part: IsolationForest, columns: Any) -> Any:
    """The width of its trees, which may be shown some of the columns only."""
    width = part._max_features
    picked = [np.shape(some) == (width,) and _within(some, columns) for some in part.estimators_features_]
    if len(picked) != len(part.estimators_) or not (all(picked) or width == columns):
        raise ValueError("the columns of a forest do not fit to its trees")
    return width


def _check_neighbors(part: Any, columns: Any) -> None:
    """Training points as wide as the table, a label for each of them, and a search tree that belongs to them."""
    points, count = part._fit_X, part.n_samples_fit_
    if getattr(points, "shape", None) != (count, columns):
        raise ValueError("the training points of nearest neighbours do not fit to the model")
    if hasattr(part, "_y") and hasattr(part, "classes_"):
        several = list(zip(np.transpose(part._y), part.classes_, strict=True)) if part.outputs_2d_ else []
        for labels, known in several or [(part._y, part.classes_)]:
            if np.shape(labels) != (count,) or not _within(labels, len(known)):
                raise ValueError("the labels of nearest neighbours do not fit to the training points")
    if part._fit_method in SEARCH_TREES:
        tree, options = SEARCH_TREES[part._fit_method], part.effective_metric_params_
        part._tree = tree(points, part.leaf_size, metric=part.effective_metric_, **options)


def _check_svm(part: Any, columns: Any) -> None:
    """libsvm has no shapes: it is told how many classes there are, and reads as many numbers."""
    vectors, support, counts = part.support_vectors_, np.asarray(part.support_), np.asarray(part._n_support)
    labelled = hasattr(part, "classes_")
    pairs = len(counts) * (len(counts) - 1) // 2 if labelled else 1
    rows = len(counts) - 1 if labelled else 1
    kernel, wide = part.kernel, len(vectors.shape) == 2 and vectors.shape[1] == columns
    if kernel == "precomputed":
        wide = _within(support, columns)
    elif callable(kernel):
        wide = part.shape_fit_[0] > support.max(initial=-1)
    fits = (
        wide
        and counts.ndim == 1
        and (not labelled or (len(counts) == len(part.classes_) and counts.sum() == len(support)))
        and (labelled or len(counts) == 2)
        and (counts >= 0).all()
        and (kernel == "precomputed" or callable(kernel) or vectors.shape[0] == len(support))
        and part._dual_coef_.shape == part.dual_coef_.shape == (rows, len(support))
        and np.shape(part._intercept_) == np.shape(part.intercept_) == (pairs,)
        and all(len(chances) in (0, pairs) for chances in (part._probA, part._probB))
        and len(part._probB) <= len(part._probA)
    )
    if not fits:
        raise ValueError(f"the support vectors of {type(part).__name__} do not fit to its coefficients or labels")


def _check_one_hot(part: Any, columns: Any) -> None:
    """As many columns for each feature as there are levels left, for their positions are written without a look."""
    levels = [len(known) for known in part.categories_]
    if part._infrequent_enabled:
        grouped = zip(levels, part._infrequent_indices, part._default_to_infrequent_mappings, strict=True)
        for j, (count, rare, mapping) in enumerate(list(grouped)):
            if rare is None and mapping is None:
                continue
            levels[j] = count - len(rare) + 1
            if not _within(rare, count) or np.shape(mapping) != (count,) or not _within(mapping, levels[j]):
                raise ValueError("the levels of an encoder do not fit to their groups")
    dropped = part._drop_idx_after_grouping
    for j, gone in enumerate(dropped if dropped is not None else ()):
        if gone is not None and not 0 <= gone < levels[j]:
            raise ValueError("an encoder drops a level that it does not have")
    if len(levels) != columns or list(part._n_features_outs) != part._compute_n_features_outs():
        raise ValueError("the levels of an encoder do not fit to its columns")


def _check_agglomeration(part: Any, columns: Any) -> None:
    if np.shape(part.labels_) != (columns,) or not _within(part.labels_, columns):
        raise ValueError("the groups of FeatureAgglomeration do not fit to its columns")


def _check_words(part: Any, columns: Any) -> None:  # noqa: ARG001 - it takes one column of texts
    if sorted(part.vocabulary_.values()) != list(range(len(part.vocabulary_))):
        raise ValueError("the positions of words are not counted from 0")


def _check_type(kind: np.dtype[Any]) -> None:
    """Objects that are counted, and nothing else that is taken for one: they would be gone while somebody uses them."""
    inner = [kind.fields[name][0] for name in kind.names] if kind.names and kind.fields else []
    for one in inner:
        _check_type(one)
    counted = any(one.hasobject for one in inner) or kind.base.kind == "O"
    if kind.hasobject != counted or (kind.kind == "O" and kind.flags != np.dtype(object).flags):
        raise ValueError("an array of a type that numpy does not have")


def _check_sparse(part: Any) -> None:
    if part.format not in ("csr", "csc", "coo", "bsr"):
        raise ValueError(f"a sparse array of the kind {part.format!r}, which no model has")
    part.tocsr().check_format(full_check=True) if part.format == "coo" else part.check_format(full_check=True)


def _check_random(part: Any) -> None:
    """A position in a block of random numbers that is inside of the block."""
    generator = getattr(part, "_bit_generator", getattr(part, "bit_generator", part))
    state = generator.state
    if state["bit_generator"] == "MT19937" and not 0 <= state["state"]["pos"] <= PASSES:
        raise ValueError("random numbers that begin nowhere")


def _within(positions: Any, count: Any) -> bool:
    """Whether all are whole numbers from 0 to below a count."""
    found = np.asarray(positions)
    return found.size == 0 or bool(found.dtype.kind in "iu" and found.min() >= 0 and found.max() < count)


# Kinds of parts, an attribute that those have that are fitted, and what must hold of them.
CHECKS: list[tuple[type, str, Callable[[Any, Any], None]]] = [
    (NeighborsBase, "_fit_X", _check_neighbors),
    (BaseLibSVM, "support_vectors_", _check_svm),
    (OneHotEncoder, "categories_", _check_one_hot),
    (FeatureAgglomeration, "labels_", _check_agglomeration),
    (CountVectorizer, "vocabulary_", _check_words),
]
