"""Definition 2: perturb the person, explain again, measure how far the explanation moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.distances import Distance, FloatArray, as_distance
from evenhand.explainer import Explainer, Flip
from evenhand.markup import framed
from evenhand.perturbations import Perturbation, learned, perturbed
from evenhand.projection import CHUNK, VALID, Progress, Status, as_table
from evenhand.randomness import TARGET, Streams, identities, seed_of
from evenhand.stats import Interval, cluster_bootstrap

BLOCK = 128  # draws that share a stream of random numbers
PILOT = 8  # draws per person from which draws="auto" learns how many it needs
IN_CACHE = 65_536  # numbers to measure at a time
CHANGED = 1e-9  # a feature whose change is a smaller part of it has not changed
MEASURES = ("distance", "change_distance", "cost_gap", "jaccard", "amplification", "input_distance")


class _Draws(NamedTuple):
    """Measurements of some people, arrays of shape (people, draws)."""

    target: npt.NDArray[np.int64]
    flipped: npt.NDArray[np.bool_]
    status: npt.NDArray[np.str_]
    input_distance: FloatArray
    distance: FloatArray
    change_distance: FloatArray
    cost_gap: FloatArray
    jaccard: FloatArray
    amplification: FloatArray


@dataclass(frozen=True, eq=False)
class Instability:
    """How far explanations move; :func:`instability` makes it.

    Attributes
    ----------
    people : DataFrame
        One row per person: means over its draws, the median, the 95th percentile and the largest `distance`,
        counts, and `floor`: how far two runs on the very same person differ.
    draws : int
        Draws per person.
    seed : int
        Repeats the measurement, as ``random_state=seed``.
    settled : bool
        False if ``draws="auto"`` ran into `max_draws` before the interval was narrow enough.
    half_width : float
        Half the width of the 95 % interval of the mean distance of these people, from the draws alone.
    """

    people: pd.DataFrame
    draws: int
    seed: int
    settled: bool = True
    half_width: float = np.nan
    _table: pd.DataFrame | None = field(default=None, repr=False)
    _person: npt.NDArray[np.int64] | None = field(default=None, repr=False)  # per row of the table: row of people

    @property
    def table(self) -> pd.DataFrame:
        """One row per (person, draw); a row without a measurement has a status that says why."""
        if self._table is None:
            raise ValueError('The draws were not kept: use keep="draws", or .people for one row per person.')
        return self._table

    def summary(
        self, by: Any = None, measure: str = "distance", *, confidence: float = 0.95, seed: int = 0
    ) -> pd.DataFrame:
        """Median, mean and 95th percentile with bootstrap intervals, and how often there was nothing to measure.

        People are resampled, not draws: the draws of one person are not independent.

        Parameters
        ----------
        by : column name, or one value per person, optional
            A row of the summary for each value; a column of `table`, or anything that groups people.
        measure : str
            A column of `table`: "distance", "change_distance", "amplification", "cost_gap", "jaccard",
            "input_distance".
        confidence : float
            Of the intervals.
        seed : int
            Of the bootstrap.

        Returns
        -------
        DataFrame
            With ``keep="people"`` the unit is a person's mean over its draws, and the column `of` says so.
        """
        if measure not in MEASURES:
            raise ValueError(f"measure must be one of {', '.join(MEASURES)}; got {measure!r}.")
        units = self.people if self._table is None else self._table
        person = np.arange(len(self.people)) if self._person is None else self._person
        groups = self._groups(by, units, person)
        rows = {}
        for name in pd.unique(groups):
            chosen = np.flatnonzero(groups == name)
            rows[name] = self._row(units.iloc[chosen], person[chosen], measure, confidence, seed)
        found = pd.DataFrame.from_dict(rows, orient="index")
        found.index.name = by if isinstance(by, str) else ("group" if by is not None else None)
        return found

    def _groups(self, by: Any, units: pd.DataFrame, person: npt.NDArray[np.int64]) -> pd.Series[Any]:
        if by is None:
            return pd.Series("all", index=units.index)
        if isinstance(by, str):
            if by not in units.columns:
                raise ValueError(f"There is no column {by!r} to group by; there are {', '.join(units.columns)}.")
            return units[by]
        values = np.asarray(by)
        if values.shape != (len(self.people),):
            raise ValueError(f"by needs one value per person: {len(self.people)}, got shape {values.shape}.")
        return pd.Series(values[person], index=units.index)

    def _row(
        self, part: pd.DataFrame, person: npt.NDArray[np.int64], measure: str, confidence: float, seed: int
    ) -> dict[str, Any]:
        kept = self._table is not None
        values = part[measure].to_numpy()
        usable = np.isfinite(values)
        values = values[usable]
        _, cluster = np.unique(person[usable], return_inverse=True)
        nothing = Interval(np.nan, np.nan, np.nan)
        statistics = ("median", "mean", "p95")
        found = (
            cluster_bootstrap(values, cluster, statistics, confidence=confidence, seed=seed)
            if len(values)
            else dict.fromkeys(statistics, nothing)
        )
        row: dict[str, Any] = {"of": "draws" if kept else "people", "people": len(np.unique(person))}
        total = len(part) if kept else int(part["draws"].sum())
        row["draws"] = total
        for name in statistics:
            row |= {name: found[name].value, f"{name}_low": found[name].low, f"{name}_high": found[name].high}
        if kept:
            columns = part["flipped"], part["status"] == Status.SKIPPED, part["status"].isin(VALID)
        else:
            columns = part["flips"], part["skipped"], part["found"]
        flips, skipped, valid = (int(column.sum()) for column in columns)
        row["flip_rate"] = flips / total if total else np.nan
        row["skip_rate"] = skipped / total if total else np.nan
        row["not_found_rate"] = (total - skipped - valid) / total if total else np.nan
        floors = self.people["floor"].to_numpy()[np.unique(person)]
        row["floor"] = float(np.nanmax(floors)) if np.isfinite(floors).any() else np.nan
        return row

    @classmethod
    def pool(cls, parts: Mapping[Any, Instability]) -> Instability:
        """Several measurements as one, with the mapping's keys in a column `fold`.

        Parameters
        ----------
        parts : mapping of fold to Instability
            The same person may be in several folds: they are told apart.
        """
        if not parts:
            raise ValueError("There is nothing to pool: the mapping is empty.")
        kept = all(part._table is not None for part in parts.values())
        people, tables, rows, start = [], [], [np.zeros(0, dtype=np.int64)], 0
        for fold, part in parts.items():
            people.append(_in_fold(part.people, fold))
            if part._table is not None and part._person is not None:
                tables.append(_in_fold(part._table, fold))
                rows.append(part._person + start)
            start += len(part.people)
        return cls(
            pd.concat(people, ignore_index=True),
            max(part.draws for part in parts.values()),
            next(iter(parts.values())).seed,
            all(part.settled for part in parts.values()),
            _table=pd.concat(tables, ignore_index=True) if kept else None,
            _person=np.concatenate(rows) if kept else None,
        )

    def __repr__(self) -> str:
        found = self.people["distance"].to_numpy()
        middle = f"median distance {np.nanmedian(found):.4g}" if np.isfinite(found).any() else "nothing to measure"
        return f"Instability({len(self.people)} people x {self.draws} draws: {middle}, seed {self.seed})"

    def _repr_html_(self) -> str:
        shown = ["median", "median_low", "median_high", "mean", "p95", "flip_rate", "not_found_rate", "floor"]
        return framed(repr(self), self.summary()[shown])


def instability(
    explainer: Explainer,
    X: Any,
    perturbation: Perturbation,
    *,
    target: Any = None,
    draws: int | Literal["auto"] = 1,
    distance: Distance | str = "l1",
    on_flip: Flip = "swap",
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    keep: Literal["draws", "people"] = "draws",
    tolerance: float = 0.05,
    max_draws: int = 1024,
    reference: Any = None,
    chunk_size: int = CHUNK,
    progress: Progress | None = None,
) -> Instability:
    """How far the explanations of people move when the people are perturbed.

    Parameters
    ----------
    explainer : Explainer
        A fitted method.
    X : table of shape (n, n_features)
        People.  The labels of a DataFrame's index say who is who: a person gets the same draws in whatever
        order and company it comes.
    perturbation : Gaussian, Uniform, Mask, Relative, Neighbor or any ``(X, rng) -> X``
        What could have been different.
    target : label, array of labels, "random" or None
        As in ``explain``; what the original person aims at, the perturbed one aims at too.
    draws : int or "auto"
        Perturbations per person; "auto" takes as many as `tolerance` needs.
    distance : "l1", "l2", L1, L2 or any ``(A, B) -> (n,)``
        Between explanations, and between people.
    on_flip : {"swap", "keep", "skip"}
        If the model predicts something else for the perturbed person: aim at the original's label, as Definition 2
        asks; keep the target; or set the draw aside, with the status "skipped".
    random_state : int or numpy Generator, optional
        Seed; one from the operating system if left out, kept in the result.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    keep : {"draws", "people"}
        Whether the result holds a row per draw, or only one per person, for tables that would not fit in memory.
    tolerance : float
        For ``draws="auto"``: half the width of the 95 % interval of the mean distance, as a part of that mean.
        The interval is that of the draws: these people, had they been perturbed infinitely often.
    max_draws : int
        Where "auto" stops at the latest.
    reference : table, optional
        Training data for perturbations that learn from it (``Relative``, ``Mask(baseline="mean")``); `X` if left out.
    chunk_size : int
        Rows at a time; bounds the memory, not the result.
    progress : callable, optional
        Called as ``progress(done, total)`` with draws after each chunk.

    Returns
    -------
    Instability

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from evenhand import Closest, Gaussian, instability
    >>> X, y = load_iris(return_X_y=True)
    >>> explainer = Closest().fit(LogisticRegression(max_iter=1000).fit(X, y))
    >>> found = instability(explainer, X, Gaussian(0.01), draws=4, random_state=0)
    >>> found.table.shape[0]
    600
    """
    if on_flip not in ("swap", "keep", "skip"):
        raise ValueError(f'on_flip must be "swap", "keep" or "skip", got {on_flip!r}.')
    if keep not in ("draws", "people"):
        raise ValueError(f'keep must be "draws" or "people", got {keep!r}.')
    automatic = isinstance(draws, str) and draws == "auto"
    if not automatic and (isinstance(draws, bool) or not isinstance(draws, Integral) or draws < 1):
        raise ValueError(f'draws must be a whole number >= 1 or "auto", got {draws!r}.')
    if automatic and not (tolerance > 0 and max_draws >= 2):
        raise ValueError(f"tolerance must be > 0 and max_draws >= 2, got {tolerance} and {max_draws}.")
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, got {chunk_size}.")
    run = _Run(explainer, X, perturbation, target, as_distance(distance), on_flip, random_state, n_jobs, reference)
    count = min(PILOT, max_draws) if automatic else int(draws)
    while True:
        found = run.measure(count, keep == "draws", chunk_size, progress)
        if not automatic:
            return found
        mean = float(np.nanmean(found.people["distance"])) if found.people["distance"].notna().any() else 0.0
        settled = not found.half_width > tolerance * mean
        if settled or count >= max_draws:
            return replace(found, settled=settled)
        # The width falls with the root of the number of draws; a tenth more, because it was estimated.
        wanted = 1.1 * count * (found.half_width / (tolerance * mean)) ** 2 if mean > 0 else np.inf
        count = int(min(max(wanted, count + 1), max_draws))


class _Run:
    """One measurement: the people, their explanations, and their streams of random numbers."""

    def __init__(
        self,
        explainer: Explainer,
        X: Any,
        perturbation: Perturbation,
        target: Any,
        distance: Distance,
        on_flip: Flip,
        random_state: int | np.random.Generator | None,
        n_jobs: int | None,
        reference: Any,
    ) -> None:
        view = explainer.view
        self.explainer, self.distance, self.on_flip, self.n_jobs = explainer, distance, on_flip, n_jobs
        self.X = as_table(view.columns(X), view.n_features)
        self.index = X.index if isinstance(X, pd.DataFrame) else pd.RangeIndex(len(self.X))
        self.seed = seed_of(random_state)
        self.streams, self.who = Streams(self.seed), identities(self.index)
        known = self.X if reference is None else as_table(view.columns(reference), view.n_features)
        self.perturbation = learned(perturbation, known[np.isfinite(known).all(axis=1)])
        usable = np.isfinite(self.X).all(axis=1)
        present = np.full(len(self.X), -1)
        present[usable] = view.positions(view.predict(self.X[usable])) if usable.any() else -1
        self.present = present
        self.base = explainer.explain(self.X, self._targets(target), n_jobs=n_jobs)
        # Again, last person first: whatever depends on the run or on its order shows.
        again = explainer.explain(self.X[::-1], _reversed(self.base.target), n_jobs=n_jobs)
        self.floor = np.full(len(self.X), np.nan)
        both = self.base.valid & again.valid[::-1]
        repeated = np.asarray(again.counterfactual)[::-1]
        if both.any():
            self.floor[both] = distance(np.asarray(self.base.counterfactual)[both], repeated[both])
        self.goal = view.positions(np.where(self.base.valid, self.base.target, view.classes[0]))

    def _targets(self, target: Any) -> Any:
        """Targets per person; random ones from each person's own stream, so that they follow the person."""
        classes = self.explainer.view.classes
        if not (isinstance(target, str) and target == "random" and "random" not in classes.tolist()):
            return target
        drawn = [self.streams.of(person, TARGET).integers(0, len(classes) - 1) for person in self.who]
        other = np.array(drawn, dtype=np.int64)
        return classes[other + (other >= np.where(self.present < 0, len(classes), self.present))]

    def measure(self, draws: int, keep: bool, chunk_size: int, progress: Progress | None) -> Instability:
        """Perturb everybody `draws` times."""
        n = len(self.X)
        tables, people = [], []
        step = max(1, chunk_size // draws)
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            found = self._draws(rows, draws)
            if keep:
                tables.append(self._table(rows, draws, found))
            people.append(_aggregate(found))
            if progress is not None:
                progress(rows.stop * draws, n * draws)
        head = pd.DataFrame(
            {
                "person": self.index,
                "target": self.base.target,
                "status": self.base.status,
                "cost": self.base.cost,
                "floor": self.floor,
                "draws": draws,
            }
        )
        parts = pd.concat(people, ignore_index=True) if people else _aggregate(_no_draws(0, draws))
        joined = pd.concat([head, parts], axis=1)
        if not keep:
            return Instability(joined, draws, self.seed, half_width=_half_width(joined))
        empty = self._table(slice(0, 0), draws, _no_draws(0, draws))
        table = pd.concat(tables, ignore_index=True) if tables else empty
        person = np.repeat(np.arange(n), draws)
        return Instability(joined, draws, self.seed, half_width=_half_width(joined), _table=table, _person=person)

    def _draws(self, rows: slice, draws: int) -> _Draws:
        """Perturb some people, explain them again, and measure."""
        view = self.explainer.view
        found = _no_draws(rows.stop - rows.start, draws)
        found.status[:] = self.base.status[rows][:, None]
        found.target[:] = self.goal[rows][:, None]
        some = np.flatnonzero(self.base.valid[rows])
        if not len(some):
            return found
        people = some + rows.start
        moved = np.empty((len(some), draws, self.X.shape[1]))
        for i, person in enumerate(people):
            self._perturb(person, moved[i])
        flat = moved.reshape(-1, moved.shape[2])
        label = view.positions(view.predict(flat))
        own = np.repeat(self.present[people], draws)
        flipped = label != own
        goal = np.repeat(self.goal[people], draws)
        if self.on_flip == "swap":
            goal = np.where(flipped, own, goal)
        asked = ~flipped if self.on_flip == "skip" else np.ones(len(flat), dtype=bool)
        if asked.all():
            points, cost, _, status, _, _ = self.explainer.answer(flat, goal, label, n_jobs=self.n_jobs)
        else:
            status = np.full(len(flat), Status.SKIPPED.value, dtype="<U11")
            points, cost = np.full(flat.shape, np.nan), np.full(len(flat), np.nan)
            again = self.explainer.answer(flat[asked], goal[asked], label[asked], n_jobs=self.n_jobs)
            points[asked], cost[asked], status[asked] = again.points, again.cost, again.status
        shape = (len(some), draws)
        found.flipped[some], found.target[some] = flipped.reshape(shape), goal.reshape(shape)
        found.status[some] = status.reshape(shape)
        found.cost_gap[some] = np.abs(cost.reshape(shape) - self.base.cost[people][:, None])
        points = points.reshape(moved.shape)
        step = max(1, IN_CACHE // (draws * moved.shape[2]))
        for start in range(0, len(some), step):
            part = slice(start, start + step)
            self._measure(found, some[part], people[part], moved[part], points[part])
        return found

    def _measure(
        self,
        found: _Draws,
        some: npt.NDArray[np.intp],
        people: npt.NDArray[np.intp],
        moved: FloatArray,
        points: FloatArray,
    ) -> None:
        """Distances of a few people's draws, arrays of shape (people, draws, features)."""
        shape, dim = moved.shape[:2], moved.shape[2]
        x0, cf0 = self.X[people], np.asarray(self.base.counterfactual)[people]

        def between(a: FloatArray, b: FloatArray) -> FloatArray:
            whole = np.ascontiguousarray(np.broadcast_to(a[:, None], b.shape)).reshape(-1, dim)
            return np.asarray(self.distance(whole, b.reshape(-1, dim))).reshape(shape)

        told0, told = cf0 - x0, points - moved
        valid = ~np.isnan(points[:, :, 0])
        if not valid.all():  # a user's own distance need not know NaN
            points, told = np.where(valid[:, :, None], points, 0.0), np.where(valid[:, :, None], told, 0.0)
        inputs = between(x0, moved)
        distance = np.where(valid, between(cf0, points), np.nan)
        found.input_distance[some], found.distance[some] = inputs, distance
        found.change_distance[some] = np.where(valid, between(told0, told), np.nan)
        overlap = _overlap(_changed(x0, told0)[:, None], _changed(moved, told))
        found.jaccard[some] = np.where(valid, overlap, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 is undefined and stays NaN
            found.amplification[some] = distance / inputs

    def _perturb(self, person: int, into: FloatArray) -> None:
        """All draws of one person, from streams that are its own."""
        for block, start in enumerate(range(0, len(into), BLOCK)):
            part = into[start : start + BLOCK]
            part[:] = self.X[person]
            part[:] = perturbed(self.perturbation, part, self.streams.of(self.who[person], block))

    def _table(self, rows: slice, draws: int, found: _Draws) -> pd.DataFrame:
        n = rows.stop - rows.start
        classes = self.explainer.view.classes
        known = np.repeat(self.base.valid[rows], draws)
        target = classes[found.target.ravel()]
        if not known.all():  # nobody chose a label for people without an explanation
            target = np.where(known, target.astype(object), np.repeat(self.base.target[rows], draws))
        columns: dict[str, Any] = {
            "person": self.index[rows].repeat(draws),
            "draw": np.tile(np.arange(draws), n),
            "target": target,
            "flipped": found.flipped.ravel(),
            "status": found.status.ravel(),
        }
        for name in ("input_distance", "distance", "change_distance", "cost_gap", "jaccard", "amplification"):
            columns[name] = getattr(found, name).ravel()
        return pd.DataFrame(columns)


def _in_fold(frame: pd.DataFrame, fold: Any) -> pd.DataFrame:
    return pd.concat([pd.Series([fold] * len(frame), name="fold", index=frame.index), frame], axis=1)


def _reversed(target: npt.NDArray[Any]) -> Any:
    """Targets for the second run, last person first; people without a label get any, they have no explanation."""
    known = np.array([label is not None for label in target])
    if known.all():
        return target[::-1]
    if not known.any():
        return None
    return np.where(known, target, target[known][0])[::-1].tolist()


def _no_draws(n: int, draws: int) -> _Draws:
    nothing = [np.full((n, draws), np.nan) for _ in MEASURES]
    return _Draws(
        np.zeros((n, draws), dtype=np.int64),
        np.zeros((n, draws), dtype=bool),
        np.full((n, draws), Status.MISSING.value, dtype="<U11"),
        *nothing,
    )


def _changed(x: FloatArray, told: FloatArray) -> npt.NDArray[np.bool_]:
    """Which features people are told to change, up to rounding."""
    size = np.abs(told)
    room = np.maximum(CHANGED * np.abs(x), 1e-12 * size.max(axis=-1, initial=0.0, keepdims=True))
    changed: npt.NDArray[np.bool_] = size > room
    return changed


def _overlap(a: npt.NDArray[np.bool_], b: npt.NDArray[np.bool_]) -> FloatArray:
    """Jaccard index over the last axis; two people who are told to change nothing agree."""
    union = (a | b).sum(axis=-1)
    overlap: FloatArray = np.where(union == 0, 1.0, (a & b).sum(axis=-1) / np.maximum(union, 1))
    return overlap


def _aggregate(found: _Draws) -> pd.DataFrame:
    """One row per person."""
    valid = np.isin(found.status, VALID)
    columns: dict[str, Any] = {
        "flips": found.flipped.sum(axis=1),
        "skipped": (found.status == Status.SKIPPED).sum(axis=1),
        "found": valid.sum(axis=1),
    }
    for name in MEASURES:
        columns[name] = _over_draws(getattr(found, name), lambda part: part.mean(axis=1))
    columns["distance_median"] = _over_draws(found.distance, lambda part: np.median(part, axis=1))
    columns["distance_p95"] = _over_draws(found.distance, lambda part: np.quantile(part, 0.95, axis=1))
    columns["distance_max"] = _over_draws(found.distance, lambda part: part.max(axis=1))
    columns["distance_std"] = _over_draws(
        found.distance, lambda part: part.std(axis=1, ddof=1) if part.shape[1] > 1 else np.full(len(part), np.nan)
    )
    columns["amplification_max"] = _over_draws(found.amplification, lambda part: part.max(axis=1))
    return pd.DataFrame(columns)


def _over_draws(values: FloatArray, statistic: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """A statistic of each row's numbers, NaN for a row without any: whole tables at once, odd rows one by one."""
    found = np.full(len(values), np.nan)
    missing = np.isnan(values)
    whole = ~missing.any(axis=1)
    if whole.any():
        found[whole] = statistic(values[whole])
    for row in np.flatnonzero(~whole & ~missing.all(axis=1)):
        found[row] = statistic(values[row][~missing[row]][None])[0]
    return found


def _half_width(people: pd.DataFrame) -> float:
    """Half the 95 % interval of the mean distance of these people, from the noise of the draws alone."""
    spread, count = people["distance_std"].to_numpy(), people["found"].to_numpy()
    known = np.isfinite(spread) & (count > 1)
    if not known.any():
        return np.nan
    return float(1.96 * np.sqrt((spread[known] ** 2 / count[known]).sum()) / known.sum())
