"""The perturbations of a study: what a file may say about those that are registered."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np

from evenhand.perturbations import PERTURBATIONS, Perturbation, Relative, learned, parameters_of, perturbed
from evenhand.perturbations.registry import ROWS
from evenhand.settings import check_known, flag, nearest
from evenhand.study.errors import StudyError
from evenhand.study.parts import content_of, frozen
from evenhand.types import FloatArray


@dataclass(frozen=True)
class PerturbationSpec:
    """What could have been different."""

    name: str
    kind: str
    parameters: tuple[tuple[str, Any], ...] = ()  # pairs of key and value: unlike a dictionary they can be hashed
    relative: bool = False
    content: str = ""  # hash of a user's own file: another content is another perturbation, for checkpoints

    def strengths(self, columns: int) -> list[Any]:
        """The values of the first parameter, one perturbation each, for a table with so many columns.

        It is None for a perturbation whose first parameter is no number, and for one without parameters.
        """
        for key, field in parameters_of(PERTURBATIONS[self.kind]).items():
            value = dict(self.parameters).get(key, field.default)
            words = field.metadata.get("words", {})
            if isinstance(value, str) and value in words:
                return list(words[value](columns))
            if isinstance(value, tuple) and all(map(_is_number, value)):
                return list(value)
            return [value if _is_number(value) else None]
        return [None]

    def levels(self, people: FloatArray) -> list[tuple[float, Perturbation]]:
        """The perturbations that the spec stands for, with what they learn from people, and their strengths."""
        levels = []
        for strength in self.strengths(people.shape[1]):
            perturbation = self._made(strength, people)
            if self.relative:
                perturbation = Relative(perturbation)
            levels.append((math.nan if strength is None else float(strength), learned(perturbation, people)))
        return levels

    def check(self, people: FloatArray, where: str) -> None:
        """Refuse what cannot perturb such people, before anything runs: it is tried on one of them."""
        try:
            for _, perturbation in self.levels(people):
                perturbed(perturbation, people[:1].copy(), np.random.default_rng(0))
        except (TypeError, ValueError) as error:
            raise StudyError(f"perturbations.{self.name} cannot be used with {where}: {error}") from None

    def _made(self, strength: Any, people: FloatArray) -> Perturbation:
        cls = PERTURBATIONS[self.kind]
        known = parameters_of(cls)
        values = {known[key].name: value for key, value in self.parameters}
        if strength is not None:
            values[next(iter(known.values())).name] = strength
        values |= {field.name: people for field in fields(cls) if field.metadata.get("people")}
        made: Perturbation = cls(**values)
        return made


def possible_kinds() -> list[str]:
    """Names of the perturbations that take tables of numbers, as those of a study are."""
    return [name for name, cls in PERTURBATIONS.items() if ROWS in getattr(cls, "suits", (ROWS,))]


def read_perturbation(table: Any, name: str) -> PerturbationSpec:
    """The table ``[perturbations.NAME]`` of a study file, checked as far as that goes without people."""
    where = f"perturbations.{name}"
    if not isinstance(table, Mapping):
        raise StudyError(f"{where} must be a table, got {table!r}.")
    kind = _checked_kind(table, where)
    cls = PERTURBATIONS[kind]
    known = parameters_of(cls)
    check_known(table, tuple(dict.fromkeys(("kind", *known, "relative"))), where, StudyError)
    missing = [key for key, f in known.items() if key not in table and f.default is f.default_factory is MISSING]
    if missing:
        raise StudyError(f"{where} has no {missing[0]!r}, which {kind!r} needs.")
    values = {key: frozen(value, f"{where}.{key}") for key, value in table.items() if key in known}
    if known:
        _check_strength(values, next(iter(known)), known, where)
    # A perturbation may have a parameter of this name: then it is that which the file means.
    relative = False if "relative" in known else table.get("relative", False)
    if problem := flag(relative):
        raise StudyError(f"{where}.relative must be {problem}; got {relative!r}.")
    spec = PerturbationSpec(name, kind, tuple(values.items()), relative, content_of(cls))
    if not any(field.metadata.get("people") for field in fields(cls)):
        _check_made(spec, where)
    return spec


def _checked_kind(table: Mapping[str, Any], where: str) -> str:
    possible = possible_kinds()
    if "kind" not in table:
        raise StudyError(f"{where} has no 'kind'; it must be one of {', '.join(possible)}.")
    kind = table["kind"]
    if kind not in possible:
        raise StudyError(
            f"{where}.kind must be one of {', '.join(possible)}; got {kind!r}.{nearest(str(kind), possible)} "
            'A Python file can register others, if the study names it: modules = ["my_perturbations.py"].'
        )
    return str(kind)


def _check_strength(values: Mapping[str, Any], key: str, known: Mapping[str, Any], where: str) -> None:
    """Refuse an empty list, which would be no perturbation at all, and words that mean nothing."""
    words = known[key].metadata.get("words", {})
    value = values.get(key)
    if value == () or (words and isinstance(value, str) and value not in words):
        or_words = "".join(f', or "{word}"' for word in words)
        raise StudyError(f"{where}.{key} must be a number, a list of at least one{or_words}; got {value!r}.")


def _check_made(spec: PerturbationSpec, where: str) -> None:
    """Make the perturbations for an imaginary table: most of what is wrong with a value does not depend on people."""
    try:
        for strength in spec.strengths(columns=2):
            spec._made(strength, np.zeros((2, 2)))
    except (TypeError, ValueError) as error:
        raise StudyError(f"{where}: {error}") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
