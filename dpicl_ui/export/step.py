"""Step 5: the demo set as a file, and its certificate."""

from __future__ import annotations

from typing import Any

import gradio as gr

from dpicl_ui.export.certificate_card import certificate, task
from dpicl_ui.export.shapes import DEMO_SET, WITHOUT_DEMONSTRATIONS, explained, saved, shapes
from dpicl_ui.frame.downloads import download, sink
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.ledgers import Ledgers
from dpicl_ui.frame.sessions import Session, Sessions
from dpicl_ui.frame.step_bar import Gate, StepBar
from dpicl_ui.frame.tree import Tree, el, notice, panel
from dpicl_ui.generate.cards import MANY, demonstrations, unfolded
from dpicl_ui.generate.state import GenerateState
from mechanisms.accounting import PrivacyLedger
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError

_NO_EXAMPLES = "None: the model answers best without examples here."


def gate(session: Session) -> Gate:
    """Open when something was written, or when it was found that no demonstrations serve best."""
    made = session.of(GenerateState).made
    if made is None or not (made.demo_set.demonstrations or made.demo_set.choice):
        return Gate(
            "There is nothing to export yet: write demonstrations in step 3. To look at a file that was exported "
            "before, load it in step 4."
        )
    return Gate()


class ExportStep:
    """Components and handlers of step 5."""

    def __init__(self, sessions: Sessions, ledgers: Ledgers, bar: StepBar) -> None:
        self._sessions, self._ledgers = sessions, ledgers
        with bar.panel(5), gr.Row(elem_classes="split"):
            with gr.Column(scale=7, min_width=300, elem_classes="card public"):
                panel(
                    el("div.card-head", el("h2", "Privacy certificate"), el("span.tag.public", "Releasable")),
                )
                self.certificate = panel(elem_id="certificate")
            with gr.Column(scale=4, min_width=300, elem_classes="aside"):
                with gr.Column(elem_classes="card public"):
                    panel(el("h3", "Download"))
                    self.shape = gr.Dropdown(shapes(None), value=DEMO_SET, label="Format", elem_id="export-format")
                    self.purpose = panel(*explained(DEMO_SET, None), elem_id="export-purpose")
                    self.save = gr.Button("Download", variant="primary", elem_id="download")
                    self.notice = panel(elem_id="export-notice")
                    self.sink = sink()
                with gr.Column(elem_classes="card"):
                    self.content = panel(elem_id="export-content")
        changed = [self.sink, self.notice, self.certificate]
        self.save.click(guarded(self.notice)(self._save), self.shape, changed, **PRIVATE)
        explaining = guarded(self.notice)(self._explain)
        self.shape.input(explaining, self.shape, [self.purpose, self.notice], **PRIVATE)

    def follow(self, ended: gr.events.Dependency) -> None:
        """Show a run's certificate when it has ended."""
        shown = [self.certificate, self.content, self.notice, self.shape, self.purpose]
        ended.then(self._show, None, shown, **PRIVATE)

    def _marked(self, session: Session, ledger: PrivacyLedger) -> DemoSet | None:
        """The set as it may be exported now: what became known since it was written is on it."""
        made = session.of(GenerateState).made
        return made.demo_set.with_marks(ledger.rows.marks(made.of)) if made else None

    def _show(self, request: gr.Request) -> Any:
        made = self._marked(self._sessions.of(request), self._ledgers.of(request))
        if made is None:
            return [], [], [], gr.Dropdown(shapes(None), value=DEMO_SET), explained(DEMO_SET, None)
        shown = [*task(made.template, made.labels), el("h3", "Demonstrations"), _listed(made)]
        return certificate(made), shown, [], gr.Dropdown(shapes(made), value=DEMO_SET), explained(DEMO_SET, made)

    def _explain(self, shape: str, request: gr.Request) -> dict[Any, Any]:
        made = self._marked(self._sessions.of(request), self._ledgers.of(request))
        return {self.purpose: explained(shape, made), self.notice: []}

    def _save(self, shape: str, request: gr.Request) -> dict[Any, Any]:
        session = self._sessions.of(request)
        made = self._marked(session, self._ledgers.of(request))
        if made is None:
            raise UsageError("There is nothing to export yet: write demonstrations in step 3.")
        file = saved(shape, made)
        if shape not in WITHOUT_DEMONSTRATIONS:
            session.of(GenerateState).take()
        return {
            self.sink: download(session, file),
            self.certificate: certificate(made),
            self.notice: notice("Saved by your browser. Nothing is left on the server.", "good"),
        }


def _listed(made: DemoSet) -> Tree:
    if not made.demonstrations:
        return el("p.muted", _NO_EXAMPLES)
    shown = demonstrations(made)
    return unfolded(*shown) if len(shown) > MANY else el("div.demos", *shown)
