"""Numbers and names as text."""

from __future__ import annotations

from collections.abc import Sequence


def short(value: float) -> str:
    """Three digits, with a true minus sign; what is nothing but rounding is zero.

    >>> short(-0.01234), short(1234.5)
    ('−0.0123', '1,234')
    """
    value = 0.0 if abs(value) < 1e-9 else value
    text = f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return text.replace("-", "−")


def percent(value: float, digits: int = 0) -> str:
    """A share of one, out of a hundred.

    >>> percent(0.127, 1)
    '12.7%'
    """
    return f"{100 * value:.{digits}f}%".replace("-", "−")


def many(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> many(["age", "income", "savings"])
    'age, income and savings'
    """
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " and " + names[-1]
