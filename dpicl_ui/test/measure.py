"""The part of step 4 that measures on a labelled file, here or with another reader, whose key is kept nowhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import gradio as gr

from dpicl_ui.data.forms import ReadingCard
from dpicl_ui.data.state import DataState
from dpicl_ui.frame.guard import MODEL, PRIVATE, on
from dpicl_ui.frame.inputs import PrivateDropdown, drop
from dpicl_ui.frame.job import JobControls, Order, Passing
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.tree import Tree, Updates, el, notice, panel, progress
from dpicl_ui.test.cards import accuracies, confusion_figure, headline_of, readers
from dpicl_ui.test.state import Measurements, PrototypesState, Scored, TestState
from mechanisms.accounting import fingerprint
from mechanisms.data.headers import guess_columns
from mechanisms.data.sizes import shared_rows, without_rows
from mechanisms.data.sources import EXAMPLES, formats_in_words, read_table
from mechanisms.data.table import Table
from mechanisms.demos.demo_set import PUBLIC_ONLY, DemoSet
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import Progress, Scorecard, evaluate
from mechanisms.evaluation.own_rows import spread
from mechanisms.evaluation.reader import (
    Arm,
    LocalReader,
    RemoteReader,
    read_remotely_in_words,
    refuse_set_without_promise,
)
from mechanisms.inference.models import available_models
from mechanisms.inference.remote import ChatServer, ServerAddress
from mechanisms.records import Dataset

_HERE, _ADDRESS = "here", "address"
_LEAVES = (
    "The demonstrations and the queries (your questions, and the texts of a test file) leave this machine for that "
    "address; private rows do not. The key goes with each request, and is kept neither here nor in a file."
)
_BAD_KEY = "The key holds characters that no key has: type the key alone."
_NO_PUBLIC = " Public text would be written by another model than the set's, and is left out."
_LOADED = "It takes the place of the model that is loaded, and writes too from then on."


class AnotherReader:
    """Components and the choice that they make; `inputs` are what `chosen` reads.

    An address is offered on a server of one owner alone: on a public one, strangers would have it ask for them.
    """

    def __init__(self, app: Services) -> None:
        self._app = app
        choices = [("The model that is loaded here", _HERE)]
        choices += [("A model behind an address", _ADDRESS)] if app.ledgers.lasting else []
        with gr.Accordion("Another reader", open=False, elem_classes="card", elem_id="another-reader"):
            self.who = gr.Radio(choices, value=_HERE, label="Who reads", elem_id="reader", elem_classes="presets")
            with gr.Column(visible=False) as self.elsewhere:
                panel(el("p.muted", _LEAVES))
                self.address = gr.Textbox(
                    label="Address", placeholder="https://api.example.org/v1", elem_id="reader-address"
                )
                self.model = gr.Textbox(label="Model, as the server calls it", elem_id="reader-model")
                self.key = gr.Textbox(
                    label="Key, if the server wants one",
                    type="password",
                    elem_id="reader-key",
                    html_attributes=gr.InputHTMLAttributes(autocomplete="off"),
                )
            if not app.loader.locked:
                self._build_local()
        self.inputs = {self.who, self.address, self.model, self.key}
        self.who.input(lambda who: gr.Column(visible=who == _ADDRESS), self.who, self.elsewhere, **PRIVATE)

    def _build_local(self) -> None:
        names = [(each.description, each.name) for each in available_models() if each.available]
        with gr.Row(elem_classes="actions"):
            self.name = gr.Dropdown(names, label="Another model of this machine", info=_LOADED, elem_id="reader-name")
            self.load = gr.Button("Load it", size="sm", elem_id="reader-load")
        self.there = panel(elem_id="reader-there")
        on(self.load.click, self._load, self.name, [self.there, self.load], self.there, self._free, **MODEL)

    def _free(self) -> Updates:
        return {self.load: gr.Button(interactive=True)}

    def _load(self, name: str | None) -> Iterator[Updates]:
        yield {self.load: gr.Button(interactive=False)}
        for told in self._app.loader.changed(name or ""):
            yield {self.there: told}

    def chosen(self, values: Mapping[Any, Any], demo_set: DemoSet) -> RemoteReader | None:
        """The reader elsewhere, made for this press; None where the model that is loaded here reads.

        Args:
            values: of the components of `inputs`.

        Raises:
            UsageError: the set has no privacy claim, or address, model or key cannot be used.
        """
        if values[self.who] != _ADDRESS or not self._app.ledgers.lasting:
            return None
        key = (values[self.key] or "").strip()
        if not (key.isascii() and key.isprintable()):
            raise UsageError(_BAD_KEY)
        address = ServerAddress.of(values[self.address] or "")
        reader = RemoteReader(ChatServer(address, values[self.model] or "", key or None))
        refuse_set_without_promise(demo_set)
        return reader


def reads(demo_set: DemoSet, reader: RemoteReader, arms: tuple[Arm, ...]) -> list[Tree]:
    complete = not demo_set.demonstrations or any(arm.name == PUBLIC_ONLY for arm in arms)
    return notice(read_remotely_in_words(demo_set, reader) + ("" if complete else _NO_PUBLIC), "warn")


# Test rows that come with the app, for a set that was written from a bundled example.


def bundled_rows_for(labels: Collection[str]) -> Path | None:
    """The bundled test file with exactly these labels, if there is one."""
    found = (each.test for each in EXAMPLES if each.test and _labels(each.test, each.mapping.label) == set(labels))
    return next(found, None)


@cache
def _labels(path: Path, column: str) -> frozenset[str]:
    return frozenset(read_table(path).frame[column])


# Measuring.

_TEST_FILE = (
    f"A file ({formats_in_words()}) that was not used to write the demonstrations. It stays private: read into memory "
    "only, unless another reader answers."
)
_SHARED = (
    "{count} of its {total} rows are left out: private data sets have them, where spaces, case and punctuation do not "
    "count, and an accuracy has no noise. How many they are is for your eyes only."
)
_NOTHING_LEFT = "Private data sets have every row of this file: bring rows that took no part."
_MEASURE_AGAIN = (
    "This file shares rows with a private data set, which was not known when it was measured: measure again."
)
_BUNDLED = "Take the test rows of the bundled example"


class FileMeasurement:
    """Components and handlers; made inside the card that shows them.

    Args:
        headline: where the one sentence on the set stands.
    """

    def __init__(self, app: Services, reader: AnotherReader, headline: gr.HTML) -> None:
        self._app, self._reader, self._headline = app, reader, headline
        panel(el("h3", "Measure on a labelled file"), el("p.muted", _TEST_FILE))
        with gr.Row():
            with gr.Column():
                self.test_file = drop("upload-test")
                self.bundled = gr.Button(_BUNDLED, size="sm", visible=False, elem_id="bundled-test")
            with gr.Column():
                with gr.Row():
                    self.text = PrivateDropdown(label="Text", elem_id="test-text")
                    self.label = PrivateDropdown(label="Label", elem_id="test-label")
                self.limit = gr.Slider(10, 1000, 100, step=10, label="Test rows, at most", elem_id="limit")
        self.reading = ReadingCard(app, "test")
        self.test_notice = panel(elem_id="test-notice")
        self.job = JobControls(app, Measurements, "Measure", ("measure", "cancel-test", "test-progress"))
        self.scores = panel(elem_id="scores")
        self.readers = panel(elem_id="readers")
        self.confusion = gr.Plot(show_label=False, visible=False, elem_id="confusion", elem_classes="chart")
        self._wire()

    def _wire(self) -> None:
        opened, reading = [self.test_file, self.test_notice, self.text, self.label, *self.reading.outputs], self.reading
        on(self.test_file.upload, self._open_test, self.test_file, opened, self.test_notice)
        on(self.bundled.click, self._take_bundled, None, opened, self.test_notice)
        on(reading.use.click, self._read_so, reading.inputs, opened, reading.look)
        typed = {self.text, self.label, self.limit, *self._reader.inputs}
        shown = [self.test_notice, *self.about_the_set, *self.job.outputs]
        measured = on(self.job.start.click, self._measure, typed, shown, self.test_notice, self.job.idle, **MODEL)
        # Of two values that a handler yields within moments the browser may draw the last alone.
        measured.then(self._app.bar_after(), None, self._app.bar.html, **PRIVATE)
        measured.then(self._confused, None, self.confusion, **PRIVATE)

    def _confused(self, request: gr.Request) -> Any:
        scored = self._app.session(request).of(TestState).scored
        if scored is None or not scored.complete:
            return gr.skip()
        return gr.Plot(confusion_figure(scored.cards[-1], scored.of.labels), visible=True)

    def _open_test(self, upload: str | None, request: gr.Request) -> Updates:
        if upload is None:
            return {self.test_notice: []}
        session = self._app.session(request)
        before = session.of(TestState).table is not None
        table, shown, said = self.reading.uploaded(session, upload, "", before)
        opened = {self.test_notice: said} if table is None else self._opened(table, session)
        return {self.test_file: None} | shown | opened

    def _read_so(self, request: gr.Request, *said: Any) -> Updates:
        session = self._app.session(request)
        table, _, shown = self.reading.again(session, *said)
        return shown if table is None else shown | self._opened(table, session)

    def _take_bundled(self, request: gr.Request) -> Updates:
        session = self._app.session(request)
        tested = session.of(TestState).tested
        path = bundled_rows_for(tested.labels) if tested else None
        return self._opened(read_table(path), session) if path else {self.test_notice: []}

    def _opened(self, table: Table, session: Session) -> Updates:
        state = session.of(TestState)
        state.table = table
        text, label = guess_columns(table, state.tested.labels if state.tested else ())
        rows = " ".join([f"{len(table.frame):,} rows are ready. Check the columns, then measure.", *table.remarks])
        return {
            **self.reading.closed(session),
            self.test_file: None,
            self.test_notice: notice(rows, "good"),
            self.text: gr.Dropdown(choices=table.columns, value=text or None),
            self.label: gr.Dropdown(choices=table.columns, value=label or None),
        }

    def _measure(self, values: Mapping[Any, Any], request: gr.Request) -> Iterator[Updates]:
        session = self._app.session(request)
        state = session.of(TestState)
        tested = state.classifying
        test, left_out = state.rows(values[self.text], values[self.label], tested)
        shared = self._shared(request, test)
        rest = without_rows(test, shared)
        if not rest.records:
            raise UsageError(_NOTHING_LEFT)
        elsewhere = self._reader.chosen(values, tested)
        known = [row for row in rest.records if row.label in tested.labels]
        scored = Scored(tested, rest, tuple(spread(known, int(values[self.limit]))))
        session.of(Measurements).order(scored)
        state.show(scored)
        private = _SHARED.format(count=sum(shared), total=len(test.records)) if any(shared) else ""
        yield {
            self.test_notice: notice(" ".join(filter(None, (left_out.sentence, private))), "warn"),
            **self.emptied(tested),
            **self.job.working(progress(0, 1, "Writing the public-only demonstrations …")),
        }
        yield from self.job.run(request, lambda order: self._measured(state, order, elsewhere))
        yield from self.add_prototypes(request)

    def _shared(self, request: gr.Request, test: Dataset) -> list[bool]:
        """For each row, whether a private data set has it."""
        confirmed = self._app.session(request).of(DataState).confirmed
        own = fingerprint(confirmed.dataset) if confirmed else None
        return shared_rows(test, self._app.ledger(request), own)

    def _measured(self, state: TestState, order: Order[Scored], elsewhere: RemoteReader | None) -> Iterator[Updates]:
        scored, model, passing = order.wanted, self._app.loader.model(), Passing()
        demo_set = scored.of
        arms = state.arms(demo_set, model, elsewhere is not None)
        said = reads(demo_set, elsewhere, arms) if elsewhere else readers(demo_set, model)
        yield {self.job.bar: progress(0, 1, "Asking the model …"), self.readers: said}
        for result in evaluate(elsewhere or LocalReader(model), demo_set.template, demo_set.labels, arms, scored.rows):
            match result:
                case Progress(done, total) if passing.shown():
                    yield {self.job.bar: progress(done, total, f"{done} of {total} answers")}
                case Scorecard():
                    scored = state.show(replace(scored, cards=(*scored.cards, result)))
                    yield self._figures(scored)
            if order.stop.is_set():
                yield {self.test_notice: notice("Stopped. What was measured so far is shown.", "warn")}
                return

    def _figures(self, scored: Scored) -> Updates:
        shown = accuracies(scored.cards, scored.prototypes, scored.of.labels)
        return {self.scores: shown, self._headline: headline_of(scored.of, scored)}

    def add_prototypes(self, request: gr.Request) -> Iterator[Updates]:
        """Show class prototypes that were released beside the figures that are there, on the same rows.

        Raises:
            UsageError: rows of the test file turn out to be private since they were scored.
        """
        session = self._app.session(request)
        state, released = session.of(TestState), session.of(PrototypesState).released
        scored = state.scored
        if scored is None or released is None or not scored.complete or not released.covers(scored.of.labels):
            return
        if any(self._shared(request, scored.test)):
            raise UsageError(_MEASURE_AGAIN)
        found = released.accuracy(scored.rows, scored.of.labels, self._app.embedder.embedder())
        yield self._figures(state.show(replace(scored, prototypes=found)))

    @property
    def about_the_set(self) -> list[Any]:
        """The components of `emptied`."""
        return [self.scores, self.readers, self.confusion, self._headline, self.bundled]

    def emptied(self, tested: DemoSet | None = None) -> Updates:
        return {
            self.scores: [],
            self.readers: [],
            self.confusion: gr.Plot(visible=False),
            self._headline: headline_of(tested, None),
            self.bundled: gr.Button(visible=bool(tested and bundled_rows_for(tested.labels))),
        }
