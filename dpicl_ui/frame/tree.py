"""Elements as data, which `assets/tree.js` draws with text nodes only, and pieces of cards that several steps share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import gradio as gr

from dpicl_ui.assets import asset
from mechanisms.accounting import MOST_REPEATS, BudgetSnapshot
from mechanisms.records import unit_in_words
from mechanisms.rounding import rounded_down, rounded_up

# Cells, labels and model output are hostile text. They travel as JSON strings and become text nodes; no HTML is ever
# built from them, here or in the browser.

Tree = str | dict[str, Any]
Updates = dict[Any, Any]
"""What a handler returns: new values by component."""


def el(kind: str, *children: Tree | None, numbers: dict[str, float] | None = None, **attributes: str) -> Tree:
    """One element as data.

    Args:
        kind: tag and classes, e.g. "p.note.warn".
        children: elements or text; None is left out.
        numbers: CSS custom properties with numeric values, e.g. {"share": 0.4}.
        attributes: plain attributes, with underscores for dashes ("aria_label").
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


def panel(*value: Tree, elem_id: str | None = None) -> gr.HTML:
    """A component that shows trees; its value is a list of them."""
    return drawn("tree.js", list(value), elem_id=elem_id, elem_classes="tree")


def visibility(yes: bool) -> bool | Literal["hidden"]:
    """The value of `visible` for a component that is often shown and hidden: it stays in the page, hidden by CSS.

    Gradio removes an invisible component from the page and builds it again later. If one call hides and shows it within
    moments, the browser sometimes loses the second change, so the final value is sent once more in a separate call.
    """
    return True if yes else "hidden"


def missing(lines: Sequence[str]) -> list[Tree]:
    listed = el("ul.missing", *(el("li", line) for line in lines))
    return [el("div.notice.bad", el("p", f"{len(lines)} things to correct:"), listed, role="alert")]


def notice(message: str, kind: str = "bad") -> list[Tree]:
    """A message in one line, of kind "bad" (an error), "warn", "good" or "info"; no element for an empty message."""
    role = "alert" if kind == "bad" else "status"
    return [el(f"p.notice.{kind}", message, role=role)] if message else []


def spinner(words: str) -> list[Tree]:
    return [el("p.spinner", words, role="status")]


_KNOWN = "More is known about this data set than is counted here: {marks}. Every later certificate says so."


MANY_LABELS = 12
"""If there are more labels than this, the page counts them or offers a search, and does not list them."""


def in_words(labels: Sequence[str]) -> str:
    """A set of labels in a sentence: their names, or how many there are."""
    return ", ".join(labels) if len(labels) <= MANY_LABELS else f"{len(labels)} labels"


def private_tag(words: str = "Only on your screen") -> Tree:
    return el("span.tag.private", words)


def fact(name: Tree, value: Tree, remark: str = "") -> Tree:
    return el("div.fact", el("dt", name), el("dd", value, el("span.remark", remark) if remark else None))


def count_row(name: str, share: float, words: str, remark: Tree | None = None, best: bool = False) -> Tree:
    """A named share as a bar, with its number in words."""
    return el(
        "div.count-row",
        el("span.count-name", name, title=name),
        el("span.count-bar" + (".best" if best else ""), numbers={"share": share}),
        el("span.count-number", words),
        remark,
    )


def progress(share: float, words: str) -> list[Tree]:
    return [
        el("div.meter", el("div.meter-fill.by-share", numbers={"share": share})),
        el("p.muted", words, role="status"),
    ]


def runs_left(repeats: int) -> str:
    """How many runs like the planned one the cap allows, in a sentence."""
    if repeats >= MOST_REPEATS:
        return f"The cap allows {MOST_REPEATS} runs like this one, or more."
    if repeats < 2:
        return "The cap allows this run, but no other like it." if repeats else "The cap does not allow this run."
    return f"The cap on epsilon and delta allows {repeats} runs like this one, this one included."


def budget(
    snapshot: BudgetSnapshot, planned: float | None = None, warnings: tuple[str, ...] = (), repeats: int | None = None
) -> list[Tree]:
    """A data set's budget as elements, with the cost of a planned run and how many such runs the cap allows."""
    cap = snapshot.cap.epsilon
    spent = min(1.0, snapshot.epsilon / cap)
    more = min(1.0 - spent, (planned or 0.0) / cap)
    runs = "no run yet" if not snapshot.runs else "1 run" if snapshot.runs == 1 else f"{snapshot.runs} runs"
    return [
        el(
            "div.budget",
            el("div.card-head", el("h3", "Privacy budget"), el("span.budget-name", snapshot.name, title=snapshot.name)),
            el(
                "div.budget-bar",
                el("span.budget-spent", numbers={"share": spent}),
                el("span.budget-planned", numbers={"share": more}),
                role="img",
                aria_label=f"{rounded_up(snapshot.epsilon, 3)} of {cap:g} spent",
            ),
            el(
                "div.budget-words",
                el("span", el("strong", rounded_up(snapshot.epsilon, 3)), " spent"),
                el("span", el("strong", rounded_up(planned, 3)), " this run") if planned else None,
                el("span", el("strong", rounded_down(snapshot.remaining, 3)), f" of {cap:g} left"),
            ),
            el("p.muted", f"Epsilon: {runs}, for {unit_in_words(snapshot.unit)}, by {snapshot.bound}."),
            *([] if repeats is None else [el("p.muted", runs_left(repeats))]),
            *notice(_KNOWN.format(marks="; ".join(snapshot.disclosures)) if snapshot.disclosures else "", "warn"),
            *(tree for warning in warnings for tree in notice(warning, "warn")),
        )
    ]


def in_millions(parameters: int) -> str:
    return f"{parameters / 1e6:.0f}M" if parameters < 1e9 else f"{parameters / 1e9:.1f}B"
