"""Workers: the same results on any number of them, whoever is lost; what loses its worker each time is named."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand.auditing import audit
from evenhand.workers import Task, WorkersError, backend, cluster, run_all, running, telling
from worker_tasks import Deadly, TwoPartsError, failing, fatal, late, n_jobs, square

COUNT = 12


def tasks(function: Any = square, *more: Any, count: int = COUNT) -> Iterator[Task]:
    return (Task(function, (x, *more), f"square of {x}") for x in range(count))


@pytest.fixture(params=[None, 1, 2], scope="module")
def jobs(request: pytest.FixtureRequest) -> Iterator[int | None]:
    with backend(request.param, None):
        yield request.param


def test_the_same_results_in_order(jobs: int | None) -> None:
    assert list(run_all(tasks())) == [x * x for x in range(COUNT)]
    assert sorted(run_all(tasks(), ordered=False)) == [x * x for x in range(COUNT)]
    assert list(run_all(iter(()))) == []


@pytest.mark.parametrize("error", ["plain", "odd", "key"])
def test_an_error_is_raised_where_it_is_asked_for(jobs: int | None, error: str) -> None:
    """Also one that cannot be pickled, as text; and what was given beside it troubles nobody later."""
    with pytest.raises((ValueError, KeyError, TwoPartsError, RuntimeError), match="no 3"):
        list(run_all(tasks(failing, error)))
    assert list(run_all(tasks(count=5))) == [0, 1, 4, 9, 16]


def test_somebody_may_stop_listening(jobs: int | None) -> None:
    some = run_all(tasks())
    assert next(some) == 0
    some.close()  # type: ignore[attr-defined]
    assert list(run_all(tasks(count=3))) == [0, 1, 4]


def test_tasks_are_taken_when_somebody_can_do_them(jobs: int | None) -> None:
    """A table that does not fit into memory comes in parts."""
    taken = []

    def counted() -> Iterator[Task]:
        for task in tasks(count=100):
            taken.append(task)
            yield task

    some = run_all(counted())
    next(some)
    assert len(taken) <= 20
    assert len(list(some)) == 99


def test_not_all_is_done_ahead_of_a_task_that_takes_long(tmp_path: Path) -> None:
    """What waits for it is kept in memory."""
    taken = []

    def counted() -> Iterator[Task]:
        for task in tasks(late, tmp_path, count=100):
            taken.append(task)
            yield task

    with backend(2, None):
        some = run_all(counted())
        assert next(some) == 0
        assert len(taken) <= 20
        assert list(some) == [x * x for x in range(1, 100)]


def test_models_start_no_workers_of_their_own() -> None:
    for count in (1, 2):
        with backend(count, None):
            assert n_jobs() == 1
            assert list(run_all([Task(n_jobs, (), "count")])) == [1]


# --- Lost -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_lost_work_is_done_again_however_often_others_are_lost(tmp_path: Path, times: int) -> None:
    """Every task loses its worker, and each of them is counted alone."""
    said: list[str] = []
    with telling(said.append), backend(2, None):
        assert list(run_all(tasks(fatal, tmp_path, times, count=4))) == [0, 1, 4, 9]
    assert len(said) == 4 * times
    assert all("by SIGKILL. What it was at is done again: square of" in one for one in said)


def test_what_loses_its_worker_each_time_is_named(tmp_path: Path) -> None:
    """And only that: what waited behind it is not counted."""
    found = []
    given = (
        Task(*call) for call in [(square, (1,), "one"), (fatal, (2, tmp_path, 99), "two"), (square, (3,), "three")]
    )
    with telling(lambda _: None), backend(2, None), pytest.raises(WorkersError, match=r"^two: 3 workers were lost"):
        found.extend(run_all(given, ordered=False))
    assert set(found) == {1, 9}
    assert len(list(tmp_path.iterdir())) == running.ATTEMPTS


@pytest.mark.slow
def test_the_name_is_that_of_the_part_it_is_at(tmp_path: Path) -> None:
    names = iter(["a", "b", "c", "d", "e", "e", "e"])
    said: list[str] = []
    with telling(said.append), backend(2, None), pytest.raises(WorkersError, match=r"^e: 3 workers"):
        list(run_all([Task(fatal, (2, tmp_path, 99), lambda: next(names))]))
    assert len(said) == 6  # a to d, and twice e


@pytest.mark.slow
def test_a_warning_says_so_if_nobody_listens(tmp_path: Path) -> None:
    with backend(2, None), pytest.warns(RuntimeWarning, match="A worker was lost, by SIGKILL"):
        assert list(run_all(tasks(fatal, tmp_path, 1, count=1))) == [0]


@pytest.mark.slow
def test_an_idle_worker_that_is_lost_is_nobodys_fault(tmp_path: Path) -> None:
    said: list[str] = []
    with telling(said.append), backend(2, None):
        for _ in range(running.ATTEMPTS):
            assert list(run_all(tasks(count=3))) == [0, 1, 4]
            for child in workers_of(os.getpid()):
                child.kill()
                child.wait()
    assert said == []


PARENT = """
import sys, time
from pathlib import Path
from evenhand.workers import Task, backend, run_all

def busy(path, seconds):
    Path(path).touch()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))

folder, seconds = sys.argv[1], float(sys.argv[2])
with backend(2, None):
    list(run_all(Task(busy, (f"{folder}/{i}", seconds), str(i)) for i in range(2)))
    time.sleep(120)
"""


def workers_of(pid: int) -> list[psutil.Process]:
    return [child for child in psutil.Process(pid).children() if "popen_loky" in " ".join(child.cmdline())]


@pytest.mark.parametrize("seconds", [pytest.param(0, marks=pytest.mark.slow), 120])
def test_workers_do_not_outlive_who_started_them(tmp_path: Path, seconds: int) -> None:
    """Neither idle ones nor busy ones."""
    (tmp_path / "parent.py").write_text(PARENT)
    (tmp_path / "done").mkdir()
    parent = subprocess.Popen([sys.executable, tmp_path / "parent.py", tmp_path / "done", str(seconds)])
    try:
        latest = time.monotonic() + 60
        while len(list((tmp_path / "done").iterdir())) < 2 and time.monotonic() < latest:
            time.sleep(0.02)
        workers = workers_of(parent.pid)
        assert len(workers) == 2
    finally:
        parent.kill()
        parent.wait()
    _, alive = psutil.wait_procs(workers, timeout=30)
    for one in alive:
        one.kill()
    assert alive == []


# --- Audits -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_audit_survives_the_loss_of_workers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 3)), columns=list("abc"))
    options: dict[str, Any] = {"draws": 4, "people": 300, "methods": ["closest"], "pair_people": 100, "lookup": 10}
    model = LogisticRegression().fit(X, X["a"] + X["b"] > 0)
    found = []
    said: list[str] = []
    for jobs, times in ((1, 0), (2, 0), (2, 2)):
        folder = tmp_path / f"{jobs}-{times}"
        folder.mkdir()
        with telling(said.append):
            result = audit(model, X, jobs=jobs, perturbations={"noise": Deadly(folder, times)}, **options)
        assert len(list(folder.iterdir())) == times
        found.append(result.to_json())
    assert found[0] == found[1] == found[2]
    assert len(said) == 2
    (tmp_path / "always").mkdir()
    with (
        telling(said.append),
        pytest.raises(WorkersError, match="perturbing people 0 to 250 of the sample, closest, noise: 3 workers"),
    ):
        audit(model, X, jobs=2, perturbations={"noise": Deadly(tmp_path / "always", 99)}, **options)


# --- Clusters ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_cluster_whose_workers_are_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask starts them again; who is lost with the same task each time is named, and its neighbours are not."""
    from dask.distributed import LocalCluster

    # Workers that end while they start are not started again: then it is known what they had to do.
    monkeypatch.setattr(cluster, "PATIENCE", 20.0)
    with (
        LocalCluster(n_workers=2, threads_per_worker=2, processes=True, dashboard_address=":0") as dask,
        telling(lambda _: None),
        backend(None, dask.scheduler_address),
    ):
        assert list(run_all(tasks())) == [x * x for x in range(COUNT)]
        (tmp_path / "once").mkdir()
        assert list(run_all(tasks(fatal, tmp_path / "once", 1, count=3))) == [0, 1, 4]
        with pytest.raises(ValueError, match="no 3"):
            list(run_all(tasks(failing, "plain")))
        given = [Task(square, (x,), f"{x}") for x in range(8)]
        given.insert(2, Task(fatal, (2, tmp_path, 99), "the deadly one"))
        found: list[int] = []
        with pytest.raises(WorkersError, match="the deadly one"):
            found.extend(run_all(given, ordered=False))
        assert set(found) <= {x * x for x in range(8)}


@pytest.mark.slow
def test_a_cluster_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for them, which is said now and then, and not forever."""
    from dask.distributed import LocalCluster

    monkeypatch.setattr(cluster, "PATIENCE", 4.0)
    monkeypatch.setattr(cluster, "REMIND", 1.5)
    said: list[str] = []
    with (
        LocalCluster(n_workers=0, threads_per_worker=1, processes=False, dashboard_address=":0") as dask,
        telling(said.append),
        backend(None, dask.scheduler_address),
    ):
        with pytest.raises(WorkersError, match=r"has had no workers for 4 seconds\. .*: square of 0; square of 1"):
            list(run_all(tasks()))
        assert 2 <= len(said) <= 3
        assert all("has no workers; waiting for some" in one for one in said)
        monkeypatch.setattr(cluster, "PATIENCE", 60.0)
        some = run_all(tasks())
        dask.scale(1)
        assert list(some) == [x * x for x in range(COUNT)]


@pytest.mark.parametrize("address", ["nowhere", "http://host:1", "tcp://127.0.0.1"])
def test_an_address_of_nobody_is_a_sentence(address: str) -> None:
    said = r"--cluster: no Dask scheduler answers at .* looks like tcp://host:8786"
    with pytest.raises(WorkersError, match=said), backend(None, address):
        pass
