"""Before a run: whether a finished set that nobody exported or saved gives way to it."""

from __future__ import annotations

import math
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.sessions import Session, Sessions, State
from dpicl_ui.frame.tree import Tree, notice, panel
from dpicl_ui.frame.visibility import seen
from dpicl_ui.generate.state import NO_DATA, GenerateState
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.errors import UsageError

_KEPT_NOWHERE = (
    "The finished set of this page was neither exported nor saved, and the next run replaces it, with its choice, "
    "score and replay."
)
_AGAIN = "What it cost stays spent, and another run costs its epsilon again{price}."
_GOING_ON = "What it cost stays spent; the run that was cut off costs no more than it was to cost."
_AT_ONCE: dict[str, Any] = {"queue": False, **PRIVATE}


class Presses(State):
    """How many runs were begun in a tab, and whether the one that was asked about goes on with another."""

    def __init__(self, session: Session) -> None:
        self.count, self.going_on = 0, False


class Replacing:
    """Components and handlers. A press goes through here; a new value of `anew` or `again` then begins the run.

    What is asked for is known at once, while runs wait for the model: so a press and its run are two listeners, and
    the second one hears of the first by a number that this tab never had.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        # A column that is "hidden" from the start stands in the page all the same.
        with gr.Column(visible=False, elem_id="replacing", elem_classes="replacing") as self.body:
            self.words = panel(elem_id="replacing-words")
            with gr.Row(elem_classes="actions"):
                self.yes = gr.Button("Yes, replace it", size="sm", elem_id="replace-set")
                self.no = gr.Button("Keep it", size="sm", elem_id="keep-set")
                self.save = gr.Button("Save this run", size="sm", elem_id="save-before")
        self.anew, self.again = _beat(), _beat()

    def wire(self, start: gr.Button, go_on: gr.Button, where: gr.HTML) -> None:
        """Let these buttons ask first; what is wrong is said in `where`."""
        shown = [self.body, self.words, self.save, self.anew, self.again, where]
        for button, going_on in ((start, False), (go_on, True)):
            button.click(guarded(where)(self._presser(going_on)), None, shown, **_AT_ONCE)
        self.yes.click(guarded(where)(self.agreed), None, shown, **_AT_ONCE)
        self.no.click(self.hidden, None, self.body, **_AT_ONCE)

    def hidden(self) -> dict[Any, Any]:
        """What it becomes where nothing is asked."""
        return {self.body: gr.Column(visible=False)}

    def _presser(self, going_on: bool) -> Any:
        def press(request: gr.Request) -> dict[Any, Any]:
            return self.pressed(self._sessions.of(request), going_on)

        return press

    def pressed(self, session: Session, going_on: bool) -> dict[Any, Any]:
        """Begin a run, or ask.

        Raises:
            UsageError: no data set is confirmed.
        """
        if session.of(DataState).confirmed is None:  # step 3 is open for a run that stays on the screen
            raise UsageError(NO_DATA)
        state, presses = session.of(GenerateState), session.of(Presses)
        presses.going_on = going_on
        if state.under_way or not state.untaken:
            return self._begin(presses)
        assert state.made is not None
        return {
            self.body: gr.Column(visible=True),
            self.words: question(session, going_on),
            self.save: gr.Button(visible=seen(state.made.demo_set.certificate.private)),
        }

    def agreed(self, request: gr.Request) -> dict[Any, Any]:
        """Begin the run that was asked about."""
        return self._begin(self._sessions.of(request).of(Presses))

    def _begin(self, presses: Presses) -> dict[Any, Any]:
        presses.count += 1
        return self.hidden() | {self.again if presses.going_on else self.anew: presses.count}


def question(session: Session, going_on: bool) -> list[Tree]:
    """What is lost, and what the next run costs."""
    planned = session.of(PrivacyState).planned
    charge = planned.charge if planned else 0.0
    price = f" ({charge:.3g})" if 0 < charge < math.inf else ""
    cost = _GOING_ON if going_on else _AGAIN.format(price=price)
    return notice(f"{_KEPT_NOWHERE} {cost}", "warn")


def _beat() -> gr.HTML:
    return gr.HTML(0, html_template="<div></div>", apply_default_css=False, elem_classes="sink")
