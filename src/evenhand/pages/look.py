"""Colours and the look of figures, in one place: the style sheet is made from them."""

from __future__ import annotations

from typing import Any

LIGHT = {
    "bg": "#FCFCFA",
    "surface": "#FFFFFF",
    "sunk": "#F3F4F1",
    "zone": "#E7EAE5",
    "ink": "#1B1F24",
    "muted": "#59626D",
    "line": "#DFE2DE",
    "line2": "#C3C8C6",
    "accent": "#5A3E9B",
    "closest": "#C04A00",
    "plausible": "#1A4FA3",
    "steady": "#007A6C",
    "closest-tint": "#F3D6C2",
    "plausible-tint": "#CBD8EE",
    "steady-tint": "#C2E1DB",
    "fail": "#A8123A",
    "on-fail": "#FFFFFF",
    "mark": "#FFEFB8",
    "mark-line": "#A57A00",
}
DARK = {
    "bg": "#15181C",
    "surface": "#1B1F24",
    "sunk": "#20252B",
    "zone": "#2A3037",
    "ink": "#E9EBEE",
    "muted": "#A3ACB8",
    "line": "#30363D",
    "line2": "#4B535D",
    "accent": "#BBA7F5",
    "closest": "#FF9B5E",
    "plausible": "#6FA8FF",
    "steady": "#7FE0C3",
    "closest-tint": "#5A3A24",
    "plausible-tint": "#28405F",
    "steady-tint": "#244A41",
    "fail": "#FF8FA3",
    "on-fail": "#2B0510",
    "mark": "#4A3C0C",
    "mark-line": "#E2BC4A",
}
# Figures name light colours; the style sheet then gives them their meaning, on a dark screen and on paper as well.
IN_FIGURES = tuple(name for name in LIGHT if name not in ("surface", "sunk", "accent", "on-fail", "mark", "mark-line"))
METHODS = ["closest", "plausible", "steady"]
DASHES = {"closest": [1, 0], "plausible": [9, 3], "steady": [1, 0]}
SHAPES = {"closest": "circle", "plausible": "diamond", "steady": "triangle-up"}


def tokens() -> str:
    """The colours as a style sheet: light, dark, on paper, and inside figures."""
    light, dark = (
        " ".join(f"--{name}: {color};" for name, color in colors.items()) + f" color-scheme: {scheme};"
        for colors, scheme in ((LIGHT, "light dark"), (DARK, "light dark"))
    )
    paper = light.replace("light dark", "light").replace(f"--bg: {LIGHT['bg']}", "--bg: #FFFFFF")
    swaps = [
        f".plot [{paint}='{LIGHT[name]}'] {{ {paint}: var(--{name}); }}"
        for name in IN_FIGURES
        for paint in ("fill", "stroke")
    ]
    return "\n".join(
        [
            f":root {{ {light} }}",
            f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}",
            f"@media print {{ :root {{ {paper} }} }}",
            *swaps,
        ]
    )


def config(frame: str = "line") -> dict[str, Any]:
    """The look that all figures share; `frame` is the colour of the lines along the axes."""
    text = {"labelColor": LIGHT["muted"], "titleColor": LIGHT["muted"], "labelFontSize": 12, "titleFontSize": 12}
    return {
        "background": None,
        "font": "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', Arial, sans-serif",
        "view": {"stroke": None},
        "axis": text
        | {"gridColor": LIGHT["line"], "domainColor": LIGHT[frame], "tickColor": LIGHT[frame]}
        | {"titleFontWeight": "normal"},
        "legend": text | {"orient": "top", "title": None, "symbolStrokeWidth": 2.5, "labelColor": LIGHT["ink"]},
        "text": {"color": LIGHT["ink"], "fontSize": 12},
    }
