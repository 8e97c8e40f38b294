"""Step 4: what the demonstrations are worth, beside zero-shot and public-only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gradio as gr

from dpicl_ui.frame.guard import MODEL, PRIVATE, on
from dpicl_ui.frame.inputs import drop, text_of
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.tree import Tree, Updates, el, notice, panel, spinner
from dpicl_ui.generate.cards import score_card
from dpicl_ui.test.cards import answers, named_arm, readers, subject
from dpicl_ui.test.measure import AnotherReader, FileMeasurement, reads
from dpicl_ui.test.prototypes import PrototypesOffer
from dpicl_ui.test.state import LARGEST_DEMO_SET, TestState, origin, verified
from mechanisms.demos.demo_set import loads
from mechanisms.errors import UsageError
from mechanisms.evaluation.reader import Classifier, Prediction


class EvaluationStep:
    """Components and handlers of step 4."""

    def __init__(self, app: Services) -> None:
        self._app = app
        with app.bar.panel(4):
            with gr.Row(elem_classes="split"):
                with gr.Column(scale=6, min_width=300, elem_classes="card public"):
                    self.headline = panel(elem_id="headline")
                    self.subject = panel(*subject(None, False), elem_id="subject")
                with gr.Column(scale=5, min_width=300, elem_classes="card"):
                    panel(el("h3", "Or load an exported set"), el("p.muted", "A .json file from step 5."))
                    self.load = drop("load-demos")
                    self.load_notice = panel(elem_id="load-notice")
            with gr.Column(elem_classes="card"):
                with gr.Row(elem_classes="ask"):
                    self.query = gr.Textbox(
                        label="Type a text",
                        info="The same text, answered with the set and without it.",
                        lines=2,
                        scale=5,
                        elem_id="query",
                    )
                    self.ask = gr.Button("Classify", variant="primary", scale=1, min_width=120, elem_id="ask")
                self.answer = panel(elem_id="answer")
            with gr.Column(elem_classes="card public"):
                self.score = panel(elem_id="set-score")
            measuring = gr.Column(elem_classes="card")
            self.reader = AnotherReader(app)
            with measuring:
                self.measurement = FileMeasurement(app, self.reader, self.headline)
            title = "Try it without a language model"
            with gr.Accordion(title, open=False, elem_classes="card", elem_id="prototypes"):
                self.prototypes = PrototypesOffer(app, self.measurement)
        self._about_the_set = [self.score, self.subject, self.answer, *self.measurement.about_the_set]
        shown = [self.load, self.load_notice, *self._about_the_set, app.bar.html]
        on(self.load.upload, self._load, self.load, shown, self.load_notice)
        asking, shown = {self.query, *self.reader.inputs}, [self.answer, self.ask]
        for asked in (self.ask.click, self.query.submit):
            on(asked, self._ask, asking, shown, self.answer, lambda: {self.ask: gr.Button(interactive=True)}, **MODEL)

    def follow(self, ended: gr.events.Dependency) -> None:
        ended.then(self._show_set, None, self._about_the_set, **PRIVATE)
        self.prototypes.follow(ended)

    def _show_set(self, request: gr.Request) -> Updates:
        state = self._app.session(request).of(TestState)
        tested, loaded = state.tested, state.loaded is not None
        return {
            self.score: score_card(tested, loaded),
            self.subject: subject(tested, loaded),
            self.answer: [],
            **self.measurement.emptied(tested),
        }

    def _load(self, upload: str | None, request: gr.Request) -> Iterator[Updates]:
        if upload is None:
            return
        text = text_of(upload, LARGEST_DEMO_SET, "a demo set")
        yield {self.load: None, self.load_notice: spinner("Accounting its claim anew …")}
        demo_set = loads(text)
        said = [*notice(*verified(demo_set)), *notice(*origin(text))]
        session = self._app.session(request)
        session.of(TestState).load(demo_set)
        yield {self.load_notice: said, **self._show_set(request), **self._app.steps(session)}

    def _ask(self, values: Mapping[Any, Any], request: gr.Request) -> Iterator[Updates]:
        query = values[self.query] or ""
        if not query.strip():
            raise UsageError("Type a text first.")
        yield {self.answer: spinner("Asking the model …"), self.ask: gr.Button(interactive=False)}
        state = self._app.session(request).of(TestState)
        demo_set = state.classifying
        template, labels = demo_set.template, demo_set.labels
        elsewhere, model = self.reader.chosen(values, demo_set), self._app.loader.model()
        arms = state.arms(demo_set, model, elsewhere is not None)
        said: list[Tree] = []
        predictions: list[tuple[str, Prediction]] = []
        for arm in arms:
            if elsewhere:
                label = elsewhere.label(template, labels, arm, query)
                said.append(named_arm(arm.name, el("p.answer", label or "no label")))
                yield {self.answer: [el("div.arms", *said), *reads(demo_set, elsewhere, arms)]}
            else:
                [prediction] = Classifier(model, template, labels, arm.demonstrations, arm.prior).predict([query])
                predictions.append((arm.name, prediction))
                yield {self.answer: [*answers(labels, predictions), *readers(demo_set, model)]}
