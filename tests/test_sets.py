"""Law 2: the algebra of sets is the algebra of `contains`; shrinking keeps the distance that it promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from evenhand import L1, L2
from evenhand.sets import Affine, ConvexSet, Ellipsoid, Region
from strategies import costs, pieces, seeds, units_of

ROUNDING = 1e-9


def brute(piece: ConvexSet, x: np.ndarray) -> bool:
    """Whether a point fulfils every constraint, one at a time."""
    for j in range(piece.dim):
        if x[j] < piece.lower[j] or x[j] > piece.upper[j]:
            return False
    for row, right in zip(piece.G, piece.h, strict=True):
        if sum(a * b for a, b in zip(row, x, strict=True)) > right:
            return False
    for ellipsoid in piece.ellipsoids:
        away = [sum(a * b for a, b in zip(row, x, strict=True)) for row in ellipsoid.matrix] - ellipsoid.offset
        if sum(away**2) > ellipsoid.radius * abs(ellipsoid.radius):
            return False
    return True


def cloud(dim: int, seed: int, n: int = 200) -> np.ndarray:
    """Points at several scales, some on the integer grid, where the sides of the sets are."""
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(size=(n, dim)) * s for s in (1.0, 4.0)] + [rng.integers(-5, 6, (n, dim))])


def clear(piece: ConvexSet | Region, X: np.ndarray) -> np.ndarray:
    """Which points are not within rounding of a side, so that two ways to compute must agree on them."""
    size = 1.0 + np.abs(X).max()
    return piece.contains(X, tol=ROUNDING * size) == piece.contains(X, tol=-ROUNDING * size)


@st.composite
def sets(draw, dim: int) -> ConvexSet:
    return draw(pieces(dim, 2, draw(st.booleans())))


dims = st.integers(1, 4)


# --- contains ---------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.data(), seeds)
def test_contains_is_every_constraint(data, seed: int) -> None:
    piece = data.draw(dims.flatmap(sets))
    X = cloud(piece.dim, seed, 60)
    X = X[clear(piece, X)]
    inside = piece.contains(X, tol=0.0)
    event(f"some inside: {inside.any()}")
    np.testing.assert_array_equal(inside, [brute(piece, x) for x in X])


@pytest.mark.parametrize(
    "piece",
    [
        ConvexSet(2, upper=[1.0, np.inf]),
        ConvexSet(2, lower=[-np.inf, -np.inf], G=[[30.0, 0.0]], h=[30.0]),
        ConvexSet(2, G=[[1e-3, 0.0]], h=[1e-3]),
        ConvexSet(2, ellipsoids=(Ellipsoid([[5.0, 0.0], [0.0, 5.0]], [0.0, 0.0], 5.0),)),
        ConvexSet(2, ellipsoids=(Ellipsoid([[0.01, 0.0]], [0.0], 0.01),)),
    ],
)
def test_tolerance_is_a_distance(piece: ConvexSet) -> None:
    """Whatever the units of the rows: (1.5, 0) lies half a unit outside of each of these."""
    x = [[1.5, 0.0]]
    assert not piece.contains(x)[0]
    assert not piece.contains(x, tol=0.499)[0]
    assert piece.contains(x, tol=0.501)[0]
    assert Region([piece]).contains(x, tol=0.501)[0]
    assert piece.contains([[0.4, 0.0]], tol=-0.5)[0]
    assert not piece.contains([[0.6, 0.0]], tol=-0.5)[0]
    assert piece.contains([[1.0 + 1e-10, 0.0]])[0], "the default allows for rounding"
    assert not piece.contains([[1.0 + 1e-8, 0.0]])[0], "and for no more"


def test_contains_of_special_rows() -> None:
    everything = ConvexSet(2, G=[[0.0, 0.0], [1.0, 0.0]], h=[0.0, np.inf])
    nothing = ConvexSet(2, G=[[0.0, 0.0]], h=[-1.0])
    X = [[0.0, 0.0], [1e9, -1e9]]
    assert everything.contains(X).all()
    assert not nothing.contains(X).any()
    assert not ConvexSet(2, G=[[1.0, 0.0]], h=[-np.inf]).contains(X).any()
    assert not ConvexSet(2, ellipsoids=(Ellipsoid(np.eye(2), [0.0, 0.0], -1.0),)).contains(X, tol=10.0).any()
    assert ConvexSet(2).contains(X).all()
    assert ConvexSet(2).contains(np.zeros((0, 2))).shape == (0,)


@pytest.mark.parametrize("bad", [[np.nan, 0.0], [0.0, np.nan], [np.inf, 0.0], [0.0, -np.inf]])
def test_nothing_contains_nan_or_infinity(bad: list[float]) -> None:
    bounded = [
        ConvexSet(2, lower=[-1.0, -1.0], upper=[1.0, 1.0]),
        ConvexSet(2, G=[[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], h=np.ones(4)),
        ConvexSet(2, ellipsoids=(Ellipsoid(np.eye(2), [0.0, 0.0], 1.0),)),
    ]
    for piece in bounded:
        assert piece.contains([bad, [0.0, 0.0]]).tolist() == [False, True]
        assert Region([piece, piece]).contains([bad, [0.0, 0.0]]).tolist() == [False, True]


# --- & and | ----------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.data(), seeds, st.sampled_from([0.0, 1e-9, 0.1]))
def test_intersection_and_union(data, seed: int, tol: float) -> None:
    dim = data.draw(dims)
    members = data.draw(st.lists(sets(dim), min_size=3, max_size=6))
    a, b = Region(tuple(members[:2])), Region(tuple(members[2:]))
    X = cloud(dim, seed)
    in_a, in_b = a.contains(X, tol), b.contains(X, tol)
    np.testing.assert_array_equal(in_a, members[0].contains(X, tol) | members[1].contains(X, tol))
    np.testing.assert_array_equal((a & b).contains(X, tol), in_a & in_b)
    np.testing.assert_array_equal((a | b).contains(X, tol), in_a | in_b)
    np.testing.assert_array_equal((a & members[2]).contains(X, tol), in_a & members[2].contains(X, tol))
    np.testing.assert_array_equal((a | members[2]).contains(X, tol), in_a | members[2].contains(X, tol))
    both = members[0] & members[1]
    np.testing.assert_array_equal(both.contains(X, tol), members[0].contains(X, tol) & members[1].contains(X, tol))
    assert len(a & b) == len(a) * len(b)
    assert len(a | b) == len(a) + len(b)
    event(f"some in both: {(in_a & in_b).any()}")


def test_empty_region_is_neutral_or_absorbing() -> None:
    empty, some = Region((), dim=2), Region([ConvexSet(2, lower=[0.0, 0.0])])
    X = np.array([[1.0, 1.0], [-1.0, 0.0]])
    assert len(empty) == 0
    assert not empty.contains(X).any()
    assert len(empty & some) == len(some & empty) == 0
    assert (empty & some).dim == 2
    np.testing.assert_array_equal((empty | some).contains(X), some.contains(X))
    np.testing.assert_array_equal((some | empty).contains(X), some.contains(X))
    assert len(empty.shrink(1.0)) == 0
    assert empty.pullback(Affine(np.ones((2, 3)), np.zeros(2))).dim == 3


def test_set_and_region_meet_in_either_order() -> None:
    half, right = (
        ConvexSet(2, upper=[0.0, np.inf]),
        Region([ConvexSet(2, lower=[-1.0, 0.0]), ConvexSet(2, lower=[5.0, 0.0])]),
    )
    X = cloud(2, 0)
    np.testing.assert_array_equal((half & right).contains(X), (right & half).contains(X))


@pytest.mark.parametrize("operation", ["&", "|"])
def test_dimensions_have_to_agree(operation: str) -> None:
    a, b = Region([ConvexSet(2)]), Region([ConvexSet(3)])
    for left, right in ((a, b), (a, ConvexSet(3)), (b, Region((), dim=2))):
        with pytest.raises(ValueError, match=r"dimension"):
            _ = left & right if operation == "&" else left | right
    with pytest.raises(ValueError, match="dimension 2 and 3"):
        _ = ConvexSet(2) & ConvexSet(3)


# --- pullback ---------------------------------------------------------------------------------------------------------


@st.composite
def maps(draw, outputs: int) -> Affine:
    inputs = draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(seeds))
    kind = draw(st.sampled_from(["dense", "sparse", "selection", "scaling"]))
    if kind == "scaling":
        inputs = outputs
        matrix = np.diag(rng.choice([-2.0, -0.5, 0.25, 1.0, 3.0], outputs))
    elif kind == "selection":
        matrix = np.eye(inputs)[rng.integers(0, inputs, outputs)]
    else:
        matrix = rng.normal(size=(outputs, inputs))
        if kind == "sparse":
            matrix = np.where(rng.random(matrix.shape) < 0.5, matrix, 0.0)  # with rows of zeros
    return Affine(matrix, rng.integers(-3, 4, outputs).astype(float))


@settings(max_examples=120)
@given(st.data(), seeds)
def test_pullback_contains_what_is_mapped_inside(data, seed: int) -> None:
    dim = data.draw(dims)
    region = Region(tuple(data.draw(st.lists(sets(dim), min_size=1, max_size=3))))
    affine = data.draw(maps(dim))
    pulled = region.pullback(affine)
    assert pulled.dim == affine.matrix.shape[1]
    X = cloud(pulled.dim, seed)
    Z = affine(X)
    known = clear(region, Z) & clear(pulled, X)
    assert known.mean() > 0.3
    event(f"some inside: {region.contains(Z)[known].any()}")
    np.testing.assert_array_equal(pulled.contains(X)[known], region.contains(Z)[known])


@settings(max_examples=60)
@given(st.data(), seeds)
def test_pullback_through_a_chain(data, seed: int) -> None:
    piece = data.draw(dims.flatmap(sets))
    last = data.draw(maps(piece.dim))
    first = data.draw(maps(last.matrix.shape[1]))
    once, twice = piece.pullback(first.then(last)), piece.pullback(last).pullback(first)
    X = cloud(first.matrix.shape[1], seed)
    np.testing.assert_allclose(first.then(last)(X), last(first(X)), atol=1e-9)
    known = clear(once, X) & clear(twice, X)
    np.testing.assert_array_equal(once.contains(X)[known], twice.contains(X)[known])


def test_box_stays_a_box_through_scaling_and_selection() -> None:
    """Trees behind a scaler keep their closed form."""
    piece = ConvexSet(3, lower=[0.0, -np.inf, 1.0], upper=[4.0, 2.0, np.inf])
    pulled = piece.pullback(Affine([[2.0, 0.0], [0.0, -1.0], [0.0, 4.0]], [0.0, 1.0, 0.0]))
    assert pulled.G.shape == (0, 2)
    np.testing.assert_array_equal(pulled.lower, [0.0, 0.25])
    np.testing.assert_array_equal(pulled.upper, [2.0, np.inf])
    # -x1 + 1 <= 2 and 4 x1 >= 1: the stricter of two sides counts.
    np.testing.assert_array_equal(pulled.contains([[1.0, 0.2], [1.0, 0.3], [2.1, 0.3]]), [False, True, False])


@pytest.mark.parametrize("matrix", [[[2.0]], [[-2.0]], [[1.0, 1.0]], [[-1.0, 3.0]], [[0.0, 0.0]], [[0.0, 5.0]]])
@pytest.mark.parametrize(("lower", "upper"), [(1.0, 0.0), (np.inf, np.inf), (-np.inf, -np.inf), (np.inf, -np.inf)])
def test_empty_box_stays_empty(matrix, lower: float, upper: float) -> None:
    pulled = ConvexSet(1, [lower], [upper]).pullback(Affine(matrix, [0.5]))
    X = cloud(len(matrix[0]), 0)
    assert not pulled.contains(np.vstack([X, 1e6 * X])).any()


def test_pullback_through_fewer_dimensions_is_a_cylinder() -> None:
    disc = ConvexSet(2, ellipsoids=(Ellipsoid(np.eye(2), [1.0, 0.0], 1.0),))
    pulled = disc.pullback(Affine([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [0.0, 0.0]))
    assert pulled.contains([[1.0, 0.0, 1e6], [1.0, 0.9, -1e6], [1.0, 1.1, 0.0]]).tolist() == [True, True, False]
    with pytest.raises(ValueError, match="ends in 3 dimensions, the set lives in 2"):
        disc.pullback(Affine.identity(3))


# --- shrink -----------------------------------------------------------------------------------------------------------


def changes(cost: L1 | L2, dim: int, rng: np.random.Generator, n: int = 100) -> np.ndarray:
    """Changes of cost one: the corners of the ball, and directions at random."""
    directions = np.vstack(
        [np.eye(dim), -np.eye(dim), rng.normal(size=(n, dim)), rng.choice([-1.0, 0.0, 1.0], (n, dim))]
    )
    price = cost(directions, np.zeros_like(directions))
    return directions[price > 0] / price[price > 0, None]


@settings(max_examples=100)
@given(st.data(), seeds, st.sampled_from([0.01, 0.3, 1.0]))
def test_no_change_within_the_margin_leaves_the_set(data, seed: int, margin: float) -> None:
    dim = data.draw(dims)
    piece, cost = data.draw(sets(dim)), data.draw(costs(data.draw(units_of(dim))))
    rng = np.random.default_rng(seed)
    shrunk = Region([piece]).shrink(margin, cost)
    X = cloud(dim, seed)
    X = X[shrunk.contains(X, tol=0.0)]
    event(f"some left: {len(X) > 0}")
    for step in margin * (1 - 1e-9) * changes(cost, dim, rng):
        assert piece.contains(X + step, tol=1e-9 * (1.0 + np.abs(X + step).max(initial=0.0))).all()


@settings(max_examples=100)
@given(st.data(), seeds, st.sampled_from([0.01, 0.3, 1.0]))
def test_rows_and_boxes_shrink_no_more_than_they_have_to(data, seed: int, margin: float) -> None:
    """From every point that was cut off, a change within the margin leaves the set."""
    dim = data.draw(dims)
    piece, cost = data.draw(pieces(dim, 0, data.draw(st.booleans()))), data.draw(costs(np.ones(dim)))
    piece = ConvexSet(dim, piece.lower, piece.upper, piece.G, piece.h)
    shrunk = piece.shrink(margin, cost)
    X = cloud(dim, seed)
    cut = X[piece.contains(X, tol=0.0) & ~shrunk.contains(X, tol=1e-9)]
    event(f"some cut off: {len(cut) > 0}")
    walls = np.vstack([piece.G, np.eye(dim), -np.eye(dim)])
    for x in cut:
        steps = []
        for wall in walls:
            if isinstance(cost, L1):  # the column in which a unit of cost goes furthest
                weights = np.ones(dim) if cost.weights is None else cost.weights
                j = int(np.argmax(np.abs(wall) / weights))
                steps.append(np.sign(wall[j]) * np.eye(dim)[j])
            else:
                omega = (
                    np.diag(np.ones(dim) if cost.weights is None else cost.weights)
                    if cost.matrix is None
                    else cost.matrix
                )
                steps.append(np.linalg.solve(omega, wall))
        directions = np.array(steps)
        directions *= margin * (1 + 1e-7) / cost(directions, np.zeros_like(directions))[:, None]
        assert not piece.contains(x + directions, tol=0.0).all()


@pytest.mark.parametrize(
    ("cost", "sides", "row"),
    [
        ("l1", [1.0, 1.0], 4.0),
        ("l2", [1.0, 1.0], 5.0),
        (L1([2.0, 0.5]), [0.5, 2.0], 8.0),
        (L2([4.0, 0.25]), [0.5, 2.0], np.hypot(1.5, 8.0)),
        (L2(matrix=[[4.0, 0.0], [0.0, 0.25]]), [0.5, 2.0], np.hypot(1.5, 8.0)),
    ],
)
def test_shrinking_by_the_dual_norm(cost, sides: list[float], row: float) -> None:
    piece = ConvexSet(2, [0.0, -np.inf], [9.0, 9.0], [[3.0, 4.0]], [20.0])
    shrunk = piece.shrink(0.1, cost)
    np.testing.assert_allclose(shrunk.lower, [0.1 * sides[0], -np.inf])
    np.testing.assert_allclose(shrunk.upper, 9.0 - 0.1 * np.array(sides))
    np.testing.assert_allclose(shrunk.h, [20.0 - 0.1 * row])


def test_ball_shrinks_exactly_in_l2() -> None:
    ball = ConvexSet(3, ellipsoids=(Ellipsoid(2.0 * np.eye(3), [0.0, 2.0, 0.0], 6.0),))
    assert ball.shrink(1.0, "l2").ellipsoids[0].radius == pytest.approx(4.0)
    # In l1 the longest step of cost one goes along an axis: the same here.
    assert ball.shrink(1.0, "l1").ellipsoids[0].radius == pytest.approx(4.0)
    assert ball.shrink(1.0, L2([4.0, 1.0, 1.0])).ellipsoids[0].radius == pytest.approx(4.0)
    assert ball.shrink(1.0, L2([4.0, 4.0, 4.0])).ellipsoids[0].radius == pytest.approx(5.0)


@settings(max_examples=40)
@given(st.data(), seeds)
def test_margins_add_up(data, seed: int) -> None:
    piece = data.draw(dims.flatmap(sets))
    cost = data.draw(costs(np.ones(piece.dim)))
    X = cloud(piece.dim, seed)
    np.testing.assert_array_equal(piece.shrink(0.0, cost).contains(X), piece.contains(X))
    once, twice = piece.shrink(0.5, cost), piece.shrink(0.2, cost).shrink(0.3, cost)
    known = clear(once, X)
    np.testing.assert_array_equal(once.contains(X)[known], twice.contains(X)[known])
    assert not (once.contains(X, tol=0.0) & ~piece.contains(X, tol=0.0)).any()


def test_margin_wider_than_the_set_leaves_nothing() -> None:
    X = cloud(2, 0)
    for piece in (
        ConvexSet(2, lower=[0.0, 0.0], upper=[1.0, 9.0]),
        ConvexSet(2, G=[[1.0, 0.0], [-1.0, 0.0]], h=[1.0, 0.0]),
        ConvexSet(2, ellipsoids=(Ellipsoid(np.eye(2), [0.0, 0.0], 0.5),)),
    ):
        assert not piece.shrink(0.6).contains(X, tol=0.0).any()


@pytest.mark.parametrize("margin", [-0.1, np.nan, np.inf, -np.inf])
def test_wrong_margins(margin: float) -> None:
    for shape in (ConvexSet(2), Region([ConvexSet(2)])):
        with pytest.raises(ValueError, match="margin must be a number >= 0"):
            shape.shrink(margin)


def test_shrinking_with_a_wrong_cost() -> None:
    with pytest.raises(ValueError, match="not a known cost"):
        ConvexSet(2).shrink(0.1, "max")
    with pytest.raises(ValueError, match="3 weights"):
        ConvexSet(2).shrink(0.1, L1([1.0, 1.0, 1.0]))


# --- Construction -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConvexSet(0), "dim must be at least 1"),
        (lambda: ConvexSet(2, lower=[0.0]), r"dimension 2 got parts of dimension \[1, 2, 2\]"),
        (lambda: ConvexSet(2, upper=[[0.0, 0.0]]), "upper must have 1 dimension"),
        (lambda: ConvexSet(2, lower=[0.0, np.nan]), "lower contains NaN"),
        (lambda: ConvexSet(2, G=[[1.0, 0.0]]), "G and h come together"),
        (lambda: ConvexSet(2, h=[1.0]), "G and h come together"),
        (lambda: ConvexSet(2, G=[[1.0, 0.0]], h=[1.0, 2.0]), "G has 1 rows and h has 2"),
        (lambda: ConvexSet(2, G=[[1.0, np.inf]], h=[1.0]), "G contains infinity"),
        (lambda: ConvexSet(2, G=[[1.0, 0.0]], h=[np.nan]), "h contains NaN"),
        (lambda: ConvexSet(2, G=[1.0, 0.0], h=[1.0]), "G must have 2 dimension"),
        (lambda: ConvexSet(2, G=[[1.0, 0.0, 0.0]], h=[1.0]), "dimension 2 got parts"),
        (lambda: ConvexSet(2, ellipsoids=(Ellipsoid([[1.0]], [0.0], 1.0),)), "dimension 2 got parts"),
        (lambda: Ellipsoid([[1.0, 0.0]], [0.0, 1.0], 1.0), "1 rows and offset has 2"),
        (lambda: Ellipsoid([[1.0, np.nan]], [0.0], 1.0), "Ellipsoid.matrix contains NaN"),
        (lambda: Ellipsoid([[1.0, 0.0]], [np.inf], 1.0), "Ellipsoid.offset contains infinity"),
        (lambda: Ellipsoid([[1.0, 0.0]], [0.0], np.inf), "radius must be finite"),
        (lambda: Ellipsoid([[1.0, 0.0]], [0.0], np.nan), "radius must be finite"),
        (lambda: Affine([[1.0, 0.0]], [0.0, 1.0]), "1 rows and offset has 2"),
        (lambda: Affine([1.0, 0.0], [0.0]), "Affine.matrix must have 2 dimension"),
        (lambda: Affine([[np.nan]], [0.0]), "Affine.matrix contains NaN"),
        (lambda: Region(()), "no piece and no dim"),
        (lambda: Region([ConvexSet(2), ConvexSet(3)]), r"share one dimension; got \[2, 3\]"),
        (lambda: Region([ConvexSet(2)], dim=3), r"share one dimension; got \[2, 3\]"),
    ],
)
def test_wrong_parts(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("X", [np.zeros(2), np.zeros((1, 3)), np.zeros((1, 2, 2))])
def test_wrong_tables(X: np.ndarray) -> None:
    for shape in (ConvexSet(2), Region([ConvexSet(2)]), Ellipsoid(np.eye(2), np.zeros(2), 1.0)):
        with pytest.raises(ValueError, match="table with 2 columns"):
            shape.contains(X)
    with pytest.raises(ValueError, match="table with 2 columns"):
        Affine.identity(2)(X)


def test_sets_are_values() -> None:
    lower, G = np.zeros(2), np.ones((1, 2))
    piece = ConvexSet(2, lower, None, G, [1.0])
    region = Region([piece])
    lower[:], G[:] = 9.0, 9.0
    np.testing.assert_array_equal(piece.lower, 0.0)
    np.testing.assert_array_equal(piece.G, 1.0)
    for array in (piece.lower, piece.upper, piece.G, piece.h):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(AttributeError):
        piece.dim = 3
    assert isinstance(region.pieces, tuple)
    assert repr(region) == "Region(1 pieces in 2 dimensions)"


def test_affine_maps() -> None:
    double = Affine([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]], [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(double([[1.0, 2.0], [0.0, 0.0]]), [[3.0, 4.0, 3.0], [1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(Affine.identity(2)([[1.0, 2.0]]), [[1.0, 2.0]])
    after = double.then(Affine([[1.0, 1.0, 1.0]], [-1.0]))
    np.testing.assert_array_equal(after([[1.0, 2.0]]), [[9.0]])
