"""How a question about a person ended, and what that means."""

from __future__ import annotations

import enum

import numpy as np

from evenhand.types import StatusArray


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
ACCURATE = 1e-7  # a gap that is a larger part of the cost makes an answer "inaccurate",
NOTHING = 1e-10  # unless it is smaller than that compared with the person's own size: rounding decides there
_DTYPE = f"<U{max(map(len, Status))}"


def statuses(shape: int | tuple[int, ...], status: Status | str = "") -> StatusArray:
    """An array of one status, which has room for every other."""
    return np.full(shape, str(status), dtype=_DTYPE)
