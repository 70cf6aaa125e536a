"""What an audit could have found, as the page gets it: drawn from a seed, in the shape of audit.json."""

from __future__ import annotations

from typing import Any

import numpy as np

METHODS = {"closest": (3.4, 0.62), "plausible": (1.7, 0.5), "steady": (0.77, 0.2)}
COSTS = {"closest": 0.62, "plausible": 0.81, "steady": 0.88}
LEVELS = ["renting", "owning", "other"]
HOSTILE = {
    "savings": "<script>alert(1)</script>",
    "loan": 'a.b["c"][\'d\'] & </script>\n"q" \u2028 ${x} {{ 7*7 }}',
    "woman": '<img src=x onerror="alert(2)">',
    "owning": "</script><script>alert(3)</script>",
    "closest text": "<b>projection</b> & 'more'",
}


def audit_content(
    seed: int = 0, *, redacted: bool = False, empty: bool = False, hostile: bool = False, people: int = 412
) -> dict[str, Any]:
    """The content of a page; `empty` leaves out all that may be missing, `hostile` has names that are markup."""
    rng = np.random.default_rng(seed)
    names = HOSTILE if hostile else {}
    n = 0 if empty else people
    amplification = {m: np.exp(rng.normal(np.log(at), spread, n)) for m, (at, spread) in METHODS.items()}
    cost = {m: at * np.exp(rng.normal(0, 0.25, n)) for m, at in COSTS.items()}
    lookup = [] if empty else [_person(rng, str(i), names) for i in _ids(rng, 24)]
    content: dict[str, Any] = {
        "schema": "evenhand-audit/1",
        "verdict": _verdict(empty),
        "gates": [],
        "audited": _audited(n, names, redacted),
        "notes": []
        if empty
        else ["412 of 1,000 people need an explanation; all of them were used.", "Groups under 30 decide no gate."],
        "coverage": _coverage(rng, n),
        "stability": [] if empty else _stability(rng, amplification),
        "comparisons": []
        if empty
        else [
            {
                "a": "closest",
                "b": other,
                "perturbation": "noise",
                "sentence": f"For a person, {other} moves less than closest: by {gap}× in the median (p < 0.001).",
            }
            for other, gap in (("plausible", 1.6), ("steady", 2.5))
        ],
        "certificates": _certificates(rng, n),
        "least_stable": [] if empty else _cards(rng, lookup, names),
        "pairs": None if empty else _pairs(rng, names),
        "groups": [] if empty else _groups(rng, cost["closest"], amplification["closest"], names),
        "remedies": [] if empty else _remedies(),
        "lookup": lookup,
    }
    content["gates"] = [] if empty else _gates(content)
    return _redacted(content) if redacted else content


def interval(values: np.ndarray, of: Any = np.median, width: float = 1.25) -> dict[str, Any]:
    """A value with its interval, near enough to a real one."""
    if not len(values):
        return {"value": None, "low": None, "high": None}
    value, half = float(of(values)), width * 1.96 * float(np.std(values)) / np.sqrt(len(values))
    return {"value": value, "low": max(value - half, 0.9 * value if value > 0 else value - half), "high": value + half}


def share(count: int, of: int) -> dict[str, float]:
    p, z = count / of, 1.96
    middle, half = (p + z * z / (2 * of)), z * np.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    return {
        "value": p,
        "low": float((middle - half) / (1 + z * z / of)),
        "high": float((middle + half) / (1 + z * z / of)),
    }


def _ids(rng: np.random.Generator, n: int) -> list[int]:
    return [417, *(int(i) for i in rng.choice(np.arange(500, 1000), n - 1, replace=False))]


def _verdict(empty: bool) -> dict[str, Any]:
    if empty:
        return {
            "result": "undecided",
            "exit_code": 3,
            "passed": 0,
            "failed": 0,
            "undecided": 0,
            "title": "Nothing could be measured",
            "sentences": ["Nobody in this file needs an explanation."],
        }
    return {
        "result": "failed",
        "exit_code": 1,
        "passed": 3,
        "failed": 2,
        "undecided": 1,
        "title": "People who are almost alike do not yet get almost the same explanation",
        "sentences": [
            "When a declined applicant’s data change a little, the explanation they get changes 3.4 times as much "
            "(95% interval 3.1 to 3.7; the limit is 2.0).",
            "Switching from closest to steady would pass all gates on stability, at 42% more cost.",
        ],
    }


def _gate(
    gate: str, result: str, found: dict[str, Any], about: tuple[str, str, str, str], **more: Any
) -> dict[str, Any]:
    name, comparison, limit = gate.split(" ")
    argument = name.split("(")[1].rstrip(")") if "(" in name else None
    return (
        {
            "gate": gate,
            "name": name.split("(")[0],
            "argument": float(argument) if argument else None,
            "comparison": comparison,
            "limit": float(limit),
            "result": result,
            "interval": found,
            "of": None,
            "why": None,
        }
        | dict(zip(("unit", "title", "question", "section"), about, strict=True))
        | more
    )


def _gates(content: dict[str, Any]) -> list[dict[str, Any]]:
    closest, curve = content["stability"][0], content["certificates"]["curves"][0]
    at = curve["radius"].index(0.05)
    return [
        _gate(
            "not_found_rate <= 0.05",
            "pass",
            share(2, closest["people"]),
            ("share", "Coverage", "For how many people is there no explanation at all?", "coverage"),
        ),
        _gate(
            "median_amplification <= 2.0",
            "fail",
            closest["amplification"]["median"],
            ("times", "Typical stability", "How much further does the explanation move than the person?", "stability"),
            of="noise",
        ),
        _gate(
            "p95_amplification <= 10.0",
            "undecided",
            closest["amplification"]["p95"],
            ("times", "Worst-case stability", "The same, exceeded by one variation in twenty", "stability"),
            of="noise",
            why="The interval lies on both sides of the limit.",
        ),
        _gate(
            "certified_share(0.05) >= 0.4",
            "pass",
            {"value": curve["share"][at], "low": curve["low"][at], "high": curve["high"][at]},
            ("share", "Certified share", "For how many is a stable answer proven within the radius?", "stability"),
        ),
        _gate(
            "pair_difference_rate <= 0.05",
            "fail",
            share(53, 416),
            ("share", "Alike pairs", "How many pairs of similar people are told to change different things?", "pairs"),
        ),
        _gate(
            "group_cost_gap <= 0.25",
            "pass",
            {"value": 0.11, "low": 0.04, "high": 0.18},
            ("cost", "Group gap in cost", "Largest difference in typical cost between two groups", "groups"),
            of="sex: woman, man",
        ),
    ]


def _audited(n: int, names: dict[str, str], redacted: bool) -> dict[str, Any]:
    return {
        "evenhand": "0.1.0",
        "model": {"name": "credit_rf.joblib", "kind": "RandomForestClassifier, 20 trees", "sha256": "9f2c" * 16},
        "data": {"name": "applicants.csv", "rows": 1000, "columns": 8, "sha256": "07be" * 16},
        "features": [names.get(c, c) for c in ("age", "income", "savings", "loan", "term", "housing")],
        "label": "decision",
        "sensitive": ["sex", "housing"],
        "target": "granted",
        "explained": n,
        "already": 1000 - n,
        "decisions": {"declined": n, "granted": 1000 - n},
        "command": "evenhand audit audit.toml",
        "in_use": "closest",
        "methods": {
            "closest": names.get("closest text", "the nearest change, by projection"),
            "plausible": "the nearest change among plausible people",
            "steady": "the nearest point of one convex set",
        },
        "perturbations": {"noise": "Relative(Gaussian(0.1))", "missing": "Masked(1)"},
        "draws": 20,
        "people": 2000,
        "seed": 20260114,
        "cost": "l2",
        "unit": "SD",
        "versions": {"python": "3.11.2", "numpy": "2.1.0", "scikit-learn": "1.6.0"},
        "settings": {"pairs.neighbours": "3", "pairs.within": "0.4", "gates": "6"},
        "settings_sha256": "e1a4" * 16,
        "redacted": redacted,
    }


def _coverage(rng: np.random.Generator, n: int) -> dict[str, Any]:
    if not n:
        return {"people": [], "reasons": [], "draws": []}
    missing = {"closest": 2, "plausible": 21, "steady": 9}
    draws = []
    for perturbation, flips in (("noise", 0.059), ("missing", 0.12)):
        for method, lost in missing.items():
            total, not_found = 20 * n, 9 * lost + int(rng.integers(5, 20))
            flipped = int(flips * total)
            draws.append(
                {
                    "method": method,
                    "perturbation": perturbation,
                    "draws": total,
                    "compared": total - flipped - not_found,
                }
                | {"flipped": flipped, "not_found": not_found}
            )
    return {
        "people": [
            {"method": m, "people": n, "found": n - lost, "already": 0, "not_found": lost}
            for m, lost in missing.items()
        ],
        "reasons": [
            {
                "reason": "Nothing that may change would change the decision",
                "counts": {"closest": 2, "plausible": 8, "steady": 6},
            },
            {"reason": "No plausible person is near enough", "counts": {"plausible": 13, "steady": 3}},
        ],
        "draws": draws,
    }


def _stability(rng: np.random.Generator, amplification: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    found = []
    for perturbation, times in (("noise", 1.0), ("missing", 1.4)):
        for method, base in amplification.items():
            values = base * times * np.exp(rng.normal(0, 0.05, len(base)))
            edges = np.exp2(np.arange(np.floor(np.log2(values.min()) * 4), np.ceil(np.log2(values.max()) * 4) + 1) / 4)
            counts, _ = np.histogram(values, edges)
            distance = 0.12 * values
            found.append(
                {
                    "method": method,
                    "perturbation": perturbation,
                    "people": len(values),
                    "draws": 20 * len(values),
                    "amplification": _three(values),
                    "distance": _three(distance),
                    "flip_rate": 0.059 * times,
                    "flip_interval": share(int(0.059 * times * 8240), 8240),
                    "not_found_rate": 0.01,
                    "floor": 0.001,
                    "histogram": {"edges": edges.tolist(), "counts": counts.tolist()},
                }
            )
    return found


def _three(values: np.ndarray) -> dict[str, Any]:
    return {
        "median": interval(values),
        "p95": interval(values, lambda v: np.quantile(v, 0.95), 4),
        "mean": interval(values, np.mean),
    }


def _certificates(rng: np.random.Generator, n: int) -> dict[str, Any]:
    if not n:
        return {
            "curves": [],
            "not_available": {"plausible": "A certificate needs a region, which this method has not."},
        }
    radius = np.arange(31) / 100
    curves = []
    for method, at in (("closest", 0.075), ("steady", 0.2)):
        reach = at * rng.weibull(1.3 if method == "closest" else 3.0, n)
        shares = [share(int((reach >= r).sum()), n) for r in radius]
        curves.append(
            {
                "method": method,
                "statement": "the explanation names the same changes",
                "people": n,
                "radius": radius.tolist(),
            }
            | {
                "share": [s["value"] for s in shares],
                "low": [s["low"] for s in shares],
                "high": [s["high"] for s in shares],
            }
        )
    return {"curves": curves, "not_available": {"plausible": "Its region is not convex, so no radius is proven."}}


def _facts(rng: np.random.Generator, names: dict[str, str]) -> list[list[str]]:
    income, savings, loan = (int(v) for v in rng.integers([1500, 90, 3000], [3500, 2500, 15000]))
    facts = [
        ["age", str(rng.integers(19, 70))],
        ["income", f"{income:,}"],
        ["savings", f"{savings:,}"],
        ["loan", f"{loan:,}"],
        ["term", str(int(rng.choice([18, 24, 36, 48])))],
        ["housing", str(rng.choice(LEVELS))],
    ]
    return [[names.get(c, c), names.get(v, v)] for c, v in facts]


def _told(column: str, before: str, after: str, tag: str | None = None) -> dict[str, Any]:
    if before in LEVELS or not before.replace(",", "").isdigit():
        way = "to"
    else:
        way = "up" if int(after.replace(",", "")) > int(before.replace(",", "")) else "down"
    return {"column": column, "before": before, "after": after, "value": None, "way": way, "tag": tag}


def _changed(
    rng: np.random.Generator, facts: list[list[str]], names: dict[str, str], which: list[int], tag: str | None = None
) -> list[dict[str, Any]]:
    told = []
    for at in which:
        column, value = facts[at]
        if at == 5:
            after = names.get("owning", "owning") if value != names.get("owning", "owning") else "renting"
        else:
            number = int(value.replace(",", ""))
            after = (
                f"{max(int(number * float(rng.choice([0.7, 1.4]))), number + 1):,}"
                if at < 3
                else f"{int(number * 0.7):,}"
            )
        told.append(_told(column, value, after, tag))
    return told


def _person(rng: np.random.Generator, name: str, names: dict[str, str]) -> dict[str, Any]:
    facts = _facts(rng, names)
    stable = bool(rng.random() < 0.4) and name != "417"
    methods, points = [], {}
    for method, (at, spread) in METHODS.items():
        found = not (method == "plausible" and rng.random() < 0.15)
        amplification = float(np.exp(rng.normal(np.log(at * (0.4 if stable else 2.0)), spread)))
        methods.append(
            {
                "method": method,
                "status": "optimal" if found else "missing",
                "reason": "" if found else "No plausible person is near enough.",
                "told": _changed(rng, facts, names, [2] if method == "closest" else [2, 5]) if found else [],
                "cost": float(COSTS[method] * np.exp(rng.normal(0, 0.2))) if found else None,
                "gap": float(abs(rng.normal(0, 1e-6))) if found and method == "plausible" else 0.0 if found else None,
                "amplification": amplification if found else None,
                "certificate": None
                if method == "plausible"
                else {
                    "stability_radius": float(rng.uniform(0, 0.2)),
                    "label_radius": float(rng.uniform(0.2, 0.5)),
                    "text": f"Proven up to a change of {rng.uniform(0.01, 0.2):.2f} SD.",
                },
            }
        )
        if found:
            centre = np.array([rng.uniform(200, 1400), 1.0])
            cloud = np.column_stack(
                [rng.normal(centre[0], 60 * spread, 20), rng.choice([0, 1, 2], 20, p=[0.2, 0.7, 0.1])]
            )
            points[method] = {"at": centre.round(1).tolist(), "draws": cloud.round(1).tolist()}
    levels = [names.get(level, level) for level in LEVELS]
    return {
        "id": name,
        "decision": "declined",
        "target": "granted",
        "title": "This explanation is stable." if stable else "This explanation is not stable.",
        "sentence": f"With closest, the explanation moves {methods[0]['amplification']:.1f} times as far as they do.",
        "facts": facts,
        "methods": methods,
        "cloud": {
            "x": {"column": facts[2][0], "levels": None},
            "y": {"column": "housing", "levels": levels},
            "points": points,
        }
        if rng.random() < 0.8 or name == "417"
        else {"x": {"column": facts[2][0], "levels": None}, "y": None, "points": points},
    }


def _cards(rng: np.random.Generator, lookup: list[dict[str, Any]], names: dict[str, str]) -> list[dict[str, Any]]:
    found = []
    for person in sorted(lookup, key=lambda one: -one["methods"][0]["amplification"])[:10]:
        worst = person["methods"][0]["amplification"]
        facts, at = person["facts"], int(rng.choice([1, 2, 3]))
        moved = f"{int(facts[at][1].replace(',', '')) + 24:,}"
        both = _changed(rng, facts, names, [5], "same for both")
        other = int(rng.choice([1, 3, 4]))
        opposite = rng.random() < 0.3
        told = _changed(rng, facts, names, [2], "opposite direction" if opposite else "only this person is told this")
        if opposite:
            reply = [told[0] | {"way": "down", "after": "10"}]
        else:
            reply = _changed(rng, facts, names, [other], "only the variation is told this")
        found.append(
            {
                "id": person["id"],
                "perturbation": "noise",
                "amplification": float(worst),
                "low": float(worst * 0.6),
                "high": float(worst * 1.4),
                "draws": 20,
                "facts": [[c, v, i == at] for i, (c, v) in enumerate(facts)],
                "variation": [[facts[at][0], facts[at][1], moved]],
                "by": 0.01,
                "moves": float(worst) * 0.01,
                "told": told + both,
                "variation_told": reply + both,
                "sentence": f"A difference of 24 in {facts[at][0]} changes what is asked for.",
            }
        )
    return found


def _pairs(rng: np.random.Generator, names: dict[str, str]) -> dict[str, Any]:
    distance = rng.uniform(0.03, 0.4, 416)
    moved = distance * np.exp(rng.normal(0.6, 0.7, 416))
    different = np.isin(np.arange(416), rng.choice(np.flatnonzero(moved > 0.3), 53, replace=False))
    worst = []
    for _ in range(10):
        facts = _facts(rng, names)
        first, second = _changed(rng, facts, names, [2]), _changed(rng, facts, names, [4])
        apart = float(rng.uniform(0.1, 0.4))
        worst.append(
            {
                "first": str(rng.integers(2000, 3000)),
                "second": str(rng.integers(3000, 4000)),
                "distance": apart,
                "explanation_distance": apart * 10,
                "change_distance": 0.9,
                "cost_gap": 0.2,
                "amplification": float(rng.uniform(8, 15)),
                "differ": [[facts[1][0], facts[1][1], "2,430"], [facts[5][0], facts[5][1], "other"]],
                "first_told": [t | {"tag": "only this person is told this"} for t in first],
                "second_told": [t | {"tag": "only the variation is told this"} for t in second],
            }
        )
    return {
        "people": 412,
        "neighbours": 3,
        "within": 0.4,
        "apart": 0.8,
        "pairs": 416,
        "broken": share(int((moved > 0.8).sum()), 416),
        "different": share(53, 416),
        "cost_gap": {"median": 0.08, "p95": 0.31},
        "change_distance": {"median": 0.2, "p95": 1.1},
        "amplification": {
            "median": float(np.median(moved / distance)),
            "p95": float(np.quantile(moved / distance, 0.95)),
        },
        "sample": [[float(d), float(e), int(o)] for d, e, o in zip(distance, moved, different, strict=True)],
        "worst": sorted(worst, key=lambda pair: -pair["amplification"]),
    }


def _groups(
    rng: np.random.Generator, cost: np.ndarray, amplification: np.ndarray, names: dict[str, str]
) -> list[dict[str, Any]]:
    found = []
    for column, parts in (
        ("sex", {"woman": 171, "man": 241}),
        ("age", {"under 25": 58, "25 to 39": 187, "40 to 59": 131, "60 and over": 36}),
        ("housing", {"renting": 122, "owning": 271, "other": 19}),
    ):
        rows = []
        for i, (group, size) in enumerate(parts.items()):
            who = rng.choice(len(cost), size, replace=False)
            mine = cost[who] * (1.12 if i == 0 else 1.0)
            rows.append(
                {
                    "group": names.get(group, group),
                    "people": size,
                    "few": size < 30,
                    "needed": size + 2,
                    "not_found": 2,
                    "cost": _three(mine),
                    "amplification": {k: v for k, v in _three(amplification[who]).items() if k != "mean"},
                    "cost_difference": {"value": 0.11 - 0.05 * i, "low": 0.04 - 0.05 * i, "high": 0.18 - 0.05 * i},
                    "adjusted_difference": {"value": 0.06 - 0.05 * i, "low": -0.01 - 0.05 * i, "high": 0.13 - 0.05 * i},
                    "boundary": {"median": float(0.4 + 0.02 * i)},
                    "matched": 0.97,
                }
            )
        ends = [rows[0]["group"], rows[1]["group"]]
        found.append(
            {
                "column": column,
                "groups": rows,
                "cost_gap": {"value": 0.11, "low": 0.04, "high": 0.18},
                "cost_gap_of": ends,
                "adjusted_gap": {"value": 0.06, "low": -0.01, "high": 0.13},
                "adjusted_gap_of": [ends[0], "everybody else"],
                "amplification_gap": {"value": 0.4, "low": -0.1, "high": 0.9},
                "amplification_gap_of": ends,
                "recourse_gap": {"value": 0.09, "low": 0.02, "high": 0.16} if column != "housing" else None,
                "recourse_gap_of": ends,
                "sentence": f"{ends[0]} are asked to change 0.11 SD more than {ends[1]} (0.04 to 0.18).",
            }
        )
    return found


def _remedies() -> list[dict[str, Any]]:
    def around(value: float, part: float) -> dict[str, float]:
        return {"value": value, "low": value * (1 - part), "high": value * (1 + part)}

    rows = [
        ("closest", "closest", 0.62, 3.4, False, False),
        ("closest, with a margin", "closest", 0.66, 2.75, False, False),
        ("closest, fewer changes", "closest", 0.93, 2.35, True, False),
        ("plausible", "plausible", 0.81, 1.72, False, None),
        ("plausible, wider", "plausible", 0.84, 1.32, False, True),
        ("steady", "steady", 0.88, 0.77, False, True),
        ("steady, strict", "steady", 1.07, 0.45, False, True),
    ]
    return [
        {
            "name": name,
            "method": method,
            "in_use": name == "closest",
            "cost": around(cost, 0.05),
            "amplification": around(times, 0.09),
            "dominated": dominated,
            "passes": passes,
            "not_available": None,
            "found": 0.98,
            "people": 380,
            "statistic": "median",
            "perturbation": "noise",
        }
        for name, method, cost, times, dominated, passes in rows
    ] + [
        {
            "name": "steady, per group",
            "method": "steady",
            "in_use": False,
            "cost": None,
            "amplification": None,
            "dominated": False,
            "passes": None,
            "not_available": "The model has no convex set for this label.",
            "found": None,
            "people": 0,
            "statistic": "median",
            "perturbation": "noise",
        }
    ]


def _redacted(content: dict[str, Any]) -> dict[str, Any]:
    """Without ids and values, as the audit leaves them out."""

    def blank(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row | {"before": None, "after": None} for row in told]

    for at, card in enumerate(content["least_stable"]):
        card |= {"id": f"person {at + 1}", "told": blank(card["told"]), "variation_told": blank(card["variation_told"])}
        card |= {"facts": [], "variation": []}
    for at, pair in enumerate(content["pairs"]["worst"] if content["pairs"] else []):
        pair |= {"first": f"{at + 1} a", "second": f"{at + 1} b", "differ": []}
        pair |= {"first_told": blank(pair["first_told"]), "second_told": blank(pair["second_told"])}
    content["lookup"] = []
    return content
