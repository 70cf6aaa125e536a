"""A document as plain data, ready for JSON."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Numbers, texts, lists and dicts only; what is not a finite number is None.

    Examples
    --------
    >>> from evenhand.stats import Interval
    >>> plain({"share": Interval(0.5, 0.25, float("nan")), "radii": (1, float("inf"))})
    {'share': {'value': 0.5, 'low': 0.25, 'high': None}, 'radii': [1, None]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
