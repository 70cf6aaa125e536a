"""`evenhand audit` and `evenhand init`, without the terminal: what they do with files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand.auditing.audit_file import Wanted
from evenhand.auditing.errors import AuditError
from evenhand.auditing.first_file import first_file
from evenhand.auditing.loans import loans
from evenhand.auditing.model_files import LoadedModel, load_model
from evenhand.auditing.model_view import view_of
from evenhand.auditing.prepare import Report
from evenhand.auditing.result import Audit, check_folder
from evenhand.auditing.run import audit
from evenhand.auditing.sources import Frame, check_columns, open_table


def audit_files(
    wanted: Wanted,
    *,
    trust_pickle: bool,
    jobs: int | None,
    cluster: str | None,
    progress: Report,
    warn: Any,
    changes: dict[str, Any],
) -> Audit:
    """Audit the model and the table that a file names; nothing is written."""
    check_folder(wanted.out)
    source = open_table(wanted.data, wanted.options["id"])
    if not source.rows:
        raise AuditError(f"{source.name} has no rows: there is nobody to explain.")
    loaded = load_model(wanted.model, wanted.folder, trust_pickle=trust_pickle)
    if loaded.warning:
        warn(loaded.warning)
    return audit(
        loaded.model,
        source,
        jobs=jobs,
        cluster=cluster,
        progress=progress,
        about={"model": about(loaded)},
        **wanted.options | changes,
    )


def about(loaded: LoadedModel) -> dict[str, Any]:
    """What the report says of a model's file."""
    return {"name": loaded.name, "kind": loaded.kind, "sha256": loaded.sha256}


def audit_demo(
    out: Path,
    *,
    clean: bool,
    jobs: int | None,
    cluster: str | None,
    progress: Report,
    changes: dict[str, Any],
) -> Audit:
    """Audit the synthetic loan applications."""
    check_folder(out)
    example = loans(clean=clean)
    name = "synthetic loan applications, clean" if clean else "synthetic loan applications"
    return audit(
        example.model,
        Frame(example.people, name),
        jobs=jobs,
        cluster=cluster,
        progress=progress,
        about={
            "command": "evenhand audit --demo" + (" --clean" if clean else ""),
            "model": {"name": "Loan rules (example)", "kind": "DecisionTreeClassifier", "sha256": None},
        },
        **example.options() | changes,
    )


def write_first_file(model: str, data: Path, out: Path, *, trust_pickle: bool, force: bool) -> LoadedModel:
    """Write a commented audit file for a model and a table; paths are relative to where it goes."""
    try:
        taken = out.exists()
    except OSError as error:
        raise AuditError(f"{out} cannot be written: {error.strerror}.") from None
    if taken and not force:
        raise AuditError(f"{out} exists already; --force overwrites it, --out names another one.")
    source = open_table(data)
    loaded = load_model(model, Path(), trust_pickle=trust_pickle)
    fitted_with = getattr(loaded.model, "feature_names_in_", None)
    width = getattr(loaded.model, "n_features_in_", None)
    if fitted_with is None and width is not None and width > len(source.columns):
        raise AuditError(f"The model takes {width} columns; {source.name} has {len(source.columns)}.")
    features = source.columns[:width] if fitted_with is None else [str(name) for name in fitted_with]
    check_columns(source, features, "features")
    sample = next(source.batches(features, 1000), None)
    if sample is None:
        raise AuditError(f"{source.name} has no rows: there is nothing to look at.")
    view, _ = view_of(loaded.model, sample, source.name)
    view.read(sample if view.reader.named else sample.to_numpy())
    where = out.resolve().parent
    model_path = model if not Path(model).exists() else _relative(Path(model), where)
    content = first_file(model_path, loaded.kind, _relative(data, where), source, list(features), view.classes.tolist())
    try:
        out.write_text(content, encoding="utf-8")
    except OSError as error:
        raise AuditError(f"{out} cannot be written: {error.strerror}.") from None
    return loaded


def _relative(path: Path, folder: Path) -> str:
    """A path as seen from a folder, if it lies inside of it."""
    absolute = path.resolve()
    return absolute.relative_to(folder).as_posix() if absolute.is_relative_to(folder) else str(absolute)
