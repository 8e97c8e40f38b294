"""The place beside the steps: private answers to questions about the file of step 1, without generating anything."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import gradio as gr

from dpicl_ui.ask.cards import effect_card, history, nearest, promise, refused, reserved, waiting
from dpicl_ui.ask.form import AskForm
from dpicl_ui.ask.row_vectors import EmbedderLoader, RowVectors
from dpicl_ui.ask.settings import AskSettings
from dpicl_ui.data.step import PRIVATE, DataStep
from dpicl_ui.frame.guard import guarded
from dpicl_ui.frame.ledgers import Ledgers
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import Prepared, Session, Sessions
from dpicl_ui.frame.step_bar import ASK, step_panel, steps_value
from dpicl_ui.frame.tree import Tree, el, panel
from dpicl_ui.privacy.cards import budget
from dpicl_ui.test.cards import progress
from mechanisms.errors import DataError, ReservedOtherwise, StudioError, UsageError
from mechanisms.queries import Retrieval
from mechanisms.records import Dataset, privacy_unit
from mechanisms.studio.answering.request import AnswerRequest
from mechanisms.studio.answering.session import check_terms, open_session
from mechanisms.studio.answering.threshold import THRESHOLDS, ThresholdEffect, threshold_effect_on_example
from mechanisms.studio.data.csv_file import to_dataset
from mechanisms.studio.data.examples import EXAMPLES

_INTERVAL = 0.3
"""Least seconds between two updates of the progress bar."""
_EMBED: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "embed"}
_MODEL: dict[str, Any] = {"concurrency_limit": 1, "concurrency_id": "model"}
_QUESTIONS_PUBLIC = "Questions are not protected, and count as public: do not paste in anything from the private rows."


class AskStep:
    """Components and handlers of "Ask privately"."""

    def __init__(self, sessions: Sessions, ledgers: Ledgers, loader: ModelLoader, nav: gr.HTML, data: DataStep) -> None:
        self._sessions, self._ledgers, self._loader, self._nav = sessions, ledgers, loader, nav
        self._embedder = EmbedderLoader(loader)
        self._effects: tuple[ThresholdEffect, ...] = ()
        with step_panel(ASK), gr.Row(elem_classes="split"):
            with gr.Column(scale=6, min_width=300):
                with gr.Column(visible=False) as self.asking:
                    self._build_question()
                with gr.Column() as self.setup:
                    self.settings = AskSettings()
                with gr.Column(elem_classes="card"):
                    self._build_threshold()
            with gr.Column(scale=5, min_width=300, elem_classes="aside"):
                with gr.Column(elem_classes="card public", visible=False) as self.open_card:
                    self.reserved = panel(elem_id="ask-reserved")
                    self.change = gr.Button("Change the terms", size="sm", elem_id="ask-change")
                with gr.Column(elem_classes="card public") as self.offer:
                    self._build_offer()
                with gr.Column(elem_classes="card"):
                    self.budget = panel(elem_id="ask-budget")
        self._wire(data)

    def _build_question(self) -> None:
        with gr.Column(elem_classes="card"):
            panel(el("h2", "Your question"))
            with gr.Row(elem_classes="ask"):
                self.question = gr.Textbox(
                    show_label=False, placeholder="Type a question or a text", lines=2, scale=5, elem_id="ask-question"
                )  # fmt: skip
                self.ask = gr.Button("Ask", variant="primary", scale=1, min_width=120, elem_id="ask-privately")
            panel(el("p.muted", _QUESTIONS_PUBLIC))
            self.notice = panel(elem_id="ask-notice")
        with gr.Column(elem_classes="card public"):
            self.answers = panel(*history(()), elem_id="ask-answers")

    def _build_threshold(self) -> None:
        panel(
            el("h3", "How near must a row be to take part?"),
            el("p.muted", "A row that is at least this similar to a question takes part in its answer, and pays."),
        )
        self.threshold = gr.Slider(
            min(THRESHOLDS), max(THRESHOLDS), 0.3, step=0.1, label="Similarity, from", elem_id="ask-threshold"
        )
        self.effect = panel(elem_id="ask-effect")

    def _build_offer(self) -> None:
        self.outcome = panel(*waiting(), elem_id="ask-outcome")
        self.offer_notice = panel(elem_id="ask-offer-notice")
        self.progress = panel(elem_id="ask-progress")
        self.reserve = gr.Button("Reserve and start", variant="primary", elem_id="ask-reserve")
        self.anew = gr.Button("Pay again: reserve anew", visible=False, elem_id="ask-anew")
        self.stop = gr.Button("Stop", variant="stop", visible=False, elem_id="ask-stop")

    def _wire(self, data: DataStep) -> None:
        settings = self.settings
        inputs = [data.name, data.labels, settings.labels_public, self.threshold, *settings.form]
        shown = [self.outcome, self.budget, self.reserve, self.effect, settings.labels]
        places = [self.asking, self.setup, self.open_card, self.offer, self.anew, self.reserved, self.answers]
        recalculation: dict[str, Any] = {
            "inputs": inputs,
            "concurrency_limit": 2,
            "concurrency_id": "calibrate",
            "trigger_mode": "always_last",
            **PRIVATE,
        }
        gr.on(settings.settled, guarded(self.outcome)(self._recalculate), outputs=shown, **recalculation)
        self.threshold.release(guarded(self.outcome)(self._recalculate), outputs=shown, **recalculation)
        # Step 1's own box is the same promise; the bar changes whenever the file or its columns do.
        data.labels_public.change(lambda public: public, data.labels_public, settings.labels_public, **PRIVATE)
        gr.on(
            [self._nav.change, data.facts.change, data.name.change],
            guarded(self.outcome)(self._follow),
            outputs=[*shown, *places],
            **recalculation,
        )
        self._nav.expand(guarded(self.effect)(self._opened), inputs, shown, **_EMBED, **PRIVATE)
        self._wire_offer(inputs, places)
        self._wire_question()

    def _wire_offer(self, inputs: list[Any], places: list[Any]) -> None:
        working = [self.offer_notice, self.progress, self.reserve, self.anew, self.stop]
        for button, anew in ((self.reserve, False), (self.anew, True)):
            button.click(
                guarded(self.offer_notice, self._idle)(self._preparing(anew)), inputs, working, **_EMBED, **PRIVATE
            ).then(
                guarded(self.offer_notice, self._idle)(self._open),
                None,
                [*working, *places, self.notice, self.budget, self._nav],
                **_MODEL,
                **PRIVATE,
            )
        self.stop.click(self._stop, None, self.stop, queue=False, **PRIVATE)
        self.change.click(lambda: [gr.Column(visible=True)] * 2, None, [self.setup, self.offer], **PRIVATE)

    def _wire_question(self) -> None:
        asked: dict[str, Any] = {
            "fn": guarded(self.notice, lambda: {self.ask: gr.Button(interactive=True)})(self._ask),
            "inputs": [self.question, self.threshold],
            "outputs": [self.notice, self.ask, self.question, self.answers, self.reserved, self._nav],
            **_MODEL,
            **PRIVATE,
        }
        self.ask.click(**asked)
        self.question.submit(**asked)

    def _request(self, session: Session, labels: list[str], form: AskForm) -> AnswerRequest:
        if session.table is None or session.mapping is None:
            raise UsageError("Choose a file and its columns in step 1 first.")
        return form.request(tuple(sorted(labels)), session.mapping.unit is not None, session.field_names)

    def _recalculate(
        self, request: gr.Request, name: str, labels: list[str], _public: bool, threshold: float, *form: Any
    ) -> dict[Any, Any]:
        """What the settings promise and cost."""
        session = self._sessions.of(request)
        if session.table is None or session.mapping is None:
            return {self.outcome: waiting(), self.budget: [], self.reserve: gr.Button(interactive=False)}
        effect = nearest(self._effects, threshold) if self._effects else None
        names = [el("span.chip", label) for label in sorted(labels)]
        update = {self.effect: self._effect(threshold, form), self.settings.labels: [el("p.chips", *names)]}
        try:
            wanted = self._request(session, labels, AskForm.read(*form))
        except StudioError as error:
            closed = {self.outcome: refused(str(error)), self.reserve: gr.Button(interactive=False)}
            return update | closed | {self.budget: self._budget(session, request, name, None)}
        cost = wanted.claim().epsilon
        return update | {
            self.outcome: promise(wanted, effect),
            self.budget: self._budget(session, request, name, None if wanted.terms() == session.terms else cost),
            self.reserve: gr.Button(f"Reserve epsilon {cost:.3g} and start", interactive=True),
        }

    def _budget(self, session: Session, request: gr.Request, name: str, planned: float | None) -> list[Tree]:
        if session.mapping is None or not name.strip():
            return []
        return budget(self._ledgers.of(request).snapshot(name.strip(), privacy_unit(session.mapping.unit)), planned)

    def _effect(self, threshold: float, form: tuple[Any, ...]) -> list[Tree]:
        if not self._effects:
            return []
        try:
            queries = AskForm.read(*form).queries
        except UsageError:  # said elsewhere
            return []
        return effect_card(self._effects, threshold, queries, EXAMPLES[0].title)

    def _follow(self, request: gr.Request, *values: Any) -> dict[Any, Any]:
        """Step 1 has changed: so may what is offered here."""
        return self._recalculate(request, *values) | self._places(self._sessions.of(request))

    def _places(self, session: Session) -> dict[Any, Any]:
        """Which cards are there: settings and their offer, or the open reservation and its questions."""
        opened = session.asking.opened if session.asking else None
        found = {
            self.asking: gr.Column(visible=opened is not None),
            self.open_card: gr.Column(visible=opened is not None),
            self.setup: gr.Column(visible=opened is None),
            self.offer: gr.Column(visible=opened is None),
            self.anew: gr.Button(visible=opened is not None),
            self.answers: history(session.answers),
        }
        return found | ({self.reserved: reserved(opened, _asked(session))} if opened else {})

    def _opened(self, request: gr.Request, *values: Any) -> Iterator[dict[Any, Any]]:
        """The place is looked at: work out what thresholds do to the example, once for everybody."""
        yield self._recalculate(request, *values)
        if not self._effects:
            yield {self.effect: [el("p.spinner", "Trying thresholds on the bundled example …", role="status")]}
            self._effects = threshold_effect_on_example(EXAMPLES[0], self._embedder.embedder())
            yield self._recalculate(request, *values)

    def _preparing(self, anew: bool) -> Any:
        def prepare(
            request: gr.Request, name: str, labels: list[str], public: bool, _threshold: float, *form: Any
        ) -> Iterator[dict[Any, Any]]:
            """Embed the rows: minutes for a large file. Nothing is charged yet."""
            session = self._sessions.of(request)
            session.stop_ask.clear()
            session.prepared = None
            read = AskForm.read(*form)
            wanted = self._request(session, labels, read)
            dataset = _dataset(session, name, wanted, public)
            if not anew:
                try:
                    check_terms(dataset, wanted, self._ledgers.of(request))
                except ReservedOtherwise:
                    yield {self.anew: gr.Button(visible=True)}
                    raise
            yield self._busy([el("p.spinner", "Waiting for the embedding model …", role="status")])
            if session.vectors is None:
                session.vectors = RowVectors(self._embedder.embedder())
            vectors, shown = session.vectors, 0.0
            texts = (each.text for each in dataset.records if not wanted.labels or each.label in wanted.labels)
            for done, total in vectors.learn(texts):
                if session.stop_ask.is_set():
                    raise UsageError("Stopped. Nothing was charged. To go on, press the button again.")
                if time.monotonic() - shown > _INTERVAL:
                    shown = time.monotonic()
                    yield {self.progress: progress(done, total, f"{done / total:.0%} of the rows read")}
            if session.vectors is vectors:  # no other file was chosen meanwhile
                session.prepared = Prepared(dataset, wanted, anew)

        return prepare

    def _open(self, request: gr.Request) -> Iterator[dict[Any, Any]]:
        """Reserve the price in the ledger, and open the questions."""
        session = self._sessions.of(request)
        prepared, session.prepared = session.prepared, None
        vectors = session.vectors
        if prepared is None or vectors is None:
            return
        needed = prepared.request.retrieval is not Retrieval.LABELS_ONLY
        if needed and not self._loader.settled:
            yield self._busy([el("p.spinner", "Waiting for the language model …", role="status")])
        model = self._loader.model() if needed else None
        if session.stop_ask.is_set():
            raise UsageError("Stopped. Nothing was charged.")
        yield self._busy([el("p.spinner", "Reserving …", role="status")])
        if session.vectors is not vectors:
            raise UsageError("The data of step 1 has changed. Nothing was charged: reserve again.")
        ledger = self._ledgers.of(request)
        asking = open_session(prepared.dataset, prepared.request, vectors, model, ledger, anew=prepared.anew)
        if session.vectors is not vectors:
            raise UsageError("The data of step 1 has changed: what was reserved goes on when the old file is back.")
        session.asking, session.terms, opened = asking, prepared.request.terms(), asking.opened
        yield self._places(session) | {
            self.offer_notice: [],
            self.notice: [],
            self.budget: budget(opened.budget),
            self._nav: steps_value(session),
        }

    def _busy(self, shown: list[Tree]) -> dict[Any, Any]:
        return {
            self.offer_notice: [],
            self.progress: shown,
            self.reserve: gr.Button(interactive=False),
            self.anew: gr.Button(interactive=False),
            self.stop: gr.Button("Stop", visible=True, interactive=True),
        }

    def _idle(self) -> dict[Any, Any]:
        return {
            self.progress: [],
            self.reserve: gr.Button(interactive=True),
            self.anew: gr.Button(interactive=True),
            self.stop: gr.Button(visible=False),
        }

    def _stop(self, request: gr.Request) -> Any:
        self._sessions.of(request).stop_ask.set()
        return gr.Button("Stopping …", interactive=False)

    def _ask(self, question: str, threshold: float, request: gr.Request) -> Iterator[dict[Any, Any]]:
        session = self._sessions.of(request)
        asking = session.asking
        if asking is None:
            raise UsageError("The data of step 1 has changed: reserve its price first.")
        if not (question or "").strip():
            raise UsageError("Type a question first.")
        yield {
            self.notice: [el("p.spinner", "The rows near it pay, then the groups answer …", role="status")],
            self.ask: gr.Button(interactive=False),
        }
        released = asking.ask(question.strip(), float(threshold))
        session.answers.append((asking.opened, released))
        yield {
            self.notice: [],
            self.question: "",
            self.answers: history(session.answers),
            self.reserved: reserved(asking.opened, _asked(session)),
            self._nav: steps_value(session),
        }


def _dataset(session: Session, name: str, wanted: AnswerRequest, public: bool) -> Dataset:
    """The data set that is asked, by its name in the ledger; of votes, under the labels that become public."""
    if session.table is None or session.mapping is None:
        raise UsageError("Choose a file and its columns in step 1 first.")
    if not name.strip():
        raise DataError("Give the data set a name in step 1: the ledger keeps what it has spent under it.")
    if wanted.labels and not public:
        raise DataError("Confirm that the label names become public.")
    return to_dataset(session.table, session.mapping, name.strip(), wanted.labels)


def _asked(session: Session) -> list[Any]:
    """Answers under the open reservation."""
    opened = session.asking.opened if session.asking else None
    return [released for of, released in session.answers if of is opened]
