"""`audit`: from a model and people to everything that the report says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
import pandas as pd
from threadpoolctl import threadpool_limits

from evenhand.auditing.document import SCHEMA, Document, plain
from evenhand.auditing.document.measured import Stability, Statistic
from evenhand.auditing.errors import AuditError
from evenhand.auditing.everyone import Everyone, explain_everyone
from evenhand.auditing.findings import coverage, movement
from evenhand.auditing.findings.alike import Paired, alike_pairs_shown, pair_up
from evenhand.auditing.findings.audited import audited
from evenhand.auditing.findings.by_group import Grouped, compare_groups
from evenhand.auditing.findings.cards import card, least_stable
from evenhand.auditing.findings.certificates import certificates
from evenhand.auditing.findings.lookup import person, wanted_people
from evenhand.auditing.findings.remedies import remedies
from evenhand.auditing.findings.verdict import verdict
from evenhand.auditing.gates import Evidence, Judged, Situation, default_gates, judge_all
from evenhand.auditing.measures import Measures, measure, vary
from evenhand.auditing.options import Options
from evenhand.auditing.prepare import Prepared, Report, prepare
from evenhand.auditing.result import Audit
from evenhand.auditing.sources import rows_of
from evenhand.costs import L2
from evenhand.models.base import ModelError
from evenhand.settings import nearest
from evenhand.workers import backend


def audit(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    jobs: int | None = 1,
    cluster: str | None = None,
    progress: Report | None = None,
    about: dict[str, Any] | None = None,
    **options: Any,
) -> Audit:
    """Audit the explanations of a model: coverage, stability, alike pairs, groups, remedies, and a verdict.

    Parameters
    ----------
    model : fitted classifier
        Any that ``Closest`` explains; others are searched by ``Penalized``, a few people only.
    X : DataFrame or array
        People: pandas, polars or another frame that narwhals reads; sensitive columns may be among its columns.
    y : array, optional
        Their labels, instead of ``label``; the model's predictions where there are none.
    jobs, cluster
        Processes, or the address of a Dask scheduler; the result does not depend on it.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.
    about : dict, optional
        Names and hashes of the files that model and people come from, for the report.
    features : list of str, optional
        The model's inputs; its own names, or all columns that are nothing else.
    label, id : str, optional
        Columns with labels, and with what tells people apart; rows are counted from 0 if there is none.
    sensitive : list of str, or DataFrame, optional
        Columns to compare groups by; used by the model only if it was fitted with them.
    target : label, optional
        The decision that people want; who has it needs no explanation.  The cheapest other label if left out.
    cost : {"l1", "l2"}, L1 or L2
        What a change costs, and how far people are apart; by default in units of each column's standard deviation.
    methods : list of str, or dict from name to method
        The one in use first, then alternatives: "closest", "plausible", "steady", "penalized", or any object with
        ``fit(model, X, y)``.
    density : HighDensity, optional
        What counts as plausible.
    actionable : Actionable, optional
        What people can change.
    perturbations : dict from name to perturbation, optional
        The one for the figures first; ``Relative(Gaussian(0.1))`` and rounding to the recorded precision by default.
    on_flip : {"skip", "swap", "keep"}
        What happens to variations that get another decision; they are counted in any case.
    draws : int
        Variations per person; or
    tolerance : float, optional
        as many as it takes (up to `max_draws`) to know the mean distance to within this part of it.
    people : int
        People, chosen at random, who are perturbed.
    explain : int, optional
        People, chosen at random, who are explained; everybody if left out.
    neighbours, within, apart, pair_people
        Alike pairs: nearest neighbours that each person is compared with, how close they have to be, how far their
        explanations may be apart, and how many people, chosen at random, are compared.
    lookup : int or list of ids
        People who can be looked up in the page.
    gates : list of str, optional
        Such as ``"median_amplification <= 1.2"``.
    redact : bool
        Leave ids and values of people out of everything that is written.
    seed : int
        Of everything random.

    Returns
    -------
    Audit

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> found = audit(LogisticRegression(max_iter=1000).fit(X, y), X, y, methods=["closest"], draws=4)
    >>> found.gates["gate"].tolist()[:2]
    ['not_found_rate <= 0.01', 'median_amplification <= 2']
    """
    strange = [name for name in options if name not in Options.__dataclass_fields__]
    if strange:
        known = list(Options.__dataclass_fields__)
        raise AuditError(
            f"There is no option {strange[0]!r}.{nearest(strange[0], known)} Possible are {', '.join(known)}."
        )
    chosen = Options(**options)
    tell: Report = progress or (lambda *_: None)
    tell("preparing", 0, 0)
    with backend(jobs, cluster), _its_own_words():
        # Sums of several threads are added up in another order, in the last digit; and a model that finds workers to
        # hand its own work to starts them again for every row that it refuses.
        with threadpool_limits(1), joblib.parallel_config(backend="sequential"):
            prepared = prepare(model, X, y, chosen)
        everyone = explain_everyone(prepared, tell)
        measures = measure(prepared, everyone, tell)
        pairs = pair_up(prepared, everyone, tell)
        groups = compare_groups(prepared, everyone, measures, tell)
        document, evidence = _document(prepared, everyone, measures, pairs, groups, about or {}, tell)
    instability = {f"{a}, {b}": measured for (a, b), measured in measures.instability.items()}
    return Audit(plain(document), instability, evidence)


@contextmanager
def _its_own_words() -> Iterator[None]:
    """What a model fails with while people are explained, here or in a worker, is a sentence."""
    try:
        yield
    except ModelError as error:
        raise AuditError(
            f"{error} It happened while people were explained, with numbers that the table may not have."
        ) from error


def _document(
    prepared: Prepared,
    everyone: Everyone,
    measures: Measures,
    pairs: Paired,
    groups: Grouped,
    about: Mapping[str, Any],
    tell: Report,
) -> tuple[Document, Evidence]:
    setup, options = prepared.setup, prepared.options
    conditions = options.parsed_gates()
    if conditions is None:
        euclidean = isinstance(setup.distance, L2)
        conditions = default_gates(
            Situation(
                groups=bool(groups.rows) and prepared.target is not None,
                certificates=setup.in_use in measures.certificates and euclidean,
                euclidean=euclidean,
            )
        )
    moved = movement.stability(prepared, measures)
    moved_in_use = [row for row in moved if row.method == setup.in_use]
    evidence = _evidence(prepared, everyone, measures, moved_in_use, pairs, groups)
    results = judge_all(conditions, evidence)
    perturbation = next(iter(setup.perturbations))
    about_first = [condition for condition in conditions if condition.argument in (None, perturbation)]
    limit = next((condition.limit for condition in about_first if condition.name == "median_amplification"), None)
    radii = [float(one.argument) for one in conditions if one.name == "certified_share" and one.argument is not None]

    rows = wanted_people(prepared, everyone, measures, pairs.rows)
    frame = rows_of(prepared.source, prepared.features, rows)
    frame.index = prepared.survey.ids[rows]
    varied = vary(prepared, frame, setup.view.classes[everyone.label[rows]], measures.draws, tell)
    place = {int(row): i for i, row in enumerate(rows)}
    gone = frame.isna().to_numpy()
    cards = [
        card(prepared, measures, int(i), varied[setup.in_use], at := place[int(measures.rows[i])], gone[at])
        for i in least_stable(measures, setup.in_use, perturbation)
    ]
    lookup = []
    if not options.redact:
        lookup = [person(prepared, everyone, measures, row, at, varied, limit, gone[at]) for row, at in place.items()]
    missing = everyone.needed & ~everyone.found
    unanswered = prepared.order[missing[prepared.order]][: coverage.EXAMINED]
    setup.notes.extend(_blocked(prepared, unanswered) + coverage.flips_compared(prepared, measures))
    document = Document(
        schema=SCHEMA,
        verdict=verdict(results, moved_in_use, pairs.pairs, groups.rows),
        gates=[judged.row() for judged in results],
        audited=audited(prepared, everyone, measures, conditions, about),
        notes=setup.notes,
        coverage=coverage.coverage(prepared, everyone, measures),
        stability=moved,
        comparisons=movement.comparisons(prepared, measures),
        certificates=certificates(measures, radii),
        least_stable=cards,
        pairs=alike_pairs_shown(prepared, everyone, pairs, varied[setup.in_use], place, gone),
        groups=groups.rows,
        remedies=remedies(prepared, measures, *_remedied(results, perturbation)),
        lookup=lookup,
    )
    return document, evidence


def _evidence(
    prepared: Prepared,
    everyone: Everyone,
    measures: Measures,
    moved: list[Stability],
    pairs: Paired,
    groups: Grouped,
) -> Evidence:
    """What gates are judged on: the method in use."""
    in_use = prepared.setup.in_use
    people = pd.DataFrame(
        {
            "needed": everyone.needed,
            "found": everyone.found,
            "status": everyone.status,
            "cost": everyone.cost,
            "boundary": everyone.boundary,
        },
        index=prepared.survey.ids,
    )
    return Evidence(
        people=people,
        stability=moved,
        certificates=measures.certificates.get(in_use),
        not_certified=measures.not_certified.get(in_use, "Nobody could be certified."),
        pairs=pairs.pairs,
        no_pairs=pairs.why,
        groups=groups.columns,
        target=prepared.target,
        has_boundary=prepared.setup.free is not None,
        notes=tuple(prepared.setup.notes),
    )


def _remedied(results: list[Judged], perturbation: str) -> tuple[Statistic, float | None, str]:
    """What remedies are compared by: the median or the tail, its limit, and the perturbation that decided it."""
    by_name = {judged.condition.name: judged for judged in reversed(results)}
    median, tail = (by_name.get(f"{name}_amplification") for name in ("median", "p95"))
    if tail is not None and tail.result != "pass" and (median is None or median.result == "pass"):
        return "p95", tail.condition.limit, tail.of or perturbation
    if median is None:
        return "median", None, perturbation
    deciding = (median.of or perturbation) if median.result != "pass" else perturbation
    return "median", median.condition.limit, deciding


def _blocked(prepared: Prepared, rows: npt.NDArray[np.intp]) -> list[str]:
    if not len(rows):
        return []
    return coverage.blockers(prepared, rows_of(prepared.source, prepared.features, rows))
