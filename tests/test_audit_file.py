"""Bad keys, values, words and folders to `evenhand audit`: refused with a sentence and exit code 2, nothing written."""

from __future__ import annotations

from typing import Any

import pytest

from audit_folders import NUMBERS, SPOILED, InFolder, Place
from evenhand.auditing.audit_file import AuditFile


class TestGood(InFolder):
    """What is refused, here and in the other tests of audits, differs from these in one thing each."""

    def test_numbers(self, place: Place) -> None:
        place.write(sensitive=["sex"], id="who", target="yes")
        assert place.audited()["audited"]["data"]["rows"] == 200

    def test_levels(self, levels: Place) -> None:
        levels.write(sensitive=["sex"], id="who", target="yes")
        assert levels.audited()["audited"]["features"] == [*NUMBERS, "purpose"]


class TestFile(InFolder):
    def test_missing(self, place: Place) -> None:
        place.refused("There is no file", "audit.toml")

    def test_folder(self, place: Place) -> None:
        place.refused("evenhand audit:", "Is a directory", str(place.folder), words=("audit", str(place.folder)))

    def test_below_a_file(self, place: Place) -> None:
        place.refused("people.csv/audit.toml", words=("audit", str(place.folder / "people.csv" / "audit.toml")))

    @pytest.mark.parametrize(
        ("name", "phrase"),
        [
            pytest.param("a\0b.toml", "embedded null", id="null"),
            pytest.param("x" * 300 + ".toml", "x.toml"),
        ],
    )
    def test_impossible_name(self, place: Place, name: str, phrase: str) -> None:
        place.refused(phrase, words=("audit", name))

    def test_not_readable(self, place: Place) -> None:
        place.write().chmod(0)
        try:
            (place.folder / "audit.toml").read_bytes()
        except PermissionError:
            found = place.run("audit", str(place.folder / "audit.toml"))
            assert (found.exit_code, "cannot be read" in found.output) == (2, True)
            return
        pytest.skip("this user may read everything")

    @pytest.mark.parametrize(
        "content",
        [
            b"model = ",
            b'model = "a"\nmodel = "b"\n',
            b"[a\n",
            b"\x00",
            SPOILED,
            b"model = \xff\n",
            "ä".encode("latin-1"),
        ],
    )
    def test_not_toml(self, place: Place, content: bytes) -> None:
        (place.folder / "audit.toml").write_bytes(content)
        place.refused("audit.toml is not TOML")

    @pytest.mark.parametrize(
        "encoding",
        ["utf-16", "latin-1", pytest.param("utf-8-sig")],
    )
    def test_another_encoding(self, place: Place, encoding: str) -> None:
        text = place.write().read_text(encoding="utf-8") + "# größe\n"
        (place.folder / "audit.toml").write_text(text, encoding=encoding)
        if encoding == "utf-8-sig":
            place.audited()
        else:
            place.refused("audit.toml is not TOML", "utf-8")

    def test_deeply_nested(self, place: Place) -> None:
        (place.folder / "audit.toml").write_text("model = " + "[" * 20000 + "]" * 20000, encoding="utf-8")
        place.refused("audit.toml")

    def test_empty(self, place: Place) -> None:
        (place.folder / "audit.toml").write_bytes(b"")
        place.refused("audit.toml has no 'model'", "a text")

    def test_no_data(self, place: Place) -> None:
        place.write(data=None)
        place.refused("audit.toml has no 'data'")

    @pytest.mark.parametrize(
        ("keys", "phrases"),
        [
            ({"lable": "granted"}, ("Unknown key 'lable' in audit.toml", "Did you mean 'label'?", "sensitive")),
            ({"zzz": 1}, ("Unknown key 'zzz' in audit.toml", "Possible are model, data")),
            ({"actionable": {"imutable": []}}, ("'imutable' in actionable", "Did you mean 'immutable'?")),
            ({"pairs": {"neighbors": 3}}, ("'neighbors' in pairs", "Did you mean 'neighbours'?")),
            ({"density": {"quantiles": 0.5}}, ("'quantiles' in density", "Did you mean 'quantile'?")),
            (
                {"perturbations": {"x": {"kind": "gaussian", "covarance": 1}}},
                ("'covarance' in perturbations.x", "Did you mean 'covariance'?"),
            ),
        ],
    )
    def test_unknown_key(self, place: Place, keys: dict[str, Any], phrases: tuple[str, ...]) -> None:
        place.write(**keys)
        place.refused(*phrases)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *((name, value) for name in ("model", "data", "out") for value in (1, "", True, ["a"], {})),
            *((name, value) for name in ("label", "id") for value in (1, "", True, ["a"], {})),
            *((name, value) for name in ("features", "sensitive") for value in (1, "", [1], [["a"]], True, {})),
            ("features", []),
            *(("target", value) for value in (["yes"], {})),
            *(("cost", value) for value in (1, "l3", "", True, [], ["l1"], {})),
            *(("methods", value) for value in (1, [], "", ["closest", 2], True, {}, [["closest"]])),
            *(("on_flip", value) for value in (1, "drop", True, [], {})),
            *(("draws", value) for value in (1, 0, -1, 2.5, "2", True, [2], {})),
            *(("max_draws", value) for value in (1, 2.5, "2", True, {})),
            *(("people", value) for value in (0, -1, 2.5, "2", True, {})),
            *(("explain", value) for value in (0, 2.5, "2", True, {})),
            *(("lookup", value) for value in (-1, 2.5, "2", True, [2.5], [["a"]], {})),
            pytest.param("lookup", [True]),
            *(("gates", value) for value in (1, [1], True, {}, [""])),
            *(("redact", value) for value in (1, "yes", [], {})),
            *(("seed", value) for value in (-1, 1.5, "0", True, {})),
            *(("actionable", value) for value in (1, "income", [], True, [{}])),
            *(("density", value) for value in (1, "x", [], [{}])),
            *(("pairs", value) for value in (1, "x", [], [{}])),
            *(("perturbations", value) for value in (1, "x", [], {}, [{}])),
        ],
    )
    def test_wrong_type(self, place: Place, name: str, value: Any) -> None:
        place.write(**{name: value})
        place.refused("evenhand audit: ", name, "must be" if value != {} or name != "perturbations" else "is empty")

    @pytest.mark.parametrize("value", [0, -1, 2, "0.1", True, [], {}, float("nan"), float("inf")])
    def test_tolerance(self, place: Place, value: Any) -> None:
        place.write(draws=None, tolerance=value)
        place.refused("audit.toml.tolerance must be a number")

    @pytest.mark.parametrize(
        ("where", "name", "value"),
        [
            *(("density", "quantile", value) for value in (-0.1, 1.5, "0.5", True, [0.5], float("nan"))),
            *(("density", "components", value) for value in (0, [0], [], "1", [1.5], True)),
            *(("pairs", "neighbours", value) for value in (0, 1.5, "5", True)),
            *(("pairs", "within", value) for value in (0, -1, "1", True, float("nan"))),
            *(("pairs", "apart", value) for value in (0, -1, "1", True, float("inf"))),
            *(("pairs", "people", value) for value in (0, 1, 2.5, True)),
            *(("actionable", "immutable", value) for value in (1, [1], True, {})),
            *(("actionable", "increase", value) for value in (1, [1], True, {})),
            *(("actionable", "decrease", value) for value in (1, [1], True, {})),
            *(("actionable", "bounds", value) for value in (1, [1, 2], "x")),
            *(("actionable", "levels", value) for value in (1, ["car"], "x")),
        ],
    )
    def test_wrong_type_in_a_table(self, place: Place, where: str, name: str, value: Any) -> None:
        place.write(**{where: {name: value}})
        place.refused(f"{where}.{name} must be")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(("kind", value) for value in (1, "gausian", "", [], {})),
            *(("covariance", value) for value in (-1, "1", True, float("nan"))),
            *(("radius", value) for value in (-1, "1", True)),
            *(("relative", value) for value in (1, "yes")),
            *(("features", value) for value in (0, 1.5, "age", True)),
            *(("step", value) for value in (-1, "1", True)),
            *(("by", value) for value in (0, 1.5, "1", True)),
            *(("probability", value) for value in (-0.1, 1.1, "1", True)),
        ],
    )
    def test_wrong_type_in_a_perturbation(self, place: Place, name: str, value: Any) -> None:
        place.write(perturbations={"x": {"kind": "gaussian"} | {name: value}})
        place.refused(f"perturbations.x.{name} must be")

    def test_perturbation_without_a_kind(self, place: Place) -> None:
        place.write(perturbations={"x": {}})
        place.refused("perturbations.x has no 'kind'", "gaussian, uniform, mask, rounding, count, levels")

    def test_perturbation_that_is_no_table(self, place: Place) -> None:
        place.write(perturbations={"kind": "gaussian"})
        place.refused("perturbations.kind must be a table")

    def test_key_of_another_kind(self, place: Place) -> None:
        place.write(perturbations={"x": {"kind": "rounding", "covariance": 0.5}})
        place.refused("perturbations.x", "covariance")

    @pytest.mark.parametrize("value", [[1], [1, 2, 3], "x", 5, {}])
    def test_bounds_that_are_no_pair(self, place: Place, value: Any) -> None:
        place.write(actionable={"bounds": {"income": value}})
        place.refused("actionable.bounds.income must be a pair such as [0, 100]")

    @pytest.mark.parametrize("value", [["a", "b"], [[], 1], [{}, 1]])
    def test_bounds_that_are_no_numbers(self, place: Place, value: Any) -> None:
        place.write(actionable={"bounds": {"income": value}})
        place.refused("actionable.bounds.income must be two numbers")

    @pytest.mark.parametrize("value", [[3, 1], [float("nan"), 1], ["nan", "nan"], [True, False]])
    def test_bounds_that_make_no_sense(self, place: Place, value: Any) -> None:
        place.write(actionable={"bounds": {"income": value}})
        place.refused("income", "bounds")

    @pytest.mark.parametrize("value", [[], "car", 5])
    def test_levels_that_are_no_list(self, place: Place, value: Any) -> None:
        place.write(actionable={"levels": {"purpose": value}})
        place.refused("actionable.levels.purpose must be a list of levels")

    def test_draws_and_tolerance(self, place: Place) -> None:
        place.write(tolerance=0.1)
        place.refused("audit.toml: give draws or tolerance, not both")

    @pytest.mark.parametrize(
        ("gates", "phrases"),
        [
            (["median_amplificaton <= 1"], ("median_amplificaton", "Did you mean 'median_amplification'?")),
            (["zzz <= 1"], ("There is no gate 'zzz'", "Possible are not_found_rate")),
            (["median_amplification >= 1"], ("less is better, write <=",)),
            (["certified_share(0.1) <= 1"], ("more is better, write >=",)),
            (["certified_share >= 1"], ("needs a radius",)),
            (["certified_share(noise) >= 1"], ("needs a radius",)),
            (["certified_share(-1) >= 1"], ("must not be negative",)),
            (["certified_share(inf) >= 1"], ("needs a radius",)),
            (["median_amplification(nose) <= 1"], ("'nose'", "there are noise, rounding")),
            (["group_cost_gap(sex) <= 1"], ("'sex'", "not among the sensitive ones: none")),
            (["not_found_rate(x) <= 1"], ("takes nothing in parentheses",)),
            (["not_found_rate <= 1e999"], ("the limit is not a number",)),
            (["not_found_rate < 0.1"], ("cannot be read", "<= or >=")),
            (["not_found_rate <= 5 %"], ("cannot be read",)),
            ("not_found_rate", ("cannot be read",)),
        ],
    )
    def test_gates(self, place: Place, gates: Any, phrases: tuple[str, ...]) -> None:
        place.write(gates=gates)
        place.refused(*phrases)

    def test_gate_on_groups_without_a_sensitive_column(self, place: Place) -> None:
        place.write(gates=["group_cost_gap <= 0.1"])
        gate = place.audited()["gates"][0]
        assert gate["result"] == "undecided"
        assert gate["why"]

    def test_methods(self, place: Place) -> None:
        place.write(methods=["closests"])
        place.refused("audit.toml.methods must be a list, each one of closest, plausible", "'closests'")

    def test_every_key_is_covered(self) -> None:
        covered = {"tolerance"}
        for mark in TestFile.test_wrong_type.pytestmark:  # type: ignore[attr-defined]
            covered |= {getattr(case, "values", case)[0] for case in mark.args[1] if mark.name == "parametrize"}
        assert covered == set(AuditFile.__dataclass_fields__)


class TestCommand(InFolder):
    @pytest.mark.parametrize("out", ["taken", "taken/below/it"])
    def test_file_in_the_way(self, place: Place, out: str) -> None:
        (place.folder / "taken").write_text("mine", encoding="utf-8")
        place.write(out=out)
        place.refused("The output folder", out, "cannot be written", "--out")
        place.write()
        place.refused("The output folder", out, "cannot be written", more=("--out", out))

    @pytest.mark.parametrize("out", ["/proc/x", "/proc/x/y", "/dev/null", pytest.param("x" * 300)])
    def test_impossible_folder(self, place: Place, out: str) -> None:
        place.write()
        place.refused("The output folder", "cannot be written", "--out", more=("--out", out))

    def test_folder_in_place_of_a_file(self, place: Place) -> None:
        (place.folder / "out" / "junit.xml").mkdir(parents=True)
        place.write()
        place.refused("junit.xml", "cannot be written")

    def test_folder_that_is_there_keeps_what_it_has(self, place: Place) -> None:
        (place.folder / "out").mkdir()
        (place.folder / "out" / "notes.txt").write_text("mine", encoding="utf-8")
        place.write(target="maybe")
        place.refused("target:")

    @pytest.mark.parametrize(
        ("words", "phrase"),
        [
            (("audit",), "Name either an audit file or --demo"),
            (("audit", "audit.toml", "--demo"), "Name either an audit file or --demo"),
            (("audit", "audit.toml", "--clean"), "--clean is a variant of --demo"),
            (("audit", "--clean"), "Name either an audit file or --demo"),
            (("audit", "audit.toml", "--jobs", "0"), "--jobs"),
            (("audit", "audit.toml", "--jobs", "many"), "--jobs"),
            (("audit", "audit.toml", "--jobs", "2", "--cluster", "tcp://127.0.0.1:1"), "--jobs and --cluster exclude"),
            (("audit", "audit.toml", "--seed", "-1"), "--seed"),
            (("audit", "audit.toml", "--sed", "1"), "--sed"),
            (("audit", "audit.toml", "more.toml"), "more.toml"),
            (("audit", "--demo", "--out", "people.csv"), "cannot be written"),
            (("init",), "Missing argument"),
            (("init", "model.skops"), "Missing argument"),
        ],
    )
    def test_words(self, place: Place, words: tuple[str, ...], phrase: str) -> None:
        place.write()
        place.refused(phrase, words=words)

    @pytest.mark.parametrize("address", ["nonsense", "tcp://127.0.0.1:1", "http://x:y"])
    def test_cluster_that_is_not_there(self, place: Place, address: str) -> None:
        import dask
        import distributed  # noqa: F401 - its settings have to be there before they are changed

        place.write()
        with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
            place.refused("--cluster", words=("audit", "audit.toml", "--cluster", address))
