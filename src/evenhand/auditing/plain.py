"""Measurements as plain data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evenhand.stats import Interval


def plain(value: Any) -> Any:
    """Numbers, texts, lists and dicts only; what is not a finite number is None."""
    if isinstance(value, Interval):
        return {"value": plain(value.value), "low": plain(value.low), "high": plain(value.high)}
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
