"""What workers do: explain a batch, measure a few people, certify them.  The same batches on any number of workers.

Fitted methods travel as bytes, once unpacked per worker; people as tables.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
import numpy.typing as npt
import pandas as pd
from threadpoolctl import threadpool_limits

from evenhand.auditing.errors import AuditError
from evenhand.costs import Distance
from evenhand.explaining.answers import Answers
from evenhand.explaining.explainer import Explainer, Flip
from evenhand.explaining.targets import read_targets
from evenhand.perturbations import Perturbation
from evenhand.stability.certificate import certify
from evenhand.stability.experiment import Experiment, Variations
from evenhand.stability.instability import Instability, instability
from evenhand.types import FloatArray

_unpacked: OrderedDict[str, Any] = OrderedDict()
KEPT = 8  # unpacked objects that a worker keeps


@dataclass(frozen=True)
class Packed:
    """Something large that many tasks share."""

    content: bytes
    key: str

    @classmethod
    def of(cls, thing: Any) -> Packed:
        """Pack it."""
        try:
            content = _packed(thing)
        except (TypeError, pickle.PicklingError, AttributeError) as error:
            raise AuditError(
                f"The model or a method cannot be sent to workers: {error}. Keep locks, sessions and open files out of "
                "what is pickled (__getstate__), or out of the globals of the model's module."
            ) from None
        return cls(content, hashlib.sha256(content).hexdigest())

    def open(self) -> Any:
        """Unpack it, once per process."""
        if self.key not in _unpacked:
            _unpacked[self.key] = cloudpickle.loads(self.content)
            while len(_unpacked) > KEPT:
                _unpacked.popitem(last=False)
        return _unpacked[self.key]


def _packed(thing: Any) -> bytes:
    """The bytes of an object; a user's own module travels with it, unless something in it cannot."""
    own_modules = [sys.modules[name] for name in cloudpickle.list_registry_pickle_by_value() if name in sys.modules]
    try:
        content: bytes = cloudpickle.dumps(thing)
    except TypeError:
        if not own_modules:
            raise
        for module in own_modules:
            cloudpickle.unregister_pickle_by_value(module)
        content = cloudpickle.dumps(thing)
    return content


class Explained(NamedTuple):
    """A batch of people and what they are told, as numbers."""

    rows: npt.NDArray[np.int64]
    present: npt.NDArray[np.int64]
    answers: Answers
    boundary: FloatArray
    codes: FloatArray


def as_given(explainer: Explainer, frame: pd.DataFrame) -> Any:
    """People in the form that the model was fitted with: named columns, or an array."""
    return frame if explainer.view.reader.named else frame.to_numpy()


def with_index(explainer: Explainer, frame: pd.DataFrame) -> pd.DataFrame:
    """The same as a table whose index says who is who."""
    people = as_given(explainer, frame)
    return people if isinstance(people, pd.DataFrame) else pd.DataFrame(people, index=frame.index)


def explain_batch(packed: Packed, frame: pd.DataFrame, target: Any, keep: npt.NDArray[np.bool_]) -> Explained:
    """Explain a batch by the method in use, and measure how far everybody is from the boundary.

    Rows and counterfactuals are returned for the people in `keep` only: the others would fill the memory.
    """
    explainer, free, distance = packed.open()
    with threadpool_limits(1):
        view = explainer.view
        codes = view.read(as_given(explainer, frame))
        goal = read_targets(target, view, frame.index, 0)
        present = np.full(len(frame), -1)
        usable = np.isfinite(codes).all(axis=1)
        if usable.any():
            present[usable] = view.decide(codes[usable])
        answers = explainer.answer(codes, goal, present)
        boundary = np.full(len(frame), np.nan)
        if free is explainer:
            boundary = answers.cost
        elif free is not None:
            aims = np.where(answers.label >= 0, answers.label, goal)
            boundary = free.answer(codes, aims, present).cost
        explained = np.isfinite(answers.points).all(axis=1)
        cost = np.full(len(frame), np.nan)
        if explained.any():
            cost[explained] = distance(codes[explained], answers.points[explained])
    answers = answers._replace(points=answers.points[keep], cost=cost)
    return Explained(frame.index.to_numpy(), present, answers, boundary, codes[keep])


def measure_part(
    packed: Packed,
    frame: pd.DataFrame,
    target: npt.NDArray[Any],
    perturbation: Perturbation,
    draws: int,
    distance: Distance | None,
    on_flip: Flip,
    seed: int,
) -> tuple[Instability, FloatArray]:
    """Perturb and explain again some people, and how far their explanations are from them in the audit's distance."""
    explainer: Explainer = packed.open()
    with threadpool_limits(1):
        measured = instability(
            explainer,
            with_index(explainer, frame),
            perturbation,
            target=target,
            draws=draws,
            distance="l1" if distance is None else distance,
            on_flip=on_flip,
            random_state=seed,
        )
        codes = explainer.view.read(as_given(explainer, frame))
        answers = explainer.answer(codes, explainer.view.positions(target))
        measure = explainer.cost if distance is None else distance
        price = np.full(len(frame), np.nan)
        explained = np.isfinite(answers.points).all(axis=1)
        if explained.any():
            price[explained] = measure(codes[explained], answers.points[explained])
    return measured, price


def certify_part(packed: Packed, frame: pd.DataFrame, target: npt.NDArray[Any]) -> pd.DataFrame:
    """Radii of some people, with the statement that holds within them."""
    explainer: Explainer = packed.open()
    with threadpool_limits(1):
        radii = certify(explainer, as_given(explainer, frame), target)
    table = radii.to_frame().set_axis(frame.index)
    table.attrs["statement"] = radii.statement
    return table


class Varied(NamedTuple):
    """Some people, what they are told, and the variations of those who are told anything."""

    codes: FloatArray
    answers: Answers
    some: npt.NDArray[np.intp]
    variations: Variations


def vary_part(
    packed: Packed,
    frame: pd.DataFrame,
    target: npt.NDArray[Any],
    perturbation: Perturbation,
    draws: int,
    distance: Distance,
    on_flip: Flip,
    seed: int,
) -> Varied:
    """The same draws as in :func:`measure_part`, as people and explanations instead of distances."""
    explainer: Explainer = packed.open()
    with threadpool_limits(1):
        run = Experiment(
            explainer, with_index(explainer, frame), perturbation, target, distance, on_flip, seed, None, None
        )
        return Varied(run.X, *run.variations(draws))
