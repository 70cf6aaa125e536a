"""Figures: from a chart to what a browser draws, and to files."""

from __future__ import annotations

import json
from typing import Any

import vl_convert

from evenhand.pages.look import config


def specification(chart: Any) -> dict[str, Any]:
    """What a browser draws."""
    content: dict[str, Any] = json.loads(chart.to_json(validate=True))
    return content


def images(spec: dict[str, Any], width: int = 640) -> tuple[str, bytes]:
    """The figure as SVG and as PNG, on white."""
    spec = spec | {"width": width}
    look = config() | {"background": "#FFFFFF"}
    svg: str = vl_convert.vegalite_to_svg(spec, config=look)
    png: bytes = vl_convert.vegalite_to_png(spec, config=look, scale=2)
    return svg, png


def bundle() -> str:
    """Vega, Vega-Lite and the embedder, to be inlined once: the page asks no network for anything."""
    make: Any = vl_convert.javascript_bundle
    scripts: str = make()
    return scripts.replace("</script", "<\\/script")
