"""Noise for levels and steps: its distributions, what it never does, how it is put together for a table."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from evenhand.perturbations import (
    Categorical,
    Count,
    Gaussian,
    Mask,
    Mixed,
    Ordered,
    Relative,
    Rounding,
    Uniform,
    bound,
)
from evenhand.table.column import Column
from evenhand.table.schema import Schema

MANY = 40_000
LEVEL = 1e-4  # seeds are fixed: a test fails for a wrong distribution, not by bad luck
seeds = st.integers(0, 2**32 - 1)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def column(values: Any) -> np.ndarray:
    return np.asarray(values, dtype=np.float64).reshape(-1, 1)


def assert_meets(found: np.ndarray, shares: np.ndarray) -> None:
    """Chi-square, and nothing where nothing can be."""
    shares = np.asarray(shares)
    counts = np.bincount(found.ravel().astype(int), minlength=len(shares))
    assert len(counts) == len(shares)
    assert not counts[shares == 0].any()
    possible = shares > 0
    if possible.sum() > 1:
        assert stats.chisquare(counts[possible], shares[possible] * found.size).pvalue > LEVEL, counts


SCHEMA = Schema(
    {
        "income": Column("numeric", bounds=(0.0, 5000.0)),
        "children": Column("integer", bounds=(0.0, None)),
        "grade": Column("ordered", levels=["low", "middle", "high", None]),
        "purpose": Column("categorical", levels=["car", "house", None, "boat"]),
        "owner": Column("boolean"),
    }
)
PEOPLE = np.column_stack(
    [
        rng(1).uniform(100.0, 4900.0, 300),
        rng(2).integers(0, 5, 300),
        rng(3).integers(0, 4, 300),
        rng(4).integers(0, 4, 300),
        rng(5).integers(0, 2, 300),
    ]
).astype(np.float64)


def everything() -> Mixed:
    parts = {
        "owner": Categorical(0.4),
        "income": Relative(Gaussian(0.04)),
        "children": Count(2),
        "grade": Ordered(0.4),
        "purpose": Categorical(0.4),
    }
    return Mixed(parts).bind(SCHEMA).fit(PEOPLE)


# --- Categorical ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("own", "shares"), [(0, [0.7, 0.3 * 2 / 8, 0.0, 0.3 * 6 / 8]), (3, [0.15, 0.15, 0.0, 0.7])])
def test_categorical_draws_other_levels_in_proportion_to_the_data(own: int, shares: list[float]) -> None:
    fitted = Categorical(0.3, levels=4).fit(column([0, 0, 1, 1] + [3] * 6))
    assert_meets(fitted(np.full((MANY, 1), float(own)), rng()), shares)


@pytest.mark.parametrize("own", range(4))
def test_categorical_never_draws_the_missing_level(own: int) -> None:
    data = column([0] + [1] * 3 + [2] * 50 + [3] * 4)
    fitted = Categorical(1.0, levels=4, missing=2).fit(data)
    weights = np.array([1.0, 3.0, 0.0, 4.0])
    weights[own] = 0.0
    assert_meets(fitted(np.full((MANY, 1), float(own)), rng(own)), weights / weights.sum())


@given(seeds, st.lists(st.integers(0, 3), min_size=1, max_size=8), st.sampled_from([None, 0, 2]))
def test_categorical_that_changes_leaves_the_own_level_for_one_of_the_data(
    seed: int, counts: list[int], missing: int | None
) -> None:
    levels = len(counts)
    missing = None if missing is None or missing >= levels else missing
    own = rng(seed).integers(levels, size=50)
    moved = Categorical(1.0, levels=levels, missing=missing, counts=np.array(counts))(column(own), rng(seed))[:, 0]
    reachable = {i for i, count in enumerate(counts) if count and i != missing}
    for before, after in zip(own.tolist(), moved.tolist(), strict=True):
        assert after in (reachable - {before} or {before})


def test_categorical_stays_where_the_data_has_nothing_else_or_the_chance_is_none() -> None:
    ones = np.ones((20, 1))
    assert_array_equal(Categorical(1.0, levels=3).fit(ones)(ones, rng()), ones)
    assert_array_equal(Categorical(1.0, levels=3, missing=0).fit(column([1, 1, 0, 0]))(ones, rng()), ones)
    assert_array_equal(Categorical(1.0, levels=3).fit(np.empty((0, 1)))(ones, rng()), ones)
    assert_array_equal(Categorical(0.0, levels=2).fit(column([0, 1]))(ones, rng()), ones)


def test_categorical_leaves_unknown_levels_out_of_its_counts_and_learns_once() -> None:
    fitted = Categorical(0.1, levels=3).fit(column([0, 2, np.inf, 2, np.inf]))
    assert_array_equal(fitted.counts, [1, 0, 2])
    assert fitted.fit(column([0, 0, 1])) is fitted


def test_categorical_says_what_it_lacks() -> None:
    with pytest.raises(ValueError, match=r"fit\(codes\)"):
        Categorical(0.1, levels=2)(np.zeros((3, 1)), rng())
    with pytest.raises(ValueError, match="how many levels"):
        Categorical(0.1).fit(np.zeros((3, 1)))
    with pytest.raises(ValueError, match="one column"):
        Categorical(0.1, levels=2).fit(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="from 0 to 1"):
        Categorical(0.1, levels=2).fit(column([0, 1, 2]))
    with pytest.raises(ValueError, match="from 0 to 1"):
        Categorical(0.1, levels=2).fit(column([0, 1]))(column([0.5]), rng())
    with pytest.raises(ValueError, match="3 levels"):
        Categorical(0.1, levels=2, counts=np.array([1, 2, 3]))
    with pytest.raises(ValueError, match="whole number"):
        Categorical(0.1, levels=2, counts=np.array([0.5, 0.5]))
    with pytest.raises(ValueError, match="levels must be"):
        Categorical(0.1, levels=0)


@pytest.mark.parametrize("part", [Categorical, Ordered])
@pytest.mark.parametrize("probability", [-0.1, 1.1, np.nan, "0.1", None, True])
def test_a_probability_is_from_0_to_1(part: Callable[..., Any], probability: Any) -> None:
    with pytest.raises(ValueError, match="probability"):
        part(probability)


# --- Ordered ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "shares"),
    [
        (0, [0.6, 0.0, 0.4, 0.0, 0.0]),
        (1, [0.0, 1.0, 0.0, 0.0, 0.0]),
        (2, [0.2, 0.0, 0.6, 0.2, 0.0]),
        (3, [0.0, 0.0, 0.2, 0.6, 0.2]),
        (4, [0.0, 0.0, 0.0, 0.4, 0.6]),
    ],
)
def test_ordered_moves_to_a_neighbour_and_steps_over_the_missing_level(own: int, shares: list[float]) -> None:
    assert_meets(Ordered(0.4, levels=5, missing=1)(np.full((MANY, 1), float(own)), rng(own)), shares)


@pytest.mark.parametrize("part", [Ordered(1.0, levels=1), Ordered(1.0, levels=2, missing=1)])
def test_ordered_with_one_level_stays(part: Ordered) -> None:
    assert_array_equal(part(np.zeros((5, 1)), rng()), np.zeros((5, 1)))


def test_ordered_says_what_it_lacks() -> None:
    with pytest.raises(ValueError, match="how many levels"):
        Ordered(0.1)(np.zeros((3, 1)), rng())


# --- Rounding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [0.01, 0.5, 1.0, 100.0])
def test_rounding_is_uniform_within_half_a_step(step: float) -> None:
    noise = Rounding(step)(np.zeros((MANY, 1)), rng())[:, 0]
    assert stats.kstest(noise, stats.uniform(-step / 2, step).cdf).pvalue > LEVEL
    assert np.abs(noise).max() <= step / 2


@given(seeds, st.integers(-100_000, 100_000), st.integers(-4, 4))
def test_what_rounding_gives_rounds_to_what_was_recorded(seed: int, units: int, power: int) -> None:
    step = 10.0**power
    recorded = np.full((100, 1), units * step)
    moved = Rounding(step)(recorded, rng(seed))
    assert_array_equal(np.rint(moved / step), np.full((100, 1), units))
    assert len(np.unique(moved)) > 90


CONTINUOUS = rng(7).normal(size=2000)
WHOLE = rng(8).integers(1, 1000, 2000)


@pytest.mark.parametrize(
    ("values", "step"),
    [
        (WHOLE * 100, 100.0),
        (-WHOLE * 100, 100.0),
        (WHOLE / 100, 0.01),
        (WHOLE * 1_000_000_007 / 100, 0.01),
        (WHOLE, 1.0),
        (WHOLE * 1e6, 1e6),
        (WHOLE * 1e9, 1e6),
        (WHOLE * 1e-6, 1e-6),
        (WHOLE * 1e-7, 0.0),
        (WHOLE * 250, 10.0),
        (CONTINUOUS, 0.0),
        (CONTINUOUS * 1e3, 0.0),
        (CONTINUOUS * 1e7, 0.0),
        (CONTINUOUS * 1e11, 0.0),
        (CONTINUOUS * 1e13, 0.0),
        (CONTINUOUS * 1e-3, 0.0),
        (np.r_[np.zeros(5000), WHOLE * 100], 100.0),
        (np.zeros(10), 0.0),
        (np.r_[np.full(990, 300.0), np.full(10, 0.5)], 100.0),
        (np.r_[np.full(989, 300.0), np.full(11, 0.5)], 0.1),
        (np.r_[WHOLE * 100, np.inf, np.nan, -np.inf], 100.0),
        ([], 0.0),
    ],
)
def test_rounding_learns_the_recorded_precision(values: Any, step: float) -> None:
    fitted = Rounding().fit(column(values))
    assert fitted.step == pytest.approx(step, rel=1e-12, abs=0.0)


def test_rounding_adds_nothing_to_continuous_data() -> None:
    assert_array_equal(Rounding().fit(column(CONTINUOUS))(column(CONTINUOUS), rng()), column(CONTINUOUS))


def test_rounding_keeps_a_step_that_is_given() -> None:
    given = Rounding(7)
    assert given.fit(column(WHOLE)) is given
    assert given.step == 7.0


@pytest.mark.parametrize("step", [-1.0, np.nan, np.inf, "1"])
def test_rounding_refuses_an_impossible_step(step: Any) -> None:
    with pytest.raises(ValueError, match="step must be"):
        Rounding(step)


def test_rounding_says_what_it_lacks() -> None:
    with pytest.raises(ValueError, match=r"fit\(X\)"):
        Rounding()(np.zeros((3, 1)), rng())
    with pytest.raises(ValueError, match="one column"):
        Rounding().fit(np.zeros((3, 2)))


# --- Count ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [0, 1, 3])
def test_count_is_whole_and_equally_likely_on_both_sides(by: int) -> None:
    noise = Count(by)(np.full((MANY, 1), 10.0), rng(by)) - 10.0
    assert_array_equal(noise, np.rint(noise))
    assert_meets(noise + by, np.full(2 * by + 1, 1 / (2 * by + 1)))


@pytest.mark.parametrize("by", [-1, 0.5, 1.0, True, None])
def test_count_refuses_what_is_no_whole_number(by: Any) -> None:
    with pytest.raises(ValueError, match="by must be"):
        Count(by)


# --- Mixed ------------------------------------------------------------------------------------------------------------


def test_mixed_applies_each_part_to_its_column() -> None:
    person = np.tile([2500.0, 7.0, 1.0, 3.0, 0.0], (MANY, 1))
    mixed = everything()
    moved = mixed(person, rng())
    spread = 0.2 * PEOPLE[:, 0].std()
    assert stats.kstest(moved[:, 0] - 2500.0, stats.norm(0.0, spread).cdf).pvalue > LEVEL
    assert_meets(moved[:, 1] - 5.0, np.full(5, 0.2))
    assert_meets(moved[:, 2], [0.2, 0.6, 0.2, 0.0])
    first, second = (PEOPLE[:, 3] == 0).sum(), (PEOPLE[:, 3] == 1).sum()
    assert_meets(moved[:, 3], np.array([0.4 * first, 0.4 * second, 0.0, 0.6 * (first + second)]) / (first + second))
    assert_meets(moved[:, 4], [0.6, 0.4])
    correlations = np.corrcoef(moved, rowvar=False) - np.eye(5)
    assert np.abs(correlations).max() < 5 / np.sqrt(MANY)


@given(seeds, st.sets(st.sampled_from(SCHEMA.names)))
def test_mixed_leaves_other_columns_untouched_and_their_noise_alone(seed: int, names: set[str]) -> None:
    whole = everything()
    some = Mixed({name: whole.columns[name] for name in names}).bind(SCHEMA)
    given = PEOPLE.copy()
    moved, everywhere = some(given, rng(seed)), whole(PEOPLE, rng(seed))
    assert_array_equal(given, PEOPLE)
    for j, name in enumerate(SCHEMA.names):
        expected = everywhere if name in names else PEOPLE
        assert moved[:, j].tobytes() == expected[:, j].tobytes()


@given(seeds, st.integers(1, 299))
def test_mixed_depends_on_the_generator_alone_and_not_on_later_rows(seed: int, n: int) -> None:
    mixed = everything()
    moved = mixed(PEOPLE, rng(seed))
    assert_array_equal(mixed(PEOPLE, rng(seed)), moved)
    assert_array_equal(mixed(PEOPLE[:n], rng(seed)), moved[:n])
    assert_array_equal(pickle.loads(pickle.dumps(mixed))(PEOPLE, rng(seed)), moved)
    assert not np.array_equal(mixed(PEOPLE, rng(seed + 1)), moved)


def test_mixed_follows_the_schemas_order_of_columns() -> None:
    names = ("owner", "purpose", "income", "grade", "children")
    order = [SCHEMA.names.index(name) for name in names]
    other = Schema({name: SCHEMA[name] for name in names})
    parts = {"income": Rounding(2.0), "owner": Categorical(1.0)}
    moved = Mixed(parts).bind(other).fit(PEOPLE[:, order])(PEOPLE[:, order], rng())
    changed = (moved != PEOPLE[:, order]).all(axis=0)
    assert_array_equal(changed, [True, False, True, False, False])
    assert np.abs(moved[:, 2] - PEOPLE[:, 0]).max() <= 1.0
    assert_array_equal(moved[:, 0], 1.0 - PEOPLE[:, 4])


def test_mixed_keeps_whole_numbers_whole_and_numbers_inside_their_bounds() -> None:
    schema = Schema(
        {
            "age": Column("integer", bounds=(17.5, 99.5)),
            "share": Column("numeric", bounds=(0.0, 1.0)),
            "debt": Column("numeric", bounds=(0.0, None)),
        }
    )
    people = np.tile([[18.0, 0.9, 0.1], [99.0, 1.5, -3.0]], (500, 1))
    mixed = Mixed({"age": Gaussian(9.0), "share": Uniform(0.5), "debt": Gaussian(1.0)}).bind(schema)
    moved = mixed(people, rng())
    assert_array_equal(moved[:, 0], np.rint(moved[:, 0]))
    assert len(np.unique(moved[::2, 0])) > 5
    assert (moved[:, 0].min(), moved[:, 0].max()) == (18.0, 99.0)
    assert (moved[::2, 1].min() >= 0.0) & (moved[::2, 1].max() == 1.0)
    assert moved[::2, 2].min() == 0.0
    assert moved[1::2, 1].max() > 1.9  # outside before: there is nothing to keep
    assert moved[1::2, 2].min() < -5.0


def test_mixed_has_no_negative_zero() -> None:
    schema = Schema({"children": Column("integer")})
    moved = Mixed({"children": Gaussian(0.05)}).bind(schema)(np.zeros((1000, 1)), rng())
    assert not np.signbit(moved[moved == 0]).any()


@pytest.mark.parametrize(("unit", "exact"), [(1, True), (10, False), (100, False)])
def test_rounding_of_whole_numbers_needs_a_step_larger_than_one(unit: int, exact: bool) -> None:
    people = column(WHOLE * unit)
    mixed = Mixed({"amount": Rounding()}).bind(Schema({"amount": Column("integer")})).fit(people)
    assert mixed.columns["amount"].step == unit
    moved = mixed(people, rng())
    assert_array_equal(moved, np.rint(moved))
    assert np.array_equal(moved, people) is exact
    assert np.abs(moved - people).max() == (0 if exact else unit / 2)


def test_mixed_leaves_unknown_values_alone_and_learns_without_them() -> None:
    people = PEOPLE.copy()
    people[::3] = np.inf
    mixed = Mixed({"income": Relative(Gaussian(1.0)), "children": Count(3), "purpose": Categorical(1.0)})
    fitted = mixed.bind(SCHEMA).fit(people)
    known = np.isfinite(people[:, 0])
    assert_allclose(fitted.columns["income"].spread, PEOPLE[known, 0].std(), rtol=1e-12)
    moved = fitted(people, rng())
    assert np.isposinf(moved[::3]).all()
    assert np.isfinite(moved[known]).all()
    assert (moved[known][:, [0, 3]] != people[known][:, [0, 3]]).all()
    assert np.isinf(fitted(np.full((2, 5), np.inf), rng())).all()


def test_mixed_fits_as_learned_as_its_parts() -> None:
    nothing = Mixed({"income": Gaussian(1.0), "grade": Ordered(0.1), "children": Rounding(10)}).bind(SCHEMA)
    assert nothing.fit(PEOPLE) is nothing
    something = Mixed({"income": Gaussian(1.0), "purpose": Categorical(0.1)}).bind(SCHEMA)
    fitted = something.fit(PEOPLE)
    assert fitted is not something
    assert something.columns["purpose"].counts is None
    assert_array_equal(fitted.columns["purpose"].counts, np.bincount(PEOPLE[:, 3].astype(int)))
    assert fitted.fit(PEOPLE[:1]) is fitted
    assert_array_equal(fitted.bind(SCHEMA).columns["purpose"].counts, fitted.columns["purpose"].counts)
    with pytest.raises(ValueError, match=r"fit\(codes\)"):
        something(PEOPLE, rng())


def test_mixed_takes_functions_and_checks_what_they_return() -> None:
    def more(values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        assert values.shape == (300, 1)
        values += 5000.0  # in place, and beyond the bound of an income
        return values

    moved = Mixed({"children": more, "income": more}).bind(SCHEMA)(PEOPLE, rng())
    assert_array_equal(moved[:, 1], 5000.0 + PEOPLE[:, 1])
    assert_array_equal(moved[:, 0], np.full(300, 5000.0))
    assert_array_equal(Mixed({"income": Mask(1, 5.0)}).bind(SCHEMA)(PEOPLE, rng())[:, 0], np.full(300, 5.0))
    with pytest.raises(ValueError, match=r"returned shape \(300,\)"):
        Mixed({"income": lambda values, _: values[:, 0]}).bind(SCHEMA)(PEOPLE, rng())
    with pytest.raises(ValueError, match="NaN"):
        Mixed({"income": lambda values, _: values * np.nan}).bind(SCHEMA)(PEOPLE, rng())


@pytest.mark.parametrize(
    ("others", "moves"),
    [
        (None, [0]),
        (Count(2), [0, 1]),
        (Categorical(0.9), [0, 2, 3, 4]),
        (Ordered(0.9), [0, 2]),
        (lambda values, _: values + 1.0, [0, 1]),
    ],
)
def test_mixed_others_get_what_suits_them(others: Any, moves: list[int]) -> None:
    mixed = Mixed({"income": Uniform(1.0)}, others).bind(SCHEMA).fit(PEOPLE)
    moved = mixed(PEOPLE, rng())
    assert np.flatnonzero((moved != PEOPLE).any(axis=0)).tolist() == moves
    assert_array_equal(mixed.bind(SCHEMA)(PEOPLE, rng()), moved)


def test_others_of_mixed_learn_from_each_column() -> None:
    mixed = Mixed({}, others=Relative(Gaussian(1.0))).bind(SCHEMA).fit(PEOPLE)
    assert_allclose(mixed.columns["income"].spread, PEOPLE[:, 0].std(), rtol=1e-12)
    assert_allclose(mixed.columns["children"].spread, PEOPLE[:, 1].std(), rtol=1e-12)


def test_mixed_refuses_a_column_that_is_not_there() -> None:
    with pytest.raises(ValueError, match=r"'salary'.*income, children, grade, purpose, owner"):
        Mixed({"income": Gaussian(1.0), "salary": Gaussian(1.0)}).bind(SCHEMA)


def shift(values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return values + 1.0


@pytest.mark.parametrize(
    ("name", "part", "says"),
    [
        ("income", Categorical(0.1), "Categorical.*'income'.*numeric.*Gaussian.*Count"),
        ("children", Categorical(0.1), "Categorical.*'children'.*integer.*Rounding"),
        ("children", Ordered(0.1), "Ordered.*'children'.*integer.*Count"),
        ("purpose", Gaussian(1.0), r"Gaussian.*'purpose'.*categorical: use Categorical\(probability\)"),
        ("owner", Count(1), r"Count.*'owner'.*boolean: use Categorical\(probability\)"),
        ("grade", Relative(Gaussian(1.0)), r"Relative.*'grade'.*ordered: use Ordered\(probability\) or Categorical"),
        ("grade", Rounding(1.0), "Rounding.*'grade'"),
        ("purpose", Ordered(0.1), r"Ordered.*'purpose'.*categorical: use Categorical"),
        ("owner", shift, "shift.*'owner'"),
    ],
)
def test_mixed_refuses_a_part_of_the_wrong_kind_and_says_what_is_possible(name: str, part: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        Mixed({name: part}).bind(SCHEMA)


@pytest.mark.parametrize("columns", [{"income": 3.0}, {"income": None}, {"income": Gaussian}, {"income": Mixed({})}, 3])
def test_mixed_refuses_what_is_no_perturbation_of_a_column(columns: Any) -> None:
    with pytest.raises(TypeError, match="perturbation"):
        Mixed(columns)


def test_mixed_refuses_others_that_are_no_perturbation() -> None:
    with pytest.raises(TypeError, match="'others'"):
        Mixed({}, 0.1)  # type: ignore[arg-type]


def test_mixed_says_what_it_lacks() -> None:
    small = Schema({name: SCHEMA[name] for name in SCHEMA.names[:4]})
    for method in (lambda mixed: mixed.fit(PEOPLE), lambda mixed: mixed(PEOPLE, rng())):
        with pytest.raises(ValueError, match=r"bind\(schema\)"):
            method(Mixed({"income": Gaussian(1.0)}))
        with pytest.raises(ValueError, match="4 columns"):
            method(Mixed({"income": Gaussian(1.0)}).bind(small))


def test_mixed_does_not_carry_what_it_learned_to_other_levels() -> None:
    fitted = everything()
    turned = SCHEMA.with_columns(purpose=Column("categorical", levels=["house", "car", None, "boat"]))
    with pytest.raises(ValueError, match=r"'purpose'.*not bound"):
        fitted.bind(turned)
    heavier = SCHEMA.with_columns(purpose=Column("categorical", levels=["car", "house", None, "boat"], weight=2.0))
    assert_array_equal(fitted.bind(heavier)(PEOPLE, rng()), fitted(PEOPLE, rng()))


# --- What suits a schema ----------------------------------------------------------------------------------------------


def test_the_default_suits_each_kind() -> None:
    mixed = Mixed.default(SCHEMA, probability=0.25, noise=0.3)
    kinds = {name: type(part) for name, part in mixed.columns.items()}
    assert kinds == {
        "income": Relative,
        "children": Count,
        "grade": Ordered,
        "purpose": Categorical,
        "owner": Categorical,
    }
    person = np.tile([2500.0, 7.0, 1.0, 3.0, 0.0], (MANY, 1))
    moved = mixed.fit(PEOPLE)(person, rng())
    inside = (moved[:, 0] > 0.0) & (moved[:, 0] < 5000.0)
    assert inside.all()
    assert_allclose(moved[:, 0].std(), 0.3 * PEOPLE[:, 0].std(), rtol=5 / np.sqrt(2 * MANY))
    assert_meets(moved[:, 1] - 6.0, np.full(3, 1 / 3))
    assert_meets(moved[:, 2], [0.125, 0.75, 0.125, 0.0])
    for j in (3, 4):
        assert_meets((moved[:, j] != person[:, j]).astype(int), [0.75, 0.25])
    assert not (moved[:, 3] == 2).any()


def test_the_default_refuses_impossible_amounts() -> None:
    numbers = Schema({"income": Column("numeric")})
    with pytest.raises(ValueError, match="noise"):
        Mixed.default(numbers, noise=-0.1)
    with pytest.raises(ValueError, match="probability"):
        Mixed.default(numbers, probability=2.0)


def test_bound_binds_or_passes_on() -> None:
    assert bound(Mixed({"income": Count(1)}), SCHEMA).schema is SCHEMA  # type: ignore[attr-defined]
    numbers = Schema({"income": Column("numeric"), "children": Column("integer")})
    rows = Gaussian([1.0, 2.0])
    assert bound(rows, numbers) is rows
    assert bound(shift, numbers) is shift


@pytest.mark.parametrize(
    ("perturbation", "example"),
    [
        (Gaussian(0.01), r"Mixed\(\{'income': Gaussian\(\.\.\.\), 'grade': Ordered\(0\.05\)\}\)"),
        (shift, r"Mixed\(\{'income': shift, 'grade': Ordered\(0\.05\)\}\)"),
        (Categorical(0.05), r"Mixed\(\{'grade': Ordered\(0\.05\)\}\)"),
    ],
)
def test_bound_refuses_whole_rows_with_levels_and_shows_what_to_write(perturbation: Any, example: str) -> None:
    with pytest.raises(TypeError, match=f"cannot be done to levels.*grade, purpose, owner.*{example}"):
        bound(perturbation, SCHEMA)
