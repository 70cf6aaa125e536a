"""Pickles name classes by their modules: one that was written before a module was split can still be read."""

from __future__ import annotations

import importlib
import pickle

import pytest

FORMER = {
    "evenhand.density": "ClassDensities HighDensity log_peaks weighted_log_densities",
    "evenhand.methods.penalized": "LOSSES Loss Penalized PenalizedExplainer hinge_loss log_loss searched zero_one_loss",
    "evenhand.models.encoders": "has_encoders table_view",
    "evenhand.models.lvq": "GLVQ GMLVQ",
    "evenhand.table.limits": "DOWN FIXED FREE UP Actionable ColumnName IfChanges Limits RisesWith Rule Tie position",
}


@pytest.mark.parametrize(("module", "name"), [(m, name) for m, names in FORMER.items() for name in names.split()])
def test_is_found_where_it_was(module: str, name: str) -> None:
    found = pickle.loads(f"c{module}\n{name}\n.".encode())
    assert found is getattr(importlib.import_module(module), name)


def test_other_names_are_not_found() -> None:
    with pytest.raises(ImportError, match="cannot import name 'Actionables'"):
        from evenhand.table.limits import Actionables  # type: ignore[attr-defined] # noqa: F401


@pytest.mark.parametrize("name", ["GLVQ", "GMLVQ"])
def test_models_are_written_as_before(name: str) -> None:
    """Files of skops name the classes that may be opened."""
    models = importlib.import_module("evenhand.models")
    assert getattr(models, name).__module__ == "evenhand.models.lvq"
