"""A page that was loaded anew: the finished run of the same tab is on its screen again, until somebody forgets it."""

from __future__ import annotations

from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.ledgers import Ledgers
from dpicl_ui.frame.sessions import Session, Sessions
from dpicl_ui.frame.tree import drawn, notice
from dpicl_ui.frame.visibility import seen
from dpicl_ui.generate.kept_runs import KeptRuns, forgotten
from mechanisms.accounting import PrivacyLedger

_AGAIN = (
    "This page was loaded anew. The run that had ended here is shown again, and its set can be tested and exported. "
    "The data are no longer here: choose them in step 1 before you write another set."
)
_FORGOTTEN = "Forgotten: this server holds nothing of that run's texts any more. What it cost stays spent."


class Reload:
    """Components and handlers, but for what the screen becomes, which is the step's.

    Attributes:
        events: after which there is another set, or none.
    """

    def __init__(self, sessions: Sessions, ledgers: Ledgers) -> None:
        self._sessions, self._ledgers, self._runs = sessions, ledgers, KeptRuns()
        self.key = drawn("tab_key.js", None, elem_id="tab-key", elem_classes="sink")
        with gr.Row(elem_classes="actions"):
            self.forget = gr.Button("Forget it", size="sm", visible=seen(False), elem_id="forget-run")
        self.events: tuple[gr.events.Dependency, ...] = ()

    def wire(self, where: gr.HTML, outputs: list[Any], finished: Any, empty: Any) -> None:
        """Look for a run when the page has told its key.

        Args:
            where: what is said.
            outputs: all that the two may change.
            finished: gives what is shown of a tab's finished run, moving to it or not: `(session, ledger, move)`.
            empty: gives what is shown where there is none: `(session)`.
        """

        def find(key: Any, request: gr.Request) -> dict[Any, Any]:
            session, ledger = self._sessions.of(request), self._ledgers.of(request)
            if not self._runs.know(session, key, request) or not self._runs.restore(session, ledger):
                return {where: gr.skip()}
            shown: dict[Any, Any] = finished(session, ledger, session.of(DataState).file is None)
            return shown | {where: notice(_AGAIN, "info"), self.forget: gr.Button(visible=True)}

        def forget(request: gr.Request) -> dict[Any, Any]:
            forgotten(session := self._sessions.of(request), self._runs)
            shown: dict[Any, Any] = empty(session)
            return shown | {where: notice(_FORGOTTEN, "info")} | self.hidden()

        self.events = (
            self.key.input(guarded(where)(find), self.key, outputs, **PRIVATE),
            self.forget.click(guarded(where)(forget), None, outputs, **PRIVATE),
        )

    def hidden(self) -> dict[Any, Any]:
        """What it becomes with another run on the screen."""
        return {self.forget: gr.Button(visible=seen(False))}

    def begun(self, session: Session) -> None:
        """A run takes the place of the one that was kept."""
        self._runs.drop(session)

    def ended(self, session: Session, ledger: PrivacyLedger) -> None:
        """Keep a run that has ended."""
        self._runs.keep(session, ledger)
