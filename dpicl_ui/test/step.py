"""Step 4: what the demonstrations are worth, beside zero-shot and public-only. Needs no private data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.cards import progress
from dpicl_ui.frame.choices import PrivateDropdown
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.ledgers import Ledgers
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import Session, Sessions
from dpicl_ui.frame.step_bar import StepBar
from dpicl_ui.frame.tree import el, notice, panel
from dpicl_ui.frame.uploads import taken
from dpicl_ui.test.cards import ARMS, accuracies, answers, confused, subject
from dpicl_ui.test.confusion import confusion_figure
from dpicl_ui.test.state import Scored, TestState
from mechanisms.accounting import fingerprint
from mechanisms.errors import DataError, UsageError
from mechanisms.records import Dataset, Demonstration, Record
from mechanisms.studio.certificates.signature import Signature, check_signature
from mechanisms.studio.certificates.verification import verify
from mechanisms.studio.data.csv_file import Mapping, guess_columns, read_table, to_dataset
from mechanisms.studio.data.marks import mark_scored, owners_of
from mechanisms.studio.evaluation.classify import Classifier, Prediction
from mechanisms.studio.evaluation.evaluate import PRIVATE as OWN
from mechanisms.studio.evaluation.evaluate import PUBLIC_ONLY, ZERO_SHOT, Progress, Scorecard, evaluate
from mechanisms.studio.synthesis.demo_set import DemoSet, loads
from mechanisms.studio.synthesis.public_demonstrations import public_demonstrations

_MODEL: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "model"}
_LARGEST_DEMO_SET = 16 * 2**20
_SIGNATURES = {
    Signature.VALID: ("Written by this installation and unchanged.", "good"),
    Signature.CHANGED: ("Changed since this installation wrote it.", "bad"),
    Signature.FOREIGN: ("Written elsewhere: its signature cannot be checked here.", "info"),
    Signature.ABSENT: ("Without a signature.", "info"),
}


_NOTHING = "There is nothing to test: write demonstrations in step 3, or load an exported set."
_SHARED = (
    "This file shares rows with {names}. An accuracy has no noise, so on those rows it would be a clean value of "
    "private data. Bring rows that took no part, or tick the box below."
)
_OWN_ROWS = "Show me the figures of private rows. They are for me alone, and every later certificate says so"


class EvaluationStep:
    """Components and handlers of step 4."""

    def __init__(self, sessions: Sessions, ledgers: Ledgers, loader: ModelLoader, bar: StepBar) -> None:
        self._sessions, self._ledgers, self._loader, self._bar = sessions, ledgers, loader, bar
        with bar.panel(4):
            with gr.Row(elem_classes="split"):
                with gr.Column(scale=6, min_width=300, elem_classes="card public"):
                    self.subject = panel(*subject(None, False), elem_id="subject")
                with gr.Column(scale=5, min_width=300, elem_classes="card"):
                    panel(
                        el("h3", "Or load an exported set"),
                        el("p.muted", "A .json file from step 5."),
                    )
                    self.load = gr.File(show_label=False, height=140, elem_id="load-demos", elem_classes="drop")
                    self.load_notice = panel(elem_id="load-notice")
            with gr.Column(elem_classes="card"):
                panel(
                    el("h3", "Ask one question"),
                    el("p.muted", "The same text, answered by the model in three ways."),
                )
                with gr.Row(elem_classes="ask"):
                    self.query = gr.Textbox(
                        show_label=False, placeholder="Type a text to classify", lines=2, scale=5, elem_id="query"
                    )  # fmt: skip
                    self.ask = gr.Button("Classify", variant="primary", scale=1, min_width=120, elem_id="ask")
                self.answer = panel(elem_id="answer")
            with gr.Column(elem_classes="card"):
                self._build_file()
        self._wire()
        self._wire_test_file()

    def _build_file(self) -> None:
        panel(
            el("h3", "Measure on a labelled file"),
            el(
                "p.muted",
                "A CSV that was not used to write the demonstrations. It stays private: read into memory only.",
            ),
        )
        with gr.Row():
            self.test_file = gr.File(show_label=False, height=140, elem_id="upload-test", elem_classes="drop")
            with gr.Column():
                with gr.Row():
                    self.text = PrivateDropdown(label="Text", elem_id="test-text")
                    self.label = PrivateDropdown(label="Label", elem_id="test-label")
                self.limit = gr.Slider(
                    10, 1000, 100, step=10, label="At most so many rows, spread evenly over the file", elem_id="limit"
                )
        self.test_notice = panel(elem_id="test-notice")
        self.own_rows = gr.Checkbox(label=_OWN_ROWS, visible=False, elem_id="own-rows")
        with gr.Row(elem_classes="actions"):
            self.measure = gr.Button("Measure", variant="primary", elem_id="measure")
            self.cancel = gr.Button("Stop", variant="stop", interactive=False, elem_id="cancel-test")
        self.progress = panel(elem_id="test-progress")
        self.scores = panel(elem_id="scores")
        with gr.Column(visible=False) as self.matrix:
            self.matrix_head = panel(*confused(()))
            self.arm = gr.Radio(
                [(title, name) for name, (title, _) in ARMS.items()], value=OWN, show_label=False, elem_id="arm"
            )
            self.plot = gr.Plot(show_label=False, elem_id="confusion")

    def _wire(self) -> None:
        self.load.upload(
            guarded(self.load_notice)(self._load),
            self.load,
            [self.load, self.load_notice, self.subject, self.answer, self.scores, self.matrix, self._bar.html],
            **PRIVATE,
        )
        asked: dict[str, Any] = {
            "fn": guarded(self.answer, lambda: {self.ask: gr.Button(interactive=True)})(self._ask),
            "inputs": self.query,
            "outputs": [self.answer, self.ask],
            **_MODEL,
            **PRIVATE,
        }
        self.ask.click(**asked)
        self.query.submit(**asked)

    def _wire_test_file(self) -> None:
        self.test_file.upload(
            guarded(self.test_notice)(self._open_test),
            self.test_file,
            [self.test_file, self.test_notice, self.text, self.label],
            **PRIVATE,
        )
        self.measure.click(
            guarded(self.test_notice, self._measured_buttons)(self._measure),
            [self.text, self.label, self.limit, self.own_rows],
            [
                self.test_notice,
                self.own_rows,
                self.progress,
                self.scores,
                self.matrix,
                self.matrix_head,
                self.arm,
                self.plot,
                self.measure,
                self.cancel,
                self._bar.html,
            ],
            **_MODEL,
            **PRIVATE,
        )
        self.cancel.click(self._cancel, None, self.cancel, queue=False, **PRIVATE)
        self.arm.input(self._choose_arm, self.arm, self.plot, **PRIVATE)

    def follow(self, ended: gr.events.Dependency) -> None:
        """Show a run's set when it has ended."""
        ended.then(self._show_subject, None, [self.subject, self.answer, self.scores, self.matrix], **PRIVATE)

    def _show_subject(self, request: gr.Request) -> Any:
        state = self._sessions.of(request).of(TestState)
        return subject(state.tested, state.loaded is not None), [], [], gr.Column(visible=False)

    def _load(self, upload: str | None, request: gr.Request) -> Iterator[dict[Any, Any]]:
        if upload is None:
            return
        with taken(upload) as path:
            text = _text(path)
        yield {self.load: None, self.load_notice: [el("p.spinner", "Accounting its claim anew …", role="status")]}
        demo_set = loads(text)
        said = [*notice(*verified(demo_set)), *notice(*origin(text))]
        session = self._sessions.of(request)
        session.of(TestState).load(demo_set)
        yield {
            self.load_notice: said,
            self.subject: subject(demo_set, loaded=True),
            self.answer: [],
            self.scores: [],
            self.matrix: gr.Column(visible=False),
            self._bar.html: self._bar.value(session),
        }

    def _arms(self, state: TestState, demo_set: DemoSet) -> list[tuple[str, tuple[Demonstration, ...]]]:
        if not demo_set.demonstrations:
            raise UsageError(_NOTHING)
        key = demo_set.dumps()
        if key not in state.public:
            state.public[key] = public_demonstrations(demo_set, self._loader.model())
        return [(ZERO_SHOT, ()), (PUBLIC_ONLY, state.public[key]), (OWN, demo_set.demonstrations)]

    def _ask(self, query: str, request: gr.Request) -> Iterator[dict[Any, Any]]:
        if not (query or "").strip():
            raise UsageError("Type a text first.")
        yield {
            self.answer: [el("p.spinner", "Asking the model …", role="status")],
            self.ask: gr.Button(interactive=False),
        }
        state = self._sessions.of(request).of(TestState)
        if (demo_set := state.tested) is None:
            raise UsageError(_NOTHING)
        arms = self._arms(state, demo_set)
        model = self._loader.model()
        predictions: list[tuple[str, Prediction]] = []
        for name, demonstrations in arms:
            [prediction] = Classifier(model, demo_set.template, demo_set.labels, demonstrations).predict([query])
            predictions.append((name, prediction))
            yield {self.answer: answers(demo_set.labels, predictions)}

    def _open_test(self, upload: str | None, request: gr.Request) -> dict[Any, Any]:
        if upload is None:
            return {self.test_notice: []}
        try:
            with taken(upload) as path:
                table = read_table(path)
        except DataError as error:
            return {self.test_file: None, self.test_notice: notice(str(error))}
        self._sessions.of(request).of(TestState).table = table
        text, label = guess_columns(table)
        columns = table.columns
        rows = f"{len(table.frame):,} rows are ready. Check the columns, then measure."
        return {
            self.test_file: None,
            self.test_notice: notice(rows, "good"),
            self.text: gr.Dropdown(choices=columns, value=text),
            self.label: gr.Dropdown(choices=columns, value=label),
        }

    def _cancel(self, request: gr.Request) -> Any:
        self._sessions.of(request).of(TestState).stop()
        return gr.Button("Stopping …", interactive=False)

    def _measure(
        self, text: str, label: str, limit: float, own_rows: bool, request: gr.Request
    ) -> Iterator[dict[Any, Any]]:
        session = self._sessions.of(request)
        state = session.of(TestState)
        table, tested = state.table, state.tested
        if table is None:
            raise UsageError("Upload a labelled test file first.")
        if tested is None:
            raise UsageError(_NOTHING)
        test = to_dataset(table, Mapping(text, label), "test file", ())
        known = [row for row in test.records if row.label in tested.labels]
        unknown, chosen = len(test.records) - len(known), spread(known, int(limit))
        owners = self._owners(session, request, test)
        if owners and not own_rows:
            yield {self.own_rows: gr.Checkbox(visible=True)}
            raise UsageError(_SHARED.format(names=", ".join(f"'{name}'" for name in owners)))
        mark_scored(fingerprint(test), self._ledgers.of(request), owners)
        scored = state.score(tested, owners)
        yield {
            self.test_notice: notice(f"{unknown} rows have a label outside the set and are left out.", "warn")
            if unknown
            else [],
            self.progress: progress(0, 1, "Writing the public-only demonstrations …"),
            self.scores: [],
            self.matrix: gr.Column(visible=False),
            self.measure: gr.Button(interactive=False),
            self.cancel: gr.Button("Stop", interactive=True),
        }
        yield from self._measured(state, scored, chosen)
        yield {self._bar.html: self._bar.value(session)}

    def _owners(self, session: Session, request: gr.Request, test: Dataset) -> tuple[str, ...]:
        """Names of the private data sets that test rows belong to."""
        ledger, confirmed = self._ledgers.of(request), session.of(DataState).confirmed
        return tuple(owners_of(fingerprint(test), ledger, fingerprint(confirmed.dataset) if confirmed else None))

    def _measured_buttons(self) -> dict[Any, Any]:
        return {
            self.progress: [],
            self.measure: gr.Button(interactive=True),
            self.cancel: gr.Button("Stop", interactive=False),
        }

    def _measured(self, state: TestState, scored: Scored, rows: list[Record]) -> Iterator[dict[Any, Any]]:
        demo_set = scored.of
        arms = self._arms(state, demo_set)
        yield {self.progress: progress(0, 1, "Asking the model …")}
        for result in evaluate(self._loader.model(), demo_set.template, demo_set.labels, arms, rows):
            match result:
                case Progress(done, total):
                    yield {self.progress: progress(done, total, f"{done} of {total} answers")}
                case Scorecard():
                    scored = scored.with_card(result)
                    state.show(scored)
                    yield {self.scores: accuracies(scored.cards, scored.owners)}
            if scored.stop.is_set():
                yield {self.test_notice: notice("Stopped. What was measured so far is shown.", "warn")}
                return
        shown = confusion_figure(scored.cards[-1], demo_set.labels)
        head = confused(scored.owners)
        yield {self.matrix: gr.Column(visible=True), self.matrix_head: head, self.arm: OWN, self.plot: shown}

    def _choose_arm(self, name: str, request: gr.Request) -> Any:
        scored = self._sessions.of(request).of(TestState).scored
        for card in scored.cards if scored else ():
            if scored and card.name == name:
                return confusion_figure(card, scored.of.labels)
        return gr.skip()


def spread(rows: list[Record], limit: int) -> list[Record]:
    """At most `limit` rows, evenly over the file: a file that is sorted by label stays balanced."""
    if len(rows) <= limit:
        return rows
    return [rows[i * len(rows) // limit] for i in range(limit)]


def verified(demo_set: DemoSet) -> tuple[str, str]:
    """What to say of a loaded set: whether its certificate, built anew from its parameters, fits."""
    certificate, found = demo_set.certificate, verify(demo_set)
    if found.problems:
        return f"Loaded, but its certificate is wrong: {found.problems[0]}", "bad"
    if not certificate.private:
        return f"Loaded. This set is not private: {certificate.reason or 'it says so itself'}.", "warn"
    claim = certificate.claim
    holds = f"Loaded. Its claim was accounted anew and holds: epsilon {claim.epsilon:.3g} at delta {claim.delta:g}."
    return f"{holds} {found.remark or ''}".strip(), "good"


def origin(text: str) -> tuple[str, str]:
    """What to say of a loaded file's signature."""
    return _SIGNATURES[check_signature(text)]


def _text(path: Path) -> str:
    if path.stat().st_size > _LARGEST_DEMO_SET:
        raise UsageError("This file is too large for a demo set.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError("This is not a demo set: the file is not text.") from error
