"""The methods that a study can compare, by name."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from evenhand.density import ClassDensities
from evenhand.explaining.explainer import Explainer
from evenhand.methods import METHODS
from evenhand.settings import key, known_in, list_of, number, whole


@dataclass(frozen=True)
class MethodSpec:
    """How it is explained."""

    name: str
    kind: str = key(known_in(METHODS))
    components: tuple[int, ...] = key(list_of(whole(1)), (1, 2, 3, 4, 5, 6, 7, 8, 9))
    quantile: float = key(number(0, 1), 0.5)
    content: str = ""  # hash of a user's own files, not a key: another content is another method, for checkpoints

    @property
    def needs_density(self) -> bool:
        """Whether the method cannot do without a density."""
        return any(f.name == "density" and f.default is not None for f in fields(METHODS[self.kind]))

    @property
    def l2_only(self) -> bool:
        """Whether the method promises something that holds for an l2 cost only."""
        return bool(getattr(METHODS[self.kind], "l2_only", False))

    def explainer(self, cost: str, model: Any, X: Any, y: Any, density: ClassDensities | None) -> Explainer:
        """Explanations of a fitted model, with a density that is fitted already if one is needed."""
        options = {} if density is None else {"density": _Ready(density)}
        explainer: Explainer = METHODS[self.kind](cost=cost, **options).fit(model, X, y)
        return explainer


@dataclass(frozen=True, eq=False)
class _Ready:
    """A density that is fitted already."""

    densities: ClassDensities

    def fit(self, *_: object) -> ClassDensities:
        """The densities, whatever the arguments."""
        return self.densities
