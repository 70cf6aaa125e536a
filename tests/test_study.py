"""Studies: refused before they run, resumed after they were killed, the same on any number of workers."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from evenhand import Closest, Gaussian, Mask, instability
from evenhand.cli.app import app, write_results
from evenhand.study import StudyError, combined, expand, read_study, run_study
from evenhand.study import checkpoints as kept
from evenhand.study.cells import _fitted

SMALL = """
seed = 3
folds = 2

[data.wine]
source = "wine"
pca = 5

[models.softmax]
kind = "softmax"

[models.tree]
kind = "tree"
max_depth = 3

[methods.closest]
kind = "closest"

[methods.plausible]
kind = "plausible"
components = [1]

[perturbations.noise]
kind = "gaussian"
covariance = 1.0

[perturbations.masking]
kind = "mask"
features = [1, 3]

[[experiments]]
name = "small"
data = ["wine"]
models = ["softmax", "tree"]
methods = ["closest", "plausible"]
perturbations = ["noise", "masking"]
scale = ["raw", "standardised"]
"""


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> Path:
    """Results of one process that nothing has disturbed."""
    folder = tmp_path_factory.mktemp("reference")
    (folder / "small.toml").write_text(SMALL)
    study = read_study(folder / "small.toml")
    write_results(run_study(study, folder / "out", version="0.1.0", jobs=1), folder / "out")
    return folder / "out"


def same(out: Path, reference: Path) -> bool:
    """The final files, byte for byte."""
    names = ("draws.parquet", "summary.csv", "summary.json")
    return all((out / name).read_bytes() == (reference / name).read_bytes() for name in names)


def started(file: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    """The command line in a process of its own."""
    command = [sys.executable, "-m", "evenhand", "study", str(file), "--out", str(out), *options]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for(out: Path, count: int, process: subprocess.Popen[str]) -> None:
    while len(list((out / "cells").glob("*.parquet"))) < count:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)


# --- What a file may say ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("seed = 3", "sead = 3", "Unknown key 'sead' in the study. Did you mean 'seed'\\? Possible are seed"),
        ("seed = 3", "seed = -1", "seed must be a whole number >= 0, got -1"),
        ("folds = 2", "folds = 1", "folds must be a whole number >= 2"),
        ('kind = "tree"', 'kind = "forest"', "models.tree.kind must be one of softmax, tree, glvq; got 'forest'"),
        (
            "max_depth = 3",
            "depth = 3",
            "Unknown key 'depth' in models.tree. Did you mean 'max_depth'\\? Possible are kind",
        ),
        ("max_depth = 3", "max_depth = 0", "models.tree: max_depth must be a whole number >= 1; got 0"),
        ('source = "wine"', 'source = "whine"', "data.wine.source must be one of wine, breast_cancer"),
        ('source = "wine"', 'source = "none.csv"', "there is no file"),
        ('source = "wine"', "", "data.wine has no 'source'"),
        ("components = [1]", "components = []", "methods.plausible.components must be a list"),
        ("components = [1]", "components = [0]", "each a whole number >= 1"),
        ("features = [1, 3]", 'features = "some"', "perturbations.masking.features"),
        ('models = ["softmax", "tree"]', 'models = ["softmax", "bush"]', "there is no 'bush'; there are softmax, tree"),
        ('scale = ["raw", "standardised"]', 'scale = ["raw", "std"]', "each one of raw, standardised"),
        ('name = "small"', "name = 3", "experiments.0..name must be a text; got 3"),
        ("[[experiments]]", "[[experiments", "is not TOML"),
        ('kind = "closest"', 'kind = "steady"', 'needs cost = "l2"'),
    ],
)
def test_refused_before_anything_runs(file, old, new, text) -> None:
    assert old in SMALL
    file.write_text(SMALL.replace(old, new, 1))
    with pytest.raises(StudyError, match=text):
        read_study(file)
    assert not (file.parent / "out").exists()


def test_there_is_no_file(tmp_path) -> None:
    with pytest.raises(StudyError, match="There is no file"):
        read_study(tmp_path / "none.toml")


def test_cells_are_the_whole_grid(file) -> None:
    cells = expand(read_study(file))
    assert len(cells) == len(set(cells)) == 2 * 2 * 2 * 2
    keys = {cell.hash("1") for cell in cells}
    assert len(keys) == len(cells)
    changed = replace(read_study(file), seed=4)
    assert not keys & {cell.hash("1") for cell in expand(changed)}
    assert not keys & {cell.hash("2") for cell in cells}


# --- What a cell measures ---------------------------------------------------------------------------------------------


def test_a_cell_is_an_instability(file, tmp_path) -> None:
    """The same numbers as by hand, with the public functions."""
    study = read_study(file)
    outcome = run_study(study, tmp_path / "out", version="x", jobs=1)
    cell = next(c for c in outcome.tables if c.model.name == "tree" and c.method.kind == "closest" and c.fold == 1)
    table = outcome.tables[cell]
    model, fold = _fitted(cell.data, None, cell.scale, cell.model, 2, 1, study.folder)
    right = model.predict(fold.X_test) == fold.y_test
    people = pd.DataFrame(fold.X_test[right], index=fold.people[right])
    for name, level, perturbation in (("noise", 1.0, Gaussian(1.0)), ("masking", 3.0, Mask(3))):
        part = table[(table["perturbation"] == name) & (table["level"] == level)]
        by_hand = instability(Closest("l1").fit(model), people, perturbation, target="random", random_state=3).table
        assert part["person"].tolist() == by_hand["person"].tolist()
        np.testing.assert_allclose(part["distance"], by_hand["distance"], rtol=1e-9)
        assert part["target"].tolist() == by_hand["target"].astype(str).tolist()
    assert outcome.info[cell]["accuracy"] == pytest.approx(right.mean())
    assert table["density_rank"].between(0, 1).all()
    whole = combined(outcome.tables)
    assert len(whole) == sum(map(len, outcome.tables.values()))
    assert whole["cost"].unique().tolist() == ["l1"]


@pytest.mark.slow
def test_people_from_a_file(tmp_path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"])
    frame["granted"] = np.where(frame["a"] + frame["b"] > 0, "yes", "no")
    frame.to_csv(tmp_path / "loans.csv", index=False)
    text = SMALL.replace('source = "wine"\npca = 5', 'source = "loans.csv"\nlabel = "granted"')
    (tmp_path / "loans.toml").write_text(text)
    study = read_study(tmp_path / "loans.toml")
    first = run_study(study, tmp_path / "out", version="x", jobs=1)
    assert first.reused == 0
    assert set(combined(first.tables)["target"]) == {"yes", "no"}
    assert run_study(study, tmp_path / "out", version="x", jobs=1).reused == len(first.tables)
    (2 * frame[["a", "b", "c"]]).assign(granted=frame["granted"]).to_csv(tmp_path / "loans.csv", index=False)
    doubled = run_study(read_study(tmp_path / "loans.toml"), tmp_path / "out", version="x", jobs=1)
    assert doubled.reused == 0  # another content, another study, and nothing of the old one in any cache
    fresh = run_study(read_study(tmp_path / "loans.toml"), tmp_path / "other", version="x", jobs=2)
    pd.testing.assert_frame_equal(combined(doubled.tables), combined(fresh.tables))
    frame.drop(columns="granted").to_csv(tmp_path / "loans.csv", index=False)
    with pytest.raises(StudyError, match="has no column 'granted'"):
        run_study(read_study(tmp_path / "loans.toml"), tmp_path / "out", version="x", jobs=1)


def test_a_cell_of_two_experiments_is_run_and_counted_once(file, tmp_path) -> None:
    again = SMALL[SMALL.index("[[experiments]]") :].replace('"small"', '"again"')
    once = run_study(read_study(file), tmp_path / "once", version="x", jobs=1)
    file.write_text(SMALL + again)
    twice = run_study(read_study(file), tmp_path / "twice", version="x", jobs=1)
    assert len(twice.tables) == 2 * len(once.tables)
    assert twice.explained == once.explained
    assert len(list((tmp_path / "twice" / "cells").iterdir())) == len(once.tables)


# --- Killed, damaged, spread over workers -----------------------------------------------------------------------------


def test_a_second_run_has_nothing_to_do(file, reference, tmp_path) -> None:
    study = read_study(file)
    seen = []
    again = run_study(study, reference, version="0.1.0", jobs=1, report=lambda done, *_: seen.append(done.reused))
    assert again.reused == len(again.tables) == len(seen)
    assert all(seen)
    assert run_study(study, reference, version="0.1.1", jobs=1).reused == 0


def test_damaged_checkpoints_are_reported_and_computed_again(file, reference, tmp_path) -> None:
    study = read_study(file)
    out = tmp_path / "out"
    run_study(study, out, version="0.1.0", jobs=1)
    files = sorted((out / "cells").glob("*.parquet"))
    files[0].write_bytes(files[0].read_bytes()[:-100])  # cut off
    files[1].write_bytes(b"")  # empty
    content = bytearray(files[2].read_bytes())
    content[len(content) // 3] ^= 0xFF  # one byte flipped
    files[2].write_bytes(bytes(content))
    files[3].write_bytes(files[4].read_bytes())  # the result of another cell
    said = []
    outcome = run_study(study, out, version="0.1.0", jobs=1, warn=said.append)
    assert outcome.reused == len(files) - 4
    assert len(outcome.damaged) == len(said) == 4
    assert all("computed again" in text for text in said)
    write_results(outcome, out)
    assert same(out, reference)


def test_a_half_written_file_is_never_seen(file, tmp_path, monkeypatch) -> None:
    """If writing fails in the middle nothing is left under the final name, and no litter either."""
    study = read_study(file)
    cell = expand(study)[0]
    path = kept.path_of(cell, "key", tmp_path / "cells")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StudyError, match="cells cannot be written: No space left on device"):
        kept.write(path, "key", pd.DataFrame({"a": [1.0]}), {})
    assert list((tmp_path / "cells").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_killed_and_started_again(file, reference, tmp_path, jobs) -> None:
    """SIGKILL to the whole process group in the middle; then only the rest is run, and the tables are identical."""
    out = tmp_path / "out"
    process = started(file, out, "--jobs", jobs)
    wait_for(out, 3, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    finished = len(list((out / "cells").glob("*.parquet")))
    assert 3 <= finished < 16
    again = started(file, out, "--jobs", jobs)
    _, said = again.communicate(timeout=300)
    assert again.returncode == 0, said
    assert f"{finished} of them found finished" in said
    assert same(out, reference)


# --- The command line -------------------------------------------------------------------------------------------------


def test_the_command_line_says_what_is_wrong(file, tmp_path) -> None:
    file.write_text(SMALL.replace('kind = "tree"', 'kind = "forest"'))
    found = CliRunner().invoke(app, ["study", str(file), "--out", str(tmp_path / "out")])
    assert found.exit_code == 2
    assert "one of softmax, tree, glvq" in found.stderr
    file.write_text(SMALL)
    for options, text in ((["--only", "large"], "there are small"), (["--jobs", "1", "--cluster", "x"], "exclude")):
        found = CliRunner().invoke(app, ["study", str(file), "--out", str(tmp_path / "out"), *options])
        assert found.exit_code == 2
        assert text in found.stderr
    assert not (tmp_path / "out").exists()


def test_the_command_line_is_quiet_without_a_terminal(file, reference, tmp_path) -> None:
    found = CliRunner().invoke(app, ["study", str(file), "--out", str(tmp_path / "out"), "--jobs", "1"])
    assert found.exit_code == 0
    assert found.stdout == ""
    assert len(found.stderr.splitlines()) <= 3
    assert "16 cells" in found.stderr
    assert same(tmp_path / "out", reference)
    assert CliRunner().invoke(app, ["--version"]).stdout.strip()


# --- The paper --------------------------------------------------------------------------------------------------------


def test_a_part_of_the_paper_leaves_its_files(tmp_path) -> None:
    out = tmp_path / "paper"
    found = CliRunner().invoke(app, ["reproduce", "--only", "theorems", "--out", str(out)])
    assert found.exit_code == 0, found.stderr
    table = pd.read_csv(out / "theorems.csv")
    assert ((table["simulated"] - table["theory"]).abs() < 2.5 * (table["high"] - table["low"]) / 2).all()
    assert (out / "figures" / "theorems.svg").read_text().startswith("<svg")
    page = (out / "report.html").read_text()
    assert "http-equiv" not in page
    assert "<script src=" not in page
    assert 'id="figure-theorems"' in page
    wrong = CliRunner().invoke(app, ["reproduce", "--only", "table2", "--out", str(out)])
    assert wrong.exit_code == 2
    assert "there are table1, curse, masking" in wrong.stderr


# --- What a table cannot give -----------------------------------------------------------------------------------------

FILE = SMALL.replace('source = "wine"', 'source = "people.csv"\nlabel = "y"')


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "cannot be read"),
        ("a,y\n1,2\n1,2,3,4\n", "cannot be read"),
        ("a,y\n", "has no rows"),
        ("a,y\n1,x\n2,\n3,z\n", "have no label"),
        ("y\n1\n2\n3\n", "no column besides the label"),
        ("a,y\n1,0.5\n2,0.7\n3,0.9\n", "fractions"),
        ("a,y\n1,x\n2,x\n3,x\n4,x\n5,x\n6,x\n", "one label only"),
        ("a,y\n1,x\n", "too few"),
    ],
)
def test_a_table_that_cannot_serve_is_refused_before_anything_runs(tmp_path, content, text) -> None:
    assert FILE != SMALL
    (tmp_path / "people.csv").write_text(content)
    (tmp_path / "study.toml").write_text(FILE)
    found = CliRunner().invoke(app, ["study", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out")])
    assert found.exit_code == 2, found.output
    assert text in found.stderr
    assert not (tmp_path / "out" / "cells").exists()
