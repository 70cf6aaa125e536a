"""Single people who can be looked up in the page."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.auditing.advice import amount, different, facts, told
from evenhand.auditing.document.individuals import Axis, Certificate, Cloud, Person, PersonMethod, Points
from evenhand.auditing.everyone import Everyone
from evenhand.auditing.findings.cards import least_stable
from evenhand.auditing.measures import Measures
from evenhand.auditing.phrases import two
from evenhand.auditing.prepare import Prepared
from evenhand.auditing.tasks import Varied
from evenhand.status import VALID, Status
from evenhand.types import FloatArray

DIGITS = 6  # of coordinates on the page: more could not be seen


def wanted_people(prepared: Prepared, everyone: Everyone, measures: Measures, pairs: list[int]) -> npt.NDArray[np.intp]:
    """Rows of all people that the page shows: the least stable, those in pairs, those named, and some more."""
    options, setup = prepared.options, prepared.setup
    noise = next(iter(setup.perturbations))
    rows = [int(measures.rows[i]) for i in least_stable(measures, setup.in_use, noise)]
    rows += pairs
    lookup = options.lookup
    if isinstance(lookup, int):
        rows += [int(row) for row in measures.rows[:lookup]]
    else:
        rows += _named(prepared, everyone, list(lookup))
    return np.array(list(dict.fromkeys(rows)), dtype=np.intp)


def _named(prepared: Prepared, everyone: Everyone, ids: list[Any]) -> list[int]:
    """Rows of people by their id; who is not there or needs no explanation is named in a note."""
    if prepared.options.redact:
        return []
    known = {str(label): row for row, label in enumerate(prepared.survey.ids.tolist())}
    rows = []
    for one in ids:
        row = known.get(str(one))
        if row is None:
            prepared.setup.notes.append(f"lookup: there is no row {one!r} in {prepared.source.name}.")
        elif not everyone.found[row]:
            reason = Status(everyone.status[row]).reason if everyone.status[row] else "Nobody explained this person."
            prepared.setup.notes.append(f"lookup: row {one!r} is not shown. {reason}")
        else:
            rows.append(row)
    return rows


def person(
    prepared: Prepared,
    everyone: Everyone,
    measures: Measures,
    row: int,
    at: int,
    varied: dict[str, Varied],
    limit: float | None,
    gone: npt.NDArray[np.bool_],
) -> Person:
    """Everything that the look-up shows of one person."""
    setup, names = prepared.setup, prepared.features
    view = setup.view
    first = varied[setup.in_use]
    x, cf = first.codes[at], first.answers.points[at]
    who = prepared.survey.ids[row]
    methods = [
        _method_row(prepared, measures, method, varied_by, at, _position(measures, row), gone)
        for method, varied_by in varied.items()
    ]
    moves = methods[0].amplification
    place = np.flatnonzero(first.some == at)
    share, n = _share_different(view, x, cf, first, int(place[0])) if len(place) else (np.nan, 0)
    return Person(
        id=str(who),
        decision=str(view.classes[everyone.present[row]]),
        target=str(view.classes[everyone.label[row]]),
        title=_title(moves, share, limit),
        sentence=_told_the_same(share, n),
        facts=facts(view, names, x, gone),
        methods=methods,
        cloud=_cloud(view, names, varied, at),
    )


def _position(measures: Measures, row: int) -> int | None:
    positions = np.flatnonzero(measures.rows == row)
    return int(positions[0]) if len(positions) else None


def _method_row(
    prepared: Prepared,
    measures: Measures,
    method: str,
    varied: Varied,
    at: int,
    i: int | None,
    gone: npt.NDArray[np.bool_],
) -> PersonMethod:
    setup, answers, names = prepared.setup, varied.answers, prepared.features
    view, valid = setup.view, answers.status[at] in VALID
    x, cf = varied.codes[at], answers.points[at]
    moves = None
    place = np.flatnonzero(varied.some == at)
    if len(place):
        people, points = varied.variations.people[place[0]], varied.variations.points[place[0]]
        usable = np.isfinite(points).all(axis=1)
        away = setup.distance(np.repeat(x[None], int(usable.sum()), axis=0), people[usable])
        moved = setup.distance(np.repeat(cf[None], int(usable.sum()), axis=0), points[usable])
        ratio = moved[away > 0] / away[away > 0]
        moves = float(ratio.mean()) if len(ratio) else None
    return PersonMethod(
        method=method,
        status=str(answers.status[at]),
        reason=Status(answers.status[at]).reason,
        told=told(view, names, x, cf, gone) if valid else [],
        cost=float(setup.distance(x[None], cf[None])[0]) if valid else None,
        gap=float(answers.gap[at]) if valid else None,
        amplification=moves,
        certificate=_certificate(measures, method, i, setup.unit),
    )


def _certificate(measures: Measures, method: str, i: int | None, unit: str) -> Certificate | None:
    if method not in measures.certificates or i is None:
        return None
    row = measures.certificates[method].iloc[i]
    stable, label = float(row["stability_radius"]), float(row["label_radius"])
    radius = min(stable, label)
    if np.isnan(radius):
        return None
    if radius <= 0:
        text = "Nothing is proven: two answers cost the same here."
    elif np.isinf(radius):
        text = f"Proven for changes of any size: {measures.certificates[method].attrs['statement']}."
    else:
        statement = measures.certificates[method].attrs["statement"]
        text = f"Proven for every change up to {amount(radius, 2)} {unit}: {statement}."
    return Certificate(stable, label, text)


def _share_different(view: Any, x: FloatArray, cf: FloatArray, varied: Varied, place: int) -> tuple[float, int]:
    """Share of the variations that are told to change something else, and how many there are."""
    usable = np.isin(varied.variations.status[place], VALID) & ~varied.variations.flipped[place]
    if not usable.any():
        return np.nan, 0
    people, points = varied.variations.people[place][usable], varied.variations.points[place][usable]
    return float(different(view, x, cf, people, points).mean()), int(usable.sum())


def _title(moves: float | None, share: float, limit: float | None) -> str:
    if moves is None or np.isnan(share):
        return "Nothing could be compared."
    if share >= 0.5 or (share > 0 and limit is not None and moves > limit):
        return "This explanation is not stable."
    if limit is not None and moves > limit:
        return "The amounts of this explanation are not stable."
    if limit is None:
        return f"This explanation moves {two(moves)} times as far as the person."
    return "This explanation is stable." if share == 0 else "This explanation is stable for most variations."


def _told_the_same(share: float, n: int) -> str:
    if np.isnan(share):
        return "No slight variation of this person kept the decision and had an explanation."
    other = round(share * n)
    if not other:
        return f"All {n} slight variations are told to change the same things, in the same direction."
    return f"{other} of {n} slight variations are told to change something else."


def _cloud(view: Any, names: list[str], varied: dict[str, Varied], at: int) -> Cloud | None:
    """What variations are told, in the two columns that matter most: changes of numbers, levels by position."""
    number = view.schema.number
    told_by: dict[str, tuple[FloatArray, FloatArray]] = {}
    for method, varied_by in varied.items():
        place = np.flatnonzero(varied_by.some == at)
        if not len(place):
            continue
        x, cf = varied_by.codes[at], varied_by.answers.points[at]
        people, points = varied_by.variations.people[place[0]], varied_by.variations.points[place[0]]
        usable = np.isfinite(points).all(axis=1)
        change = np.where(number, cf - x, cf)
        told_by[method] = change, np.where(number, points - people, points)[usable]
    if not told_by:
        return None
    spread = _importance(view, varied, at)
    axes = [int(j) for j in np.argsort(-spread, kind="stable")[:2] if spread[j] > 0]
    if not axes:
        return None
    clouds = {
        method: Points(_coordinates(person[axes]), [_coordinates(draw) for draw in draws[:, axes]])
        for method, (person, draws) in told_by.items()
    }
    second = _axis(view, names, axes[1]) if len(axes) > 1 else None
    return Cloud(_axis(view, names, axes[0]), second, clouds)


def _importance(view: Any, varied: dict[str, Varied], at: int) -> FloatArray:
    """How often each column is changed, over methods and variations."""
    total = np.zeros(view.n_features)
    for varied_by in varied.values():
        place = np.flatnonzero(varied_by.some == at)
        if len(place):
            _, changed = view.change(varied_by.variations.people[place[0]], varied_by.variations.points[place[0]])
            _, told = view.change(varied_by.codes[[at]], varied_by.answers.points[[at]])
            usable = np.isfinite(varied_by.variations.points[place[0]]).all(axis=1)
            total += changed[usable].mean(axis=0) + told[0] if usable.any() else told[0]
    return total


def _axis(view: Any, names: list[str], j: int) -> Axis:
    column = view.schema.column(j)
    levels = None if column.is_number else [amount(level) for level in column.levels]
    return Axis(names[j], levels)


def _coordinates(values: FloatArray) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values] + [0.0] * (2 - len(values))
