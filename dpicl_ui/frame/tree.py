"""Elements as data: what a panel shows, drawn in the browser by `assets/tree.js` with text nodes only.

Cells, labels and model output are hostile text. They travel as JSON strings and become text nodes; no HTML is ever
built from them, here or in the browser.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from dpicl_ui.assets import asset

Tree = str | dict[str, Any]


def el(kind: str, *children: Tree | None, numbers: dict[str, float] | None = None, **attributes: str) -> Tree:
    """One element.

    Args:
        kind: tag and classes, "p.note.warn".
        children: elements or text; None is left out.
        numbers: CSS custom properties with numeric values, e.g. {"share": 0.4}.
        attributes: plain attributes, underscores for dashes ("aria_label").
    """
    tag, *classes = kind.split(".")
    node: dict[str, Any] = {"tag": tag, "children": [child for child in children if child is not None]}
    if classes:
        node["class"] = " ".join(classes)
    if numbers:
        node["numbers"] = numbers
    if attributes:
        node["attributes"] = {name.replace("_", "-"): value for name, value in attributes.items()}
    return node


def drawn(script: str, value: Any, **settings: Any) -> gr.HTML:
    """A component whose value, plain JSON, is drawn by a script of `assets`."""
    return gr.HTML(
        value=value,
        html_template="<div></div>",
        js_on_load=asset("make.js") + asset(script),
        apply_default_css=False,
        **settings,
    )


def panel(*value: Tree, elem_id: str | None = None, classes: tuple[str, ...] = (), visible: bool = True) -> gr.HTML:
    """A component that shows trees; its value is a list of them."""
    return drawn("tree.js", list(value), elem_id=elem_id, elem_classes=["tree", *classes], visible=visible)


def missing(lines: Sequence[str]) -> list[Tree]:
    """All that is missing, in one notice."""
    listed = el("ul.missing", *(el("li", line) for line in lines))
    return [el("div.notice.bad", el("p", f"{len(lines)} things are missing:"), listed, role="alert")]


def notice(message: str, kind: str = "bad") -> list[Tree]:
    """One clear line: "bad" (an error), "warn", "good" or "info"; nothing for an empty message."""
    role = "alert" if kind == "bad" else "status"
    return [el(f"p.notice.{kind}", message, role=role)] if message else []
