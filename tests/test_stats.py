"""Intervals cover, and the short cuts give what the long way gives."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from evenhand.stats import (
    Interval,
    cluster_bootstrap,
    hodges_lehmann,
    paired_bootstrap,
    resampling,
    share_interval,
    signed_rank,
)

ALL = ("median", "mean", "p95")
numbers = st.floats(-1e6, 1e6, allow_subnormal=False)
few_numbers = st.integers(-3, 3).map(float)  # ties


def normal(rng, people):
    return rng.normal(size=people), np.arange(people)


def person_effect(rng, people):
    person = np.repeat(np.arange(people), 5)
    return rng.normal(size=people)[person] + rng.normal(size=5 * people), person


def squared_distance(rng, people):
    person = np.repeat(np.arange(people), 5)
    return np.exp(0.3 * rng.normal(size=people))[person] * rng.chisquare(9, 5 * people), person


def gaussian_norm(rng, people):
    values, person = squared_distance(rng, people)
    return np.sqrt(values), person


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "people"), [(normal, 100), (person_effect, 200), (squared_distance, 200), (gaussian_norm, 200)]
)
def test_intervals_hold_the_truth_as_often_as_they_say(draw, people):
    population, _ = draw(np.random.default_rng(0), 1_000_000)
    truth = {"median": np.median(population), "mean": population.mean(), "p95": np.quantile(population, 0.95)}
    rng = np.random.default_rng(1)
    hits = dict.fromkeys(ALL, 0)
    for repetition in range(1000):
        result = cluster_bootstrap(*draw(rng, people), ALL, resamples=500, seed=repetition)
        for name, interval in result.items():
            hits[name] += interval.low <= truth[name] <= interval.high
    assert all(930 <= count <= 970 for count in hits.values()), hits


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["median", "mean"])
def test_paired_intervals_hold_the_truth(statistic):
    def draw(rng, people):
        person = np.repeat(np.arange(people), 5)
        size = np.exp(0.3 * rng.normal(size=people))[person]
        a = size * rng.chisquare(9, len(person))
        return a, 1.2 * size * rng.chisquare(9, len(person)), person

    measure = {"median": np.median, "mean": np.mean}[statistic]
    a, b, _ = draw(np.random.default_rng(0), 1_000_000)
    truth = measure(b) - measure(a)
    rng = np.random.default_rng(1)
    hits = 0
    for repetition in range(1000):
        interval = paired_bootstrap(*draw(rng, 100), statistic, resamples=300, seed=repetition)
        hits += interval.low <= truth <= interval.high
    assert 930 <= hits <= 970


def test_people_who_are_ignored_make_intervals_too_short():
    values, person = person_effect(np.random.default_rng(0), 200)
    for name in ALL:
        grouped = cluster_bootstrap(values, person, [name])[name]
        alone = cluster_bootstrap(values, np.arange(len(values)), [name])[name]
        assert grouped.value == alone.value
        assert grouped.high - grouped.low > 1.1 * (alone.high - alone.low)


@pytest.mark.parametrize(("statistic", "measure"), [("mean", np.mean), ("median", np.median)])
def test_scipy_finds_a_similar_interval_for_independent_values(statistic, measure):
    values = np.random.default_rng(3).chisquare(9, 1001)
    ours = cluster_bootstrap(values, np.arange(1001), [statistic])[statistic]
    theirs = scipy_stats.bootstrap((values,), measure, rng=np.random.default_rng(0), n_resamples=2000, batch=100)
    assert ours.value == pytest.approx(measure(values))
    width = ours.high - ours.low
    assert [ours.low, ours.high] == pytest.approx(list(theirs.confidence_interval), abs=0.1 * width)


def test_scipy_finds_a_similar_interval_for_a_paired_median():
    rng = np.random.default_rng(4)
    a = rng.chisquare(9, 801)
    b = a + rng.chisquare(2, 801)
    ours = paired_bootstrap(a, b, np.arange(801), "median")
    theirs = scipy_stats.bootstrap(
        (a, b),
        lambda x, y, axis: np.median(y, axis=axis) - np.median(x, axis=axis),
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=2000,
        batch=100,
        rng=np.random.default_rng(0),
    )
    width = ours.high - ours.low
    assert [ours.low, ours.high] == pytest.approx(list(theirs.confidence_interval), abs=0.1 * width)


def test_mean_without_skewness_is_students_interval():
    half = np.random.default_rng(5).normal(size=20)
    values = np.concatenate([half, -half])
    ours = cluster_bootstrap(values, np.arange(40), ["mean"])["mean"]
    theirs = scipy_stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert [ours.low, ours.high] == pytest.approx([theirs.low, theirs.high])


@given(
    st.lists(st.tuples(numbers | few_numbers, st.integers(0, 5)), min_size=1, max_size=40),
    st.lists(st.integers(0, 4), min_size=6, max_size=6),
    st.sampled_from([0.5, 0.95]),
)
def test_quantile_of_a_resample_is_numpys_on_repeated_rows(rows, weights, level):
    values = np.array([value for value, _ in rows])
    person = np.unique([code for _, code in rows], return_inverse=True)[1]
    weights = np.array(weights[: person.max() + 1])
    repeated = np.repeat(values, weights[person])
    if len(repeated) == 0:
        return
    ours = resampling.Resampled(values, person, level).quantiles(weights[np.newaxis].astype(float))[0]
    assert ours == pytest.approx(np.quantile(repeated, level), rel=1e-9, abs=1e-9)


def test_quantile_of_a_resample_is_found_inside_and_outside_the_usual_range():
    rng = np.random.default_rng(6)
    values, person = rng.normal(size=20_000), rng.integers(500, size=20_000)
    values += 0.1 * person
    resampled = resampling.Resampled(values, person, 0.5)
    assert 0 < resampled.start < resampled.stop < 20_000
    usual = np.bincount(rng.integers(500, size=500), minlength=500)
    for weights in (usual, 1 * (np.arange(500) < 20), 1 * (np.arange(500) > 480)):
        expected = np.quantile(np.repeat(values, weights[person]), 0.5)
        assert resampled.quantiles(weights[np.newaxis].astype(float)) == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.tuples(numbers | few_numbers, st.integers(0, 6)), min_size=2, max_size=30))
def test_intervals_enclose_the_value_and_move_with_the_unit(rows):
    values = np.array([value for value, _ in rows])
    person = np.array([code for _, code in rows])
    plain = cluster_bootstrap(values, person, ALL, resamples=50)
    scaled = cluster_bootstrap(4.0 * values, person, ALL, resamples=50)
    expected = {"median": np.median(values), "mean": values.mean(), "p95": np.quantile(values, 0.95)}
    for name, interval in plain.items():
        assert interval.value == pytest.approx(expected[name], rel=1e-9, abs=1e-9)
        assert scaled[name] == pytest.approx([4.0 * end for end in interval], rel=1e-9, abs=1e-6, nan_ok=True)
        if len(set(person.tolist())) > 1:
            assert interval.low <= interval.value <= interval.high


def test_a_tie_at_the_median_does_not_hide_that_it_may_move():
    zeros_and_ones = np.repeat([0.0, 1.0], [49, 51])
    assert cluster_bootstrap(zeros_and_ones, np.arange(100), ["median"])["median"] == (1.0, 0.0, 1.0)


def test_seed_decides():
    values, person = person_effect(np.random.default_rng(7), 50)
    first, again = (cluster_bootstrap(values, person, ALL, seed=3, resamples=100) for _ in range(2))
    assert first == again
    assert first["p95"] != cluster_bootstrap(values, person, ALL, seed=4, resamples=100)["p95"]


def test_how_many_resamples_are_done_at_once_does_not_matter(monkeypatch):
    values, person = person_effect(np.random.default_rng(7), 51)
    together = cluster_bootstrap(values, person, ALL), paired_bootstrap(values, values**2, person, "median")
    monkeypatch.setattr(resampling, "_BLOCK", 1)
    alone = cluster_bootstrap(values, person, ALL), paired_bootstrap(values, values**2, person, "median")
    for name in ALL:
        assert together[0][name] == pytest.approx(alone[0][name])
    assert together[1] == pytest.approx(alone[1])


def test_more_confidence_is_a_wider_interval_and_codes_may_have_gaps():
    values, person = person_effect(np.random.default_rng(8), 50)
    narrow = cluster_bootstrap(values, person, ALL, confidence=0.5)
    wide = cluster_bootstrap(values, 7 * person, ALL, confidence=0.99)
    for name in ALL:
        assert wide[name].low < narrow[name].low < narrow[name].high < wide[name].high


@pytest.mark.parametrize("constant", [0.0, 0.1, -1e12, 1e-200])
def test_constant_values_have_no_width(constant):
    values, person = np.full(60, constant), np.repeat(np.arange(20), 3)
    for interval in cluster_bootstrap(values, person, ALL).values():
        assert interval == (constant, constant, constant)
    assert paired_bootstrap(values, values, person, "median") == (0.0, 0.0, 0.0)


def test_one_person_says_nothing_about_others_and_nobody_says_nothing():
    for interval in cluster_bootstrap([1.0, 2.0, 3.0], [4, 4, 4], ["median", "mean"]).values():
        assert interval == pytest.approx((2.0, math.nan, math.nan), nan_ok=True)
    for name in ("median", "mean"):
        paired = paired_bootstrap([1.0, 2.0], [2.0, 3.0], [0, 0], name)
        assert paired == pytest.approx((1.0, math.nan, math.nan), nan_ok=True)
        assert all(map(math.isnan, paired_bootstrap([], [], [], name)))
    for interval in cluster_bootstrap([], [], ALL).values():
        assert all(map(math.isnan, interval))


def test_a_million_people_are_resampled_less_often():
    assert resampling.affordable(2000, 100_000) == 2000
    assert resampling.affordable(2000, 400_000) == 1000
    assert resampling.affordable(2000, 10_000_000) == 400
    assert resampling.affordable(100, 10_000_000) == 100


@given(st.lists(numbers, min_size=1, max_size=60) | st.lists(few_numbers, min_size=1, max_size=60))
def test_hodges_lehmann_is_the_median_of_walsh_averages(differences):
    row, column = np.triu_indices(len(differences))
    sample = np.array(differences)
    assert hodges_lehmann(sample) == np.median((sample[row] + sample[column]) / 2)


@pytest.mark.parametrize("decimals", [0, 1, 15])
@pytest.mark.parametrize("n", [999, 1000, 1001, 1002])
def test_hodges_lehmann_of_many(n, decimals):
    sample = np.round(np.random.default_rng(n).standard_cauchy(n), decimals)
    row, column = np.triu_indices(n)
    assert hodges_lehmann(sample) == np.median((sample[row] + sample[column]) / 2)


def test_hodges_lehmann_of_none_is_nan():
    assert math.isnan(hodges_lehmann([]))


def test_signed_rank_is_scipys():
    sample = np.random.default_rng(9).normal(0.2, size=80)
    assert signed_rank(sample) == scipy_stats.wilcoxon(sample).pvalue
    sample[:20] = 0.0
    assert signed_rank(sample) == scipy_stats.wilcoxon(sample, zero_method="pratt").pvalue


@given(st.lists(few_numbers, min_size=1, max_size=6))
def test_signed_rank_of_few_counts_the_signs(differences):
    sample = np.array(differences)
    ranks = scipy_stats.rankdata(np.abs(sample))[sample != 0]
    if len(ranks) == 0:
        assert signed_rank(sample) == 1.0
        return
    signs = 1 - 2 * np.array(np.meshgrid(*[[0, 1]] * len(ranks))).reshape(len(ranks), -1)
    observed = abs(ranks @ np.sign(sample[sample != 0]))
    expected = np.mean(np.abs(ranks @ signs) >= observed - 1e-9)
    assert signed_rank(sample) == pytest.approx(expected)


def test_signed_rank_without_evidence():
    assert signed_rank(np.zeros(30)) == 1.0
    assert signed_rank([2.0]) == 1.0
    assert math.isnan(signed_rank([]))


@pytest.mark.parametrize(("successes", "total"), [(0, 1), (0, 50), (50, 50), (3, 20), (499, 100_000)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_share_is_scipys_wilson(successes, total, confidence):
    ours = share_interval(successes, total, confidence)
    theirs = scipy_stats.binomtest(successes, total).proportion_ci(confidence, method="wilson")
    assert ours == pytest.approx((successes / total, theirs.low, theirs.high))
    assert 0 <= ours.low <= ours.value <= ours.high <= 1


def test_share_of_nothing_is_nan():
    assert all(map(math.isnan, share_interval(0, 0)))
    assert isinstance(share_interval(1, 2), Interval)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cluster_bootstrap([1.0], [0], ["mode"]), "Unknown statistic 'mode'; possible are 'median', 'mean'"),
        (lambda: cluster_bootstrap([1.0], [0], "medium"), "Unknown statistic 'medium'"),
        (lambda: cluster_bootstrap([1.0, 2.0], [0], ["mean"]), r"one code per value: got shape \(1,\) for 2 values"),
        (lambda: cluster_bootstrap([[1.0]], [0], ["mean"]), r"one number per row, got an array of shape \(1, 1\)"),
        (lambda: cluster_bootstrap([1.0, math.nan], [0, 1], ["mean"]), "finite, got nan in row 1"),
        (lambda: cluster_bootstrap([1.0, math.inf], [0, 1], ["mean"]), "finite, got inf in row 1"),
        (lambda: cluster_bootstrap([1.0], [0.5], ["mean"]), "integer codes, got float64"),
        (lambda: cluster_bootstrap([1.0], [-1], ["mean"]), "codes from 0, got -1"),
        (lambda: cluster_bootstrap([1.0], [0], ["mean"], confidence=95), "between 0 and 1, got 95"),
        (lambda: cluster_bootstrap([1.0], [0], ["mean"], resamples=0), "at least 1, got 0"),
        (lambda: paired_bootstrap([1.0], [1.0], [0], "p95"), "Unknown statistic 'p95'; possible are 'median', 'mean'"),
        (lambda: paired_bootstrap([1.0], [1.0, 2.0], [0], "mean"), "a has 1 values, b has 2"),
        (lambda: paired_bootstrap([1.0], [math.nan], [0], "mean"), "b must be finite"),
        (lambda: hodges_lehmann([math.nan]), "differences must be finite"),
        (lambda: signed_rank([1.0, math.nan]), "differences must be finite"),
        (lambda: share_interval(3, 2), "between 0 and total, got 3 of 2"),
        (lambda: share_interval(-1, 2), "got -1 of 2"),
        (lambda: share_interval(1, 2, 1.0), "between 0 and 1, got 1.0"),
    ],
)
def test_errors_say_what_was_got(call, message):
    with pytest.raises(ValueError, match=message):
        call()
