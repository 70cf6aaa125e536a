"""The result of a projection, and what its statuses mean."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.distances import FloatArray


class Status(enum.StrEnum):
    """How a query ended; compares equal to its string."""

    OPTIMAL = "optimal"
    INACCURATE = "inaccurate"
    ALREADY = "already"
    UNREACHABLE = "unreachable"
    REJECTED = "rejected"
    FAILED = "failed"
    INVALID = "invalid"
    LOCAL = "local"
    MISSING = "missing"
    SKIPPED = "skipped"

    @property
    def reason(self) -> str:
        """The status as a sentence."""
        return _REASONS[self]


_REASONS = {
    Status.OPTIMAL: "The cheapest point of the region, proven up to the gap.",
    Status.INACCURATE: "A point of the region; the proof leaves a larger gap than usual, see `gap`.",
    Status.ALREADY: "The model already predicts the target, so nothing has to change.",
    Status.UNREACHABLE: "No point of the target's region can be reached with the changes that are allowed.",
    Status.REJECTED: "The model's own predict does not confirm the target there, even well inside the region.",
    Status.FAILED: "No solver reached an answer that it could certify.",
    Status.INVALID: "The row holds NaN or infinity (or a number too large to compute with), so it has no distance.",
    Status.LOCAL: "A point where the model predicts the target; nothing is proven about cheaper ones.",
    Status.MISSING: "The search found no counterfactual, which does not prove that there is none.",
    Status.SKIPPED: "The perturbed person's prediction differs from the original's, so the draw was set aside.",
}
# With these a counterfactual comes that the model's own predict has confirmed.
VALID = (Status.OPTIMAL, Status.INACCURATE, Status.ALREADY, Status.LOCAL)


@dataclass(frozen=True, eq=False)
class Projection:
    """Nearest points of a region, one row per query.

    Attributes
    ----------
    points : array of shape (n, dim)
        The nearest point; NaN where there is none.
    cost : array of shape (n,)
        Its cost.
    gap : array of shape (n,)
        Cost minus a proven lower bound: no point of the region is cheaper than ``cost - gap``.
    piece : array of shape (n,)
        Index of the piece that holds the point; -1 where there is none.
    status : array of shape (n,)
        A :class:`Status` per query.
    """

    points: FloatArray
    cost: FloatArray
    gap: FloatArray
    piece: npt.NDArray[np.int64]
    status: npt.NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.cost)
