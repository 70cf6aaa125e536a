"""Where the people of a label live in a raw table: a Gaussian of the numbers, times how frequent levels are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fuzz.densities import CLEAR, REGULARISED
from fuzz.raw_columns import Part, same


class Density(NamedTuple):
    """Of one label."""

    mean: np.ndarray
    inverse: np.ndarray
    shares: Mapping[str, np.ndarray]  # logarithms, by column and level
    least: float


class Densities(NamedTuple):
    """Of all labels that have enough people."""

    parts: tuple[Part, ...]
    edges: Mapping[str, np.ndarray]  # of columns that are binned
    known: Mapping[Any, Density]

    @classmethod
    def of(cls, parts: tuple[Part, ...], model: Any, table: pd.DataFrame, y: np.ndarray) -> Densities:
        """From the people that a method is fitted with."""
        edges = {}
        for part in parts:
            step = model[0].named_transformers_.get(part.name)
            if hasattr(step, "bin_edges_"):
                edges[part.name] = np.asarray(step.bin_edges_[0], dtype=float)
        made = cls(parts, edges, {})
        readable = ~np.isnan(made._numbers(table)).any(axis=1)
        for label in np.unique(y):
            own = table[(y == label) & readable]
            density = made._fitted(own)
            if density is not None:
                made.known[label] = density  # type: ignore[index]
        return made

    def clearly(self, people: pd.DataFrame, labels: np.ndarray) -> np.ndarray:
        """Who is where their label is dense, and not by rounding."""
        found = np.zeros(len(people), dtype=bool)
        for label, density in self.known.items():
            rows = np.flatnonzero(labels == label)
            if len(rows):
                scores = self._scores(density, people.iloc[rows])
                found[rows] = scores >= density.least + CLEAR * (1.0 + abs(density.least))
        return found

    def _plain(self) -> list[Part]:
        return [part for part in self.parts if part.number and part.name not in self.edges and part.codes is None]

    def _numbers(self, people: pd.DataFrame) -> np.ndarray:
        rows = [[part.rank(value) for value in people[part.name]] for part in self._plain()]
        return np.array(rows, dtype=float).reshape(len(rows), len(people)).T

    def _levels(self, people: pd.DataFrame) -> dict[str, tuple[np.ndarray, int]]:
        """Positions of levels, and how many there are."""
        found = {}
        for part in self.parts:
            values = people[part.name]
            if part.name in self.edges:
                inner = self.edges[part.name][1:-1]
                found[part.name] = np.searchsorted(inner, values.astype(float), side="right"), len(inner) + 1
            elif not part.number or part.codes is not None:
                levels = part.codes if part.number and part.codes is not None else part.levels
                places = [next(i for i, v in enumerate(levels) if same(v, value)) for value in values]
                found[part.name] = np.array(places, dtype=int), len(levels)
        return found

    def _fitted(self, own: pd.DataFrame) -> Density | None:
        Z = self._numbers(own)
        if len(Z) < Z.shape[1] + 5 or (Z.shape[1] and not (Z.std(axis=0) > 1e-9 * np.abs(Z).max(axis=0)).all()):
            return None
        unit = Z.std(axis=0)
        scaled = (Z - Z.mean(axis=0)) / unit
        covariance = scaled.T @ scaled / len(Z) + REGULARISED * np.eye(Z.shape[1])
        inverse = np.linalg.inv(covariance) / np.outer(unit, unit)
        shares = {
            name: np.log((np.bincount(places, minlength=count) + 1.0) / (len(own) + count))
            for name, (places, count) in self._levels(own).items()
        }
        made = Density(Z.mean(axis=0), inverse, shares, 0.0)
        return made._replace(least=float(np.quantile(self._scores(made, own), 0.5, method="lower")))

    def _scores(self, density: Density, people: pd.DataFrame) -> np.ndarray:
        away = self._numbers(people) - density.mean
        total = -0.5 * np.einsum("ij,jk,ik->i", away, density.inverse, away)
        for name, (places, _) in self._levels(people).items():
            total = total + density.shares[name][places]
        return np.asarray(total)
