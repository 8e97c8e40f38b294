"""Step 5: the demo set as a file, and its certificate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from dpicl_ui.export.certificate_card import certificate, task
from dpicl_ui.frame.downloads import download, sink
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.ledgers import Ledgers
from dpicl_ui.frame.sessions import Session, Sessions
from dpicl_ui.frame.step_bar import Gate, StepBar
from dpicl_ui.frame.tree import el, notice, panel
from dpicl_ui.generate.cards import demonstrations
from dpicl_ui.generate.state import GenerateState
from mechanisms.accounting import PrivacyLedger
from mechanisms.errors import UsageError
from mechanisms.studio.certificates.signature import signed
from mechanisms.studio.data.record_files import as_lines
from mechanisms.studio.synthesis.demo_set import FORMAT, DemoSet, to_text

FILE_NAME = "demonstrations.dpicl.json"
LINES_NAME, SCHEMA_NAME = "demonstrations.jsonl", "demonstrations.schema.json"
"""The records alone, one a line, and what they are records of: without a certificate, which is in the demo set."""
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
                    panel(
                        el("h3", "Download"),
                        el(
                            "p.muted",
                            f"One JSON file ({FORMAT}): demonstrations, prompt, certificate. It holds no text, count "
                            "or index of your data beyond what you declared public.",
                        ),
                    )
                    self.save = gr.Button("Download the demo set", variant="primary", elem_id="download")
                    with gr.Row(visible=False) as self.of_records:
                        self.lines = gr.Button("Records as JSON Lines", size="sm", elem_id="download-lines")
                        self.schema = gr.Button("Their schema", size="sm", elem_id="download-schema")
                    self.notice = panel(elem_id="export-notice")
                    self.sink = sink()
                    panel(el("p.muted", "Anyone can load this file in step 4 and test it, without your data."))
                with gr.Column(elem_classes="card"):
                    self.content = panel(elem_id="export-content")
        for button, save in ((self.save, self._save), (self.lines, self._save_lines), (self.schema, self._save_schema)):
            button.click(guarded(self.notice)(save), None, [self.sink, self.notice, self.certificate], **PRIVATE)

    def follow(self, ended: gr.events.Dependency) -> None:
        """Show a run's certificate when it has ended."""
        shown = [self.certificate, self.content, self.notice, self.of_records]
        ended.then(self._show, None, shown, **PRIVATE)

    def _marked(self, session: Session, ledger: PrivacyLedger) -> DemoSet | None:
        """The set as it may be exported now: what became known since it was written is on it."""
        made = session.of(GenerateState).made
        return made.demo_set.with_marks(ledger.rows.marks(made.of)) if made else None

    def _show(self, request: gr.Request) -> Any:
        made = self._marked(self._sessions.of(request), self._ledgers.of(request))
        if made is None:
            return [], [], [], gr.Row(visible=False)
        shown = [
            *task(made.template, made.labels),
            el("h3", "Demonstrations"),
            *(demonstrations(made) if made.demonstrations else [el("p.muted", _NO_EXAMPLES)]),
        ]
        return certificate(made), shown, [], gr.Row(visible=made.schema is not None)

    def _save(self, request: gr.Request) -> dict[Any, Any]:
        return self._saved(request, FILE_NAME, lambda made: to_text(signed(made)))

    def _save_lines(self, request: gr.Request) -> dict[Any, Any]:
        return self._saved(request, LINES_NAME, lambda made: as_lines(each.text for each in made.demonstrations))

    def _save_schema(self, request: gr.Request) -> dict[Any, Any]:
        return self._saved(request, SCHEMA_NAME, lambda made: to_text(made.schema.document) if made.schema else "")

    def _saved(self, request: gr.Request, name: str, text: Callable[[DemoSet], str]) -> dict[Any, Any]:
        session = self._sessions.of(request)
        made = self._marked(session, self._ledgers.of(request))
        if made is None:
            raise UsageError("There is nothing to export yet: write demonstrations in step 3.")
        if name != FILE_NAME and made.schema is None:
            raise UsageError("These demonstrations are no records of a schema: download the demo set.")
        return {
            self.sink: download(session, name, text(made)),
            self.certificate: certificate(made),
            self.notice: notice("Saved by your browser. Nothing is left on the server.", "good"),
        }
