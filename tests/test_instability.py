"""Definition 2: what is measured, that it can be repeated, and that the intervals are honest."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand import (
    L2,
    Closest,
    External,
    Gaussian,
    HighDensity,
    Mask,
    Neighbor,
    Plausible,
    Relative,
    Steady,
    Uniform,
    instability,
)
from evenhand.perturbations import learned
from evenhand.stability.instability import Instability

COLUMNS = [
    "person",
    "draw",
    "target",
    "flipped",
    "status",
    "input_distance",
    "distance",
    "change_distance",
    "cost_gap",
    "jaccard",
    "amplification",
]
NUMBERS = COLUMNS[5:]


def linear(w, b=0.0) -> LogisticRegression:
    """The classifier that says 1 where w.x + b > 0."""
    w = np.asarray(w, dtype=float)
    model = LogisticRegression().fit(np.vstack([w, -w]), [1, 0])
    model.coef_, model.intercept_ = w[None], np.array([float(b)])
    return model


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X, y)
    return model, X, y


# --- What is measured -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_flip", ["swap", "keep", "skip"])
@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_every_number_by_hand(on_flip, cost) -> None:
    """One explanation at a time, by the definition, with nothing but explain() and predict()."""
    X = load_iris().data[::7]
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(*load_iris(return_X_y=True))
    explainer = Closest(cost).fit(model)
    moved = {}

    def noise(people, rng):
        found = people + 0.4 * rng.standard_normal(people.shape)
        moved.setdefault(people[0].tobytes(), []).append(found)
        return found

    found = instability(explainer, X, noise, draws=5, distance="l2", on_flip=on_flip, random_state=3)
    table = found.table
    assert list(table.columns) == COLUMNS
    assert len(table) == len(X) * 5
    assert 0 < table["flipped"].mean() < 1
    for row in table.itertuples():
        x0 = X[row.person]
        x = moved[x0.tobytes()][0][row.draw]
        first = explainer.explain(x0[None])
        own = model.predict(x0[None])[0]
        flipped = model.predict(x[None])[0] != own
        assert row.flipped == flipped
        if flipped and on_flip == "skip":
            assert row.status == "skipped"
            assert np.isnan(row.distance)
            continue
        target = own if flipped and on_flip == "swap" else first.target[0]
        assert row.target == target
        again = explainer.explain(x[None], target=target)
        assert row.status == again.status[0]
        told0, told = first.changes[0], again.changes[0]
        distance = np.linalg.norm(first.counterfactual[0] - again.counterfactual[0])
        assert row.distance == pytest.approx(distance, abs=1e-12)
        assert row.input_distance == pytest.approx(np.linalg.norm(x - x0))
        assert row.change_distance == pytest.approx(np.linalg.norm(told - told0), abs=1e-12)
        assert row.cost_gap == pytest.approx(abs(again.cost[0] - first.cost[0]), abs=1e-12)
        a, b = set(np.flatnonzero(told0)), set(np.flatnonzero(told))
        assert row.jaccard == pytest.approx(len(a & b) / len(a | b) if a | b else 1.0)
        assert row.amplification == pytest.approx(distance / np.linalg.norm(x - x0), abs=1e-12)


@pytest.mark.parametrize("d", [2, 6, 20])
def test_the_mean_meets_the_theorem(d) -> None:
    """Law 7: linear model, Gaussian noise, squared l2: tr S - w'Sw / |w|^2, within the confidence interval."""
    rng = np.random.default_rng(d)
    w = rng.normal(size=d)
    root = rng.normal(size=(d, d))
    S = root @ root.T / d
    X = rng.normal(size=(400, d))
    found = instability(
        Closest("l2").fit(linear(w)),
        X,
        Gaussian(S),
        draws=50,
        distance=lambda a, b: ((a - b) ** 2).sum(axis=1),
        random_state=0,
    )
    values = found.table["distance"].to_numpy()
    expected = np.trace(S) - w @ S @ w / (w @ w)
    assert abs(values.mean() - expected) < 4.5 * values.std() / np.sqrt(len(values))
    assert found.table["flipped"].any()  # a crossing person swaps its target, and the theorem still holds


def test_masking_that_changes_nothing_has_no_amplification() -> None:
    X = np.zeros((3, 4))
    found = instability(Closest().fit(linear([1.0, 2.0, 3.0, 4.0], -1.0)), X, Mask(2), draws=3, random_state=0)
    assert (found.table["input_distance"] == 0).all()
    assert (found.table["distance"] == 0).all()
    assert found.table["amplification"].isna().all()
    assert found.summary(measure="amplification")["median"].isna().all()


def test_people_without_an_explanation_stay_in_the_table(wine) -> None:
    model, X, _ = wine
    broken = X.iloc[:4].copy()
    broken.iloc[1, 2] = np.nan
    found = instability(Closest().fit(model), broken, Gaussian(0.01), draws=3, random_state=0)
    assert len(found.table) == 12
    bad = found.table[found.table["person"] == 1]
    assert (bad["status"] == "invalid").all()
    assert bad[NUMBERS].isna().all().all()
    assert found.summary()["not_found_rate"].item() == pytest.approx(0.25)
    assert found.people["found"].tolist() == [3, 0, 3, 3]


def test_a_generator_that_fails_sometimes_is_counted() -> None:
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=1000).fit(X, y)
    centre = {label: X[y == label].mean(axis=0) for label in range(3)}

    def half(people, label):
        answers = np.repeat(centre[label][None], len(people), axis=0)
        answers[people[:, 0] > 6] = np.nan
        answers[people[:, 1] > 3.5] = people[people[:, 1] > 3.5]  # "nothing has to change" is not true
        return answers

    found = instability(External(half).fit(model), X, Gaussian(0.01), draws=2, random_state=0)
    assert {"local", "missing", "rejected"} <= set(found.table["status"])
    bad = ~found.table["status"].isin(["local", "already"])
    assert found.table.loc[bad, "distance"].isna().all()
    assert found.summary()["not_found_rate"].item() == pytest.approx(bad.mean())


# --- The same numbers, however they are computed ----------------------------------------------------------------------


PERTURBATIONS = {
    "gaussian": lambda X: Gaussian(0.01),
    "uniform": lambda X: Uniform(0.1),
    "mask": lambda X: Mask(2, "mean"),
    "relative": lambda X: Relative(Gaussian(0.04)),
    "neighbor": lambda X: Neighbor(X, k=3),
}


@pytest.mark.parametrize("method", ["closest", "plausible", "steady"])
@pytest.mark.parametrize("kind", PERTURBATIONS)
def test_neither_jobs_nor_chunks_nor_order_matter(wine, kind, method) -> None:
    model, X, y = wine
    methods = {"closest": Closest(), "plausible": Plausible(HighDensity(components=[2])), "steady": Steady()}
    explainer = methods[method].fit(model, X, y)
    perturbation = learned(PERTURBATIONS[kind](X.to_numpy()), X.to_numpy())
    drawn = []

    def recorded(people, rng):
        moved = perturbation(people, rng)
        drawn[-1][people[0].tobytes()] = moved.copy()
        return moved

    def measured(rows, **more):
        drawn.append({})
        return instability(explainer, rows, recorded, **options, **more).table

    people = X.iloc[::5]
    options = {"target": "random", "draws": 7, "random_state": 11}
    first = measured(people)
    others = [
        measured(people, n_jobs=2),
        measured(people, chunk_size=5),
        measured(people.sample(frac=1.0, random_state=0), chunk_size=50),
        measured(people.iloc[10:]),
    ]
    for moved in drawn[1:]:
        for person, rows in moved.items():
            assert_array_equal(rows, drawn[0][person])  # the draws exactly
    for other in others:
        both = first.merge(other, on=["person", "draw"], suffixes=("", "_other"))
        assert len(both) == len(other)
        for column in ("target", "flipped", "status"):
            assert_array_equal(both[column], both[f"{column}_other"])
        for column in NUMBERS:
            assert_allclose(both[column], both[f"{column}_other"], rtol=1e-9, atol=1e-9)


def test_more_draws_begin_with_the_same_ones(wine) -> None:
    model, X, _ = wine
    explainer = Closest().fit(model)
    few, many = (
        instability(explainer, X[:5], Relative(Gaussian(0.01)), draws=n, random_state=0, reference=X) for n in (3, 200)
    )
    both = few.table.merge(many.table, on=["person", "draw"])
    assert_allclose(both["input_distance_x"], both["input_distance_y"], rtol=1e-14)


def test_seeds(wine) -> None:
    model, X, _ = wine
    explainer = Closest().fit(model)
    one = instability(explainer, X[:5], Gaussian(0.01))
    again = instability(explainer, X[:5], Gaussian(0.01), random_state=one.seed)
    other = instability(explainer, X[:5], Gaussian(0.01), random_state=one.seed + 1)
    pd.testing.assert_frame_equal(one.table, again.table)
    assert (one.table["distance"] != other.table["distance"]).all()
    drawn = instability(explainer, X[:5], Gaussian(0.01), random_state=np.random.default_rng(0))
    same = instability(explainer, X[:5], Gaussian(0.01), random_state=np.random.default_rng(0))
    pd.testing.assert_frame_equal(drawn.table, same.table)


def test_people_with_the_same_label_have_draws_of_their_own(wine) -> None:
    model, X, _ = wine
    twice = pd.concat([X[:1], X[:1]])
    found = instability(Closest().fit(model), twice, Gaussian(0.01), random_state=0).table
    assert found["input_distance"].nunique() == 2


# --- Summaries --------------------------------------------------------------------------------------------------------


def test_people_and_draws_agree(wine) -> None:
    model, X, _ = wine
    explainer = Closest().fit(model)
    options = {"draws": 20, "random_state": 0, "on_flip": "skip"}
    draws = instability(explainer, X, Gaussian(0.25), **options)
    people = instability(explainer, X, Gaussian(0.25), keep="people", chunk_size=100, **options)
    pd.testing.assert_frame_equal(draws.people, people.people)
    table = draws.table.groupby("person")
    for column in NUMBERS:
        assert_allclose(people.people[column], table[column].mean())
    assert_allclose(people.people["distance_median"], table["distance"].median())
    assert_allclose(people.people["distance_p95"], table["distance"].quantile(0.95))
    assert_allclose(people.people["distance_max"], table["distance"].max())
    assert_array_equal(people.people["flips"], table["flipped"].sum())
    with pytest.raises(ValueError, match="not kept"):
        _ = people.table
    one, other = draws.summary(), people.summary()
    assert one["mean"].item() == pytest.approx(draws.table["distance"].mean())
    assert other["median"].item() == pytest.approx(people.people["distance"].median())
    assert (one["of"].item(), other["of"].item()) == ("draws", "people")
    for rate in ("flip_rate", "skip_rate", "not_found_rate", "floor", "draws", "people"):
        assert one[rate].item() == pytest.approx(other[rate].item())
    assert one["skip_rate"].item() == one["flip_rate"].item() > 0


def test_summary_by_group(wine) -> None:
    model, X, y = wine
    found = instability(Closest().fit(model), X, Gaussian(0.25), draws=4, random_state=0)
    by_class = found.summary(by=y)
    assert by_class.index.tolist() == [0, 1, 2]
    for label, row in by_class.iterrows():
        mine = found.table[np.isin(found.table["person"], X.index[y == label])]
        assert row["median"] == pytest.approx(mine["distance"].median())
        assert row["p95"] == pytest.approx(mine["distance"].quantile(0.95), rel=0.02)
        assert row["median_low"] <= row["median"] <= row["median_high"]
        assert row["people"] == (y == label).sum()
    assert found.summary(by="flipped").index.name == "flipped"
    assert found.summary(by="target")["draws"].sum() == len(found.table)


def test_pooled_folds(wine) -> None:
    model, X, _ = wine
    explainer = Closest().fit(model)
    parts = {fold: instability(explainer, X[fold::2], Gaussian(0.1), draws=3, random_state=0) for fold in (0, 1)}
    whole = Instability.pool(parts)
    assert list(whole.table.columns) == ["fold", *COLUMNS]
    assert len(whole.people) == len(X)
    summary = whole.summary(by="fold")
    for fold, part in parts.items():
        assert summary.loc[fold, "median"] == pytest.approx(part.summary()["median"].item())
    assert whole.summary()["people"].item() == len(X)


def test_draws_until_the_interval_is_narrow(wine) -> None:
    model, X, _ = wine
    explainer = Closest().fit(model)
    found = instability(explainer, X[:20], Gaussian(0.1), draws="auto", tolerance=0.01, random_state=0)
    assert found.settled
    assert found.half_width <= 0.01 * found.people["distance"].mean()
    assert 8 < found.draws < 1024
    cut = instability(explainer, X[:20], Gaussian(0.1), draws="auto", tolerance=1e-4, max_draws=16, random_state=0)
    assert not cut.settled
    assert cut.draws == 16
    # The interval is that of the draws: more of them from other seeds fall inside as often as promised.
    truth = instability(explainer, X[:20], Gaussian(0.1), draws=4000, random_state=1).people["distance"].mean()
    inside = [
        abs(part.people["distance"].mean() - truth) <= part.half_width
        for part in (instability(explainer, X[:20], Gaussian(0.1), draws=20, random_state=s) for s in range(100, 300))
    ]
    assert 0.90 <= np.mean(inside) <= 0.99


@pytest.mark.slow
def test_intervals_cover() -> None:
    """On a linear model the squared distance has a known mean and median: 95 % intervals cover them in 93-97 %."""
    d, people, repetitions = 6, 60, 1000
    rng = np.random.default_rng(0)
    w = rng.normal(size=d)
    explainer = Closest("l2").fit(linear(w, 100.0))
    X = rng.normal(size=(repetitions * people, d))
    squared = (
        instability(
            explainer, X, Gaussian(1.0), draws=2, distance=lambda a, b: ((a - b) ** 2).sum(axis=1), random_state=0
        )
        .table["distance"]
        .to_numpy()
    )
    from scipy.stats import chi2

    from evenhand.stats import cluster_bootstrap

    truth = {"mean": d - 1.0, "median": chi2.median(d - 1)}
    covered = dict.fromkeys(truth, 0)
    cluster = np.repeat(np.arange(people), 2)
    for part in squared.reshape(repetitions, -1):
        found = cluster_bootstrap(part, cluster, tuple(truth), resamples=500)
        for name, value in truth.items():
            covered[name] += found[name].low <= value <= found[name].high
    for name, count in covered.items():
        assert 0.93 <= count / repetitions <= 0.97, (name, count)


def test_the_floor_shows_what_depends_on_the_run() -> None:
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=1000).fit(X, y)
    calls = []

    def restless(people, label):
        calls.append(label)
        return X[y == label].mean(axis=0) + 0 * people + 1e-3 * len(calls)

    assert instability(External(restless).fit(model), X, Gaussian(0.01), random_state=0).summary()["floor"].item() > 0
    assert instability(Closest().fit(model), X, Gaussian(0.01), random_state=0).summary()["floor"].item() == 0


def test_reprs(wine) -> None:
    model, X, _ = wine
    found = instability(Closest().fit(model), X[:3], Gaussian(0.01), random_state=0)
    assert "3 people x 1 draws" in repr(found)
    assert "<table" in found._repr_html_()


# --- What can go wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"draws": 0}, "draws must be"),
        ({"draws": 1.5}, "draws must be"),
        ({"draws": True}, "draws must be"),
        ({"draws": "many"}, "draws must be"),
        ({"draws": "auto", "tolerance": 0.0}, "tolerance"),
        ({"on_flip": "flip"}, "on_flip"),
        ({"keep": "nothing"}, "keep"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": "seed"}, "random_state"),
        ({"distance": "l3"}, "distance"),
        ({"chunk_size": 0}, "chunk_size"),
        ({"target": "no such label"}, "label"),
        ({"perturbation": Mask(14)}, "14 features"),
        ({"perturbation": Gaussian(np.ones(3))}, "3 features"),
        ({"perturbation": lambda X, rng: X[:, 1:]}, "returned shape"),
        ({"perturbation": lambda X, rng: X * np.nan}, "NaN"),
    ],
)
def test_bad_input(wine, options, text) -> None:
    model, X, _ = wine
    perturbation = options.pop("perturbation", Gaussian(0.01)) if "perturbation" in options else Gaussian(0.01)
    with pytest.raises(ValueError, match=text):
        instability(Closest().fit(model), X[:3], perturbation, **options)


def test_bad_summaries(wine) -> None:
    model, X, _ = wine
    found = instability(Closest().fit(model), X[:3], Gaussian(0.01), random_state=0)
    with pytest.raises(ValueError, match="measure"):
        found.summary(measure="speed")
    with pytest.raises(ValueError, match="no column"):
        found.summary(by="speed")
    with pytest.raises(ValueError, match="one value per person"):
        found.summary(by=np.zeros(2))
    with pytest.raises(ValueError, match="empty"):
        Instability.pool({})


def test_nobody(wine) -> None:
    model, X, _ = wine
    found = instability(Closest().fit(model), X[:0], Gaussian(0.01), random_state=0)
    assert list(found.table.columns) == COLUMNS
    assert len(found.table) == len(found.people) == 0
    assert "0 people" in repr(found)


def test_weighted_distances(wine) -> None:
    model, X, _ = wine
    weights = 1 / X.var().to_numpy()
    found = instability(
        Closest().fit(model), X[:5], Relative(Gaussian(0.01)), distance=L2(weights), random_state=0, reference=X
    )
    assert 0.1 < found.table["input_distance"].median() / (0.1 * np.sqrt(13)) < 2


def test_nobody_is_dropped_from_groups(wine) -> None:
    model, X, _ = wine
    broken = X.iloc[:6].copy()
    broken.iloc[1, 2] = np.nan
    found = instability(Closest().fit(model), broken, Gaussian(0.25), draws=3, random_state=0)
    by_target = found.summary(by="target")
    assert by_target["draws"].sum() == 18
    assert by_target["not_found_rate"].max() == 1.0
    by_group = found.summary(by=np.array(["a", None, "a", np.nan, "b", "b"], dtype=object))
    assert by_group["people"].sum() == 6


def test_flips_are_counted_among_the_draws_that_were_made(wine) -> None:
    model, X, _ = wine
    explainer = Closest().fit(model)
    whole = instability(explainer, X, Gaussian(1.0), draws=3, random_state=0)
    half = pd.concat([X, X * np.nan]).reset_index(drop=True)
    for keep in ("draws", "people"):
        padded = instability(explainer, half, Gaussian(1.0), draws=3, random_state=0, keep=keep)
        assert padded.summary()["flip_rate"].item() == pytest.approx(whole.summary()["flip_rate"].item())
        assert padded.summary()["not_found_rate"].item() == pytest.approx(0.5)


def test_nothing_settles_without_a_measurement() -> None:
    X = np.array([[-1e-9], [1e-9]])
    explainer = Closest("l2").fit(linear([1.0]))
    always = instability(
        explainer, X, lambda people, rng: -people, draws="auto", on_flip="skip", max_draws=16, random_state=0
    )
    assert not always.people["found"].any()
    assert np.isnan(always.half_width)


def test_a_person_is_the_same_in_any_index(wine) -> None:
    """1 is 1, whether the others are numbers, missing, or text."""
    model, X, _ = wine
    explainer = Closest().fit(model)

    def distance(index) -> float:
        frame = X[: len(index)].set_axis(pd.Index(index))
        return instability(explainer, frame, Gaussian(0.01), random_state=0).table["input_distance"].iloc[0]

    one = distance([1, 2, 3])
    assert one == distance([1.0, 2.5, 3.0]) == distance([1, "x", None]) == distance([1.0, np.nan])
    assert one != distance(["1", "2"])
    assert one != distance([4, 2])


def test_noise_in_units_of_the_data_does_not_depend_on_the_order(wine) -> None:
    model, X, _ = wine
    explainer = Closest().fit(model)
    for perturbation in (Relative(Gaussian(0.01)), Mask(3, "mean")):
        one = instability(explainer, X, perturbation, random_state=0).table.set_index("person")
        other = instability(explainer, X.sample(frac=1, random_state=1), perturbation, random_state=0).table
        assert_allclose(one["input_distance"], other.set_index("person").loc[one.index, "input_distance"], rtol=1e-13)


def test_what_has_labels_follows_them(wine) -> None:
    """Weights, targets, groups and neighbours that come as pandas objects are matched by label, not by position."""
    model, X, _ = wine
    weights = 1 / X.var()
    for cost in (L2(weights), L2(weights[::-1])):
        assert_allclose(
            Closest(cost).fit(model).explain(X[:5]).cost, Closest(L2(weights.to_numpy())).fit(model).explain(X[:5]).cost
        )
    with pytest.raises(ValueError, match="different names"):
        Closest(L2(weights.rename(index={"hue": "colour"}))).fit(model)
    named = X[:6].set_axis(list("abcdef"))
    explainer = Closest().fit(model)
    target = pd.Series([0, 1, 2, 0, 1, 2], index=named.index)
    assert_array_equal(explainer.explain(named, target[::-1]).target, explainer.explain(named, target).target)
    with pytest.raises(ValueError, match="no value for the person"):
        explainer.explain(named, target.set_axis(list("abcdeg")))
    one = instability(explainer, named, Neighbor(X, 3), random_state=0)
    other = instability(explainer, named, Neighbor(X[X.columns[::-1]], 3), random_state=0)
    assert_allclose(one.table["input_distance"], other.table["input_distance"])
    groups = pd.Series(list("xxyyzz"), index=named.index)
    pd.testing.assert_frame_equal(one.summary(by=groups), one.summary(by=groups[::-1]))
    with pytest.raises(TypeError, match="labels"):
        Mask(2, X.mean())


def test_what_is_not_fitted_is_refused(wine) -> None:
    model, X, _ = wine
    for wrong, text in ((Closest(), "Fit it first"), (model, "by a method")):
        with pytest.raises(TypeError, match=text):
            instability(wrong, X, Gaussian(0.01))
    for wrong in ("gaussian", None, Gaussian):
        with pytest.raises(TypeError, match="perturbation must be"):
            instability(Closest().fit(model), X, wrong)
    with pytest.raises(ValueError, match="reference"):
        instability(Closest().fit(model), X[:1], Relative(Gaussian(0.01)))
    with pytest.raises(ValueError, match="one number per row"):
        instability(Closest().fit(model), X[:3], Gaussian(0.01), distance=lambda a, b: np.zeros(2))
    assert len(instability(Closest().fit(model), X[:0], Relative(Gaussian(0.01)), random_state=0).table) == 0
