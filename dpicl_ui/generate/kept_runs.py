"""Finished runs: the question before a new run replaces one, and runs that survive a reload of the page."""

from __future__ import annotations

import math
import re
import threading
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session, State
from dpicl_ui.frame.tree import drawn, notice, panel, spinner
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
_AT_ONCE: dict[str, Any] = {"queue": False, **PRIVATE}


class Presses(State):
    """The number of runs begun in a tab, and whether the last press was on Resume."""

    def __init__(self, session: Session) -> None:
        self.count, self.resume = 0, False


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
        for button, resume in ((start, False), (go_on, True)):
            button.click(guarded(where)(self._presser(resume)), None, shown, **_AT_ONCE)
        self.yes.click(guarded(where)(self.agreed), None, shown, **_AT_ONCE)
        self.no.click(self.hidden, None, self.body, **_AT_ONCE)

    def hidden(self) -> dict[Any, Any]:
        """The components without a question."""
        return {self.body: gr.Column(visible=False)}

    def _presser(self, resume: bool) -> Any:
        def press(request: gr.Request) -> dict[Any, Any]:
            return self.pressed(self._app.session(request), resume)

        return press

    def pressed(self, session: Session, resume: bool) -> dict[Any, Any]:
        """Begin a run, or ask: what is lost, and what the next run costs.

        Raises:
            UsageError: no data set is confirmed.
        """
        if session.of(DataState).confirmed is None:  # step 3 is open for a run that stays on the screen
            raise UsageError(NO_DATA)
        state, presses = session.of(GenerateState), session.of(Presses)
        presses.resume = resume
        if state.under_way or not state.untaken:
            return self._begin(presses)
        planned = session.of(PrivacyState).planned
        charge = planned.charge if planned else 0.0
        price = f" ({rounded_up(charge, 3)})" if 0 < charge < math.inf else ""
        cost = _RESUMING if resume else _COSTS_AGAIN.format(price=price)
        return {self.body: gr.Column(visible=True), self.words: notice(f"{_KEPT_NOWHERE} {cost}", "warn")}

    def agreed(self, request: gr.Request) -> dict[Any, Any]:
        """Begin the run of the question."""
        return self._begin(self._app.session(request).of(Presses))

    def _begin(self, presses: Presses) -> dict[Any, Any]:
        presses.count += 1
        return self.hidden() | {self._where: spinner("Waiting for the model …"), self.begun: presses.count}


# Finished runs that a reloaded page finds again. They are kept in memory, on a server whose ledger outlives its pages.
#
# A run is found by the random key that the browser keeps with its tab. It holds the releases, the data set's name and
# the keyed digest of its content, and nothing else that follows from its rows.

MOST_RUNS = 20
"""Runs that a server keeps; with more, the oldest are dropped."""
_KEY = re.compile(r"[0-9a-f]{32}")


class TabKey(State):
    """The key of a tab's finished run; None if the browser stores none."""

    def __init__(self, session: Session) -> None:
        self.value: str | None = None


class KeptRuns:
    """The kept runs of a server, the oldest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, tuple[Run, Made]] = {}

    def know(self, session: Session, key: object) -> bool:
        """Set the key that the browser keeps for a tab; return whether it is valid."""
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            return False
        session.of(TabKey).value = key
        return True

    def keep(self, session: Session) -> None:
        """Keep a tab's finished run, if its set is private."""
        key, state = session.of(TabKey).value, session.of(GenerateState)
        if key is None or state.written is None or state.made is None or not own_recording(session):
            return
        if state.made.demo_set.certificate.private:
            of = Fingerprint(state.made.of.name, state.made.of.unit, state.made.of.content)
            with self._lock:
                self._runs.pop(key, None)
                self._runs[key] = state.written, Made(state.made.demo_set, of)
                while len(self._runs) > MOST_RUNS:
                    del self._runs[next(iter(self._runs))]

    def drop(self, session: Session) -> None:
        """Drop a tab's run."""
        with self._lock:
            if (key := session.of(TabKey).value) is not None:
                self._runs.pop(key, None)

    def restore(self, session: Session) -> bool:
        """Restore the kept run of a tab without one; return whether there was one."""
        state, key = session.of(GenerateState), session.of(TabKey).value
        if state.run is not None or state.made is not None or key is None:
            return False
        with self._lock:
            kept = self._runs.get(key)
        if kept is not None:
            state.restore(*kept)
        return kept is not None


# A page that was loaded anew: the finished run of the same tab is on its screen again.

_SHOWN_AGAIN = (
    "This page was loaded anew. The run that had ended here is shown again, and its set can be tested and exported. "
    "The data are no longer here: choose them in step 1 before you write another set."
)


class Reload:
    """Components and handlers, but for what the screen becomes, which is the step's.

    Attributes:
        found: fires when there may be a set again.
    """

    found: gr.events.Dependency

    def __init__(self, app: Services) -> None:
        self._app, self._runs = app, KeptRuns()
        self.key = drawn("tab_key.js", None, elem_id="tab-key", elem_classes="sink")

    def wire(self, where: gr.HTML, outputs: list[Any], finished: Any) -> None:
        """Look for a run when the page has sent its key.

        Args:
            where: shows messages.
            outputs: all components that `finished` may change.
            finished: gives the screen of a tab's finished run: `(session, ledger, move)`, where `move` goes to step 3.
        """

        def find(key: Any, request: gr.Request) -> dict[Any, Any]:
            session, ledger = self._app.session(request), self._app.ledger(request)
            if not self._runs.know(session, key) or not self._runs.restore(session):
                return {where: gr.skip()}
            shown: dict[Any, Any] = finished(session, ledger, session.of(DataState).file is None)
            return shown | {where: notice(_SHOWN_AGAIN, "info")}

        self.found = self.key.input(guarded(where)(find), self.key, outputs, **PRIVATE)

    def begun(self, session: Session) -> None:
        """Drop the run that a new one replaces."""
        self._runs.drop(session)

    def ended(self, session: Session) -> None:
        """Keep a run that has ended, where what it cost outlives the page too."""
        if self._app.ledgers.lasting:
            self._runs.keep(session)
