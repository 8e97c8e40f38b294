"""Finished runs: the question before a new run replaces one, and runs that survive a reload of the page."""

from __future__ import annotations

import math
import re
import threading
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.guard import PRIVATE, on
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.tree import Updates, drawn, notice, panel, spinner
from dpicl_ui.generate.replay import own_recording
from dpicl_ui.generate.state import NO_DATA, GenerateState, Made, Run
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.accounting import Fingerprint
from mechanisms.errors import UsageError
from mechanisms.rounding import rounded_up

# Before a run: whether a finished set that nobody exported or saved gives way to it.

_KEPT_NOWHERE = (
    "The finished set of this page was neither exported nor saved, and the next run replaces it, with its score and "
    "replay."
)
_COSTS_AGAIN = "What it cost stays spent, and another run costs its epsilon again{price}."
_RESUMING = "What it cost stays spent; the run that was cut off costs no more than it was to cost."


class Replacing:
    """Components and handlers. A press goes through here; a new value of `begun` then begins the run.

    What is to be asked is decided at once, while the run waits for the model's queue. So a press and its run are two
    listeners; a number that is new in this tab tells the second one to begin.
    """

    def __init__(self, app: Services) -> None:
        self._app = app
        # A column that is "hidden" from the start stands in the page all the same.
        with gr.Column(visible=False, elem_id="replacing", elem_classes="replacing") as self.body:
            self.words = panel(elem_id="replacing-words")
            with gr.Row(elem_classes="actions"):
                self.yes = gr.Button("Yes, replace it", size="sm", elem_id="replace-set")
                self.no = gr.Button("Keep it", size="sm", elem_id="keep-set")
        self.begun = gr.HTML(0, html_template="<div></div>", apply_default_css=False, elem_classes="sink")

    def wire(self, start: gr.Button, go_on: gr.Button, where: gr.HTML) -> None:
        """Let these buttons ask first; what is waited for, and errors, are shown in `where`."""
        self._where = where
        shown = [self.body, self.words, self.begun, where]

        def presser(resume: bool) -> Any:
            def press(request: gr.Request) -> Updates:
                return self.pressed(self._app.session(request), resume)

            return press

        for button, handler in ((start, presser(False)), (go_on, presser(True)), (self.yes, self.agreed)):
            on(button.click, handler, None, shown, where, queue=False)
        self.no.click(self.hidden, None, self.body, queue=False, **PRIVATE)

    def hidden(self) -> Updates:
        """The components without a question."""
        return {self.body: gr.Column(visible=False)}

    def pressed(self, session: Session, resume: bool) -> Updates:
        """Begin a run, or ask: what is lost, and what the next run costs.

        Raises:
            UsageError: no data set is confirmed.
        """
        if session.of(DataState).confirmed is None:  # step 3 is open for a run that stays on the screen
            raise UsageError(NO_DATA)
        state = session.of(GenerateState)
        state.resume = resume
        if state.under_way or not state.untaken:
            return self._begin(state)
        planned = session.of(PrivacyState).planned
        charge = planned.charge if planned else 0.0
        price = f" ({rounded_up(charge, 3)})" if 0 < charge < math.inf else ""
        cost = _RESUMING if resume else _COSTS_AGAIN.format(price=price)
        return {self.body: gr.Column(visible=True), self.words: notice(f"{_KEPT_NOWHERE} {cost}", "warn")}

    def agreed(self, request: gr.Request) -> Updates:
        """Begin the run of the question."""
        return self._begin(self._app.session(request).of(GenerateState))

    def _begin(self, state: GenerateState) -> Updates:
        state.presses += 1
        return self.hidden() | {self._where: spinner("Waiting for the model …"), self.begun: state.presses}


# Finished runs that a reloaded page finds again. They are kept in memory, on a server whose ledger outlives its pages.
#
# A run is found by the random key that the browser keeps with its tab. It holds the releases, the data set's name and
# the keyed digest of its content, and nothing else that follows from its rows.

MOST_RUNS = 20
"""Runs that a server keeps; with more, the oldest are dropped."""
_KEY = re.compile(r"[0-9a-f]{32}")
_SHOWN_AGAIN = (
    "This page was loaded anew. The run that had ended here is shown again, and its set can be tested and exported. "
    "The data are no longer here: choose them in step 1 before you write another set."
)


class KeptRuns:
    """The kept runs of a server, the oldest first, and the component that tells a tab's key.

    Attributes:
        found: fires when there may be a set again.
    """

    found: gr.events.Dependency

    def __init__(self, app: Services) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._runs: dict[str, tuple[Run, Made]] = {}
        self.key = drawn("tab_key.js", None, elem_id="tab-key", elem_classes="sink")

    def wire(self, where: gr.HTML, outputs: list[Any], finished: Any) -> None:
        """Look for a run when the page has sent its key.

        Args:
            where: shows messages.
            outputs: all components that `finished` may change.
            finished: gives the screen of a tab's finished run: `(session, ledger, move)`, where `move` goes to step 3.
        """

        def find(key: Any, request: gr.Request) -> Updates:
            session, ledger = self._app.session(request), self._app.ledger(request)
            if not self.know(session, key) or not self.restore(session):
                return {where: gr.skip()}
            shown: Updates = finished(session, ledger, session.of(DataState).file is None)
            return shown | {where: notice(_SHOWN_AGAIN, "info")}

        self.found = on(self.key.input, find, self.key, outputs, where)

    def know(self, session: Session, key: object) -> bool:
        """Set the key that the browser keeps for a tab; return whether it is valid."""
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            return False
        session.of(GenerateState).key = key
        return True

    def keep(self, session: Session) -> None:
        """Keep a tab's finished run, if its set is private, and what it cost outlives the page too."""
        state = session.of(GenerateState)
        if not self._app.ledgers.lasting or state.key is None or state.written is None or state.made is None:
            return
        if own_recording(session) and state.made.demo_set.certificate.private:
            of = Fingerprint(state.made.of.name, state.made.of.unit, state.made.of.content)
            with self._lock:
                self._runs.pop(state.key, None)
                self._runs[state.key] = state.written, Made(state.made.demo_set, of)
                while len(self._runs) > MOST_RUNS:
                    del self._runs[next(iter(self._runs))]

    def drop(self, session: Session) -> None:
        """Drop a tab's run, which a new one replaces."""
        with self._lock:
            self._runs.pop(session.of(GenerateState).key or "", None)

    def restore(self, session: Session) -> bool:
        """Restore the kept run of a tab without one; return whether there was one."""
        state = session.of(GenerateState)
        with self._lock:
            kept = self._runs.get(state.key or "")
        if kept is None or state.run is not None or state.made is not None:
            return False
        state.restore(*kept)
        return True
