"""Perturbations and models from outside in a study: one file, named by the study, on any number of workers."""

from __future__ import annotations

import gc
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand import Closest, Gaussian, HighDensity, Plausible, instability
from evenhand.models import view
from evenhand.perturbations import PERTURBATIONS, by_name
from evenhand.study import StudyError, combined, expand, read_study, run_study, study_model
from evenhand.study.cells import _fitted
from evenhand.study.models import MODELS, read_model
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
    (kinds,) = gc.get_referents(view.registry)  # models cannot be taken back by any function
    registries: list[dict[Any, Any]] = [PERTURBATIONS, MODELS, kinds]
    before = [dict(registry) for registry in registries]
    yield
    for registry, content in zip(registries, before, strict=True):
        registry.clear()
        registry.update(content)
    view._clear_cache()


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


@pytest.mark.slow
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


MODEL = '''
"""Yes where every column passes its bar, which no model of the package can say; and a model with a step of its own."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evenhand.models.base import check_fitted, direct_view, view
from evenhand.sets import ConvexSet, Region
from evenhand.study import study_model


class Bars(ClassifierMixin, BaseEstimator):
    def __init__(self, share=0.5):
        self.share = share

    def fit(self, X, y):
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        self.bars_ = np.quantile(X[y == self.classes_[1]], self.share, axis=0)
        return self

    def predict(self, X):
        return self.classes_[(X >= self.bars_).all(axis=1).astype(int)]


@view.register(Bars)
def _bars(model):
    check_fitted(model)
    eye, bars = np.eye(len(model.bars_)), model.bars_

    def latent(k):
        if k == 1:
            return Region((ConvexSet(len(bars), G=-eye, h=-bars),))
        return Region(tuple(ConvexSet(len(bars), G=eye[[j]], h=bars[[j]]) for j in range(len(bars))))

    return direct_view(model, latent)


@study_model("bars")
def bars(share: float, tilt: float = 0.0) -> Bars:
    if not 0 <= share <= 1:
        raise ValueError(f"share must be a number from 0 to 1; got {share}.")
    return Bars(share + tilt)


@study_model("scaled")
def scaled(C=1.0):
    return make_pipeline(StandardScaler(), LogisticRegression(C=C))
'''

STUDY_OF_MODELS = """
folds = 2
modules = ["models.py"]

[data.blobs]
source = "blobs"
dim = [2]
samples = 60

[models.bars]
kind = "bars"
share = 0.25

[models.scaled]
kind = "scaled"

[models.softmax]
kind = "softmax"

[methods.closest]
kind = "closest"

[methods.plausible]
kind = "plausible"
components = 1

[perturbations.noise]
kind = "gaussian"

[[experiments]]
name = "added"
data = "blobs"
models = ["bars", "scaled", "softmax"]
methods = ["closest", "plausible"]
perturbations = "noise"
people = "all"
"""


class TestModels:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        (tmp_path / "models.py").write_text(MODEL)
        (tmp_path / "study.toml").write_text(STUDY_OF_MODELS)
        return tmp_path / "study.toml"

    @pytest.mark.slow
    def test_one_file_adds_models_on_any_number_of_workers(self, file: Path) -> None:
        study = read_study(file)
        alone = run_study(study, file.parent / "alone", version="x", jobs=1)
        table = combined(alone.tables)
        together = run_study(study, file.parent / "together", version="x", jobs=2)
        pd.testing.assert_frame_equal(table, combined(together.tables))
        assert table.groupby(["model", "method"], observed=True)["own_cost"].count().gt(0).all()
        assert run_study(read_study(file), file.parent / "alone", version="x", jobs=1).reused == len(alone.tables)

    def test_it_gives_what_the_public_functions_give(self, file: Path) -> None:
        """The plausible one too: it has a density in the space of its own scaler."""
        study = read_study(file)
        tables = run_study(study, file.parent / "out", version="x", jobs=1).tables
        for model_name, method in (
            ("bars", Closest()),
            ("scaled", Plausible(HighDensity(0.5, [1]))),
            ("softmax", Plausible(HighDensity(0.5, [1]))),
        ):
            name = type(method).__name__.lower()
            cell = next(c for c in tables if (c.model.name, c.method.name, c.fold) == (model_name, name, 0))
            model, fold = _fitted(cell.data, 2, cell.scale, cell.model, 2, 0, study.folder)
            people = pd.DataFrame(fold.X_test, index=fold.people)
            explainer = method.fit(model, fold.X_train, fold.y_train)
            by_hand = instability(explainer, people, Gaussian(1.0), target="random", random_state=0).table
            np.testing.assert_allclose(tables[cell]["distance"], by_hand["distance"], rtol=1e-6, atol=1e-9)

    def test_another_content_is_another_study(self, file: Path) -> None:
        before = {cell.model.name: cell.hash("x") for cell in expand(read_study(file))}
        (file.parent / "models.py").write_text(MODEL.replace("tilt: float = 0.0", "tilt: float = 0.1"))
        after = {cell.model.name: cell.hash("x") for cell in expand(read_study(file))}
        assert {name for name in before if before[name] != after[name]} == {"bars", "scaled"}

    def test_another_parameter_is_another_study(self, file: Path) -> None:
        keys = []
        for line in ("share = 0.25", "share = 0.5", "share = 0.25\ntilt = 0.1", "tilt = 0.1\nshare = 0.25"):
            file.write_text(STUDY_OF_MODELS.replace("share = 0.25", line))
            keys.append(expand(read_study(file))[0].hash("x"))
        assert len(set(keys)) == 3
        assert keys[2] == keys[3]

    @pytest.mark.parametrize(
        ("old", "new", "text"),
        [
            ('["models.py"]', "[]", "bars.kind must be one of softmax, tree, glvq; got 'bars'. .*can register others"),
            ('kind = "bars"', 'kind = "barz"', r"one of softmax, .*scaled .Did you mean 'bars'\?.; got 'barz'"),
            ('kind = "bars"\n', "", "models.bars has no 'kind'; it must be one of softmax, tree, glvq, bars, scaled"),
            (
                "share = 0.25",
                "shares = 0.25",
                r"'shares' in models.bars. Did you mean 'share'\? Possible are kind, share",
            ),
            ("share = 0.25\n", "", "models.bars has no 'share', which 'bars' needs"),
            ("share = 0.25", "share = 2.0", "models.bars: share must be a number from 0 to 1; got 2.0"),
            ("share = 0.25", "share = {a = 1}", "models.bars.share must be a number, a text"),
            ('kind = "softmax"', 'kind = "softmax"\nmax_depth = 3', "Unknown key 'max_depth' in models.softmax"),
        ],
    )
    def test_refused_before_anything_runs(self, file: Path, old: str, new: str, text: str) -> None:
        assert old in STUDY_OF_MODELS
        file.write_text(STUDY_OF_MODELS.replace(old, new, 1))
        with pytest.raises(StudyError, match=text):
            read_study(file)

    def test_a_class_is_a_model_too(self) -> None:
        study_model("neighbours")(DecisionTreeClassifier)
        spec = read_model({"kind": "neighbours", "max_depth": 2, "random_state": 1}, "n")
        assert str(spec.classifier()) == "DecisionTreeClassifier(max_depth=2, random_state=1)"

    def test_everybody_gets_a_model_of_their_own(self) -> None:
        shared = DecisionTreeClassifier(max_depth=1).fit([[0.0], [1.0]], [0, 1])
        study_model("shared")(lambda: shared)
        spec = read_model({"kind": "shared"}, "s")
        assert spec.classifier() is not spec.classifier()
        assert not hasattr(spec.classifier(), "tree_")

    @pytest.mark.parametrize("made", [None, StandardScaler()])
    def test_what_is_no_classifier_is_refused(self, made: Any) -> None:
        study_model("odd")(lambda: made)
        with pytest.raises(StudyError, match=r"models\.o: "):
            read_model({"kind": "odd"}, "o")

    def test_any_key_where_the_function_takes_any(self) -> None:
        study_model("any")(lambda **more: DecisionTreeClassifier(**more))
        assert read_model({"kind": "any", "max_depth": 2}, "a").classifier().max_depth == 2
        with pytest.raises(StudyError, match=r"models\.a: .*unexpected keyword argument 'depth'"):
            read_model({"kind": "any", "depth": 2}, "a")

    @pytest.mark.parametrize("recipe", [lambda kind: None, lambda a, /: None])
    def test_parameters_have_to_be_keys(self, recipe: Any) -> None:
        with pytest.raises(TypeError, match="are keys of a table that has 'kind' already; got the parameter"):
            study_model("wrong")(recipe)
        with pytest.raises(TypeError, match="a function or a class that makes a classifier; got 3"):
            study_model("wrong")(3)  # type: ignore[type-var]
        assert "wrong" not in MODELS


def test_checkpoints_of_the_paper_keep_their_keys() -> None:
    """Results of the same version are found again, whatever is rebuilt around them."""
    cells = expand(read_study(Path(__file__).parents[1] / "studies" / "paper.toml"))
    keys = [cell.hash("0.1.0") for cell in cells]
    assert (len(keys), keys[0], keys[-1]) == (1208, "a1f2dfe750ff95abe717", "b8e795013fec879ae5f2")
    whole = hashlib.sha256("".join(keys).encode()).hexdigest()
    assert whole == "25ad15546c4823a74134103e102bd71c57c97529d1f46dabc1b0579c452f2815"
