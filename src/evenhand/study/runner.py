"""Run the cells of a study on as many workers as asked for, and never the same one twice."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
from joblib.externals.loky.process_executor import BrokenProcessPool, TerminatedWorkerError
from threadpoolctl import threadpool_limits

from evenhand.density import ClassDensities
from evenhand.parallel import backend
from evenhand.projection import compile_kernels
from evenhand.projection.warmup import KERNELS
from evenhand.study import checkpoints
from evenhand.study.cells import Cell, Densities, expand, fit_density, run
from evenhand.study.data import check_data, load
from evenhand.study.modules import import_modules
from evenhand.study.spec import Study

ATTEMPTS = 3  # a worker that dies is replaced; a cell that keeps killing its worker is not tried forever


@dataclass(frozen=True)
class Done:
    """A cell that has just been finished, or was found finished."""

    cell: Cell
    seconds: float
    explained: int
    reused: bool


@dataclass
class Outcome:
    """All results of a study.

    A cell that stands in several experiments is run once; `tables` and `info` have it under each of them, `cells`,
    `reused` and `explained` count it once.
    """

    tables: dict[Cell, pd.DataFrame]
    info: dict[Cell, dict[str, Any]]
    seconds: float
    reused: int
    damaged: list[str] = field(default_factory=list)

    @property
    def cells(self) -> int:
        """How many different cells there are."""
        return len({cell.hash("") for cell in self.tables})

    @property
    def explained(self) -> int:
        """Counterfactuals behind the results."""
        once = {cell.hash(""): found["explained"] for cell, found in self.info.items()}
        return int(sum(once.values()))


Report = Callable[[Done, int, int], object]


@dataclass(frozen=True)
class _Surroundings:
    """Where a worker finds what a cell does not carry along."""

    results: Path
    study: Path
    modules: tuple[str, ...]


def run_study(
    study: Study,
    out: Path,
    *,
    version: str,
    only: tuple[str, ...] = (),
    jobs: int | None = None,
    cluster: str | None = None,
    report: Report | None = None,
    warn: Callable[[str], object] | None = None,
) -> Outcome:
    """Run what is not finished, and return everything.

    Parameters
    ----------
    study : Study
        What to run.
    out : Path
        Where results are kept; checkpoints go into its folder `cells`.
    version : str
        Of the package: results of another version are not reused.
    only : tuple of str
        Names of experiments; all if empty.
    jobs : int, optional
        Processes.
    cluster : str, optional
        Address of a Dask scheduler to send the cells to.
    report : callable, optional
        Called after each cell as ``report(done, number, total)``.
    warn : callable, optional
        Called with a sentence when something had to be done again.
    """
    began = time.perf_counter()
    cells = expand(study, only)
    folder = out.resolve() / "cells"
    check_data(study, only)  # what is wrong with a table is said before anything runs
    keys = {cell: cell.hash(version) for cell in cells}
    alike: dict[str, list[Cell]] = {}  # the same cell may be in several experiments: it is run and read once
    for cell in cells:
        alike.setdefault(keys[cell], []).append(cell)
    unique = [group[0] for group in alike.values()]
    tables: dict[Cell, pd.DataFrame] = {}
    info: dict[Cell, dict[str, Any]] = {}
    damaged: list[str] = []

    def take(done: Done) -> None:
        found = checkpoints.read(checkpoints.path_of(done.cell, keys[done.cell], folder), keys[done.cell])
        for cell in alike[keys[done.cell]]:
            tables[cell], info[cell] = found
        if report is not None:
            report(done, len(tables), len(cells))

    reused = 0
    for cell in unique:
        if not checkpoints.path_of(cell, keys[cell], folder).exists():
            continue
        try:
            take(Done(cell, 0.0, 0, True))
            reused += 1
        except checkpoints.DamagedError as error:
            damaged.append(str(error))
            if warn is not None:
                warn(f"{error} It is computed again.")
    around = _Surroundings(folder, study.folder, study.modules)
    for done in _run_all(unique, set(tables), keys, around, jobs, cluster, warn):
        take(done)
    ordered = {cell: tables[cell] for cell in cells}
    return Outcome(ordered, {cell: info[cell] for cell in cells}, time.perf_counter() - began, reused, damaged)


def _run_all(
    cells: list[Cell],
    finished: set[Cell],
    keys: dict[Cell, str],
    around: _Surroundings,
    jobs: int | None,
    cluster: str | None,
    warn: Callable[[str], object] | None,
) -> Iterator[Done]:
    """Finish the cells that are left; if a worker dies, its cells are given to others."""
    for attempt in range(ATTEMPTS):
        groups: dict[tuple[Any, ...], list[Cell]] = {}
        for cell in cells:
            if cell not in finished:
                groups.setdefault(cell.group, []).append(cell)
        if not groups:
            return
        # The longest first, so that no worker is left with one at the end.
        tasks = sorted(groups.values(), key=lambda group: -sum(_effort(cell, around.study) for cell in group))
        try:
            for done in _parallel(tasks, keys, around, jobs, cluster):
                finished.add(done.cell)
                yield done
        except (TerminatedWorkerError, BrokenProcessPool) as error:
            for cell in cells:  # what the dead worker's colleagues had finished is on disk
                if cell not in finished and checkpoints.path_of(cell, keys[cell], around.results).exists():
                    finished.add(cell)
                    yield Done(cell, 0.0, 0, False)
            if attempt == ATTEMPTS - 1:
                raise
            if warn is not None:
                warn(f"A worker died ({type(error).__name__}); its cells are run again.")


def _parallel(
    tasks: list[list[Cell]],
    keys: dict[Cell, str],
    around: _Surroundings,
    jobs: int | None,
    cluster: str | None,
) -> Iterator[Done]:
    with backend(jobs, cluster):
        # Densities need no kernels: while some workers compile these, the others fit those.
        # Of the cells that share a density the first will do, so it is the last to be entered here.
        needed = {cell.density: cell for group in tasks for cell in reversed(group) if cell.density is not None}
        kernels = sorted({name for group in tasks for cell in group for name in _kernels(cell)})
        first = [joblib.delayed(compile_kernels)([name]) for name in kernels]
        first += [joblib.delayed(_density)(cell, around) for cell in needed.values()]
        fitted = joblib.Parallel(batch_size=1)(first)[len(kernels) :]
        densities: Densities = dict(zip(needed, fitted, strict=True))
        # A task is a group of cells, whose data and models its worker then has at hand.
        calls = (
            joblib.delayed(_work)(
                group,
                [keys[cell] for cell in group],
                {cell.density: densities[cell.density] for cell in group if cell.density is not None},
                around,
                os.getpid(),
            )
            for group in tasks
        )
        for dones in joblib.Parallel(return_as="generator_unordered", batch_size=1)(calls):
            yield from dones


def _kernels(cell: Cell) -> list[str]:
    """What its projections are likely to need; whatever else it needs is compiled when it does."""
    names = [f"numbers: {cell.cost}", f"numbers: {cell.cost}, curved"][: 2 if cell.method.needs_density else 1]
    return [name for name in ("numbers: boxes", *names) if name in KERNELS]


def _density(cell: Cell, around: _Surroundings) -> ClassDensities:
    import_modules(around.modules, around.study)
    with threadpool_limits(1):
        return fit_density(cell, around.study)


def _work(group: list[Cell], keys: list[str], densities: Densities, around: _Surroundings, parent: int) -> list[Done]:
    """Run a group of cells in a worker, each kept as soon as it is finished."""
    import_modules(around.modules, around.study)
    done = []
    mine = os.getppid() == parent
    for cell, key in zip(group, keys, strict=True):
        if mine and os.getppid() != parent:  # who asked for it was killed: its next run has the cells to itself
            break
        began = time.perf_counter()
        path = checkpoints.path_of(cell, key, around.results)
        # One thread everywhere: sums of several threads are added up in another order, in the last digit.
        with threadpool_limits(1):
            table, info = run(cell, around.study, densities)
        checkpoints.write(path, key, table, info)
        done.append(Done(cell, time.perf_counter() - began, info["explained"], False))
    return done


def _effort(cell: Cell, folder: Path) -> float:
    """Roughly: people times levels, and plausible ones take longer."""
    people, features = load(cell.data, cell.dim, folder)[0].shape
    levels = sum(len(perturbation.strengths(features)) for perturbation in cell.perturbations)
    return float(people * levels * (10 if cell.method.needs_density else 1))
