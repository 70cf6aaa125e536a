"""From a fitted method to explanations of whole tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from evenhand.explaining.answers import Answers, open_for, room_for
from evenhand.explaining.blockers import Blockers
from evenhand.explaining.explanations import Explanations
from evenhand.explaining.targets import ANY_OTHER, aims, read_targets
from evenhand.explaining.telling import Teller
from evenhand.models import View
from evenhand.models.base import REFUSED
from evenhand.parallel import CHUNK, Progress, chunk_of, in_chunks
from evenhand.status import ACCURATE, NOTHING, VALID, Status
from evenhand.table.people import below
from evenhand.types import FloatArray, StatusArray

if TYPE_CHECKING:
    from evenhand.explaining.exact import ExactExplainer

TIE = 1e-9
# If the model predicts something else for a perturbed person: aim at the original's label, keep the target, or stop.
Flip: TypeAlias = Literal["swap", "keep", "skip"]
UNASKED = -1  # the position of a label that nobody has asked for
LARGEST = 1e38  # a model that computes in float32 refuses more, and with it the whole table


class Explainer(ABC):
    """A method fitted to a model: call :meth:`explain`.

    What the methods share: reading tables and targets, people who need no change or have none, the choice
    between labels, chunks and threads.  A method adds :meth:`_toward`.

    Attributes
    ----------
    view : View
        The model.
    cost : L1, L2 or Gower
        The cost of a change.
    stays : bool
        Whether a person whom the model already gives the target stays as it is.
    threads : bool
        Whether chunks may be explained at the same time.
    quick : bool
        Whether it is no matter to ask about one person after the other.
    """

    view: View
    cost: Any
    stays: bool = True
    threads: ClassVar[bool] = True
    quick: ClassVar[bool] = True

    @property
    def exact(self) -> ExactExplainer | None:
        """The explainer that projects people onto regions, if this is one; None where answers are not projections.

        Regions, projectors and limits are asked of it.
        """
        return None

    @property
    def certifiable(self) -> bool:
        """Whether anything can be proven about what similar people are told: :func:`certify` does it."""
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.view.model).__name__}, {self.cost!r})"

    def explain(
        self,
        X: Any,
        target: Any = None,
        *,
        random_state: int | np.random.Generator | None = None,
        n_jobs: int | None = None,
        chunk_size: int | None = None,
        progress: Progress | None = None,
    ) -> Explanations:
        """Counterfactuals for every row of a table.

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)
            People, in the model's raw inputs.  A row with NaN or infinity gets the status "invalid".
        target : label, array of labels, "random" or None
            What the model should say instead: one label for all, one per row, a label drawn at random
            among the others, or (None) whichever other label is cheapest.
        random_state : int or numpy Generator, optional
            Seed for ``target="random"``.
        n_jobs : int, optional
            Threads; -1 uses all cores.  The answers do not depend on it.
        chunk_size : int, optional
            Rows at a time; bounds the memory, not the answers.
        progress : callable, optional
            Called as ``progress(done, total)`` after each chunk.

        Returns
        -------
        Explanations
        """
        reader = self.view.reader
        people = reader.read(X)
        goal = read_targets(target, self.view, people.index, random_state)
        size = chunk_of(people.codes.shape[1]) if chunk_size is None else chunk_size
        present = None
        if chunk_size is None and not reader.plain:  # a pipeline that takes tables apart takes a while to begin with
            present = np.empty(len(goal), dtype=np.int64)
            for start in range(0, len(goal), 4 * CHUNK):
                rows = slice(start, start + 4 * CHUNK)
                codes = people.codes[rows]
                present[rows] = self._labels(codes, goal[rows], below(codes, LARGEST))
        answers = self.answer(people.codes, goal, present, n_jobs=n_jobs, chunk_size=size, progress=progress)
        blocked = answers.status == Status.UNREACHABLE
        return Explanations(
            factual=reader.write(people.codes, X) if reader.plain else X,
            counterfactual=reader.write(answers.points, X),
            target=self.labels(answers.label),
            cost=answers.cost,
            gap=answers.gap,
            status=answers.status,
            valid=np.isin(answers.status, VALID),
            complaint=self._complaints(X, people.codes, answers.status),
            blockers=self._blockers(people.codes[blocked], answers.label[blocked]) if blocked.any() else None,
            teller=Teller(self),
        )

    def _blockers(self, codes: FloatArray, goal: npt.NDArray[np.int64]) -> Blockers | None:  # noqa: ARG002
        """What tells which rules block people; None where nothing is proven about what is possible."""
        return None

    def _complaints(self, X: Any, codes: FloatArray, status: StatusArray) -> npt.NDArray[Any]:
        """What is wrong with people who cannot be read, in words; empty for all others."""
        reader, note = self.view.reader, np.full(len(status), "", dtype=object)
        invalid = np.flatnonzero(status == Status.INVALID)
        if len(invalid) and not reader.plain:
            frame = reader.columns(X)
            note[invalid] = [reader.complaint(frame.iloc[i]) for i in invalid]
        for i in invalid[note[invalid] == ""]:
            if np.isfinite(codes[i]).all():
                note[i] = self.view.refusal(codes[i])
        return note

    def answer(
        self,
        X: FloatArray,
        goal: npt.NDArray[np.int64],
        present: npt.NDArray[np.int64] | None = None,
        *,
        n_jobs: int | None = None,
        chunk_size: int = CHUNK,
        progress: Progress | None = None,
    ) -> Answers:
        """What :meth:`explain` does, from numbers to numbers.

        `goal` are codes of targets as :func:`read_targets` makes them; `present`, the positions of the labels that
        the model predicts, saves asking it again.
        """
        n = len(X)
        for k in np.unique(goal) if (goal >= 0).all() else range(len(self.view.classes)):
            self._prepare(int(k))  # before the threads start

        answers = room_for(X)

        def work(rows: slice) -> None:
            self._chunk(X[rows], goal[rows], None if present is None else present[rows], answers.part(rows))

        for _ in in_chunks(work, n, n_jobs if self.threads else None, chunk_size, progress):
            pass
        return answers

    def _chunk(
        self, X: FloatArray, goal: npt.NDArray[np.int64], known: npt.NDArray[np.int64] | None, answers: Answers
    ) -> None:
        """Explain some rows: who is already there, who is missing values, and the rest label by label."""
        readable = below(X, LARGEST)
        unasked = known is None and self._finds_out(goal)
        present = np.full(len(X), UNASKED) if unasked else self._labels(X, goal, readable) if known is None else known
        readable &= present != REFUSED
        aim = aims(goal, present)
        there = readable & (aim == present) & self.stays
        asked = readable & ~there
        open_for(answers, aim)
        aimed = asked & (aim != ANY_OTHER)
        if not aimed.all():
            answers.points[~aimed] = np.nan
            answers.status[~readable] = Status.INVALID
            answers.points[there] = X[there]
            answers.cost[there] = 0.0
            answers.status[there] = Status.ALREADY
            answers.floor[there] = 0.0
        if aimed.any():
            self._toward_own(X, aim, np.flatnonzero(aimed), unasked, answers)
        for k in range(len(self.view.classes)):
            rows = np.flatnonzero(asked & (aim == ANY_OTHER) & (present != k))
            if len(rows):
                self._offer(answers, rows, X[rows], k)
        self._judge(X, answers)

    def _judge(self, X: FloatArray, answers: Answers) -> None:
        """Give answers their gaps; of several labels the one that is least understood decides what is proven."""
        answers.gap[:] = np.maximum(answers.cost - answers.floor, 0.0)
        loose = np.flatnonzero((answers.gap > ACCURATE * answers.cost) & (answers.status == Status.OPTIMAL))
        if len(loose):  # next to nothing compared with the person's own size is nothing
            size = self.cost(X[loose], np.zeros(X.shape[1]))
            answers.status[loose[answers.gap[loose] > NOTHING * size]] = Status.INACCURATE

    def _labels(
        self, X: FloatArray, goal: npt.NDArray[np.int64], readable: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Positions of the labels that people have; -1 for who cannot be read."""
        if readable.all() and len(X):
            return self._present(X, goal)
        present = np.full(len(X), -1, dtype=np.int64)
        if readable.any():
            present[readable] = self._present(X[readable], goal[readable])
        return present

    def _offer(self, answers: Answers, rows: npt.NDArray[np.intp], X: FloatArray, k: int) -> None:
        """Take the counterfactuals towards the k-th label where they are better than what is there."""
        known = answers.cost[rows]
        first = np.isnan(known)
        offer = self._toward(X, k, np.where(first, np.inf, known))
        better = first & ((answers.label[rows] == k) | (offer.status != Status.UNREACHABLE))
        tied = np.abs(offer.cost - known) <= TIE * np.fmax(offer.cost, known)
        better |= ~first & ~tied & (offer.cost < known)
        for i in np.flatnonzero(tied):
            better[i] = self._before(offer.points[i] - X[i], answers.points[rows[i]] - X[i], k)
        floor = np.minimum(answers.floor[rows], offer.floor)
        for kept, new in zip(answers, offer, strict=True):
            kept[rows[better]] = new[better]
        answers.floor[rows] = floor

    def _present(self, X: FloatArray, goal: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:  # noqa: ARG002
        """Positions of the labels that people have; `goal` is what they aim at."""
        return self.view.decide(X)

    def _finds_out(self, goal: npt.NDArray[np.int64]) -> bool:  # noqa: ARG002 - searches have to know
        """Whether :meth:`_toward_own` can tell by itself who has the target already; `goal` is what people aim at."""
        return False

    def _toward_own(
        self,
        X: FloatArray,
        aim: npt.NDArray[np.int64],
        rows: npt.NDArray[np.intp],
        unasked: bool,  # noqa: ARG002 - only for who finds out
        answers: Answers,
    ) -> None:
        """Counterfactuals of people who aim at one label each, into `answers`.

        If they are `unasked`, some may have their target already: then that is to be found out.
        """
        for k in np.unique(aim[rows]):
            own = rows[aim[rows] == k]
            for kept, new in zip(answers, self._toward(X[own], int(k), np.full(len(own), np.inf)), strict=True):
                kept[own] = new

    @abstractmethod
    def _toward(self, X: FloatArray, k: int, cutoff: FloatArray) -> Answers:
        """Counterfactuals towards one label; those that cost more than the cutoff are of no use."""

    def _prepare(self, k: int) -> None:  # noqa: B027 - most have nothing to do
        """What has to be done for the k-th label before threads start."""

    def _before(self, a: FloatArray, b: FloatArray, k: int) -> bool:  # noqa: ARG002 - of no use to a search
        """Which of two equally costly changes comes first; the first towards the k-th label."""
        return bool(self.cost.before(a, b))

    def _confirmed(self, points: FloatArray, k: int | npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whom the model gives the k-th label, or each its own."""
        if not len(points):
            return np.zeros(0, dtype=bool)
        confirmed: npt.NDArray[np.bool_] = self.view.decide(points) == k
        return confirmed

    def leads(self, person: FloatArray, point: FloatArray, k: int) -> bool:
        """Whether one person, changed to a point, has the k-th label, and passes no limit on the way."""
        return bool(np.isfinite(point).all() and self._allows(person, point) and self._confirmed(point, k)[0])

    def _allows(self, person: FloatArray, point: FloatArray) -> bool:  # noqa: ARG002 - where a method knows limits
        """Whether a person may be changed to a point."""
        return True

    def labels(self, label: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """The labels at positions; None where nobody chose one."""
        if (label >= 0).all():
            return self.view.classes[label]
        named = np.full(len(label), None, dtype=object)
        named[label >= 0] = self.view.classes[label[label >= 0]]
        return named


def check_explainer(explainer: object) -> None:
    """Refuse what was not fitted: a method, or a model."""
    if isinstance(explainer, Explainer):
        return
    hint = (
        "Fit it first: method.fit(model, X, y)."
        if hasattr(explainer, "fit") and not hasattr(explainer, "predict")
        else "Wrap a model by a method first: Closest().fit(model)."
    )
    raise TypeError(f"Expected a fitted method (an Explainer), got {type(explainer).__name__}. {hint}")
