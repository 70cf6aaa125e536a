"""Models in ONNX files, with the methods of scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils.metaestimators import available_if

from evenhand.auditing.errors import AuditError, short
from evenhand.auditing.model_files.registry import model_file

_NUMBERS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}
_LABELS = ("tensor(int64)", "tensor(int32)", "tensor(string)", "tensor(bool)")


class OnnxModel:
    """A classifier in ONNX with the methods of scikit-learn; it can be pickled.

    ONNX mostly computes in float32, so close to a boundary it may predict another label than the model that it was
    made from. ``n_features_in_``, ``feature_names_in_`` and ``classes_`` are there if the file tells them.

    Parameters
    ----------
    data : bytes
        The content of the file.
    name : str
        How errors call it.
    """

    kind_of_model = "ONNX model"

    def __init__(self, data: bytes, name: str = "model.onnx") -> None:
        self._data, self._name = data, name
        self._session, self._errors = _session(data, name)
        self._inputs = self._session.get_inputs()
        for given in self._inputs:
            self._check_input(given, alone=len(self._inputs) == 1)
        outputs = self._session.get_outputs()
        labels = [output.name for output in outputs if output.type in _LABELS]
        if not labels or not self._inputs:
            listed = ", ".join(f"{output.name} is {output.type}" for output in outputs)
            raise AuditError(
                f"{name} has no output with labels: {listed}. Export a classifier whose output is one whole number or "
                "text per row (ArgMax after scores), or pass module:attribute."
            )
        self._label = labels[0]
        self._map = next((output.name for output in outputs if output.type.startswith("seq(map(")), None)
        if len(self._inputs) > 1:
            self.feature_names_in_ = np.array([given.name for given in self._inputs], dtype=object)
            self.n_features_in_ = len(self._inputs)
        elif isinstance(self._inputs[0].shape[1], int):
            self.n_features_in_ = self._inputs[0].shape[1]

    def _check_input(self, given: Any, *, alone: bool) -> None:
        where = f"The input {given.name!r} of {self._name}"
        if given.type not in _NUMBERS:
            raise AuditError(
                f"{where} is {given.type}; only numeric ONNX models can be searched ({', '.join(_NUMBERS)}). Leave the "
                "encoding of texts out of the export, or pass the whole pipeline as .skops or module:attribute."
            )
        if len(given.shape) != 2 or isinstance(given.shape[0], int) or not (alone or given.shape[1] == 1):
            raise AuditError(
                f"{where} has the shape {given.shape}; possible is one input of any number of rows, [None, columns], "
                "or several of one column each, [None, 1]. Export the model again with such inputs."
            )

    def __getstate__(self) -> dict[str, Any]:
        return {"data": self._data, "name": self._name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def _run(self, X: Any, output: str) -> Any:
        if len(self._inputs) == 1:
            feed = {self._inputs[0].name: np.asarray(X)}
        elif isinstance(X, pd.DataFrame):
            missing = [given.name for given in self._inputs if given.name not in X.columns]
            if missing:
                raise ValueError(f"The table has no columns {', '.join(missing)}, which {self._name} asks for.")
            feed = {given.name: X[[given.name]].to_numpy() for given in self._inputs}
        else:
            names = ", ".join(given.name for given in self._inputs)
            raise ValueError(f"{self._name} takes columns by name: pass a DataFrame with {names}.")
        with np.errstate(over="ignore"):  # beyond float32 is infinity
            feed = {given.name: feed[given.name].astype(_NUMBERS[given.type]) for given in self._inputs}
        try:
            return self._session.run([output], feed)[0]
        except self._errors as error:
            raise AuditError(f"{self._name} failed on a table of shape {np.shape(X)}: {short(error)}.") from error

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """One label for each row."""
        labels = np.asarray(self._run(X, self._label)).reshape(len(X))
        return labels.astype(str) if labels.dtype == object else labels

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The labels, sorted, if the model has an output that names them."""
        if self._map is None or not hasattr(self, "n_features_in_"):
            raise AttributeError("The file does not say which labels there are.")
        try:
            row = pd.DataFrame(np.zeros((1, self.n_features_in_)), columns=getattr(self, "feature_names_in_", None))
            return np.array(sorted(self._run(row, self._map)[0]))
        except AuditError as error:  # nobody has asked for a prediction yet
            raise AttributeError(str(error)) from error

    @available_if(lambda self: self._map is not None)  # type: ignore[untyped-decorator, unused-ignore]
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Probabilities, a column for each of the sorted labels."""
        rows = self._run(X, self._map or "")
        return np.array([[row[label] for label in sorted(row)] for row in rows], dtype=np.float64)


@model_file(".onnx", tried=True)
def open_onnx(data: bytes, path: Path) -> OnnxModel:
    """Read a classifier; raise AuditError if it is damaged, or takes what cannot be searched."""
    return OnnxModel(data, str(path))


def _session(data: bytes, name: str) -> tuple[Any, tuple[type[Exception], ...]]:
    """A session on one thread, for many of them run side by side; and what it raises, which has no common base."""
    try:
        import onnxruntime  # type: ignore[import-untyped, unused-ignore]
        from onnxruntime.capi import onnxruntime_pybind11_state as state  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise AuditError(f"To open {name}, onnxruntime has to be installed: pip install 'evenhand[onnx]'.") from None
    kinds = [kind for kind in vars(state).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    errors: tuple[type[Exception], ...] = (*kinds, RuntimeError, ValueError, TypeError)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised, not printed as well
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]), errors
    except errors as error:
        raise AuditError(f"{name} is damaged, or no ONNX model: {short(error)}. Export it again.") from error
