"""Paired comparisons: who is better off, by how much, and whether that can be chance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import wilcoxon
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from evenhand import Closest, Gaussian, HighDensity, Plausible, compare, instability
from evenhand.stability.instability import Instability


@pytest.fixture(scope="module")
def pair():
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=1000).fit(X, y)
    frame = pd.DataFrame(X, index=[f"p{i}" for i in range(len(X))])
    options = {"draws": 3, "random_state": 0, "target": "random"}
    closest = instability(Closest("l2").fit(model), frame, Gaussian(0.01), **options)
    plausible = instability(
        Plausible(HighDensity(components=[1]), "l2").fit(model, X, y), frame, Gaussian(0.01), **options
    )
    return closest, plausible


def test_every_number_by_hand(pair) -> None:
    a, b = pair
    found = compare(a, b, names=("closest", "plausible"))
    left, right = a.table, b.table
    assert found.pairs == len(left) == 450
    assert found.people == 150
    assert found.median_a.value == pytest.approx(left["distance"].median())
    assert found.median_b.value == pytest.approx(right["distance"].median())
    assert found.difference.value == pytest.approx(right["distance"].median() - left["distance"].median())
    people = right.groupby("person")["distance"].mean() - left.groupby("person")["distance"].mean()
    d = people.to_numpy()
    assert_allclose(np.sort(found.differences), np.sort(d), atol=1e-12)
    i, j = np.triu_indices(len(d))
    assert found.shift == pytest.approx(np.median((d[i] + d[j]) / 2))
    assert found.p_value == pytest.approx(wilcoxon(d, zero_method="pratt").pvalue, rel=1e-6)
    assert found.better.value == pytest.approx((d < 0).mean())
    assert found.worse.value == pytest.approx((d > 0).mean())
    assert found.better.low < found.better.value < found.better.high
    assert found.difference.low <= found.difference.value <= found.difference.high


def test_the_order_of_rows_does_not_matter(pair) -> None:
    a, b = pair
    mixed = Instability(
        b.people,
        b.draws,
        b.seed,
        _table=b.table.sample(frac=1.0, random_state=0).reset_index(drop=True),
        _person=b._person,
    )
    assert compare(a, mixed).shift == pytest.approx(compare(a, b).shift)


def test_the_sentence_says_what_was_found(pair) -> None:
    a, b = pair
    forth, back = compare(a, b, names=("closest", "plausible")), compare(b, a, names=("plausible", "closest"))
    assert forth.shift == pytest.approx(-back.shift)
    assert forth.better.value == pytest.approx(back.worse.value)
    lower = "lower" if forth.shift < 0 else "higher"
    assert lower in forth.sentence
    assert "closest" in forth.sentence
    assert "Wilcoxon p" in forth.sentence
    assert str(forth) == forth.sentence
    same = compare(a, a)
    assert same.p_value == 1.0
    assert same.better.value == same.worse.value == 0
    assert "no difference" in same.sentence
    assert "<table" in forth._repr_html_()


def test_more_overlap_is_better(pair) -> None:
    a, b = pair
    found = compare(a, b, measure="jaccard")
    people = b.table.groupby("person")["jaccard"].mean() - a.table.groupby("person")["jaccard"].mean()
    assert found.better.value == pytest.approx((people > 1e-12).mean())


def test_what_cannot_be_paired_is_counted(pair) -> None:
    a, b = pair
    table = b.table.copy()
    table.loc[:9, "distance"] = np.nan
    fewer = Instability(b.people, b.draws, b.seed, _table=table.iloc[:-30], _person=b._person[:-30])
    found = compare(a, fewer)
    assert (found.only_a, found.only_b, found.neither) == (40, 0, 0)
    assert found.pairs == 410
    assert "Left out: 40 draws" in found.sentence
    nobody = Instability(b.people, b.draws, b.seed, _table=b.table.iloc[:0], _person=b._person[:0])
    empty = compare(a, nobody)
    assert empty.pairs == 0
    assert "nothing can be said" in empty.sentence


def test_folds_are_paired_apart(pair) -> None:
    a, b = pair
    whole = compare(Instability.pool({0: a, 1: b}), Instability.pool({0: b, 1: a}))
    assert whole.people == 300
    assert whole.shift == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(ValueError, match="folds"):
        compare(a, Instability.pool({0: b}))


def test_people_level_results_can_be_compared(pair) -> None:
    a, b = pair
    bare = [Instability(one.people, one.draws, one.seed) for one in (a, b)]
    found = compare(*bare)
    assert found.people == found.pairs == 150
    assert found.shift == pytest.approx(compare(a, b).shift)


def test_people_with_the_same_label_are_told_apart() -> None:
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=1000).fit(X, y)
    frame = pd.DataFrame(X[:20], index=["same"] * 20)
    one, other = (instability(Closest(c).fit(model), frame, Gaussian(0.01), random_state=0) for c in ("l1", "l2"))
    assert compare(one, other).people == 20


def test_bad_input(pair) -> None:
    a, b = pair
    with pytest.raises(TypeError, match="instability"):
        compare(a, b.table)
    with pytest.raises(ValueError, match="measure"):
        compare(a, b, measure="speed")
    other = Instability(b.people, b.draws, b.seed + 1, _table=b._table, _person=b._person)
    with pytest.raises(ValueError, match="different draws"):
        compare(a, other)


def test_a_few_people_decide_the_direction_where_most_are_the_same(pair) -> None:
    a, _ = pair
    table, people = a.table.copy(), a.people.copy()
    some = table["person"].isin(people["person"][:30])
    table.loc[some, "distance"] /= 2
    better = Instability(people, a.draws, a.seed, _table=table, _person=a._person)
    found = compare(a, better, names=("old", "new"))
    assert found.shift == 0
    assert "lower with new" in found.sentence
    assert "of 150 people 20% are better off with new, 0% worse" in found.sentence
    assert "higher with old" in compare(better, a, names=("new", "old")).sentence


@pytest.mark.parametrize("measure", ["distance", "amplification"])
def test_what_rounding_moves_has_not_moved(pair, measure: str) -> None:
    """Explanations that stay where they are, but for the last digits of one of the two."""
    a, _ = pair
    digits = np.random.default_rng(0).uniform(0.0, 1e-15, len(a.table))
    still, nearly = (
        Instability(a.people, a.draws, a.seed, _table=a.table.assign(**{measure: values}), _person=a._person)
        for values in (0.0, digits)
    )
    found = compare(still, nearly, measure=measure)
    assert (found.median_b.value, found.difference.high, found.shift) == (0.0, 0.0, 0.0)
    assert found.worse.value == 0.0
    assert f"no difference in {measure} is shown" in found.sentence


def test_other_noise_or_another_distance_cannot_be_paired() -> None:
    X, y = load_iris(return_X_y=True)
    explainer = Closest("l2").fit(LogisticRegression(max_iter=1000).fit(X, y))
    one = instability(explainer, X, Gaussian(0.01), random_state=0)
    for other in (
        instability(explainer, X, Gaussian(0.02), random_state=0),
        instability(explainer, X, Gaussian(0.01), random_state=0, distance="l2"),
    ):
        with pytest.raises(ValueError, match="input distances differ"):
            compare(one, other)
    seeds = {
        fold: instability(explainer, X[fold::2], Gaussian(0.01), random_state=seed) for fold, seed in ((0, 0), (1, 7))
    }
    assert Instability.pool(seeds).seed == (0, 7)
    with pytest.raises(ValueError, match="different draws"):
        compare(Instability.pool(seeds), Instability.pool({0: seeds[0], 1: seeds[0]}))


def test_people_without_a_label() -> None:
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=1000).fit(X, y)
    frame = pd.DataFrame(X[:4], index=[1.0, np.nan, 3.0, np.nan])
    one, other = (instability(Closest(c).fit(model), frame, Gaussian(0.01), random_state=0) for c in ("l1", "l2"))
    assert compare(one, other).people == 4
