"""Counterfactuals as projections onto the region of a label: exact, and with a certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.costs import L1, Gower
from evenhand.density import ClassDensities
from evenhand.explaining.blockers import Blockers
from evenhand.explaining.explainer import Answers, Explainer, unanswered
from evenhand.models import View
from evenhand.projection import Problem, Projector, solver
from evenhand.projection.solver import kind_of
from evenhand.status import Status
from evenhand.table.limits import Actionable, Limits
from evenhand.table.schema import Schema
from evenhand.types import BoolArray, FloatArray, IntArray

CLEAR = 1e-5  # who is further from every boundary, relative to the numbers that meet there, is not on its other side
