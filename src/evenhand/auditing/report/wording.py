"""Numbers of an audit as text: two digits, one more where a limit is that near, and no false zero."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenhand.auditing.document import GateResult
from evenhand.auditing.document.values import finite
from evenhand.stats import Interval

MOST = 6  # digits after the point, however near a limit is


@dataclass(frozen=True)
class Wording:
    """How values are written; `cost` is the unit of costs and distances, such as "SD".

    >>> say = Wording("SD")
    >>> say.value(Interval(3.42, 3.02, 3.81), "times")
    '3.4×'
    >>> say.span(Interval(3.42, 3.02, 3.81), "times")
    '3.0–3.8×'
    >>> say.prose(Interval(0.052, 0.0502, 0.06), "share", limit=0.05)
    '5.02% to 6.00%'
    """

    cost: str = ""

    def number(self, value: float | None, unit: str, digits: int | None = None) -> str:
        """A single value with its unit."""
        if not finite(value):
            return "not measured"
        digits = self.digits([value], unit) if digits is None else digits
        return self._plain(value, unit, digits) + self._unit(unit)

    def value(self, interval: Interval, unit: str, limit: float | None = None) -> str:
        """The estimate, with as many digits as its interval is written with."""
        return self.number(interval.value, unit, self._of(interval, unit, limit))

    def span(self, interval: Interval, unit: str, limit: float | None = None) -> str:
        """The interval in a table; empty if there is none."""
        minus = any(finite(end) and end < 0 for end in (interval.low, interval.high))
        return self._ends(interval, unit, limit, " to " if minus else "–")

    def prose(self, interval: Interval, unit: str, limit: float | None = None) -> str:
        """The interval in a sentence."""
        return self._ends(interval, unit, limit, " to ")

    def exact(self, value: float, unit: str) -> str:
        """A number that somebody has set, such as a limit: all of its digits, unless it was computed after all."""
        scaled = value * (100 if unit == "share" else 1)
        usual, digits = self.digits([value], unit), 0
        while digits < MOST and not math.isclose(round(scaled, digits), scaled, rel_tol=1e-9, abs_tol=1e-12):
            digits += 1
        return self.number(value, unit, digits if digits <= usual + 1 else usual)

    def limit(self, gate: GateResult) -> str:
        """What a gate asks for."""
        words = "at most" if gate.comparison == "<=" else "at least"
        return f"{words} {self.exact(gate.limit, gate.unit)}"

    def digits(self, values: list[float | None], unit: str, limit: float | None = None) -> int:
        """Digits after the point: two that count, and more if a rounded value would look like the limit."""
        known = [value for value in values if finite(value)]
        if not known:
            return 1
        if unit == "share":
            digits, scale = 1, 100.0
        else:
            size = float(f"{abs(known[0]):.1e}")  # 9.99 is 10 in two digits
            digits, scale = (2 if size == 0 else max(0, 1 - math.floor(math.log10(size)))), 1.0
        digits = min(digits, MOST)
        if limit is not None:
            for value in known:
                while digits < MOST and value != limit and round(scale * value, digits) == round(scale * limit, digits):
                    digits += 1
        return digits

    def _of(self, interval: Interval, unit: str, limit: float | None) -> int:
        ends = [interval.low, interval.high]
        if all(map(finite, ends)) and ends[0] < 0 < ends[1]:
            # A difference that may be nothing: its size is that of the interval.
            return self.digits([max(map(abs, ends)), interval.value, *ends], unit, limit)
        return self.digits([interval.value, *ends], unit, limit)

    def _ends(self, interval: Interval, unit: str, limit: float | None, between: str) -> str:
        low, high = interval.low, interval.high
        if not finite(low) and not finite(high):
            return ""
        first, last = (self._end(end, interval, unit, limit) for end in (low, high))
        if unit == "share":
            return f"{first}%{between}{last}%"
        return f"{first}{between}{last}{self._unit(unit)}"

    def _end(self, end: float, interval: Interval, unit: str, limit: float | None) -> str:
        if not finite(end):
            return "unbounded"
        digits = self._of(interval, unit, limit)
        value = interval.value
        # An end that is of another size than the estimate has digits of its own: 0.34–103×.
        if limit is None and unit != "share" and value and end and end / value > 0 and not 0.1 < end / value < 10:
            digits = self.digits([end], unit)
        return self._plain(end, unit, digits)

    def _plain(self, value: float, unit: str, digits: int) -> str:
        text = f"{100 * value if unit == 'share' else value:,.{digits}f}".replace("-", "−")
        return text.removeprefix("−") if not any(c in "123456789" for c in text) else text

    def _unit(self, unit: str) -> str:
        return {"times": "×", "share": "%"}.get(unit, f" {self.cost}" if self.cost else "")
