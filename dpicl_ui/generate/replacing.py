"""The question before a run that would replace a finished set which nobody exported or saved."""

from __future__ import annotations

import math
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.handlers import PRIVATE, on
from dpicl_ui.frame.services import Services, Session
from dpicl_ui.frame.tree import Updates, notice, panel, spinner
from dpicl_ui.generate.state import GenerateState
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.rounding import rounded_up

_KEPT_NOWHERE = (
    "The finished set of this page was neither exported nor saved. The next run replaces it, with its score and replay."
)
_COSTS_AGAIN = "Its cost stays spent, and another run costs its epsilon again{price}."
_RESUMES = " resume"
_RESUMING = "Its cost stays spent; the resumed run costs no more than was planned."


class ReplaceQuestion:
    """The question before a run. It handles every press; a new value of `press` then begins the run.

    Whether to ask is decided at once, while the run waits for the model's queue. A press and its run therefore have
    separate listeners. The second one is triggered by a new value, which also says whether that press resumes a run:
    another press may follow before the run begins.
    """

    def __init__(self, app: Services) -> None:
        self._app = app
        # Not "hidden": a column that is "hidden" from the start is in the page anyway.
        with gr.Column(visible=False, elem_id="replacing", elem_classes="replacing") as self.body:
            self.words = panel(elem_id="replacing-words")
            with gr.Row(elem_classes="actions"):
                self.yes = gr.Button("Yes, replace it", size="sm", elem_id="replace-set")
                self.no = gr.Button("Keep it", size="sm", elem_id="keep-set")
        self.press = gr.HTML("", html_template="<div></div>", apply_default_css=False, elem_classes="sink")

    def wire(self, start: gr.Button, go_on: gr.Button, where: gr.HTML) -> None:
        """Let these buttons ask first; `where` shows progress and errors."""
        self._where = where
        shown = [self.body, self.words, self.press, where]

        def presser(resume: bool) -> Any:
            def press(request: gr.Request) -> Updates:
                return self.pressed(self._app.session(request), resume)

            return press

        for button, handler in ((start, presser(False)), (go_on, presser(True)), (self.yes, self.agreed)):
            on(button.click, handler, None, shown, where, queue=False)
        self.no.click(self.hidden, None, self.body, queue=False, **PRIVATE)

    def hidden(self) -> Updates:
        """The components' values without a question."""
        return {self.body: gr.Column(visible=False)}

    def pressed(self, session: Session, resume: bool) -> Updates:
        """Begin a run, or ask first, with a warning of what would be lost and what the run costs.

        Raises:
            UsageError: no data set is confirmed.
        """
        _ = session.of(DataState).needed  # step 3 is also open for a run that is only shown
        state = session.of(GenerateState)
        if state.under_way or not state.untaken:
            return self._begin(state, resume)
        state.asked_to_resume = resume
        planned = session.of(PrivacyState).planned
        charge = planned.charge if planned else 0.0
        price = f" ({rounded_up(charge, 3)})" if 0 < charge < math.inf else ""
        cost = _RESUMING if resume else _COSTS_AGAIN.format(price=price)
        return {self.body: gr.Column(visible=True), self.words: notice(f"{_KEPT_NOWHERE} {cost}", "warn")}

    def agreed(self, request: gr.Request) -> Updates:
        """Begin the run that the question was about."""
        state = self._app.session(request).of(GenerateState)
        return self._begin(state, state.asked_to_resume)

    def _begin(self, state: GenerateState, resume: bool) -> Updates:
        state.presses += 1
        value = f"{state.presses}{_RESUMES if resume else ''}"
        return self.hidden() | {self._where: spinner("Waiting for the model …"), self.press: value}

    @staticmethod
    def resumes(press: object) -> bool:
        """Whether the press with this value was on Resume."""
        return str(press).endswith(_RESUMES)
