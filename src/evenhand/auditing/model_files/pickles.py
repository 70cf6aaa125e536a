"""Models in pickles, which can run any code when they are opened."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from evenhand.auditing.errors import AuditError, short
from evenhand.auditing.model_files.parts import check_parts
from evenhand.auditing.model_files.registry import model_file


@model_file(".pkl", ".pickle", ".joblib", unsafe="pickle", tried=True)
def open_pickle(data: bytes, path: Path) -> Any:
    """Read a model of somebody who is trusted."""
    import joblib

    try:
        model = joblib.load(io.BytesIO(data))
        check_parts(model, forged=False)
        return model
    except (Exception, SystemExit) as error:  # a pickle calls what it likes, which may raise anything
        if isinstance(error.__cause__, UnicodeDecodeError):  # joblib guesses that another Python has written it
            raise AuditError(f"{path} cannot be opened: it is damaged, or no pickle. Save the model again.") from error
        raise AuditError(f"{path} cannot be opened: {short(error)}. Save the model again.") from error
