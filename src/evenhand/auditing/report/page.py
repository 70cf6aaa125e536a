"""The page of an audit: a function of what audit.json holds, and of nothing else."""

from __future__ import annotations

from typing import Any

from evenhand.auditing.report import charts, curves, histograms, listing, sentences, strips
from evenhand.auditing.report.drawing import known
from evenhand.auditing.report.regulation import RULES
from evenhand.auditing.report.wording import Wording
from evenhand.pages.figures import specification
from evenhand.pages.look import LIGHT, METHODS, SHAPES
from evenhand.pages.template import embedded, environment, scripts, style, text_of

HERE = "evenhand.auditing.report"
SECTIONS = {
    "verdict": "Verdict",
    "audited": "What was audited",
    "coverage": "Coverage",
    "stability": "Stability",
    "people": "Least stable people",
    "pairs": "Alike pairs",
    "groups": "Groups",
    "remedies": "Remedies",
    "lookup": "Look up one person",
    "limits": "Limits",
    "rules": "Regulation",
    "reproduce": "Reproduce",
}


def render(content: dict[str, Any]) -> str:
    """The page as one file; `content` has the schema "evenhand-audit/1"."""
    about = content["audited"]
    say = Wording(about["unit"])
    gates = {gate["name"]: gate for gate in reversed(content["gates"])}  # of two with one name the first
    main = main_perturbation(content)
    stable = in_order([row for row in content["stability"] if row["perturbation"] == main])
    limit = gates["median_amplification"]["limit"] if "median_amplification" in gates else None
    radius = gates["certified_share"]["argument"] if "certified_share" in gates else None
    proofs = in_order([curve for curve in content["certificates"]["curves"] if curve["radius"]])
    statistic = next((row.get("statistic", "median") for row in content["remedies"]), "median")
    judged = gates.get(f"{statistic}_amplification")
    options = [row for row in content["remedies"] if _measured(row)]
    still = [row["name"] for row in options if row["amplification"]["value"] <= 0]  # has no place on the axis
    options = [row for row in options if row["name"] not in still]
    figures = _figures(content, stable, proofs, limit, radius, say)
    if options:
        price = charts.remedies(options, judged["limit"] if judged else None, sentences.STATISTICS[statistic], say)
        figures["remedies"] = specification(price)
    people = [] if about["redacted"] else content["lookup"]
    return (
        environment(HERE)
        .get_template("report.html.j2")
        .render(
            content=content,
            about=about,
            redacted=about["redacted"],
            say=say,
            gates=gates,
            sections=SECTIONS,
            flags=flags(content["gates"]),
            main=main,
            stable=stable,
            all_stable=in_order(content["stability"]),
            limit=limit,
            radius=radius,
            curves=proofs,
            options=options,
            still=still,
            judged=judged,
            statistic=sentences.STATISTICS[statistic],
            figures=list(figures),
            rules=RULES,
            listing=listing,
            reason_methods=_methods(content),
            sentences=sentences,
            strips=strips,
            method=sentences.method,
            known=known,
            in_order=in_order,
            arrow={"up": "▲", "down": "▼", "to": "→"},
            words={"up": "increase", "down": "decrease", "to": "change"},
            ids=[person["id"] for person in people],
            style=style(HERE, "report.css"),
            scripts=scripts(figures),
            people=embedded(_for_looking_up(people, about, limit, say)),
            contents=text_of(HERE, "contents.js"),
            lookup=text_of(HERE, "lookup.js"),
        )
    )


def main_perturbation(content: dict[str, Any]) -> str | None:
    """The perturbation that the figures show: the first, on which groups and remedies were measured as well."""
    named = [*content["audited"]["perturbations"], *(row["perturbation"] for row in content["stability"])]
    return named[0] if named else None


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Closest, plausible, steady, and then whatever else there is; the order within a method stays."""
    return sorted(rows, key=lambda row: METHODS.index(row["method"]) if row["method"] in METHODS else len(METHODS))


def flags(gates: list[dict[str, Any]]) -> dict[str, str]:
    """Sections with a gate that fails, or else with one that is undecided."""
    found: dict[str, str] = {}
    for gate in gates:
        if gate["result"] == "fail" or (gate["result"] == "undecided" and gate["section"] not in found):
            found[gate["section"]] = gate["result"]
    return found


def _for_looking_up(people: list[Any], about: dict[str, Any], limit: float | None, say: Wording) -> dict[str, Any]:
    """What the script needs; colours are those of the other figures, which the style sheet knows."""
    return {
        "people": people,
        "in_use": about["in_use"],
        "unit": about["unit"],
        "limit": limit,
        "limit_text": None if limit is None else say.exact(limit, "times"),
        "colors": {name: LIGHT[name] for name in METHODS} | {"other": LIGHT["muted"], "rim": LIGHT["bg"]},
        "shapes": SHAPES | {"other": "square"},
    }


def _methods(content: dict[str, Any]) -> list[str]:
    """Methods that have a column in the table of reasons."""
    counted = {name for row in content["coverage"]["reasons"] for name in row["counts"]}
    return [*(name for name in METHODS if name in counted), *sorted(counted - set(METHODS))]


def _measured(row: dict[str, Any]) -> bool:
    cost, moved = row["cost"], row["amplification"]
    return bool(cost and moved and cost["value"] is not None and moved["value"] is not None)


def _figures(
    content: dict[str, Any],
    stable: list[dict[str, Any]],
    proofs: list[dict[str, Any]],
    limit: float | None,
    radius: float | None,
    say: Wording,
) -> dict[str, dict[str, Any]]:
    in_use, unit = content["audited"]["in_use"], content["audited"]["unit"]
    made: dict[str, Any] = {}
    shown = [row for row in stable if any(row["histogram"]["counts"])]
    if shown:
        made["amplification"] = histograms.amplification(shown, in_use, limit, say)
    if proofs:
        made["certificates"] = curves.certificates(proofs, radius, unit, in_use)
    if content["pairs"] and content["pairs"]["sample"]:
        made["pairs"] = charts.pairs(content["pairs"], in_use, say)
    if content["groups"]:
        for what in ("cost", "amplification"):
            made[f"groups-{what}"] = charts.groups(content["groups"], what, in_use, limit, say)
    return {name: specification(chart) for name, chart in made.items() if chart is not None}
