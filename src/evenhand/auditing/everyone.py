"""Everybody explained once: who needs an explanation, who has one, at what cost, how far from the boundary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.auditing.errors import AuditError
from evenhand.auditing.prepare import Prepared, Report
from evenhand.auditing.tasks import Packed, explain_batch
from evenhand.status import VALID, Status, statuses
from evenhand.types import FloatArray
from evenhand.workers import Task, run_all

BATCH = 5000  # people of one task


@dataclass
class Everyone:
    """One entry per row of the table."""

    present: npt.NDArray[np.int64]  # position of the label that the model predicts, -1 without one
    label: npt.NDArray[np.int64]  # position of the label that the explanation aims at
    status: npt.NDArray[np.str_]
    cost: FloatArray  # NaN for people without an explanation
    boundary: FloatArray
    asked: npt.NDArray[np.bool_]  # rows that were explained at all
    kept: npt.NDArray[np.intp]  # rows of which codes and points are kept
    codes: FloatArray
    points: FloatArray

    @property
    def already(self) -> npt.NDArray[np.bool_]:
        """Who has the wanted decision."""
        return np.asarray(self.status == Status.ALREADY)

    @property
    def found(self) -> npt.NDArray[np.bool_]:
        """Who needs an explanation and has one."""
        return np.asarray(np.isin(self.status, VALID) & ~self.already)

    @property
    def needed(self) -> npt.NDArray[np.bool_]:
        """Who needs an explanation."""
        return self.asked & ~self.already


def explain_everyone(prepared: Prepared, report: Report) -> Everyone:
    """Explain everybody by the method in use, batch by batch."""
    source, setup, options = prepared.source, prepared.setup, prepared.options
    n, dim = source.rows, setup.view.n_features
    asked = np.zeros(n, dtype=bool)
    asked[prepared.order[: prepared.explained]] = True
    kept = np.zeros(n, dtype=bool)
    kept[prepared.order[: min(options.pair_people, prepared.explained)]] = True
    everyone = Everyone(
        np.full(n, -1),
        np.full(n, -1),
        statuses(n),
        np.full(n, np.nan),
        np.full(n, np.nan),
        asked,
        np.flatnonzero(kept),
        np.empty((int(kept.sum()), dim)),
        np.empty((int(kept.sum()), dim)),
    )
    packed = Packed.of((setup.explainers[setup.in_use], setup.free, setup.distance))
    place = np.cumsum(kept) - 1

    def tasks() -> Iterator[Task]:
        for batch in source.batches(prepared.features, BATCH):
            some = asked[batch.index.to_numpy()]
            if some.any():
                part = batch[some]
                arguments = (packed, part, prepared.target, kept[part.index.to_numpy()])
                yield Task(explain_batch, arguments, f"explaining rows {part.index[0]} to {part.index[-1]}")

    done = 0
    for batch_explained in run_all(tasks()):
        rows, answers = batch_explained.rows, batch_explained.answers
        everyone.present[rows], everyone.label[rows] = batch_explained.present, answers.label
        everyone.status[rows], everyone.cost[rows] = answers.status, answers.cost
        everyone.boundary[rows] = batch_explained.boundary
        where = place[rows[kept[rows]]]
        everyone.codes[where], everyone.points[where] = batch_explained.codes, answers.points
        done += len(rows)
        report("explaining everybody", done, prepared.explained)
    already = everyone.already
    everyone.cost[already] = everyone.boundary[already] = np.nan
    if asked.any() and already[asked].all():
        raise AuditError(
            f"target: everybody in {source.name} has the decision {prepared.target!r} already, so nobody needs an "
            "explanation. Name the decision that people would like to have."
        )
    return everyone
