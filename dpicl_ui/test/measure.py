"""The part of step 4 that measures on a labelled file: the set beside zero-shot and public-only."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import gradio as gr
import plotly.graph_objects as go

from dpicl_ui.data.reading import STAYS, ReadingCard, Waiting
from dpicl_ui.data.state import GO_ON, DataState
from dpicl_ui.frame.guard import MODEL, PRIVATE, guarded
from dpicl_ui.frame.inputs import PrivateDropdown, drop, taken
from dpicl_ui.frame.job import JobControls, Order, Passing, Updates
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.tree import Tree, el, notice, panel, progress
from dpicl_ui.privacy.cards import duration
from dpicl_ui.test.cards import ARMS, accuracies, confused, readers
from dpicl_ui.test.readings import Elsewhere, reads, refuse_private_rows
from dpicl_ui.test.state import Measurements, PrototypesState, Scored, TestState
from mechanisms.accounting import fingerprint
from mechanisms.data.columns import LeftOut
from mechanisms.data.headers import guess_columns
from mechanisms.data.sizes import mark_scored, owners_of, shared_rows, without_rows
from mechanisms.data.sources import EXAMPLES, RawFile, formats_in_words, read_table
from mechanisms.data.table import Table
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import DataError, UsageError
from mechanisms.evaluation.evaluate import Progress, Scorecard, evaluate
from mechanisms.evaluation.reader import LocalReader
from mechanisms.evaluation.remote_reader import RemoteReader
from mechanisms.records import Dataset, Record
from mechanisms.runs.work import Speed, Work

# Test rows that come with the app, for a set that was written from a bundled example.


def bundled_rows_for(labels: Collection[str]) -> Path | None:
    """The bundled test file with exactly these labels, if there is one."""
    return next(
        (each.test for each in EXAMPLES if each.test and _labels(each.test, each.mapping.label) == set(labels)), None
    )


@cache
def _labels(path: Path, column: str) -> frozenset[str]:
    return frozenset(read_table(path).frame[column])


# The confusion matrix of one arm as a plot.

_SCALE = [[0.0, "rgba(26,143,133,0.05)"], [1.0, "rgba(26,143,133,0.6)"]]
_LONGEST = 18
_NUMBERED = 12
"""Labels up to which every cell shows its count."""
_LEAST_ROW = 16
"""Pixels of a label, however many there are: each is to be read, and Plotly leaves out names that would touch."""
_SMALL = 10
_AXIS: dict[str, Any] = {"type": "category", "showgrid": False, "fixedrange": True, "zeroline": False, "ticks": ""}
_FONT = {"family": "system-ui, sans-serif", "color": "#7c8592", "size": 13}
"""`studio.css` repaints the text in the colours of the light and of the dark page."""


def _short(label: str) -> str:
    # Plotly reads some tags in text: what could begin one is replaced by its look-alike.
    return (label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…").replace("<", "‹").replace("&", "＆")


def confusion_figure(card: Scorecard, labels: Sequence[str]) -> go.Figure:
    """Counts of true label (rows) by predicted label (columns), calibrated; shape (labels, labels)."""
    few = len(labels) <= _NUMBERED
    every = {} if few else {"dtick": 1, "tickfont": {"size": _SMALL}}
    names = [f"{i + 1}. {_short(label)}" for i, label in enumerate(labels)]
    figure = go.Figure(
        go.Heatmap(
            z=card.confusion.tolist(),
            x=[f"{i + 1}." for i in range(len(labels))],
            y=names,
            colorscale=_SCALE,
            showscale=False,
            customdata=[list(map(_short, labels))] * len(labels),
            xgap=3 if few else 1,
            ygap=3 if few else 1,
            texttemplate="%{z}" if few else None,
            textfont={"size": 14},
            hovertemplate="in truth %{y}<br>predicted %{x} %{customdata}<br>%{z} rows<extra></extra>",
        )
    )
    height = 110 + len(labels) * 44 if few else max(640, 110 + len(labels) * _LEAST_ROW)
    return figure.update_layout(
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font=_FONT,
        margin={"l": 10, "r": 10, "t": 10, "b": 44},
        height=height,
        xaxis=_AXIS | every | {"title": {"text": "predicted", "standoff": 8}},
        yaxis=_AXIS | every | {"automargin": True, "autorange": "reversed"},
    )


# How long measuring and class prototypes will take, said before they begin.


_QUERY, _CHARACTERS, _ATTENDED = 60, 4.0, 4000.0
"""Positions of a row in its prompt; characters of a token; positions of demonstrations that cost as much as one row."""


def reading_said(units: int, speed: Speed | None) -> list[Tree]:
    """The expected time of prototypes of so many units; empty before the model was measured."""
    return said(speed.seconds(Work(embedded=units))) if speed else []


def measuring(tested: DemoSet, rows: int) -> Work:
    """The work of reading so many rows without demonstrations, with public ones and with the set."""
    shown = sum(len(each.text) for each in tested.demonstrations) / _CHARACTERS
    arms = 3 if tested.demonstrations else 1
    return Work(read=rows * _QUERY * (arms + 2 * shown / _ATTENDED) + 2 * shown)


def said(seconds: float, what: str = "It takes") -> list[Tree]:
    """The expected time in one line."""
    return [el("p.muted", f"{what} {duration(seconds)} on this machine.")]


# Measuring.

_TEST_FILE = (
    f"A file ({formats_in_words()}) that was not used to write the demonstrations. It stays private: read into memory "
    "only"
)
_UNLESS_TICKED = ", unless you let a model elsewhere answer, above."
_SHARED = (
    "This file shares rows with {names}: {count} of its {total}, where spaces, case and punctuation do not count. An "
    "accuracy has no noise, so on those rows it would be a clean value of private data. Leave them out, or tick the "
    "box below."
)
_LEAVE_OUT = "Leave these out and measure the rest"
_NOTHING_LEFT = "Private data sets have every row of this file: bring rows that took no part."
_MEASURE_AGAIN = (
    "This file shares rows with {names}, which was not known when it was measured. Measure again to see class "
    "prototypes beside the other figures."
)
_OWN_ROWS = "Show me the figures of private rows. They are for me alone, and every later certificate says so"
_MERGE = "Read labels as those of the set that differ only in case, spaces or invisible characters"
_BUNDLED = "Take the test rows of the bundled example"


class WaitingTest(Waiting):
    """A test file that waits for its owner's word."""


class FileMeasurement:
    """Components and handlers; made inside the card that shows them."""

    def __init__(
        self,
        app: Services,
        elsewhere: Elsewhere,
    ) -> None:
        self._app = app
        self._elsewhere = elsewhere
        panel(
            el("h3", "Measure on a labelled file"),
            el("p.muted", _TEST_FILE + (_UNLESS_TICKED if elsewhere.card.visible else ".")),
        )
        with gr.Row():
            with gr.Column():
                self.test_file = drop("upload-test")
                self.bundled = gr.Button(_BUNDLED, size="sm", visible=False, elem_id="bundled-test")
            with gr.Column():
                with gr.Row():
                    self.text = PrivateDropdown(label="Text", elem_id="test-text")
                    self.label = PrivateDropdown(label="Label", elem_id="test-label")
                self.limit = gr.Slider(
                    10, 1000, 100, step=10, label="At most so many rows, spread evenly over the file", elem_id="limit"
                )
        self.reading = ReadingCard(app, WaitingTest, "test")
        self.test_notice = panel(elem_id="test-notice")
        self.merge = gr.Checkbox(label=_MERGE, visible=False, elem_id="test-merge-labels")
        self.allow = gr.Checkbox(label=GO_ON, visible=False, elem_id="test-allow-left-out")
        self.time = panel(elem_id="test-time")
        self.own_rows = gr.Checkbox(label=_OWN_ROWS, visible=False, elem_id="own-rows")
        self.leave_out = gr.Button(_LEAVE_OUT, size="sm", visible=False, elem_id="leave-out")
        self.job = JobControls(app, Measurements, "Measure", ("measure", "cancel-test", "test-progress"))
        self._build_figures()
        self._wire()

    def _build_figures(self) -> None:
        self.scores = panel(elem_id="scores")
        self.readers = panel(elem_id="readers")
        with gr.Column(visible=False) as self.matrix:
            self.matrix_head = panel(*confused(()))
            self.arm = gr.Radio([(title, name) for name, (title, _) in ARMS.items()], show_label=False, elem_id="arm")
        # Never made with `visible=False`: Gradio loses a figure that arrives while its place is being made.
        self.plot = gr.Plot(show_label=False, elem_id="confusion", elem_classes="chart")

    def _wire(self) -> None:
        opened = [
            self.test_file, self.test_notice, self.text, self.label, self.merge, self.allow, *self.reading.outputs
        ]  # fmt: skip
        read = self.test_file.upload(guarded(self.test_notice)(self._open_test), self.test_file, opened, **PRIVATE)
        taken_over = self.bundled.click(guarded(self.test_notice)(self._take_bundled), None, opened, **PRIVATE)
        read_so = guarded(self.reading.look)(self._read_so)
        answered = self.reading.use.click(read_so, self.reading.inputs, opened, **PRIVATE)
        for box, name in ((self.merge, "merge_labels"), (self.allow, "allow_left_out")):
            box.input(self._saying(name), box, None, **PRIVATE)
        for when in (read.then, taken_over.then, answered.then, self.limit.release):
            when(self._told, self.limit, self.time, **PRIVATE)
        shown = [self.test_notice, self.own_rows, self.leave_out, *self.about_the_set, *self.job.outputs]
        confusion = [self.matrix, self.matrix_head, self.arm, self.plot]
        asked = [self.text, self.label, self.limit, self.own_rows, self._elsewhere.tick]
        for button, measures in ((self.job.start, self._measure), (self.leave_out, self._measure_rest)):
            guarding = guarded(self.test_notice, self.job.idle)
            measured = button.click(guarding(measures), asked, shown, **MODEL, **PRIVATE)
            self._app.bar.follow(self._app.sessions, measured)
            # A call of its own: the page can lose a figure that is shown shortly before a handler's end.
            measured.then(self._confusion, None, confusion, **PRIVATE)
        self.arm.input(self._choose_arm, self.arm, [self.matrix_head, self.plot], **PRIVATE)

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
        state.table, state.merge_labels, state.allow_left_out = table, False, False
        text, label = guess_columns(table, state.tested.labels if state.tested else ())
        columns = table.columns
        rows = " ".join([f"{len(table.frame):,} rows are ready. Check the columns, then measure.", *table.remarks])
        return {
            **self.reading.closed(session),
            self.test_file: None,
            self.test_notice: notice(rows, "good"),
            self.text: gr.Dropdown(choices=columns, value=text or None),
            self.label: gr.Dropdown(choices=columns, value=label or None),
            self.merge: gr.Checkbox(value=False, visible=True),
            self.allow: gr.Checkbox(value=False, visible=True),
        }

    def _saying(self, name: str) -> Any:
        """A handler that keeps a box's value in the state."""

        def say(value: bool, request: gr.Request) -> None:
            setattr(self._app.session(request).of(TestState), name, value)

        return say

    def _told(self, limit: float, request: gr.Request) -> list[Tree]:
        """How long the measurement takes with so many rows."""
        state, speed = self._app.session(request).of(TestState), self._app.loader.speed
        try:
            tested = state.classifying
        except UsageError:  # the button says so
            return []
        if state.table is None or speed is None:
            return []
        rows = min(int(limit), len(state.table.frame))
        return said(speed.seconds(measuring(tested, rows)), f"Reading {rows:,} of them takes")

    def _measure(
        self, text: str, label: str, limit: float, own_rows: bool, ticked: bool, request: gr.Request
    ) -> Iterator[dict[Any, Any]]:
        session = self._app.session(request)
        state = session.of(TestState)
        test, left_out = state.rows(text, label, state.classifying)
        owners = self._owners(session, request, test)
        remote = self._elsewhere.chosen(ticked, state.classifying)
        if owners and (remote is not None or not own_rows):
            yield {self.own_rows: gr.Checkbox(visible=remote is None), self.leave_out: gr.Button(visible=True)}
            if remote is not None:
                refuse_private_rows(owners)
            names, count = ", ".join(f"'{name}'" for name in owners), sum(self._shared(request, test))
            raise UsageError(_SHARED.format(names=names, count=count, total=len(test.records)))
        yield from self._measure_rows(test, left_out, owners, limit, ticked, request)

    def _measure_rest(
        self, text: str, label: str, limit: float, own_rows: bool, ticked: bool, request: gr.Request
    ) -> Iterator[dict[Any, Any]]:
        """Measure on the rows that no private data set has; the others are neither read nor marked."""
        state = self._app.session(request).of(TestState)
        test, left_out = state.rows(text, label, state.classifying)
        rest = without_rows(test, self._shared(request, test))
        if not rest.records:
            raise UsageError(_NOTHING_LEFT)
        owners = self._owners(self._app.session(request), request, rest)
        yield from self._measure_rows(rest, left_out, owners, limit, ticked, request)

    def _shared(self, request: gr.Request, test: Dataset) -> list[bool]:
        confirmed = self._app.session(request).of(DataState).confirmed
        own = fingerprint(confirmed.dataset) if confirmed else None
        return shared_rows(test, self._app.ledger(request), own)

    def _measure_rows(
        self,
        test: Dataset,
        left_out: LeftOut,
        owners: tuple[str, ...],
        limit: float,
        ticked: bool,
        request: gr.Request,
    ) -> Iterator[dict[Any, Any]]:
        session = self._app.session(request)
        state = session.of(TestState)
        tested = state.classifying
        known = [row for row in test.records if row.label in tested.labels]
        chosen = spread(known, int(limit))
        remote = self._elsewhere.chosen(ticked, tested)
        if remote is not None:
            refuse_private_rows(owners)
        mark_scored(fingerprint(test), self._app.ledger(request))
        session.of(Measurements).order(state.score(tested, owners, test, chosen))
        yield {
            self.test_notice: notice(left_out.sentence, "warn"),
            self.leave_out: gr.Button(visible=False),
            **self.emptied(tested),
            **self.job.working(progress(0, 1, "Writing the public-only demonstrations …")),
        }
        yield from self.job.run(request, lambda order: self._measured(state, order, remote))
        yield from self.add_prototypes(request)

    def _owners(self, session: Session, request: gr.Request, test: Dataset) -> tuple[str, ...]:
        """Names of the private data sets that test rows belong to."""
        ledger, confirmed = self._app.ledger(request), session.of(DataState).confirmed
        return tuple(owners_of(fingerprint(test), ledger, fingerprint(confirmed.dataset) if confirmed else None))

    def _measured(
        self, state: TestState, order: Order[Scored], remote: RemoteReader | None
    ) -> Generator[Updates | Passing]:
        scored = order.wanted
        demo_set, model = scored.of, self._app.loader.model()
        arms = state.arms_elsewhere(demo_set, model) if remote else state.arms(demo_set, model)
        said = reads(demo_set, remote, arms) if remote else readers(demo_set, model)
        yield {self.job.bar: progress(0, 1, "Asking the model …"), self.readers: said}
        reader = remote or LocalReader(model)
        for result in evaluate(reader, demo_set.template, demo_set.labels, arms, scored.rows):
            match result:
                case Progress(done, total):
                    yield self.job.reached(done, total, f"{done} of {total} answers")
                case Scorecard():
                    scored = scored.with_card(result)
                    state.show(scored)
                    yield {self.scores: accuracies(*scored.shown)}
            if order.stop.is_set():
                yield {self.test_notice: notice("Stopped. What was measured so far is shown.", "warn")}
                return

    def _confusion(self, request: gr.Request) -> Updates:
        scored = self._app.session(request).of(TestState).scored
        if scored is None or not scored.cards or not scored.complete:
            return {self.matrix: gr.skip()}
        own = scored.cards[-1]
        return {
            self.matrix: gr.Column(visible=True),
            self.matrix_head: confused(scored.owners, own, scored.of.labels),
            self.arm: gr.Radio(value=own.name, visible=len(scored.cards) > 1),
            self.plot: confusion_figure(own, scored.of.labels),
        }

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
        if not set(owners := self._owners(session, request, scored.test)) <= set(scored.owners):
            raise UsageError(_MEASURE_AGAIN.format(names=", ".join(f"'{name}'" for name in owners)))
        found = released.accuracy(scored.rows, scored.of.labels, self._app.embedder.embedder())
        state.show(scored := replace(scored, prototypes=found))
        yield {self.scores: accuracies(*scored.shown)}

    @property
    def speed(self) -> Speed | None:
        """The models' speed on this machine; None until it is measured."""
        return self._app.loader.speed

    @property
    def about_the_set(self) -> list[Any]:
        """The components of `emptied`."""
        return [self.scores, self.readers, self.matrix, self.plot, self.bundled]

    def emptied(self, tested: DemoSet | None = None) -> dict[Any, Any]:
        """The components without figures, for another set."""
        return {
            self.scores: [],
            self.readers: [],
            self.matrix: gr.Column(visible=False),
            self.plot: None,
            self.bundled: gr.Button(visible=bool(tested and bundled_rows_for(tested.labels))),
        }

    def _choose_arm(self, name: str, request: gr.Request) -> Any:
        scored = self._app.session(request).of(TestState).scored
        for card in scored.cards if scored else ():
            if scored and card.name == name:
                labels = scored.of.labels
                return confused(scored.owners, card, labels), confusion_figure(card, labels)
        return gr.skip(), gr.skip()


def spread(rows: list[Record], limit: int) -> list[Record]:
    """At most `limit` rows, evenly over the file: a file that is sorted by label stays balanced."""
    if len(rows) <= limit:
        return rows
    return [rows[i * len(rows) // limit] for i in range(limit)]
