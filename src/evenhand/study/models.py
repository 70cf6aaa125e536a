"""The models that a study can explain, by name: one decorated function adds one, wherever its file is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from inspect import Parameter
from typing import Any, TypeVar

from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from evenhand.models import GLVQ
from evenhand.registering import check_free, is_ours
from evenhand.settings import check_known, known_in, whole
from evenhand.study.errors import StudyError
from evenhand.study.parts import content_of, frozen

F = TypeVar("F", bound=Callable[..., Any])
MODELS: dict[str, Callable[..., Any]] = {}

# Checkpoints are found by these keys of the built-in models, whether a kind has them or not.
_ALWAYS = {"max_depth": None, "prototypes": 1, "max_iter": None}


def study_model(name: str) -> Callable[[F], F]:
    """Make a model known by its name, as ``kind = "name"`` in the tables ``[models.NAME]`` of study files.

    It is a function, or a class, that makes a classifier of scikit-learn's kind which has seen nobody. Its parameters
    are what a file can say about the model. Whatever is random in the model needs a seed, or no two runs are the same.

    Examples
    --------
    >>> @study_model("a stump")
    ... def stump(leaf: int = 1):
    ...     return DecisionTreeClassifier(max_depth=1, min_samples_leaf=leaf, random_state=0)
    >>> read_model({"kind": "a stump", "leaf": 5}, "small").classifier()
    DecisionTreeClassifier(max_depth=1, min_samples_leaf=5, random_state=0)
    >>> del MODELS["a stump"]
    """

    def register(recipe: F) -> F:
        if not callable(recipe):
            raise TypeError(f"A model of a study is a function or a class that makes a classifier; got {recipe!r}.")
        for parameter in inspect.signature(recipe).parameters.values():
            if parameter.kind is Parameter.POSITIONAL_ONLY or parameter.name == "kind":
                raise TypeError(
                    f"The parameters of {recipe!r} are keys of a table that has 'kind' already; got the parameter "
                    f"{str(parameter)!r}. Give it another name, and leave out '/' behind it."
                )
        instead = 'choose another name with @study_model("..."), or remove that one from MODELS first.'
        check_free("model of studies", name, recipe, MODELS.get(name), instead)
        MODELS[name] = recipe
        return recipe

    return register


@study_model("softmax")
def _softmax(max_iter: int | None = None) -> LogisticRegression:
    return LogisticRegression(**({} if max_iter is None else {"max_iter": _positive("max_iter", max_iter)}))


@study_model("tree")
def _tree(max_depth: int | None = None) -> DecisionTreeClassifier:
    depth = None if max_depth is None else _positive("max_depth", max_depth)
    return DecisionTreeClassifier(max_depth=depth, random_state=0)


@study_model("glvq")
def _glvq(prototypes: int = 1) -> GLVQ:
    return GLVQ(prototypes_per_class=_positive("prototypes", prototypes), random_state=0)


def _positive(name: str, value: int) -> int:
    if problem := whole(1)(value):
        raise ValueError(f"{name} must be {problem}; got {value!r}.")
    return value


@dataclass(frozen=True)
class ModelSpec:
    """What is explained."""

    name: str
    kind: str
    parameters: tuple[tuple[str, Any], ...] = ()  # pairs of key and value: unlike a dictionary they can be hashed
    content: str = ""  # hash of a user's own file: another content is another model, for caches and checkpoints

    def classifier(self) -> Any:
        """The model, before it has seen anybody, and shared with nobody."""
        return clone(MODELS[self.kind](**dict(self.parameters)))

    @property
    def built_in(self) -> bool:
        """Whether it is one of ours, of which all see people in the same space."""
        return is_ours(MODELS[self.kind])

    def key(self) -> dict[str, Any]:
        """All that its results depend on, as checkpoints have it."""
        if not self.built_in:
            return asdict(self)
        taken = inspect.signature(MODELS[self.kind]).parameters
        defaults = {name: parameter.default for name, parameter in taken.items()}
        return {"name": self.name, "kind": self.kind} | _ALWAYS | defaults | dict(self.parameters)


def read_model(table: Any, name: str) -> ModelSpec:
    """The table ``[models.NAME]`` of a study file; the model is made once, to see whether it can be."""
    where = f"models.{name}"
    if not isinstance(table, Mapping):
        raise StudyError(f"{where} must be a table, got {table!r}.")
    kind = _checked_kind(table, where)
    taken = inspect.signature(MODELS[kind]).parameters
    keys = {key: p for key, p in taken.items() if p.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)}
    if not any(p.kind is Parameter.VAR_KEYWORD for p in taken.values()):
        check_known(table, ("kind", *keys), where, StudyError)
    missing = [key for key, p in keys.items() if key not in table and p.default is Parameter.empty]
    if missing:
        raise StudyError(f"{where} has no {missing[0]!r}, which {kind!r} needs.")
    values = {key: frozen(value, f"{where}.{key}") for key, value in table.items() if key != "kind"}
    spec = ModelSpec(name, kind, tuple(sorted(values.items())), content_of(MODELS[kind]))
    try:
        made = spec.classifier()
    except (TypeError, ValueError) as error:
        raise StudyError(f"{where}: {error}") from None
    if not (hasattr(made, "fit") and hasattr(made, "predict")):
        raise StudyError(f"{where}: {kind!r} has to make a classifier, with fit and predict; got {made!r}.")
    return spec


def _checked_kind(table: Mapping[str, Any], where: str) -> str:
    check = known_in(MODELS)
    if "kind" not in table:
        raise StudyError(f"{where} has no 'kind'; it must be {check(None)}.")
    if problem := check(table["kind"]):
        raise StudyError(
            f"{where}.kind must be {problem}; got {table['kind']!r}. "
            'A Python file can register others, if the study names it: modules = ["my_models.py"].'
        )
    return str(table["kind"])
