"""Where the name of a mark can stand in a figure: near it, and on nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.types import FloatArray

NARROW, WIDE = 285.0, 620.0  # pixels between the axes on a phone and on a large screen
SWEEPS = 3

Point = tuple[float, float]
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Label:
    """A text of some pixels, and the marks that it may stand at, in pixels from the lower left."""

    anchors: tuple[Point, ...]
    width: float
    height: float = 16.0


@dataclass(frozen=True)
class Spot:
    """Which anchor, the offset of the text from it in pixels (downwards), and which of its ends is there."""

    anchor: int
    dx: float
    dy: float
    align: str


def width_of(*lines: str) -> float:
    """Pixels that a label of 12.5 pixels in bold needs at most."""
    return 7.0 * max(len(line) for line in lines)


def place(labels: Sequence[Label], obstacles: Sequence[Point], frame: Point) -> list[Spot]:
    """A spot for each label: inside the frame, off the obstacles and off each other, and nearest to its own mark.

    One after the other takes the best spot that is left; the sweeps after the first let each of them move again.
    """
    options = [_options(label) for label in labels]
    crowd = np.array(obstacles, dtype=float).reshape(-1, 2)
    chosen: dict[int, tuple[Spot, Box]] = {}
    for _ in range(SWEEPS):
        for at, label in enumerate(labels):
            taken = [box for k, (_, box) in chosen.items() if k != at]
            strangers = [point for k, other in enumerate(labels) if k != at for point in other.anchors]
            others = np.array(strangers, dtype=float).reshape(-1, 2)
            costs = [_cost(option, label, crowd, others, taken, frame) for option in options[at]]
            chosen[at] = options[at][int(np.argmin(costs))]
    return [chosen[at][0] for at in range(len(labels))]


def _options(label: Label) -> list[tuple[Spot, Box]]:
    spots = []
    for at, (x, y) in enumerate(label.anchors):
        for dx, up, align in _offsets(label.height):
            shift = {"left": 0.0, "right": -label.width, "center": -label.width / 2}[align]
            left, middle = x + dx + shift, y + up
            box = (left, middle - label.height / 2, left + label.width, middle + label.height / 2)
            spots.append((Spot(at, dx, -up, align), box))
    return spots


def _offsets(height: float) -> list[tuple[float, float, str]]:
    half = height / 2
    beside = [(sign * 12.0, 0.0, align) for sign, align in ((1, "left"), (-1, "right"))]
    around = [
        (sign * dx, turn * (half + up), align)
        for dx, up in ((9.0, 2.0), (5.0, 9.0), (9.0, 18.0))
        for turn in (1, -1)
        for sign, align in ((1, "left"), (-1, "right"))
    ]
    over = [(0.0, turn * (half + up), "center") for up in (9.0, 18.0, 30.0) for turn in (1, -1)]
    return beside + around + over


def _cost(
    option: tuple[Spot, Box],
    label: Label,
    obstacles: FloatArray,
    strangers: FloatArray,
    taken: Sequence[Box],
    frame: Point,
) -> float:
    spot, box = option
    sticks_out = max(0.0, -box[0]) + max(0.0, -box[1]) + max(0.0, box[2] - frame[0]) + max(0.0, box[3] - frame[1])
    cost = 40.0 + 2 * sticks_out if sticks_out else 0.0
    cost += 100.0 * sum(_overlap(box, other) for other in taken)
    cost += min(40.0, 4.0 * int((_distance(obstacles, box) < 3).sum()))
    own = float(_distance(np.array([label.anchors[spot.anchor]]), box)[0])
    return cost + 8.0 * int((_distance(strangers, box) <= own + 2).sum()) + 0.4 * own


def _distance(points: FloatArray, box: Box) -> FloatArray:
    low, high = np.array(box[:2]), np.array(box[2:])
    away = np.maximum(np.maximum(low - points, points - high), 0.0)
    return np.asarray(np.hypot(away[:, 0], away[:, 1]))


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
