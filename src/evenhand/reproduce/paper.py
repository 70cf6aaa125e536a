"""`evenhand reproduce`: run the paper's study, compare, and leave one page."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import tomllib
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand.pages.figures import images, specification
from evenhand.reproduce import charts, page, results
from evenhand.reproduce.theorems import theorems
from evenhand.study import Outcome, Study, combined, read_study
from evenhand.writing import write_together

EXPERIMENTS = ("table1", "curse", "masking", "sensitivity", "theorems")
# "sensitivity" on the command line stands for both parts of it in the study file.
PARTS = {"sensitivity": ("sensitivity", "steady"), "theorems": ()}
VERSIONS = ("numpy", "scipy", "scikit-learn", "pandas", "numba", "clarabel", "daqp", "altair", "pyarrow")


def study_file(name: str) -> Path:
    """A file of the folder `studies`, in an installed package or next to the source."""
    here = Path(__file__).resolve()
    for folder in (here.parents[1] / "studies", here.parents[3] / "studies"):
        if (folder / name).exists():
            return folder / name
    raise FileNotFoundError(f"The package was installed without studies/{name}.")


def paper_study(seed: int | None = None) -> Study:
    """The paper's study."""
    study = read_study(study_file("paper.toml"))
    return study if seed is None else replace(study, seed=seed)


def cells_of(only: tuple[str, ...]) -> tuple[str, ...]:
    """Experiments of the study file that a choice on the command line needs; empty for all."""
    if not only:
        return ()
    return tuple(part for name in only for part in PARTS.get(name, (name,)))


def reproduce(study: Study, outcome: Outcome | None, out: Path, only: tuple[str, ...] = ()) -> dict[str, Any]:
    """Tables, figures, page and summary, from the results of the study: all files appear together, or none.

    What earlier runs left and this one was not asked for is removed: it would be taken for a result of this one.

    Parameters
    ----------
    study : Study
        What was run.
    outcome : Outcome or None
        Its results; None if nothing but the theorems is asked for.
    out : Path
        Folder for everything.
    only : tuple of str
        Which of :data:`EXPERIMENTS`; all if empty.

    Raises
    ------
    evenhand.writing.WritingError
        If the files cannot be written; what was there before is there still.
    """
    wanted = only or EXPERIMENTS
    tables: dict[str, pd.DataFrame] = {}
    if outcome is not None:
        draws = combined(outcome.tables)
        if "table1" in wanted:
            published = tomllib.loads(study_file("published.toml").read_text(encoding="utf-8"))["table1"]
            tables["table1"] = results.table1(draws, outcome.info, published)
        for name, make in (
            ("masking", results.masking),
            ("curse", results.curse),
            ("sensitivity", results.sensitivity),
        ):
            if name in wanted:
                tables[name] = make(draws)
    if "theorems" in wanted:
        tables["theorems"] = theorems(study.seed)
    contents: dict[str, str | bytes] = {
        f"{name}.csv": table.to_csv(index=False, lineterminator="\n", float_format="%.10g")
        for name, table in tables.items()
    }
    figures = {name: specification(chart) for name, chart in charts.figures(tables).items()}
    for name, spec in figures.items():
        contents[f"figures/{name}.svg"], contents[f"figures/{name}.png"] = images(spec)
    summary = page.findings(tables)
    summary["run"] = _run(study, outcome) | {"only": list(only)}
    contents["report.html"] = page.render(tables, figures, summary)
    contents["summary.json"] = json.dumps(summary, indent=1) + "\n"
    write_together(out, contents, former=possible_files())
    return summary


def possible_files() -> list[str]:
    """Everything that any part of the evaluation writes, by its place in the folder."""
    figures = [f"figures/{name}.{kind}" for name in charts.NAMES for kind in ("svg", "png")]
    return [*(f"{name}.csv" for name in EXPERIMENTS), *figures, "report.html", "summary.json"]


def _run(study: Study, outcome: Outcome | None) -> dict[str, Any]:
    """How it was run: what somebody else needs to get the same numbers, and nothing that differs the next time."""
    keys = sorted({cell.hash("") for cell in outcome.tables}) if outcome is not None else []
    return {
        "seed": study.seed,
        "folds": study.folds,
        "cells": len(keys),
        "counterfactuals": outcome.explained if outcome is not None else 0,
        "configuration": hashlib.sha256("".join(keys).encode()).hexdigest()[:16],
        "versions": {"evenhand": metadata.version("evenhand"), "python": platform.python_version()}
        | {name: metadata.version(name) for name in VERSIONS},
        "platform": f"{platform.system()} {platform.machine()}, {sys.implementation.name}",
    }
