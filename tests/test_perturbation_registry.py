"""Perturbations are found by name, and one can be added from outside, for numbers and for levels."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression

from evenhand import Closest, Column, Gaussian, Mask, Mixed, Relative, Schema, instability
from evenhand.perturbations import PERTURBATIONS, by_name, class_named, parameters_of, register
from evenhand.perturbations.base import learned
from evenhand.perturbations.levels import OfLevels


@pytest.fixture(autouse=True)
def _nothing_stays_registered() -> Iterator[None]:
    before = dict(PERTURBATIONS)
    yield
    PERTURBATIONS.clear()
    PERTURBATIONS.update(before)


@dataclass(frozen=True)
class TwiceAsMuch:
    factor: float = 2.0

    def __call__(self, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.factor * X


def test_every_perturbation_is_found_by_both_of_its_names() -> None:
    assert set(PERTURBATIONS) == {
        *("gaussian", "uniform", "mask", "relative", "neighbor"),
        *("categorical", "ordered", "rounding", "count", "mixed"),
    }
    for name, cls in PERTURBATIONS.items():
        assert class_named(name) is class_named(cls.__name__) is cls
    made = by_name("gaussian", covariance=0.25)
    X = np.zeros((3, 2))
    assert isinstance(made, Gaussian)
    assert_array_equal(made(X, np.random.default_rng(0)), Gaussian(0.25)(X, np.random.default_rng(0)))


@pytest.mark.parametrize("name", ["gausian", "", 3, None, ["mask"]])
def test_an_unknown_name_lists_what_there_is(name: Any) -> None:
    with pytest.raises(ValueError, match=r"There is no perturbation.*There are .*gaussian.*register") as refusal:
        by_name(name)
    assert ("Did you mean 'gaussian'?" in str(refusal.value)) == (name == "gausian")


def test_what_a_file_can_say_are_the_fields() -> None:
    assert list(parameters_of(class_named("gaussian"))) == ["covariance", "bounds"]
    assert list(parameters_of(class_named("mask"))) == ["features", "baseline", "bounds"]
    assert list(parameters_of(class_named("neighbor"))) == ["k", "standardise", "bounds"]
    assert list(parameters_of(TwiceAsMuch)) == ["factor"]


def test_a_name_comes_from_the_class_or_is_given() -> None:
    assert register(TwiceAsMuch) is TwiceAsMuch
    assert PERTURBATIONS["twice_as_much"] is TwiceAsMuch
    register(name="doubled")(TwiceAsMuch)
    assert by_name("doubled", factor=3.0) == TwiceAsMuch(3.0)
    register(TwiceAsMuch)  # a notebook runs the same cell again


def test_pickles_that_name_former_modules_can_still_be_read() -> None:
    for line in (b"cevenhand.perturbations.columns\nRounding\n.", b"cevenhand.perturbations.numbers\nNeighbor\n."):
        assert pickle.loads(line) in PERTURBATIONS.values()


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'gaussian': evenhand.perturbations.numbers.Gaussian has.*name="):
        register(name="gaussian")(TwiceAsMuch)
    assert class_named("gaussian") is Gaussian


@pytest.mark.parametrize("wrong", [lambda X, rng: X, 3, type("Plain", (), {"__call__": lambda self, X, rng: X})])
def test_what_is_no_dataclass_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"is a dataclass with a method __call__.*above @dataclass"):
        register(wrong)


def test_a_dataclass_that_cannot_be_called_is_refused() -> None:
    @dataclass(frozen=True)
    class Mute:
        by: float = 1.0

    with pytest.raises(TypeError, match="__call__"):
        register(Mute)


def test_levels_get_a_perturbation_from_outside() -> None:
    @register
    @dataclass(frozen=True, eq=False)
    class Lowest(OfLevels):
        suits: ClassVar[tuple[str, ...]] = ("ordered",)

        def __call__(self, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            return np.zeros_like(X) if self.levels == 3 else X

    schema = Schema({"grade": Column("ordered", levels=["a", "b", "c"]), "income": Column("numeric")})
    people = np.array([[2.0, 1.0], [1.0, 2.0]])
    moved = Mixed({}, others=Lowest(1.0)).bind(schema)(people, np.random.default_rng(0))
    assert_array_equal(moved, [[0.0, 1.0], [0.0, 2.0]])
    with pytest.raises(TypeError, match=r"use .*Lowest\(probability\)"):
        Mixed({"grade": Gaussian(1.0)}).bind(schema)
    with pytest.raises(TypeError, match="Lowest cannot perturb the column 'income'"):
        Mixed({"income": Lowest(1.0)}).bind(schema)


def test_fitting_is_done_once() -> None:
    """Whoever is given a perturbation that has learned, fits it again: that changes nothing."""

    @register(name="noise_in_spreads")
    @dataclass(frozen=True)
    class Spreads:
        scale: Any = 0.1

        def fit(self, X: np.ndarray) -> Spreads:
            return replace(self, scale=self.scale * X.std(axis=0))

        def __call__(self, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            return X + rng.laplace(size=X.shape) * self.scale

    try:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 2)) * [3.0, 40.0]
        model = LogisticRegression(max_iter=1000).fit(X, X[:, 0] > 0)
        fitted = Spreads().fit(X)
        assert fitted.fit(X) is fitted
        explainer = Closest().fit(model)
        told = [instability(explainer, X, noise, draws=5, random_state=0).table for noise in (Spreads(), fitted)]
        pd.testing.assert_frame_equal(*told)
    finally:
        del PERTURBATIONS["noise_in_spreads"]


@pytest.mark.parametrize("made", [Mask(1), Mask(1, baseline="mean"), Relative(Gaussian(0.1)), Gaussian(0.1)])
def test_what_has_learned_stays(made: Any) -> None:
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 10.0, 100.0]
    once = learned(made, X)
    again = learned(once, 7.0 * X + 1.0)
    draw = [noise(X, np.random.default_rng(1)) for noise in (once, again)]
    assert_array_equal(*draw)
