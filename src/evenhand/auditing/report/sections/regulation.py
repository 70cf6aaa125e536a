"""Rules that ask about explanations, and what an audit has to do with them. Orientation, not legal advice.

Checked in 2026 against the texts and the agencies' announcements; rules change, so a reader has to look them up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from evenhand.auditing.report.section import Page, Section


class Rule(NamedTuple):
    """One row of the table: `sections` are the parts of the page that speak to it."""

    name: str
    where: str
    asks: str
    sections: tuple[str, ...]
    not_here: str


RULES = (
    Rule(
        "GDPR, Art. 15(1)(h)",
        "European Union; Court of Justice, C-203/22 (Dun & Bradstreet Austria), 27 February 2025",
        "What a person can learn about the logic of an automated decision on request. The judgment is about a credit "
        "score: it asks for the procedure and principles actually applied to the person’s data, in a form that can be "
        "understood, and has a court or authority weigh trade secrets against it.",
        ("stability", "people", "lookup"),
        "Whether Art. 22 applies, the legal basis, the wording for the person, and the weighing of trade secrets.",
    ),
    Rule(
        "EU AI Act, Art. 86",
        "European Union; Regulation (EU) 2024/1689",
        "What an affected person can have explained by the deployer of a high-risk system of Annex III: the role of "
        "the system in the decision, and the main elements of the decision. It applies where Union law does not "
        "already give such a right.",
        ("stability", "pairs", "lookup"),
        "Whether the system is one of high risk, when the duty starts, the role of people in the decision, and whether "
        "the text is clear to the person.",
    ),
    Rule(
        "ECOA, Regulation B, 12 CFR 1002.9",
        "United States",
        "Which specific, principal reasons a creditor has to give for an adverse action. CFPB circulars 2022-03 and "
        "2023-03 were about complex models and sample forms; the CFPB withdrew many of its guidance documents in May "
        "2025, 2022-03 among them, so look up what stands. The statute and the regulation are not guidance.",
        ("pairs", "groups", "people"),
        "A counterfactual is not by itself the principal reason. The notice, its deadline, and the test for "
        "discrimination in the decisions themselves are outside this report.",
    ),
    Rule(
        "SR 26-2, model risk management",
        "United States; Federal Reserve with OCC and FDIC, 17 April 2026",
        "How banks manage the risk of models, in proportion to it: development and use, validation and monitoring, "
        "governance. It is supervisory guidance, replaces SR 11-7, and is said to matter most above $30 billion of "
        "assets. Look up the current text.",
        ("verdict", "audited", "limits", "reproduce"),
        "Whether a model is in its scope, the model’s accuracy, approval, inventory and ongoing monitoring.",
    ),
)


def values(_: Page) -> dict[str, Any]:
    """What the template shows."""
    return {"rules": RULES}


SECTION = Section("rules", "Regulation", values, template="regulation")
