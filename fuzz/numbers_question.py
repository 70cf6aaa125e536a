"""Tables of numbers: a pipeline, a norm, limits and people, against linear programs and least distances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fuzz.numbers_rivals import Asked, denser, nearer
from fuzz.regions import rounding
from fuzz.sameness import again, differs
from fuzz.scripted import Claim, array_text, frame_text, text
from fuzz.tables import changed_types


class Limit(NamedTuple):
    """What may become of a column; the position, the way, and bounds."""

    column: int
    way: str  # immutable, increase, decrease or bounds
    low: float = -np.inf
    high: float = np.inf


@dataclass(frozen=True)
class NumberQuestion:
    """People as an array; `form` says what they are given as."""

    X: np.ndarray
    y: np.ndarray
    steps: tuple[str, ...]
    last: str
    cost: str
    order: int
    weights: np.ndarray | None  # per column; None if `matrix` or neither
    matrix: np.ndarray | None
    limits: tuple[Limit, ...]
    people: np.ndarray
    target: np.ndarray | None
    form: str = "array"  # array, float32, frame, frame32
    variant: str = ""
    method: str = "Closest"  # or Plausible, Steady

    @property
    def dim(self) -> int:
        """How many columns there are."""
        return self.X.shape[1]

    @property
    def names(self) -> list[str]:
        """What they are called in a DataFrame."""
        return [f"x{j}" for j in range(self.dim)]

    def table_text(self, values: np.ndarray) -> str:
        """People in the form in which they are given."""
        if self.form.startswith("frame"):
            table = pd.DataFrame(values, columns=self.names)
            return frame_text(table.astype("float32") if self.form == "frame32" else table)
        return array_text(values.astype(np.float32) if self.form == "float32" else values)

    def as_table(self, values: np.ndarray) -> Any:
        """As the model is asked: in doubles, because answers are."""
        return pd.DataFrame(values, columns=self.names) if self.form.startswith("frame") else values

    def column(self, j: int) -> str:
        """How limits call a column."""
        return repr(self.names[j]) if self.form.startswith("frame") else str(j)

    def limits_text(self) -> str:
        """The limits as Actionable; empty if there are none."""
        said = []
        for way in ("immutable", "increase", "decrease"):
            some = [self.column(limit.column) for limit in self.limits if limit.way == way]
            if some:
                said.append(f"{way}=[{', '.join(some)}]")
        bounds = [(limit.column, limit.low, limit.high) for limit in self.limits if limit.way == "bounds"]
        if bounds:
            inside = ", ".join(f"{self.column(j)}: ({text(low)}, {text(high)})" for j, low, high in bounds)
            said.append(f"bounds={{{inside}}}")
        return f"Actionable({', '.join(said)})" if said else ""

    def model_text(self) -> str:
        """The pipeline, not fitted."""
        return f"make_pipeline({', '.join((*self.steps, self.last))})" if self.steps else self.last

    def explainer_text(self) -> str:
        """The method, fitted to the model."""
        limits, frame = self.limits_text(), self.form.startswith("frame")
        said = [f"cost={self.cost}"] + ([f"actionable={limits}"] if limits else [])
        said += ["schema=Schema.numbers(X)"] if frame else []
        if self.method == "Closest":
            return f"Closest({', '.join(said)}).fit(model{', X' if frame else ''})"
        return f"{self.method}(HighDensity(components=[1]), {', '.join(said)}).fit(model, X, y)"

    def source(self) -> str:
        """Everything from the table to the explanations."""
        goal = "None" if self.target is None else array_text(self.target)
        return (
            f"X = {self.table_text(self.X)}\n"
            f"y = {array_text(self.y)}\n"
            f"model = {self.model_text()}.fit(X, y)\n"
            f"people = {self.table_text(self.people)}\n"
            f"target = {goal}\n"
            "model.predict(people)\n"
            f"explainer = {self.explainer_text()}\n"
            "found = explainer.explain(people, target=target)\n"
            f"{again(self.variant, self.names if self.form.startswith('frame') else None)}"
        )

    def smaller(self) -> Iterator[NumberQuestion]:
        """With fewer people, limits and rows."""
        n = len(self.people)
        if n > 1 and not self.variant:
            some = [np.arange(n) == i for i in range(n)] if n <= 8 else []
            for keep in (*some, np.arange(n) < n // 2, np.arange(n) >= n // 2):
                yield replace(self, people=self.people[keep], target=None if self.target is None else self.target[keep])
        for limit in self.limits:
            yield replace(self, limits=tuple(other for other in self.limits if other is not limit))
        fitted = "X)" in self.cost
        if not fitted:
            m = len(self.y)
            for k in range(2 if m >= 6 else 0):
                rows = np.arange(m) % 2 != k
                if len(np.unique(self.y[rows])) == len(np.unique(self.y)):
                    yield replace(self, X=self.X[rows], y=self.y[rows])

    # --- what has to hold ---------------------------------------------------------------------------------------

    def check(self, names: dict[str, Any]) -> Claim | None:
        """What is wrong with any row."""
        found, model, people = names["found"], names["model"], names["people"]
        if self.form.startswith("frame"):
            wrong = changed_types(found, people)
            if wrong is not None:
                return wrong
        coarse = rounding(model[-1] if self.steps else model) > 1e-10
        if self.variant and not coarse:
            wrong = differs(names, self.variant)
            if wrong is not None:
                return wrong
        answer, valid, now = np.asarray(found.counterfactual, dtype=float), found.valid, model.predict(people)
        if valid.any():
            given = found.counterfactual[valid]
            said = model.predict(given)
            if (said != found.target[valid]).any():
                i = int(np.flatnonzero(valid)[np.flatnonzero(said != found.target[valid])[0]])
                return Claim(
                    "valid, but predict denies it",
                    f"row {i}: {answer[i].tolist()} is not {found.target[i]!r}",
                    "assert (model.predict(found.counterfactual[found.valid]) == found.target[found.valid]).all()\n",
                )
        own = np.asarray(people, dtype=float)
        # Of singles on a boundary predict may say another thing than of the same numbers as doubles.
        either = now != model.predict(self.as_table(own))
        for i in np.flatnonzero(~either):
            wrong = self._row(found, own[i], answer[i], now[i], i, coarse)
            if wrong is not None:
                return wrong
        for i in np.flatnonzero(~either):
            wrong = self._beaten(model, found, own[i], answer[i], now[i], i)
            if wrong is not None:
                return wrong
        return None

    def price(self, change: np.ndarray) -> float:
        """What a change costs, by the definition of the norm."""
        if self.matrix is not None:
            return float(np.sqrt(change @ self.matrix @ change))
        weights = np.ones(self.dim) if self.weights is None else self.weights
        return float((weights * np.abs(change)).sum() if self.order == 1 else np.sqrt((weights * change**2).sum()))

    def size(self, *points: np.ndarray) -> float:
        """What it costs to move by the numbers themselves."""
        values = np.max(np.abs(points), axis=0)
        if self.matrix is not None:
            return float(np.sqrt(values @ np.abs(self.matrix) @ values))
        return self.price(values)

    def _row(self, found: Any, own: np.ndarray, other: np.ndarray, now: Any, i: int, coarse: bool) -> Claim | None:
        status = str(found.status[i])
        told = self.target is not None and not coarse and self.method != "Steady"
        if told and (status == "already") != bool(now == self.target[i]):
            return Claim(
                "already, but predict denies it" if status == "already" else "not told that it is there already",
                f"row {i}: {status!r}, predict says {now!r}, the target is {self.target[i]!r}: {found.reason[i]}",
                f"now = model.predict(people[{i}:{i + 1}])[0]\n"
                f"assert (found.status[{i}] == 'already') == (now == target[{i}])\n",
            )
        if status == "invalid":
            return Claim(f"status {status}", f"row {i}: {found.reason[i]}", f"assert found.status[{i}] != {status!r}\n")
        if not found.valid[i]:
            return (
                None if str(found.reason[i]).strip() else Claim("no reason", f"row {i}", f"assert found.reason[{i}]\n")
            )
        if status == "already":
            return None
        for limit in self.limits:
            a, b = own[limit.column], other[limit.column]
            fine = {"immutable": b == a, "increase": b >= a, "decrease": b <= a, "bounds": limit.low <= b <= limit.high}
            if not fine[limit.way]:
                return Claim(
                    "beyond a limit",
                    f"row {i}: {a!r} has become {b!r}, {limit}",
                    f"assert np.asarray(found.counterfactual)[{i}, {limit.column}] != {b!r}\n",
                )
        price, size = self.price(other - own), self.size(own, other)
        if not abs(price - found.cost[i]) <= 1e-9 * price + 1e-14 * size:
            return Claim(
                "the cost is another",
                f"row {i}: the change costs {price!r}, said is {float(found.cost[i])!r}",
                f"assert abs(found.cost[{i}] - {price!r}) <= {1e-9 * price + 1e-14 * size!r}\n",
            )
        return None

    def _beaten(self, model: Any, found: Any, own: np.ndarray, other: np.ndarray, now: Any, i: int) -> Claim | None:
        if found.status[i] in ("already", "failed") or self.method == "Steady":  # who failed says nothing
            return None
        valid = bool(found.valid[i])
        step = model[-1] if self.steps else model
        if rounding(step) > 1e-10 and (not valid or np.abs(self.X).max() > 1e3 * self.X.std(axis=0).min()):
            return None  # sums of large squares: what predict itself loses there is in no gap
        room = rounding(step) * self.size(own, other if valid else own)
        asked = Asked(
            model,
            own,
            other if valid else None,
            float(found.cost[i]) if valid else np.inf,
            float(found.cost[i] - found.gap[i]) * (1.0 - 1e-9) - room if valid else np.inf,
        )
        if self.target is not None:
            labels = [self.target[i]]
        else:
            labels = [k for k in model.classes_ if k != now] if self.method == "Closest" else [found.target[i]] * valid
        for label in labels:
            rival = (nearer if self.method == "Closest" else denser)(self, asked, label)
            if rival is not None:
                return self._claim(found, i, rival, self.price(rival - own), label)
        return None

    def _claim(self, found: Any, i: int, rival: np.ndarray, price: float, label: Any) -> Claim:
        table = self.table_text(rival[None]) if self.form in ("array", "frame") else array_text(rival[None])
        if self.form in ("frame", "frame32"):
            table = frame_text(pd.DataFrame(rival[None], columns=self.names))
        source = f"rival, price = {table}, {float(price)!r}\nthere = model.predict(rival)[0] == {text(label)}\n"
        status = str(found.status[i])
        if not found.valid[i]:
            return Claim(
                f"{status}, but there is a way",
                f"row {i}: {rival.tolist()} has {label!r} and costs {float(price)!r}",
                f"{source}assert not there or found.valid[{i}], found.reason[{i}]\n",
            )
        return Claim(
            "cheaper than proven",
            f"row {i}: told {np.asarray(found.counterfactual)[i].tolist()} at {float(found.cost[i])!r}, gap "
            f"{float(found.gap[i])!r} ({status}), but {rival.tolist()} costs {float(price)!r}",
            f"{source}assert not there or found.cost[{i}] - found.gap[{i}] <= price\n",
        )

    def frame(self) -> np.ndarray:
        """S, so that the change S u costs |u|."""
        if self.matrix is not None:
            return np.linalg.inv(np.linalg.cholesky(self.matrix)).T
        weights = np.ones(self.dim) if self.weights is None else self.weights
        return np.diag(1.0 / (weights if self.order == 1 else np.sqrt(weights)))

    def allowed(self, own: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Points put back by rounding into what may be."""
        ends = ends.copy()
        for limit in self.limits:
            j = limit.column
            if limit.way == "immutable":
                ends[:, j] = own[j]
            elif limit.way == "increase":
                ends[:, j] = np.maximum(ends[:, j], own[j])
            elif limit.way == "decrease":
                ends[:, j] = np.minimum(ends[:, j], own[j])
            else:
                ends[:, j] = np.clip(ends[:, j], limit.low, limit.high)
        return ends
