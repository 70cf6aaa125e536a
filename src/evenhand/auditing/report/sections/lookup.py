"""Single people who can be looked up, by a script."""

from __future__ import annotations

from typing import Any

from evenhand.auditing.document import plain
from evenhand.auditing.report.section import Page, Section
from evenhand.pages.look import LIGHT, METHODS, SHAPES


def for_the_script(page: Page) -> dict[str, Any]:
    """What the script needs; colours are those of the other figures, which the style sheet knows."""
    return {
        "people": plain(page.lookup),
        "in_use": page.in_use,
        "unit": page.say.cost,
        "limit": page.limit,
        "limit_text": None if page.limit is None else page.say.exact(page.limit, "times"),
        "colors": {name: LIGHT[name] for name in METHODS} | {"other": LIGHT["muted"], "rim": LIGHT["bg"]},
        "shapes": SHAPES | {"other": "square"},
    }


SECTION = Section("lookup", "Look up one person")
