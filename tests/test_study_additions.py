"""A perturbation from outside in a study: one file, named by the study, on any number of workers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand import Closest, instability
from evenhand.perturbations import PERTURBATIONS, by_name
from evenhand.study import StudyError, combined, read_study, run_study
from evenhand.study.cells import _fitted
from evenhand.study.perturbations import read_perturbation

ADDED = '''
from dataclasses import dataclass

import numpy as np

from evenhand.perturbations import register


@register
@dataclass(frozen=True)
class SaltAndPepper:
    """Some values become the lowest or the highest of their column."""

    probability: float = 0.1
    low: tuple = ()
    high: tuple = ()

    def fit(self, X):
        return self if self.low else SaltAndPepper(self.probability, tuple(X.min(axis=0)), tuple(X.max(axis=0)))

    def __call__(self, X, rng):
        chance = rng.random((*X.shape, 2))
        extreme = np.where(chance[..., 0] < 0.5, self.low, self.high)
        return np.where(chance[..., 1] < self.probability, extreme, X)
'''

STUDY = """
seed = 1
folds = 2
modules = ["added.py"]

[data.blobs]
source = "blobs"
dim = [3]
samples = 40

[models.tree]
kind = "tree"
max_depth = 2

[models.softmax]
kind = "softmax"

[methods.closest]
kind = "closest"

[perturbations.noise]
kind = "gaussian"
covariance = [0.1, 1.0]

[perturbations.extremes]
kind = "salt_and_pepper"
probability = [0.3, 0.6]

[[experiments]]
name = "added"
data = ["blobs"]
models = ["tree", "softmax"]
methods = ["closest"]
perturbations = ["noise", "extremes"]
"""


@pytest.fixture(autouse=True)
def _nothing_stays_registered() -> Iterator[None]:
    before = dict(PERTURBATIONS)
    yield
    PERTURBATIONS.clear()
    PERTURBATIONS.update(before)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "added.py").write_text(ADDED)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"


def test_one_file_adds_a_perturbation_on_any_number_of_workers(file: Path) -> None:
    study = read_study(file)
    alone = run_study(study, file.parent / "alone", version="x", jobs=1)
    together = run_study(study, file.parent / "together", version="x", jobs=2)
    table = combined(alone.tables)
    pd.testing.assert_frame_equal(table, combined(together.tables))
    levels = table.groupby("perturbation", observed=True)["level"].unique()
    assert levels["noise"].tolist() == [0.1, 1.0]
    assert levels["extremes"].tolist() == [0.3, 0.6]
    assert run_study(study, file.parent / "alone", version="x", jobs=1).reused == len(alone.tables)


def test_it_gives_what_the_public_functions_give(file: Path) -> None:
    study = read_study(file)
    outcome = run_study(study, file.parent / "out", version="x", jobs=1)
    cell = next(cell for cell in outcome.tables if cell.model.name == "tree" and cell.fold == 1)
    model, fold = _fitted(cell.data, 3, cell.scale, cell.model, 2, 1, study.folder)
    right = model.predict(fold.X_test) == fold.y_test
    people = pd.DataFrame(fold.X_test[right], index=fold.people[right])
    added = by_name("SaltAndPepper", probability=0.6).fit(fold.X_train)
    by_hand = instability(Closest("l1").fit(model), people, added, target="random", random_state=1).table
    table = outcome.tables[cell]
    part = table[(table["perturbation"] == "extremes") & (table["level"] == 0.6)]
    np.testing.assert_allclose(part["distance"], by_hand["distance"], rtol=1e-9)
    assert part["distance"].gt(0).any()


def test_another_content_is_another_study(file: Path) -> None:
    first = run_study(read_study(file), file.parent / "out", version="x", jobs=1)
    (file.parent / "added.py").write_text(ADDED.replace("< 0.5", "< 0.9"))
    second = run_study(read_study(file), file.parent / "out", version="x", jobs=1)
    assert second.reused == 0
    before, after = (combined(outcome.tables).set_index("perturbation") for outcome in (first, second))
    assert before.loc["noise", "distance"].tolist() == after.loc["noise", "distance"].tolist()
    assert before.loc["extremes", "distance"].tolist() != after.loc["extremes", "distance"].tolist()


def test_the_command_line_knows_it_too(file: Path) -> None:
    out = file.parent / "out"
    command = [sys.executable, "-m", "evenhand", "study", str(file), "--out", str(out), "--jobs", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    summary = pd.read_csv(out / "summary.csv")
    assert set(summary["perturbation"]) == {"noise", "extremes"}
    expected = combined(run_study(read_study(file), file.parent / "here", version="x", jobs=1).tables)
    drawn = pd.read_parquet(out / "draws.parquet")
    assert drawn["distance"].tolist() == expected["distance"].tolist()


def test_a_module_that_python_can_import(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file.parent / "added.py").rename(file.parent / "a_module_of_a_study.py")
    file.write_text(STUDY.replace('["added.py"]', '"a_module_of_a_study"'))
    with pytest.raises(StudyError, match=r"No module named.*Did you mean 'a_module_of_a_study.py'\?.*installed"):
        read_study(file)
    monkeypatch.syspath_prepend(str(file.parent))
    try:
        assert read_study(file).modules == ("a_module_of_a_study",)
    finally:
        sys.modules.pop("a_module_of_a_study", None)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('["added.py"]', '["add.py"]', r"there is no file .*add.py. Did you mean 'added.py'\? Possible are"),
        ('["added.py"]', "3", "modules must be a list, each a text; got 3. Possible are"),
        ('["added.py"]', "[]", "kind must be one of .*gaussian.*; got 'salt_and_pepper'.*can register others.*modules"),
        ('"salt_and_pepper"', '"salt_and_peper"', r"Did you mean 'salt_and_pepper'\?"),
        (
            "probability = [0.3",
            "probabilty = [0.3",
            r"Did you mean 'probability'\? Possible are kind, probability, low",
        ),
        ("probability = [0.3, 0.6]", "probability = []", "extremes.probability must be a number, a list of at least"),
        ("probability = [0.3, 0.6]", "probability = {a = 1}", "extremes.probability must be a number, a text"),
        ("probability = [0.3, 0.6]", "relative = 1", "extremes.relative must be true or false; got 1"),
        ("covariance = [0.1, 1.0]", "covariance = -1", "perturbations.noise: A variance cannot be negative"),
        ("covariance = [0.1, 1.0]", "radius = 1", "Unknown key 'radius' in perturbations.noise"),
        ('kind = "gaussian"\n', "", "perturbations.noise has no 'kind'; it must be one of .*salt_and_pepper"),
        ('kind = "gaussian"', 'kind = "mixed"', "noise.kind must be one of .*; got 'mixed'"),
        ('kind = "gaussian"', "kind = [1]", "noise.kind must be one of .*; got .1."),
    ],
)
def test_refused_before_anything_runs(file: Path, old: str, new: str, text: str) -> None:
    assert old in STUDY
    file.write_text(STUDY.replace(old, new, 1))
    with pytest.raises(StudyError, match=text):
        read_study(file)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("1 / 0", "ZeroDivisionError"),
        ("def", "SyntaxError"),
        (
            ADDED.replace("class SaltAndPepper", "class Gaussian"),
            "evenhand_study_added.Gaussian in .*added.py cannot be the perturbation 'gaussian'",
        ),
        (ADDED.replace("@dataclass(frozen=True)\n", ""), "TypeError: A perturbation is a dataclass"),
    ],
)
def test_a_module_that_fails_is_named(file: Path, content: str, text: str) -> None:
    (file.parent / "added.py").write_text(content)
    with pytest.raises(StudyError, match=f"modules: 'added.py' cannot be imported: .*{text}.*Possible are"):
        read_study(file)
    assert "evenhand_study_added" not in sys.modules


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('kind = "gaussian"\ncovariance = [0.1, 1.0]', 'kind = "mask"\nfeatures = 4', "Mask cannot replace 4 features"),
        ('kind = "gaussian"\ncovariance = [0.1, 1.0]', 'kind = "neighbor"\nk = 20', "k must be .* from 1 to 19"),
        (
            'kind = "gaussian"\ncovariance = [0.1, 1.0]',
            'kind = "neighbor"\nk = 2\nrelative = true',
            "Neighbor is measured in units of the spread by itself",
        ),
    ],
)
def test_what_does_not_fit_the_data_is_refused_before_anything_runs(file: Path, old: str, new: str, text: str) -> None:
    assert old in STUDY
    file.write_text(STUDY.replace(old, new, 1))
    with pytest.raises(StudyError, match=f"perturbations.noise cannot be used with data.blobs.*3 columns: {text}"):
        run_study(read_study(file), file.parent / "out", version="x", jobs=1)
    assert not (file.parent / "out").exists()


def test_parameters_keep_their_meaning() -> None:
    mask = read_perturbation({"kind": "mask", "features": "half", "baseline": "mean"}, "m")
    people = np.arange(12.0).reshape(2, 6)
    assert [level for level, _ in mask.levels(people)] == [1.0, 2.0, 3.0]
    assert mask.levels(people)[0][1].baseline.tolist() == people.mean(axis=0).tolist()  # type: ignore[attr-defined]
    bounded = read_perturbation({"kind": "uniform", "bounds": [0, 1]}, "b")
    assert [level for level, _ in bounded.levels(people)] == [1.0]
    assert hash(bounded) != hash(mask)
