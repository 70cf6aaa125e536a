"""l2 answers computed from what holds them: problems that are made around their solution."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.projection.norms.polish import held_point, shortest
from strategies import seeds


def made_around(seed: int, nearly: float, needle: float, *, curved: bool) -> tuple[np.ndarray, ...]:
    """Rows that are nearly parallel, a ball that is nearly a needle, and the point that they hold."""
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(2, 7))
    n = int(rng.integers(0 if curved else 1, dim - 1 if curved else dim))
    A = rng.normal(size=(n, dim))
    for i in range(1, n):
        A[i] = A[0] + nearly * A[i]
    mult = rng.uniform(0.5, 2.0, n)
    R = np.linalg.qr(rng.normal(size=(dim, dim)))[0] * np.geomspace(1.0, needle, dim) if curved else np.zeros((0, dim))
    push = rng.normal(size=len(R)) * (np.geomspace(1.0, 1.0 / needle, dim) if curved else 1.0)
    xi = -(A.T @ mult + R.T @ push)
    loose = rng.normal(size=(3, dim))
    rows, sides = np.vstack([A, loose]), np.concatenate([A @ xi, loose @ xi + 0.1])
    weight = float(rng.uniform(0.5, 2.0)) if curved else 0.0
    away = push / weight if curved else push
    return rows, sides, R, R @ xi - away, np.linalg.norm(away), np.append(mult, np.zeros(3)), weight, xi


@pytest.mark.parametrize("curved", [False, True])
@given(seed=seeds, nearly=st.sampled_from([1.0, 1e-3, 1e-6]), needle=st.sampled_from([1.0, 1e-3]))
def test_the_point_that_rows_and_a_ball_hold(curved: bool, seed: int, nearly: float, needle: float) -> None:
    """What holds it is known only roughly."""
    A, h, R, g, rho, mult, weight, xi = made_around(seed, nearly, needle, curved=curved)
    rough = mult * np.random.default_rng(seed).uniform(0.99, 1.01, len(mult))
    near = xi * (1.0 + 1e-6)
    room = 1e-14 * (np.abs(h) + np.linalg.norm(xi))
    held = held_point(A, h, (R, g, rho) if curved else None, near, rough, 1.01 * weight, room)
    assert held is not None
    size = np.linalg.norm(xi)
    assert np.linalg.norm(held.xi - xi) <= 1e-11 / nearly / needle * size
    pull = held.xi + A.T @ held.mult + R.T @ held.push
    assert np.linalg.norm(pull) <= 1e-12 / nearly * (size + np.linalg.norm(R.T @ held.push))
    assert (A @ held.xi - h <= room).all()


@given(seed=seeds)
def test_rows_that_were_left_out_are_found(seed: int) -> None:
    """And those that hold nothing are let go."""
    A, h, _, _, _, mult, _, xi = made_around(seed, 1.0, 1.0, curved=False)
    wrong = np.where(np.arange(len(mult)) == 0, mult, 0.0)
    held = held_point(A, h, None, xi, wrong, 0.0, 1e-13 * (np.abs(h) + np.linalg.norm(xi)))
    if held is not None:  # rows are added one at a time, which need not settle
        assert np.allclose(held.xi, xi, rtol=1e-9, atol=1e-9 * np.linalg.norm(xi))


def solved(A: list[list[Fraction]], b: list[Fraction]) -> list[Fraction] | None:
    """By elimination; None if there is not one solution."""
    rows = [[*row, side] for row, side in zip(A, b, strict=True)]
    for i in range(len(rows)):
        pivot = next((k for k in range(i, len(rows)) if rows[k][i] != 0), None)
        if pivot is None:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(len(rows)):
            if k != i and rows[k][i] != 0:
                rows[k] = [a - rows[k][i] * c for a, c in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]


def exact_square(A: np.ndarray, h: np.ndarray) -> Fraction | None:
    """The least squared length of a point with A x <= h, in rational numbers; None if there is none.

    Some set of rows holds it: all of them are tried.
    """
    rows, sides = [[Fraction(v) for v in row] for row in A.tolist()], [Fraction(v) for v in h.tolist()]
    best = None
    for n in range(A.shape[1] + 1):
        for chosen in combinations(range(len(rows)), n):
            own = [rows[i] for i in chosen]
            push = solved(
                [[sum(a * c for a, c in zip(r, s, strict=True)) for s in own] for r in own], [sides[i] for i in chosen]
            )
            if push is None:
                continue
            x = [sum(u * r[j] for u, r in zip(push, own, strict=True)) for j in range(A.shape[1])]
            square = sum((v * v for v in x), Fraction(0))
            kept = all(sum(a * v for a, v in zip(r, x, strict=True)) <= s for r, s in zip(rows, sides, strict=True))
            if kept and (best is None or square < best):
                best = square
    return best


@given(seed=seeds, apart=st.sampled_from([0.0, 4.0, 8.0]))
def test_columns_that_are_orders_apart(seed: int, apart: float) -> None:
    """Narrow bounds and rows in which one column is next to nothing beside another, against rational numbers."""
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(2, 4))
    rows = rng.normal(size=(2, dim)) * 10.0 ** rng.uniform(-apart, 0.0, dim)
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    A = np.vstack([rows, np.eye(dim), -np.eye(dim)])
    reach = 10.0 ** rng.uniform(-2.0, 1.0, 2 * dim) * np.tile(10.0 ** rng.uniform(-apart / 2, apart / 2, dim), 2)
    h = np.append(-np.abs(rows) @ reach[:dim] * rng.uniform(0.0, 1.2, 2), reach)
    exact, found = exact_square(A, h), shortest(A, h, np.zeros(len(h)))
    assert found is not None
    if exact is None:
        assert found.xi is None
        assert np.abs(A.T @ found.mult).max() <= 1e-12 * (np.abs(A).T @ found.mult).max()
        return
    assert found.xi is not None
    length = float(np.sqrt(float(exact)))
    assert np.linalg.norm(found.xi) == pytest.approx(length, rel=1e-13 * 10.0**apart + 1e-9, abs=1e-300)
    assert (A @ found.xi - h <= 1e-12 * (np.abs(A) @ np.abs(found.xi) + np.abs(h))).all()
