"""How far explanations moved: one row per person and per draw, summaries of them, and several measurements as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.explaining.targets import followed
from evenhand.markup import framed
from evenhand.stability.draws import MEASURES
from evenhand.stats import Interval, cluster_bootstrap
from evenhand.status import VALID, Status


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
    seed : int or tuple of int
        Repeats the measurement, as ``random_state=seed``; pooled folds may have had several.
    settled : bool
        False if ``draws="auto"`` ran into `max_draws` before the interval was narrow enough.
    half_width : float
        Half the width of the 95 % interval of the mean distance of these people, from the draws alone.
    """

    people: pd.DataFrame
    draws: int
    seed: int | tuple[int, ...]
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

        People are resampled, not draws: the draws of one person are not independent.  The interval of the 95th
        percentile takes about 70 people to be honest; with fewer it is too narrow, since nobody is past the largest.

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
            `floor` is the largest difference between two runs on the same person; `already_rate` the share of draws
            in which nothing had to change.  With ``keep="people"`` the unit is a person's mean over its draws, and the
            column `of` says so.
        """
        if measure not in MEASURES:
            raise ValueError(f"measure must be one of {', '.join(MEASURES)}; got {measure!r}.")
        units = self.people if self._table is None else self._table
        person = np.arange(len(self.people)) if self._person is None else self._person
        groups = self._groups(by, units, person)
        codes, names = pd.factorize(groups, use_na_sentinel=False)  # people without a value are a group as well
        rows = []
        for code in range(len(names)):
            chosen = np.flatnonzero(codes == code)
            rows.append(self._row(units.iloc[chosen], person[chosen], measure, confidence, seed))
        found = pd.DataFrame(rows, index=pd.Index(names))
        found.index.name = by if isinstance(by, str) else ("group" if by is not None else None)
        return found

    def _groups(self, by: Any, units: pd.DataFrame, person: npt.NDArray[np.int64]) -> pd.Series[Any]:
        if by is None:
            return pd.Series("all", index=units.index)
        if isinstance(by, str):
            if by not in units.columns:
                raise ValueError(f"There is no column {by!r} to group by; there are {', '.join(units.columns)}.")
            return units[by]
        if isinstance(by, pd.Series) and len(by) == len(self.people):
            by = followed(by, pd.Index(self.people["person"]), "by")
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
        # Who has no explanation was never perturbed.
        perturbed = part["input_distance"].notna()
        made = int(perturbed.sum() if kept else part.loc[perturbed, "draws"].sum())
        row["flip_rate"] = flips / made if made else np.nan
        row["skip_rate"] = skipped / made if made else np.nan
        already = (part["status"] == Status.ALREADY).mean() if kept else (part["already"].sum() / max(total, 1))
        row["already_rate"] = float(already) if total else np.nan
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
        return _together(
            [
                replace(
                    part,
                    people=_in_fold(part.people, fold),
                    _table=None if part._table is None else _in_fold(part._table, fold),
                )
                for fold, part in parts.items()
            ]
        )

    @classmethod
    def joined(cls, parts: Sequence[Instability]) -> Instability:
        """Parts of one table, measured one after the other with the same seed, as one measurement.

        Parameters
        ----------
        parts : sequence of Instability
            Of different people; perturbations that learn from data must have been fitted before.
        """
        if not parts:
            raise ValueError("There is nothing to join: the list is empty.")
        if len({part.seed for part in parts}) > 1:
            raise ValueError("Parts of one measurement have one seed; pool() is for different ones.")
        found = _together(parts)
        return replace(found, half_width=half_width(found.people))

    def __repr__(self) -> str:
        found = (self.people if self._table is None else self._table)["distance"].to_numpy()
        middle = f"median distance {np.nanmedian(found):.4g}" if np.isfinite(found).any() else "nothing to measure"
        return f"Instability({len(self.people)} people x {self.draws} draws: {middle}, seed {self.seed})"

    def _repr_html_(self) -> str:
        shown = ["median", "median_low", "median_high", "mean", "p95", "flip_rate", "not_found_rate", "floor"]
        return framed(repr(self), self.summary()[shown])


def _together(parts: Sequence[Instability]) -> Instability:
    kept = all(part._table is not None for part in parts)
    tables, rows, start = [], [np.zeros(0, dtype=np.int64)], 0
    for part in parts:
        if part._table is not None and part._person is not None:
            tables.append(part._table)
            rows.append(part._person + start)
        start += len(part.people)
    return Instability(
        pd.concat([part.people for part in parts], ignore_index=True),
        max(part.draws for part in parts),
        _one_seed([part.seed for part in parts]),
        all(part.settled for part in parts),
        _table=pd.concat(tables, ignore_index=True) if kept else None,
        _person=np.concatenate(rows) if kept else None,
    )


def _one_seed(seeds: list[int | tuple[int, ...]]) -> int | tuple[int, ...]:
    """The seed that all folds had, or all of them."""
    if len(set(seeds)) == 1:
        return seeds[0]
    return tuple(one for seed in seeds for one in (seed if isinstance(seed, tuple) else (seed,)))


def _in_fold(frame: pd.DataFrame, fold: Any) -> pd.DataFrame:
    return pd.concat([pd.Series([fold] * len(frame), name="fold", index=frame.index), frame], axis=1)


def half_width(people: pd.DataFrame) -> float:
    """Half the 95 % interval of the mean distance of these people, from the noise of the draws alone."""
    spread, count = people["distance_std"].to_numpy(), people["found"].to_numpy()
    known = np.isfinite(spread) & (count > 1)
    if not known.any():
        return np.nan
    return float(1.96 * np.sqrt((spread[known] ** 2 / count[known]).sum()) / known.sum())
