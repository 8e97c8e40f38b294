"""What all plots share."""

from __future__ import annotations

from typing import Any

import gradio as gr

GREY = "#7c8592"
"""`studio.css` repaints the text in the colours of the light and of the dark page."""
TEAL, ORANGE, BLUE = "#1a8f85", "#d9822b", "#4f83cc"
"""Of lines and marks, on the light page and on the dark one."""
LAYOUT: dict[str, Any] = {
    "template": "none",
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "font": {"family": "system-ui, sans-serif", "color": GREY, "size": 13},
}
AXIS: dict[str, Any] = {"fixedrange": True, "zeroline": False, "ticks": "", "showline": False}
GRID: dict[str, Any] = {"gridcolor": "rgba(124,133,146,0.22)", "automargin": True}
"""Of an axis with lines, beside `AXIS`: `GREY`, and faint."""


def chart(elem_id: str) -> gr.Plot:
    """A place for a figure, which takes no room while it has none.

    Neither it nor a column around it is ever made with `visible=False`: Gradio loses a figure that arrives while its
    place is being made.
    """
    return gr.Plot(show_label=False, elem_id=elem_id, elem_classes="chart")
