"""Gates and kinds of model files that are added from outside of the package, as one function each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from evenhand import audit
from evenhand.auditing import AuditError
from evenhand.auditing.document.json_schema import schema_text
from evenhand.auditing.first_file import first_file
from evenhand.auditing.gates import GATES, Candidate, Condition, Evidence, Situation, default_gates, gate, parse_gate
from evenhand.auditing.model_files import FORMATS, load_model, model_file
from evenhand.auditing.report.sections import SECTIONS
from evenhand.auditing.report.sections.regulation import RULES
from evenhand.auditing.sources import Frame
from evenhand.cli.app import app
from evenhand.stats import share_interval

SCHEMA = json.loads(resources.files("evenhand.auditing").joinpath("audit.schema.json").read_text(encoding="utf-8"))
FAILING = "The advice asks too much of people"
QUICK: dict[str, Any] = {"target": "yes", "methods": ["closest"], "draws": 2, "people": 20, "lookup": 2}
GATE = """
from sklearn.linear_model import LogisticRegression
from evenhand.auditing.gates import Candidate, gate
from evenhand.stats import share_interval

@gate("dear_rate", title="Dear advice", question="How many are asked too much?", section="coverage", unit="share",
      argument="number")
def dear_rate(condition, evidence):
    cost = evidence.people.loc[evidence.people["found"], "cost"]
    return [Candidate(share_interval(int((cost > condition.argument).sum()), len(cost)))]

def model():
    found = LogisticRegression().fit([[0.0, 0.0], [1.0, 1.0]], ["no", "yes"])
    return found
"""


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """What a test adds is gone after it."""
    gates, formats = dict(GATES), dict(FORMATS)
    yield
    for registry, before in ((GATES, gates), (FORMATS, formats)):
        registry.clear()
        registry.update(before)


@pytest.fixture
def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"income": rng.normal(2.0, 1.0, 60).round(2), "debt": rng.normal(0.0, 1.0, 60).round(2)})


@pytest.fixture
def model(people: pd.DataFrame) -> LogisticRegression:
    return LogisticRegression().fit(people, np.where(people["income"] > people["debt"] + 2.0, "yes", "no"))


def add_gate(**more: Any) -> None:
    @gate(
        "dear_rate",
        title="Dear advice",
        question="How many people are asked to change more than this?",
        section="coverage",
        unit="share",
        argument="number",
        failing=FAILING,
        **more,
    )
    def dear_rate(condition: Condition, evidence: Evidence) -> Sequence[Candidate]:
        cost = evidence.people.loc[evidence.people["found"], "cost"]
        return [Candidate(share_interval(int((cost > condition.argument).sum()), len(cost)))]


def add_format() -> None:
    @model_file(".weights")
    def open_weights(data: bytes, path: Path) -> LogisticRegression:
        try:
            content = json.loads(data)
        except ValueError as error:
            raise AuditError(f"{path} is no JSON: {error}.") from None
        found = LogisticRegression()
        found.classes_, found.n_features_in_ = np.array(content["labels"]), len(content["weights"])
        found.coef_, found.intercept_ = np.array([content["weights"]]), np.array([content["start"]])
        found.feature_names_in_ = np.array(content["columns"], dtype=object)
        return found


def run(folder: Path, people: pd.DataFrame, source: str, gates: list[str]) -> Any:
    people.to_csv(folder / "people.csv", index=False)
    lines = [f"model = {json.dumps(source)}", 'data = "people.csv"', f"gates = {json.dumps(gates)}"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in QUICK.items()]
    (folder / "audit.toml").write_text("\n".join(lines) + '\nfeatures = ["income", "debt"]\n', encoding="utf-8")
    return CliRunner().invoke(app, ["audit", str(folder / "audit.toml"), "--out", str(folder / "out"), "--jobs", "1"])


class TestGate:
    @pytest.mark.parametrize(("limit", "result", "code"), [(0.0, "failed", 1), (99.0, "passed", 0)])
    def test_is_judged_and_shown(self, model, people, limit: float, result: str, code: int) -> None:
        add_gate()
        text = f"dear_rate({limit}) <= 0.2"
        found = audit(model, people, gates=[text], **QUICK)
        assert (found.result, found.exit_code) == (result, code)
        row = found.content["gates"][0]
        assert (row["gate"], row["name"], row["argument"], row["unit"]) == (text, "dear_rate", limit, "share")
        assert (row["title"], row["section"]) == ("Dear advice", "coverage")
        assert row["interval"]["value"] == float(limit == 0.0)
        jsonschema.validate(found.content, SCHEMA)
        assert (found.content["verdict"]["title"] == FAILING) == (result == "failed")
        page = found.to_html()
        assert "Dear advice" in page
        assert "How many people are asked to change more than this?" in page
        assert text in found.to_markdown()
        assert ElementTree.fromstring(found.to_junit())[0].get("name") == text

    def test_in_an_audit_file(self, model, people, tmp_path: Path) -> None:
        add_gate()
        import skops.io

        skops.io.dump(model, tmp_path / "model.skops")
        ran = run(tmp_path, people, "model.skops", ["dear_rate(0) <= 0.2", "not_found_rate <= 0.5"])
        assert ran.exit_code == 1, ran.output
        content = json.loads((tmp_path / "out" / "audit.json").read_text(encoding="utf-8"))
        assert [row["result"] for row in content["gates"]] == ["fail", "pass"]
        assert content["verdict"]["exit_code"] == 1
        assert "Dear advice" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")

    def test_beside_the_model(self, people, tmp_path: Path) -> None:
        """One file holds both, the model and a gate for it."""
        (tmp_path / "scoring_with_gate.py").write_text(GATE, encoding="utf-8")
        ran = run(tmp_path, people, "scoring_with_gate:model", ["dear_rate(0) <= 0.2"])
        assert ran.exit_code == 1, ran.output

    def test_is_named_where_gates_are_listed(self, people) -> None:
        with pytest.raises(AuditError, match="There is no gate 'dear_rate'"):
            parse_gate("dear_rate(1) <= 1")
        add_gate()
        with pytest.raises(AuditError, match=r"Did you mean 'dear_rate'\? Possible are not_found_rate.*dear_rate\."):
            parse_gate("dear_rat(1) <= 1")
        with pytest.raises(AuditError, match=r"needs a number in parentheses, such as dear_rate\(0\.1\)"):
            parse_gate("dear_rate <= 1")
        with pytest.raises(AuditError, match="of dear_rate less is better, write <="):
            parse_gate("dear_rate(1) >= 1")
        written = first_file("m", "kind", "d.csv", Frame(people), list(people.columns), ["no", "yes"])
        assert ", dear_rate." in written

    def test_default(self) -> None:
        bare = Situation(groups=False, certificates=False, euclidean=False)
        before = [condition.text for condition in default_gates(bare)]
        add_gate(default="dear_rate(1) <= 0.5")
        assert [condition.text for condition in default_gates(bare)] == [*before, "dear_rate(1) <= 0.5"]

    def test_default_where_it_can_be_answered(self) -> None:
        add_gate(default=lambda situation: "dear_rate(1) <= 0.5" if situation.groups else None)
        for groups in (False, True):
            texts = [one.text for one in default_gates(Situation(groups, certificates=False, euclidean=False))]
            assert ("dear_rate(1) <= 0.5" in texts) == groups

    def test_has_to_return_candidates(self, model, people) -> None:
        gate("odd", title="Odd", question="?", section="coverage", unit="share")(lambda *_: share_interval(1, 2))
        with pytest.raises(TypeError, match=r"The gate 'odd' must return a list of Candidate\(interval\)"):
            audit(model, people, gates=["odd <= 1"], **QUICK)

    def test_names_are_taken_once(self) -> None:
        with pytest.raises(ValueError, match=r"'flip_rate': evenhand\.auditing\.gates\.\S+ has this name; choose"):
            gate("flip_rate", title="", question="", section="coverage", unit="share")(lambda *_: [])
        with pytest.raises(ValueError, match="letters, digits and underscores"):
            gate("dear rate", title="", question="", section="coverage", unit="share")

    @pytest.mark.parametrize("wrong", [{"section": "verdict"}, {"unit": "SD"}, {"argument": "age"}, {"better": "<"}])
    def test_what_it_is_about_is_checked(self, wrong: dict[str, str]) -> None:
        about = {"title": "", "question": "", "section": "coverage", "unit": "share"} | wrong
        with pytest.raises(ValueError, match=f"The {next(iter(wrong))} of the gate 'dear_rate' must be one of"):
            gate("dear_rate", **about)


class TestModelFile:
    @pytest.fixture
    def saved(self, model, people, tmp_path: Path) -> Path:
        content = {
            "labels": model.classes_.tolist(),
            "columns": list(people.columns),
            "weights": model.coef_[0].tolist(),
            "start": float(model.intercept_[0]),
        }
        (tmp_path / "model.weights").write_text(json.dumps(content), encoding="utf-8")
        return tmp_path

    def test_in_an_audit_file(self, saved: Path, people) -> None:
        add_format()
        ran = run(saved, people, "model.weights", ["not_found_rate <= 0.5"])
        assert ran.exit_code == 0, ran.output
        content = json.loads((saved / "out" / "audit.json").read_text(encoding="utf-8"))
        assert content["audited"]["model"]["name"] == "model.weights"
        assert content["audited"]["model"]["kind"] == "LogisticRegression"
        assert len(content["audited"]["model"]["sha256"]) == 64
        assert "model.weights" in (saved / "out" / "report.html").read_text(encoding="utf-8")

    def test_is_the_same_model(self, saved: Path, model, people) -> None:
        add_format()
        loaded = load_model("model.weights", saved)
        assert loaded.warning is None
        np.testing.assert_array_equal(loaded.model.predict(people), model.predict(people))

    def test_damaged(self, saved: Path, people) -> None:
        add_format()
        (saved / "model.weights").write_text("{", encoding="utf-8")
        ran = run(saved, people, "model.weights", [])
        assert ran.exit_code == 2
        assert "is no JSON" in ran.output

    def test_is_named_where_kinds_are_listed(self, saved: Path) -> None:
        with pytest.raises(AuditError, match=r"Possible: a \.skops or \.onnx file, a pickle"):
            load_model("model.weights", saved)
        add_format()
        (saved / "model.other").write_bytes(b"x")
        with pytest.raises(AuditError, match=r"Possible: a \.skops, \.onnx or \.weights file, a pickle"):
            load_model("model.other", saved)

    def test_one_that_runs_code_has_to_be_trusted(self, tmp_path: Path, model) -> None:
        @model_file(".script", unsafe="script")
        def open_script(data: bytes, path: Path) -> Any:
            return model

        (tmp_path / "model.script").write_bytes(b"x")
        with pytest.raises(AuditError, match="is a script, and script files can run any code"):
            load_model("model.script", tmp_path)
        loaded = load_model("model.script", tmp_path, trust_pickle=True)
        assert loaded.warning == "model.script is a script, which can run any code: it was opened because you trust it."

    def test_suffixes_are_taken_once(self) -> None:
        with pytest.raises(ValueError, match=r"'\.skops': evenhand\.auditing\.\S+\.open_skops has this name; choose"):
            model_file(".skops")(lambda data, path: None)
        for wrong in ((), ("skops",), (".SKOPS",)):
            with pytest.raises(ValueError, match="start with a point and are in lower case"):
                model_file(*wrong)


class TestSections:
    def test_have_templates_and_names_of_their_own(self) -> None:
        names = [section.name for section in SECTIONS]
        assert len(set(names)) == len(names)
        for section in SECTIONS:
            text = resources.files("evenhand.auditing.report").joinpath(section.file).read_text(encoding="utf-8")
            assert f'<section id="{section.name}" aria-labelledby="h-{section.name}">' in text

    def test_are_those_that_gates_and_rules_name(self) -> None:
        names = {section.name for section in SECTIONS}
        assert {known.section for known in GATES.values()} <= names
        assert {name for rule in RULES for name in rule.sections} <= names


def test_the_schema_in_the_package_is_that_of_the_types() -> None:
    """If not: python -m evenhand.auditing.document.json_schema > src/evenhand/auditing/audit.schema.json."""
    written = resources.files("evenhand.auditing").joinpath("audit.schema.json").read_text(encoding="utf-8")
    assert written == schema_text()
    assert SCHEMA["$id"] == "evenhand-audit/1"
