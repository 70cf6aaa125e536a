"""The findings of a page in sentences, from the numbers and nothing else."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from evenhand.auditing.report.curves import share_at
from evenhand.auditing.report.drawing import known
from evenhand.auditing.report.wording import Wording
from evenhand.pages.words import many

FEW = dict(enumerate(["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 2))

STATISTICS = {"median": "median amplification", "p95": "95th percentile of amplification"}


def method(name: str) -> Markup:
    """A method in its colour, with its mark."""
    return Markup('<span class="m name-{}">{}</span>').format(known(name), name)


def verdict(content: dict[str, Any]) -> str:
    """The result of all gates in a line."""
    counts = content["verdict"]
    total = counts["passed"] + counts["failed"] + counts["undecided"]
    if not total:
        return "No gate was set"
    gates = "gate" if total == 1 else "gates"
    if counts["result"] == "passed":
        return f"Passed: {total} of {total} {gates}"
    open_ = f"{counts['undecided']} undecided"
    if counts["result"] == "undecided":
        return f"Not decided: {counts['undecided']} of {total} {gates} undecided"
    text = f"Not passed: {counts['failed']} of {total} {gates} {'fails' if counts['failed'] == 1 else 'fail'}"
    return f"{text}, {open_}" if counts["undecided"] else text


def audited(content: dict[str, Any]) -> str:
    """What the report is about."""
    about = content["audited"]
    hashes = [part for part, it in (("model", about["model"]), ("data", about["data"])) if it["sha256"]]
    text = f"{about['model']['name']} decided about {about['data']['rows']:,} people; "
    text += f"{about['explained']:,} of them need an explanation."
    if hashes:
        which = "these hashes" if len(hashes) > 1 else "this hash"
        text += f" Whoever has the {many(hashes)} with {which} can repeat the run."
    return text


def coverage(content: dict[str, Any], main: str) -> Markup:
    """How many of the planned comparisons could be made."""
    in_use = content["audited"]["in_use"]
    for row in content["coverage"]["draws"]:
        if row["method"] == in_use and row["perturbation"] == main and row["draws"]:
            share = Wording().number(row["compared"] / row["draws"], "share")
            return Markup(
                "With {}, the method in use, {} of the {} planned comparisons could be made. "
                "What is left out is counted here and not dropped silently."
            ).format(method(in_use), share, f"{row['draws']:,}")
    return Markup("No comparison was planned, so there is nothing that could be left out.")


def stability(content: dict[str, Any], rows: list[dict[str, Any]], gate: dict[str, Any] | None, say: Wording) -> Markup:
    """How far explanations move, the method in use first."""
    in_use, limit = content["audited"]["in_use"], gate["limit"] if gate else None
    known_rows = [row for row in rows if row["amplification"]["median"]["value"] is not None]
    mine = [row for row in known_rows if row["method"] == in_use]
    if not mine:
        return Markup("Nobody’s explanation could be compared with that of a variation, so stability was not measured.")
    found = mine[0]["amplification"]["median"]
    inside = f"95% interval {say.prose(found, 'times', limit)}".removesuffix("×")
    end = f"; the limit is {say.exact(limit, 'times').removesuffix('×')}" if limit is not None else ""
    text = Markup("With {}, the method in use, explanations move {} times as far as people do ({}{}).").format(
        method(in_use), _times(found, limit, say), inside, end
    )
    others = [row for row in known_rows if row["method"] != in_use]
    if others:
        parts = [
            Markup("{} {} times").format(method(row["method"]), _times(row["amplification"]["median"], None, say))
            for row in others
        ]
        text += Markup(" For comparison: ") + Markup(", ").join(parts) + "."
    if gate and gate["of"] not in (None, mine[0]["perturbation"]) and gate["interval"]["value"] is not None:
        text += Markup(" The gate is decided by {}: {} times (95% interval {}).").format(
            gate["of"],
            _times(gate["interval"], limit, say),
            say.prose(gate["interval"], "times", limit).removesuffix("×"),
        )
    return text


def _times(found: dict[str, Any], limit: float | None, say: Wording) -> str:
    return say.value(found, "times", limit).removesuffix("×")


def moved(rows: list[dict[str, Any]], in_use: str) -> str:
    """The finding of the histograms."""
    for row in rows:
        found = row["amplification"]["median"]
        if row["method"] == in_use and found["value"] is not None:
            if found["low"] is not None and found["low"] > 1:
                return "Explanations in use move further than the people they explain"
            if found["high"] is not None and found["high"] < 1:
                return "Explanations in use move less far than the people they explain"
            return "Explanations in use move about as far as the people they explain"
    return "How far explanations move"


def proven(curves: list[dict[str, Any]], in_use: str, radius: float | None, unit: str) -> str:
    """The finding of the certificates."""
    for curve in sorted(curves, key=lambda curve: curve["method"] != in_use):
        at = radius if radius is not None else max(curve["radius"], default=0.0) / 2
        share = share_at(curve, at)
        if share is not None:
            where = f"within {at:.2g} {unit}".rstrip() + (", the radius of the gate" if radius is not None else "")
            return f"For {100 * share:.0f}% of people {curve['method']} is proven stable {where}"
    return "How far stability is proven"


def people(content: dict[str, Any]) -> Markup:
    """What the cards show."""
    count = len(content["least_stable"])
    if not count:
        return Markup("Nobody’s explanation could be compared, so nobody is listed.")
    who = "For this person" if count == 1 else f"For these {FEW.get(count, count)}"
    text = "{}, a slight change in the data gives the most different answer. <mark>Highlighted</mark>: what differs."
    return Markup(text).format(who)


def pairs(content: dict[str, Any], gates: dict[str, dict[str, Any]], say: Wording) -> str:
    """How often two similar people are told something else."""
    found = content["pairs"]
    if not found or not found["pairs"]:
        return "No two people are similar enough to be compared as a pair."
    different, broken = found["different"], found["broken"]
    parts = []
    for it, words, name in (
        (different, "are told to change different things", "pair_difference_rate"),
        (broken, f"get explanations more than {say.exact(found['apart'], 'cost')} apart", "pair_break_rate"),
    ):
        if it["value"] is None:
            continue
        gate = gates.get(name)
        end = f"; the limit is {say.exact(gate['limit'], 'share')}" if gate else ""
        limit = gate["limit"] if gate else None
        parts.append(f"{say.value(it, 'share', limit)} {words} (95% interval {say.prose(it, 'share', limit)}{end})")
    return f"Of {found['pairs']:,} pairs of similar people, " + ", and ".join(parts) + "."


def remedies(content: dict[str, Any], gate: dict[str, Any] | None) -> Markup:
    """The cheapest option that passes, and its price; `gate` is the one that they are compared by."""
    name = f"the gate “{gate['title']}”" if gate else "the gate"
    rows = [row for row in content["remedies"] if row["cost"] and row["cost"]["value"] is not None]
    if not rows:
        return Markup("No other method was tried, so there is no remedy to show.")
    using = next((row for row in rows if row["in_use"]), None)
    passing = sorted((row for row in rows if row["passes"]), key=lambda row: float(row["cost"]["value"]))
    if all(row["passes"] is None for row in rows):
        text = "No gate judges these {} ways: here is what they cost and how far they move."
        return Markup(text).format(len(rows))
    if using and using["passes"]:
        end = "; another option is both cheaper and steadier" if using["dominated"] else ""
        return Markup("{}, the method in use, passes {}{}.").format(_option(using), name, end)
    if not passing:
        return Markup("None of the {} ways that were tried passes {}.").format(len(rows), name)
    best = passing[0]
    text = Markup("{} is the cheapest option that passes {}").format(_option(best), name)
    if using and using["cost"]["value"]:
        more = best["cost"]["value"] / using["cost"]["value"] - 1
        words = f"{100 * abs(more):.0f}% {'more' if more >= 0 else 'less'}"
        text += Markup(": it asks people to change {} than {}").format(words, _option(using))
    if best["found"] is not None and best["found"] < 0.95:
        text += f"; it finds an explanation for {Wording().number(best['found'], 'share')} of the people"
    return text + "."


def _option(row: dict[str, Any]) -> Markup:
    return Markup('<span class="m name-{}">{}</span>').format(known(row["method"]), row["name"])


def price(options: list[dict[str, Any]]) -> str:
    """The finding of the remedies."""
    using = next((row for row in options if row["in_use"]), None)
    if using is None or len(options) < 2:
        return "Cost against stability"
    steadier = [row for row in options if row["amplification"]["value"] < using["amplification"]["value"]]
    if not steadier:
        return f"Nothing that was tried is steadier than {using['name']}"
    if any(row["cost"]["value"] <= using["cost"]["value"] for row in steadier):
        return "A steadier explanation need not cost more"
    return "Stability has a price: what is steadier asks people to change more"


def directions(found: dict[str, Any]) -> str:
    """The finding of the pairs."""
    share = found["different"]["value"]
    if not share:
        return "No two similar people are sent in different directions"
    return "Some people who are alike are sent in different directions"


def heard_stability(rows: list[dict[str, Any]], limit: float | None, say: Wording) -> str:
    """What the histograms show, for those who hear it."""
    parts = [
        f"{row['method']} median {say.value(row['amplification']['median'], 'times')}, "
        f"95% interval {say.prose(row['amplification']['median'], 'times') or 'not known'}"
        for row in rows
    ]
    end = f" The limit is {say.exact(limit, 'times')}." if limit is not None else ""
    return f"Amplification: {'; '.join(parts)}.{end}"


def heard_certificates(curves: list[dict[str, Any]], radius: float | None, unit: str) -> str:
    """What the curves show."""
    parts = []
    for curve in curves:
        at = radius if radius is not None else max(curve["radius"]) / 2
        share = share_at(curve, at)
        parts.append(
            f"{curve['method']} {'not known' if share is None else f'{100 * share:.0f}%'} within {at:.2g} {unit}"
        )
    return f"Share of people with proven stability: {'; '.join(parts)}."


def heard_groups(content: dict[str, Any], what: str, say: Wording) -> str:
    """What the dots show."""
    unit = "cost" if what == "cost" else "times"
    parts = [
        f"{part['column']} {group['group']} {say.value(group[what]['median'], unit)}"
        for part in content["groups"]
        for group in part["groups"]
        if group[what] and group[what]["median"]["value"] is not None
    ]
    name = "Median cost" if what == "cost" else "Median amplification"
    return f"{name} by group: {'; '.join(parts)}."


def heard_remedies(options: list[dict[str, Any]], say: Wording) -> str:
    """What the options cost and bring."""
    parts = []
    for row in options:
        cost, moved = say.value(row["cost"], "cost"), say.value(row["amplification"], "times")
        end = " (dominated)" if row["dominated"] else ""
        parts.append(f"{row['name']} costs {cost} and has amplification {moved}{end}")
    return "; ".join(parts) + "."
