"""Model files opened in this process at once, for tests that open many and are about what happens here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evenhand.auditing.model_files import load


@pytest.fixture(autouse=True, scope="module")
def opened_here() -> Iterator[None]:
    """No process that dies of a file hides that this one would."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(load, "open_elsewhere", lambda read, data, path: read(data, path))
        yield
