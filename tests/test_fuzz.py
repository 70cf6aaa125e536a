"""The fuzzer finds a wrong answer that is planted, and prints a script that ends in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fuzz.__main__ import main, modules, run
from fuzz.base import RefusedError, generator
from fuzz.numbers import drawn
from fuzz.numbers_question import NumberQuestion
from fuzz.raw import drawn_question
from fuzz.raw_drawing import drawn_columns
from fuzz.raw_question import RawQuestion
from fuzz.scripted import ScriptedCase

from threads import one_thread  # noqa: F401


class Held(NumberQuestion):
    """Says to the package, not to the oracle, that the first column cannot change."""

    def limits_text(self) -> str:
        return "Actionable(immutable=[0])"


class HeldLevels(RawQuestion):
    """The same of a raw table."""

    def limits_text(self) -> str:
        return f"Actionable(immutable=[{self.parts[0].name!r}])"


def planted_numbers() -> NumberQuestion:
    question = drawn(generator(1, "planted", 0), "numbers linear")
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = (3.0 * X[:, 0] + X[:, 1] > 0).astype(int)
    last = "LogisticRegression(C=1.0, max_iter=300)"
    fields = {**vars(question), "limits": (), "variant": "", "form": "array", "weights": None, "matrix": None}
    fields |= {
        "X": X,
        "y": y,
        "last": last,
        "steps": (),
        "people": X[:8],
        "target": 1 - y[:8],
        "order": 1,
        "cost": '"l1"',
    }
    return Held(**fields)


def planted_levels() -> RawQuestion:
    """The first of some random tables whose first column makes a difference."""
    for i in itertools.count():
        rng = generator(2, "planted", i)
        question = drawn_question(rng, drawn_columns(rng, amounts=False))
        plain = replace(question, model="DecisionTreeClassifier(max_depth=6, random_state=0)", rules=())
        free = tuple(replace(part, way="", limits=None, allowed=None) for part in plain.parts)
        made = HeldLevels(**{**vars(plain), "parts": free})
        if ScriptedCase("planted", lambda made=made: made).run() is not None:
            return made
    raise AssertionError


def wrong_now_and_then(question: Any) -> Any:
    """A module of cases of which the second is wrong."""

    def cases(seed: int) -> Iterator[ScriptedCase]:
        for i in itertools.count():
            fine = drawn(generator(seed, "fine", 0), "numbers trees")
            yield ScriptedCase("planted", lambda i=i, fine=fine: question if i == 1 else fine)

    return SimpleNamespace(__name__="planted", cases=cases)


@pytest.mark.parametrize("plant", [planted_numbers, pytest.param(planted_levels, marks=pytest.mark.slow)])
def test_a_planted_answer_is_found_and_its_script_ends_in_it(
    plant: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuzz.scripted.TRIED", 5)
    tally = run([wrong_now_and_then(plant())], seed=0, seconds=60.0, most=3)
    assert tally.run == {"planted": 3}
    assert sum(tally.failed["planted"].values()) == 1
    assert tally.wrong
    script = capsys.readouterr().out
    assert "rival, price = " in script
    with pytest.raises(AssertionError):
        exec(compile(script, "<script>", "exec"), {})
    assert "fuzz" not in script.split("# FAILED")[1].replace("FAILED", "")  # it needs nothing of what found it


def test_cases_depend_on_seed_kind_and_number_only() -> None:
    def texts(seed: int, modules_: Any) -> list[str]:
        return [case.draw().source() for m in modules_ for case in itertools.islice(m.cases(seed), 4)]

    scripted = [m for m in modules() if m.__name__ in ("fuzz.raw", "fuzz.numbers", "fuzz.certificates")]
    assert len(scripted) == 3
    assert texts(3, scripted) == texts(3, scripted)
    assert texts(3, scripted) != texts(4, scripted)


def test_refusals_are_counted_and_time_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    def refuse() -> Any:
        raise RefusedError("This is not supported.")

    def cases(seed: int) -> Iterator[Any]:
        for _ in itertools.count():
            yield SimpleNamespace(kind="refused", run=refuse, script=str)

    tally = run([SimpleNamespace(__name__="refused", cases=cases)], seed=0, seconds=0.2)
    assert tally.refused["refused"]["This is not supported."] == tally.run["refused"] > 0
    assert not tally.wrong
    assert "refused: 100.0%" in tally.table()


def test_the_command_ends_with_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seconds", "60", "--cases", "1", "--kind", "numbers trees", "--seed", "8"]) == 0
    assert "numbers trees" in capsys.readouterr().out
    assert main(["--seconds", "1", "--kind", "no such kind"]) == 2
