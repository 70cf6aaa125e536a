"""What is imported when: a help text waits for no compiler, and names are found all the same."""

from __future__ import annotations

import subprocess
import sys

import pytest

import evenhand

HEAVY = ("numba", "sklearn", "pandas", "scipy", "altair", "pyarrow", "clarabel")


@pytest.mark.parametrize("module", ["evenhand", "evenhand.cli.app"])
def test_nothing_heavy_before_it_is_used(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"


def test_every_name_is_there_and_listed() -> None:
    assert set(evenhand.__all__) <= set(dir(evenhand))
    for name in evenhand.__all__:
        assert getattr(evenhand, name) is not None
        assert name == "__version__" or name in evenhand._HOMES
    assert {"costs", "sets", "projection"} <= set(dir(evenhand))
    assert evenhand.projection.project is not None


def test_a_name_that_is_elsewhere_is_told() -> None:
    with pytest.raises(AttributeError, match=r"It is in evenhand\.sets: from evenhand\.sets import Region"):
        _ = evenhand.Region
    with pytest.raises(AttributeError, match=r"has no attribute 'Nothing'\.$"):
        _ = evenhand.Nothing
    assert not hasattr(evenhand, "_nothing")
