"""What is proven about tables of numbers, against people who are moved by so much and asked again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import pandas as pd

from fuzz.base import generator
from fuzz.numbers import KINDS, drawn
from fuzz.numbers_question import NumberQuestion
from fuzz.regions import rounding
from fuzz.scripted import Claim, ScriptedCase, array_text, frame_text

CERTIFIED = tuple(kind.replace("numbers", "certificates") for kind in KINDS)
SHARES = (1e-6, 1e-3, 0.03, 0.3, 1.0)  # of the cost of an answer
NEARLY = 1.0 - 1e-6
LAST_BITS = 1e-12  # of the numbers themselves: what it takes to write them


def cases(seed: int) -> Iterator[ScriptedCase]:
    """Endlessly, kind by kind."""
    for i in count():
        for kind, base in zip(CERTIFIED, KINDS, strict=True):
            yield ScriptedCase(kind, partial(_drawn, generator(seed, kind, i), base))


def _drawn(rng: np.random.Generator, base: str) -> CertificateQuestion:
    question = drawn(rng, base)
    methods = ["Closest", "Closest", "Plausible", *(["Steady"] if question.order == 2 else [])]
    question = replace(question, method=str(rng.choice(methods)))
    limits = tuple(limit for limit in question.limits if limit.way in ("immutable", "bounds"))
    fields = {**vars(question), "limits": limits, "variant": "", "people": question.people[:6]}
    if question.target is not None:
        fields["target"] = question.target[:6]
    return CertificateQuestion(**fields, seed=int(rng.integers(1 << 30)))


@dataclass(frozen=True)
class CertificateQuestion(NumberQuestion):
    """The same question, with a certificate."""

    seed: int = 0

    def source(self) -> str:
        """The question, and a certificate for the same people."""
        return f"{super().source()}proven = certify(explainer, people, target)\n"

    def check(self, names: dict[str, Any]) -> Claim | None:
        """Whether somebody who is moved is told more than is proven."""
        found, proven, explainer, model = (names[n] for n in ("found", "proven", "explainer", "model"))
        rng = np.random.default_rng(self.seed)
        own, told = (np.asarray(t, dtype=float) for t in (names["people"], found.counterfactual))
        now = model.predict(self.as_table(own))
        valid = np.flatnonzero(found.valid & (now == model.predict(names["people"])))
        coarse = rounding(model[-1] if self.steps else model) > 1e-10
        if not len(valid) or coarse:
            return None
        for moved, rows in self._moved(rng, own, told, found, proven, valid):
            size = np.array([self.price(m - own[i]) for m, i in zip(moved, rows, strict=True)])
            sizes = np.full(len(own), 0.0)
            there = explainer.explain(self.as_table(moved), target=np.asarray(found.target)[rows])
            then = model.predict(self.as_table(moved))
            points = np.asarray(there.counterfactual, dtype=float)
            for k, i in enumerate(rows):
                sizes[:] = 0.0
                sizes[i] = size[k]
                wrong = self._moves(proven, there, points[k], told[i], moved[k], own[i], sizes, i, k)
                if wrong is None and size[k] < proven.label_radius[i] and then[k] != now[i]:
                    wrong = Claim(
                        "another label within the label radius",
                        f"row {i}: moved by {size[k]!r}, the radius is {float(proven.label_radius[i])!r}",
                        f"{self._person('moved', moved[k])}"
                        f"assert model.predict(moved)[0] == model.predict(people[{i}:{i + 1}])[0] "
                        f"or proven.label_radius[{i}] <= {float(size[k])!r}\n",
                    )
                if wrong is not None:
                    return wrong
        return None

    def _moves(
        self,
        proven: Any,
        there: Any,
        point: np.ndarray,
        told: np.ndarray,
        moved: np.ndarray,
        own: np.ndarray,
        sizes: np.ndarray,
        i: int,
        k: int,
    ) -> Claim | None:
        if there.status[k] not in ("optimal", "already"):  # of others no more is known
            return None
        apart, by = self.price(point - told), float(sizes[i])
        room = LAST_BITS * self.size(own, moved, told, point) + 1e-9 * by
        for flip in ("swap", "keep"):
            bound = float(proven.bound(sizes, on_flip=flip)[i])
            if apart > bound * (1.0 + 1e-9) + room:
                return self._claim_moved(
                    f"proven.bound({by!r}, on_flip={flip!r})[{i}]", bound, apart, moved, by, room, i
                )
        radius = float(min(proven.stability_radius[i], proven.label_radius[i]))
        if self.order == 2 and by < radius and apart > by + room:
            source = f"({by!r} if {by!r} < min(proven.stability_radius[{i}], proven.label_radius[{i}]) else np.inf)"
            return self._claim_moved(source, by, apart, moved, by, room, i)
        return None

    def _claim_moved(
        self, bound: str, value: float, apart: float, moved: np.ndarray, by: float, room: float, i: int
    ) -> Claim:
        target = f"found.target[{i}:{i + 1}]"
        return Claim(
            "an answer moves further than is proven",
            f"row {i}, moved by {by!r}: the answer moves by {apart!r}, proven is {value!r}",
            f"{self._person('moved', moved)}"
            f"there = explainer.explain(moved, target={target})\n"
            f"a, b = np.asarray(there.counterfactual)[:1], np.asarray(found.counterfactual)[{i}:{i + 1}]\n"
            "proven_there = there.status[0] in ('optimal', 'already')\n"
            f"assert not proven_there or not explainer.cost(a, b)[0] > {bound} * (1 + 1e-9) + {room!r}\n",
        )

    def _person(self, name: str, values: np.ndarray) -> str:
        if self.form.startswith("frame"):
            return f"{name} = {frame_text(pd.DataFrame(values[None], columns=self.names))}\n"
        return f"{name} = {array_text(values[None])}\n"

    def _moved(
        self,
        rng: np.random.Generator,
        own: np.ndarray,
        told: np.ndarray,
        found: Any,
        proven: Any,
        valid: np.ndarray,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """People moved a little, at random, towards their answers and away, and as far as the radii allow."""
        still = [limit.column for limit in self.limits if limit.way == "immutable"]
        spread = self.size(np.where(self.X.std(axis=0) > 0, self.X.std(axis=0), 1.0))
        ways = [rng.normal(size=own.shape) @ self.frame().T for _ in range(4)]
        ways += [told - own, own - told, np.roll(own, 1, axis=0) - own]
        ways += [self.frame()[:, [j]].T * rng.choice([-1.0, 1.0]) * np.ones((len(own), 1)) for j in range(self.dim)]
        moving = [j not in still for j in range(self.dim)]
        for way in (np.where(moving, each, 0.0) for each in ways):
            points, rows = [], []
            for i in valid:
                length = self.price(way[i])
                if not length > 0 or not np.isfinite(length):
                    continue
                cost = float(found.cost[i]) or spread
                radii = (float(proven.stability_radius[i]), float(proven.label_radius[i]), float(proven.kept_radius[i]))
                sizes = [cost * share for share in SHARES] + [NEARLY * r for r in radii if 0 < r < 1e3 * spread]
                for size in sizes:
                    points.append(own[i] + way[i] * (size / length))
                    rows.append(i)
            if points:
                yield np.array(points), np.array(rows)
