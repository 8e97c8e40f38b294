"""The part of step 4 that measures on a labelled file: the set beside zero-shot and public-only."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import gradio as gr

from dpicl_ui.data.reading import STAYS, ReadingCard, Waiting
from dpicl_ui.data.state import DataState
from dpicl_ui.frame.guard import MODEL, PRIVATE, guarded
from dpicl_ui.frame.inputs import PrivateDropdown, drop, taken
from dpicl_ui.frame.job import JobControls, Order, Passing, Updates
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.tree import el, notice, panel, progress
from dpicl_ui.test.another_reader import AnotherReader, reads
from dpicl_ui.test.cards import accuracies, headline_of, readers
from dpicl_ui.test.state import Measurements, PrototypesState, Scored, TestState
from mechanisms.accounting import fingerprint
from mechanisms.data.headers import guess_columns
from mechanisms.data.sizes import shared_rows, without_rows
from mechanisms.data.sources import EXAMPLES, RawFile, formats_in_words, read_table
from mechanisms.data.table import Table
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import DataError, UsageError
from mechanisms.evaluation.evaluate import Progress, Scorecard, evaluate
from mechanisms.evaluation.own_rows import spread
from mechanisms.evaluation.reader import LocalReader
from mechanisms.evaluation.remote_reader import RemoteReader
from mechanisms.records import Dataset

# Test rows that come with the app, for a set that was written from a bundled example.


def bundled_rows_for(labels: Collection[str]) -> Path | None:
    """The bundled test file with exactly these labels, if there is one."""
    return next(
        (each.test for each in EXAMPLES if each.test and _labels(each.test, each.mapping.label) == set(labels)), None
    )


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


class WaitingTest(Waiting):
    """A test file that waits for its owner's word."""


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
        self.reading = ReadingCard(app, WaitingTest, "test")
        self.test_notice = panel(elem_id="test-notice")
        self.job = JobControls(app, Measurements, "Measure", ("measure", "cancel-test", "test-progress"))
        self.scores = panel(elem_id="scores")
        self.readers = panel(elem_id="readers")
        self._wire()

    def _wire(self) -> None:
        opened = [self.test_file, self.test_notice, self.text, self.label, *self.reading.outputs]
        self.test_file.upload(guarded(self.test_notice)(self._open_test), self.test_file, opened, **PRIVATE)
        self.bundled.click(guarded(self.test_notice)(self._take_bundled), None, opened, **PRIVATE)
        read_so = guarded(self.reading.look)(self._read_so)
        self.reading.use.click(read_so, self.reading.inputs, opened, **PRIVATE)
        measured = self.job.start.click(
            guarded(self.test_notice, self.job.idle)(self._measure),
            {self.text, self.label, self.limit, *self._reader.inputs},
            [self.test_notice, *self.about_the_set, *self.job.outputs],
            **MODEL,
            **PRIVATE,
        )
        self._app.bar.follow(self._app.sessions, measured)

    def _open_test(self, upload: str | None, request: gr.Request) -> dict[Any, Any]:
        if upload is None:
            return {self.test_notice: []}
        session = self._app.session(request)
        before = session.of(TestState).table is not None
        try:
            with taken(upload) as path:
                table, shown = self.reading.opened(session, RawFile.at(path), path.name)
        except DataError as error:
            return {self.test_file: None, self.test_notice: notice(f"{error} {STAYS}" if before else str(error))}
        if table is None:
            return shown | {self.test_file: None, self.test_notice: notice(STAYS if before else "", "info")}
        return shown | self._opened(table, session)

    def _read_so(self, request: gr.Request, *said: Any) -> dict[Any, Any]:
        session = self._app.session(request)
        table, _, shown = self.reading.again(session, *said)
        return shown if table is None else shown | self._opened(table, session)

    def _take_bundled(self, request: gr.Request) -> dict[Any, Any]:
        session = self._app.session(request)
        tested = session.of(TestState).tested
        path = bundled_rows_for(tested.labels) if tested else None
        return self._opened(read_table(path), session) if path else {self.test_notice: []}

    def _opened(self, table: Table, session: Session) -> dict[Any, Any]:
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

    def _measure(self, values: Mapping[Any, Any], request: gr.Request) -> Iterator[dict[Any, Any]]:
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

    def _measured(
        self, state: TestState, order: Order[Scored], elsewhere: RemoteReader | None
    ) -> Generator[Updates | Passing]:
        scored, model = order.wanted, self._app.loader.model()
        demo_set = scored.of
        arms = state.arms(demo_set, model, elsewhere is not None)
        said = reads(demo_set, elsewhere, arms) if elsewhere else readers(demo_set, model)
        yield {self.job.bar: progress(0, 1, "Asking the model …"), self.readers: said}
        for result in evaluate(elsewhere or LocalReader(model), demo_set.template, demo_set.labels, arms, scored.rows):
            match result:
                case Progress(done, total):
                    yield self.job.reached(done, total, f"{done} of {total} answers")
                case Scorecard():
                    scored = state.show(replace(scored, cards=(*scored.cards, result)))
                    yield self._figures(scored)
            if order.stop.is_set():
                yield {self.test_notice: notice("Stopped. What was measured so far is shown.", "warn")}
                return

    def _figures(self, scored: Scored) -> Updates:
        shown = accuracies(scored.cards, scored.prototypes, scored.of.labels)
        return {self.scores: shown, self._headline: headline_of(scored.of, scored)}

    def add_prototypes(self, request: gr.Request) -> Iterator[dict[Any, Any]]:
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
        return [self.scores, self.readers, self._headline, self.bundled]

    def emptied(self, tested: DemoSet | None = None) -> dict[Any, Any]:
        """The components without figures, for another set."""
        return {
            self.scores: [],
            self.readers: [],
            self._headline: headline_of(tested, None),
            self.bundled: gr.Button(visible=bool(tested and bundled_rows_for(tested.labels))),
        }
