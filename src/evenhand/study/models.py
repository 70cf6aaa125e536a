"""The models that a study can explain, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from evenhand.models import GLVQ
from evenhand.settings import key, maybe, named_in, whole


def _softmax(spec: ModelSpec) -> ClassifierMixin:
    return LogisticRegression(**({} if spec.max_iter is None else {"max_iter": spec.max_iter}))


def _tree(spec: ModelSpec) -> ClassifierMixin:
    return DecisionTreeClassifier(max_depth=spec.max_depth, random_state=0)


def _glvq(spec: ModelSpec) -> ClassifierMixin:
    return GLVQ(prototypes_per_class=spec.prototypes, random_state=0)


MODELS: dict[str, Callable[[ModelSpec], ClassifierMixin]] = {"softmax": _softmax, "tree": _tree, "glvq": _glvq}


@dataclass(frozen=True)
class ModelSpec:
    """What is explained."""

    name: str
    kind: str = key(named_in(MODELS))
    max_depth: int | None = key(maybe(whole(1)), None)
    prototypes: int = key(whole(1), 1)
    max_iter: int | None = key(maybe(whole(1)), None)

    def classifier(self) -> ClassifierMixin:
        """The model, before it has seen anybody."""
        return MODELS[self.kind](self)
