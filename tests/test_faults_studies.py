"""What faults leave of studies: the same files as without them, or none and a sentence; finished cells are kept."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import evenhand
from evenhand.cli.app import app, write_results
from evenhand.study import StudyError, checkpoints, expand, read_study, run_study
from evenhand.study.models import MODELS
from evenhand.workers import WorkersError

ROOT = Path(__file__).parents[1]
RESULTS = ("draws.parquet", "summary.csv", "summary.json")
STUDY = """
seed = 3
folds = 2
modules = ["mine.py"]

[data.people]
source = "people.csv"
label = "y"

[models.tree]
kind = "tree"
max_depth = 3

[models.mine]
kind = "mine"

[methods.closest]
kind = "closest"

[perturbations.noise]
kind = "gaussian"
covariance = 1.0

[[experiments]]
name = "small"
data = ["people"]
models = ["tree", "mine"]
methods = ["closest"]
perturbations = ["noise"]
"""
MODULE = """
from sklearn.tree import DecisionTreeClassifier
from evenhand.study import study_model

@study_model("mine")
def mine():
    return DecisionTreeClassifier(max_depth=2, random_state=0)
"""
DEADLY = """
import os, signal
from pathlib import Path
from sklearn.tree import DecisionTreeClassifier
from evenhand.study import study_model

class Deadly(DecisionTreeClassifier):
    def fit(self, X, y):
        if Path(".").resolve() and len(X) and os.getpid() != int(os.environ["NOT_HERE"]):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)

@study_model("mine")
def mine():
    return Deadly(max_depth=2, random_state=0)
"""


def people(scale: float = 1.0) -> str:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)) * scale, columns=list("abc"))
    return str(table.assign(y=np.where(table["a"] + table["b"] > 0, "yes", "no")).to_csv(index=False))


@pytest.fixture(autouse=True)
def _nothing_stays_registered() -> Iterator[None]:
    before = dict(MODELS)
    yield
    MODELS.clear()
    MODELS.update(before)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text(people())
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"


def finished(file: Path, out: Path, **more: Any) -> dict[str, bytes]:
    outcome = run_study(read_study(file), out, version=evenhand.__version__, jobs=1, **more)
    write_results(outcome, out)
    return files(out)


def files(out: Path) -> dict[str, bytes]:
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}


# --- 1. Checkpoints ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"distance": rng.normal(size=50), "target": ["yes", "no"] * 25, "person": np.arange(50)})
    path = tmp_path_factory.mktemp("cells") / "cell.parquet"
    checkpoints.write(path, "key", table.astype({"target": "category"}), {"accuracy": 0.5, "explained": 3})
    return path


def test_a_checkpoint_is_a_parquet_file(checkpoint: Path) -> None:
    table, info = checkpoints.read(checkpoint, "key")
    pd.testing.assert_frame_equal(pd.read_parquet(checkpoint), table)
    assert info == {"accuracy": 0.5, "explained": 3}
    with pytest.raises(checkpoints.DamagedError, match="of another configuration"):
        checkpoints.read(checkpoint, "another")


def test_no_flipped_bit_is_accepted(checkpoint: Path, tmp_path: Path) -> None:
    """Wherever it is: in values, kinds of columns, pandas' metadata, what is known of the model, or the seal itself."""
    whole, chance = checkpoint.read_bytes(), random.Random(0)
    places = [*chance.sample(range(len(whole)), 250), *range(len(whole) - 150, len(whole))]
    for place in places:
        content = bytearray(whole)
        content[place] ^= 1 << chance.randrange(8)
        (tmp_path / "cell.parquet").write_bytes(content)
        with pytest.raises(checkpoints.DamagedError):
            checkpoints.read(tmp_path / "cell.parquet", "key")


def test_no_part_of_a_checkpoint_is_accepted(checkpoint: Path, tmp_path: Path) -> None:
    whole = checkpoint.read_bytes()
    for content in (b"", whole[:4], whole[: len(whole) // 2], whole[:-1], whole + b"\0", whole[1:], whole + whole):
        (tmp_path / "cell.parquet").write_bytes(content)
        with pytest.raises(checkpoints.DamagedError):
            checkpoints.read(tmp_path / "cell.parquet", "key")
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(checkpoints.DamagedError, match="is no file"):
        checkpoints.read(tmp_path / "folder.parquet", "key")
    assert not checkpoints.is_whole(tmp_path / "none.parquet", "key")


def test_results_say_nothing_of_how_they_came_about(file: Path, tmp_path: Path) -> None:
    """Fresh, found finished, or damaged and made again."""
    out, said = tmp_path / "out", []
    fresh = finished(file, out)
    assert finished(file, out) == fresh
    path = next((out / "cells").iterdir())
    path.write_bytes(path.read_bytes()[:-1])
    (out / "cells" / ".evenhand-0123456789abcdef.part").write_bytes(b"left by a run that was killed")
    assert finished(file, out, warn=said.append) == fresh
    assert len(said) == 1
    assert "It is computed again." in said[0]


def test_a_disk_that_keeps_nothing_as_it_was(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written and read back as something else is made again, and not forever."""
    write, broken = checkpoints.write, [2]

    def damaging(path: Path, *rest: Any) -> None:
        write(path, *rest)
        if broken[0]:
            broken[0] -= 1
            path.write_bytes(path.read_bytes()[:-1])

    monkeypatch.setattr(checkpoints, "write", damaging)
    outcome = run_study(read_study(file), tmp_path / "once", version="x", jobs=1)
    assert len(outcome.damaged) == 2
    assert len(outcome.tables) == 4
    broken[0] = 1000
    with pytest.raises(StudyError, match="is not there, or not the same, when it is read again"):
        run_study(read_study(file), tmp_path / "always", version="x", jobs=1)


# --- 2. What is read is what was hashed -------------------------------------------------------------------------------


def test_a_table_that_changes_before_it_is_read(file: Path, tmp_path: Path) -> None:
    study = read_study(file)
    (tmp_path / "people.csv").write_text(people(2.0))
    with pytest.raises(StudyError, match=r"people\.csv has changed since the study began\. Cells that were finished"):
        run_study(study, tmp_path / "out", version="x", jobs=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["people.csv", "mine.py"])
def test_what_changes_before_workers_read_it(file: Path, tmp_path: Path, name: str, monkeypatch: Any) -> None:
    """Nothing is stored under the hash of what was; and then everything is as it should be."""
    before = finished(file, tmp_path / "reference")
    old = (tmp_path / name).read_text()
    study = read_study(file)
    checkpoints_prepared = checkpoints.prepare

    def changing(folder: Path) -> None:  # the parent has read everything, the workers have not started
        checkpoints_prepared(folder)
        (tmp_path / name).write_text(people(2.0) if name == "people.csv" else old.replace("depth=2", "depth=3"))

    monkeypatch.setattr(checkpoints, "prepare", changing)
    with pytest.raises(StudyError, match=r"has changed since the study began\. Cells that were finished before"):
        run_study(study, tmp_path / "out", version=evenhand.__version__, jobs=2)
    monkeypatch.undo()
    (tmp_path / name).write_text(old)
    assert finished(file, tmp_path / "out") == before


def test_a_module_that_changes_within_a_second(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same length and age: bytecode that Python keeps would be that of the former one."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    module, found = tmp_path / "mine.py", []
    for depth in (2, 3):
        module.write_text(MODULE.replace("depth=2", f"depth={depth}"))
        os.utime(module, (1_700_000_000, 1_700_000_000))
        study = read_study(file)
        found.append((study.models["mine"].classifier().max_depth, study.models["mine"].content))
    assert [depth for depth, _ in found] == [2, 3]
    assert found[0][1] != found[1][1]


def test_what_cannot_be_a_table_is_a_sentence(file: Path, tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "y": ["u", "v", "u", "v"]})
    frame.to_parquet(tmp_path / "people.parquet")
    whole = (tmp_path / "people.parquet").read_bytes()
    file.write_text(STUDY.replace("people.csv", "people.parquet"))
    wrong = [whole[:-9], whole[:40] + b"\xff" * 8 + whole[48:]]
    wrong += [
        whole.replace(b'"pandas_type": "unicode"', b'"pandas_type": "uni\xffode"'),
        whole.replace(b'{"index', b'}"index'),
    ]
    chance = random.Random(1)
    for _ in range(60):
        place = chance.randrange(len(whole))
        wrong.append(whole[:place] + bytes([chance.randrange(256)]) + whole[place + 1 :])
    for content in wrong:
        (tmp_path / "people.parquet").write_bytes(content)
        with contextlib.suppress(StudyError):  # what can be read is too small for the study
            run_study(read_study(file), tmp_path / "out", version="x", jobs=1)
            pytest.fail("Four rows are no study.")
    file.write_text(STUDY)
    (tmp_path / "people.csv").write_text("a,y\n" + "9" * 320 + ",u\n1,v\n2,u\n3,v\n")
    with pytest.raises(StudyError, match="not numeric"):
        run_study(read_study(file), tmp_path / "out", version="x", jobs=1)


# --- 3. Folders and disks ---------------------------------------------------------------------------------------------


def invoked(file: Path, out: Path, *options: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["study", str(file), "--out", str(out), "--jobs", "1", *options])
    assert "Traceback" not in found.output
    return found.exit_code, found.stderr


def test_folders_that_cannot_be_written(file: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    code, said = invoked(file, tmp_path / "taken")
    assert code == 2
    assert "cells cannot be written: Not a directory. " in said or "File exists" in said
    (tmp_path / "out" / "draws.parquet").mkdir(parents=True)
    code, said = invoked(file, tmp_path / "out")
    assert code == 2
    assert "draws.parquet cannot be written: it is a folder" in said
    assert f"Cells that are finished are kept in {tmp_path / 'out' / 'cells'}" in said
    assert not (tmp_path / "out" / "summary.csv").exists()
    (tmp_path / "out" / "draws.parquet").rmdir()
    code, said = invoked(file, tmp_path / "out")
    assert code == 0
    assert "4 cells, 4 of them found finished" in said


def test_a_disk_that_is_full_after_two_cells(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room, fsync = [2], os.fsync

    def full(handle: int) -> None:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        room[0] -= 1
        fsync(handle)

    before = finished(file, tmp_path / "reference")
    monkeypatch.setattr(os, "fsync", full)
    code, said = invoked(file, tmp_path / "out")
    assert code == 2
    assert "cells cannot be written: No space left on device. Cells that are finished are kept there" in said
    assert len(files(tmp_path / "out")) == 2
    monkeypatch.undo()
    assert finished(file, tmp_path / "out") == before


def test_a_folder_that_is_removed_on_the_way(file: Path, tmp_path: Path) -> None:
    before = finished(file, tmp_path / "reference")
    out = tmp_path / "out"
    outcome = run_study(
        read_study(file),
        out,
        version=evenhand.__version__,
        jobs=1,
        report=lambda _, number, __: shutil.rmtree(out) if number == 2 else None,
    )
    write_results(outcome, out)
    found = files(out)
    assert {name: found[name] for name in RESULTS} == {name: before[name] for name in RESULTS}


def test_the_summary_has_no_times_in_it(file: Path, tmp_path: Path) -> None:
    content = json.loads(finished(file, tmp_path / "out")["summary.json"])
    assert set(content) == {"cells", "version"}
    assert not any("second" in key or "time" in key for cell in content["cells"] for key in cell)


# --- 4. Processes -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_cell_that_kills_its_worker_is_named(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are finished and kept."""
    monkeypatch.setenv("NOT_HERE", str(os.getpid()))
    (tmp_path / "mine.py").write_text(DEADLY)
    study, said = read_study(file), []
    deadly = [str(cell) for cell in expand(study) if cell.model.name == "mine"]
    with pytest.raises(WorkersError) as refusal:
        run_study(study, tmp_path / "out", version="x", jobs=2, warn=said.append)
    assert any(str(refusal.value).startswith(f"{cell}: 3 workers were lost with it") for cell in deadly)
    assert f"kept in {tmp_path / 'out' / 'cells'}" in str(refusal.value)
    assert len(said) >= 2
    kept = sorted(path.name for path in (tmp_path / "out" / "cells").iterdir())
    assert len(kept) == 2
    assert all(name.startswith("people-tree-closest-") for name in kept)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["checkpoints", "studies", "disks", "cluster"])
def test_a_short_campaign(name: str) -> None:
    """Nothing of it may end wrong; ``python -m faults`` runs the whole."""
    command = [sys.executable, "-m", "faults", "--short", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{name}: " in done.stdout
    assert "tried" in done.stdout
