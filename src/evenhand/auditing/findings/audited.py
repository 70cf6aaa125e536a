"""What was audited and how: enough to do it again."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib import metadata
from typing import Any

import numpy as np

from evenhand.auditing.document import Audited, DataFile, ModelSource
from evenhand.auditing.everyone import Everyone
from evenhand.auditing.fitting import say
from evenhand.auditing.gates import Condition
from evenhand.auditing.measures import Measures
from evenhand.auditing.prepare import Prepared

VERSIONS = ("numpy", "scipy", "scikit-learn", "pandas", "numba", "clarabel", "daqp")


def audited(
    prepared: Prepared,
    everyone: Everyone,
    measures: Measures,
    conditions: Sequence[Condition],
    about: Mapping[str, Any],
) -> Audited:
    """Names, hashes, versions and settings; `about` names the files that model and people come from."""
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
        "gates": "; ".join(condition.text for condition in conditions),
        "seed": str(options.seed),
    }
    asked = {
        f.name: say(getattr(options, f.name))
        for f in fields(options)
        if not hasattr(getattr(options, f.name), "columns")
    }
    text = json.dumps([settings, asked, prepared.features, setup.described, list(setup.explainers)], sort_keys=True)
    kind = type(setup.view.model).__name__
    model = {"name": kind, "kind": kind, "sha256": None} | about.get("model", {})
    return Audited(
        evenhand=metadata.version("evenhand"),
        model=ModelSource(**model),
        data=DataFile(source.name, source.rows, len(prepared.features), source.sha256()),
        features=prepared.features,
        label=options.label,
        sensitive=options.sensitive_names(),
        target=None if prepared.target is None else str(prepared.target),
        explained=int(everyone.needed.sum()),
        already=int(everyone.already.sum()),
        decisions={
            "no prediction" if k < 0 else str(setup.view.classes[k]): int(n)
            for k, n in zip(labels, counts, strict=True)
        },
        command=about.get("command", "evenhand audit audit.toml"),
        in_use=setup.in_use,
        methods={name: type(explainer).__name__ for name, explainer in setup.explainers.items()},
        perturbations={name: setup.described[name] for name in setup.perturbations},
        draws=measures.draws,
        people=len(measures.rows),
        seed=options.seed,
        cost=str(options.cost),
        unit=setup.unit,
        versions={"python": platform.python_version()} | {name: metadata.version(name) for name in VERSIONS},
        settings=settings,
        settings_sha256=hashlib.sha256(text.encode()).hexdigest(),
        redacted=options.redact,
    )


def _limits(actionable: Any) -> str:
    parts = [
        f"{kind}: {', '.join(map(str, getattr(actionable, kind)))}"
        for kind in ("immutable", "increase", "decrease")
        if getattr(actionable, kind)
    ]
    parts += [f"{name} from {low} to {high}" for name, (low, high) in actionable.bounds.items()]
    parts += [f"{name} one of {', '.join(map(str, levels))}" for name, levels in actionable.levels.items()]
    return "; ".join([*parts, *map(str, actionable.rules)]) or "everything"
