"""`evenhand init`: what it writes runs as it is, whatever the names; bad input is refused, and nothing written."""

from __future__ import annotations

import pickle
import tomllib
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from audit_folders import NUMBERS, SPOILED, STRANGE, Evil, InFolder, Place, linear, table


class TestInit(InFolder):
    @pytest.mark.parametrize("suffix", [".csv", ".parquet"])
    @pytest.mark.parametrize("drop", [[], ["granted", "who", "sex", "purpose"]], ids=["all", "few"])
    def test_what_it_writes_runs_as_it_is(self, place: Place, suffix: str, drop: list[str]) -> None:
        place.put(table().drop(columns=drop), f"people{suffix}")
        found = place.run("init", "model.skops", f"people{suffix}")
        assert found.exit_code == 0, found.output
        assert "Wrote audit.toml" in found.output
        content = tomllib.loads((place.folder / "audit.toml").read_text(encoding="utf-8"))
        assert content.get("label") == (None if "granted" in drop else "granted")
        assert content.get("id") == (None if "who" in drop else "who")
        self.quick(place)
        place.audited(out="results/audit")

    @staticmethod
    def quick(place: Place) -> None:
        """Fewer people and draws, so that tests are quick; all else as it was written."""
        path = place.folder / "audit.toml"
        text = path.read_text(encoding="utf-8")
        for old, new in (
            ('["closest", "plausible", "steady"] ', '["closest"] '),
            ("# draws = 20 ", "draws = 2 "),
            ("# people = 2000 ", "people = 30 "),
            ("# lookup = 60 ", "lookup = 3 "),
        ):
            assert old in text
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")

    def test_exactly_as_it_is(self, levels: Place) -> None:
        levels.put(table(60))
        assert levels.run("init", "model.skops", "people.csv").exit_code == 0
        levels.audited(out="results/audit")

    def test_everything_that_is_commented_out_is_right(self, levels: Place) -> None:
        assert levels.run("init", "model.skops", "people.csv").exit_code == 0
        self.quick(levels)
        path = levels.folder / "audit.toml"
        lines = path.read_text(encoding="utf-8").splitlines()
        left = ("# tolerance", "# levels", "# increase", "# decrease", "# Lines", "# An", "# What")
        for i, line in enumerate(lines):
            bare = line.strip().removeprefix("# ")
            if line.strip().startswith("# ") and not line.strip().startswith(left):
                lines[i] = bare
        path.write_text("\n".join(lines), encoding="utf-8")
        levels.audited(out="results/audit")

    def test_it_overwrites_nothing_unless_told(self, place: Place) -> None:
        (place.folder / "audit.toml").write_text("mine", encoding="utf-8")
        words = ("init", "model.skops", "people.csv")
        place.refused("audit.toml exists already; --force overwrites it, --out names another one", words=words)
        assert place.run(*words, "--out", "other.toml").exit_code == 0
        assert place.run(*words, "--force").exit_code == 0
        assert (place.folder / "audit.toml").read_bytes() == (place.folder / "other.toml").read_bytes()

    def test_into_another_folder(self, place: Place) -> None:
        (place.folder / "below").mkdir()
        (place.folder / "data").mkdir()
        place.put(table(), "data/people.csv")
        words = ("init", "model.skops", "data/people.csv", "--out")
        assert place.run(*words, "below/audit.toml").exit_code == 0
        content = tomllib.loads((place.folder / "below" / "audit.toml").read_text(encoding="utf-8"))
        assert Path(content["data"]).is_absolute()
        assert place.run(*words, "audit.toml").exit_code == 0
        assert tomllib.loads((place.folder / "audit.toml").read_text(encoding="utf-8"))["data"] == "data/people.csv"

    @pytest.mark.parametrize("name", [pytest.param(one) if one in ("💶", "\x7f") else one for one in STRANGE])
    def test_strange_names(self, place: Place, name: str) -> None:
        suffix = ".parquet"
        frame = table().rename(columns={"income": name, "sex": f"{name}2", "granted": f"{name}3", "who": f"{name}4"})
        place.model(linear(frame, [name, "debt", "age"], f"{name}3"))
        place.put(frame, f"people{suffix}")
        found = place.run("init", "model.skops", f"people{suffix}")
        assert found.exit_code == 0, found.output
        text = (place.folder / "audit.toml").read_text(encoding="utf-8")
        content = tomllib.loads(text)
        assert (content["label"], content["id"]) == (f"{name}3", f"{name}4")
        assert f"{name}2" in content["sensitive"]
        opened = text.replace("# bounds", "bounds").replace("# increase", "increase")
        changed = tomllib.loads(opened.replace("# features", "features"))
        assert changed["features"] == [name, "debt", "age"]
        assert list(changed["actionable"]["bounds"]) == [name]
        assert changed["actionable"]["increase"] == [name]

    @pytest.mark.parametrize("level", ["a\nb", 'say "no"', "back\\slash", "<script>", "💶", pytest.param("\x7f")])
    def test_strange_labels(self, place: Place, level: str) -> None:
        frame = table().replace({"granted": {"yes": level}})
        place.model(linear(frame))
        place.put(frame, "people.parquet")
        assert place.run("init", "model.skops", "people.parquet").exit_code == 0
        text = (place.folder / "audit.toml").read_text(encoding="utf-8")
        assert tomllib.loads(text.replace("# target", "target"))["target"] in ("no", level)

    @pytest.mark.parametrize(
        "name",
        [
            'it\'s "so".csv',
            "a b.csv",
            *(pytest.param(one) for one in ("a\nb.csv", "💶.csv", "a\x7f.csv")),
        ],
    )
    def test_strange_files(self, place: Place, name: str) -> None:
        place.put(table(), name)
        (place.folder / "model.skops").rename(place.folder / f"{name}.skops")
        assert place.run("init", f"{name}.skops", name).exit_code == 0
        content = tomllib.loads((place.folder / "audit.toml").read_text(encoding="utf-8"))
        assert (content["data"], content["model"]) == (name, f"{name}.skops")

    @pytest.mark.parametrize(
        ("words", "phrases"),
        [
            (("modle.skops", "people.csv"), ("There is no file", "modle.skops")),
            (("model.skops", "peple.csv"), ("There is no data file", "peple.csv")),
            (("folder", "people.csv"), ("folder is a directory",)),
            (("model.skops", "folder"), ("folder is a folder",)),
            (("people.csv", "people.csv"), ("people.csv is no kind of model",)),
            (("model.skops", "model.skops"), ("data must be a .csv or .parquet file",)),
            (("evil.pkl", "people.csv"), ("evil.pkl is a pickle", "--trust-pickle")),
            (("spoiled.skops", "people.csv"), ("spoiled.skops",)),
            (("model.skops", "spoiled.csv"), ("spoiled.csv",)),
            (("model.skops", "spoiled.parquet"), ("spoiled.parquet",)),
            (("model.skops", "empty.csv"), ("empty.csv is empty",)),
            (("model.skops", "no rows.csv"), ("no rows.csv has no rows",)),
            (("model.skops", "no rows.parquet"), ("no rows.parquet has no rows",)),
            (("model.skops", "no age.csv"), ("features: no age.csv has no column 'age'",)),
            pytest.param(("model.skops", "text.csv"), ("text.csv", "'debt'")),
            (("unfitted.skops", "people.csv"), ("not fitted",)),
            pytest.param(("regressor.skops", "people.csv"), ("LinearRegression", "classif")),
            pytest.param(("one.skops", "people.csv"), ("one label only",)),
            pytest.param(("nameless.skops", "people.csv"), ("7",)),
            pytest.param(("nameless.skops", "no age.csv"), ("no age.csv",)),
            (("model.skops", "people.csv", "--out", "folder"), ("folder",)),
            (("model.skops", "people.csv", "--out", "folder", "--force"), ("folder cannot be written",)),
            (("model.skops", "people.csv", "--out", "people.csv/a.toml"), ("people.csv/a.toml cannot be written",)),
            (("model.skops", "people.csv", "--out", "nowhere/a.toml"), ("nowhere/a.toml cannot be written",)),
            (("model.skops", "people.csv", "--out", "/proc/a.toml"), ("/proc/a.toml cannot be written",)),
            pytest.param(("model.skops", "people.csv", "--out", "x" * 300), ("cannot be written",)),
            (("model.skops", "people.csv", "--out", "a\0b"), ("embedded null",)),
        ],
    )
    def test_wrong(self, place: Place, words: tuple[str, ...], phrases: tuple[str, ...]) -> None:
        here, frame = place.folder, table()
        (here / "folder").mkdir()
        (here / "evil.pkl").write_bytes(pickle.dumps(Evil(here / "done")))
        for name in ("spoiled.skops", "spoiled.csv", "spoiled.parquet"):
            (here / name).write_bytes(SPOILED)
        (here / "empty.csv").write_bytes(b"")
        for name in ("no rows.csv", "no rows.parquet"):
            place.put(frame.iloc[:0], name)
        place.put(frame[["income", "debt"]], "no age.csv")
        place.put(frame.assign(debt="a lot"), "text.csv")
        place.model(LogisticRegression(), "unfitted.skops")
        place.model(LinearRegression().fit(frame[NUMBERS], frame["age"]), "regressor.skops")
        place.model(DecisionTreeClassifier().fit(frame[NUMBERS], ["no"] * len(frame)), "one.skops")
        nine = np.random.default_rng(0).normal(size=(20, 9))
        place.model(LogisticRegression().fit(nine, [0, 1] * 10), "nameless.skops")
        place.refused(*phrases, words=("init", *words))

    def test_trusted_pickle(self, place: Place) -> None:
        (place.folder / "m.pkl").write_bytes(pickle.dumps(linear(table())))
        found = place.run("init", "m.pkl", "people.csv", "--trust-pickle")
        assert found.exit_code == 0
        assert "m.pkl is a pickle, which can run any code" in found.output
