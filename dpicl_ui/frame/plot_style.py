"""What all plots share."""

from __future__ import annotations

from typing import Any

GREY = "#7c8592"
"""`studio.css` repaints the text in the colours of the light and of the dark page."""
LAYOUT: dict[str, Any] = {
    "template": "none",
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "font": {"family": "system-ui, sans-serif", "color": GREY, "size": 13},
}
AXIS: dict[str, Any] = {"fixedrange": True, "zeroline": False, "ticks": "", "showline": False}
