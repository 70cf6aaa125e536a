"""A raw table, a pipeline and people, asked of the package and of everybody there could be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from fuzz.raw_columns import Part, transformer
from fuzz.raw_densities import Densities
from fuzz.raw_rivals import Rival, cheapest
from fuzz.sameness import again, differs
from fuzz.scripted import Claim, array_text, frame_text, listed, series_text, text
from fuzz.tables import changed_types

ACCURATE = 1e-7  # more than this part of a cost is no proof

FIRST = {"Closest": [], "Plausible": ["HighDensity(components=[1])"], "Penalized": ["restarts=1"]}


@dataclass(frozen=True)
class RawQuestion:
    """Columns, labels, a model, what is limited, and who asks for what."""

    parts: tuple[Part, ...]
    y: np.ndarray
    model: str
    people: pd.DataFrame
    target: Any  # one per person, or None
    schema: bool  # whether it is written, or inferred
    cost: str = '"l1"'
    rules: tuple[tuple[str, str, str, float], ...] = ()  # class, column, the other, ratio
    method: str = "Closest"  # or Plausible, Penalized
    variant: str = ""

    def part(self, name: str) -> Part:
        """A column by its name."""
        return next(part for part in self.parts if part.name == name)

    def table(self) -> pd.DataFrame:
        """What the model is trained on."""
        return pd.DataFrame({part.name: part.values for part in self.parts})

    def limits_text(self) -> str:
        """The limits as Actionable; empty if there are none."""
        said = []
        for way in ("immutable", "increase", "decrease"):
            names = [part.name for part in self.parts if part.way == way]
            if names:
                said.append(f"{way}={names!r}")
        bounds = {part.name: part.limits for part in self.parts if part.limits is not None}
        levels = {part.name: list(part.allowed) for part in self.parts if part.allowed is not None}
        if bounds:
            said.append(f"bounds={bounds!r}")
        if levels:
            said.append("levels={" + ", ".join(f"{n!r}: {listed(some)}" for n, some in levels.items()) + "}")
        if self.rules:
            rules = [
                f"RisesWith({a!r}, {b!r}, ratio={ratio!r})" if rule == "RisesWith" else f"IfChanges({a!r}, stays={b!r})"
                for rule, a, b, ratio in self.rules
            ]
            said.append(f"rules=[{', '.join(rules)}]")
        return f"Actionable({', '.join(said)})" if said else ""

    def source(self) -> str:
        """Everything from the table to the explanations."""
        steps = ", ".join(map(transformer, self.parts))
        limits = self.limits_text()
        columns = "".join(f"    {part.name!r}: {part.column()},\n" for part in self.parts)
        schema = f"schema = Schema({{\n{columns}}})\n" if self.schema else ""
        said = [*FIRST[self.method], f"cost={self.cost}"]
        said += [f"actionable={limits}"] if limits else []
        said += ["schema=schema"] if self.schema else []
        goal = "None" if self.target is None else array_text(np.asarray(self.target))
        return (
            f"X = {frame_text(self.table())}\n"
            f"y = {array_text(self.y)}\n"
            f"model = make_pipeline(ColumnTransformer([{steps}]), {self.model}).fit(X, y)\n"
            f"people = {frame_text(self.people)}\n"
            f"target = {goal}\n"
            "model.predict(people)\n"
            f"{schema}"
            f"explainer = {self.method}({', '.join(said)}).fit(model, X, y)\n"
            "found = explainer.explain(people, target=target)\n"
            f"{again(self.variant, [part.name for part in self.parts])}"
        )

    def smaller(self) -> Iterator[RawQuestion]:
        """With fewer people, rules, columns, limits and rows."""
        n = len(self.people)
        if n > 1 and not self.variant:
            halves = [np.arange(n) < n // 2, np.arange(n) >= n // 2]
            singles = [np.arange(n) == i for i in range(n)] if n <= 8 else []
            for keep in (*singles, *halves):
                target = None if self.target is None else self.target[keep]
                yield replace(self, people=self.people[keep], target=target)
        ruled = {name for _, a, b, _ in self.rules for name in (a, b)}
        if self.rules:
            yield replace(self, rules=())
        for j, part in enumerate(self.parts):
            if len(self.parts) > 1 and part.name not in ruled:
                rest = self.parts[:j] + self.parts[j + 1 :]
                yield replace(self, parts=rest, people=self.people.drop(columns=part.name))
            if part.way or part.limits or part.allowed:
                yield self._with(j, replace(part, way="", limits=None, allowed=None))
        if self.schema:  # weights follow from the rows otherwise
            m = len(self.y)
            for share in (2, 4):
                for k in range(share if m >= 2 * share else 0):
                    rows = np.arange(m) % share != k
                    if len(np.unique(self.y[rows])) == len(np.unique(self.y)):
                        parts = tuple(
                            replace(p, values=p.values[rows].reset_index(drop=True), signal=p.signal[rows])
                            for p in self.parts
                        )
                        yield replace(self, parts=parts, y=self.y[rows])

    def _with(self, j: int, part: Part) -> RawQuestion:
        return replace(self, parts=(*self.parts[:j], part, *self.parts[j + 1 :]))

    # --- what has to hold ---------------------------------------------------------------------------------------

    def check(self, names: dict[str, Any]) -> Claim | None:
        """What is wrong with any row."""
        found, model, people = names["found"], names["model"], names["people"]
        wrong = changed_types(found, people)
        if wrong is not None:
            return wrong
        if self.variant:
            wrong = differs(names, self.variant)
            if wrong is not None:
                return wrong
        answer = found.counterfactual
        now = model.predict(people)
        valid = np.asarray(found.valid)
        if valid.any():
            said = model.predict(answer[valid])
            if (said != found.target[valid]).any():
                i = int(np.flatnonzero(valid)[np.flatnonzero(said != found.target[valid])[0]])
                return Claim(
                    "valid, but predict denies it",
                    f"row {i}: {answer.iloc[i].to_dict()} is not {found.target[i]!r}",
                    "assert (model.predict(found.counterfactual[found.valid]) == found.target[found.valid]).all()\n",
                )
        unreadable = np.array([self._unreadable(people, i) for i in range(len(people))])
        for i in range(len(people)):
            wrong = self._status(found, now, unreadable, i) or (self._answer(found, people, i) if valid[i] else None)
            if wrong is not None:
                return wrong
        if self.method == "Penalized":  # no proof, but never dearer than somebody of the table
            return self._nearest(model, found, people, unreadable)
        inside = Densities.of(self.parts, model, self.table(), self.y) if self.method == "Plausible" else None
        rival = cheapest(self.parts, self.rules, model, people, found, now, unreadable, self.target, inside)
        return None if rival is None else self._beaten(rival, people, found)

    def _unreadable(self, people: pd.DataFrame, i: int) -> bool:
        """Missing numbers for which nothing stands."""
        return any(
            part.number and pd.isna(people[part.name].iloc[i]) and (part.fill is None or np.isnan(part.fill))
            for part in self.parts
        )

    def _status(self, found: Any, now: np.ndarray, unreadable: np.ndarray, i: int) -> Claim | None:
        status = str(found.status[i])
        goal = None if self.target is None else self.target[i]
        there = goal is not None and now[i] == goal and not unreadable[i]
        if (status == "already") != bool(there):
            return Claim(
                "already, but predict denies it" if status == "already" else "not told that it is there already",
                f"row {i}: {status!r}, predict says {now[i]!r}, the target is {goal!r}: {found.reason[i]}",
                f"assert (found.status[{i}] == 'already') == (model.predict(people.iloc[[{i}]])[0] == target[{i}])\n",
            )
        if (status == "invalid") != bool(unreadable[i]):
            return Claim(
                f"status {status} of somebody who can{'not' if unreadable[i] else ''} be read",
                f"row {i}: {found.reason[i]}",
                f"assert (found.status[{i}] == 'invalid') == {bool(unreadable[i])}, found.reason[{i}]\n",
            )
        if not found.valid[i] and not str(found.reason[i]).strip():
            return Claim("no reason", f"row {i}", f"assert found.reason[{i}].strip()\n")
        return None

    def _answer(self, found: Any, people: pd.DataFrame, i: int) -> Claim | None:
        """Limits, cost and gap of one answer."""
        if found.status[i] == "already":
            return None
        total, size = 0.0, 0.0
        for part in self.parts:
            own, value = people[part.name].iloc[i], found.counterfactual[part.name].iloc[i]
            held = f"found.counterfactual[{part.name!r}].iloc[{i}]"
            if not part.may(own, value):
                stays = (
                    f"{text(own)} must not become {text(value)} in {part.name}: {part.column()}, {self.limits_text()}"
                )
                return Claim("beyond a limit", f"row {i}: {stays}", f"assert {held} != {text(value)}, {stays!r}\n")
            price = part.price(own, value)
            total += price
            if part.number:
                size += part.weight * (abs(part.rank(own)) + abs(part.rank(value)))
        if not self._kept(people.iloc[i], found.counterfactual.iloc[i]):
            return Claim("beyond a rule", f"row {i}: {self.limits_text()}", f"assert found.status[{i}] != 'optimal'\n")
        if not abs(total - found.cost[i]) <= 1e-9 * total + 1e-14 * size:
            return Claim(
                "the cost is another",
                f"row {i}: the change costs {total!r}, said is {float(found.cost[i])!r}",
                f"assert abs(found.cost[{i}] - {total!r}) <= {1e-9 * total + 1e-14 * size!r}\n",
            )
        return None

    def _nearest(self, model: Any, found: Any, people: pd.DataFrame, unreadable: np.ndarray) -> Claim | None:
        """Somebody of the table who has the target, whom the limits admit and who is nearer than an answer."""
        table = self.table().dropna()
        if not len(table) or self.target is None:
            return None
        said = model.predict(table)
        for i in range(len(people)):
            if unreadable[i] or found.status[i] == "already":
                continue
            own = people.iloc[i]
            for k in np.flatnonzero(said == self.target[i]):
                other = table.iloc[k]
                price = sum(part.price(own[part.name], other[part.name]) for part in self.parts)
                may = all(part.may(own[part.name], other[part.name]) for part in self.parts)
                if not may or not self._kept(own, other) or not np.isfinite(price):
                    continue
                if not found.valid[i] or found.cost[i] > price * (1.0 + 1e-9):
                    person = table.iloc[[k]].reset_index(drop=True)
                    return self._beaten(Rival(i, person, float(price), self.target[i]), people, found)
        return None

    def _kept(self, own: pd.Series, other: pd.Series) -> bool:
        return all(keeps(self.part(a), self.part(b), rule, ratio, own, other) for rule, a, b, ratio in self.rules)

    def _beaten(self, rival: Rival, people: pd.DataFrame, found: Any) -> Claim:
        i, row = rival.row, rival.person
        status = str(found.status[i])
        cells = ", ".join(f"{n!r}: {series_text(row[n])}" for n in row.columns)
        goal = text(rival.label)
        source = (
            f"rival, price = pd.DataFrame({{{cells}}}), {rival.price!r}\nthere = model.predict(rival)[0] == {goal}\n"
        )
        if not found.valid[i]:
            return Claim(
                f"{status}, but there is a way",
                f"row {i}: {row.iloc[0].to_dict()} has {goal} and costs {rival.price!r}",
                f"{source}assert not there or found.valid[{i}], found.reason[{i}]\n",
            )
        return Claim(
            "cheaper than proven",
            f"row {i}: {people.iloc[i].to_dict()} is told {found.counterfactual.iloc[i].to_dict()} at a cost of "
            f"{float(found.cost[i])!r}, gap {float(found.gap[i])!r} ({status});\n"
            f"{row.iloc[0].to_dict()} costs {rival.price!r}",
            f"{source}assert not there or found.cost[{i}] - found.gap[{i}] <= price\n",
        )


def keeps(a: Part, b: Part, rule: str, ratio: float, own: Any, other: Any) -> bool:
    """Whether a change keeps a rule."""
    moved = [part.rank(other[part.name]) - part.rank(own[part.name]) for part in (a, b)]
    if rule == "RisesWith":
        return bool(moved[0] >= ratio * moved[1] - 1e-9 * (1.0 + abs(moved[0]) + abs(ratio * moved[1])))
    return moved[0] == 0 or moved[1] == 0
