"""Compiled kernels are kept by what they are made of: moved, shared, torn and changed, what is loaded is right."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.text import Text
from typer.testing import CliRunner

from evenhand.cli.app import app
from evenhand.projection import _cache, compile_kernels
from evenhand.projection.warmup import KERNELS

BOX = """
import sys
import numpy as np
from evenhand.projection import _cache, boxes, project
from evenhand.sets import ConvexSet, Region
_cache.PATIENCE = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
corner = Region([ConvexSet(2, lower=[1.0, 2.0])])
answer = project([[0.0, 0.0], [3.0, 3.0]], corner)
stats = boxes.nearest_box.stats
print(answer.cost.tolist(), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""
ANSWERS = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from pathlib import Path
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
import mixed_tables
from evenhand import Closest, HighDensity, Plausible
from evenhand.projection import _cache, compile_kernels
compile_kernels()
before = sorted(path.name for path in _cache.folder().iterdir())
density = HighDensity(components=[1])
for frame in (False, True):
    X, y = load_wine(return_X_y=True, as_frame=frame)
    X = X.astype(float)
    for last in (LogisticRegression(max_iter=99), DecisionTreeClassifier()):
        model = make_pipeline(StandardScaler(), last).fit(X, y)
        for cost in ("l1", "l2"):
            assert Closest(cost).fit(model, X).explain(X[:9]).valid.all()
            assert Plausible(density, cost).fit(model, X, y).explain(X[:9]).valid.all()
assert not X.to_numpy().flags.writeable  # what pandas hands out is another type to numba
X, y = mixed_tables.people(200, seed=0)
for model in mixed_tables.models(X, y).values():
    Closest().fit(model, X).explain(X[:9])
    Plausible(density).fit(model, X, y).explain(X[:9])
after = sorted(path.name for path in _cache.folder().iterdir())
print(len(before), set(after) - set(before))
"""


def run(source: str, cache: Path, *arguments: str, **environment: str) -> tuple[str, str]:
    """What a fresh process prints that keeps its kernels in a folder; they are not optimised, which is quick."""
    around = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "NUMBA_OPT": "0", **environment}
    command = [sys.executable, "-c", source, *arguments]
    done = subprocess.run(command, env=around, check=True, capture_output=True, text=True)
    return done.stdout.strip(), done.stderr.strip()


@pytest.mark.slow
def test_a_warm_cache_is_all_that_answers_need(tmp_path: Path) -> None:
    """Arrays and DataFrames, norms and levels: the kernels that are compiled ahead are those that are used."""
    found, _ = run(ANSWERS, tmp_path, str(Path(__file__).parent))
    files, others = found.split(" ", 1)
    assert int(files) >= len(KERNELS)
    assert others == "set()"


@pytest.mark.slow
def test_it_survives_a_move_and_what_is_torn_is_compiled_again(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    assert run(BOX, here)[0] == "[3.0, 0.0] 0 1"
    shutil.move(here, there)
    assert run(BOX, there)[0] == "[3.0, 0.0] 1 0"
    (kept,) = there.iterdir()
    whole = kept.read_bytes()
    for torn in (b"", whole[:-100], whole[:5000] + b"?" + whole[5001:]):
        kept.write_bytes(torn)
        assert run(BOX, there)[0] == "[3.0, 0.0] 0 1"
        assert [path.name for path in there.iterdir()] == [kept.name]


@pytest.mark.slow
def test_processes_that_compile_at_the_same_time(tmp_path: Path) -> None:
    around = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_OPT": "0"}
    command = [sys.executable, "-c", BOX]
    several = [subprocess.Popen(command, env=around, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert {process.communicate()[0].split("]")[0] for process in several} == {"[3.0, 0.0"}
    assert run(BOX, tmp_path)[0] == "[3.0, 0.0] 1 0"
    assert len(list(tmp_path.iterdir())) == 1


def test_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only installation keeps its kernels with the user; where not even that can be written, nothing breaks."""
    (tmp_path / "__pycache__").write_text("not a folder")
    monkeypatch.setattr(_cache, "PACKAGE", tmp_path)
    monkeypatch.setattr(_cache.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert _cache.folder.__wrapped__() == tmp_path / "user" / "evenhand" / "kernels"
    assert run(BOX, tmp_path / "__pycache__")[0] == "[3.0, 0.0] 0 1"


def test_a_kernel_is_another_if_any_file_changes_that_it_is_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    source, digest = _cache._source, _cache.digest_of.__wrapped__
    assert {"norms/simplex", "norms/arrays", "_parts"} <= set(_cache._made_of("norms/polyhedra"))
    before = {name: digest(name) for name in ("norms/polyhedra", "norms/search", "levels/table")}
    monkeypatch.setattr(_cache, "_source", lambda name: source(name) + "#" * (name == "norms/simplex"))
    after = {name: digest(name) for name in before}
    assert [name for name in before if before[name] != after[name]] == ["norms/polyhedra", "norms/search"]


def test_only_the_last_few_are_kept(tmp_path: Path) -> None:
    for number in range(12):
        path = tmp_path / f"boxes.nearest_box.{number:02d}.nbc"
        path.write_text("of another source")
        os.utime(path, (number, number))
    (tmp_path / ".evenhand-0123456789abcdef.part").write_text("of a process that was killed")
    run(BOX, tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert len(names) == _cache.KEPT
    assert {f"boxes.nearest_box.{number:02d}.nbc" for number in range(5, 12)} < names


TWO = """
import numpy as np
from evenhand.projection import compile_kernels
compile_kernels(["numbers: boxes", "levels: inside", "numbers: l2, curved"])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="it is killed")
def test_what_is_compiled_stays_when_the_process_is_killed(tmp_path: Path) -> None:
    around = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_OPT": "0"}
    process = subprocess.Popen([sys.executable, "-c", TWO], env=around)
    for _ in range(2400):
        if len(list(tmp_path.glob("*.nbc"))) == 2 or process.poll() is not None:
            break
        time.sleep(0.05)
    assert process.poll() is None  # the third one takes longer than all of this
    process.kill()
    process.wait()
    assert run(BOX, tmp_path)[0] == "[3.0, 0.0] 1 0"
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".nbc"]


@pytest.mark.slow
def test_who_waits_is_told_why_once(tmp_path: Path) -> None:
    _, told = run(BOX, tmp_path, "0.0")
    assert told.count("Compiling the solver for this machine") == 1
    assert str(tmp_path) in told
    assert run(BOX, tmp_path, "0.0") == ("[3.0, 0.0] 1 0", "")
    assert run(BOX, tmp_path / "other", "0.0", EVENHAND_SPEAKER="1") == ("[3.0, 0.0] 0 1", "")
    assert run(BOX, tmp_path / "third") == ("[3.0, 0.0] 0 1", "")  # it took no while


def test_warmup_on_the_command_line() -> None:
    done = CliRunner().invoke(app, ["warmup", "--jobs", "1"])
    assert done.exit_code == 0
    said = Text.from_ansi(done.output).plain
    assert f"{len(KERNELS)} solvers are ready" in said
    assert str(_cache.folder()) in said


def test_names_of_kernels_can_be_given() -> None:
    compile_kernels(["numbers: boxes"])
    with pytest.raises(KeyError, match="no such"):
        compile_kernels(["no such"])
