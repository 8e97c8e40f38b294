"""What is offered where a run on the confirmed data was cut off: to go on with it, or to leave it."""

from __future__ import annotations

from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.ledgers import Ledgers
from dpicl_ui.frame.sessions import Session, Sessions
from dpicl_ui.frame.tree import el, notice, panel
from dpicl_ui.generate.recipe_view import replay_recipe
from dpicl_ui.generate.runner import Runner
from dpicl_ui.generate.state import NO_DATA
from dpicl_ui.generate.unfinished import Unfinished
from mechanisms.accounting import Fingerprint, fingerprint
from mechanisms.errors import StudioError, UsageError
from mechanisms.runs.journal import RunJournal
from mechanisms.runs.recipe import Stage

_AS_FAR_AS = {
    Stage.VOTE: "the vote",
    Stage.CALIBRATE: "measuring which labels the model prefers",
    Stage.CHOOSE: "the choice",
    Stage.SCORE: "the score",
}
_WHAT_IT_COSTS = (
    "What was released is kept and paid for; gone on with, the run costs no more than it was to cost when it began. "
    "Generate would begin another one in its place."
)
_AT_WORK = "A run on these data is at work in another tab, or in one that was closed a moment ago."
_LEFT = "Left: it cannot be gone on with any more. What it was charged stays charged."


class CutOffCard:
    """Components, and all handlers but the one that goes on, which is the step's."""

    def __init__(self, sessions: Sessions, ledgers: Ledgers, runner: Runner) -> None:
        self._sessions, self._ledgers, self._runner = sessions, ledgers, runner
        with gr.Column(elem_classes="card", elem_id="cut-off", visible=False) as self.body:
            self.words = panel(elem_id="cut-off-words")
            with gr.Row(elem_classes="actions"):
                self.go_on = gr.Button("Go on", elem_id="go-on")
                self.leave = gr.Button("Leave it", elem_id="leave-run")
        self.outputs = [self.body, self.words, self.go_on, self.leave]

    def wire(self, where: gr.HTML) -> None:
        """Let it be left; what came of that is said in `where`."""

        def leave(request: gr.Request) -> dict[Any, Any]:
            self._place(request).leave(_data(self._sessions.of(request)))
            return self.shown(request) | {where: notice(_LEFT, "info")}

        self.leave.click(guarded(where)(leave), None, [*self.outputs, where], **PRIVATE)

    def follow(self, *events: gr.events.Dependency) -> None:
        """Look for a run after each of these."""
        for each in events:
            each.then(self.shown, None, self.outputs, **PRIVATE)

    def journal(self, request: gr.Request) -> tuple[RunJournal, Unfinished]:
        """The run to go on with, and where it is written down.

        Raises:
            UsageError: there is none, or none that can be read.
        """
        place = self._place(request)
        return place.read(_data(self._sessions.of(request))), place

    def place(self, request: gr.Request) -> Unfinished | None:
        """Where a tab's runs are written down; None where nothing outlives the tab."""
        return Unfinished(self._ledgers.of(request)) if self._ledgers.lasting else None

    def _place(self, request: gr.Request) -> Unfinished:
        if (place := self.place(request)) is None:
            raise UsageError("Nothing outlives a page here, and no run can be gone on with.")
        return place

    def hidden(self) -> dict[Any, Any]:
        """What it becomes while a run is under way."""
        return {self.body: gr.Column(visible=False)}

    def shown(self, request: gr.Request) -> dict[Any, Any]:
        """What it becomes by what is there for the confirmed data."""
        session, place = self._sessions.of(request), self.place(request)
        if place is None or session.of(DataState).confirmed is None or not place.waits(data := _data(session)):
            return self.hidden()
        try:
            journal = place.read(data)
            at_work, readable = journal.key in self._runner.at_work, True
            words = [el("p", _AT_WORK if at_work else in_words(journal))]
        except StudioError as error:
            at_work, readable, words = False, False, notice(str(error), "warn")
        return {
            self.body: gr.Column(visible=True),
            self.words: words,
            self.go_on: gr.Button(visible=readable),
            self.leave: gr.Button(visible=not at_work),
        }


def in_words(journal: RunJournal) -> str:
    """How far a run had got, and what going on costs."""
    assert journal.begun is not None
    view = replay_recipe([journal.begun, *(journal.told or ())])
    if view.stage in _AS_FAR_AS:
        far = f"It had got as far as {_AS_FAR_AS[view.stage]}."
    elif view.stages and Stage.WRITE not in view.stages:
        far = "It had only begun."
    else:
        whole = len(view.run.finished)
        far = f"{whole} of {view.run.planned} demonstrations {'was' if whole == 1 else 'were'} whole."
    return f"A run on these data was cut off. {far} {_WHAT_IT_COSTS}"


def _data(session: Session) -> Fingerprint:
    confirmed = session.of(DataState).confirmed
    if confirmed is None:
        raise UsageError(NO_DATA)
    return fingerprint(confirmed.dataset)
