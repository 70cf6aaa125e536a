"""Pipelines and parameter searches: the region of the last step, seen from the raw inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from sklearn.exceptions import NotFittedError

# GridSearchCV, RandomizedSearchCV and the halving searches have no other base in common.
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline

from evenhand.models.affine import chain
from evenhand.models.base import View, check_fitted, described, number_reader, supported, view
from evenhand.models.prototypes import check_size
from evenhand.sets import Region

described(Pipeline, "a Pipeline that ends in one of them")
described(BaseSearchCV, "a search for parameters among them")


@view.register(Pipeline)
def _pipeline(model: Any) -> View:
    check_fitted(model)
    *before, last = (step for _, step in model.steps)
    if last is None or isinstance(last, str):
        raise TypeError(f"The Pipeline ends in {last!r}, not in a classifier. Supported: {supported()}.")
    inner = view(last)
    assert inner.encode is not None
    encode = chain(before, int(seen_by(model, "n_features_in_"))).then(inner.encode)
    names = seen_by(model, "feature_names_in_")
    n_raw = encode.matrix.shape[1]
    assert inner.latent is not None
    latent = partial(_that_fits, inner.latent, n_raw, f"a Pipeline that ends in {type(last).__name__}")
    return View(model, inner.classes, number_reader(n_raw, names), encode, latent, coarse=inner.coarse)


def _that_fits(latent: Callable[[int], Region], n_raw: int, name: str, k: int) -> Region:
    """The region of a label, if it fits into memory.

    Rows get as wide as the raw table, which may be far wider than the last step's; a region without a list of pieces
    knows by itself what a map makes of it.
    """
    region = latent(k)
    pieces = getattr(region, "pieces", ())
    rows = max((len(piece.halfspaces[0]) for piece in pieces), default=0)
    check_size(len(pieces), rows, n_raw, name)
    return region


@view.register(BaseSearchCV)
def _search(model: Any) -> View:
    check_fitted(model)
    if not hasattr(model, "best_estimator_"):
        raise NotFittedError(
            f"This {type(model).__name__} has no best_estimator_, because it was run with refit={model.refit!r}: "
            "run it with refit=True, or pass a model fitted with its best_params_."
        )
    inner = view(model.best_estimator_)
    return replace(inner, model=model)


def seen_by(model: Any, attribute: str) -> Any:
    """What the first step that looked at the raw table remembers of it, or None.

    The properties of scikit-learn give up if the first step is 'passthrough' or 'drop'.
    """
    if isinstance(model, Pipeline):
        children = model.steps
    elif isinstance(model, FeatureUnion):
        children = model.transformer_list
    else:
        check_fitted(model)  # of a pipeline, scikit-learn checks the last step only
        return getattr(model, attribute, None)
    looking = (child for _, child in children if child is not None and not isinstance(child, str))
    first = next(looking, None)
    return None if first is None else seen_by(first, attribute)
