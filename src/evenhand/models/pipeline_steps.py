"""The steps of a pipeline with encoders: whether they are understood, and which of them a column meets first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, TargetEncoder

from evenhand.models.affine import SUPPORTED_STEPS, affine
from evenhand.models.base import check_fitted

NAMING = (OneHotEncoder, OrdinalEncoder, TargetEncoder)
ENCODERS = (*NAMING, KBinsDiscretizer, SimpleImputer)
ENCODER_TYPES = OneHotEncoder | OrdinalEncoder | TargetEncoder | KBinsDiscretizer | SimpleImputer


def flat_pipeline(model: Any) -> Any:
    """The pipeline inside of a parameter search, one pipeline instead of nested ones at its end."""
    while isinstance(model, BaseSearchCV):
        check_fitted(model)
        model = model.best_estimator_
    if isinstance(model, Pipeline) and isinstance(model.steps[-1][1], Pipeline | BaseSearchCV):
        tail = flat_pipeline(model.steps[-1][1])
        more = [(f"last_{name}", step) for name, step in tail.steps] if isinstance(tail, Pipeline) else [("last", tail)]
        return Pipeline([*model.steps[:-1], *more])
    return model


def all_steps(step: Any) -> Iterator[Any]:
    """Every step that has no steps of its own."""
    if isinstance(step, Pipeline):
        children: Sequence[Any] = [child for _, child in step.steps]
    elif isinstance(step, ColumnTransformer):
        children = [child for _, child, _ in getattr(step, "transformers_", step.transformers)]
    elif isinstance(step, FeatureUnion):
        children = [child for _, child in step.transformer_list]
    else:
        yield step
        return
    for child in children:
        yield from all_steps(child)


def check_step(step: Any) -> None:
    """Refuse what is neither an affine map nor an encoder."""
    for part in all_steps(step):
        if part is None or isinstance(part, str | ENCODER_TYPES):
            continue
        try:
            affine(part, int(getattr(part, "n_features_in_", 0)))
        except TypeError as error:
            names = ", ".join(kind.__name__ for kind in ENCODERS)
            raise TypeError(
                f"{type(part).__name__} is not understood: neither an affine map nor an encoder that evenhand can ask. "
                f"Understood are {names}; {SUPPORTED_STEPS}. For other pipelines use Penalized(...) or External(...)."
            ) from error


def first_encoders(step: Any, names: list[str]) -> dict[str, tuple[Any, int, Any]]:
    """Per raw column the first encoder that it meets, its place in it, and the imputer in front of it."""
    found: dict[str, tuple[Any, int, Any]] = {}
    if isinstance(step, ColumnTransformer):
        for name, child, _ in step.transformers_:
            picked = step._transformer_to_input_indices[name]
            if len(picked) and not (isinstance(child, str) and child == "drop"):
                _note_encoder(child, [names[int(i)] for i in picked], found)
    elif isinstance(step, Pipeline) and isinstance(step.steps[0][1], ColumnTransformer):
        return first_encoders(step.steps[0][1], names)
    elif step is not None:
        _note_encoder(step, names, found)
    return found


def _note_encoder(child: Any, columns: list[str], found: dict[str, tuple[Any, int, Any]]) -> None:
    chain = [step for _, step in child.steps] if isinstance(child, Pipeline) else [child]
    imputer = chain[0] if isinstance(chain[0], SimpleImputer) else None
    rest = chain[1:] if imputer is not None else chain
    encoder = rest[0] if rest and isinstance(rest[0], ENCODERS) else None
    for i, column in enumerate(columns):
        if column not in found:
            found[column] = (encoder, i, imputer)


def filled(entry: tuple[Any, int, Any] | None) -> float:
    """The number that stands for a missing one."""
    if entry is None or entry[2] is None or entry[2].add_indicator or len(entry[2].statistics_) <= entry[1]:
        return np.nan
    value = entry[2].statistics_[entry[1]]
    return float(value) if isinstance(value, int | float | np.number) and np.isfinite(float(value)) else np.nan
