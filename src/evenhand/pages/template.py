"""One self-contained file from a template: its styles, scripts and numbers are inside."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import jinja2

from evenhand.pages import words
from evenhand.pages.figures import bundle
from evenhand.pages.look import config, tokens


def environment(package: str) -> jinja2.Environment:
    """Templates of a package, with the filters that all pages use; what they show is escaped."""
    made = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(lambda name: text_of(package, name)),
    )
    made.filters |= {"short": words.short, "percent": words.percent, "many": words.many}
    return made


def text_of(package: str, name: str) -> str:
    """A file that is part of a package."""
    return (resources.files(package) / name).read_text(encoding="utf-8")


def style(package: str, name: str) -> str:
    """Colours, what all pages share, and what one page adds."""
    return "\n".join([tokens(), text_of("evenhand.pages", "base.css"), text_of(package, name)])


def embedded(content: Any) -> str:
    r"""JSON that can stand inside a script element, whatever the names in it are.

    >>> embedded({"a": "</script>"})
    '{"a":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def scripts(figures: dict[str, dict[str, Any]]) -> str:
    """Everything that draws `figures`, Vega-Lite specifications by name, into the elements ``figure-<name>``."""
    drawing = embedded({"look": config("line2"), "specs": figures})
    return (
        f"<script>{bundle()}</script>\n"
        f'<script type="application/json" id="drawing">{drawing}</script>\n'
        f"<script>{text_of('evenhand.pages', 'draw.js')}</script>"
    )
