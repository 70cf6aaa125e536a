"""Models, solvers, methods, costs and perturbations that are added from outside of the package, as one file each.

Perturbations in studies are in test_study_additions.py, gates and kinds of model files in test_audit_additions.py.
"""

from __future__ import annotations

import gc
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from evenhand import Actionable, Closest, Gaussian, HighDensity, Plausible, Steady, audit, certify, instability
from evenhand.auditing import AuditError
from evenhand.auditing.audit_file import parse_audit
from evenhand.auditing.fitting import _method
from evenhand.auditing.gates import GATES
from evenhand.auditing.model_files import FORMATS
from evenhand.auditing.options import Options
from evenhand.auditing.report import ADDED
from evenhand.cli.app import app
from evenhand.costs import COSTS, L1, L2
from evenhand.methods import METHODS
from evenhand.models import view
from evenhand.models.base import supported
from evenhand.perturbations import PERTURBATIONS
from evenhand.projection import Problem, solver
from evenhand.projection.solver import SOLVERS
from evenhand.study import StudyError, combined, read_study, run_study
from evenhand.study.models import MODELS
from evenhand.study.modules import import_modules
from evenhand.study.spec import parse_study
from evenhand.table.layout import Layout
from evenhand.table.schema import Schema

MODEL = '''
"""Yes where every column passes its bar: one box for "yes", one per column for "no"."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from evenhand.models.base import check_fitted, direct_view, view
from evenhand.sets import ConvexSet, Region


class Bars(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.bars_, self.classes_ = np.median(np.asarray(X), axis=0), np.array(["no", "yes"])
        self.n_features_in_ = len(self.bars_)
        return self

    def predict(self, X):
        return np.where((np.asarray(X) > self.bars_).all(axis=1), "yes", "no")


@view.register(Bars)
def _bars(model):
    check_fitted(model)
    dim = model.n_features_in_

    def latent(k):
        if k == 1:
            return Region((ConvexSet(dim, lower=model.bars_),))
        below = np.where(np.eye(dim, dtype=bool), model.bars_, np.inf)
        return Region(tuple(ConvexSet(dim, upper=upper) for upper in below))

    return direct_view(model, latent)
'''

SOLVER = '''
"""Near or away from a point. Who is away is in a region that is no union of a few convex sets."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from evenhand.models.base import check_fitted, direct_view, view
from evenhand.projection import Projection, Projector, register_solver
from evenhand.projection.result import judged
from evenhand.sets import ConvexSet, Ellipsoid, Region
from evenhand.table.limits import DOWN, FIXED, UP


class Distance(ClassifierMixin, BaseEstimator):
    def __init__(self, radius=1.0):
        self.radius = radius

    def fit(self, X, y=None):
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.centre_, self.classes_ = np.asarray(X, dtype=float).mean(axis=0), np.array(["away", "near"])
        self.n_features_in_ = len(self.centre_)
        return self

    def predict(self, X):
        return np.where(np.linalg.norm(np.asarray(X) - self.centre_, axis=1) > self.radius, "away", "near")


@dataclass(frozen=True, eq=False)
class Outside:
    """The points with |matrix @ x + offset| >= radius."""

    matrix: np.ndarray
    offset: np.ndarray
    radius: float

    def contains(self, X, tol=1e-9):
        return np.linalg.norm(X @ self.matrix.T + self.offset, axis=1) >= self.radius - tol

    def pullback(self, affine):
        return Outside(self.matrix @ affine.matrix, self.matrix @ affine.offset + self.offset, self.radius)

    def shrink(self, margin, cost):
        return replace(self, radius=self.radius + margin * cost.reach(self.matrix))


@view.register(Distance)
def _distance(model):
    check_fitted(model)
    centre, dim = model.centre_, model.n_features_in_

    def latent(k):
        if k == 0:
            return Outside(np.eye(dim), -centre, model.radius)
        return Region((ConvexSet(dim, ellipsoids=(Ellipsoid(np.eye(dim), centre, model.radius),)),))

    return direct_view(model, latent)


@register_solver
class OutsideProjector(Projector):
    """A convex function on a ball of the l1 norm is largest at one of its corners: one column changes."""

    @classmethod
    def refusal(cls, problem):
        limits = problem.limits
        if not isinstance(problem.region, Outside):
            return "its regions are outsides of balls."
        if problem.cost.rates(problem.n_columns) is None:
            return 'its costs are sums over columns: use cost="l1".'
        if limits.stepped or np.isfinite(limits.lower).any() or np.isfinite(limits.upper).any():
            return "it takes numbers without steps and bounds: pass schema=Schema.numbers(X), and no bounds."
        return ""

    def _solve(self, X, guard, cutoff):
        region, ways = self.problem.region, self.problem.limits.directions
        rates = self.problem.cost.rates(X.shape[1])
        at = X @ region.matrix.T + region.offset
        short = (region.radius * (1 + guard)) ** 2 - (at**2).sum(axis=1)
        cost, points = np.where(short <= 0, 0.0, np.inf), X.copy()
        for j in range(X.shape[1]):
            square, linear = (region.matrix[:, j] ** 2).sum(), at @ region.matrix[:, j]
            root = np.sqrt(np.maximum(linear**2 + square * short, 0.0))
            for sign, shut in ((1.0, DOWN), (-1.0, UP)):
                if square == 0 or ways[j] in (FIXED, shut):
                    continue
                step = (sign * root - linear) / square
                better = rates[j] * np.abs(step) < cost
                cost = np.where(better, rates[j] * np.abs(step), cost)
                points[better] = X[better]
                points[better, j] += step[better]
        reached = np.isfinite(cost) & (cost <= cutoff * (1 + 1e-9))
        points[~reached] = np.nan
        found, bound = np.where(reached, cost, np.nan), np.where(reached, cost, np.inf)
        status = judged(np.where(reached, cost, np.inf), bound, np.zeros(len(X), dtype=bool))
        return Projection(points, found, bound, np.where(reached, 0, -1), status)

    def pieces(self, X):
        yield 0, self  # the region is not taken apart
'''

METHOD = '''
"""The nearest person of the training data whom the model gives the target."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.explaining.answers import unanswered
from evenhand.explaining.explainer import Explainer
from evenhand.methods import method
from evenhand.methods.base import settled
from evenhand.models import view_of
from evenhand.status import Status


@dataclass(frozen=True, eq=False, repr=False)
class RoleModels(Explainer):
    view: Any
    cost: Any
    people: Any

    def _toward(self, X, k, cutoff):
        answers = unanswered(X, np.full(len(X), k))
        answers.floor[:] = 0.0
        known = self.people[self._confirmed(self.people, k)]
        answers.status[:] = Status.MISSING
        if len(known):
            price = np.array([self.cost.price(np.repeat(x[None], len(known), axis=0), known) for x in X])
            answers.points[:] = known[price.argmin(axis=1)]
            answers.cost[:] = price.min(axis=1)
            answers.status[:] = Status.LOCAL
        return answers


@method("role_model")
@dataclass(frozen=True)
class RoleModel:
    cost: Any = "l1"

    def fit(self, model, X, y=None):
        seen, cost, _ = settled(view_of(model, X), X, self.cost, None)
        return RoleModels(seen, cost, seen.read(X))
'''

COST = '''
"""The first column is ten times as dear as in the units of the table."""

import numpy as np

from evenhand.costs import L1, named_cost


@named_cost("first_is_dear")
def first_is_dear(schema):
    units = np.array([column.weight for column in schema.columns.values()])
    return L1(weights=np.where(np.arange(len(units)) == 0, 10.0, 1.0) * units)
'''

PERTURBATION = '''
"""Everybody reports a little too much of everything."""

from dataclasses import dataclass

from evenhand.perturbations import register


@register
@dataclass(frozen=True)
class Boast:
    most: float

    def __post_init__(self):
        if not self.most > 0:
            raise ValueError(f"most must be a number > 0, got {self.most!r}.")

    def __call__(self, X, rng):
        return X + self.most * rng.random(X.shape)
'''

FILES = {"model": MODEL, "solver": SOLVER, "method": METHOD, "cost": COST, "perturbation": PERTURBATION}
QUICK: dict[str, Any] = {"target": "yes", "draws": 2, "people": 20, "lookup": 2, "gates": []}
STUDY = """
folds = 2
modules = ["method.py", "cost.py"]

[data.blobs]
source = "blobs"
dim = [2]
samples = 40

[models.softmax]
kind = "softmax"

[methods.near]
kind = "closest"

[methods.role]
kind = "role_model"

[perturbations.noise]
kind = "gaussian"

[[experiments]]
name = "added"
data = "blobs"
models = "softmax"
methods = ["near", "role"]
perturbations = "noise"
cost = ["l1", "first_is_dear"]
"""


@pytest.fixture(autouse=True)
def _registries() -> Iterator[None]:
    """What a test adds is gone after it."""
    (kinds,) = gc.get_referents(view.registry)  # models cannot be taken back by any function
    registries = [METHODS, COSTS, PERTURBATIONS, GATES, FORMATS, MODELS, ADDED, kinds]
    before, solvers = [dict(registry) for registry in registries], list(SOLVERS)
    by_value = set(cloudpickle.list_registry_pickle_by_value())
    yield
    for registry, content in zip(registries, before, strict=True):
        registry.clear()
        registry.update(content)
    view._clear_cache()
    SOLVERS[:] = solvers
    cloudpickle.cloudpickle._PICKLE_BY_VALUE_MODULES.intersection_update(by_value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / f"{name}.py").write_text(content, encoding="utf-8")
    return tmp_path


def load(folder: Path, name: str) -> Any:
    """Run one of the files, as a user who imports it."""
    import_modules((f"{name}.py",), folder)
    return sys.modules[f"evenhand_study_{name}"]


@pytest.fixture
def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"income": rng.normal(2.0, 1.0, 60), "debt": rng.normal(0.0, 2.0, 60)})


@pytest.fixture
def linear(people: pd.DataFrame) -> LogisticRegression:
    return LogisticRegression().fit(people, np.where(people["income"] > people["debt"] + 2.0, "yes", "no"))


class TestModel:
    def test_closest_is_the_nearest_box(self, folder: Path, people: pd.DataFrame) -> None:
        X = people.to_numpy()
        bars = load(folder, "model").Bars().fit(X, None)
        told = Closest().fit(bars).explain(X, "yes")
        assert told.valid.all()
        np.testing.assert_allclose(told.cost, np.maximum(bars.bars_ - X, 0.0).sum(axis=1), atol=1e-8)
        back = Closest().fit(bars).explain(X, "no")
        np.testing.assert_allclose(back.cost, np.maximum(X - bars.bars_, 0.0).min(axis=1), atol=1e-8)

    @pytest.mark.parametrize("method", [Closest("l2"), Plausible(HighDensity(components=[1]))], ids=["l2", "plausible"])
    def test_in_a_pipeline(self, folder: Path, people: pd.DataFrame, method: Any) -> None:
        X, Bars = people.to_numpy(), load(folder, "model").Bars
        alone, scaled = Bars().fit(X, None), make_pipeline(StandardScaler(), Bars()).fit(X, None)
        costs = [method.fit(model, X).explain(X, "yes").cost for model in (alone, scaled)]
        np.testing.assert_allclose(*costs, rtol=1e-6, atol=1e-8)

    def test_plausible_costs_more(self, folder: Path, people: pd.DataFrame) -> None:
        X = people.to_numpy()
        bars = load(folder, "model").Bars().fit(X, None)
        told = Plausible(HighDensity(components=[1])).fit(bars, X).explain(X, "yes")
        assert told.valid.all()
        assert (told.cost >= Closest().fit(bars).explain(X, "yes").cost - 1e-9).all()

    def test_in_an_audit(self, folder: Path, people: pd.DataFrame) -> None:
        bars = load(folder, "model").Bars().fit(people, None)
        found = audit(bars, people, methods=["closest", "plausible"], **QUICK)
        assert found.content["audited"]["in_use"] == "closest"
        assert not any("has no decision region" in note for note in found.content["notes"])

    def test_is_listed(self, folder: Path) -> None:
        assert "Bars" not in supported()
        load(folder, "model")
        assert "Bars" in supported()


class TestSolver:
    @pytest.fixture
    def near(self, folder: Path, people: pd.DataFrame) -> Any:
        return load(folder, "solver").Distance(radius=2.0).fit(people.to_numpy())

    def test_answers_are_those_of_brute_force(self, near: Any, people: pd.DataFrame) -> None:
        X = people.to_numpy()
        told = Closest().fit(near, X).explain(X)
        was = near.predict(X)
        assert set(was) == {"near", "away"}
        assert set(told.status) == {"optimal"}
        assert (near.predict(told.counterfactual) == told.target).all()
        assert (told.target != was).all()
        angle = np.linspace(0.0, 2 * np.pi, 100_001)
        circle = near.centre_ + near.radius * np.column_stack([np.cos(angle), np.sin(angle)])
        nearest = np.array([np.abs(circle - x).sum(axis=1).min() for x in X])
        np.testing.assert_allclose(told.cost, nearest, atol=1e-4)
        assert (told.cost <= nearest + 1e-7).all()
        assert (told.gap <= 1e-7 * told.cost).all()  # zero where one column changes, proven by a dual bound elsewhere

    def test_what_may_change(self, near: Any, people: pd.DataFrame) -> None:
        X = people.to_numpy()[near.predict(people.to_numpy()) == "near"]
        free = Closest().fit(near, X).explain(X, "away")
        told = Closest(actionable=Actionable(immutable=[0], increase=[1])).fit(near, X).explain(X, "away")
        assert told.valid.all()
        change = told.counterfactual - X
        assert (change[:, 0] == 0).all()
        assert (change[:, 1] >= 0).all()
        assert (told.cost >= free.cost - 1e-9).all()

    def test_a_margin(self, near: Any, people: pd.DataFrame) -> None:
        X = people.to_numpy()
        told = Closest(margin=0.5).fit(near, X).explain(X, "away")
        changed = told.status == "optimal"
        size = np.linalg.norm(told.counterfactual[changed] - near.centre_, axis=1)
        np.testing.assert_allclose(size, near.radius + 0.5)

    def test_instability(self, near: Any, people: pd.DataFrame) -> None:
        X = people.to_numpy()
        explainer = Closest().fit(near, X)
        found = instability(explainer, X, Gaussian(0.01), draws=3, on_flip="skip", random_state=0)
        assert found.table["distance"].notna().any()

    def test_at_the_end_of_a_pipeline(self, near: Any, people: pd.DataFrame) -> None:
        X = people.to_numpy()
        scaler = StandardScaler().fit(X)
        inner = type(near)(radius=1.0).fit(scaler.transform(X))
        told = Closest().fit(make_pipeline(scaler, inner)).explain(X, "away")
        assert told.valid.all()
        size = np.linalg.norm(scaler.transform(told.counterfactual) - inner.centre_, axis=1)
        np.testing.assert_allclose(size[told.status == "optimal"], 1.0)
        # Of an l1 cost one column changes: by hand, the cheaper of the two on a fine grid.
        for i in np.flatnonzero(told.status == "optimal")[:5]:
            steps = np.linspace(-9.0, 9.0, 180_001)
            ways = [X[i] + np.outer(steps, np.eye(2)[j]) for j in range(2)]
            away = [np.linalg.norm(scaler.transform(way) - inner.centre_, axis=1) > 1.0 for way in ways]
            assert abs(told.cost[i] - min(np.abs(steps[a]).min() for a in away if a.any())) < 2e-4

    def test_what_needs_convex_pieces_says_so(self, near: Any, people: pd.DataFrame) -> None:
        X = people.to_numpy()
        with pytest.raises(TypeError, match=r"The regions of Distance do not meet densities: Outside has no &\. Use"):
            Plausible(HighDensity(components=[1])).fit(near, X).explain(X, "away")
        with pytest.raises(TypeError, match=r"Steady chooses .* Outside cannot be listed.*Use Closest"):
            Steady().fit(near, X)

    def test_nothing_is_certified(self, near: Any, people: pd.DataFrame) -> None:
        with pytest.raises(TypeError, match=r"certify needs .*measure with instability\(\)"):
            certify(Closest().fit(near), people.to_numpy())

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"cost": "l2"}, r'No solver takes a Outside .*OutsideProjector: .*use cost="l1"'),
            ({"actionable": Actionable(bounds={0: (0, 9)})}, r"OutsideProjector: .*pass schema=Schema.numbers\(X\)"),
        ],
    )
    def test_a_problem_that_it_does_not_take(self, near: Any, people: pd.DataFrame, options: Any, text: str) -> None:
        with pytest.raises(TypeError, match=text):
            Closest(**options).fit(near).explain(people.to_numpy(), "away")

    def test_without_its_solver(self, near: Any, people: pd.DataFrame) -> None:
        SOLVERS[:] = [kind for kind in SOLVERS if kind.__name__ != "OutsideProjector"]
        with pytest.raises(TypeError, match=r"No solver takes a Outside .*its regions are unions of convex sets"):
            Closest().fit(near).explain(people.to_numpy(), "away")


class TestStudy:
    @pytest.mark.slow
    def test_methods_and_costs(self, folder: Path) -> None:
        (folder / "study.toml").write_text(STUDY, encoding="utf-8")
        study = read_study(folder / "study.toml")
        alone = run_study(study, folder / "alone", version="x", jobs=1)
        table = combined(alone.tables)
        pd.testing.assert_frame_equal(table, combined(run_study(study, folder / "two", version="x", jobs=2).tables))
        cost = table.groupby(["method", "cost"], observed=True)["own_cost"].mean()
        assert cost["near", "first_is_dear"] > cost["near", "l1"]
        assert (cost["role"] > cost["near"]).all()
        assert run_study(study, folder / "alone", version="x", jobs=1).reused == len(alone.tables)

    @pytest.mark.parametrize(("name", "old", "new"), [("method", "argmin", "argmax"), ("cost", "10.0", "20.0")])
    def test_another_content_is_another_study(self, folder: Path, name: str, old: str, new: str) -> None:
        (folder / "study.toml").write_text(STUDY, encoding="utf-8")
        before = read_study(folder / "study.toml").methods
        (folder / f"{name}.py").write_text(FILES[name].replace(old, new), encoding="utf-8")
        after = read_study(folder / "study.toml").methods
        assert before["role"].content != after["role"].content

    @pytest.mark.parametrize(
        ("old", "new", "text"),
        [
            (
                '"role_model"',
                '"role_modle"',
                r"methods.role.kind must be one of .*role_model \(Did you mean 'role_model'",
            ),
            (
                '"first_is_dear"]',
                '"first_is_der"]',
                r"cost must be a list, each one of l1, l2, first_is_dear \(Did you",
            ),
            ('"closest"', '"steady"', 'needs cost = "l2"'),
        ],
    )
    def test_refused(self, folder: Path, old: str, new: str, text: str) -> None:
        (folder / "study.toml").write_text(STUDY.replace(old, new), encoding="utf-8")
        with pytest.raises(StudyError, match=text):
            read_study(folder / "study.toml")

    def test_what_is_not_imported_is_not_known(self, folder: Path) -> None:
        content = tomllib.loads(STUDY) | {"modules": []}
        with pytest.raises(StudyError, match=r"must be one of .*; got 'role_model'"):
            parse_study(content, folder)


class TestAuditFile:
    @pytest.fixture
    def file(self, folder: Path, people: pd.DataFrame, linear: LogisticRegression) -> Path:
        people.to_csv(folder / "people.csv", index=False)
        skops.io.dump(linear, folder / "model.skops")
        keys = QUICK | {
            "model": "model.skops",
            "data": "people.csv",
            "modules": ["method.py", "cost.py", "perturbation.py"],
            "methods": ["closest", "role_model", "steady"],
            "cost": "first_is_dear",
        }
        lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
        lines += ["[perturbations.talk]", 'kind = "boast"', "most = 0.1", "relative = true"]
        (folder / "audit.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return folder / "audit.toml"

    def run(self, file: Path, jobs: int) -> dict[str, Any]:
        out = file.parent / f"out{jobs}"
        ran = CliRunner().invoke(app, ["audit", str(file), "--out", str(out), "--jobs", str(jobs)])
        assert ran.exit_code == 0, ran.output
        found: dict[str, Any] = json.loads((out / "audit.json").read_text(encoding="utf-8"))
        return found

    @pytest.mark.slow
    def test_on_any_number_of_workers(self, file: Path) -> None:
        content = self.run(file, 1)
        assert [row["method"] for row in content["stability"]] == ["closest", "role_model", "steady"]
        assert {row["perturbation"] for row in content["stability"]} == {"talk"}
        assert content["audited"]["cost"] == "first_is_dear"
        together = self.run(file, 2)
        for part in ("coverage", "stability", "groups", "pairs", "lookup"):
            assert content[part] == together[part]

    @pytest.mark.parametrize(
        ("old", "new", "text"),
        [
            (
                '"role_model"',
                '"role_modle"',
                r"methods must be a list, each one of closest, plausible, .*Did you mean 'role",
            ),
            ('"first_is_dear"', '"first_is_der"', r"cost must be one of l1, l2, first_is_dear \(Did you mean"),
            ('"boast"', '"bosat"', r"talk.kind must be one of gaussian, .*boast; got 'bosat'. Did you mean 'boast'\?"),
            ("most = 0.1", "mots = 0.1", r"Unknown key 'mots' in perturbations.talk. Did you mean 'most'\?"),
            ("most = 0.1\n", "", "perturbations.talk has no 'most', which 'boast' needs"),
            ("most = 0.1", "most = 0", "perturbations.talk: most must be a number > 0, got 0"),
            ("relative = true", "relative = 1", "perturbations.talk.relative must be true or false; got 1"),
            ('"perturbation.py"]', "3]", "modules must be a list, each a text; got .*folder of the audit file"),
            ('"perturbation.py"]', '"perturbations.py"]', r"there is no file .*Did you mean 'perturbation.py'\?"),
            ("modules", "module", r"Unknown key 'module' in audit.toml. Did you mean 'modules'\?"),
        ],
    )
    def test_refused(self, file: Path, old: str, new: str, text: str) -> None:
        content = file.read_text(encoding="utf-8")
        assert old in content
        with pytest.raises(AuditError, match=text):
            parse_audit(tomllib.loads(content.replace(old, new, 1)), file.parent, file.name)

    def test_a_file_that_fails_is_named(self, file: Path) -> None:
        (file.parent / "cost.py").write_text("1 / 0", encoding="utf-8")
        ran = CliRunner().invoke(app, ["audit", str(file)])
        assert ran.exit_code == 2
        assert "modules: 'cost.py' cannot be imported: ZeroDivisionError" in " ".join(ran.output.split())


class TestInPython:
    def test_a_cost(self, folder: Path, linear: LogisticRegression, people: pd.DataFrame) -> None:
        load(folder, "cost")
        with pytest.raises(ValueError, match=r"'first_is_der' is not a known cost: .*Did you mean 'first_is_dear'\?"):
            Closest("first_is_der").fit(linear, people)
        cheap = Closest("l1").fit(linear, people).explain(people, "yes")
        told = Closest("first_is_dear").fit(linear, people).explain(people, "yes")
        assert told.valid.all()
        assert (told.cost >= cheap.cost - 1e-9).all()
        assert (told.counterfactual["income"] - people["income"]).abs().max() < 1e-6

    def test_in_an_audit(self, folder: Path, linear: LogisticRegression, people: pd.DataFrame) -> None:
        for name in ("cost", "method", "perturbation"):
            load(folder, name)
        noise = {"talk": PERTURBATIONS["boast"](0.1)}
        found = audit(linear, people, methods="role_model", cost="first_is_dear", perturbations=noise, **QUICK)
        assert found.content["audited"]["in_use"] == "role_model"
        with pytest.raises(AuditError, match=r"There is no method 'role'. .*role_model"):
            audit(linear, people, methods="role", **QUICK)
        with pytest.raises(AuditError, match=r'cost must be "l1", "l2" or "first_is_dear", in units of each column'):
            audit(linear, people, cost="l3", **QUICK)

    def test_an_audit_does_not_drop_what_a_method_cannot_be_told(
        self, folder: Path, linear: LogisticRegression, people: pd.DataFrame
    ) -> None:
        load(folder, "method")
        limits = Actionable(immutable=["debt"])
        with pytest.raises(AuditError, match="'role_model' cannot be told what people can change: RoleModel has no"):
            audit(linear, people, methods="role_model", actionable=limits, **QUICK)
        found = audit(linear, people, methods=["closest", "role_model"], actionable=limits, **QUICK)
        assert [row["method"] for row in found.content["stability"]] == ["closest"]

    def test_steady_gets_the_units_of_a_named_cost(
        self, folder: Path, linear: LogisticRegression, people: pd.DataFrame
    ) -> None:
        load(folder, "cost")
        schema = Schema.numbers(people)
        steady = _method("steady", "first_is_dear", schema, None, Options(cost="first_is_dear"))
        assert isinstance(steady.cost, L2)
        np.testing.assert_allclose(steady.cost.weights, [100.0, 1.0])


class TestContributing:
    """The examples of CONTRIBUTING.md, each as the one file that it is."""

    @pytest.fixture
    def examples(self, tmp_path: Path) -> list[Any]:
        text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
        for i, block in enumerate(blocks):
            (tmp_path / f"example{i}.py").write_text(block, encoding="utf-8")
        return [load(tmp_path, f"example{i}") for i in range(len(blocks))]

    def test_are_found_where_it_says(
        self, examples: list[Any], linear: LogisticRegression, people: pd.DataFrame
    ) -> None:
        assert len(examples) == 9
        assert "counts" in MODELS
        assert "boast" in PERTURBATIONS
        assert "dear_rate" in GATES
        assert ".weights" in FORMATS
        X = people.abs().to_numpy()
        counts = MultinomialNB().fit(X, X[:, 0] > X[:, 1])
        assert Closest().fit(counts).explain(X).valid.all()
        gates = QUICK | {"gates": ["dear_rate(99) <= 0.5"]}
        noise = {"talk": PERTURBATIONS["boast"]()}
        found = audit(linear, people, methods=["roomy"], cost="first_is_dear", perturbations=noise, **gates)
        assert found.content["gates"][0]["result"] == "pass"

    def test_solver(self, examples: list[Any], people: pd.DataFrame) -> None:
        X = people.to_numpy()
        region = examples[2].Outside(np.eye(2), -X.mean(axis=0), 2.0)
        limits = Actionable().over(Schema.numbers(2))
        found = solver(Problem(region, L1(), limits, Layout.of_numbers(2))).project(X)
        assert set(found.status) == {"optimal"}
        assert region.contains(found.points).all()
        inside = ~region.contains(X)
        angle = np.linspace(0.0, 2 * np.pi, 100_001)
        circle = X.mean(axis=0) + 2.0 * np.column_stack([np.cos(angle), np.sin(angle)])
        nearest = np.array([np.abs(circle - x).sum(axis=1).min() for x in X])
        np.testing.assert_allclose(found.cost, np.where(inside, nearest, 0.0), atol=1e-4)
