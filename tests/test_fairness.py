"""Neighbours are those that a loop over all pairs finds, and intervals cover."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.costs import L1, L2, Gower
from evenhand.fairness import alike_pairs, bounds, group_gaps, grouped
from evenhand.fairness import neighbours as search
from evenhand.fairness.intervals import adjusted_difference, pair_share
from evenhand.fairness.neighbours import nearest
from evenhand.models import View
from evenhand.table.column import Column
from evenhand.table.people import Reader
from evenhand.table.schema import Schema
from rotation import in_turn

LABELS = np.array([0, 1])


def levels(schema):
    """A view of a table with levels, without a pipeline behind it."""
    return View(None, LABELS, Reader(schema))


def plain(width):
    return View(None, LABELS, Reader(Schema.numbers(width)))


def level_distance(column, a, b):
    """Between two levels or -1, from the definition: the cheaper way, the weight if there is none."""
    if a == b:
        return 0.0
    if a < 0 or b < 0:
        return column.weight
    lost = [column.levels[i] is None for i in (a, b)]
    ways = []
    for (i, j), goal_lost, start_lost in (((a, b), lost[1], lost[0]), ((b, a), lost[0], lost[1])):
        if goal_lost:
            continue
        if column.costs is not None:
            ways.append(column.weight * column.costs[i][j])
        elif column.kind == "ordered" and not start_lost:
            ways.append(column.weight * abs(i - j))
        else:
            ways.append(column.weight)
    best = min(ways, default=math.inf)
    return best if math.isfinite(best) else column.weight


def loop_distance(distance, a, b):
    if isinstance(distance, Gower):
        total = 0.0
        for column, x, y in zip(distance.schema.columns.values(), a, b, strict=True):
            total += column.weight * abs(x - y) if column.is_number else level_distance(column, int(x), int(y))
        return total
    if isinstance(distance, L1):
        weights = np.ones(len(a)) if distance.weights is None else distance.weights
        return float(sum(w * abs(x - y) for w, x, y in zip(weights, a, b, strict=True)))
    omega = np.eye(len(a)) if distance.matrix is None else distance.matrix
    if distance.weights is not None:
        omega = np.diag(distance.weights)
    total = sum(omega[i, j] * (a[i] - b[i]) * (a[j] - b[j]) for i in range(len(a)) for j in range(len(a)))
    return math.sqrt(total)


def loop_pairs(X, told, decision, distance, k):
    """All unordered pairs of neighbours, and everybody's distance to the nearest."""
    usable = [i for i in range(len(X)) if np.isfinite(X[i]).all() and np.isfinite(told[i]).all()]
    edges, closest = set(), [math.nan] * len(X)
    for i in usable:
        others = sorted(
            (round(loop_distance(distance, X[i], X[j]), 10), j) for j in usable if j != i and decision[j] == decision[i]
        )
        if others:
            closest[i] = others[0][0]
        edges |= {(min(i, j), max(i, j)) for _, j in others[:k]}
    return sorted(edges), closest


@st.composite
def tables(draw):
    """Small tables of whole numbers and levels: ties and duplicates are everywhere."""
    weights = st.sampled_from([0.5, 1.0, 2.0, 3.0])
    columns = {}
    for j in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["numeric", "ordered", "categorical", "boolean", "costs", "gap"]))
        size = draw(st.integers(2, 4))
        if kind == "numeric":
            column = Column("numeric", weight=draw(weights))
        elif kind == "boolean":
            column = Column("boolean", weight=draw(weights))
        elif kind == "costs":
            cells = draw(st.lists(st.sampled_from([0.5, 1.0, 4.0, np.inf]), min_size=size**2, max_size=size**2))
            column = Column("categorical", range(size), costs=np.reshape(cells, (size, size)), weight=draw(weights))
        elif kind == "gap":
            column = Column(
                draw(st.sampled_from(["ordered", "categorical"])), [*range(size), None], weight=draw(weights)
            )
        else:
            column = Column(kind, range(size), weight=draw(weights))
        columns[f"c{j}"] = column
    schema = Schema(columns)
    n = draw(st.integers(0, 14))

    def table():
        cells = [
            draw(st.lists(st.integers(0, 4 if c.is_number else len(c.levels) - 1), min_size=n, max_size=n))
            for c in columns.values()
        ]
        return np.array(cells, dtype=float).T.reshape(n, len(columns))

    X, told = table(), table()
    for i in range(n):
        if draw(st.integers(0, 9)) == 0:
            told[i] = np.nan
        if draw(st.integers(0, 9)) == 0:
            X[i, 0] = np.inf
    decision = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)), dtype=int)
    return schema, X, told, decision


@given(tables(), st.integers(1, 6))
@settings(max_examples=150)
def test_pairs_are_those_of_a_loop_over_everybody(drawn, k):
    schema, X, told, decision = drawn
    cost = np.arange(len(X)) ** 2.0
    distance = Gower(schema)
    pairs = alike_pairs(X, told, cost, decision, distance, levels(schema), neighbours=k, within=2.0, apart=3.0)
    edges, closest = loop_pairs(X, told, decision, distance, k)
    assert list(zip(pairs.table["first"], pairs.table["second"], strict=True)) == edges
    np.testing.assert_allclose(pairs.nearest, closest)
    usable = np.isfinite(X).all(axis=1) & np.isfinite(told).all(axis=1)
    assert (pairs.people, pairs.left_out) == (usable.sum(), (~usable).sum())
    columns = list(schema.columns.values())
    for row in pairs.table.itertuples():
        i, j = row.first, row.second
        far, moved = loop_distance(distance, X[i], X[j]), loop_distance(distance, told[i], told[j])
        assert row.distance == pytest.approx(far)
        assert row.explanation_distance == pytest.approx(moved)
        assert row.cost_gap == abs(cost[i] - cost[j])
        assert row.alike == (far <= 2.0)
        assert row.broken == (far <= 2.0 and moved > 3.0)
        if far > 0:
            assert row.amplification == pytest.approx(moved / far)
        else:
            assert math.isnan(row.amplification) if moved == 0 else row.amplification == math.inf
        changes = [{}, {}]  # column -> direction or new level
        vectors = [[], []]
        for who, person in enumerate((i, j)):
            for c, column in enumerate(columns):
                x, y = X[person, c], told[person, c]
                vectors[who].append(y - x if column.is_number else (-1 if x == y else y))
                if x != y:
                    changes[who][c] = np.sign(y - x) if column.is_number else ("level", y)
        assert row.change_distance == pytest.approx(loop_distance(distance, *vectors))
        both, either = changes[0].keys() & changes[1].keys(), changes[0].keys() | changes[1].keys()
        assert row.jaccard == pytest.approx(len(both) / len(either) if either else 1.0)
        agree = not either or (both and all(changes[0][c] == changes[1][c] for c in both))
        assert row.different == (not agree)


@given(st.integers(0, 10**6), st.sampled_from(["l1", "l2", "weights", "matrix"]))
@settings(max_examples=30)
def test_pairs_of_plain_models(seed, kind):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 25)), int(rng.integers(1, 4))
    X, told = rng.normal(size=(2, n, d))
    root = rng.normal(size=(d, d))
    distance = {
        "l1": L1(rng.random(d) + 0.1),
        "l2": L2(),
        "weights": L2(weights=rng.random(d) + 0.1),
        "matrix": L2(matrix=root @ root.T + np.eye(d)),
    }[kind]
    decision = rng.integers(0, 3, n)
    pairs = alike_pairs(X, told, np.zeros(n), decision, distance, plain(d), neighbours=3)
    edges, closest = loop_pairs(X, told, decision, distance, 3)
    assert list(zip(pairs.table["first"], pairs.table["second"], strict=True)) == edges
    np.testing.assert_allclose(pairs.nearest, closest, atol=1e-9)
    if np.isfinite(closest).any():
        assert pairs.within == pytest.approx(np.nanmedian(closest))
        assert pairs.apart == 2 * pairs.within
    changes = told - X
    for row in pairs.table.itertuples():
        assert row.change_distance == pytest.approx(loop_distance(distance, changes[row.first], changes[row.second]))


def mixed_people(rng, n, tails=False):
    costs = rng.integers(1, 9, (4, 4)) / 4
    schema = Schema(
        {
            **{f"n{j}": Column("numeric", weight=float(rng.random() + 0.5)) for j in range(5)},
            **{f"c{j}": Column("categorical", range(4)) for j in range(3)},
            "rank": Column("ordered", range(5), weight=0.5),
            "price": Column("categorical", range(4), costs=costs),
            "place": Column("categorical", range(700)),
        }
    )
    numbers = rng.standard_t(1.2, (n, 5)) * 1000 if tails else rng.normal(size=(n, 5))
    levels = [rng.integers(0, 4, n) for _ in range(3)] + [rng.integers(0, m, n) for m in (5, 4, 700)]
    return Gower(schema), np.column_stack([numbers, *levels])


def everybody(X, distance, i):
    far = distance(np.repeat(X[i : i + 1], len(X), axis=0), X)
    far[i] = np.inf
    return far


@pytest.mark.parametrize("kind", ["normal", "tails", "repeated", "far away", "euclid", "mahalanobis", "levels"])
def test_many_leaves_find_what_one_row_against_all_finds(kind):
    rng = np.random.default_rng(3)
    distance, X = mixed_people(rng, 3000, tails=kind == "tails")
    if kind == "repeated":
        X = X[rng.integers(0, 400, 3000)]
    if kind == "far away":
        X[:, 0] = 1e9 + rng.integers(0, 50, 3000)
    if kind in ("euclid", "mahalanobis"):
        X = X[:, :5] @ rng.normal(size=(5, 5)) + 1e4
        distance = L2() if kind == "euclid" else L2.mahalanobis(X)
    if kind == "levels":
        distance = Gower(Schema({f"c{j}": Column("categorical", range(4)) for j in range(6)}))
        X = rng.integers(0, 4, (3000, 6)).astype(float)
    positions, far = nearest(X, distance, 7)
    assert positions.shape == (3000, 7)
    for i in range(0, 3000, 61):
        truth = everybody(X, distance, i)
        best = np.lexsort((np.arange(3000), np.round(truth, 9)))[:7]
        np.testing.assert_allclose(far[i], truth[best], rtol=1e-12)
        if kind != "mahalanobis":
            assert positions[i].tolist() == best.tolist()


def test_neighbours_do_not_depend_on_blocks(monkeypatch):
    distance, X = mixed_people(np.random.default_rng(4), 400)
    X = np.vstack([X, X[:50]])
    whole = nearest(X, distance, 4)
    for name, value in {"LEAF": 8, "CROWD": 20, "ROWS": 3, "MANY": 1}.items():
        monkeypatch.setattr(search, name, value)
    monkeypatch.setattr(bounds, "LARGE", 6)
    for one, other in zip(whole, nearest(X, distance, 4), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(5)
    distance, X = mixed_people(rng, 500)
    told, cost, decision = X[rng.permutation(500)], rng.random(500), rng.integers(0, 2, 500)
    view = levels(distance.schema)
    order = rng.permutation(500)
    one = alike_pairs(X, told, cost, decision, distance, view)
    other = alike_pairs(X[order], told[order], cost[order], decision[order], distance, view)
    ends = np.sort(order[other.table[["first", "second"]].to_numpy()], axis=1)
    moved = other.table.assign(first=ends[:, 0], second=ends[:, 1]).sort_values(["first", "second"], ignore_index=True)
    pd.testing.assert_frame_equal(moved, one.table)
    assert one.within == other.within


def test_nobody_and_one_person():
    for n in (0, 1):
        X = np.zeros((n, 2))
        pairs = alike_pairs(X, X + 1, np.ones(n), np.zeros(n, dtype=int), L1(), plain(2))
        assert len(pairs.table) == 0
        assert pairs.people == n
        assert math.isnan(pairs.within)
        assert math.isnan(pairs.broken_share.value)
        assert len(pairs.worst(3)) == 0


def test_identical_people_with_different_explanations_break():
    X = np.zeros((2, 2))
    told = np.array([[1.0, 0.0], [0.0, 1.0]])
    pairs = alike_pairs(X, told, [1.0, 1.0], [0, 0], L1(), plain(2))
    row = pairs.table.iloc[0]
    assert (pairs.within, pairs.apart, row["amplification"]) == (0.0, 0.0, math.inf)
    assert row["broken"]
    assert row["different"]


def test_the_worst_pairs_have_nobody_twice_and_broken_ones_first():
    rng = np.random.default_rng(6)
    X = rng.random((60, 2))
    told = X + rng.choice([-1.0, 1.0], (60, 2)) * rng.random((60, 2))
    pairs = alike_pairs(X, told, np.ones(60), np.zeros(60, dtype=int), L1(), plain(2), apart=0.8)
    worst = pairs.worst(8)
    assert len(np.unique(worst[["first", "second"]])) == 2 * len(worst)
    assert worst["alike"].all()
    assert worst["broken"].is_monotonic_decreasing
    top = pairs.table[pairs.table["broken"] & pairs.table["different"]]
    assert worst["explanation_distance"].iloc[0] - worst["distance"].iloc[0] == pytest.approx(
        (top["explanation_distance"] - top["distance"]).max()
    )


def graph(rng, n, k=5):
    where = rng.random((n, 2))
    others, _ = nearest(where, L2(), k)
    edges = np.unique(np.sort(np.column_stack([np.repeat(np.arange(n), k), others.ravel()]), axis=1), axis=0)
    return where, edges[:, 0], edges[:, 1]


def odd_people(rng, where, a, b):
    odd = rng.random(len(where)) < 0.06
    return odd[a] | odd[b]


def odd_regions(rng, where, a, b):
    return (where[a, 0] < 0.3) & (where[b, 0] < 0.3)


def across_a_border(rng, where, a, b):
    side = np.sin(9 * where[:, 0]) + where[:, 1] > 0.7
    return side[a] != side[b]


@pytest.mark.parametrize(
    ("draw", "most"),
    [(odd_people, 395), (odd_regions, 400), (across_a_border, 400)],
    ids=["people", "regions", "border"],
)
def test_shares_of_pairs_hold_the_truth_as_often_as_they_say(draw, most):
    rng = np.random.default_rng(7)
    runs = []
    for _ in range(400):
        where, a, b = graph(rng, 200)
        runs.append(pair_share(draw(rng, where, a, b).astype(float), a, b, 0.95))
    truth = np.mean([run.value for run in runs])
    assert 368 <= sum(run.low <= truth <= run.high for run in runs) <= most


def test_a_share_without_hits_is_as_uncertain_as_half_as_many_pairs_as_people():
    share = pair_share(np.zeros(300), np.zeros(300, dtype=int), np.arange(1, 301), 0.95)
    assert share.value == share.low == 0.0
    assert share.high == pytest.approx(1.96**2 / (150.5 + 1.96**2), rel=1e-3)


def test_refusals():
    X = np.zeros((2, 1))
    with pytest.raises(TypeError, match="use L1"):
        alike_pairs(X, X, [0, 0], [0, 0], lambda a, b: a, plain(1))
    with pytest.raises(ValueError, match="at least 1"):
        alike_pairs(X, X, [0, 0], [0, 0], L1(), plain(1), neighbours=0)
    with pytest.raises(ValueError, match="a row per person"):
        alike_pairs(X, X, [0], [0, 0], L1(), plain(1))
    with pytest.raises(ValueError, match="belong together"):
        group_gaps(["a"], [1.0], [1.0], amplification=[1.0])
    with pytest.raises(ValueError, match="group has 1 people"):
        group_gaps(["a"], [1.0, 2.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="2 values, person 1"):
        group_gaps(["a"], [1.0], [1.0], amplification=[1.0, 2.0], person=[0])


def people_of_groups(rng, n=3000):
    """The group "far" is farther from the boundary, and "wronged" pays more at the same distance."""
    group = rng.choice(["near", "far", "wronged"], n)
    boundary = rng.gamma(4, 0.25, n) + 0.5 * (group == "far")
    cost = 1.5 * boundary * np.exp(0.2 * rng.normal(size=n)) + 0.4 * (group == "wronged")
    return group, cost, boundary


def test_a_wronged_group_is_found_and_a_distant_one_is_not_blamed():
    group, cost, boundary = people_of_groups(np.random.default_rng(8))
    found = {g.name: g for g in group_gaps(group, cost, boundary).groups}
    far, wronged, near = (found[name] for name in ("far", "wronged", "near"))
    assert far.cost_difference.low > 0.2
    assert far.boundary > near.boundary + 0.4
    assert wronged.adjusted_difference.low > 0.3
    assert far.adjusted_difference.value < 0
    # Seen without the wronged group, the distant one is as the near one is.
    fair = group != "wronged"
    alone = {g.name: g for g in group_gaps(group[fair], cost[fair], boundary[fair]).groups}
    assert alone["far"].cost_difference.low > 0.4
    assert abs(alone["far"].adjusted_difference.value) < 0.1 * alone["far"].cost_difference.value
    assert 0.8 < alone["far"].matched <= 1.0


def test_gaps_are_between_all_pairs_with_enough_people():
    rng = np.random.default_rng(9)
    group = np.array(["a"] * 100 + ["b"] * 60 + ["c"] * 29 + ["d"] * 40)
    cost = rng.random(229) + (group == "b")
    found = group_gaps(group, cost, np.full(229, np.nan))
    assert [g.few for g in found.groups] == [False, False, True, False]
    assert {(p.first, p.second) for p in found.cost_gap.pairs} == {("a", "b"), ("a", "d"), ("b", "d")}
    values = [p.gap.value for p in found.recourse_gap.pairs]
    assert values == sorted(values, reverse=True)
    means = [cost[group == name].mean() for name in "abd"]
    assert values[0] == pytest.approx(max(means) - min(means))
    same = next(p for p in found.cost_gap.pairs if (p.first, p.second) == ("a", "d"))
    assert same.gap.low == 0.0
    assert found.cost_gap.widest.gap.low > 0.5
    assert found.cost_gap.high == max(p.gap.high for p in found.cost_gap.pairs)
    assert found.adjusted_gap.pairs == found.amplification_gap.pairs == ()
    assert found.amplification_gap.widest is None
    assert all(g.matched == 0.0 and math.isnan(g.adjusted_difference.value) for g in found.groups)
    assert found.table["name"].tolist() == ["a", "b", "c", "d"]
    assert {"median", "median_low", "matched"} <= set(found.table.columns)


def test_amplification_is_resampled_by_people():
    rng = np.random.default_rng(10)
    group = np.repeat(["a", "b"], 50)
    person = np.repeat(np.arange(100), 20)
    effect = rng.normal(size=100)[person]
    values = np.exp(effect + 0.1 * rng.normal(size=2000) + (person >= 50))
    values[0] = np.inf
    cost = np.full(100, np.nan)
    one = group_gaps(group, cost, cost, values, person)
    single = group_gaps(
        np.repeat(["a", "b"], 1000), np.full(2000, np.nan), np.full(2000, np.nan), values, np.arange(2000)
    )
    gap, naive = (r.amplification_gap.widest.gap for r in (one, single))
    assert gap.value == naive.value
    assert gap.high - gap.low > 2.5 * (naive.high - naive.low)
    assert one.groups[0].people == 0
    assert math.isnan(one.groups[0].median.value)
    assert math.isfinite(one.groups[0].amplification_p95.value)


@pytest.mark.slow
def test_group_intervals_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(11)
    hits = dict.fromkeys(["difference", "cost", "recourse", "adjusted"], 0)
    for seed in range(300):
        boundary = rng.integers(0, 10, 200).astype(float)  # strata without a rest
        group = np.where(rng.random(200) < 0.3 + 0.03 * boundary, "a", "b")
        # Within a stratum a pays 0.5 more; marginally both are exponential, shifted by the boundary.
        cost = boundary + rng.exponential(size=200) + 0.5 * (group == "a")
        plain = np.where(group == "a", 1.0, 0.6) * rng.exponential(size=200)
        found = group_gaps(group, cost, boundary, seed=seed)
        other = group_gaps(group, plain, np.full(200, np.nan), seed=seed)
        interval = other.groups[0].cost_difference
        hits["difference"] += interval.low <= 0.4 * math.log(2) <= interval.high
        gap = other.cost_gap.widest.gap
        hits["cost"] += gap.low <= 0.4 * math.log(2) <= gap.high
        gap = other.recourse_gap.widest.gap
        hits["recourse"] += gap.low <= 0.4 <= gap.high
        interval = found.groups[0].adjusted_difference
        hits["adjusted"] += interval.low <= 0.5 <= interval.high
    assert all(275 <= count <= 297 for count in hits.values()), hits


def test_names_of_groups():
    assert grouped(pd.Series([1.0, 2.0, None])).tolist() == ["1", "2", "missing"]
    assert grouped(pd.Series([True, False])).tolist() == ["True", "False"]
    assert grouped(pd.Series([3, "x", None], dtype=object)).tolist() == ["3", "x", "missing"]
    ordered = pd.Series(pd.Categorical(["low", "high", None], ["low", "high", "none"], ordered=True))
    assert grouped(ordered).cat.categories.tolist() == ["low", "high", "missing"]
    many = grouped(pd.Series([f"g{i}" for i in range(30) for _ in range(i + 1)]))
    assert many.nunique() == 20
    assert (many == "other groups").sum() == sum(range(1, 12))
    close = grouped(pd.Series(100_000 + np.arange(40) / 100))
    assert close.nunique() == 4
    assert close.iloc[0] == "100000 to 100000.09"
    assert grouped(pd.Series([], dtype=float)).tolist() == []
    assert grouped(grouped(pd.Series(range(100)))).cat.categories.tolist()[0] == "0 to 24"
    tied = grouped(pd.Series([0] * 90 + list(range(1, 15))))
    assert tied.cat.categories.tolist() == ["0", "1 to 14"]
    index = pd.Index([5, 7])
    assert grouped(pd.Series(["a", "b"], index=index)).index.equals(index)


def test_no_people_have_no_groups():
    found = group_gaps([], [], [])
    assert found.groups == ()
    assert found.cost_gap.widest is None
    assert math.isnan(found.cost_gap.high)


def test_cost_that_is_distance_is_no_treatment() -> None:
    """Whatever the two distributions are: who pays exactly the distance is not treated worse."""
    rng = np.random.default_rng(0)
    for mine, rest in (
        (rng.exponential(1, 3000), rng.exponential(2, 3000)),
        (rng.gamma(2, 1, 900), rng.gamma(2, 1.5, 900)),
    ):
        cost = np.concatenate([mine, rest])
        found = group_gaps(["a"] * len(mine) + ["b"] * len(rest), cost, cost)
        assert found.cost_gap.widest is not None
        assert found.cost_gap.widest.gap.low > 0
        for group in found.groups:
            assert abs(group.adjusted_difference.value) < 1e-9


@pytest.mark.parametrize(("sizes", "heavy"), in_turn(3, [(2, 50), (4, 30), (8, 30), (2, 200)], [False, True]))
def test_adjusted_differences_cover_what_they_claim(sizes: tuple[int, int], heavy: bool) -> None:
    """By simulation: 95 % intervals hold the truth in 93 to 97 % of samples, also with strata of five."""
    rng = np.random.default_rng(7)
    code = np.repeat(np.arange(sizes[0]), sizes[1])
    held, told = 0, 0
    for _ in range(1500):
        edge = rng.gamma(2.0, size=len(code))
        noise = rng.exponential(size=len(code)) if heavy else rng.normal(size=len(code))
        found, _ = adjusted_difference(5.0 + 1.3 * edge + 0.5 * noise, edge, code == 0, 0.95)
        if not np.isnan(found.low):
            told += 1
            held += found.low <= 0.0 <= found.high
    assert told > 1000
    assert 0.93 <= held / told <= 0.975


def test_differences_of_rounding_accuse_nobody() -> None:
    """Where cost and distance are one number but for the last bits, there is no difference at all."""
    rng = np.random.default_rng(0)
    edge = rng.gamma(2.0, size=400)
    code = np.arange(400) % 2 == 0
    cost = edge * (1.0 + 1e-15 * code)
    found, share = adjusted_difference(cost, edge, code, 0.95)
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)
    assert share > 0.9
