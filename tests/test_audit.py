"""Audits: what is planted is found, what is measured does not depend on how, and what is written says so."""

from __future__ import annotations

import hashlib
import json
import math
from importlib import resources
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pandas as pd
import polars
import pytest
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

from audit_folders import Place, linear, table
from evenhand import Actionable, Closest, Gaussian, HighDensity, Relative, audit, instability
from evenhand.auditing import Audit, AuditError, commands
from evenhand.auditing.gates import GATES, Candidate, judge, parse_gate
from evenhand.auditing.loans import loans
from evenhand.auditing.result import FILES
from evenhand.cli.app import app
from evenhand.stats import Interval
from evenhand.writing import WritingError

SCHEMA = json.loads(resources.files("evenhand.auditing").joinpath("audit.schema.json").read_text(encoding="utf-8"))
SMALL = {"people": 60, "draws": 4, "lookup": 5, "density": HighDensity(components=[1])}


def mixed_table(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "income": rng.normal(2000, 500, n).round(-1),
            "debt": rng.gamma(2, 300, n),
            "children": rng.poisson(1.0, n),
            "purpose": rng.choice(["car", "house", "business"], n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    score = table["income"] - table["debt"] + 400 * (table["purpose"] == "car") + rng.normal(0, 50, n)
    table["granted"] = np.where(score > 1600, "yes", "no")
    table.loc[rng.random(n) < 0.03, "debt"] = np.nan
    return table


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return mixed_table(600)


@pytest.fixture(scope="module")
def pipeline(people: pd.DataFrame):
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    encoder = make_column_transformer((numbers, ["income", "debt", "children"]), (OneHotEncoder(), ["purpose"]))
    features = people[["income", "debt", "children", "purpose"]]
    return make_pipeline(encoder, LogisticRegression()).fit(features, people["granted"])


OPTIONS = {"label": "granted", "sensitive": ["sex"], "target": "yes", "methods": ["closest", "plausible"], **SMALL}


@pytest.fixture(scope="module")
def found(pipeline, people) -> Audit:
    return audit(pipeline, people, **OPTIONS)


@pytest.fixture(scope="module")
def planted() -> Audit:
    example = loans()
    return audit(example.model, example.people, **example.options())


class TestDemo:
    def test_the_unstable_spot_is_found(self, planted: Audit) -> None:
        example = loans()
        worst = [int(card["id"]) for card in planted.content["least_stable"]]
        assert len(worst) == 10
        assert example.in_the_middle[worst].all()
        one = planted.instability["closest, noise"].people
        middle = example.in_the_middle[one["person"].to_numpy()]
        unstable = one["amplification"].to_numpy() > 1.5
        assert unstable[middle].mean() > 0.7
        assert unstable[~middle].mean() < 0.01

    def test_the_unfair_group_is_found_and_told_apart_from_distance(self, planted: Audit) -> None:
        origin = next(one for one in planted.content["groups"] if one["column"] == "origin")
        moved = next(one for one in origin["groups"] if one["group"] == "moved here")
        assert moved["cost_difference"]["low"] > 0.25
        assert moved["adjusted_difference"]["low"] > 0.25
        assert "treated worse, not only further away" in origin["sentence"]
        sex = next(one for one in planted.content["groups"] if one["column"] == "sex")
        assert sex["cost_gap"]["low"] == 0

    def test_gates_fail_where_it_was_planted(self, planted: Audit) -> None:
        failed = set(planted.gates.loc[planted.gates["result"] == "fail", "gate"])
        assert {"p95_amplification <= 1.5", "group_cost_gap(origin) <= 0.25", "pair_difference_rate <= 0.02"} <= failed
        assert planted.exit_code == 1

    @pytest.mark.slow
    def test_the_clean_variant_passes_the_same_gates(self) -> None:
        example = loans(clean=True)
        clean = audit(example.model, example.people, **example.options())
        assert clean.result == "passed"
        assert clean.exit_code == 0
        assert len(clean.gates) == 7

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", [1, 2])
    def test_it_does_not_depend_on_the_draw_of_applicants(self, seed: int) -> None:
        results = {}
        for clean in (False, True):
            example = loans(clean=clean, seed=seed)
            options = example.options() | {"methods": ["closest"]}
            results[clean] = audit(example.model, example.people, **options).result
        assert results == {False: "failed", True: "passed"}

    def test_remedies_say_what_steadiness_costs(self, planted: Audit) -> None:
        rows = {one["name"]: one for one in planted.content["remedies"]}
        assert set(rows) == {"closest", "plausible", "steady"}
        assert rows["closest"]["in_use"]
        assert rows["closest"]["cost"]["value"] <= rows["steady"]["cost"]["value"] <= rows["plausible"]["cost"]["value"]
        assert rows["closest"]["found"] == 1 > rows["steady"]["found"]
        assert rows["steady"]["statistic"] == "p95"
        assert (rows["closest"]["passes"], rows["steady"]["passes"]) == (False, True)
        moves = {one["method"]: one for one in planted.content["stability"] if one["perturbation"] == "noise"}
        assert moves["steady"]["amplification"]["p95"]["value"] <= 1 + 1e-9
        assert moves["closest"]["amplification"]["p95"]["value"] > 2


class TestNumbers:
    def test_they_are_those_of_the_parts(self) -> None:
        X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        X = X.iloc[:, :6]
        model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
        noise = Relative(Gaussian(0.01)).fit(X.to_numpy())
        one = audit(
            model, X, y, target=1, methods=["closest"], perturbations={"noise": noise}, on_flip="swap", seed=3, **SMALL
        )
        ill = X[model.predict(X) == 0]
        spread = X.to_numpy().std(axis=0)
        from evenhand import L1

        explainer = Closest(L1(weights=1 / spread)).fit(model)
        answers = explainer.explain(ill, 1)
        assert one.content["coverage"]["people"][0]["found"] == int(answers.valid.sum())
        assert one.content["audited"]["already"] == len(X) - len(ill)
        part = one.instability["closest, noise"]
        chosen = X.loc[part.people["person"]]
        again = instability(
            explainer, chosen, noise, target=1, draws=4, distance=L1(weights=1 / spread), random_state=3
        )
        np.testing.assert_allclose(part.table["distance"], again.table["distance"], rtol=1e-9)
        row = one.content["stability"][0]
        assert row["amplification"]["median"]["value"] == pytest.approx(again.table["amplification"].median())

    def test_pairs_and_groups_are_of_everybody(self, found: Audit, pipeline, people: pd.DataFrame) -> None:
        declined = people[pipeline.predict(people[["income", "debt", "children", "purpose"]]) == "no"]
        assert found.content["audited"]["explained"] == len(declined)
        groups = found.content["groups"][0]["groups"]
        counts = declined["sex"].value_counts()
        assert {one["group"]: one["people"] for one in groups} == counts.to_dict()
        assert found.content["pairs"]["people"] == len(declined)

    def test_people_without_an_explanation_are_counted_with_the_rule_that_blocks_them(self, pipeline, people) -> None:
        limits = Actionable(immutable=["income", "purpose", "children"], increase=["debt"])
        one = audit(pipeline, people, **OPTIONS | {"actionable": limits, "methods": ["closest"]})
        row = one.content["coverage"]["people"][0]
        assert row["not_found"] > 0
        assert row["found"] + row["not_found"] + row["already"] == row["people"] == len(people)
        assert sum(reason["counts"]["closest"] for reason in one.content["coverage"]["reasons"]) == row["not_found"]
        assert any("'income' is immutable" in note for note in one.content["notes"])
        assert one.result == "failed"
        jsonschema.validate(json.loads(one.to_json()), SCHEMA)
        assert "<html" in one.to_html()

    def test_what_cannot_be_proven_is_undecided_with_a_reason(self, pipeline, people) -> None:
        one = audit(pipeline, people, **OPTIONS | {"gates": ["certified_share(0.1) >= 0.5"], "methods": ["closest"]})
        assert one.exit_code == 3
        assert "levels" in one.gates["why"][0]

    def test_a_method_that_the_table_does_not_allow_is_a_remedy_with_a_reason(self, pipeline, people) -> None:
        one = audit(pipeline, people, **OPTIONS | {"methods": ["closest", "steady"]})
        row = next(row for row in one.content["remedies"] if row["name"] == "steady")
        assert "levels" in row["not_available"]

    @pytest.mark.slow
    def test_a_tolerance_takes_as_many_draws_as_it_needs(self, pipeline, people) -> None:
        loose = audit(pipeline, people, **OPTIONS | {"tolerance": 0.2, "methods": ["closest"]})
        tight = audit(pipeline, people, **OPTIONS | {"tolerance": 0.02, "methods": ["closest"], "max_draws": 64})
        assert loose.content["audited"]["draws"] < tight.content["audited"]["draws"] <= 64

    def test_rounding_that_hides_nothing_is_left_out_with_a_note(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 3))
        model = LogisticRegression().fit(X, X[:, 0] > 0)
        one = audit(model, X, methods=["closest"], **SMALL)
        assert list(one.content["audited"]["perturbations"]) == ["noise"]
        assert any("rounding" in note for note in one.content["notes"])

    def test_a_model_without_regions_is_searched(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(150, 2))
        model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, X[:, 0] > 0)
        one = audit(model, X, explain=6, people=2, draws=2, lookup=1, gates=["not_found_rate <= 0.9"])
        assert one.content["audited"]["in_use"] == "penalized"
        assert any("no decision region" in note for note in one.content["notes"])
        assert one.content["coverage"]["people"][0]["people"] == 6

    def test_the_nearest_variation_is_told_something_else_and_is_near(self, planted: Audit) -> None:
        model = loans().model
        for card in planted.content["least_stable"]:
            told = {one["column"] for one in card["told"]}
            other = {one["column"] for one in card["variation_told"]}
            assert told != other
            assert card["by"] < card["moves"]
            person = {name: float(value.replace(",", "")) for name, value, _ in card["facts"]}
            assert model.predict(pd.DataFrame([person])[list(model.feature_names_in_)])[0] == "declined"


def printed(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


class TestAdvice:
    """What is written down works: the model says yes to the very numbers on the page."""

    def test_numbers(self, planted: Audit) -> None:
        model = loans().model
        for person in planted.content["lookup"]:
            row = {name: printed(value) for name, value in person["facts"]}
            for method in person["methods"]:
                told = {one["column"]: printed(one["after"]) for one in method["told"]}
                if told:
                    table = pd.DataFrame([row | told])[list(model.feature_names_in_)]
                    assert model.predict(table)[0] == "granted", (person["id"], method["method"], told)

    def test_levels_and_missing_values(self, found: Audit, pipeline, people: pd.DataFrame) -> None:
        features = ["income", "debt", "children", "purpose"]
        for person in found.content["lookup"]:
            row = people.loc[[int(person["id"])], features].copy()
            shown = dict(person["facts"])
            assert row["debt"].isna().iloc[0] == shown["debt"].startswith("missing (taken as ")
            for method in person["methods"]:
                changed = row.copy()
                for one in method["told"]:
                    number = one["column"] != "purpose"
                    changed[one["column"]] = printed(one["after"]) if number else one["after"]
                assert pipeline.predict(changed)[0] == "yes"
                assert all(
                    one["value"] == pytest.approx(printed(one["after"]), rel=1e-2)
                    for one in method["told"]
                    if one["value"]
                )

    def test_missing_numbers_are_called_missing(self, pipeline, people: pd.DataFrame) -> None:
        gone = people.index[people["debt"].isna()]
        ids = [str(who) for who in gone]
        one = audit(pipeline, people, **OPTIONS | {"lookup": ids, "methods": ["closest"]})
        shown = {person["id"]: dict(person["facts"]) for person in one.content["lookup"] if person["id"] in ids}
        assert shown
        assert all(facts["debt"].startswith("missing (taken as ") for facts in shown.values())
        assert any("debt" in note and "rows" in note for note in one.content["notes"])


class TestJudgement:
    def test_a_group_that_cannot_be_helped_is_not_lost(self) -> None:
        rng = np.random.default_rng(0)
        X = pd.DataFrame({"income": rng.normal(size=800), "fixed": rng.choice([0.0, 3.0], 800)})
        y = X["income"] - X["fixed"] > 0
        model = LogisticRegression(C=100.0).fit(X, y)
        sensitive = pd.DataFrame({"group": np.where(X["fixed"] > 0, "b", "a")})
        limits = Actionable(immutable=["fixed"], bounds={"income": (-4.0, 2.0)})
        gates = ["group_not_found_gap <= 0.1", "group_cost_gap <= 5"]
        one = audit(
            model, X, sensitive=sensitive, target=True, actionable=limits, gates=gates, methods=["closest"], **SMALL
        )
        assert one.gates["result"].tolist()[0] == "fail"
        section = one.content["groups"][0]
        assert {g["group"]: g["not_found"] > 0 for g in section["groups"]} == {"a": False, "b": True}
        assert "Without any explanation are" in section["sentence"]

    def test_without_a_target_groups_decide_nothing(self, pipeline, people) -> None:
        one = audit(
            pipeline, people, **OPTIONS | {"target": None, "gates": ["group_cost_gap <= 9"], "methods": ["closest"]}
        )
        assert one.exit_code == 3
        assert "name the wanted decision" in one.gates["why"][0]

    @pytest.mark.slow
    def test_a_few_people_decide_nothing(self, pipeline, people) -> None:
        gates = ["median_amplification <= 9", "p95_amplification <= 9"]
        one = audit(pipeline, people, **OPTIONS | {"people": 40, "gates": gates, "methods": ["closest"]})
        assert one.gates["result"].tolist() == ["pass", "undecided"]
        assert "Fewer than 70 people" in one.gates["why"][1]

    @pytest.mark.slow
    def test_many_equal_groups_do_not_fail_by_chance(self) -> None:
        rng = np.random.default_rng(1)
        X = pd.DataFrame(rng.normal(size=(2400, 2)), columns=["a", "b"])
        model = LogisticRegression().fit(X, X["a"] + X["b"] > 0)
        failed = 0
        for seed in range(5):
            groups = pd.DataFrame({"g": np.random.default_rng(seed).choice([f"g{i}" for i in range(15)], len(X))})
            gates = ["group_cost_gap <= 0.1"]
            one = audit(model, X, sensitive=groups, target=True, gates=gates, methods=["closest"], **SMALL)
            failed += one.gates["result"][0] == "fail"
        assert failed == 0

    def test_a_sorted_table_is_learned_from_as_a_whole(self) -> None:
        rng = np.random.default_rng(0)
        X = pd.DataFrame(rng.normal(size=(7000, 2)), columns=["a", "b"])
        y = (X["a"] > 0).to_numpy()
        order = np.argsort(y, kind="stable")
        X, y = X.iloc[order].reset_index(drop=True), y[order]
        one = audit(LogisticRegression().fit(X, y), X, y, target=True, methods=["closest", "plausible"], **SMALL)
        assert all(row["not_available"] is None for row in one.content["remedies"])

    def test_twins_are_compared_once(self) -> None:
        rng = np.random.default_rng(0)
        X = pd.DataFrame(rng.integers(0, 4, size=(500, 3)).astype(float), columns=list("abc"))
        model = LogisticRegression().fit(X, X.sum(axis=1) > 4.5)
        one = audit(model, X, target=True, methods=["closest"], **SMALL)
        assert one.content["pairs"]["people"] < 64
        assert one.content["pairs"]["within"] > 0
        assert any("agree with somebody in every column" in note for note in one.content["notes"])

    def test_redacted_notes_and_groups_hold_no_values(self, pipeline, people) -> None:
        ages = people.assign(age=np.random.default_rng(0).uniform(18, 90, len(people)))
        options = OPTIONS | {"sensitive": ["age"], "lookup": ["0", "nobody"], "redact": True, "methods": ["closest"]}
        one = audit(pipeline, ages, **options)
        assert [g["group"] for g in one.content["groups"][0]["groups"]] == [f"range {i} of 4" for i in (1, 2, 3, 4)]
        assert not [note for note in one.content["notes"] if "nobody" in note or "'0'" in note]

    def test_a_redacted_group_of_one_shows_nobody(self, pipeline, people) -> None:
        lonely = people.assign(
            rank=np.where(people.index == people.index[pipeline.predict(people) == "no"][0], "one", "many")
        )
        one = audit(pipeline, lonely, **OPTIONS | {"sensitive": ["rank"], "redact": True, "methods": ["closest"]})
        small = next(g for g in one.content["groups"][0]["groups"] if g["few"])
        assert (small["group"], small["people"]) == ("other groups", 1)
        assert small["cost"]["median"]["value"] is None
        assert small["boundary"]["median"] is None
        jsonschema.validate(one.content, SCHEMA)

    @pytest.mark.slow
    def test_a_title_says_what_was_judged(self, pipeline, people) -> None:
        titles = {}
        for gate in ("not_found_rate <= 0.05", "group_cost_gap <= 0.000001"):
            one = audit(pipeline, people, **OPTIONS | {"gates": [gate], "methods": ["closest"]})
            titles[gate] = one.content["verdict"]["title"]
        assert titles["not_found_rate <= 0.05"] == "Explanations are within all limits that were set"
        assert "stable" not in titles["group_cost_gap <= 0.000001"]

    def test_an_unknown_option_is_named(self, pipeline, people) -> None:
        with pytest.raises(AuditError, match=r"There is no option 'taget'\. Did you mean 'target'"):
            audit(pipeline, people, taget="yes")

    def test_columns_of_a_model_without_names_have_those_of_the_table(self, people) -> None:
        numbers = people[["income", "children"]].astype(float)
        model = LogisticRegression().fit(numbers.to_numpy(), people["granted"])
        limits = Actionable(immutable=["children"])
        features = ["income", "children"]
        options = OPTIONS | {"features": features, "actionable": limits, "methods": ["closest"]}
        one = audit(model, people.drop(columns=["debt", "purpose"]), **options)
        told = {told["column"] for person in one.content["lookup"] for told in person["methods"][0]["told"]}
        assert told == {"income"}


class TestSameResult:
    @pytest.mark.slow
    def test_on_one_process_two_and_a_cluster(self, pipeline, people, found: Audit) -> None:
        two = audit(pipeline, people, jobs=2, **OPTIONS)
        assert two.to_json() == found.to_json()
        from dask import distributed

        with distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster:
            third = audit(pipeline, people, cluster=cluster.scheduler_address, **OPTIONS)
        assert third.to_json() == found.to_json()

    @pytest.mark.slow
    def test_from_csv_parquet_pandas_and_polars(self, pipeline, people, tmp_path) -> None:
        skops.io.dump(pipeline, tmp_path / "model.skops")
        people.to_csv(tmp_path / "people.csv", index=False)
        people.to_parquet(tmp_path / "people.parquet", index=False)
        contents = {}
        for name in ("people.csv", "people.parquet"):
            toml = f"""
model = "model.skops"
data = "{name}"
label = "granted"
sensitive = ["sex"]
target = "yes"
methods = ["closest", "plausible"]
people = 60
draws = 4
lookup = 5
out = "out-{name}"
[density]
components = [1]
"""
            (tmp_path / "audit.toml").write_text(toml, encoding="utf-8")
            result = CliRunner().invoke(app, ["audit", str(tmp_path / "audit.toml"), "--jobs", "1"])
            assert result.exit_code in (0, 1, 3), result.output
            content = json.loads((tmp_path / f"out-{name}" / "audit.json").read_text(encoding="utf-8"))
            contents[name] = {key: value for key, value in content.items() if key != "audited"}
        for name, frame in (("pandas", people), ("polars", polars.from_pandas(people))):
            content = audit(pipeline, frame, **OPTIONS).content
            contents[name] = {key: value for key, value in content.items() if key != "audited"}
        assert contents["people.csv"] == contents["people.parquet"] == contents["pandas"] == contents["polars"]

    def test_the_order_of_columns_and_what_else_is_in_the_table_do_not_matter(self, pipeline, people, found) -> None:
        other = people.assign(noise=1.0)[["noise", *people.columns[::-1]]]
        again = audit(pipeline, other, **OPTIONS)
        assert again.content["stability"] == found.content["stability"]
        assert again.content["pairs"] == found.content["pairs"]


class TestFiles:
    def test_json_follows_its_schema(self, found: Audit, planted: Audit) -> None:
        jsonschema.Draft202012Validator.check_schema(SCHEMA)
        for one in (found, planted):
            jsonschema.validate(json.loads(one.to_json()), SCHEMA)

    def test_junit_and_summary_agree_with_the_gates(self, planted: Audit) -> None:
        suite = ElementTree.fromstring(planted.to_junit().encode())
        assert suite.get("failures") == str((planted.gates["result"] == "fail").sum())
        names = [case.get("name") for case in suite]
        assert names == planted.gates["gate"].tolist()
        text = planted.to_markdown()
        assert text.startswith("# Audit of explanations: failed")
        assert text.count("✕ fail") == (planted.gates["result"] == "fail").sum()

    def test_redacted_files_hold_no_ids_and_no_values(self, pipeline, people, tmp_path) -> None:
        secret = people.assign(name=[f"person-{i:05d}" for i in range(len(people))])
        one = audit(pipeline, secret, id="name", redact=True, **OPTIONS)
        one.write(tmp_path)
        assert not one.content["lookup"]
        incomes = {f"{value:,.0f}" for value in people["income"]} - {f"{n}" for n in range(1000)}
        for name in FILES:
            text = (tmp_path / name).read_text(encoding="utf-8")
            assert "person-0" not in text, name
        shown = json.dumps([one.content[key] for key in ("least_stable", "pairs", "lookup")])
        assert not [value for value in incomes if f'"{value}"' in shown]
        assert all(told["before"] is None for card in one.content["least_stable"] for told in card["told"])

    def test_only_the_people_that_are_shown_are_in_the_files(self, pipeline, people) -> None:
        secret = people.assign(name=[f"person-{i:05d}" for i in range(len(people))])
        one = audit(pipeline, secret, id="name", **OPTIONS)
        shown = {person["id"] for person in one.content["lookup"]}
        text = one.to_json()
        assert 5 <= len(shown) < 60
        assert all((who in text) == (who in shown) for who in secret["name"])

    def test_people_who_are_asked_for_can_be_looked_up(self, pipeline, people) -> None:
        declined = people.index[pipeline.predict(people[["income", "debt", "children", "purpose"]]) == "no"]
        wanted = [str(declined[-1]), "nobody"]
        one = audit(pipeline, people, **OPTIONS | {"lookup": wanted, "methods": ["closest"]})
        assert wanted[0] in {person["id"] for person in one.content["lookup"]}
        assert any("'nobody'" in note for note in one.content["notes"])

    def test_hostile_names_are_text(self, people, tmp_path) -> None:
        bad = "<script>alert(1)</script>"
        table = people.rename(columns={"purpose": bad, "sex": "a|b`*"}).replace({"car": "</script><b>", "f": "&<i>"})
        features = ["income", "children", bad]
        encoder = make_column_transformer((OneHotEncoder(), [bad]), remainder=StandardScaler())
        model = make_pipeline(encoder, LogisticRegression()).fit(table[features], table["granted"])
        one = audit(model, table, label="granted", sensitive=["a|b`*"], target="yes", methods=["closest"], **SMALL)
        one.write(tmp_path)
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert "<script>alert(1)" not in page
        assert "</script><b>" not in page
        ElementTree.fromstring((tmp_path / "junit.xml").read_bytes())
        jsonschema.validate(json.loads((tmp_path / "audit.json").read_text(encoding="utf-8")), SCHEMA)

    @pytest.mark.parametrize("call", [0, 3, 4, 6, 7, 8])
    def test_the_old_report_stays_whole_if_the_new_one_cannot_be_written(
        self, found: Audit, planted: Audit, tmp_path, monkeypatch, call: int
    ) -> None:
        monkeypatch.setattr(Audit, "to_html", lambda self: repr(self))
        assert [path.name for path in found.write(tmp_path)] == list(FILES)
        before = {name: (tmp_path / name).read_bytes() for name in FILES}
        calls = iter(range(100))

        def full(handle: int) -> None:
            if next(calls) == call:
                raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr("os.fsync", full)
            with pytest.raises(WritingError, match=r"No space left on device\. What was there before is there still"):
                planted.write(tmp_path)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
        planted.write(tmp_path)
        assert (tmp_path / "junit.xml").read_text(encoding="utf-8") == planted.to_junit()

    @pytest.mark.parametrize("there", [True, False])
    def test_a_first_file_is_whole_or_not_there(self, there, tmp_path, monkeypatch) -> None:
        place = Place(tmp_path)
        place.model(linear(table()))
        place.put(table())
        monkeypatch.chdir(tmp_path)
        if there:
            (tmp_path / "audit.toml").write_text("mine", encoding="utf-8")

        def full(handle: int) -> None:
            raise OSError(28, "No space left on device")

        words = ("init", "model.skops", "people.csv", "--force")
        with monkeypatch.context() as patched:
            patched.setattr("os.fsync", full)
            place.refused("audit.toml cannot be written: No space left on device", words=words)
        assert place.run(*words).exit_code == 0
        assert "model.skops" in (tmp_path / "audit.toml").read_text(encoding="utf-8")

    @pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
    @pytest.mark.parametrize("when", ["at_once", pytest.param("later", marks=pytest.mark.slow)])
    def test_a_table_that_changes_is_refused_or_was_read_before(self, name, when, tmp_path, monkeypatch) -> None:
        place = Place(tmp_path)
        place.model(linear(table()))
        place.put(table(), name)
        place.write(data=name)
        monkeypatch.chdir(tmp_path)
        digest = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        opened, loaded = commands.open_table, commands.load_model

        def other(call, *arguments, **options):
            result = call(*arguments, **options)
            place.put(table(seed=1), name)
            return result

        if when == "at_once":
            monkeypatch.setattr(commands, "open_table", lambda *given, **options: other(opened, *given, **options))
        else:
            monkeypatch.setattr(commands, "load_model", lambda *given, **options: other(loaded, *given, **options))
        ended = place.run("audit", "audit.toml", "--jobs", "1")
        if when == "later" and name == "people.csv":  # it is in memory by then
            content = json.loads((tmp_path / "out" / "audit.json").read_text(encoding="utf-8"))
            assert content["audited"]["data"]["sha256"] == digest
        else:
            assert ended.exit_code == 2
            assert f"{name} was changed while it was read" in ended.output
            assert not (tmp_path / "out").exists()


class TestGates:
    @pytest.mark.parametrize(
        ("low", "high", "result"), [(0.5, 1.0, "pass"), (1.3, 2.0, "fail"), (1.1, 1.3, "undecided"), (1.2, 1.2, "pass")]
    )
    def test_the_whole_interval_decides(self, low: float, high: float, result: str) -> None:
        gate = parse_gate("median_amplification <= 1.2")
        assert gate.judge(Interval((low + high) / 2, low, high)) == result

    def test_at_least(self) -> None:
        gate = parse_gate("certified_share( 0.1 ) >= 0.8")
        assert gate.argument == 0.1
        assert gate.judge(Interval(0.85, 0.8, 0.9)) == "pass"
        assert gate.judge(Interval(0.75, 0.7, 0.79)) == "fail"
        assert gate.judge(Interval(0.8, 0.7, 0.9)) == "undecided"

    @given(st.lists(st.tuples(st.floats(0, 3), st.floats(0, 1)), min_size=1, max_size=6))
    def test_one_bad_part_is_enough(self, ends: list[tuple[float, float]]) -> None:
        gate = parse_gate("median_amplification <= 1.2")
        candidates = [Candidate(Interval(low + width / 2, low, low + width)) for low, width in ends]
        result = judge(gate, candidates).result
        assert (result == "fail") == any(one.interval.low > 1.2 for one in candidates)
        assert (result == "pass") == all(one.interval.high <= 1.2 for one in candidates)

    def test_without_an_interval_nothing_is_decided(self) -> None:
        judged = judge(parse_gate("median_amplification <= 1.2"), [Candidate(Interval(0.5, math.nan, math.nan))])
        assert (judged.result, judged.why) == ("undecided", "An interval takes at least two people.")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("median_amplification", "A gate is a name"),
            ("median_amplificaton <= 1", "Did you mean 'median_amplification'"),
            ("median_amplification >= 1", "less is better, write <="),
            ("certified_share >= 0.5", r"needs a radius in parentheses, such as certified_share\(0.1\)"),
            ("not_found_rate(x) <= 1", "takes nothing in parentheses"),
            ("median_amplification() <= 1", "parentheses .* are empty"),
            ("median_amplification <= 1e", "the limit is not a number"),
            ("median_amplification <= 1.2; import os", "cannot be read"),
        ],
    )
    def test_what_is_wrong_is_said(self, text: str, message: str) -> None:
        with pytest.raises(AuditError, match=message):
            parse_gate(text)

    def test_every_gate_can_be_asked(self, planted: Audit, pipeline, people) -> None:
        gates = [f"{name}(0.1) >= 0" if name == "certified_share" else f"{name} <= 1000" for name in GATES]
        example = loans(people=1000)
        options = example.options() | {"gates": gates, "methods": ["closest"], **SMALL | {"people": 300}}
        one = audit(example.model, example.people, **options)
        assert one.gates["result"].tolist() == ["pass"] * len(GATES), one.gates.to_string()


def test_progress_is_shown(pipeline, people) -> None:
    stages: dict[str, list[tuple[int, int]]] = {}
    audit(
        pipeline,
        people,
        progress=lambda stage, done, total: stages.setdefault(stage, []).append((done, total)),
        **OPTIONS,
    )
    assert {"explaining everybody", "perturbing and explaining again", "comparing alike pairs"} <= set(stages)
    assert stages["explaining everybody"][-1] == (len(people), len(people))
    done, total = stages["perturbing and explaining again"][-1]
    assert done == total == 2 * 2 * 60 * 4


def test_an_onnx_file_is_searched(tmp_path) -> None:
    skl2onnx = pytest.importorskip("skl2onnx")
    pytest.importorskip("onnxruntime")
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :4]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X.to_numpy(), y)
    made = skl2onnx.to_onnx(model, X.to_numpy()[:1].astype(np.float32), options={"zipmap": False})
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    X.assign(ill=y).to_csv(tmp_path / "people.csv", index=False)
    toml = (
        'model = "model.onnx"\ndata = "people.csv"\nlabel = "ill"\ntarget = 1\nexplain = 60\npeople = 10\ndraws = 2\n'
    )
    (tmp_path / "audit.toml").write_text(toml + 'gates = ["not_found_rate <= 0.5"]\nout = "out"\n', encoding="utf-8")
    result = CliRunner().invoke(app, ["audit", str(tmp_path / "audit.toml"), "--jobs", "1"])
    assert result.exit_code == 0, result.output
    content = json.loads((tmp_path / "out" / "audit.json").read_text(encoding="utf-8"))
    jsonschema.validate(content, SCHEMA)
    assert content["audited"]["in_use"] == "penalized"
    assert content["audited"]["model"]["kind"] == "ONNX model"
    assert content["coverage"]["people"][0]["not_found"] == 0


@pytest.mark.slow
def test_the_demo_needs_no_file(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["audit", "--demo", "--redact", "--jobs", "1"])
    assert result.exit_code == 1, result.output
    assert {path.name for path in (tmp_path / "results" / "audit").iterdir()} == set(FILES)
    assert "✕ fail" in result.output
    assert json.loads((tmp_path / "results" / "audit" / "audit.json").read_text(encoding="utf-8"))["lookup"] == []
