"""Gates, sections and kinds of model files that are added from outside of the package, as one file each."""

from __future__ import annotations

import json
import re
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

from audit_content import audit_content
from browser import complaints, opened, too_wide
from evenhand import audit
from evenhand.auditing import AuditError
from evenhand.auditing.document.json_schema import schema_text
from evenhand.auditing.first_file import first_file
from evenhand.auditing.gates import GATES, Candidate, Condition, Evidence, Situation, default_gates, gate, parse_gate
from evenhand.auditing.model_files import FORMATS, load_model, model_file
from evenhand.auditing.report import ADDED, Page, all_sections, register_section
from evenhand.auditing.report.sections import SECTIONS
from evenhand.auditing.report.sections.regulation import RULES
from evenhand.auditing.result import Audit
from evenhand.auditing.sources import Frame
from evenhand.cli.app import app
from evenhand.stats import share_interval
from evenhand.study.modules import import_modules

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

SECTION = '''
from pathlib import Path
from evenhand.auditing.report import register_section

TEMPLATE = """
{% from "macros.html.j2" import table with context %}
<p class="answer">{{ words }}: {{ document.audited.explained }}</p>
{{ table({"caption": words, "columns": ["Word|"], "rows": [[words]]}) }}
"""

@register_section("asked", title="Who is <i>asked</i> & why", template=TEMPLATE, after="coverage")
def asked(page):
    return {"words": "<script>alert(1)</script>"}
'''


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """What a test adds is gone after it."""
    registries: list[dict[str, Any]] = [GATES, FORMATS, ADDED]
    kept = [dict(registry) for registry in registries]
    yield
    for registry, before in zip(registries, kept, strict=True):
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


def run(folder: Path, people: pd.DataFrame, source: str, gates: list[str], modules: tuple[str, ...] = ()) -> Any:
    people.to_csv(folder / "people.csv", index=False)
    lines = [f"model = {json.dumps(source)}", 'data = "people.csv"', f"gates = {json.dumps(gates)}"]
    lines += [f"modules = {json.dumps(modules)}"]
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


def sections_of(page: str) -> list[str]:
    return re.findall(r'<section id="([^"]+)"', page)


def add_section(name: str = "asked", **options: Any) -> None:
    @register_section(name, **{"title": "Asked", "template": "<p>{{ seen }}</p>"} | options)
    def asked(page: Page) -> dict[str, Any]:
        return {"seen": "nothing" if page.evidence is None else f"{len(page.evidence.people)} people"}


class TestAddedSection:
    def test_in_an_audit_file(self, model, people, tmp_path: Path) -> None:
        import skops.io

        skops.io.dump(model, tmp_path / "model.skops")
        (tmp_path / "my_section.py").write_text(SECTION, encoding="utf-8")
        for _ in range(2):  # the file is run anew, and replaces what it registered
            ran = run(tmp_path, people, "model.skops", ["not_found_rate <= 0.5"], ("my_section.py",))
            assert ran.exit_code == 0, ran.output
        content = json.loads((tmp_path / "out" / "audit.json").read_text(encoding="utf-8"))
        jsonschema.validate(content, SCHEMA)
        page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        assert sections_of(page)[:4] == ["verdict", "audited", "coverage", "asked"]
        words = "&lt;script&gt;alert(1)&lt;/script&gt;"
        assert f'<p class="answer">{words}: {content["audited"]["explained"]}</p>' in page
        assert f'<th role="rowheader" scope="row">{words}</th>' in page
        assert "<script>alert(1)" not in page
        title = "Who is &lt;i&gt;asked&lt;/i&gt; &amp; why"
        assert f'<h2 id="h-asked">{title}</h2>' in page
        assert page.count(f'<a href="#asked"><span>{title}</span></a>') == 2  # beside the page, and above it

    def test_sees_what_gates_see_if_it_is_there_and_may_be_shown(self, model, people) -> None:
        add_section()
        found = audit(model, people, **QUICK)
        assert found.evidence is not None
        assert "<p>60 people</p>" in found.to_html()
        assert "<p>nothing</p>" in Audit(json.loads(found.to_json())).to_html()
        assert "<p>nothing</p>" in audit(model, people, redact=True, **QUICK).to_html()

    def test_stands_where_it_says(self) -> None:
        own = [section.name for section in SECTIONS]
        add_section()
        add_section("first", after="verdict")
        add_section("third", after="verdict")
        add_section("second", after="first")
        names = [section.name for section in all_sections()]
        assert [name for name in names if name in own] == own
        assert names[:5] == ["verdict", "first", "second", "third", "audited"]
        assert names[names.index("limits") - 1] == "asked"
        assert sections_of(Audit(audit_content()).to_html()) == names

    def test_template_of_a_file_beside_it(self, tmp_path: Path) -> None:
        file = SECTION.replace("template=TEMPLATE", 'template=Path("asked.html.j2")')
        (tmp_path / "my_section.py").write_text(file, encoding="utf-8")
        with pytest.raises(ValueError, match=r"The template of the section 'asked', .*asked\.html\.j2, cannot be read"):
            import_modules(("my_section.py",), tmp_path)
        (tmp_path / "asked.html.j2").write_text("<p>From a file: {{ words }}</p>", encoding="utf-8")
        import_modules(("my_section.py",), tmp_path)
        assert "<p>From a file: &lt;script&gt;alert(1)" in Audit(audit_content()).to_html()

    def test_names_are_taken_once(self, tmp_path: Path) -> None:
        for name in ("my_section", "another"):
            (tmp_path / f"{name}.py").write_text(SECTION, encoding="utf-8")
        import_modules(("my_section.py", "my_section.py"), tmp_path)
        taken = r"cannot be the section 'asked': evenhand_study_my_section\.asked in \S+ has this name; choose another"
        with pytest.raises(ValueError, match=taken):
            import_modules(("another.py",), tmp_path)
        for own in ("coverage", "main", "gates", "h-limits", "drawing"):
            with pytest.raises(ValueError, match=f"The page has a part '{own}' of its own: choose another name"):
                add_section(own)
        for wrong in ("Dear", "dear advice", "", "1st", 'a"b'):
            with pytest.raises(ValueError, match=r"lower-case letters, digits, hyphens and underscores.*; got"):
                add_section(wrong)

    def test_place_and_template_are_checked_when_it_is_registered(self) -> None:
        message = (
            r"cannot stand after 'covrage': there is no such section\. Did you mean 'coverage'\? Possible are verdict"
        )
        with pytest.raises(ValueError, match=message):
            add_section(after="covrage")
        with pytest.raises(ValueError, match="cannot stand after 'asked': there is no such section"):
            add_section(after="asked")
        add_section("one")
        add_section("two", after="one")
        with pytest.raises(ValueError, match="'one' cannot stand after 'two', which itself stands after 'one'"):
            add_section("one", after="two")
        with pytest.raises(ValueError, match="The template of the section 'asked' is no Jinja, in line 2: "):
            add_section(template="<p>\n{% if %}</p>")

    def test_what_goes_wrong_in_it_names_it(self) -> None:
        add_section(template="{{ nobody }}")
        message = (
            r"The section 'asked' of .*test_audit_additions cannot be shown: UndefinedError: 'nobody' is undefined"
        )
        with pytest.raises(AuditError, match=message):
            Audit(audit_content()).to_html()
        add_section(after="verdict", figures=lambda _: {"remedies": None})
        with pytest.raises(AuditError, match="there is a figure 'remedies' already, call it 'asked-remedies'"):
            Audit(audit_content()).to_html()

    @pytest.mark.slow
    @pytest.mark.parametrize("width", [320, 1280])
    def test_the_example_of_contributing(self, model, people, tmp_path: Path, width: int) -> None:
        text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
        example = re.findall(r"```python\n(.*?)```", text.partition("### How to add a section")[2], flags=re.DOTALL)[0]
        (tmp_path / "dear.py").write_text(example, encoding="utf-8")
        import_modules(("dear.py",), tmp_path)
        found = audit(model, people, **QUICK)
        found.write(tmp_path)
        assert "made without the costs of single people" in Audit(found.content).to_html()
        with opened(tmp_path / "report.html", width) as driver:
            assert complaints(driver) == []
            assert too_wide(driver) == []
            section = driver.find_element("id", "dear")
            assert "One person in ten is asked to change" in section.text
            assert section.find_elements("css selector", "#figure-dear svg .role-mark path")
            if width > 1000:
                assert driver.find_element("css selector", "nav.side a[href='#dear']").text == "Dear advice"


def test_the_schema_in_the_package_is_that_of_the_types() -> None:
    """If not: python -m evenhand.auditing.document.json_schema > src/evenhand/auditing/audit.schema.json."""
    written = resources.files("evenhand.auditing").joinpath("audit.schema.json").read_text(encoding="utf-8")
    assert written == schema_text()
    assert SCHEMA["$id"] == "evenhand-audit/1"
