"""Laws 3, 4 and 6 for projections: feasible, certified, idempotent, unbeaten, canonical, whatever the path."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from evenhand import L1, L2, Status
from evenhand.costs import as_cost
from evenhand.projection import Problem, Projection, project, solver
from evenhand.projection.norms.instance import instance
from evenhand.projection.norms.library import by_library
from evenhand.projection.norms.simplex import INFEASIBLE, OPTIMAL
from evenhand.sets import ConvexSet, Ellipsoid, Region
from evenhand.table.limits import Limits
from oracle import UndecidedError, exact_l1, nearest, nearest_of, shortest
from strategies import Case, cases, costs, seeds, tied_cases, units_of

RELATIVE = 1e-6  # how well costs agree with the oracle
FLOOR = 1e-9  # the same where the cost is zero, in sizes of the data
INSIDE = 1e-7


def ball(centre, radius: float) -> ConvexSet:
    centre = np.asarray(centre, dtype=float)
    return ConvexSet(len(centre), ellipsoids=(Ellipsoid(np.eye(len(centre)), centre, radius),))


def box(lower, upper) -> ConvexSet:
    return ConvexSet(len(lower), lower, upper)


def as_rows(piece: ConvexSet) -> ConvexSet:
    """The same set with its box written as halfspaces, two or none per column."""
    unit = np.eye(piece.dim)
    above, below = np.isfinite(piece.upper), np.isfinite(piece.lower)
    G = np.vstack([piece.G, unit[above], -unit[below]])
    h = np.concatenate([piece.h, piece.upper[above], -piece.lower[below]])
    return ConvexSet(piece.dim, G=G, h=h, ellipsoids=piece.ellipsoids)


def by_library_alone(X: np.ndarray, region: Region, cost) -> np.ndarray:
    """Cost of each query by Clarabel on every piece, without kernels; NaN where it proves nothing."""
    compiled = solver(Problem.of_numbers(region, as_cost(cost))).compiled
    found = np.full(len(X), np.inf)
    for q, x in enumerate(X):
        for piece in range(len(compiled.index)):
            answer = by_library(*[instance(compiled, piece, x, 0.0)] * 2)
            if answer.status == OPTIMAL:
                found[q] = min(found[q], answer.cost)
            elif answer.status != INFEASIBLE:
                found[q] = np.nan
                break
    return found


def assert_same(a: Projection, b: Projection, units: np.ndarray, tol: float = 1e-9) -> None:
    """Equal to `tol`, relative to the largest number of the table in each column's unit."""
    np.testing.assert_array_equal(a.status, b.status)
    size = 1.0 + np.nanmax(np.abs(a.points / units), initial=0.0)
    np.testing.assert_allclose(a.points / units, b.points / units, rtol=0, atol=tol * size)
    np.testing.assert_allclose(a.cost, b.cost, rtol=tol, atol=tol * np.nanmax(a.cost, initial=1e-300))


# --- The oracle -------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(cases(most_ellipsoids=0, most_pieces=1, n_queries=1))
def test_oracle_agrees_with_a_linear_program(case: Case) -> None:
    (piece,) = case.region.pieces
    assume(isinstance(case.cost, L1) and not piece.ellipsoids)
    exact = exact_l1(case.X[0], piece, case.cost)
    assert nearest(case.X[0], piece, case.cost) == pytest.approx(exact, rel=1e-7, abs=FLOOR * case.size)


@pytest.mark.parametrize(
    ("piece", "cost", "expected"),
    [
        (ball([3.0, 4.0], 1.0), L2(), 4.0),
        (ball([3e-4, 4e-4], 1e-4), L2(), 4e-4),
        (ball([1000.0, 1000.0], np.sqrt(2.0)), L1(), 1998.0),
        (ConvexSet(2, G=[[-1.0, -2.0]], h=[-4.0]), L1(), 2.0),
        (ConvexSet(2, G=[[-3.0, -4.0]], h=[-5.0]), L2(), 1.0),
        (ConvexSet(2, G=[[-3.0, -4.0]], h=[-5.0]), L2(matrix=[[9.0, 0.0], [0.0, 16.0]]), 5 / np.sqrt(2)),
        (box([1.0, -1.0], [2.0, 1.0]), L1([5.0, 1.0]), 5.0),
        (box([1.0, -1.0], [2.0, 1.0]), L2([9.0, 1.0]), 3.0),
        (box([-1.0, -1.0], [2.0, 1.0]), L2(), 0.0),
        (ConvexSet(2, G=[[1.0, 0.0], [-1.0, 0.0]], h=[1.0, -2.0]), L1(), np.inf),
    ],
)
def test_oracle_and_package_know_closed_forms(piece: ConvexSet, cost, expected: float) -> None:
    x = np.zeros(2)
    assert nearest(x, piece, cost) == pytest.approx(expected, rel=1e-8, abs=1e-9)
    found = project(x[None], Region([piece]), cost)
    assert (found.cost[0] if np.isfinite(expected) else np.inf) == pytest.approx(expected, rel=1e-9)
    assert found.status[0] == (Status.OPTIMAL if np.isfinite(expected) else Status.UNREACHABLE)


# --- Law 3: feasible, certified, idempotent, unbeaten -----------------------------------------------------------------


def check_against_oracle(case: Case, accepted: tuple[str, ...]) -> None:
    found = project(case.X, case.region, case.cost)
    floor = FLOOR * case.size
    scale = 1.0 + np.abs(case.X / case.units).max()
    for q, x in enumerate(case.X):
        try:
            truth = nearest_of(x, case.region, case.cost)
        except UndecidedError:
            event("the oracle is undecided")
            continue
        point, cost, gap, status = found.points[q], found.cost[q], found.gap[q], found.status[q]
        if np.isinf(truth):
            event("unreachable")
            assert status == Status.UNREACHABLE
            assert np.isnan(point).all()
            assert np.isnan([cost, gap]).all()
            assert found.piece[q] == -1
            continue
        event("moved" if truth > floor else "inside")
        assert status in accepted
        assert cost == pytest.approx(truth, rel=RELATIVE, abs=floor)
        assert cost == pytest.approx(case.cost(point[None], x[None])[0], rel=1e-9, abs=floor)
        assert case.inside(point[None], INSIDE * scale).all()
        home = case.plain.pieces[found.piece[q]]
        assert home.contains(point[None] / case.units, INSIDE * scale).all()
        assert gap >= 0
        assert cost - gap <= truth * (1 + RELATIVE) + floor, "the bound is not a bound"
        if status == Status.OPTIMAL:
            assert gap <= 1e-7 * cost + floor


@settings(max_examples=150)
@given(cases(most_ellipsoids=0))
def test_halfspaces_and_boxes_against_the_oracle(case: Case) -> None:
    check_against_oracle(case, (Status.OPTIMAL,))


@settings(max_examples=150)
@given(cases(most_ellipsoids=1))
def test_one_ellipsoid_against_the_oracle(case: Case) -> None:
    check_against_oracle(case, (Status.OPTIMAL,))


@settings(max_examples=120)
@given(cases(most_ellipsoids=2, most_pieces=3))
def test_two_ellipsoids_against_the_oracle(case: Case) -> None:
    # The library solves these; it may leave a larger gap, but has to say so.
    check_against_oracle(case, (Status.OPTIMAL, Status.INACCURATE))


@settings(max_examples=25)
@given(cases(most_ellipsoids=1, most_pieces=2, most_dims=25, n_queries=2))
def test_more_dimensions_against_the_oracle(case: Case) -> None:
    check_against_oracle(case, (Status.OPTIMAL,))


@settings(max_examples=150)
@given(cases(n_queries=6))
def test_projecting_a_projection_costs_nothing(case: Case) -> None:
    once = project(case.X, case.region, case.cost)
    reached = ~np.isnan(once.cost)
    twice = project(once.points[reached], case.region, case.cost)
    assert (twice.status == Status.OPTIMAL).all()
    assert (twice.cost <= 1e-7 * case.size).all()


@settings(max_examples=100)
@given(cases(n_queries=4), seeds)
def test_no_sampled_point_is_better(case: Case, seed: int) -> None:
    found = project(case.X, case.region, case.cost)
    rng = np.random.default_rng(seed)
    reached = ~np.isnan(found.cost)
    dim = case.region.dim
    around = np.where(reached[:, None], found.points, case.X) / case.units
    clouds = [around[:, None] + spread * rng.normal(size=(len(around), 200, dim)) for spread in (1e-3, 0.1, 1.0)]
    starts = np.array([piece.box[0] for piece in case.plain.pieces])
    starts = np.where(np.isfinite(starts), starts, 0.0)
    far = starts[:, None] + rng.integers(-4, 5, size=(len(starts), 200, dim))
    samples = np.vstack([cloud.reshape(-1, dim) for cloud in (*clouds, far)])
    samples = samples[case.plain.contains(samples, tol=0.0)] * case.units
    event(f"{min(len(samples), 100) // 10 * 10}+ samples inside")
    for q, x in enumerate(case.X):
        if not reached[q]:
            assert not len(samples), "a point of the region was found by chance, but not by project"
            continue
        costs_of = case.cost(samples, np.broadcast_to(x, samples.shape))
        assert (costs_of >= found.cost[q] * (1 - RELATIVE) - FLOOR * case.size).all()


# --- Law 4: every path gives the same cost ----------------------------------------------------------------------------


@st.composite
def box_cases(draw) -> Case:
    dim = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(seeds))
    units = draw(units_of(dim))
    pieces = []
    for _ in range(draw(st.integers(1, 6))):
        corner, width = rng.integers(-6, 7, dim).astype(float), rng.integers(0, 4, dim)
        lower, upper = np.where(rng.random(dim) < 0.3, -np.inf, corner), corner + width
        upper = np.where(rng.random(dim) < 0.3, np.inf, upper)
        if draw(st.sampled_from([False, False, False, True])):
            lower[0], upper[0] = 1.0, 0.0
        pieces.append(box(lower, upper))
    cost = draw(costs(units).filter(lambda cost: getattr(cost, "matrix", None) is None))
    X = (rng.normal(size=(8, dim)) * 5 if draw(st.booleans()) else rng.integers(-8, 9, (8, dim))) * units
    scaled = tuple(box(piece.lower * units, piece.upper * units) for piece in pieces)
    return Case(Region(scaled), X, cost, units, Region(tuple(pieces)))


@settings(max_examples=80)
@given(box_cases())
def test_closed_form_kernel_and_library_give_the_same_cost(case: Case) -> None:
    rows = Region(
        tuple(as_rows(piece) for piece in case.region.pieces if (piece.lower <= piece.upper).all()), len(case.units)
    )
    assert solver(Problem.of_numbers(case.region, as_cost(case.cost))).compiled.boxes is not None, (
        "this test wants the closed form"
    )
    by_formula = project(case.X, case.region, case.cost)
    by_kernel = project(case.X, rows, case.cost)
    by_clarabel = by_library_alone(case.X, rows, case.cost)
    expected = np.full(len(case.X), np.inf)  # clipping, written once more
    for piece in case.region.pieces:
        if (piece.lower <= piece.upper).all():
            expected = np.minimum(expected, case.cost(case.X, np.clip(case.X, piece.lower, piece.upper)))
    for cost in (by_formula.cost, by_kernel.cost):
        np.testing.assert_allclose(np.nan_to_num(cost, nan=np.inf), expected, rtol=1e-9, atol=FLOOR * case.size)
    np.testing.assert_array_equal(by_formula.gap[np.isfinite(expected)], 0.0)
    assert not np.isnan(by_clarabel).any()
    np.testing.assert_allclose(by_clarabel, expected, rtol=RELATIVE, atol=1e-8 * case.size)


@settings(max_examples=80)
@given(cases(most_ellipsoids=1, most_pieces=2))
def test_kernel_and_library_give_the_same_cost(case: Case) -> None:
    projector = solver(Problem.of_numbers(case.region, as_cost(case.cost)))
    for k in range(len(projector.compiled.index)):
        if k in projector.compiled.several:
            continue
        cost, bound = projector.solve_piece(k, case.X)
        for q, x in enumerate(case.X):
            answer = by_library(*[instance(projector.compiled, k, x, 0.0)] * 2)
            unresolved = np.isinf(cost[q]) and np.isfinite(bound[q])
            event("unresolved by the kernel" if unresolved else f"library says {answer.status}")
            if unresolved or answer.status not in (OPTIMAL, INFEASIBLE):
                continue
            assert cost[q] == pytest.approx(answer.cost, rel=RELATIVE, abs=1e-8 * case.size)
            if np.isfinite(cost[q]):
                assert max(bound[q], answer.bound) <= min(cost[q], answer.cost) + RELATIVE * cost[q] + 1e-8 * case.size


@pytest.mark.parametrize(
    "cost", ["l1", "l2", L1([2.0, 0.5, 1.0]), L2([2.0, 0.5, 1.0]), L2(matrix=np.diag([2.0, 0.5, 1.0]))]
)
def test_box_rows_and_ellipsoid_of_one_interval_agree(cost) -> None:
    """The slab |x0 - 3| <= 1 in three forms, from many sides."""
    X = np.random.default_rng(0).normal(size=(50, 3)) * 4
    forms = [
        ConvexSet(3, lower=[2.0, -np.inf, -np.inf], upper=[4.0, np.inf, np.inf]),
        ConvexSet(3, G=[[7.0, 0.0, 0.0], [-0.1, 0.0, 0.0]], h=[28.0, -0.2]),
        ConvexSet(3, ellipsoids=(Ellipsoid([[1.0, 0.0, 0.0]], [3.0], 1.0),)),
        ConvexSet(3, ellipsoids=(Ellipsoid([[3.0, 0.0, 0.0], [4.0, 0.0, 0.0]], [9.0, 12.0], 5.0),)),
    ]
    first, *others = (project(X, Region([form]), cost) for form in forms)
    for other in others:
        np.testing.assert_allclose(other.cost, first.cost, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(other.points, first.points, atol=1e-8)


# --- Ties: the canonical answer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("piece", "cost", "x", "expected"),
    [
        # Two, then three columns that are as good as each other: share the change.
        (ConvexSet(2, G=[[-1.0, -1.0]], h=[-2.0]), L1(), [0.0, 0.0], [1.0, 1.0]),
        (ConvexSet(3, G=[[-1.0, -1.0, -1.0]], h=[-3.0]), L1(), [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
        (ConvexSet(3, G=[[-1.0, -0.5, -1.0]], h=[-3.0]), L1(), [0.0, 0.0, 0.0], [1.5, 0.0, 1.5]),
        (ConvexSet(2, G=[[-1.0, 1.0]], h=[-2.0]), L1(), [0.0, 0.0], [1.0, -1.0]),
        # The least length is measured in the units of the cost.
        (ConvexSet(2, G=[[-1.0, -2.0]], h=[-2.0]), L1([1.0, 2.0]), [0.0, 0.0], [1.0, 0.5]),
        # A side of the box stops one of them.
        (ConvexSet(2, upper=[0.25, np.inf], G=[[-1.0, -1.0]], h=[-2.0]), L1(), [0.0, 0.0], [0.25, 1.75]),
        # The same row twice, and once more scaled.
        (
            ConvexSet(2, G=[[-1.0, -1.0], [-1.0, -1.0], [-4.0, -4.0]], h=[-2.0, -2.0, -8.0]),
            L1(),
            [0.0, 0.0],
            [1.0, 1.0],
        ),
        # All columns move, and still the optimum is not unique: (0, 0, 4) costs as much and is longer.
        (
            ConvexSet(
                3, [0.0, -np.inf, 1.0], [0.0, np.inf, np.inf], G=[[-2.0, -1.0, 1.0], [0.0, 2.0, 0.0]], h=[4.0, 0.0]
            ),
            L1(),
            [-4.0, -5.0, 5.0],
            [0.0, -2.0, 2.0],
        ),
        # A cylinder |x0 + x1 - 4| <= 1 has a flat side, so its nearest point is not unique either.
        (ConvexSet(2, ellipsoids=(Ellipsoid([[1.0, 1.0]], [4.0], 1.0),)), L1(), [0.0, 0.0], [1.5, 1.5]),
        # Two copies of a column in front of a round set.
        (
            ConvexSet(3, ellipsoids=(Ellipsoid([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [4.0, 0.0], 1.0),)),
            L1(),
            [0.0, 0.0, 0.0],
            [1.5, 1.5, 0.0],
        ),
    ],
)
def test_of_equally_cheap_points_the_shortest_change(piece: ConvexSet, cost, x, expected) -> None:
    found = project([x], Region([piece]), cost)
    np.testing.assert_allclose(found.points[0], expected, atol=1e-9)
    assert found.status[0] == Status.OPTIMAL


@settings(max_examples=250)
@given(tied_cases())
def test_least_length_among_the_l1_optima(case: Case) -> None:
    (piece,) = case.region.pieces
    found = project(case.X, case.region, case.cost)
    for q, x in enumerate(case.X):
        if found.cost[q] > 0:
            least = shortest(x, piece, case.cost, found.cost[q])
            # Well below what a wrong choice among small integers differs by, well above the oracle's tolerance.
            assert np.linalg.norm(found.points[q] - x) <= least * (1 + 1e-4)


@pytest.mark.parametrize("cost", ["l1", "l2", L1([1.0, 3.0]), L2([1.0, 3.0])])
@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([box([1.0, -9.0], [2.0, 9.0]), box([-2.0, -9.0], [-1.0, 9.0])], [-1.0, 0.0]),
        ([box([a - 0.5, b - 0.5], [a + 0.5, b + 0.5]) for a in (-2, 2) for b in (-2, 2)], [-1.5, -1.5]),
        ([ConvexSet(2, G=[[s * 1.0, t * 1.0]], h=[-3.0]) for s in (-1, 1) for t in (-1, 1)], None),
        ([ball([0.0, 3.0], 1.0), ball([0.0, -3.0], 1.0)], [0.0, -2.0]),
        ([ball([4.0, 0.0], 1.0), ball([-4.0, 0.0], 1.0), ball([9.0, 9.0], 1.0)], [-3.0, 0.0]),
        ([box([1.0, -9.0], [2.0, 9.0]), ConvexSet(2, G=[[1.0, 0.0]], h=[-1.0])], [-1.0, 0.0]),
    ],
)
def test_of_equal_pieces_the_lexicographically_smallest_point(pieces: list[ConvexSet], expected, cost) -> None:
    answers = [project(np.zeros((1, 2)), Region(order), cost) for order in itertools.permutations(pieces)]
    if expected is not None:
        np.testing.assert_allclose(answers[0].points[0], expected, atol=1e-9)
    assert answers[0].points[0, 0] <= 1e-9
    assert answers[0].points[0, 1] <= 1e-9
    for other in answers[1:]:
        np.testing.assert_allclose(other.points, answers[0].points, atol=1e-9)


def test_shorter_change_comes_before_the_smaller_point() -> None:
    # Both cost 2 in l1; (-2, 0) is lexicographically smaller, (1, 1) is shorter.
    pieces = [box([-3.0, -0.5], [-2.0, 0.5]), box([1.0, 1.0], [2.0, 2.0])]
    for order in (pieces, pieces[::-1], [as_rows(p) for p in pieces], [as_rows(p) for p in pieces[::-1]]):
        np.testing.assert_allclose(project(np.zeros((1, 2)), Region(order)).points[0], [1.0, 1.0])


@pytest.mark.parametrize("cost", ["l1", "l2", L2(matrix=np.diag([2.0, 1.0, 1.0]))])
@pytest.mark.parametrize("seed", range(8))
def test_rounding_does_not_decide_between_equal_pieces(cost, seed: int) -> None:
    """Two balls that mirror each other, written in rotated coordinates: the first column is 0 up to rounding."""
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    pieces = [
        ConvexSet(3, ellipsoids=(Ellipsoid(Q, Q @ centre, 1.0),))
        for centre in (np.array([0.0, 3.0, 1.0]), np.array([0.0, -3.0, 1.0]))
    ]
    for order in (pieces, pieces[::-1]):
        assert project(np.zeros((1, 3)), Region(order), cost).points[0, 1] < 0


@pytest.mark.parametrize("cost", ["l1", "l2", L1([1.0, 3.0])])
def test_mirrored_query_has_the_mirrored_cost(cost) -> None:
    square = Region([box([a - 0.5, b - 0.5], [a + 0.5, b + 0.5]) for a in (-2, 2) for b in (-2, 2)])
    X = np.random.default_rng(1).normal(size=(100, 2))
    expected = project(X, square, cost).cost
    for mirror in ([-1, 1], [1, -1], [-1, -1]):
        np.testing.assert_allclose(project(X * mirror, square, cost).cost, expected, rtol=1e-12)


# --- Law 6: order, chunks, threads ------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(cases(n_queries=9), seeds)
def test_order_chunks_and_threads_change_nothing(case: Case, seed: int) -> None:
    X, region, cost = case.X, case.region, case.cost
    expected = project(X, region, cost)
    for options in ({"chunk_size": 1}, {"chunk_size": 7}, {"chunk_size": 2, "n_jobs": 2}, {"n_jobs": 2}):
        other = project(X, region, cost, **options)
        assert_same(expected, other, case.units)
        np.testing.assert_array_equal(expected.piece, other.piece)
    order = np.random.default_rng(seed).permutation(len(X))
    shuffled = project(X[order], region, cost)
    rows = [v for v in vars(shuffled).values() if v is not None]  # only searches count nodes
    back = Projection(*(np.asarray(v)[np.argsort(order)] for v in rows))
    assert_same(expected, back, case.units)
    pieces = np.random.default_rng(seed).permutation(len(region))
    assert_same(expected, project(X, Region(tuple(region.pieces[k] for k in pieces)), cost), case.units)


@settings(max_examples=60)
@given(cases(most_ellipsoids=1, n_queries=4), seeds)
def test_order_of_the_constraints_changes_nothing_that_matters(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pieces = []
    for piece in case.region.pieces:
        order = rng.permutation(len(piece.h))
        balls = piece.ellipsoids[::-1]
        pieces.append(ConvexSet(piece.dim, piece.lower, piece.upper, piece.G[order], piece.h[order], balls))
    expected, other = (project(case.X, region, case.cost) for region in (case.region, Region(tuple(pieces))))
    # Here the arithmetic itself differs: agreement to what the solvers promise.
    assert_same(expected, other, case.units, tol=1e-6)


@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_many_ties_in_a_large_table(cost) -> None:
    """A grid of equal pieces and queries half-way between them: nothing but the tie rule decides."""
    pieces = [ball([a, b], 1.0) for a in (-4, 0, 4) for b in (-4, 0, 4)]
    pieces += [ConvexSet(2, G=[[1.0, 1.0], [-1.0, -1.0]], h=[c + 0.5, -c + 0.5]) for c in (-12.0, 12.0)]
    X = np.array(list(itertools.product(np.arange(-6, 7, 2.0), repeat=2)) * 3)
    expected = project(X, Region(pieces), cost)
    np.testing.assert_array_equal(expected.points[:49], expected.points[49:98])
    for options in ({"chunk_size": 1}, {"chunk_size": 7}, {"chunk_size": 10, "n_jobs": 2}):
        assert_same(expected, project(X, Region(pieces), cost, **options), np.ones(2))
    assert_same(expected, project(X, Region(pieces[::-1]), cost), np.ones(2))
    assert_same(expected, project(X, Region(pieces[3:] + pieces[:3]), cost), np.ones(2))


@settings(max_examples=40)
@given(cases(n_queries=5))
def test_repeated_run_is_the_same_bit_for_bit(case: Case) -> None:
    first, second = (project(case.X, case.region, case.cost) for _ in range(2))
    for a, b in zip(vars(first).values(), vars(second).values(), strict=True):
        np.testing.assert_array_equal(a, b)


# --- Degenerate sets and input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", ["l1", "l2", L2(matrix=[[2.0, 0.5], [0.5, 1.0]])])
def test_single_points_and_whole_space(cost) -> None:
    x = np.array([[3.0, -1.0]])
    point = np.array([1.0, 2.0])
    forms = [
        box(point, point),
        ConvexSet(2, G=np.vstack([np.eye(2), -np.eye(2)]), h=np.concatenate([point, -point])),
        ConvexSet(2, ellipsoids=(Ellipsoid(np.eye(2), point, 0.0),)),
        ConvexSet(2, lower=[1.0, -np.inf], upper=[1.0, np.inf], G=[[0.0, 1.0], [0.0, -1.0]], h=[2.0, -2.0]),
    ]
    norm = L1() if cost == "l1" else L2() if cost == "l2" else cost
    for form in forms:
        found = project(x, Region([form]), cost)
        np.testing.assert_allclose(found.points[0], point, atol=1e-7)
        assert found.cost[0] == pytest.approx(norm(x, point[None])[0], rel=1e-7)
    for everything in (ConvexSet(2), ConvexSet(2, G=[[0.0, 0.0]], h=[0.0]), ConvexSet(2, G=[[1.0, 1.0]], h=[np.inf])):
        found = project(x, Region([everything]), cost)
        np.testing.assert_array_equal(found.points, x)
        assert found.cost[0] == found.gap[0] == 0.0
        assert found.status[0] == Status.OPTIMAL


EMPTY = {
    "no pieces": Region((), dim=2),
    "crossed box": Region([box([1.0, 0.0], [0.0, 1.0])]),
    "lower side at infinity": Region([box([np.inf, 0.0], [np.inf, 1.0])]),
    "upper side at minus infinity": Region([box([-np.inf, 0.0], [-np.inf, 1.0])]),
    "opposite rows": Region([ConvexSet(2, G=[[1.0, 1.0], [-1.0, -1.0]], h=[0.0, -1.0])]),
    "row of zeros": Region([ConvexSet(2, G=[[0.0, 0.0]], h=[-1.0])]),
    "row at minus infinity": Region([ConvexSet(2, G=[[1.0, 0.0]], h=[-np.inf])]),
    "negative radius": Region([ConvexSet(2, ellipsoids=(Ellipsoid(np.eye(2), [0.0, 0.0], -1.0),))]),
    "rows that close a triangle": Region([ConvexSet(2, G=[[1, 0], [0, 1], [-1, -1]], h=[0.0, 0.0, -1.0])]),
    "ellipsoid beyond a row": Region([ConvexSet(2, G=[[1.0, 0.0]], h=[0.0]) & ball([5.0, 0.0], 1.0)]),
    "balls apart": Region([ball([0.0, 0.0], 1.0) & ball([5.0, 0.0], 1.0)]),
    "tall ellipsoid of inconsistent rows": Region(
        [ConvexSet(2, ellipsoids=(Ellipsoid([[1, 0], [1, 0]], [0, 9], 1.0),))]
    ),
    "ellipsoid of zeros": Region([ConvexSet(2, ellipsoids=(Ellipsoid([[0.0, 0.0]], [2.0], 1.0),))]),
}


@pytest.mark.parametrize("cost", ["l1", "l2", L1([1.0, 1e3]), L2(matrix=[[2.0, 0.5], [0.5, 1.0]])])
@pytest.mark.parametrize("name", EMPTY)
def test_empty_regions_are_unreachable(name: str, cost) -> None:
    X = np.array([[0.0, 0.0], [0.3, 0.3], [-100.0, 40.0]])
    found = project(X, EMPTY[name], cost)
    assert found.status.tolist() == ["unreachable"] * 3
    assert np.isnan(found.points).all()
    assert np.isnan(found.cost).all()
    assert np.isnan(found.gap).all()
    np.testing.assert_array_equal(found.piece, -1)
    # An empty piece does not stand in the way of another one.
    beside = project(X, EMPTY[name] | box([1.0, 1.0], [2.0, 2.0]), cost)
    assert (beside.status == Status.OPTIMAL).all()
    assert beside.cost.tolist() == pytest.approx(
        [nearest(x, box([1.0, 1.0], [2.0, 2.0]), cost) for x in X], rel=RELATIVE
    )
    np.testing.assert_array_equal(beside.piece, len(EMPTY[name]))


@pytest.mark.parametrize("region", [Region([box([1, 1], [2, 2])]), Region([ball([3.0, 3.0], 1.0)])])
def test_rows_with_nan_or_infinity_are_invalid_and_harm_no_other_row(region: Region) -> None:
    good = np.array([[0.0, 0.0], [5.0, 1.0]])
    bad = np.array([[np.nan, 0.0], [np.inf, 0.0], [0.0, -np.inf], [np.nan, np.nan]])
    X = np.vstack([good[:1], bad, good[1:]])
    for options in ({}, {"chunk_size": 1}, {"chunk_size": 4}):
        found = project(X, region, **options)
        assert found.status.tolist() == ["optimal", *["invalid"] * 4, "optimal"]
        assert np.isnan(found.points[1:5]).all()
        assert np.isnan(found.cost[1:5]).all()
        assert np.isnan(found.gap[1:5]).all()
        np.testing.assert_array_equal(found.piece, [0, -1, -1, -1, -1, 0])
        np.testing.assert_array_equal(found.points[[0, 5]], project(good, region).points)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_empty_table(n_jobs: int | None) -> None:
    found = project(np.zeros((0, 2)), Region([ball([3.0, 3.0], 1.0)]), n_jobs=n_jobs)
    assert len(found) == 0
    assert found.points.shape == (0, 2)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((4, 3)), r"2 columns, got shape \(4, 3\)"),
        (np.zeros(2), r"2 columns, got shape \(2,\).*X\[None, :\]"),
        (np.zeros((2, 2, 2)), "2 columns"),
        ([["a", "b"]], "table of numbers"),
        ([[1.0, 2.0], [3.0]], "table of numbers"),
    ],
)
def test_wrong_tables(X, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        project(X, Region([ball([3.0, 3.0], 1.0)]))


@pytest.mark.parametrize("n", [0, 3])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"chunk_size": 0}, "chunk_size must be at least 1"),
        ({"chunk_size": -5}, "-5"),
    ],
)
def test_wrong_options(options: dict[str, int], message: str, n: int) -> None:
    with pytest.raises(ValueError, match=message):
        project(np.zeros((n, 2)), Region([ball([3.0, 3.0], 1.0)]), **options)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ("linf", "'linf' is not a known cost"),
        (L1([1.0, 1.0, 1.0]), "3 weights.*2 columns"),
        (L2(matrix=np.eye(3)), "3 x 3.*2"),
    ],
)
def test_wrong_costs(cost, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        project(np.zeros((1, 2)), Region([ball([3.0, 3.0], 1.0)]), cost)


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1])
@pytest.mark.parametrize(("n", "chunk_size"), [(0, 4), (1, 4), (10, 3), (12, 4), (10, 1000)])
def test_progress_rises_to_the_number_of_rows(n: int, chunk_size: int, n_jobs: int | None) -> None:
    calls: list[tuple[int, int]] = []
    region = Region([box([1.0], [2.0])])
    project(np.zeros((n, 1)), region, n_jobs=n_jobs, chunk_size=chunk_size, progress=lambda *call: calls.append(call))
    done = [call[0] for call in calls]
    assert done == sorted(set(done))
    assert len(done) == -(-n // chunk_size)
    assert all(total == n for _, total in calls)
    assert not n or done[-1] == n


def test_input_is_left_alone_and_any_dtype_is_read() -> None:
    region = Region([box([1.0, 1.0], [2.0, 2.0])])
    X = np.array([[0, 0], [3, 1]])
    expected = project(X.astype(float), region)
    for table in (
        X,
        X.astype(np.float32),
        X.tolist(),
        np.asfortranarray(X, dtype=float),
        X.astype(float)[:, ::-1][:, ::-1],
    ):
        np.testing.assert_array_equal(project(table, region).points, expected.points)
    inside = np.full((2, 2), 1.5)
    found = project(inside, region)
    found.points[:] = 7.0
    np.testing.assert_array_equal(inside, 1.5)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e6, 1e12])
@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_units_of_the_whole_problem_do_not_matter(scale: float, cost) -> None:
    piece = ConvexSet(
        2, [-1.0, -np.inf], [4.0, 3.0], [[-1.0, -2.0]], [-3.0], (Ellipsoid([[1.0, 0.2], [0.0, 2.0]], [4.0, 3.0], 2.0),)
    )
    large = ConvexSet(
        2,
        piece.lower * scale,
        piece.upper * scale,
        piece.G,
        piece.h * scale,
        (Ellipsoid(piece.ellipsoids[0].matrix, piece.ellipsoids[0].offset * scale, 2.0 * scale),),
    )
    X = np.random.default_rng(0).normal(size=(40, 2)) * 5
    plain, scaled = project(X, Region([piece]), cost), project(X * scale, Region([large]), cost)
    assert (plain.status == Status.OPTIMAL).all()
    assert_same(
        plain,
        Projection(scaled.points / scale, scaled.cost / scale, scaled.gap, scaled.piece, scaled.status),
        np.ones(2),
    )


@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_far_queries_are_answered(cost) -> None:
    region = Region([ConvexSet(3, G=[[1.0, 2.0, -1.0]], h=[1.0]) & ball([1.0, 0.0, 2.0], 2.0)])
    X = np.array([[1e7, 1e7, -1e7], [1e9, 0.0, 0.0], [0.0, 0.0, 1e5]])
    found = project(X, region, cost)
    for q, x in enumerate(X):
        assert found.cost[q] == pytest.approx(nearest_of(x, region, cost), rel=RELATIVE)
        assert region.contains(found.points[q][None], tol=1e-10 * np.abs(x).max() + 1e-9).all()


@pytest.mark.parametrize("scale", [1e100, 1e160, 1e300])
@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_astronomic_queries_get_a_right_answer_or_a_status(scale: float, cost) -> None:
    pieces = {
        "box": box([1.0, 1.0], [2.0, 2.0]),
        "row": ConvexSet(2, G=[[1.0, 2.0]], h=[1.0]),
        "ball": ball([1.0, 0.0], 1.0),
        "row and ball": ConvexSet(2, G=[[1.0, 2.0]], h=[1.0]) & ball([1.0, 0.0], 1.0),
        "two balls": ball([1.0, 0.0], 1.0) & ball([1.0, 0.5], 1.0),
    }
    for name, piece in pieces.items():
        found = project([[scale, scale]], Region([piece]), cost)
        assert found.status[0] != Status.UNREACHABLE, name
        if found.status[0] == Status.OPTIMAL:
            # From that far a set is a point, and a halfspace goes through the origin.
            away = {"l1": 1.5, "l2": 3 / np.sqrt(5)} if name == "row" else {"l1": 2.0, "l2": np.sqrt(2)}
            assert found.cost[0] / scale == pytest.approx(away[cost], rel=1e-6)


@pytest.mark.parametrize("cost", ["l1", "l2"])
@pytest.mark.parametrize("exponent", [2, 4, 6, 8, 9])
def test_needles_are_met_or_not_claimed(exponent: int, cost) -> None:
    """Ellipsoids whose axes differ by a factor of 10^exponent: what is called optimal lies inside."""
    rng = np.random.default_rng(exponent)
    optimal = 0
    for _ in range(30):
        Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
        F = Q / 10.0 ** (-exponent * np.linspace(0, 1, 4))[:, None]
        centre, x = rng.normal(size=4) * 3, rng.normal(size=4) * 5
        G = rng.normal(size=(2, 4))
        piece = ConvexSet(4, G=G, h=G @ centre + 0.1 * 10.0**-exponent, ellipsoids=(Ellipsoid(F, F @ centre, 1.5),))
        found = project(x[None], Region([piece]), cost)
        assert found.status[0] in (Status.OPTIMAL, Status.INACCURATE, Status.FAILED)
        if found.status[0] != Status.OPTIMAL:
            continue
        optimal += 1
        rounding = 50 * np.finfo(float).eps * np.linalg.norm(F, 2) * np.linalg.norm(x)
        assert np.linalg.norm(F @ (found.points[0] - centre)) <= 1.5 * (1 + 1e-6) + rounding
        reference = (L1() if cost == "l1" else L2())(x[None], centre[None])[0]
        assert found.cost[0] - found.gap[0] <= reference * (1 + 1e-9), "the centre is in the set"
    assert optimal >= (30 if exponent <= 6 else 0)


@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_sets_that_touch_in_one_point(cost) -> None:
    """An interval as a row and one as an ellipsoid, side by side: one point without a guard, none or one with it.

    Whatever the solvers make of it, it ends in a status, not in a warning.
    """
    for side, r, unit, x in itertools.product((1.0, -1.0), (0.5, 1.3, 1e-3), (1.0, 0.3), (-5.63, -0.63, 1.37, 5.37)):
        for at in (1.5, 3.7):
            touching = Ellipsoid([[unit]], [unit * (at + side * r)], unit * r)
            region = Region([ConvexSet(1, G=[[side]], h=[side * at], ellipsoids=(touching,))])
            projector = solver(Problem.of_numbers(region, as_cost(cost)))
            found = projector.project(np.array([[x]]))
            assert found.status[0] == Status.OPTIMAL
            assert found.points[0, 0] == pytest.approx(at, abs=1e-9)
            for guard in (1e-13, 1e-12, 1e-11, 1e-7):
                found = projector.project(np.array([[x]]), guard)
                assert found.status[0] in (Status.OPTIMAL, Status.INACCURATE, Status.UNREACHABLE, Status.FAILED)
                assert np.isnan(found.points[0, 0]) or found.points[0, 0] == pytest.approx(at, abs=1e-8)


FOUND_BY_CHANCE = {
    # Each of these once came back as "failed", or outside of its own set.
    "interval and two intervals as ellipsoids": (
        ConvexSet(
            1,
            [0.0],
            [512.0],
            ellipsoids=(
                Ellipsoid(
                    [[0.00034561981547346683], [0.0004564761523328436]],
                    [-2.85582167476495, 2.7633962066854707],
                    6.6860866456193015,
                ),
                Ellipsoid(
                    [[0.016842926936955663], [0.01826331832028865]],
                    [2.320920160992689, 2.937371787012305],
                    5.225563752491007,
                ),
            ),
        ),
        L2(),
        [-320.0],
        320.0,
    ),
    "balls apart, in another unit": (
        ConvexSet(1, ellipsoids=(Ellipsoid([[0.015625]], [4.0], 1.0), Ellipsoid([[0.015625]], [7.0], 1.0))),
        L2(),
        [-320.0],
        np.inf,
    ),
    "on the boundary up to rounding": (
        ConvexSet(1, [-5.0], [-4.0], ellipsoids=(Ellipsoid([[1.0]], [-4.0], 3.0), Ellipsoid([[1.0]], [-5.0], 3.0))),
        L2([0.59372336]),
        [-5.0],
        0.0,
    ),
    "a fixed column in a small unit": (
        ConvexSet(
            3,
            [1024.0, -np.inf, 2.0**-8],
            [1664.0, np.inf, 2.0**-8],
            [[0.0, 0.0088918, 233.45696], [-0.0031735, 0.0, -11.91995]],
            [1.2086684, -3.0],
            (
                Ellipsoid([[-4.8e-05, -0.000284, -30.2293]], [-3.05], 3.9),
                Ellipsoid([[-0.00144, 0.0031675, 226.0289]], [-0.08], 8.42),
            ),
        ),
        L1(),
        [483.98, -334.56, -0.0477],
        None,
    ),
}


@pytest.mark.parametrize("name", FOUND_BY_CHANCE)
def test_problems_that_once_went_wrong(name: str) -> None:
    piece, cost, x, expected = FOUND_BY_CHANCE[name]
    truth = nearest(x, piece, cost) if expected is None else expected
    found = project([x], Region([piece]), cost)
    if np.isinf(truth):
        assert found.status[0] == Status.UNREACHABLE
        return
    assert found.status[0] == Status.OPTIMAL
    assert found.cost[0] == pytest.approx(truth, rel=RELATIVE, abs=1e-12)
    inside = (found.points[0] >= piece.lower - 1e-9 * np.abs(x)) & (found.points[0] <= piece.upper + 1e-9 * np.abs(x))
    assert inside.all(), "each side is met in its own column's unit"


# --- What may change, per column --------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(cases(most_ellipsoids=1, n_queries=2), st.data())
def test_directions_against_the_oracle(case: Case, data) -> None:
    dim = case.region.dim
    ways = np.array(data.draw(st.lists(st.sampled_from([0, 1, 1, 2, 3]), min_size=dim, max_size=dim).filter(any)))
    limits = Limits(ways, np.full(dim, -np.inf), np.full(dim, np.inf))
    found = solver(Problem.of_numbers(case.region, as_cost(case.cost), limits)).project(case.X)
    for q, x in enumerate(case.X):

        def allowed(point, x=x):
            for j, way in enumerate(ways):
                # In the column's unit: the oracle's tolerances are absolute.
                change = (point[j] - x[j]) / case.units[j]
                if way != 1:
                    yield change == 0 if way == 0 else change >= 0 if way == 2 else change <= 0

        try:
            truth = nearest_of(x, case.region, case.cost, allowed)
        except UndecidedError:
            event("the oracle is undecided")
            continue
        if np.isinf(truth):
            event("unreachable")
            assert found.status[q] == Status.UNREACHABLE
            continue
        event("reached")
        assert found.status[q] == Status.OPTIMAL
        assert found.cost[q] == pytest.approx(truth, rel=RELATIVE, abs=1e-7 * case.size)
        change = (found.points[q] - x) / case.units
        assert (change[ways == 0] == 0).all()
        room = 1e-9 * np.abs(found.points[q] - x).sum() / case.units  # what the library resolves; explainers snap
        assert (change[ways == 2] >= -room[ways == 2]).all()
        assert (change[ways == 3] <= room[ways == 3]).all()
