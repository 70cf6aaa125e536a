"""One thread for tests that predict and fit in many small steps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits

from evenhand import parallel


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Many small predictions: threads that wait for each other cost more than they bring."""
    with threadpool_limits(1):
        yield


@pytest.fixture(autouse=True)
def threads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads for a few dozen people, too, where they would never pay: their answers have to be the same."""
    monkeypatch.setattr(parallel, "TRIAL", 1)
    monkeypatch.setattr(parallel, "WORTH", 0.0)
    monkeypatch.setattr(parallel, "LEAST", 0.0)
