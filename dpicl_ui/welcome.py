"""The welcome card, which a visitor sees first: what the studio does, a recorded run, and an example to try."""

from __future__ import annotations

import functools
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.data.step import DataStep
from dpicl_ui.frame.handlers import PRIVATE
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.tree import Tree, drawn, el, panel
from dpicl_ui.generate.charts import live
from dpicl_ui.generate.replay import looked_back
from mechanisms.files import bundled
from mechanisms.runs.events import TokenReleased
from mechanisms.runs.run_file import from_lines
from mechanisms.runs.view import RunView

RECORDED = "examples/recorded_run.dpicl.jsonl"
"""A run on `bank_support.csv`; the tests recompute its certificate."""
ROW = "I paid €110 to an online shop for a tent, and now the website is gone. Was it a fake shop, and can I recover it?"
"""A row of the same file, which is fictional and public."""
MADE = (
    "I can't believe you have a fraud on the account, I just discovered it was a scammer. "
    "Can you tell me what happened?"
)
"""A demonstration of the recorded run."""
_BARS = 8
"""Candidates of a token that the small screen shows: the likeliest, and the one that was chosen."""
_SAID: list[Tree] = [
    el("h2", "Invented examples in place of your private texts"),
    el(
        "ol.tasks",
        el("li", "You bring texts with labels: messages, notes, tickets. They stay on the app's machine."),
        el("li", "A small language model writes new examples of each label. Noise hides what any one row adds."),
        el("li", "You get examples for your prompts, and a certificate of what anybody can learn from them."),
    ),
]
_PAIR: list[Tree] = [
    el(
        "div.pair",
        el(
            "div.demo",
            el("span.tag.private", "A private row (fictional)"),
            el("p", f"“{ROW}” → Fraud"),
        ),
        el(
            "div.demo",
            el("span.tag.public", "An example that such rows voted for"),
            el("p", f"“{MADE}” → Fraud"),
        ),
    ),
]
_EXAMPLE = "Fictional messages to an internet provider. Everything is confirmed for you: the next step is Generate."
_PLAYED = (
    "A recorded run on {rows} fictional messages to a bank (epsilon {epsilon:.2g}): at each token the rows propose the "
    "next word, noise is added, and the model's own expectation is weighed in. The texts are unedited, from a model "
    "of 135M parameters."
)


class Welcome:
    """The components of the welcome card, which disappears when a file is open."""

    def __init__(self, app: Services) -> None:
        self._app = app
        with gr.Row(elem_classes="card welcome split", elem_id="welcome") as self.body:
            with gr.Column(min_width=300):
                panel(*_SAID, *_PAIR)
                self.example = gr.Button("Try it on an example", variant="primary", elem_id="try-example")
                panel(el("p.muted", _EXAMPLE))
            with gr.Column(min_width=300):
                drawn("live.js", frames()[-1], elem_id="welcome-live")
                drawn("welcome.js", frames(), elem_id="welcome-play")
                made = _recorded()[-1].demo_set
                rows, epsilon = sum(made.public_sizes.values()), made.certificate.claim.epsilon
                panel(el("p.muted", _PLAYED.format(rows=rows, epsilon=epsilon)))

    def wire(self, data: DataStep) -> gr.events.Dependency:
        """Make the button open and confirm the first example; returns that event. Opening any file hides the card."""
        taken = data.take_example(self.example)
        for opened in (taken, *data.opening):
            opened.then(self._make_room, None, self.body, **PRIVATE)
        return taken

    def _make_room(self, request: gr.Request) -> Any:
        return gr.Row(visible=self._app.session(request).of(DataState).file is None)


@functools.cache
def frames() -> list[dict[str, Any]]:
    """The live screen's value after each token of the recorded run, with few candidates."""
    return [_small(view) for event, view in looked_back(_recorded()) if isinstance(event, TokenReleased)]


def _small(view: RunView) -> dict[str, Any]:
    shown = live(view)
    bars = shown["chart"]["bars"]
    few = bars[:_BARS] if any(each["chosen"] for each in bars[:_BARS]) else bars[: _BARS - 1]
    few += [each for each in bars[len(few) :] if each["chosen"]]
    chart = shown["chart"] | {"bars": few, "hidden": shown["chart"]["hidden"] + len(bars) - len(few)}
    return shown | {"chart": chart, "others": []}


@functools.cache
def _recorded() -> list[Any]:
    return list(from_lines(bundled(RECORDED).read_text(encoding="utf-8")))
