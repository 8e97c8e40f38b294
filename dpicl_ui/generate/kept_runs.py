"""Finished runs that a reloaded page shows again. They stay in memory, on a server whose ledger outlives its pages.

A run is found by a random key that the browser stores with its tab. It consists of the releases, the data set's name
and the keyed digest of its content, and nothing else that follows from its rows.
"""

from __future__ import annotations

import re
import threading
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.handlers import on
from dpicl_ui.frame.services import Services, Session
from dpicl_ui.frame.tree import Updates, drawn, notice
from dpicl_ui.generate.replay import own_recording
from dpicl_ui.generate.state import GenerateState, Run, WrittenSet
from mechanisms.accounting import Fingerprint

MOST_RUNS = 20
"""The most runs that a server keeps; the oldest are dropped."""
_KEY = re.compile(r"[0-9a-f]{32}")
_SHOWN_AGAIN = (
    "This page was reloaded. Its last finished run is shown again, and its set can be tested and exported. The data "
    "are no longer here: choose them in step 1 before you write another set."
)


class KeptRuns:
    """The finished runs of a server, the oldest first; `found` fires after a page has looked for its run."""

    found: gr.events.Dependency

    def __init__(self, app: Services) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._runs: dict[str, tuple[Run, WrittenSet]] = {}
        self.key = drawn("tab_key.js", None, elem_id="tab-key", elem_classes="sink")

    def wire(self, where: gr.HTML, outputs: list[Any], finished: Any) -> None:
        """Look for a run when the page has sent its key; `finished(session, ledger, move)` returns its updates."""

        def find(key: Any, request: gr.Request) -> Updates:
            session, ledger = self._app.session(request), self._app.ledger(request)
            if not self.know(session, key) or not self.restore(session):
                return {where: gr.skip()}
            shown: Updates = finished(session, ledger, session.of(DataState).file is None)
            return shown | {where: notice(_SHOWN_AGAIN, "info")}

        self.found = on(self.key.input, find, self.key, outputs, where)

    def know(self, session: Session, key: object) -> bool:
        """Set the key that the browser stores for a tab; returns whether it is valid."""
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            return False
        session.of(GenerateState).key = key
        return True

    def keep(self, session: Session) -> None:
        """Keep a tab's finished run if its set is private and the ledger outlives the page."""
        state = session.of(GenerateState)
        if not self._app.ledgers.lasting or state.key is None or state.run_of_set is None or state.made is None:
            return
        if own_recording(session) and state.made.demo_set.certificate.private:
            of = Fingerprint(state.made.data.name, state.made.data.unit, state.made.data.content)
            with self._lock:
                self._runs.pop(state.key, None)
                self._runs[state.key] = state.run_of_set, WrittenSet(state.made.demo_set, of)
                while len(self._runs) > MOST_RUNS:
                    del self._runs[next(iter(self._runs))]

    def drop(self, session: Session) -> None:
        """Drop a tab's run, because a new one replaces it."""
        with self._lock:
            self._runs.pop(session.of(GenerateState).key or "", None)

    def restore(self, session: Session) -> bool:
        """Restore the kept run of a tab that has none; returns whether there was one."""
        state = session.of(GenerateState)
        with self._lock:
            kept = self._runs.get(state.key or "")
        if kept is None or state.run is not None or state.made is not None:
            return False
        state.restore(*kept)
        return True
