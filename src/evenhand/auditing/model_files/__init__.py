"""Fitted models from files: skops and ONNX as they are, pickles only for people who say that they trust them.

One module a kind of file; :func:`model_file` registers another kind, from anywhere.
"""

from __future__ import annotations

# Readers register themselves, in the order in which messages list them.
from evenhand.auditing.model_files.skops import TRUSTED  # isort: skip
from evenhand.auditing.model_files.onnx import OnnxModel  # isort: skip
from evenhand.auditing.model_files import pickles as _pickles  # isort: skip  # noqa: F401
from evenhand.auditing.model_files.load import LoadedModel, load_model
from evenhand.auditing.model_files.registry import FORMATS, ModelFile, model_file

__all__ = ["FORMATS", "TRUSTED", "LoadedModel", "ModelFile", "OnnxModel", "load_model", "model_file"]
