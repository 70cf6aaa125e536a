"""One thread for tests that predict and fit in many small steps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Many small predictions: threads that wait for each other cost more than they bring."""
    with threadpool_limits(1):
        yield
