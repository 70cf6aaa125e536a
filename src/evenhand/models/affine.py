"""Transformers as affine maps, so that regions can be pulled back through them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from evenhand.models.base import check_fitted
from evenhand.sets import Affine
from evenhand.types import FloatArray

SUPPORTED_STEPS = (
    "StandardScaler, MinMaxScaler and MaxAbsScaler (clip=False), RobustScaler, PCA, IncrementalPCA, TruncatedSVD, "
    "feature selectors, FunctionTransformer(func=None), 'passthrough', and ColumnTransformer, FeatureUnion or "
    "Pipeline of these"
)


@singledispatch
def affine(transformer: object, n_features: int) -> Affine:  # noqa: ARG001 - for those that register
    """The map that a fitted transformer applies to each row.

    Parameters
    ----------
    transformer : fitted transformer
        Or ``"passthrough"``, ``None``, ``"drop"``.
    n_features : int
        Number of columns that come in.

    Returns
    -------
    Affine
        Equal to ``transformer.transform`` up to rounding.

    Raises
    ------
    TypeError
        For a transformer that is not affine, or not known to be.

    Examples
    --------
    >>> affine(StandardScaler().fit([[0.0], [4.0]]), 1)([[2.0], [4.0]]).tolist()
    [[0.0], [1.0]]
    """
    raise _refusal(type(transformer).__name__)


def chain(steps: Iterable[Any], n_features: int) -> Affine:
    """One fitted transformer after the other."""
    whole = Affine.identity(n_features)
    for step in steps:
        if hasattr(step, "fit"):
            check_fitted(step)
        whole = whole.then(affine(step, len(whole.offset)))
    return whole


def _refusal(what: str) -> TypeError:
    return TypeError(
        f"{what} is not an affine map, or not known to be one, so evenhand cannot carry regions through it. "
        f"Supported steps: {SUPPORTED_STEPS}. To add one, register it with @affine.register "
        "(evenhand.models.affine)."
    )


def _diagonal(scale: npt.ArrayLike | None, centre: npt.ArrayLike | None, n_features: int) -> Affine:
    """The map ``(x - centre) / scale``; None means that the part is switched off."""
    factor = np.ones(n_features) if scale is None else 1.0 / np.asarray(scale, dtype=np.float64)
    shift = np.zeros(n_features) if centre is None else np.asarray(centre, dtype=np.float64)
    return Affine(np.diag(factor), -shift * factor)


def _stacked(parts: Iterable[tuple[Affine, float | None]], n_features: int) -> Affine:
    """Outputs side by side, each times its weight (None is 1)."""
    matrices: list[FloatArray] = [np.zeros((0, n_features))]
    offsets: list[FloatArray] = [np.zeros(0)]
    for part, weight in parts:
        factor = 1.0 if weight is None else weight
        matrices.append(factor * part.matrix)
        offsets.append(factor * part.offset)
    return Affine(np.vstack(matrices), np.concatenate(offsets))


@affine.register(str)
@affine.register(type(None))
def _keyword(keyword: str | None, n_features: int) -> Affine:
    if keyword is None or keyword == "passthrough":
        return Affine.identity(n_features)
    if keyword == "drop":
        return Affine(np.zeros((0, n_features)), np.zeros(0))
    raise _refusal(repr(keyword))


@affine.register(StandardScaler)
def _standard(scaler: Any, n_features: int) -> Affine:
    # mean_ is there even if it is not subtracted.
    return _diagonal(scaler.scale_, scaler.mean_ if scaler.with_mean else None, n_features)


@affine.register(RobustScaler)
def _robust(scaler: Any, n_features: int) -> Affine:
    return _diagonal(
        scaler.scale_ if scaler.with_scaling else None, scaler.center_ if scaler.with_centering else None, n_features
    )


@affine.register(MinMaxScaler)
def _min_max(scaler: Any, _: int) -> Affine:
    if scaler.clip:
        raise _refusal("MinMaxScaler(clip=True)")
    return Affine(np.diag(scaler.scale_), scaler.min_)


@affine.register(MaxAbsScaler)
def _max_abs(scaler: Any, n_features: int) -> Affine:
    if getattr(scaler, "clip", False):
        raise _refusal("MaxAbsScaler(clip=True)")
    return _diagonal(scaler.scale_, None, n_features)


@affine.register(PCA)
@affine.register(IncrementalPCA)
def _pca(pca: Any, _: int) -> Affine:
    matrix = np.asarray(pca.components_, dtype=np.float64)
    # Its own product in its own precision: fitted to float32, its centre is rounded to that.
    centre = (np.reshape(pca.mean_, (1, -1)) @ pca.components_.T)[0].astype(np.float64)
    if pca.whiten:
        deviation = np.sqrt(pca.explained_variance_)
        # As in its transform: directions without variance are not blown up to infinity.
        deviation = np.maximum(deviation, np.finfo(deviation.dtype).eps).astype(np.float64)
        matrix, centre = matrix / deviation[:, None], centre / deviation
    return Affine(matrix, -centre)


@affine.register(TruncatedSVD)
def _svd(svd: Any, _: int) -> Affine:
    return Affine(svd.components_, np.zeros(len(svd.components_)))


@affine.register(SelectorMixin)
def _selector(selector: Any, n_features: int) -> Affine:
    matrix = np.eye(n_features)[selector.get_support()]
    return Affine(matrix, np.zeros(len(matrix)))


@affine.register(FunctionTransformer)
def _function(transformer: Any, n_features: int) -> Affine:
    if transformer.func is not None:
        name = getattr(transformer.func, "__name__", repr(transformer.func))
        raise _refusal(f"FunctionTransformer(func={name})")
    return Affine.identity(n_features)


@affine.register(Pipeline)
def _pipeline(pipeline: Any, n_features: int) -> Affine:
    return chain((step for _, step in pipeline.steps), n_features)


@affine.register(FeatureUnion)
def _union(union: Any, n_features: int) -> Affine:
    weights = union.transformer_weights or {}
    parts = ((affine(step, n_features), weights.get(name)) for name, step in union.transformer_list)
    return _stacked(parts, n_features)


@affine.register(ColumnTransformer)
def _columns(transformer: Any, n_features: int) -> Affine:
    weights = transformer.transformer_weights or {}
    parts = []
    for name, step, _ in transformer.transformers_:
        # Names, slices, masks and callables, resolved to positions by scikit-learn itself.
        picked = transformer._transformer_to_input_indices[name]
        if len(picked) == 0:  # such a step was never fitted and gives no columns
            continue
        pick = Affine(np.eye(n_features)[picked], np.zeros(len(picked)))
        parts.append((pick.then(affine(step, len(picked))), weights.get(name)))
    return _stacked(parts, n_features)
