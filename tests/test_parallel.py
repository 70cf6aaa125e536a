"""Chunks and threads: every row once, in order, and threads only where they gain something."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand import parallel
from evenhand.parallel import in_chunks


@given(st.integers(0, 12_000), st.integers(1, 9000), st.sampled_from([None, 1, 2, 3, -1]))
def test_every_row_once_and_in_order(n: int, chunk_size: int, n_jobs: int | None) -> None:
    told: list[tuple[int, int]] = []
    rows: list[int] = []
    for part, found in in_chunks(
        lambda rows: list(range(rows.start, rows.stop)), n, n_jobs, chunk_size, lambda *x: told.append(x)
    ):
        assert found == [*range(n)[part]]
        assert len(found) <= chunk_size
        rows += found
    assert rows == list(range(n))
    assert [total for _, total in told] == [n] * len(told)
    assert not told or told[-1] == (n, n)


@pytest.mark.parametrize(("n", "pause", "several"), [(1000, 1e-4, False), (50_000, 0.0, False), (9000, 1e-4, True)])
def test_threads_start_where_there_is_enough_to_do(n: int, pause: float, several: bool) -> None:
    """Not for a thousand people, nor for work that is done before threads have started."""
    who = set()

    def work(rows: slice) -> None:
        who.add(threading.get_ident())
        if pause:
            time.sleep(pause * (rows.stop - rows.start))

    assert len(list(in_chunks(work, n, 2, 16384, None))) >= 1
    assert (len(who) > 1) == several


def test_what_threads_need_is_said() -> None:
    with pytest.raises(ValueError, match="chunk_size must be at least 1, got 0"):
        list(in_chunks(lambda _: None, 3, None, 0, None))
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        parallel.count_jobs(0)
