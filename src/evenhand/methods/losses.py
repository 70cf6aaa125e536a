"""How far what a model says is from a label: losses, and the scores that they are taken of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from evenhand.models import View
from evenhand.types import FloatArray

Loss = Callable[[FloatArray, int], FloatArray]
LEAST = 1e-12  # a probability whose logarithm is still of use


def log_loss(scores: FloatArray, k: int) -> FloatArray:
    """Minus the log of the probability that scores give to the k-th label."""
    top = scores.max(axis=1, keepdims=True)
    total: FloatArray = np.log(np.exp(scores - top).sum(axis=1)) + top[:, 0] - scores[:, k]
    return total


def hinge_loss(scores: FloatArray, k: int) -> FloatArray:
    """By how much the k-th label's score fails to lead by one."""
    lead = scores[:, k] - np.delete(scores, k, axis=1).max(axis=1)
    short: FloatArray = np.maximum(0.0, 1.0 - lead)
    return short


def zero_one_loss(scores: FloatArray, k: int) -> FloatArray:
    """One where another label has the largest score."""
    wrong: FloatArray = (scores.argmax(axis=1) != k).astype(np.float64)
    return wrong


LOSSES: dict[str, Loss] = {"log": log_loss, "hinge": hinge_loss, "zero-one": zero_one_loss}


def scores_of(seen: View, people: FloatArray) -> tuple[Callable[[FloatArray], FloatArray], str]:
    """What the model says of each label, and the loss that goes with it."""
    if hasattr(seen.model, "predict_proba"):
        return partial(_probabilities, seen), "log"
    if hasattr(seen.model, "decision_function"):
        values = _margins(seen, people)  # one against one has a value per pair of labels, which says nothing of a label
        if (
            values.shape[1] == len(seen.classes)
            and (values.argmax(axis=1) == seen.positions(seen.predict(people))).mean() > 0.5
        ):
            return partial(_margins, seen), "hinge"
    return partial(_answers, seen), "zero-one"


def _probabilities(seen: View, X: FloatArray) -> FloatArray:
    found: FloatArray = np.log(np.maximum(np.asarray(seen.model.predict_proba(seen.reader.show(X))), LEAST))
    return found


def _margins(seen: View, X: FloatArray) -> FloatArray:
    values = np.asarray(seen.model.decision_function(seen.reader.show(X)), dtype=np.float64)
    return np.column_stack([-values, values]) / 2 if values.ndim == 1 else values


def _answers(seen: View, X: FloatArray) -> FloatArray:
    found: FloatArray = (seen.positions(seen.predict(X))[:, None] == np.arange(len(seen.classes))).astype(np.float64)
    return found


def check_shapes(scores: FloatArray, loss: Loss, gradient: Any, people: FloatArray) -> None:
    """Refuse functions of a user that do not return one number, or one slope, per person."""
    found = np.shape(loss(scores, 0))
    if found != (len(people),):
        raise ValueError(
            f"loss(scores, k) returned shape {found} for scores of shape {scores.shape}: one number per row."
        )
    slope = people.shape if gradient is None else np.shape(gradient(people, 0))
    if slope != people.shape:
        raise ValueError(f"gradient(X, k) returned shape {slope} for X of shape {people.shape}: they have to agree.")


def reacts(
    scores: Callable[[FloatArray], FloatArray], loss: Loss, people: FloatArray, spread: FloatArray, most: int = 50
) -> bool:
    """Whether small changes of a person change the loss, for most people."""
    some = people[np.linspace(0, len(people) - 1, min(most, len(people))).astype(np.intp)]
    nudge = 1e-3 * spread * np.where(np.arange(some.shape[1]) % 2, 1.0, -1.0)
    before, after = scores(some), scores(some + nudge)
    changed = [loss(before, k) != loss(after, k) for k in range(before.shape[1])]
    return bool(np.mean(changed) > 0.5)
