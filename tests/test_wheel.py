"""A wheel in an environment of its own, far from the checkout: the demo, an audit, a study and the paper's page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pandas as pd
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]  # one worker, for whom it is built once

ROOT = Path(__file__).resolve().parents[1]
# Nothing of the process that tests may show a new one the way to the checkout, or to kernels compiled there.
OWN = ("EVENHAND_", "NUMBA_", "PYTEST_", "PYTHON", "VIRTUAL_ENV")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(OWN)} | {"OPENBLAS_NUM_THREADS": "1"}

TINY = """
seed = 3
folds = 2

[data.wine]
source = "wine"

[models.tree]
kind = "tree"
max_depth = 3

[methods.closest]
kind = "closest"

[perturbations.noise]
kind = "gaussian"
covariance = 1.0

[[experiments]]
name = "tiny"
data = ["wine"]
models = ["tree"]
methods = ["closest"]
perturbations = ["noise"]
"""


def run(*command: str | Path, folder: Path, code: int = 0) -> str:
    """What a command prints, in a folder and an environment that know nothing of the checkout."""
    done = subprocess.run(command, cwd=folder, env=CLEAN, capture_output=True, text=True, timeout=900)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def needed(wheel: Distribution, extra: str) -> dict[str, Distribution]:
    """What the wheel says it needs with an extra, and what that needs in turn, as installed here."""
    found: dict[str, Distribution] = {}
    todo, seen = [(wheel, extra)], set()
    while todo:
        package, wanted = todo.pop()
        for text in package.requires or []:
            requirement = Requirement(text)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": wanted}):
                continue
            name = canonicalize_name(requirement.name)
            one = wheel if name == "evenhand" else distribution(name)
            assert one.version in requirement.specifier, f"{package.name} needs {text}, here is {one.version}"
            new = {(name, more) for more in ("", *requirement.extras)} - seen
            seen |= new
            todo += [(one, more) for _, more in sorted(new)]
            found[name] = one
    found.pop("evenhand", None)
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel of the checkout, by way of the archive of its source."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, folder=out)
    (path,) = out.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory) -> Path:
    """The interpreter of an environment that holds the wheel and what ``evenhand[audit]`` needs, and nothing else.

    The wheel is installed; the packages it needs are links to those installed here.  To install these again takes two
    minutes and a gigabyte, and would say no more about the wheel.
    """
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder, folder=folder)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", wheel, folder=folder)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=folder).strip())
    assert site.is_relative_to(folder)
    (info,) = site.glob("evenhand-*.dist-info")
    for package in needed(Distribution.at(info), "audit").values():
        for top in {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(package.locate_file(top))
    return python


def test_every_file_is_in_the_wheel(wheel) -> None:
    """Templates, styles, scripts, schemas and studies too; and no caches."""
    source = ROOT / "src"
    expected = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    expected = {name for name in expected if "__pycache__" not in name}
    expected |= {f"evenhand/studies/{path.name}" for path in (ROOT / "studies").glob("*.toml")}
    assert {"evenhand/py.typed", "evenhand/auditing/report/report.html.j2", "evenhand/studies/paper.toml"} <= expected
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == expected


def test_no_checkout_in_sight(python, tmp_path) -> None:
    code = """
import json, os, sys
import evenhand

print(json.dumps([evenhand.__file__, evenhand.__version__, [os.path.realpath(path) for path in sys.path]]))
"""
    file, version, paths = json.loads(run(python, "-c", code, folder=tmp_path))
    assert Path(file).resolve().is_relative_to(python.parents[1])
    assert not [path for path in paths if Path(path).is_relative_to(ROOT)]
    code = "import importlib.metadata as m; print(*sorted({one.name for one in m.distributions()}))"
    names = run(python, "-c", code, folder=tmp_path).split()
    assert {"evenhand", "numpy", "skops"} <= set(names)
    assert not {"pytest", "cvxpy", "build"} & set(names)  # what only the tests need is out of sight as well
    code = "from importlib.metadata import version; print(version('evenhand'))"
    assert run(python, "-c", code, folder=tmp_path).strip() == version


def test_demo(python, tmp_path) -> None:
    text = run(python, "-m", "evenhand.cli.demo", folder=tmp_path)
    assert text.count("found and confirmed by the model") == 2


def test_audit(python, tmp_path) -> None:
    """The demo fails its gates: problems are planted in it."""
    run(python.parent / "evenhand", "audit", "--demo", folder=tmp_path, code=1)
    out = tmp_path / "results" / "audit"
    assert {path.name for path in out.iterdir()} >= {"audit.json", "junit.xml", "report.html", "summary.md"}
    assert "<html" in (out / "report.html").read_text(encoding="utf-8")[:200]


def test_study(python, tmp_path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    run(python.parent / "evenhand", "study", "tiny.toml", "--jobs", "1", folder=tmp_path)
    summary = pd.read_csv(tmp_path / "results" / "study" / "summary.csv")
    assert len(summary) == 1
    assert summary["people"].item() > 100
    assert summary["median"].item() > 0


def test_the_papers_study_is_found(python, tmp_path) -> None:
    run(python.parent / "evenhand", "reproduce", "--only", "theorems", "--jobs", "1", folder=tmp_path)
    out = tmp_path / "results" / "paper"
    assert {path.name for path in out.iterdir()} >= {"report.html", "summary.json", "theorems.csv"}
    code = "from evenhand.reproduce.paper import study_file; print(study_file('published.toml'))"
    assert Path(run(python, "-c", code, folder=tmp_path).strip()).is_relative_to(python.parents[1])
