"""The tables of the page: the numbers behind its figures."""

from __future__ import annotations

from typing import Any, NamedTuple

from markupsafe import Markup

from evenhand.auditing.report.curves import share_at
from evenhand.auditing.report.drawing import known
from evenhand.auditing.report.sentences import method
from evenhand.auditing.report.wording import Wording

NONE = "–"


class Table(NamedTuple):
    """Columns that end in "|" hold numbers; the first cell of a row is its heading."""

    caption: str
    columns: list[str]
    rows: list[list[Any]]


def _using(name: str, in_use: str) -> Markup:
    text = method(name)
    return text + Markup(' <span class="muted">(in use)</span>') if name == in_use else text


def _both(found: dict[str, Any] | None, unit: str, say: Wording) -> Any:
    """An estimate with its interval under it."""
    if not found or found["value"] is None:
        return NONE
    span = say.span(found, unit)
    value = Markup("<b>{}</b>").format(say.value(found, unit))
    return value + Markup(' <span class="muted whole">{}</span>').format(span) if span else value


def people(content: dict[str, Any], rows: list[dict[str, Any]]) -> Table:
    """Who got an explanation, by method."""
    in_use = content["audited"]["in_use"]
    return Table(
        "People, by method",
        ["Method", "People|", "Explained|", "Need none|", "Not found|"],
        [
            [_using(row["method"], in_use), *(f"{row[key]:,}" for key in ("people", "found", "already", "not_found"))]
            for row in rows
        ],
    )


def reasons(content: dict[str, Any], methods: list[str]) -> Table:
    """Why there is no explanation."""
    return Table(
        "Why no explanation was found: people, by method",
        ["Reason", *(f"{name}|" for name in methods)],
        [
            [row["reason"], *(f"{row['counts'].get(name, 0):,}" for name in methods)]
            for row in content["coverage"]["reasons"]
        ],
    )


def draws(content: dict[str, Any], rows: list[dict[str, Any]]) -> Table:
    """What became of the planned comparisons."""
    in_use = content["audited"]["in_use"]
    return Table(
        "Comparisons, by method and perturbation",
        ["Method", "Perturbation", "Planned|", "Compared|", "Decision flipped|", "Not found|"],
        [
            [_using(row["method"], in_use), row["perturbation"]]
            + [f"{row[key]:,}" for key in ("draws", "compared", "flipped", "not_found")]
            for row in rows
        ],
    )


def stability(content: dict[str, Any], rows: list[dict[str, Any]], say: Wording) -> Table:
    """Every perturbation and method."""
    in_use = content["audited"]["in_use"]
    return Table(
        "Every perturbation and method, with 95% intervals",
        [
            *("Method", "Perturbation", "People|", "Median|", "Mean|", "95th percentile|"),
            *("Moves by, median|", "Flips|", "Not found|"),
        ],
        [
            [
                _using(row["method"], in_use),
                row["perturbation"],
                f"{row['people']:,}",
                *(_both(row["amplification"][key], "times", say) for key in ("median", "mean", "p95")),
                _both(row["distance"]["median"], "cost", say),
                say.number(row["flip_rate"], "share"),
                say.number(row["not_found_rate"], "share"),
            ]
            for row in rows
        ],
    )


def certificates(curves: list[dict[str, Any]], radius: float | None, in_use: str, unit: str) -> Table:
    """Shares at a few radii, that of the gate among them."""
    widest = max(max(curve["radius"]) for curve in curves)
    few = {widest * part for part in (0.1, 0.25, 0.5, 1.0)} | ({radius} if radius is not None else set())
    radii = sorted(r for r in few if r <= widest)
    rows = []
    for curve in curves:
        bands = [curve | {"share": curve[key]} for key in ("share", "low", "high")]
        cells = [[share_at(band, r) for band in bands] for r in radii]
        rows.append(
            [
                _using(curve["method"], in_use),
                f"{curve['people']:,}",
                *(
                    NONE if share is None else f"{100 * share:.0f}% ({100 * (low or 0):.0f}–{100 * (high or 0):.0f})"
                    for share, low, high in cells
                ),
            ]
        )
    return Table(
        "Share of people with a proof, with 95% Wilson intervals",
        ["Method", "People|", *(f"within {r:.2g} {unit}|" for r in radii)],
        rows,
    )


def groups(content: dict[str, Any], say: Wording) -> Table:
    """The method in use, group by group."""
    rows = []
    for part in content["groups"]:
        for group in part["groups"]:
            moved = group["amplification"] or {}
            name = f"{part['column']}: {group['group']}" + (" (few)" if group["few"] else "")
            rows.append(
                [
                    name,
                    f"{group['people']:,}",
                    f"{group['not_found']:,} of {group['needed']:,}",
                    _both(group["cost"]["median"], "cost", say),
                    _both(group["cost"]["mean"], "cost", say),
                    _both(group["cost_difference"], "cost", say),
                    say.number(group["boundary"]["median"], "cost")
                    if group["boundary"]["median"] is not None
                    else NONE,
                    _both(group["adjusted_difference"], "cost", say),
                    _both(moved.get("median"), "times", say),
                    _both(moved.get("p95"), "times", say),
                ]
            )
    return Table(
        f"{content['audited']['in_use']}, the method in use; 95% intervals",
        [
            *(
                "Group",
                "People|",
                "Without explanation|",
                "Median cost|",
                "Mean cost|",
                "Median against the rest|",
                "Distance to the boundary|",
            ),
            *("Against the rest at the same distance|", "Amplification, median|", "95th percentile|"),
        ],
        rows,
    )


def gaps(content: dict[str, Any], say: Wording) -> Table:
    """The largest differences between two groups of a column."""
    kinds = {
        "cost_gap": ("Median cost|", "cost"),
        "adjusted_gap": ("Cost at the same distance|", "cost"),
        "recourse_gap": ("Mean cost (equalizing recourse)|", "cost"),
        "amplification_gap": ("Amplification|", "times"),
    }
    kinds = {key: it for key, it in kinds.items() if any(key in part for part in content["groups"])}
    rows = []
    for part in content["groups"]:
        row: list[Any] = [part["column"]]
        for key, (_, unit) in kinds.items():
            found = part.get(key)
            if not found or found["value"] is None:
                row.append(NONE)
            else:
                of = Markup('<span class="plain">{}</span>').format(" and ".join(map(str, part[f"{key}_of"])))
                row.append(_both(found, unit, say) + of)
        rows.append(row)
    return Table(
        "Largest differences between two groups that are not few",
        ["Column", *(name for name, _ in kinds.values())],
        rows,
    )


def remedies(content: dict[str, Any], gate: dict[str, Any] | None, statistic: str, say: Wording) -> Table:
    """Every option, also those that were not available."""
    rows = []
    for row in content["remedies"]:
        if row["not_available"]:
            result = row["not_available"]
        else:
            result = {True: "✓ passes", False: "✕ does not pass", None: "? not judged"}[row["passes"]]
            result += ", dominated" if row["dominated"] else ""
        name = Markup('<span class="m name-{}">{}</span>').format(known(row["method"]), row["name"])
        if row["in_use"]:
            name += Markup(' <span class="muted">(in use)</span>')
        found = say.number(row["found"], "share") if row["found"] is not None else NONE
        rows.append([name, _both(row["cost"], "cost", say), _both(row["amplification"], "times", say), found, result])
    return Table(
        "Ways to explain the same decisions; 95% intervals",
        [
            "Option",
            "Median cost|",
            f"{statistic[:1].upper()}{statistic[1:]}|",
            "Found|",
            gate["title"] if gate else "Gate",
        ],
        rows,
    )
