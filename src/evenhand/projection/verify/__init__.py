"""A second opinion on a projection, from outside of the kernels: slow, and meant for samples.

Nothing here is shared with the solvers.  Points are checked against the problem as it was stated.  Bounds come from
Clarabel (numbers without steps: any dual vector proves a bound, whatever its residual) or from HiGHS (steps, levels and
rules, with curved parts replaced by more and more of their tangents, each of which holds for the whole set).
"""

from __future__ import annotations

from evenhand.projection.verify.claims import Claim, Verification, verify

__all__ = ["Claim", "Verification", "verify"]
