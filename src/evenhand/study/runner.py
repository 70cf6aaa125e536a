"""Run the cells of a study on as many workers as asked for, and never the same one twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from threadpoolctl import threadpool_limits

from evenhand.density import ClassDensities
from evenhand.projection import compile_kernels
from evenhand.projection.warmup import KERNELS
from evenhand.study import checkpoints
from evenhand.study.cells import Cell, Densities, expand, fit_density, run
from evenhand.study.data import check_data, load
from evenhand.study.errors import StudyError
from evenhand.study.modules import import_modules
from evenhand.study.spec import Study
from evenhand.workers import Task, WorkersError, backend, run_all, telling

ROUNDS = 3  # a result that cannot be read again is made again, but not forever


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
    imported: tuple[str, ...]


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
        Called with a sentence when something has to be done again, or waits.

    Raises
    ------
    StudyError
        If a table or a module is not what it was when the study was read, or a folder cannot be written.
    WorkersError
        If workers are lost again and again; what is finished is kept in any case.
    """
    began = time.perf_counter()
    cells = expand(study, only)
    folder = out.resolve() / "cells"
    check_data(study, only)  # what is wrong with a table is said before anything runs
    checkpoints.prepare(folder)
    keys = {cell: cell.hash(version) for cell in cells}
    alike: dict[str, list[Cell]] = {}  # the same cell may be in several experiments: it is run and read once
    for cell in cells:
        alike.setdefault(keys[cell], []).append(cell)
    left = {group[0]: keys[group[0]] for group in alike.values()}
    tables: dict[Cell, pd.DataFrame] = {}
    info: dict[Cell, dict[str, Any]] = {}
    damaged: list[str] = []

    def take(done: Done) -> None:
        """Read a result, if it is there; a damaged one stays among those that are left."""
        key = keys[done.cell]
        try:
            found = checkpoints.read(checkpoints.path_of(done.cell, key, folder), key)
        except FileNotFoundError:
            return
        except checkpoints.DamagedError as error:
            damaged.append(str(error))
            if warn is not None:
                warn(f"{error} It is computed again.")
            return
        del left[done.cell]
        for cell in alike[key]:
            tables[cell], info[cell] = found
        if report is not None:
            report(done, len(tables), len(cells))

    for cell in list(left):
        take(Done(cell, 0.0, 0, True))
    reused = len(alike) - len(left)
    around = _Surroundings(folder, study.folder, study.modules, study.imported)
    with nullcontext() if warn is None else telling(warn):
        for _ in range(ROUNDS):
            if not left:
                break
            try:
                for done in _run_all(dict(left), around, jobs, cluster):
                    take(done)
            except WorkersError as error:
                kept = f" Cells that are finished are kept in {folder}." if any(folder.glob("*.parquet")) else ""
                raise WorkersError(f"{error}{kept}") from None
            finally:
                checkpoints.prepare(folder)
    if left:
        raise StudyError(
            f"{next(iter(left))}: what is written to {folder} is not there, or not the same, when it is read again. "
            "Name another folder with --out."
        )
    ordered = {cell: tables[cell] for cell in cells}
    return Outcome(ordered, {cell: info[cell] for cell in cells}, time.perf_counter() - began, reused, damaged)


def _run_all(keys: dict[Cell, str], around: _Surroundings, jobs: int | None, cluster: str | None) -> Iterator[Done]:
    """Finish these cells, those that share most by the same worker."""
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in keys:
        groups.setdefault(cell.group, []).append(cell)
    # The longest first, so that no worker is left with one at the end.
    parts = sorted(groups.values(), key=lambda group: -sum(_effort(cell, around.study) for cell in group))
    with backend(jobs, cluster):
        # Densities need no kernels: while some workers compile these, the others fit those.
        # Of the cells that share a density the first will do, so it is the last to be entered here.
        needed = {cell.density: cell for group in parts for cell in reversed(group) if cell.density is not None}
        kernels = sorted({name for cell in keys for name in _kernels(cell)})
        first = [Task(compile_kernels, ([name],), f"compiling solvers, {name}") for name in kernels]
        first += [Task(_density, (cell, around), f"the density of {cell}") for cell in needed.values()]
        fitted = list(run_all(first))[len(kernels) :]
        densities: Densities = dict(zip(needed, fitted, strict=True))
        tasks = (_task({cell: keys[cell] for cell in group}, densities, around) for group in parts)
        for dones in run_all(tasks, ordered=False):
            yield from dones


def _task(keys: dict[Cell, str], densities: Densities, around: _Surroundings) -> Task:
    """A group of cells, whose data and models its worker then has at hand; its name is that of the next cell."""
    used = {cell.density: densities[cell.density] for cell in keys if cell.density is not None}

    def following() -> str:
        open_ = (cell for cell in keys if not _finished(cell, keys[cell], around))
        return str(next(open_, next(reversed(keys))))

    return Task(_work, (keys, used, around), following)


def _finished(cell: Cell, key: str, around: _Surroundings) -> bool:
    return checkpoints.is_whole(checkpoints.path_of(cell, key, around.results), key)


def _kernels(cell: Cell) -> list[str]:
    """What its projections are likely to need; whatever else it needs is compiled when it does."""
    names = [f"numbers: {cell.cost}", f"numbers: {cell.cost}, curved"][: 2 if cell.method.needs_density else 1]
    return [name for name in ("numbers: boxes", *names) if name in KERNELS]


def _density(cell: Cell, around: _Surroundings) -> ClassDensities:
    import_modules(around.modules, around.study, around.imported)
    with threadpool_limits(1):
        return fit_density(cell, around.study)


def _work(keys: dict[Cell, str], densities: Densities, around: _Surroundings) -> list[Done]:
    """Run a group of cells in a worker, each kept as soon as it is finished.

    What a lost worker, or another run into the same folder, has finished meanwhile is not run again.
    """
    import_modules(around.modules, around.study, around.imported)
    done = []
    for cell, key in keys.items():
        began = time.perf_counter()
        explained = 0
        if not _finished(cell, key, around):
            # One thread everywhere: sums of several threads are added up in another order, in the last digit.
            with threadpool_limits(1):
                table, info = run(cell, around.study, densities)
            checkpoints.write(checkpoints.path_of(cell, key, around.results), key, table, info)
            explained = info["explained"]
        done.append(Done(cell, time.perf_counter() - began, explained, False))
    return done


def _effort(cell: Cell, folder: Path) -> float:
    """Roughly: people times levels, and plausible ones take longer."""
    people, features = load(cell.data, cell.dim, folder)[0].shape
    levels = sum(len(perturbation.strengths(features)) for perturbation in cell.perturbations)
    return float(people * levels * (10 if cell.method.needs_density else 1))
