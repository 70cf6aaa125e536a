"""l2 answers computed from what holds them: problems that are made around their solution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.projection.norms.polish import held_point
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
    room = 1e-14 * (np.abs(h) + np.linalg.norm(xi))
    held = held_point(A, h, (R, g, rho) if curved else None, rough, 1.01 * weight, room)
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
    held = held_point(A, h, None, wrong, 0.0, 1e-13 * (np.abs(h) + np.linalg.norm(xi)))
    if held is not None:  # rows are added one at a time, which need not settle
        assert np.allclose(held.xi, xi, rtol=1e-9, atol=1e-9 * np.linalg.norm(xi))
