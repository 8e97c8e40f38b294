"""The services that all steps of the page share: tabs, ledgers, models, and the step bar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from dpicl_ui.frame.model_loader import EmbedderLoader, ModelLoader
from dpicl_ui.frame.sessions import Ledgers, Session, Sessions
from dpicl_ui.frame.step_bar import StepBar
from mechanisms.accounting import PrivacyLedger


@dataclass(frozen=True, eq=False, repr=False)
class Services:
    """Made once, by the page, and handed to every step."""

    sessions: Sessions
    ledgers: Ledgers
    loader: ModelLoader
    embedder: EmbedderLoader
    bar: StepBar

    def session(self, request: gr.Request) -> Session:
        return self.sessions.of(request)

    def steps(self, session: Session, go: int | None = None) -> dict[Any, Any]:
        """The step bar as it is now; with `go` the browser moves to that step."""
        return {self.bar.html: self.bar.value(session, go)}

    def ledger(self, request: gr.Request) -> PrivacyLedger:
        return self.ledgers.of(request)
