"""Step 5: the demo set as a file, in the formats of other tools, and its certificate."""

from __future__ import annotations

from typing import Any

import gradio as gr

from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.inputs import File, download, sink
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.step_bar import Gate
from dpicl_ui.frame.tree import Tree, el, fact, notice, panel
from dpicl_ui.generate.cards import MANY, demonstrations, facts_label, unfolded
from dpicl_ui.generate.state import GenerateState
from mechanisms.accounting import PrivacyLedger
from mechanisms.demos.demo_set import FORMAT, DemoSet, to_text
from mechanisms.demos.signature import signed
from mechanisms.errors import UsageError
from mechanisms.exports.export_format import Released, format_named, format_names, packed
from mechanisms.records import PromptTemplate
from mechanisms.runs.plan import guarantee

# The privacy certificate of a demo set, for people.


def certificate(demo_set: DemoSet) -> list[Tree]:
    """What is claimed, on what it rests, and what a reader should know."""
    held = demo_set.certificate
    private = [] if held.private else notice(f"Not private: {held.reason}.", "bad")
    return [
        *private,
        el("p.guarantee", guarantee(held.claim, held.by_user)),
        *facts_label(demo_set),
        el("details", el("summary", "All parameters"), el("dl.facts.two", *_parameters(demo_set))),
    ]


def _parameters(demo_set: DemoSet) -> list[Tree]:
    shown = []
    for name, value in demo_set.certificate.parameters.items():
        shown.append(fact(name.replace("_", " "), _value(value)))
    return shown


def _value(value: object) -> str:
    if isinstance(value, dict):
        inner = {name: f"({_value(each)})" if isinstance(each, dict) else _value(each) for name, each in value.items()}
        return ", ".join(f"{name}: {words}" for name, words in inner.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def task(template: PromptTemplate, labels: tuple[str, ...]) -> list[Tree]:
    """The prompt that goes with a set."""
    return [
        el("h3", "The task"),
        el(
            "dl.facts",
            fact("Instruction", template.instruction),
            fact("Labels", ", ".join(labels)),
        ),
    ]


# The formats that step 5 offers: the demo set itself, and what other tools read.

DEMO_SET = "demo-set"
WITHOUT_DEMONSTRATIONS = ("certificate",)
"""Formats in which the set is not kept: the next run would still replace it."""
_FILE_NAME = "demonstrations.dpicl.json"
_PURPOSE = (
    f"One JSON file ({FORMAT}): demonstrations, prompt, certificate. It holds no text, count or index of your data "
    "beyond what you declared public. Anyone can load it in step 4 and test it, without your data."
)


def shapes() -> list[tuple[str, str]]:
    return [("Demo set (JSON)", DEMO_SET), *((format_named(name).title, name) for name in format_names())]


def explained(shape: str, made: DemoSet | None) -> list[Tree]:
    """What a format is for, and what keeps this set out of it, or is lost in it."""
    if shape == DEMO_SET:
        return [el("p.muted", _PURPOSE)]
    chosen = format_named(shape)
    problem = made and (chosen.refusal(made) or chosen.caution(made))
    reading = [el("p.muted", said)] if made and (said := chosen.reading(made)) else []
    return [el("p.muted", chosen.purpose), *reading, *notice(problem or "", "warn")]


def saved(shape: str, made: DemoSet) -> File:
    """The set in a format.

    Raises:
        UsageError: there is no such format, or the set does not fit it.
    """
    text = to_text(signed(made))
    if shape == DEMO_SET:
        return File(_FILE_NAME, "application/json", text.encode())
    chosen = format_named(shape)
    return File(chosen.file_name, chosen.media_type, packed(chosen.write(Released.read(text))))


# Step 5: the demo set as a file, and its certificate.


def gate(session: Session) -> Gate:
    if session.of(GenerateState).made is None:
        return Gate(
            "There is nothing to export yet: write demonstrations in step 3. To look at a file that was exported "
            "before, load it in step 4."
        )
    return Gate()


class ExportStep:
    """Components and handlers of step 5."""

    def __init__(self, app: Services) -> None:
        self._app = app
        with app.bar.panel(5), gr.Row(elem_classes="split"):
            with gr.Column(scale=7, min_width=300, elem_classes="card public"):
                panel(
                    el("div.card-head", el("h2", "Privacy certificate"), el("span.tag.public", "Releasable")),
                )
                self.certificate = panel(elem_id="certificate")
            with gr.Column(scale=4, min_width=300, elem_classes="aside"):
                with gr.Column(elem_classes="card public"):
                    panel(el("h3", "Download"))
                    self.shape = gr.Dropdown(shapes(), value=DEMO_SET, label="Format", elem_id="export-format")
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
        shown = [self.certificate, self.content, self.notice, self.shape, self.purpose]
        ended.then(self._show, None, shown, **PRIVATE)

    def _marked(self, session: Session, ledger: PrivacyLedger) -> DemoSet | None:
        """The set as it may be exported now: what became known since it was written is on it."""
        made = session.of(GenerateState).made
        return made.demo_set.with_disclosures(ledger.rows.disclosures(made.of)) if made else None

    def _show(self, request: gr.Request) -> Any:
        made = self._marked(self._app.session(request), self._app.ledger(request))
        if made is None:
            return [], [], [], gr.Dropdown(shapes(), value=DEMO_SET), explained(DEMO_SET, None)
        shown = [*task(made.template, made.labels), el("h3", "Demonstrations"), _listed(made)]
        return certificate(made), shown, [], gr.Dropdown(shapes(), value=DEMO_SET), explained(DEMO_SET, made)

    def _explain(self, shape: str, request: gr.Request) -> dict[Any, Any]:
        made = self._marked(self._app.session(request), self._app.ledger(request))
        return {self.purpose: explained(shape, made), self.notice: []}

    def _save(self, shape: str, request: gr.Request) -> dict[Any, Any]:
        session = self._app.session(request)
        made = self._marked(session, self._app.ledger(request))
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
    shown = demonstrations(made)
    return unfolded(*shown) if len(shown) > MANY else el("div.demos", *shown)
