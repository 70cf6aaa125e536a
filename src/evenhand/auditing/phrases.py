"""Numbers in sentences: two digits, a true minus sign."""

from __future__ import annotations

import re

from evenhand.stats import Interval


def two(value: float) -> str:
    """Two significant digits.

    Examples
    --------
    >>> two(0.9), two(-1.234), two(12.0), two(1234.5)
    ('0.90', '−1.2', '12', '1,234')
    """
    text = f"{value:#.2g}" if abs(value) < 99.5 else f"{value:,.0f}"
    return (f"{value:.0f}" if text.endswith(".") or value == 0 else text).replace("-", "−")


def from_to(interval: Interval) -> str:
    """The ends of an interval, for a sentence."""
    return f"{two(interval.low)} to {two(interval.high)}"


def typeset(sentence: str) -> str:
    """A sentence with true minus signs, and percent signs next to their numbers."""
    return re.sub(r"(?<!\w)-(?=\d)", "−", sentence).replace(" %", "%")
