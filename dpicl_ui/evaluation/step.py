"""Step 4: how well the demonstrations work, on typed texts and on a labelled file, with this or another reader."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import gradio as gr

from dpicl_ui.data.cards import ReadingCard
from dpicl_ui.data.state import ConfirmedData, DataState
from dpicl_ui.evaluation.cards import (
    ARMS,
    accuracies,
    answers,
    confusion_figure,
    headline_of,
    named_arm,
    readers,
    subject,
)
from dpicl_ui.evaluation.state import (
    LARGEST_DEMO_SET,
    EvaluationState,
    Measurements,
    PrototypesOrder,
    PrototypesState,
    SetFigures,
    origin,
    verified,
)
from dpicl_ui.frame.files import drop, text_of
from dpicl_ui.frame.handlers import ACCOUNTING, MODEL, PRIVATE, Job, JobControls, UpdateLimit, on
from dpicl_ui.frame.inputs import PrivateDropdown, number
from dpicl_ui.frame.services import Services, Session
from dpicl_ui.frame.tree import Tree, Updates, budget, el, notice, panel, progress, spinner
from dpicl_ui.generate.cards import score_card
from mechanisms.accounting import BudgetSnapshot, Claim, PrivacyLedger, PrivacyTarget, Usage, fingerprint
from mechanisms.data.disclosures import shared_rows, without_rows
from mechanisms.data.headers import guess_columns
from mechanisms.data.sources import EXAMPLES, formats_in_words, read_table
from mechanisms.data.table import Table
from mechanisms.demos.demo_set import DIRECTIONS, PUBLIC_ONLY, DemoSet, loads
from mechanisms.errors import StudioError, UsageError
from mechanisms.evaluation.by_directions import By
from mechanisms.evaluation.class_prototypes import ClassPrototypes, PrototypesRequest, release_prototypes
from mechanisms.evaluation.classifier import Classifier, Prediction
from mechanisms.evaluation.evaluate import BOTH, Progress, Scorecard, evaluate
from mechanisms.evaluation.own_rows import spread
from mechanisms.evaluation.reader import Arm, LocalReader
from mechanisms.evaluation.remote_reader import (
    RemoteReader,
    read_remotely_in_words,
    refuse_set_without_promise,
    what_leaves,
)
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.inference.models.listed import available_models
from mechanisms.inference.remote import ChatServer, ServerAddress, key_of
from mechanisms.records import RECORD, Dataset, unit_in_words
from mechanisms.rounding import rounded_up

_HERE, _ADDRESS = "here", "address"
_LEAVES = f"{what_leaves('that address')} Paste no private text. The key goes with each request, and is not stored."
_NO_PUBLIC = " There are no public demonstrations here: another model than the set's would write them."
_LOADED = "It replaces the loaded model, and writes demonstrations too from then on."


class AnotherReader:
    """The card that chooses a reader; `inputs` are the components that `chosen` reads.

    An address is offered only on an owner's server: on a public one, strangers could make the server send requests.
    `loaded` fires when a model has been loaded, or the old one has been loaded again.
    """

    loaded: gr.events.Dependency

    def __init__(self, app: Services) -> None:
        self._app = app
        choices = [("The model that is loaded here", _HERE)]
        choices += [("A model behind an address", _ADDRESS)] if app.ledgers.lasting else []
        with gr.Accordion("Another reader", open=False, elem_classes="card", elem_id="another-reader"):
            self.who = gr.Radio(choices, value=_HERE, label="Reader", elem_id="reader", elem_classes="presets")
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
        self.there, free = panel(elem_id="reader-there"), {self.load: gr.Button(interactive=True)}
        shown = [self.there, self.load]
        self.loaded = on(self.load.click, self._load, self.name, shown, self.there, lambda: free, **MODEL)

    def _load(self, name: str | None) -> Iterator[Updates]:
        yield {self.load: gr.Button(interactive=False)}
        for told in self._app.loader.changed(name or ""):
            yield {self.there: told}

    def chosen(self, values: Mapping[Any, Any], demo_set: DemoSet) -> RemoteReader | None:
        """The remote reader for this request; None if the loaded model reads.

        Raises:
            UsageError: the set has no privacy claim, or the address, the model or the key cannot be used.
        """
        if values[self.who] != _ADDRESS or not self._app.ledgers.lasting:
            return None
        key = key_of(values[self.key] or "", "The key")
        address = ServerAddress.of(values[self.address] or "")
        reader = RemoteReader(ChatServer(address, values[self.model] or "", key))
        refuse_set_without_promise(demo_set)
        return reader


def reads(demo_set: DemoSet, reader: RemoteReader, arms: tuple[Arm, ...]) -> list[Tree]:
    complete = any(arm.name == PUBLIC_ONLY for arm in arms)
    return notice(read_remotely_in_words(demo_set, reader) + ("" if complete else _NO_PUBLIC), "warn")


def embedder_for(app: Services, demo_set: DemoSet) -> Embedder | None:
    """The embedding model for a set's directions; None if it has none.

    Raises:
        UsageError: the directions belong to another embedding model.
        ModelUnavailable: there is no embedding model.
    """
    if demo_set.directions is None:
        return None
    embedder = app.embedder.embedder()
    demo_set.directions.check(embedder)
    return embedder


def bundled_rows_for(labels: Collection[str]) -> Path | None:
    """The bundled test file with exactly these labels, if there is one."""
    found = (each.test for each in EXAMPLES if _labels(each.test, each.mapping.label) == set(labels))
    return next(found, None)


@cache
def _labels(path: Path, column: str) -> frozenset[str]:
    return frozenset(read_table(path).frame[column])


_TEST_FILE = (
    f"A file ({formats_in_words()}) that was not used to write the demonstrations. It is read into memory only. "
    "If a model behind an address answers, it is sent the texts."
)
_SHARED = (
    "{count} of its {total} rows are left out because private data sets contain them (apart from spaces, case and "
    "punctuation), and an accuracy has no noise. This number is for your eyes only."
)
_STAYS_HERE = (
    "Private data sets contain {count} of this file's {total} rows, so none is sent: whoever has the file would see "
    "which are missing. Bring rows that took no part, or read them with a model on this machine."
)
_NOTHING_LEFT = "Private data sets contain every row of this file: bring rows that took no part."
_MEASURE_AGAIN = "This file shares rows with a private data set that was unknown when it was measured: measure again."
_BUNDLED = "Take the test rows of the bundled example"


class FileMeasurement:
    """The measurement on a labelled file; made inside the card that shows it."""

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
        # If a handler yields two values within moments, the browser may draw only the last.
        measured.then(self._app.bar_after(), None, self._app.bar.html, **PRIVATE)
        measured.then(self._confused, None, self.confusion, **PRIVATE)

    def _confused(self, request: gr.Request) -> Any:
        scored = self._app.session(request).of(EvaluationState).scored
        if scored is None or not scored.complete:
            return gr.skip()
        return gr.Plot(confusion_figure(scored.cards[-1], scored.demo_set.labels), visible=True)

    def _open_test(self, upload: str | None, request: gr.Request) -> Updates:
        if upload is None:
            return {self.test_notice: []}
        session = self._app.session(request)
        before = session.of(EvaluationState).table is not None
        table, shown, said = self.reading.uploaded(session, upload, "", before)
        opened = {self.test_notice: said} if table is None else self._opened(table, session)
        return {self.test_file: None} | shown | opened

    def _read_so(self, request: gr.Request, *answers: Any) -> Updates:
        session = self._app.session(request)
        table, _, shown = self.reading.read_again(session, *answers)
        return shown if table is None else shown | self._opened(table, session)

    def _take_bundled(self, request: gr.Request) -> Updates:
        session = self._app.session(request)
        tested = session.of(EvaluationState).tested
        path = bundled_rows_for(tested.labels) if tested else None
        return self._opened(read_table(path), session) if path else {self.test_notice: []}

    def _opened(self, table: Table, session: Session) -> Updates:
        state = session.of(EvaluationState)
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
        state = session.of(EvaluationState)
        tested = state.classifying
        test, left_out = state.rows(values[self.text], values[self.label], tested)
        shared = self._shared(request, test)
        elsewhere = self._reader.chosen(values, tested)
        if elsewhere and any(shared):
            raise UsageError(_STAYS_HERE.format(count=sum(shared), total=len(test.records)))
        rest = without_rows(test, shared)
        known = [row for row in rest.records if row.label in tested.labels]
        if not known:
            raise UsageError(_NOTHING_LEFT)
        scored = SetFigures(tested, rest, tuple(spread(known, int(values[self.limit]))))
        session.of(Measurements).order(scored)
        state.show(scored)
        private = _SHARED.format(count=sum(shared), total=len(test.records)) if any(shared) else ""
        yield {
            self.test_notice: notice(" ".join(filter(None, (left_out.sentence, private))), "warn"),
            **self.emptied(tested),
            **self.job.working(progress(0, "Writing the public-only demonstrations …")),
        }
        yield from self.job.run(request, lambda job: self._measured(state, job, elsewhere))
        yield from self.add_prototypes(request)

    def _shared(self, request: gr.Request, test: Dataset) -> list[bool]:
        """For each row, whether a private data set has it."""
        confirmed = self._app.session(request).of(DataState).confirmed
        own = fingerprint(confirmed.dataset) if confirmed else None
        return shared_rows(test, self._app.ledger(request), own)

    def _measured(
        self, state: EvaluationState, job: Job[SetFigures], elsewhere: RemoteReader | None
    ) -> Iterator[Updates]:
        scored, model, limit = job.request, self._app.loader.model(), UpdateLimit()
        demo_set = scored.demo_set
        arms = state.arms(demo_set, model, elsewhere is not None)
        said = reads(demo_set, elsewhere, arms) if elsewhere else readers(demo_set, model)
        embedder = None
        try:
            embedder = embedder_for(self._app, demo_set)
        except StudioError as error:
            said = [*said, *notice(str(error), "warn")]
        reader = elsewhere or LocalReader(model, embedder=embedder)
        yield {self.job.bar: progress(0, "Asking the model …"), self.readers: said}
        for result in evaluate(reader, demo_set.template, demo_set.labels, arms, scored.rows, embedder):
            match result:
                case Progress(done, total) if limit.due():
                    yield {self.job.bar: progress(done / total, f"{done} of {total} answers")}
                case Scorecard():
                    scored = state.show(replace(scored, cards=(*scored.cards, result)))
                    yield self._figures(scored)
            if job.stop.is_set():
                yield {self.test_notice: notice("Stopped. What was measured so far is shown.", "warn")}
                return

    def _figures(self, scored: SetFigures) -> Updates:
        shown = accuracies(scored.cards, scored.prototypes, scored.demo_set.labels)
        return {self.scores: shown, self._headline: headline_of(scored.demo_set, scored)}

    def add_prototypes(self, request: gr.Request) -> Iterator[Updates]:
        """Add the accuracy of released class prototypes to the figures, on the same rows.

        Raises:
            UsageError: test rows have become rows of a private data set since they were scored.
        """
        session = self._app.session(request)
        state, released = session.of(EvaluationState), session.of(PrototypesState).released
        scored = state.scored
        if scored is None or released is None or not scored.complete or not released.covers(scored.demo_set.labels):
            return
        if any(self._shared(request, scored.test)):
            raise UsageError(_MEASURE_AGAIN)
        found = released.accuracy(scored.rows, scored.demo_set.labels, self._app.embedder.embedder())
        yield self._figures(state.show(replace(scored, prototypes=found)))

    @property
    def about_the_set(self) -> list[Any]:
        """The components that `emptied` sets."""
        return [self.scores, self.readers, self.confusion, self._headline, self.bundled]

    def emptied(self, tested: DemoSet | None) -> Updates:
        return {
            self.scores: [],
            self.readers: [],
            self.confusion: gr.Plot(visible=False),
            self._headline: headline_of(tested, None),
            self.bundled: gr.Button(visible=bool(tested and bundled_rows_for(tested.labels))),
        }


_BY = [("The model", By.MODEL.value), (ARMS[DIRECTIONS][0], By.DIRECTIONS.value), (ARMS[BOTH][0], By.BOTH.value)]
_WORDS_ALONE = (
    "A remote model answers in words, which cannot be combined with directions: choose the model, or the directions."
)


def usual(demo_set: DemoSet | None) -> str:
    """The default reader of a typed text: the one that the set's private score recommends."""
    return By.DIRECTIONS if demo_set is not None and demo_set.directions_read_better else By.MODEL


_ABOUT = (
    "An embedding model maps every text to a vector. A label's prototype is the mean vector of your rows with that "
    "label, released once with noise; a test row gets the label of the nearest prototype."
)
_WAITING: list[Tree] = [el("p.muted", "This needs the private rows: confirm a data set in step 1 first.")]
_USERS = " Only one row of each user counts."
_NO_ROOM = "The cap does not allow it: choose a smaller epsilon."


def price(unit: str, claimed: Claim, after: Usage, now: BudgetSnapshot) -> list[Tree]:
    cost = f"epsilon {rounded_up(claimed.epsilon, 3)} at delta {claimed.delta:g} for {unit_in_words(unit)}"
    then = f"The budget then stands at {rounded_up(after.epsilon, 3)} of {now.cap.epsilon:g}." if after.allowed else ""
    once = "charged once, before any row is read, and spent even if it is stopped."
    users = "" if unit == RECORD else _USERS
    return [
        el("p", el("strong", f"It costs {cost}"), f", {once} {then}{users}".rstrip()),
        *notice("" if after.allowed else _NO_ROOM, "bad"),
        *budget(now, claimed.epsilon),
    ]


def paid(released: ClassPrototypes, now: BudgetSnapshot) -> list[Tree]:
    claimed = released.claim
    cost = f"Released with epsilon {rounded_up(claimed.epsilon, 3)} at delta {claimed.delta:g}."
    kept = "Kept while this page is open, and not charged again. The accuracies above now show it, too."
    return [el("p", el("strong", cost), f" {kept}"), *budget(now)]


_EPSILON = 0.5
_NO_FILE = "Upload a labelled test file first: without one there is nothing to measure. Nothing was charged."
_OTHER_LABELS = "The set under test has labels that the data set of step 1 lacks. Nothing was charged."
_CHANGED = "The data of step 1 has changed. Nothing was charged: look at the price, then press again."
_NOT_BEGUN = "Stopped. Nothing was charged."
_STOPPED = "Stopped. It was already charged, so its cost stays spent."
_TRY = "Try it"


class PrototypesOffer:
    """The offer of class prototypes; made inside the card that shows it, after the measurement that shows figures."""

    def __init__(self, app: Services, measurement: FileMeasurement) -> None:
        self._app, self._measurement = app, measurement
        panel(el("p.muted", _ABOUT))
        self.epsilon = gr.Number(
            _EPSILON, label="Epsilon", info="Less is more private, and noisier.", elem_id="prototypes-epsilon"
        )
        self.cost = panel(*_WAITING, elem_id="prototypes-cost")
        self.notice = panel(elem_id="prototypes-notice")
        ids = ("prototypes-start", "prototypes-stop", "prototypes-progress")
        self.job = JobControls(app, PrototypesState, _TRY, ids, startable=False)
        self._wire()

    def _wire(self) -> None:
        self.follow(partial(gr.on, [self._app.bar.html.change, self.epsilon.blur, self.epsilon.submit]))
        measured, shown = self._measurement, [self.notice, *self.job.outputs]
        ordered = on(self.job.start.click, self._order, self.epsilon, shown, self.notice)
        released = on(ordered.then, self._release, None, shown, self.notice, self.job.idle, **MODEL)
        shown = [measured.test_notice, *measured.about_the_set]
        self.follow(on(released.then, measured.add_prototypes, None, shown, measured.test_notice, **MODEL).then)

    def follow(self, event: Any) -> None:
        shown = [self.cost, self.job.start]
        on(event, self._look, self.epsilon, shown, self.cost, trigger_mode="always_last", **ACCOUNTING)

    def _look(self, epsilon: Any, request: gr.Request) -> Updates:
        session, ledger = self._app.session(request), self._app.ledger(request)
        confirmed, state = session.of(DataState).confirmed, session.of(PrototypesState)
        if confirmed is None:
            return {self.cost: _WAITING, self.job.start: gr.Button(_TRY, interactive=False)}
        name, unit = confirmed.dataset.name, confirmed.dataset.unit
        now = ledger.snapshot(name, unit)
        if (released := state.released) is not None:
            return {self.cost: paid(released, now), self.job.start: gr.Button("Released", interactive=False)}
        try:
            wanted = _request(confirmed, epsilon)
            claimed = wanted.claim()
            after = ledger.forecast(name, unit, wanted.event, claimed)
        except StudioError as error:
            return {self.cost: notice(str(error)), self.job.start: gr.Button(_TRY, interactive=False)}
        words = f"{_TRY} for epsilon {rounded_up(claimed.epsilon, 3)}"
        free = after.allowed and not state.busy
        return {self.cost: price(unit, claimed, after, now), self.job.start: gr.Button(words, interactive=free)}

    def _order(self, epsilon: Any, request: gr.Request) -> Updates:
        session = self._app.session(request)
        confirmed, test = session.of(DataState).needed, session.of(EvaluationState)
        tested = test.classifying
        if test.table is None:
            raise UsageError(_NO_FILE)
        if not set(tested.labels) <= set(confirmed.dataset.labels):
            raise UsageError(_OTHER_LABELS)
        session.of(PrototypesState).order(PrototypesOrder(confirmed, _request(confirmed, epsilon)))
        return {self.notice: [], **self.job.working([])}

    def _release(self, request: gr.Request) -> Iterator[Updates]:
        """Charge the ledger, read the rows, and release the prototypes; closing the tab stops it."""
        session, ledger = self._app.session(request), self._app.ledger(request)
        yield from self.job.run(request, lambda job: self._reading(session, job, ledger))

    def _reading(self, session: Session, job: Job[PrototypesOrder], ledger: PrivacyLedger) -> Iterator[Updates]:
        yield {self.job.bar: spinner("Waiting for the embedding model …")}
        order, embedder, limit = job.request, self._app.embedder.embedder(), UpdateLimit()
        job.check(_NOT_BEGUN)
        if order.confirmed is not session.of(DataState).confirmed:
            raise UsageError(_CHANGED)
        with closing(release_prototypes(order.confirmed.dataset, order.request, embedder, ledger)) as events:
            for event in events:
                match event:
                    case Progress(done, total):
                        job.check(_STOPPED)
                        if limit.due():
                            share = done / total if total else 1.0
                            yield {self.job.bar: progress(share, f"{share:.0%} of the rows read")}
                    case ClassPrototypes():
                        session.of(PrototypesState).keep(order, event)
        yield {self.notice: notice("The class prototypes are released.", "good")}


def _request(confirmed: ConfirmedData, epsilon: Any) -> PrototypesRequest:
    """A request with the delta that follows from the data set's public sizes."""
    target = PrivacyTarget(number("Epsilon", epsilon), confirmed.usual_delta)
    return PrototypesRequest(target, len(confirmed.sizes))


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
                self.by = gr.Radio(_BY, value=By.MODEL.value, label="Read by", visible=False, elem_id="read-by")
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
        self._about_the_set = [self.score, self.subject, self.by, self.answer, *self.measurement.about_the_set]
        shown = [self.load, self.load_notice, *self._about_the_set, app.bar.html]
        on(self.load.upload, self._load, self.load, shown, self.load_notice)
        asking, shown = {self.query, self.by, *self.reader.inputs}, [self.answer, self.ask]
        for event in (self.ask.click, self.query.submit):
            on(event, self._ask, asking, shown, self.answer, lambda: {self.ask: gr.Button(interactive=True)}, **MODEL)

    def follow(self, ended: gr.events.Dependency) -> None:
        ended.then(self._show_set, None, self._about_the_set, **PRIVATE)
        self.prototypes.follow(ended.then)

    def _show_set(self, request: gr.Request) -> Updates:
        state = self._app.session(request).of(EvaluationState)
        tested, loaded = state.tested, state.loaded is not None
        return {
            self.score: score_card(tested, loaded),
            self.subject: subject(tested, loaded),
            self.by: gr.Radio(value=usual(tested), visible=tested is not None and tested.directions is not None),
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
        session.of(EvaluationState).load(demo_set)
        yield {self.load_notice: said, **self._show_set(request), **self._app.steps(session)}

    def _ask(self, values: Mapping[Any, Any], request: gr.Request) -> Iterator[Updates]:
        query = values[self.query] or ""
        if not query.strip():
            raise UsageError("Type a text first.")
        yield {self.answer: spinner("Reading the text …"), self.ask: gr.Button(interactive=False)}
        state = self._app.session(request).of(EvaluationState)
        demo_set = state.classifying
        if demo_set.directions is not None and values[self.by] != By.MODEL:
            yield {self.answer: self._by_directions(values, state, demo_set, query)}
            return
        template, labels = demo_set.template, demo_set.labels
        elsewhere, model = self.reader.chosen(values, demo_set), self._app.loader.model()
        arms = state.arms(demo_set, model, elsewhere is not None)
        said: list[Tree] = []
        predictions: list[tuple[str, Prediction]] = []
        for arm in arms:
            if elsewhere:
                label = elsewhere.label(arm.template or template, labels, arm, query)
                said.append(named_arm(arm.name, el("p.answer", label or "no label")))
                yield {self.answer: [el("div.arms", *said), *reads(demo_set, elsewhere, arms)]}
            else:
                predictions.append((arm.name, _predicted(model, demo_set, arm, query)))
                yield {self.answer: [*answers(labels, predictions), *readers(demo_set, model)]}

    def _by_directions(
        self, values: Mapping[Any, Any], state: EvaluationState, demo_set: DemoSet, query: str
    ) -> list[Tree]:
        embedder = embedder_for(self._app, demo_set)
        assert demo_set.directions is not None
        assert embedder is not None
        [places] = demo_set.directions.places([query], embedder)
        if values[self.by] == By.DIRECTIONS:
            return answers(demo_set.labels, [(DIRECTIONS, Prediction.by_places(places))])
        if self.reader.chosen(values, demo_set) is not None:
            raise UsageError(_WORDS_ALONE)
        model = self._app.loader.model()
        *_, own = state.arms(demo_set, model)
        together = _predicted(model, demo_set, own, query).joined_with(places)
        return [*answers(demo_set.labels, [(BOTH, together)]), *readers(demo_set, model)]


def _predicted(model: LanguageModel, demo_set: DemoSet, arm: Arm, query: str) -> Prediction:
    template = arm.template or demo_set.template
    [prediction] = Classifier(model, template, demo_set.labels, arm.demonstrations, arm.prior).predict([query])
    return prediction
