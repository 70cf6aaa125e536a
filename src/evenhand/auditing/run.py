"""`audit`: from a model and people to everything that the report says."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import fields
from importlib import metadata
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from evenhand.auditing.errors import AuditError
from evenhand.auditing.everyone import Everyone, explain_everyone
from evenhand.auditing.findings import certificates, coverage, movement, remedies
from evenhand.auditing.findings.alike import Paired, pair_section, paired
from evenhand.auditing.findings.by_group import Grouped, group_sections
from evenhand.auditing.findings.cards import card, least_stable
from evenhand.auditing.findings.lookup import person, wanted_people
from evenhand.auditing.findings.verdict import judged, verdict
from evenhand.auditing.fitting import say
from evenhand.auditing.gates import Gate, Judged
from evenhand.auditing.measures import Measures, measure, vary
from evenhand.auditing.options import Options, default_gates
from evenhand.auditing.plain import plain
from evenhand.auditing.prepare import Prepared, Report, prepare
from evenhand.auditing.result import Audit
from evenhand.auditing.sources import rows_of
from evenhand.costs import L2
from evenhand.parallel import backend
from evenhand.settings import nearest

SCHEMA = "evenhand-audit/1"
VERSIONS = ("numpy", "scipy", "scikit-learn", "pandas", "numba", "clarabel", "daqp")


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
    with backend(jobs, cluster):
        with threadpool_limits(1):  # sums of several threads are added up in another order, in the last digit
            prepared = prepare(model, X, y, chosen)
        everyone = explain_everyone(prepared, tell)
        measures = measure(prepared, everyone, tell)
        pairs = paired(prepared, everyone, tell)
        groups = group_sections(prepared, everyone, measures, tell)
        return _assembled(prepared, everyone, measures, pairs, groups, about or {}, tell)


def _assembled(
    prepared: Prepared,
    everyone: Everyone,
    measures: Measures,
    pairs: Paired,
    groups: Grouped,
    about: dict[str, Any],
    tell: Report,
) -> Audit:
    setup, options = prepared.setup, prepared.options
    gates = options.parsed_gates()
    if gates is None:
        gates = default_gates(
            groups=bool(groups.sections) and prepared.target is not None,
            certificates=setup.in_use in measures.certificates and isinstance(setup.distance, L2),
            limit=1.2 if isinstance(setup.distance, L2) else 2.0,
        )
    moved = movement.stability(prepared, measures)
    results = judged(gates, prepared, everyone, measures, moved, pairs, groups)
    noise = next(iter(setup.perturbations))
    about_noise = [gate for gate in gates if gate.argument in (None, noise)]
    limit = next((gate.limit for gate in about_noise if gate.name == "median_amplification"), None)
    radii = [float(gate.argument) for gate in gates if gate.name == "certified_share" and gate.argument is not None]

    worst = [] if pairs.pairs is None else pairs.rows
    wanted = wanted_people(prepared, everyone, measures, worst)
    frame = rows_of(prepared.source, prepared.features, wanted)
    frame.index = prepared.survey.ids[wanted]
    varied = vary(prepared, frame, setup.view.classes[everyone.label[wanted]], measures.draws, tell)
    place = {int(row): i for i, row in enumerate(wanted)}
    gone = frame.isna().to_numpy()
    cards = [
        card(prepared, measures, int(i), varied[setup.in_use], at := place[int(measures.rows[i])], gone[at])
        for i in least_stable(measures, setup.in_use, noise)
    ]
    lookup = []
    if not options.redact:
        lookup = [person(prepared, everyone, measures, row, at, varied, limit, gone[at]) for row, at in place.items()]
    missing = everyone.needed & ~everyone.found
    unanswered = prepared.order[missing[prepared.order]][: coverage.EXAMINED]
    setup.notes.extend(_blocked(prepared, unanswered) + coverage.flips_compared(prepared, measures))

    found = {
        "schema": SCHEMA,
        "verdict": verdict(results, prepared, moved, pairs, groups),
        "gates": [_gate(one) for one in results],
        "audited": _audited(prepared, everyone, measures, gates, about),
        "notes": setup.notes,
        "coverage": coverage.coverage(prepared, everyone, measures),
        "stability": moved,
        "comparisons": movement.comparisons(prepared, measures),
        "certificates": certificates.certificates(measures, radii),
        "least_stable": cards,
        "pairs": pair_section(prepared, everyone, pairs, varied[setup.in_use], place, gone),
        "groups": groups.sections,
        "remedies": remedies.remedies(prepared, measures, *_remedied(results, noise)),
        "lookup": lookup,
    }
    return Audit(plain(found), {f"{a}, {b}": one for (a, b), one in measures.instability.items()})


def _remedied(results: list[Judged], noise: str) -> tuple[str, float | None, str]:
    """What remedies are compared by: the median or the tail, its limit, and the perturbation that decided it."""
    by_name = {one.gate.name: one for one in reversed(results)}
    median, tail = (by_name.get(f"{name}_amplification") for name in ("median", "p95"))
    if tail is not None and tail.result != "pass" and (median is None or median.result == "pass"):
        return "p95", tail.gate.limit, tail.of or noise
    if median is None:
        return "median", None, noise
    return "median", median.gate.limit, (median.of or noise) if median.result != "pass" else noise


def _blocked(prepared: Prepared, rows: Any) -> list[str]:
    if not len(rows):
        return []
    return coverage.blockers(prepared, rows_of(prepared.source, prepared.features, rows))


def _gate(one: Judged) -> dict[str, Any]:
    gate, known = one.gate, one.gate.known
    return {
        "gate": gate.text,
        "name": gate.name,
        "argument": gate.argument,
        "comparison": gate.comparison,
        "limit": gate.limit,
        "result": one.result,
        "interval": one.interval,
        "unit": known.unit,
        "title": known.title,
        "question": known.question,
        "section": known.section,
        "of": one.of,
        "why": one.why,
    }


def _audited(
    prepared: Prepared, everyone: Everyone, measures: Measures, gates: list[Gate], about: dict[str, Any]
) -> dict[str, Any]:
    setup, options, source = prepared.setup, prepared.options, prepared.source
    labels, counts = np.unique(everyone.present[everyone.asked], return_counts=True)
    settings = {
        "cost": str(options.cost),
        "on_flip": options.on_flip,
        "draws": str(measures.draws),
        "people": str(len(measures.rows)),
        "neighbours": str(options.neighbours),
        "within": "median distance to the nearest neighbour" if options.within is None else str(options.within),
        "apart": "twice within" if options.apart is None else str(options.apart),
        "density": f"HighDensity(quantile={options.density.quantile:g})",
        "actionable": "everything" if options.actionable is None else _limits(options.actionable),
        "gates": "; ".join(gate.text for gate in gates),
        "seed": str(options.seed),
    }
    asked = {
        f.name: say(getattr(options, f.name))
        for f in fields(options)
        if not hasattr(getattr(options, f.name), "columns")
    }
    text = json.dumps([settings, asked, prepared.features, setup.described, list(setup.explainers)], sort_keys=True)
    model = {"name": type(prepared.setup.view.model).__name__, "kind": type(setup.view.model).__name__, "sha256": None}
    return {
        "evenhand": metadata.version("evenhand"),
        "model": model | about.get("model", {}),
        "data": {
            "name": source.name,
            "rows": source.rows,
            "columns": len(prepared.features),
            "sha256": source.sha256(),
        },
        "features": prepared.features,
        "label": options.label,
        "sensitive": options.sensitive_names(),
        "target": None if prepared.target is None else str(prepared.target),
        "explained": int(everyone.needed.sum()),
        "already": int(everyone.already.sum()),
        "decisions": {
            "no prediction" if k < 0 else str(setup.view.classes[k]): int(n)
            for k, n in zip(labels, counts, strict=True)
        },
        "command": about.get("command", "evenhand audit audit.toml"),
        "in_use": setup.in_use,
        "methods": {name: type(one).__name__ for name, one in setup.explainers.items()},
        "perturbations": {name: setup.described[name] for name in setup.perturbations},
        "draws": measures.draws,
        "people": len(measures.rows),
        "seed": options.seed,
        "cost": str(options.cost),
        "unit": setup.unit,
        "versions": {"python": platform.python_version()} | {name: metadata.version(name) for name in VERSIONS},
        "settings": settings,
        "settings_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "redacted": options.redact,
    }


def _limits(actionable: Any) -> str:
    parts = [
        f"{kind}: {', '.join(map(str, getattr(actionable, kind)))}"
        for kind in ("immutable", "increase", "decrease")
        if getattr(actionable, kind)
    ]
    parts += [f"{name} from {low} to {high}" for name, (low, high) in actionable.bounds.items()]
    parts += [f"{name} one of {', '.join(map(str, levels))}" for name, levels in actionable.levels.items()]
    return "; ".join([*parts, *map(str, actionable.rules)]) or "everything"
