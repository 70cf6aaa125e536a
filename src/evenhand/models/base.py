"""What the rest of the package knows about a model: labels, predictions, regions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from evenhand.models.gaps import asked_gaps
from evenhand.sets import Affine, Region
from evenhand.table.column import Column
from evenhand.table.frames import as_frame
from evenhand.table.layout import Layout
from evenhand.table.people import Reader, is_frame
from evenhand.table.schema import Schema
from evenhand.types import BoolArray, FloatArray, IntArray

REFUSED = -2  # the position of the label of somebody whom the model does not take
NOBODY = 32  # people refused one after the other, and nobody taken: then it is not the people
CHANGED = 1e-9  # a feature whose change is a smaller part of it has not changed


class ModelError(RuntimeError):
    """A model fails with what is no refusal; the message says with what, and its cause says where."""


@dataclass(frozen=True, eq=False)
class View:
    """A fitted classifier, seen from rows of codes: its labels, its columns, what it predicts, and where.

    Attributes
    ----------
    model : estimator
        The user's own model, untouched; :meth:`predict` asks it and nobody else.
    classes : array
        The labels, in the model's order.
    reader : Reader
        From tables of people to codes, and back.
    encode : Affine, optional
        From expanded rows to the space of the model's last step; None for a black box.
    latent : callable, optional
        ``latent(k)`` is the region of ``classes[k]`` in the space of the last step; None for a black box.
    layout : Layout, optional
        From codes to expanded rows, in which regions lie; those of a table of numbers are the codes themselves.
    coarse : callable, optional
        ``coarse(Z)``: at which points of the last step's space the model's own arithmetic may lose more than what
        answers keep from a boundary; None if it nowhere does.
    """

    model: Any
    classes: npt.NDArray[Any]
    reader: Reader
    encode: Affine | None = None
    latent: Callable[[int], Region] | None = None
    layout: Layout | None = None
    coarse: Callable[[FloatArray], BoolArray] | None = None
    _regions: dict[int, Region] = field(default_factory=dict, init=False, repr=False)

    @property
    def schema(self) -> Schema:
        """What the columns are."""
        return self.reader.schema

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the raw columns, if the model was fitted with names."""
        return self.reader.names

    @property
    def n_features(self) -> int:
        """Number of raw input columns."""
        return len(self.schema)

    @property
    def exact(self) -> bool:
        """Whether it is known where the model says what; otherwise it can only be asked."""
        return self.latent is not None

    def predict(self, codes: FloatArray) -> npt.NDArray[Any]:
        """What the user's own model predicts for each row."""
        people = self.reader.show(codes)
        try:
            return np.asarray(self.model.predict(people))
        except (ValueError, MemoryError):  # it refuses somebody, in its own words; or it is no fault of its own
            raise
        except (Exception, SystemExit) as error:  # its own code may raise anything, and may want to end the process
            kind = type(self.model).__name__
            raise ModelError(f"{kind} fails with {type(error).__name__}: {error}".rstrip(": ") + ".") from error

    def decide(self, codes: FloatArray) -> IntArray:
        """The same as positions of labels; REFUSED for single people whom the model does not take."""
        if not len(codes):
            return np.zeros(0, dtype=np.int64)
        try:
            return self.positions(self.predict(codes))
        except ValueError:  # of many people one may have what an encoder has never seen
            found = np.full(len(codes), REFUSED, dtype=np.int64)
            self._decide_apart(codes, found)
            return found

    def refusal(self, code: FloatArray) -> str:
        """Why the model does not take a person, in its own words; empty if it does."""
        try:
            self.predict(code[None])
        except ValueError as error:
            return f"the model refuses this person: {error}"
        return ""

    def _decide_apart(self, codes: FloatArray, found: IntArray) -> None:
        """Half by half, until those who are refused are alone; a model that takes nobody is none, and says why."""
        refused, halves = 0, [slice(0, len(codes))]
        while halves:
            rows = halves.pop()
            try:
                found[rows] = self.positions(self.predict(codes[rows]))
            except ValueError:
                middle = (rows.start + rows.stop) // 2
                if middle > rows.start:
                    halves += [slice(middle, rows.stop), slice(rows.start, middle)]
                    continue
                refused += 1
                if refused == NOBODY and (found == REFUSED).all():
                    raise

    def read(self, X: Any) -> FloatArray:
        """People as rows of codes, in the model's order of columns."""
        return self.reader.read(X).codes

    @property
    def columns(self) -> Layout:
        """Where the table's columns are in the space in which regions lie."""
        return Layout.of_numbers(self.n_features) if self.layout is None else self.layout

    def image(self, codes: FloatArray) -> FloatArray:
        """People as the model's last step sees them."""
        assert self.encode is not None
        return self.encode(self.columns.expand(codes))

    def is_coarse(self, codes: FloatArray) -> BoolArray:
        """Where the model's own arithmetic may lose more than what answers keep from a boundary."""
        if self.coarse is None or not len(codes):
            return np.zeros(len(codes), dtype=bool)
        return self.coarse(self.image(codes))

    def region(self, label: object) -> Region:
        """Where the model predicts `label`, in expanded rows: for tables of numbers, in raw inputs."""
        k = self.index(label)
        if self.latent is None or self.encode is None:
            raise TypeError(f"{type(self.model).__name__} has no region: it can be asked, but not solved.")
        if k not in self._regions:
            self._regions[k] = self.latent(k).pullback(self.encode)
        return self._regions[k]

    def change(self, x: FloatArray, cf: FloatArray) -> tuple[FloatArray, BoolArray]:
        """What people are told, and which columns change: the difference of a number, another level or -1 for the same.

        A number that changes by a smaller part than rounding has not changed.
        """
        number = self.schema.number
        told = cf - x
        size = np.abs(told) if number.all() else np.where(number, np.abs(told), 0.0)
        room = np.maximum(CHANGED * np.abs(x), 1e-12 * size.max(axis=-1, initial=0.0, keepdims=True))
        if number.all():
            return told, size > room
        return np.where(number, told, np.where(cf == x, -1.0, cf)), np.where(number, size > room, cf != x)

    def positions(self, labels: npt.NDArray[Any]) -> IntArray:
        """Position in `classes` of each label; -1 for one that the model does not know."""
        n, labels = len(self.classes), labels.reshape(len(labels)) if labels.size == len(labels) else labels
        if labels.dtype.kind == self.classes.dtype.kind == "i" and (np.diff(self.classes.astype(np.int64)) == 1).all():
            found = labels.astype(np.int64) - int(self.classes[0])  # most labels are numbered
            found[(found < 0) | (found >= n)] = -1
            return found
        found = np.full(len(labels), -1, dtype=np.int64)
        for k, known in enumerate(self.classes.tolist()):
            found[labels == known] = k
        return found

    def index(self, label: object) -> int:
        """Position of a label in `classes`."""
        found = np.flatnonzero(self.classes == label) if np.ndim(label) == 0 else np.zeros(0)  # type: ignore[arg-type]
        if len(found) != 1:
            raise ValueError(f"Unknown label {label!r}; the model knows {self.classes.tolist()}.")
        return int(found[0])


def blackbox(model: Any, X: Any = None, schema: Schema | None = None) -> View:
    """Any fitted model with a ``predict``; what it does not say of itself is learned from a table.

    Parameters
    ----------
    model : object with ``predict``
        If it has ``classes_``, ``n_features_in_`` and ``feature_names_in_``, they are used.
    X : table, optional
        People in the model's raw inputs.
    schema : Schema, optional
        What its columns are; inferred for a DataFrame that holds anything but plain numbers.
    """
    if not callable(getattr(model, "predict", None)):
        raise TypeError(
            f"{type(model).__name__} has no predict method. Pass a fitted classifier, or an object whose predict(X) "
            "returns one label per row."
        )
    if hasattr(model, "fit"):
        check_fitted(model)
    width = getattr(model, "n_features_in_", None)
    if width is None:
        if X is not None and np.ndim(X) != 2:
            raise ValueError(f"Expected a table of people, one row each, got shape {np.shape(X)}.")
        width = None if X is None else np.shape(X)[1]
    labels = getattr(model, "classes_", None)
    if labels is None and X is not None:
        labels = np.unique(np.asarray(model.predict(X)))
    if width is None or labels is None:
        missing = "n_features_in_" if width is None else "classes_"
        raise ValueError(
            f"{type(model).__name__} has no {missing}: pass a table of people, fit(model, X), to learn it from."
        )
    names = getattr(model, "feature_names_in_", None)
    if names is None and isinstance(X, pd.DataFrame) and not hasattr(model, "n_features_in_"):
        names = X.columns  # a model that says nothing of itself gets tables like the one that it was shown
    named = None if names is None else list(names)
    if not is_frame(X):
        return View(model, np.asarray(labels), number_reader(int(width), named))
    reader = frame_reader(as_frame(X), named, schema)
    return View(model, np.asarray(labels), asked_gaps(reader, model.predict, as_frame(X)) if reader.gaps else reader)


def frame_reader(frame: pd.DataFrame, names: list[str] | None, schema: Schema | None = None) -> Reader:
    """Reads tables like a frame: as plain numbers if it holds nothing else, and by its schema otherwise.

    Missing numbers, which the model takes as they are, have a code that no number of the table has.
    """
    if names is not None:
        lost = [name for name in names if name not in frame.columns]
        if lost:
            raise ValueError(f"The table has no column {lost[0]!r}, with which the model was fitted.")
        frame = frame[names]
    known = Schema.infer(frame) if schema is None else schema.following(frame)
    gaps = [name for name in known.names if known[name].is_number and frame[name].isna().any()]
    if known.continuous and not gaps:
        return Reader(known, named=names is not None)
    fill = np.full(len(known), np.nan)
    for name in gaps:
        fill[known.names.index(name)] = _stand_in(frame[name].to_numpy(dtype=np.float64, na_value=np.nan), known[name])
    return Reader(
        known,
        named=names is not None,
        fill=fill,
        unfilled=tuple(gaps),
        like=frame.iloc[:0],
        gaps={name: gap(frame[name]) for name, column in known.columns.items() if None in column.levels},
    )


def _stand_in(values: FloatArray, column: Column) -> float:
    """A number that nobody has: next to the median, or below all whole numbers."""
    there = values[np.isfinite(values)]
    if not len(there):
        return 0.0
    if column.step:
        return float(np.floor(there.min()) - column.step)
    return float(np.nextafter(np.median(there), np.inf))


def gap(values: pd.Series[Any]) -> Any:
    """How a column of objects says that nothing is known; NaN for other types."""
    missing = values[values.isna()]
    return missing.iloc[0] if values.dtype == object and len(missing) else np.nan


def supported() -> str:
    """The kinds of models that have regions, as they are registered; a kind may say more than the name of its class."""
    kinds = [kind for kind in view.registry if kind is not object]
    return ", ".join(_KINDS.get(kind, kind.__name__) for kind in kinds)


_KINDS: dict[type, str] = {}


def described(kind: type, words: str) -> None:
    """Say in words what a registered kind of model stands for, where the name of its class does not."""
    _KINDS[kind] = words


@singledispatch
def view(model: object) -> View:
    """A fitted scikit-learn classifier or pipeline as a function ``label -> region``.

    Parameters
    ----------
    model : fitted classifier
        One of the supported kinds; a model that is not fitted raises
        ``sklearn.exceptions.NotFittedError``.

    Returns
    -------
    View

    Raises
    ------
    TypeError
        For a kind of model that has no region; the message lists those that have.
    """
    raise TypeError(
        f"evenhand has no decision region for {type(model).__name__}. Supported: {supported()}. "
        "For any other model use Penalized(...).fit(model, X), which searches without a region. "
        "To add a region, write a file with @view.register (CONTRIBUTING, 'How to add a model')."
    )


def check_fitted(model: Any) -> None:
    """Raise ``NotFittedError`` with the next step to take, unless `model` is fitted."""
    check_is_fitted(model, msg="This %(name)s is not fitted yet: call its fit(X, y) first, then pass it here.")


def direct_view(
    model: Any, latent: Callable[[int], Region], coarse: Callable[[FloatArray], BoolArray] | None = None
) -> View:
    """View of a fitted classifier that takes the raw inputs as they are."""
    width = int(model.n_features_in_)
    reader = number_reader(width, getattr(model, "feature_names_in_", None))
    return View(model, np.asarray(model.classes_), reader, Affine.identity(width), latent, coarse=coarse)


def number_reader(width: int, names: Iterable[str] | None) -> Reader:
    """Reads tables of numbers, by name if the model was fitted with names."""
    return Reader(Schema.numbers(width if names is None else list(names)), named=names is not None)
