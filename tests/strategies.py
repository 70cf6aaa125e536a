"""Regions, costs and queries for hypothesis to search.

Structure is drawn by hypothesis (so that it shrinks), real numbers come from a drawn seed.  A piece is
built around a point that it contains, or with a contradiction in it, or freely; and in units that
differ from column to column by up to six orders of magnitude.  Units are powers of two, so that integer
data stay exact in them and ties stay ties.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from evenhand import L1, L2
from evenhand.sets import ConvexSet, Ellipsoid, Region

seeds = st.integers(0, 2**32 - 1)


class Case(NamedTuple):
    """A region, queries, a cost, and the unit of each column; `plain` is the region with all units one."""

    region: Region
    X: np.ndarray
    cost: L1 | L2
    units: np.ndarray
    plain: Region

    def inside(self, points: np.ndarray, tol: float) -> np.ndarray:
        """Which points lie in the region, up to `tol` in each column's own unit."""
        return self.plain.contains(points / self.units, tol)

    @property
    def size(self) -> float:
        """A cost of the size of the data: what absolute errors are measured by."""
        values = np.abs(self.X).max(axis=0) + self.units
        return float(self.cost(values[None], np.zeros((1, len(values))))[0])


@st.composite
def units_of(draw, dim: int) -> np.ndarray:
    """1, or powers of two between 1e-3 and 1e3."""
    if draw(st.booleans()):
        return np.ones(dim)
    return 2.0 ** np.array(draw(st.lists(st.integers(-10, 10), min_size=dim, max_size=dim)))


@st.composite
def costs(draw, units: np.ndarray) -> L1 | L2:
    dim = len(units)
    kind = draw(st.sampled_from(["l1", "l1-units", "l1-weights", "l2", "l2-units", "l2-weights", "l2-matrix"]))
    rng = np.random.default_rng(draw(seeds))
    if kind == "l1":
        return L1()
    if kind == "l1-units":
        return L1(1.0 / units)
    if kind == "l1-weights":
        return L1(rng.uniform(0.2, 5.0, dim) / units)
    if kind == "l2":
        return L2()
    if kind == "l2-units":
        return L2(1.0 / units**2)
    if kind == "l2-weights":
        return L2(rng.uniform(0.1, 10.0, dim) / units**2)
    root = (rng.normal(size=(dim + 2, dim)) + np.eye(dim + 2, dim)) / units
    return L2(matrix=root.T @ root)


@st.composite
def rows(draw, dim: int, count: int, integer: bool) -> np.ndarray:
    if integer:
        row = st.lists(st.integers(-2, 2), min_size=dim, max_size=dim).filter(any)
        found = np.array(draw(st.lists(row, min_size=count, max_size=count)), dtype=float).reshape(count, dim)
    else:
        found = np.random.default_rng(draw(seeds)).normal(size=(count, dim))
        sparse = draw(st.booleans())
        if sparse and dim > 1:
            found[np.arange(count), np.arange(count) % dim] = 0.0
    if count > 1 and draw(st.booleans()):
        found[-1] = found[0] * draw(st.sampled_from([1.0, 2.0]))  # redundant
    return found


@st.composite
def ellipsoids(draw, dim: int, inside: np.ndarray | None) -> Ellipsoid:
    """Wide, square or tall; `inside` is a point well inside, if there has to be one."""
    height = draw(st.integers(1, dim + 2))
    rng = np.random.default_rng(draw(seeds))
    F = rng.normal(size=(height, dim)) * rng.choice([1.0, 1.0, 0.1], size=(height, 1))
    offset = rng.normal(size=height) * 3.0
    if inside is None:
        return Ellipsoid(F, offset, float(rng.choice([0.5, 2.0, 5.0])))
    return Ellipsoid(F, offset, float(np.linalg.norm(F @ inside - offset)) * float(rng.uniform(1.05, 2.0)) + 0.1)


@st.composite
def pieces(draw, dim: int, most_ellipsoids: int, integer: bool) -> ConvexSet:
    """One piece, all units one."""
    kind = draw(st.sampled_from(["around", "around", "around", "free", "empty"]))
    rng = np.random.default_rng(draw(seeds))
    anchor = rng.integers(-4, 5, dim).astype(float)
    n_ellipsoids = draw(st.integers(0, most_ellipsoids))
    # A slack of zero makes corners that are met exactly; together with an ellipsoid that would be a set without
    # interior, on which no method can tell "empty" from "one point".
    slacks = np.array([0.25, 1.0, 4.0] if n_ellipsoids or not integer else [0.0, 0.0, 1.0, 3.0])
    lower, upper = np.full(dim, -np.inf), np.full(dim, np.inf)
    for j in range(dim):
        side = draw(st.sampled_from(["", "", "low", "high", "both", "equal"]))
        if side in ("low", "both"):
            lower[j] = anchor[j] - rng.choice(slacks)
        if side in ("high", "both"):
            upper[j] = anchor[j] + rng.choice(slacks)
        if side == "equal":
            lower[j] = upper[j] = anchor[j]
    G = draw(rows(dim, draw(st.integers(0, 5)), integer))
    h = G @ anchor + rng.choice(slacks, len(G))
    if kind == "free":
        h = rng.integers(-5, 6, len(G)).astype(float) * (1.0 if integer else 0.7)
        lower, upper = np.where(lower == upper, -np.inf, lower), np.where(lower == upper, np.inf, upper)
    balls = tuple(draw(ellipsoids(dim, None if kind == "free" else anchor)) for _ in range(n_ellipsoids))
    if kind == "empty":
        how = draw(st.sampled_from(["box", "rows", "ellipsoid", "balls"]))
        if how == "box":
            j = draw(st.integers(0, dim - 1))
            lower[j], upper[j] = 2.0, 1.0
        elif how == "rows":
            row = draw(rows(dim, 1, integer))
            G, h = np.vstack([G, row, -row]), np.concatenate([h, row @ anchor - 0.5, -row @ anchor - 0.5])
        elif how == "ellipsoid":
            row = draw(rows(dim, 1, integer))
            G, h = np.vstack([G, row]), np.append(h, row @ anchor - 2.0 * np.linalg.norm(row))
            balls = (*balls[1:], Ellipsoid(np.eye(dim), anchor, 1.0))
        else:
            balls = (Ellipsoid(np.eye(dim), anchor, 1.0), Ellipsoid(np.eye(dim), anchor + 3.0, 1.0))
    return ConvexSet(dim, lower, upper, G, h, balls)


def in_units(piece: ConvexSet, units: np.ndarray) -> ConvexSet:
    """The same set, with column j measured in units of ``1 / units[j]``."""
    balls = tuple(Ellipsoid(e.matrix / units, e.offset, e.radius) for e in piece.ellipsoids)
    return ConvexSet(piece.dim, piece.lower * units, piece.upper * units, piece.G / units, piece.h, balls)


@st.composite
def cases(draw, most_ellipsoids: int = 2, most_pieces: int = 4, most_dims: int = 6, n_queries: int = 3) -> Case:
    """Any region, any cost, queries all around."""
    dim = draw(st.integers(1, most_dims))
    integer = draw(st.booleans())
    units = draw(units_of(dim))
    drawn = draw(st.lists(pieces(dim, most_ellipsoids, integer), min_size=1, max_size=most_pieces))
    rng = np.random.default_rng(draw(seeds))
    X = rng.integers(-8, 9, (n_queries, dim)).astype(float) if integer else rng.normal(size=(n_queries, dim)) * 5.0
    cost = draw(costs(units))
    return Case(Region(tuple(in_units(piece, units) for piece in drawn)), X * units, cost, units, Region(tuple(drawn)))


@st.composite
def tied_cases(draw, most_dims: int = 5, n_queries: int = 3) -> Case:
    """One polyhedron with small integers everywhere and the plain l1 cost: optima are often not unique."""
    dim = draw(st.integers(1, most_dims))
    region = Region((draw(pieces(dim, 0, True).filter(lambda piece: not piece.ellipsoids)),))
    X = np.random.default_rng(draw(seeds)).integers(-8, 9, (n_queries, dim)).astype(float)
    return Case(region, X, L1(), np.ones(dim), region)
