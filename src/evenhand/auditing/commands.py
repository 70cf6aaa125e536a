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
from evenhand.auditing.result import FILES, Audit
from evenhand.auditing.run import audit
from evenhand.auditing.sources import Frame, check_columns, open_table
from evenhand.writing import check_writable, write_together


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
    check_writable(wanted.out, FILES)
    before = _state(wanted.data)
    source = open_table(wanted.data, wanted.options["id"])
    _check_same(wanted.data, before)
    if not source.rows:
        raise AuditError(f"{source.name} has no rows: there is nobody to explain.")
    loaded = load_model(wanted.model, wanted.folder, trust_pickle=trust_pickle)
    if loaded.warning:
        warn(loaded.warning)
    found = audit(
        loaded.model,
        source,
        jobs=jobs,
        cluster=cluster,
        progress=progress,
        about={"model": about(loaded)},
        **wanted.options | changes,
    )
    if not isinstance(source, Frame):  # what is not in memory was read again and again
        _check_same(wanted.data, before)
    return found


def _state(path: Path) -> tuple[int, ...] | None:
    """What tells whether a file is still the one that it was; None if it cannot be seen."""
    try:
        about = path.stat()
    except (OSError, ValueError):
        return None
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _check_same(path: Path, before: tuple[int, ...] | None) -> None:
    """Refuse a file that was changed while it was read: the hash in the report would not be that of what was used."""
    if _state(path) != before:
        raise AuditError(f"{path} was changed while it was read. Wait until it is whole, and run the audit again.")


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
    check_writable(out, FILES)
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
        if not out.parent.is_dir():
            raise AuditError(f"{out} cannot be written: there is no folder {out.parent}.")
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
    write_together(out.parent, {out.name: content})
    return loaded


def _relative(path: Path, folder: Path) -> str:
    """A path as seen from a folder, if it lies inside of it."""
    absolute = path.resolve()
    return absolute.relative_to(folder).as_posix() if absolute.is_relative_to(folder) else str(absolute)
