"""The five steps and the place beside them: which are open, why not, and the panels that hold them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gradio as gr

from dpicl_ui.assets import asset
from dpicl_ui.frame.sessions import Session

TITLES = ("Data", "Privacy", "Generate", "Test", "Export", "Ask privately")
ASK = 6
"""The place beside the steps: it needs the data of step 1 and nothing else."""


@contextmanager
def step_panel(number: int) -> Iterator[None]:
    """A panel: its components, or the reason why it is closed. The browser shows one of them at a time."""
    with gr.Column(elem_id=f"step-{number}", elem_classes=["step", "current"] if number == 1 else ["step"]):
        gr.HTML(
            html_template=f'<h2>{TITLES[number - 1]}</h2><p class="gate-why"></p>',
            js_on_load=None,
            apply_default_css=False,
            elem_classes="gate card",
        )
        with gr.Column(elem_classes="step-body"):
            yield


def steps_bar() -> gr.HTML:
    """The bar of the five steps and the place beside them; it fires `expand` when that place is opened."""
    return gr.HTML(
        value=steps_value(Session()),
        html_template="<div></div>",
        js_on_load=asset("steps.js"),
        apply_default_css=False,
        elem_id="steps",
    )


def steps_value(session: Session, go: int | None = None) -> dict[str, Any]:
    """The bar's value; with `go` the browser moves to that step."""
    if go is not None:
        session.moves += 1
    made = session.made is not None and bool(session.made.demonstrations)
    whys = (
        "",
        ""
        if session.dataset
        else "Choose a data set in step 1 and confirm what becomes public: the noise depends on it.",
        _generate_why(session),
        "",
        ""
        if made
        else "There is nothing to export yet: write demonstrations in step 3. To look at a file that was "
        "exported before, load it in step 4.",
        ""
        if session.mapping
        else "Bring a file in step 1 first, and say what its columns mean. Nothing has to be generated.",
    )
    done = (session.dataset is not None, session.preview is not None, made, bool(session.scorecards), False, False)
    steps = [
        {
            "title": title,
            "note": _note(why, finished),
            "done": finished and not why,
            "why": why,
            "beside": number == ASK,
        }
        for number, (title, why, finished) in enumerate(zip(TITLES, whys, done, strict=True), start=1)
    ]
    return {"go": [session.moves, go or 1], "steps": steps}


def _generate_why(session: Session) -> str:
    if session.dataset is None:
        return "Choose a data set in step 1 first, then its privacy in step 2."
    return "" if session.preview else "Wait for the noise in step 2, or correct what it complains about."


def _note(why: str, done: bool) -> str:
    return "closed" if why else "done" if done else "open"
